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


def test_a_run_and_its_notes(folder, evenrank):
    ended = evenrank("retrieve", "c.tsv", "the.tsv", "--out", "bm25.run")
    rows = [line.split(" ") for line in (folder / "bm25.run").read_text().splitlines()]
    assert [[*row[:4], row[5]] for row in rows] == [["q1", "Q0", "d3", "1", "bm25"], ["q1", "Q0", "d2", "2", "bm25"]]
    # ln 1.6 · 1 / (1 + 0.9 (0.6 + 0.4 · |d| / 2)), |d| = 1 and 3
    assert [float(row[4]) for row in rows] == pytest.approx([0.4700036 / 1.72, 0.4700036 / 2.08], rel=1e-6)
    notes = f"{HEAD}bm25: 1 query has no word left after stop words and no documents\n1 query ranked: bm25.run\n"
    assert (ended.status, ended.out, ended.err) == (0, "", notes)
    options = ["--k", "1", "--k1", "0", "--b", "0.5", "--stopwords", "none", "--stemmer", "none"]
    ended = evenrank("retrieve", "c.tsv", "the.tsv", "--out", "bm25.run", *options)
    # Without stems only d2 says "dogs"; without stop words only d1 says "the"; k1 = 0 leaves the idf.
    rows = [line.split(" ") for line in (folder / "bm25.run").read_text().splitlines()]
    assert [(row[0], row[2]) for row in rows] == [("q1", "d2"), ("q2", "d1")]
    assert [float(row[4]) for row in rows] == pytest.approx([0.9808293] * 2, rel=1e-6)
    made = "bm25: BM25 (Lucene's form), k1 0, b 0.5, no stop words, no stemmer\n"
    assert (ended.status, ended.err) == (0, f"{made}2 queries ranked: bm25.run\n")
    # Standard output names no file.
    ended = evenrank("retrieve", "c.tsv", "the.tsv", "--out", "-", *options)
    assert (ended.status, ended.err) == (0, made)


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
    own = ["--k1", "1.2", "--b", "0.7", "--stopwords", "none", "--stemmer", "none"]
    assert evenrank("index", "c.tsv", "--out", "own", *own).status == 0
    assert evenrank("retrieve", "own", "q.tsv", "--out", "i.run").status == 0
    assert evenrank("retrieve", "c.tsv", "q.tsv", *own, "--out", "c.run").status == 0
    assert (folder / "i.run").read_bytes() == (folder / "c.run").read_bytes()
    settings = json.loads((folder / "own" / "index.json").read_text())["settings"]
    assert (settings["k1"], settings["b"], settings["stopwords"], settings["stemmer"]) == (1.2, 0.7, None, None)


def test_bad_input_for_a_model_leaves_nothing(folder, evenrank, tmp_path_factory):
    pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
    from dense_indexes import bi_encoder

    model = bi_encoder(tmp_path_factory.mktemp("models") / "tiny")
    command = ("index", "c.tsv", "--out", "i", "--model", str(model), "--quiet")
    sound, before = (folder / "c.tsv").read_bytes(), sorted(os.listdir(folder))
    for content, message in (
        (b"d1\tcat\nd1\tdog\n", "c.tsv, line 2: the id 'd1' appears twice (first in line 1)"),
        (b"", "c.tsv: the file is empty"),
    ):
        (folder / "c.tsv").write_bytes(content)
        done = evenrank(*command)
        assert (done.status, done.out, done.err) == (2, "", f"evenrank: {message}\n")
        assert sorted(os.listdir(folder)) == before
    (folder / "c.tsv").write_bytes(sound)
    assert evenrank(*command).status == 0


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
