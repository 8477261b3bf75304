"""Measuring works where PyTorch and the other extras are not installed; help waits for nothing heavy."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

# No extra can be found, as where it is not installed.
WITHOUT_EXTRAS = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from core_commands import EXTRAS, hide_extras
hide_extras()
"""


def run(program: str, *arguments: str) -> str:
    """What a program prints, in a process of its own where a warning is an error."""
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *arguments], capture_output=True, text=True, timeout=300
    )
    assert ended.stderr == ""
    assert ended.returncode == 0
    return ended.stdout


def test_the_extras_are_hidden() -> None:
    # Else the tests below would show nothing.
    program = WITHOUT_EXTRAS + "\ntry:\n    import torch\nexcept ModuleNotFoundError as error:\n    print(error)"
    assert run(program) == "No module named 'torch'\n"


def test_help_without_extras() -> None:
    out = run(WITHOUT_EXTRAS + "from evenrank.cli import main\nmain()", "--help")
    for command in ("score", "audit", "retrieve", "rerank", "data"):
        assert f" {command} " in out
    assert "Measures bias in search rankings" in out


def test_help_of_every_command_loads_nothing_heavy() -> None:
    program = """
import sys
import evenrank
import evenrank.cli
from click.testing import CliRunner
from typer.main import get_command

command = get_command(evenrank.cli.app)
names = list(command.commands)
for name in names:
    result = CliRunner().invoke(command, [name, "--help"])
    assert result.exit_code == 0, result.output
    assert "Usage:" in result.output
heavy = {"torch", "transformers", "polars", "pyarrow", "numpy", "scipy", "numba"}
heavy |= {"ir_measures", "ir_datasets", "altair"}
print(sorted(heavy & set(sys.modules)), " ".join(names))
"""
    loaded, _, names = run(program).strip().partition("] ")
    assert loaded == "["
    assert {"score", "audit", "retrieve", "rerank", "data"} <= set(names.split())


def test_an_audit_without_extras(tmp_path: Path) -> None:
    program = (
        WITHOUT_EXTRAS
        + """
import evenrank
import polars as pl

table = pl.DataFrame({"query_id": ["q"] * 3, "doc_id": ["m", "f", "n"], "score": [3.0, 2.0, 1.0]})
texts = pl.DataFrame({"doc_id": ["f", "m", "n"], "text": ["She met her.", "He met him.", "Nobody met it."]})
qrels = pl.DataFrame({"query_id": ["q"], "doc_id": ["f"], "relevance": [1]})
measures = "RR@10 ARaB(magnitude='count')@2 NFaiRR@3"
result = evenrank.audit({"mine": table}, collection=texts, qrels=qrels, measures=measures)
assert "mine" in result.table()
result.to_json(sys.argv[1])
assert evenrank.read_run(sys.argv[2]).table.equals(evenrank.Run.from_table(table).table)
print(sorted(EXTRAS & set(sys.modules)))
"""
    )
    (tmp_path / "run").write_text("q Q0 m 1 3 t\nq Q0 f 2 2 t\nq Q0 n 3 1 t\n")
    assert run(program, str(tmp_path / "audit.json"), str(tmp_path / "run")) == "[]\n"
    measures = json.loads((tmp_path / "audit.json").read_text())["runs"]["mine"]["measures"]
    assert measures["RR@10"]["mean"] == 0.5
    # RaB@1 = 2, RaB@2 = 0.
    assert measures["ARaB(magnitude='count')@2"]["mean"] == 1
    # The one neutral document comes last: (1/2) / 1.
    assert measures["NFaiRR@3"]["mean"] == 0.5


def test_a_collection_is_scored_without_extras(tmp_path: Path) -> None:
    (tmp_path / "c.tsv").write_text("1\tShe and he\n2\ther\n")
    out = tmp_path / "scores.parquet"
    program = (
        WITHOUT_EXTRAS
        + """
import evenrank
rows = evenrank.groups.score_collection(sys.argv[1], sys.argv[2], evenrank.Scoring(evenrank.load_lexicon()))
scores = evenrank.read_group_table(sys.argv[2])
print(rows, scores.table["count_f"].to_list(), scores.table["count_m"].to_list())
"""
    )
    assert run(program, str(tmp_path / "c.tsv"), str(out)) == "2 [1, 1] [1, 0]\n"


def test_a_missing_extra_is_named_with_its_command(tmp_path: Path) -> None:
    for name, content in (("run", "q Q0 d 1 3 t\n"), ("c.tsv", "d\tshe\n"), ("q.tsv", "q\twho\n")):
        (tmp_path / name).write_text(content)
    (tmp_path / "model").mkdir()
    program = WITHOUT_EXTRAS + "from evenrank.cli import main\nmain()"
    command = ["rerank", "run", "--model", "model", "--collection", "c.tsv", "--queries", "q.tsv", "--out", "new"]
    ended = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, *command], capture_output=True, text=True, cwd=tmp_path
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("evenrank: ")
    assert ended.stderr.endswith(' needs the extra [neural]: pip install "evenrank[neural]"\n')
    assert ended.stderr.count("\n") == 1


def test_names_of_the_package() -> None:
    program = """
import sys
import evenrank
print(sorted({"polars", "numpy", "torch"} & set(sys.modules)))
for name in set(evenrank.__all__) - {
    *("IBBR", "train", "train_recipe", "training_lists", "training_summary"),
    *("FunctionTerm", "TrainingResult", "Validation"),
}:
    getattr(evenrank, name)
try:
    evenrank.no_such_name
except AttributeError as error:
    print(error)
print("torch" in sys.modules)
"""
    assert run(program) == "[]\nmodule 'evenrank' has no attribute 'no_such_name'\nFalse\n"
