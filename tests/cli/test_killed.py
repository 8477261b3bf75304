"""kill -9 at any moment: a second start gives what an undisturbed run gives, and nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from endpoint_cases import every_file
from tiny_models import WORDS, texts

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    """A small collection with queries, judgements and a run."""
    folder = tmp_path_factory.mktemp("source")
    rng = np.random.default_rng(0)
    passages = [f"{text} {who} said" for text, who in zip(texts(60, 8, seed=1), ["she", "he", "it"] * 20, strict=True)]
    queries = [" ".join(rng.choice(WORDS, 3, replace=False)) for _ in range(12)]
    ranked = {query: rng.permutation(60)[:15] for query in range(12)}
    squad = {"id": "q", "question": "?", "answers": [{"text": passages[0][:4].strip(), "answer_start": 0}]}
    paragraphs = [{"doc_id": "0", "context": passages[0], "qas": [squad]}]
    lines = {
        "c.tsv": [f"{i}\t{text}" for i, text in enumerate(passages)],
        "q.tsv": [f"{i}\t{text}" for i, text in enumerate(queries)],
        "qrels": [f"{i} 0 {i} 1" for i in range(12)],
        "r.run": [f"{q} Q0 {d} 1 {-rank} t" for q, of in ranked.items() for rank, d in enumerate(of)],
        "a.json": [json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]})],
    }
    for name, of in lines.items():
        (folder / name).write_text("\n".join(of) + "\n", encoding="utf-8")
    return folder


INPUTS = "--collection c.tsv --queries q.tsv --qrels qrels"
COMMANDS = {
    "score": "score c.tsv --out s.parquet --quiet",
    "negatives": f"negatives r.run {INPUTS} --out n.jsonl --n 4 --share 0.5 --quiet",
    "rotate": "rotate c.tsv --out r.tsv --answers a.json --quiet",
    "variants": "variants c.tsv --kind swap --out v.tsv --quiet",
    "rebalance": "rebalance r.run --collection c.tsv --strength 0.5 --out o.run",
    "audit": f"audit r.run {INPUTS} --json a.out --report a.html --per-query a.csv",
}
QUICK = ("score", "negatives")
_SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in COMMANDS if name not in QUICK]


def outcomes(source, homes):
    """What was told of each command that was killed four times and run once more, in its folder of ``homes``."""
    given = [
        {"home": str(home), "source": str(source), "arguments": COMMANDS[name].split(), "moments": 4}
        for name, home in homes.items()
    ]
    program = [sys.executable, str(Path(__file__).parents[1] / "killed.py"), json.dumps(given)]
    done = subprocess.run(program, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"ended"')]
    return {name: (home, {**one, "err": done.stderr}) for (name, home), one in zip(homes.items(), told, strict=True)}


@pytest.fixture(scope="module")
def quick(source, tmp_path_factory):
    """The quick ones, forks of one process that has imported what they need."""
    return outcomes(source, {name: tmp_path_factory.mktemp(name) for name in QUICK})


@pytest.mark.parametrize("name", [*QUICK, *_SLOW])
def test_killed_and_started_again(source, tmp_path, request, name):
    home, told = (request.getfixturevalue("quick") if name in QUICK else outcomes(source, {name: tmp_path}))[name]
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


def dying(folder, stop, *arguments):
    command = [sys.executable, "-c", DYING, str(stop), *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_training_and_re_ranking_killed_at_drawn_moments(source, tmp_path, seed):
    pytest.importorskip("torch", reason="needs the extra [neural]")
    pytest.importorskip("gensim", reason="needs the extra [embeddings]")
    rng = np.random.default_rng(seed)
    rerank = ["rerank", "r.run", *INPUTS.split()[:4], "--model", "trained/model", "--batch-size=1", "--out=new.run"]
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
    whole, killed = (
        {str(path.relative_to(tmp_path / name)): content for path, content in every_file(tmp_path / name)}
        for name in ("whole", "killed")
    )
    assert killed.keys() == whole.keys()
    # The log and the trainer's own state tell of times, and of the start anew.
    same = [name for name in whole if name.endswith((".safetensors", ".run")) and "checkpoint-" not in name]
    assert {"new.run", "trained/validation.run", "trained/model/model.safetensors"} <= set(same)
    assert {name: killed[name] for name in same} == {name: whole[name] for name in same}
