"""What a command need not load to begin with: an audit of few queries is mostly its imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from evenrank.cli import commands, running

# pyarrow is loaded by nothing but Parquet and texts in great number; numba and its kernels by these too.
HEAVY = (
    *("numba", "llvmlite", "pyarrow", "pandas", "torch", "ray", "ir_datasets", "ssl"),
    *("scipy.linalg", "scipy.stats", "scipy.sparse", "altair", "narwhals", "jsonschema"),
    *("evenrank.cli.train", "evenrank.mitigation", "evenrank.models", "evenrank.search", "evenrank.decide"),
)
FOR_REPORTS = ("jinja2", "vl_convert")
AUDIT = """
import sys
from evenrank.cli import main
try:
    main()
finally:
    print(*[name for name in {heavy} if name in sys.modules], file=sys.stderr)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run").write_text("".join(f"{q} Q0 {d} {d} {9 - d} t\n" for q in range(5) for d in range(1, 5)))
    (tmp_path / "second").write_text("".join(f"{q} Q0 {d} {d} {d * q} t\n" for q in range(5) for d in range(1, 5)))
    (tmp_path / "c.tsv").write_text("1\tShe met her.\n2\tHe met his men, he said.\n3\tNobody.\n4\tA girl's book.\n")
    (tmp_path / "qrels").write_text("".join(f"{q} 0 {1 + q % 4} 1\n" for q in range(5)))
    (tmp_path / "labels.csv").write_text("doc_id,group\n1,f\n2,m\n3,m\n4,f\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        ("a=run b=second --collection c.tsv --qrels qrels --json a.json --values", HEAVY + FOR_REPORTS),
        ("run --labels labels.csv --qrels qrels --seed 3 --measures nDCG@3", HEAVY + FOR_REPORTS),
        ("run second --collection c.tsv --qrels qrels --report r.html", HEAVY),
    ],
)
def test_an_audit_loads_what_it_uses(folder: Path, arguments: str, heavy: tuple[str, ...]) -> None:
    command = [sys.executable, "-c", AUDIT.format(heavy=heavy), "audit", *arguments.split()]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert ended.stderr.splitlines()[-1] == "", ended.stderr
    assert ended.returncode == 0


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from evenrank.cli import main; sys.argv = ['evenrank', 'rerank', '--help']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'polars', 'numpy', 'numba', 'scipy', 'torch', 'transformers', 'Stemmer', 'urllib.request'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_only_the_command_that_is_called_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, names in (
        (["audit", "run"], ["audit"]),
        (["index", "docs"], ["index"]),
        (["position", "answers"], ["position"]),
        (["--version", "audit"], ["audit"]),
    ):
        monkeypatch.setattr(sys, "argv", ["evenrank", *arguments])
        assert list(running().commands) == names
    for arguments in ([], ["--help"], ["nosuch"], ["debias"]):
        monkeypatch.setattr(sys, "argv", ["evenrank", *arguments])
        assert {name: one.short_help for name, one in running().commands.items()} == {
            name: one.short_help or one.help for name, one in commands().commands.items()
        }


def test_the_command_line_is_made_when_it_is_asked_for() -> None:
    code = (
        "import sys, evenrank.cli\n"
        "assert 'evenrank.cli.train' not in sys.modules\n"
        "from evenrank.cli import app\n"
        "assert app is evenrank.cli.app and 'evenrank.cli.train' in sys.modules\n"
        "evenrank.cli.nosuch"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stderr.endswith("AttributeError: module 'evenrank.cli' has no attribute 'nosuch'\n")
