"""kill -9 at any moment: a second start gives what an undisturbed run gives, and nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tiny_models import WORDS, texts

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small collection with queries, judgements and a run."""
    folder = tmp_path_factory.mktemp("source")
    rng = np.random.default_rng(0)
    passages = [f"{text} {who} said" for text, who in zip(texts(60, 8, seed=1), ["she", "he", "it"] * 20, strict=True)]
    queries = [" ".join(rng.choice(WORDS, 3, replace=False)) for _ in range(12)]
    (folder / "c.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(passages)), encoding="utf-8")
    (folder / "q.tsv").write_text("".join(f"{i}\t{text}\n" for i, text in enumerate(queries)), encoding="utf-8")
    (folder / "qrels").write_text("".join(f"{i} 0 {i} 1\n" for i in range(12)), encoding="utf-8")
    lines = [f"{q} Q0 {d} 1 {-rank} t\n" for q in range(12) for rank, d in enumerate(rng.permutation(60)[:15])]
    (folder / "r.run").write_text("".join(lines), encoding="utf-8")
    squad = {"text": passages[0][:4].strip(), "answer_start": 0}
    question = {"id": "q", "question": "?", "answers": [squad]}
    data = {"data": [{"title": "t", "paragraphs": [{"doc_id": "0", "context": passages[0], "qas": [question]}]}]}
    (folder / "a.json").write_text(json.dumps(data), encoding="utf-8")
    return folder


INPUTS = ("--collection", "c.tsv", "--queries", "q.tsv", "--qrels", "qrels")


COMMANDS = {
    "score": ["score", "c.tsv", "--out", "s.parquet", "--quiet"],
    "negatives": ["negatives", "r.run", *INPUTS, "--out", "n.jsonl", "--n", "4", "--share", "0.5", "--quiet"],
    "rotate": ["rotate", "c.tsv", "--out", "r.tsv", "--answers", "a.json", "--quiet"],
    "variants": ["variants", "c.tsv", "--kind", "swap", "--out", "v.tsv", "--quiet"],
    "rebalance": ["rebalance", "r.run", "--collection", "c.tsv", "--strength", "0.5", "--out", "o.run"],
    "audit": ["audit", "r.run", *INPUTS, "--json", "a.out", "--report", "a.html", "--per-query", "a.csv"],
}


QUICK = ("score", "negatives")
_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS if name not in QUICK]


def outcomes(source: Path, homes: dict[str, Path]) -> dict[str, Any]:
    """What was told of each command that was killed four times and run once more, in its folder of ``homes``."""
    given = [
        {"home": str(home), "source": str(source), "arguments": COMMANDS[name], "moments": 4}
        for name, home in homes.items()
    ]
    program = [sys.executable, str(Path(__file__).parents[1] / "killed.py"), json.dumps(given)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"ended"')]
    return {name: {**one, "err": done.stderr} for name, one in zip(homes, told, strict=True)}


@pytest.fixture(scope="module")
def quick(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The quick ones, forks of one process that has imported what they need."""
    homes = {name: tmp_path_factory.mktemp(name) for name in QUICK}
    told = outcomes(source, homes)
    return {name: (home, told[name]) for name, home in homes.items()}


@pytest.mark.parametrize("name", [*QUICK, *_SLOW])
def test_killed_and_started_again(source: Path, tmp_path: Path, request: pytest.FixtureRequest, name: str) -> None:
    if name in QUICK:
        home, told = request.getfixturevalue("quick")[name]
    else:
        home, told = tmp_path, outcomes(source, {name: tmp_path})[name]
    assert told["ended"] == [0, *[signal.SIGKILL] * 4, 0], told["err"]
    # Some were killed with a file half written: had none, the tidying would not have been tested.
    assert any(name.startswith(".") and name.endswith(".part") for name in told["left"]), told
    whole, killed = ({path.name: path.read_bytes() for path in (home / of).iterdir()} for of in ("whole", "killed"))
    assert killed == whole
    assert len(whole) > len(list(source.iterdir()))


DYING = """
import os, signal, sys, threading
import evenrank
from evenrank.cli import main
home, stop, count = os.path.dirname(evenrank.__file__), int(sys.argv.pop(1)), 0
def note(frame, event, _):
    global count
    if event == "call" and frame.f_code.co_filename.startswith(home):
        count += 1
        if count == stop:
            os.kill(os.getpid(), signal.SIGKILL)
sys.argv[0] = "evenrank"
sys.setprofile(note)
threading.setprofile(note)
try:
    main()
finally:
    sys.setprofile(None)
    print(count)
"""


RECIPE = """
name = "small"
out = "trained"
[ranker]
kind = "knrm"
vector_size = 8
[data]
collection = "c.tsv"
queries = "q.tsv"
qrels = "qrels"
run = "r.run"
negatives = 2
[validation]
queries = "q.tsv"
qrels = "qrels"
run = "r.run"
[loss]
name = "nll"
[training]
batch = 4
epochs = 4
evaluate_every = 3
"""


def dying(folder: Path, stop: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", DYING, str(stop), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_training_and_re_ranking_killed_at_drawn_moments(source: Path, tmp_path: Path, seed: int) -> None:
    pytest.importorskip("torch", reason="needs the extra [neural]")
    pytest.importorskip("gensim", reason="needs the extra [embeddings]")
    rng = np.random.default_rng(seed)
    rerank = ["rerank", "r.run", "--model", "trained/model", *INPUTS[:4], "--batch-size", "1", "--out", "new.run"]
    ends = {}
    for name in ("whole", "killed"):
        folder = tmp_path / name
        shutil.copytree(source, folder)
        (folder / "r.toml").write_text(RECIPE)
        for command in (["train", "r.toml"], rerank):
            if name == "killed":
                died = dying(folder, int(rng.integers(1, ends["whole", command[0]])), *command)
                assert died.returncode == -signal.SIGKILL, died.stderr
            again = ["--resume"] if (folder / "trained" / "recipe.toml").exists() and command[0] == "train" else []
            done = dying(folder, -1, *command, *again)
            assert done.returncode == 0, done.stderr
            ends[name, command[0]] = int(done.stdout.splitlines()[-1])
    whole, killed = (files_of(tmp_path / name) for name in ("whole", "killed"))
    assert killed.keys() == whole.keys()
    # The log and the trainer's own state tell of times, and of the start anew.
    same = [name for name in whole if name.endswith((".safetensors", ".run")) and "checkpoint-" not in name]
    assert {"new.run", "trained/validation.run", "trained/model/model.safetensors"} <= set(same)
    assert {name: killed[name] for name in same} == {name: whole[name] for name in same}


def test_two_commands_write_the_same_file(source: Path, tmp_path: Path) -> None:
    program = "import sys; from evenrank.cli import main; sys.argv[0] = 'evenrank'; main()"

    def command(magnitudes: str, out: str) -> list[str]:
        options = ["--out", out, "--magnitudes", magnitudes, "--quiet"]
        return [sys.executable, "-c", program, "score", str(source / "c.tsv"), *options]

    both = [subprocess.Popen(command(kind, str(tmp_path / "both"))) for kind in ("count", "tf_words")]
    assert [process.wait() for process in both] == [0, 0]
    assert [path.name for path in tmp_path.iterdir()] == ["both"]
    found = pl.read_parquet(tmp_path / "both")
    assert found.height == 60
    kinds = {name.rpartition("_")[0] for name in found.columns if name.startswith("magnitude_")}
    assert kinds in ({"magnitude_count"}, {"magnitude_tf_words"}, {"magnitude_bool"})
