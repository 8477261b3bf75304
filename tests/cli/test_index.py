"""``evenrank index`` and ``evenrank retrieve``: what they write and what they say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import pytest

HEAD = "bm25: BM25 (Lucene's form), k1 0.9, b 0.4, stop words english (33), stemmer english\n"


@pytest.fixture
def folder(given):
    texts = "d1\tThe cat sat\nd2\tCats and dogs, cat!\nd3\tA dog\n"
    return given({"c.tsv": texts, "q.tsv": "q1\tdogs\nq2\tcat\n", "the.tsv": "q1\tdogs\nq2\tthe\n"})


def test_an_index_gives_the_run_of_its_collection(folder, evenrank):
    made = evenrank("index", "c.tsv", "--out", "i", "--rm3")
    assert (made.status, made.out, made.err) == (0, "", "3 documents indexed: i\n")
    for more in ([], ["--rm3", "--fb-docs", "1"], ["--weighted", "--k", "1"], ["--k1", "0.9", "--stemmer", "english"]):
        for source in ("c.tsv", "i"):
            done = evenrank("retrieve", source, "q.tsv", *more, "--out", f"{source}.run")
            assert (done.status, done.out) == (0, "")
        assert (folder / "i.run").read_bytes() == (folder / "c.tsv.run").read_bytes()
    assert done.err == f"{HEAD}2 queries ranked: i.run\n"
    card = json.loads((folder / "i.run.card.json").read_text())
    inputs = [("index", "i/index.json"), ("queries", "q.tsv")]
    assert [(entry["role"], entry["path"]) for entry in card["inputs"]] == inputs
    index = card["made_by"]["index"]
    assert (index["kind"], index["path"], index["collection"]["path"]) == ("bm25", "i", "c.tsv")
    # Of its own settings.
    own = ["--k1", "1.2", "--b", "0.7", "--stopwords", "none", "--stemmer", "none"]
    assert evenrank("index", "c.tsv", "--out", "own", *own).status == 0
    assert evenrank("retrieve", "own", "q.tsv", "--out", "i.run").status == 0
    assert evenrank("retrieve", "c.tsv", "q.tsv", *own, "--out", "c.run").status == 0
    assert (folder / "i.run").read_bytes() == (folder / "c.run").read_bytes()


def test_a_killed_build_is_started_again(folder, evenrank):
    """Killed where it scores the postings, with all else written."""
    program = (
        "import os, signal, sys\n"
        "from evenrank.search.bm25 import Counts\n"
        "Counts.scored = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from evenrank.cli import main\n"
        "main()\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, "index", "c.tsv", "--out", "i"], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert {"counts.part", "turn.npy", "_unfinished.json"} < {*os.listdir("i")}
    done = evenrank("retrieve", "i", "q.tsv", "--out", "r.run")
    said = "evenrank: i: the index was not finished: run the command that builds it again\n"
    assert (done.status, done.err) == (2, said)
    for name in "ij":
        assert evenrank("index", "c.tsv", "--out", name).status == 0
    i, j = ({file.name: file.read_bytes() for file in (folder / name).iterdir()} for name in "ij")
    assert i == j
