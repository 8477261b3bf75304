"""``evenrank index`` and ``evenrank retrieve INDEX``: what they write, what they say, what they refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]

HEAD = "bm25: BM25 (Lucene's form), k1 0.9, b 0.4, stop words english (33), stemmer english\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "c.tsv").write_text("d1\tThe cat sat\nd2\tCats and dogs, cat!\nd3\tA dog\n")
    (tmp_path / "q.tsv").write_text("q1\tdogs\nq2\tcat\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_index_gives_the_run_of_its_collection(folder: Path, evenrank: Command) -> None:
    made = evenrank("index", "c.tsv", "--out", "i", "--rm3")
    assert (made.status, made.out, made.err) == (0, "", "3 documents indexed: i\n")
    for more in ([], ["--rm3", "--fb-docs", "1"], ["--weighted", "--k", "1"], ["--k1", "0.9", "--stemmer", "english"]):
        for source in ("c.tsv", "i"):
            done = evenrank("retrieve", source, "q.tsv", *more, "--out", f"{source}.run")
            assert (done.status, done.out) == (0, "")
        assert (folder / "i.run").read_bytes() == (folder / "c.tsv.run").read_bytes()
    assert done.err == f"{HEAD}2 queries ranked: i.run\n"
    card = json.loads((folder / "i.run.card.json").read_text())
    assert [(entry["role"], entry["path"]) for entry in card["inputs"]] == [
        ("index", "i/index.json"),
        ("queries", "q.tsv"),
    ]
    index = card["made_by"]["index"]
    assert (index["kind"], index["path"], index["collection"]["path"]) == ("bm25", "i", "c.tsv")


def test_settings(folder: Path, evenrank: Command) -> None:
    own = ["--k1", "1.2", "--b", "0.7", "--stopwords", "none", "--stemmer", "none"]
    assert evenrank("index", "c.tsv", "--out", "i", *own).status == 0
    assert evenrank("retrieve", "i", "q.tsv", "--out", "i.run").status == 0
    assert evenrank("retrieve", "c.tsv", "q.tsv", *own, "--out", "c.run").status == 0
    assert (folder / "i.run").read_bytes() == (folder / "c.run").read_bytes()
    settings = json.loads((folder / "i" / "index.json").read_text())["settings"]
    assert (settings["k1"], settings["b"], settings["stopwords"], settings["stemmer"]) == (1.2, 0.7, None, None)


def test_refusals(folder: Path, evenrank: Command) -> None:
    assert evenrank("index", "c.tsv", "--out", "i").status == 0
    before = sorted(folder.rglob("*"))

    def refused(*arguments: str) -> str:
        done = evenrank(*arguments)
        assert (done.status, done.out, done.err.count("\n")) == (2, "", 1)
        assert sorted(folder.rglob("*")) == before
        return str(done.err).removeprefix("evenrank: ").rstrip("\n")

    search = ("retrieve", "i", "q.tsv", "--out", "r.run")
    assert refused(*search, "--k1", "1.2") == "--k1: the index i has 0.9, found 1.2; build another index"
    assert refused(*search, "--b", "1") == "--b: the index i has 0.4, found 1; build another index"
    assert (
        refused(*search, "--stemmer", "none") == "--stemmer: the index i has english, found none; build another index"
    )
    assert refused(*search, "--stopwords", "german") == (
        "--stopwords: the index i has english, found german; build another index"
    )
    assert refused(*search, "--rm3").startswith("--rm3: the index i does not keep each passage's words; build it again")
    assert refused(*search[:-1], "i/r.run") == "i/r.run: cannot be written: it lies in an input (i)"
    assert refused("index", "c.tsv", "--out", "i") == "i: is an index already; remove it, or choose another output"
    assert refused("index", "i", "--out", "j") == "i: is an index; expected a collection"
    assert refused("index", "c.tsv", "--out", "c.tsv") == "c.tsv: cannot be written: it is an input"
    assert refused("index", "c.tsv", "--out", ".") == ".: expected a new or an empty folder, but it contains files"
    assert refused("index", "c.tsv", "--out", "-").startswith("expected a file as output, found '-'")
    assert refused("index", "no.tsv", "--out", "j") == "no.tsv: no such file"
    assert refused("index", "c.tsv", "--out", "j", "--stemmer", "klingon").startswith("--stemmer: expected one of ")
    assert refused("index", "c.tsv", "--out", "j", "--device", "cpu").startswith("BM25 has no model: ")
    with_model = ("index", "c.tsv", "--out", "j", "--model", "m")
    assert refused(*with_model, "--k1", "3", "--stemmer", "none", "--rm3") == "--model: not with --k1"
    # The defaults, too, are refused if they are given.
    assert refused(*with_model, "--b", "0.4", "--stopwords", "english") == "--model: not with --b"
    for path in (folder / "i").glob("scores.npy"):
        path.write_bytes(b"")
    assert refused(*search) == "i: the index is damaged: scores.npy has 0 bytes, expected 148"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("sentence_transformers", reason="needs the extra [neural]")
    from dense_indexes import bi_encoder

    return bi_encoder(tmp_path_factory.mktemp("models") / "tiny")


BAD = {
    "a repeated id": (b"d1\tcat\nd1\tdog\n", "c.tsv, line 2: the id 'd1' appears twice (first in line 1)"),
    "empty": (b"", "c.tsv: the file is empty"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_for_a_model_leaves_nothing(folder: Path, evenrank: Command, model: Path, name: str) -> None:
    content, message = BAD[name]
    sound = (folder / "c.tsv").read_bytes()
    (folder / "c.tsv").write_bytes(content)
    command = ("index", "c.tsv", "--out", "i", "--model", str(model), "--quiet")
    done = evenrank(*command)
    assert (done.status, done.out, done.err) == (2, "", f"evenrank: {message}\n")
    assert sorted(os.listdir(folder)) == ["c.tsv", "q.tsv"]
    (folder / "c.tsv").write_bytes(sound)
    assert evenrank(*command).status == 0


def test_a_killed_build_is_started_again(folder: Path, evenrank: Command) -> None:
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
    assert (done.status, done.err) == (
        2, "evenrank: i: the index was not finished: run the command that builds it again\n",
    )  # fmt: skip
    assert evenrank("index", "c.tsv", "--out", "i").status == 0
    assert evenrank("index", "c.tsv", "--out", "j").status == 0
    i, j = ({file.name: file.read_bytes() for file in (folder / name).iterdir()} for name in "ij")
    assert i == j
