"""How results say they were made: command, time, versions, and the files with their digests."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank.files import EvenrankError, Provenance
from evenrank.files.squad_collection import squad_collection
from evenrank.search.embeddings import Vectors, write_vectors
from page_parts import section as part_of
from small_reports import small_experiment

Command = Callable[..., Any]
RUN = "0 Q0 a 1 3 x\n0 Q0 b 2 2 x\n0 Q0 c 3 1 x\n1 Q0 b 1 3 x\n1 Q0 c 2 2 x\n1 Q0 a 3 1 x\n"
OTHER = "0 Q0 c 1 3 y\n0 Q0 b 2 2 y\n0 Q0 a 3 1 y\n1 Q0 c 1 3 y\n1 Q0 b 2 2 y\n1 Q0 a 3 1 y\n"
ANSWERED = [
    ("q1", "the sea is calm and wide", "what is calm", "sea", 4),
    ("q2", "a stone bridge stands over it", "what stands", "bridge", 8),
]
PARAGRAPHS = [
    {"context": text, "qas": [{"id": i, "question": q, "answers": [{"text": answer, "answer_start": start}]}]}
    for i, text, q, answer, start in ANSWERED
]
FILES = {
    "c.tsv": "a\the and his father\nb\tshe and her mother\nc\ta stone bridge\n",
    "one & two.run": RUN,
    "two.run": OTHER,
    "q.tsv": "0\twho met\n1\twhat is built\n",
    "qrels": "0 0 a 1\n1 0 c 1\n",
    "own.csv": "he,m\nshe,f\nhis,m\nher,f\n",
    "squad.json": json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": PARAGRAPHS}]}),
    "d.json": '[["she", "he"]]',
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    sides = {"she": 3.0, "he": -3.0, "woman": 2.5, "man": -2.0}
    sides |= {f"{x}{a}{b}": side for x, side in (("x", 2.0), ("y", -2.0)) for a in "abcd" for b in "abcdefghij"}
    matrix = np.random.default_rng(0).normal(size=(len(sides), 8)).astype(np.float32)
    matrix[:, 0] = list(sides.values())
    write_vectors(Vectors(tuple(sides), matrix), tmp_path / "v.txt")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sha(path: str | Path) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def provenance(path: str) -> dict[str, Any]:
    found = json.loads(Path(path).read_text(encoding="utf-8"))["provenance"]
    assert list(found) == ["command", "date", "versions", "platform", "files"]
    assert found["date"] == "2023-11-14T22:13:20Z"
    assert found["platform"] == platform.platform()
    assert found["versions"]["evenrank"] == evenrank.__version__
    assert found["versions"]["python"] == platform.python_version()
    assert found["versions"]["polars"] == pl.__version__
    return found


def assert_files(found: dict[str, Any], expected: dict[str, str], *, extra: tuple[str, ...] = ()) -> None:
    """By role the path: each with its digest and size."""
    by_role = {file["role"]: file for file in found["files"]}
    assert set(by_role) == {*expected, *extra}
    for role, path in expected.items():
        entry = {"role": role, "path": path, "bytes": os.path.getsize(path), "sha256": sha(path)}
        assert by_role[role] == entry


# --- what each command writes ----------------------------------------------------------------------------------------

RUNS = {"run one": "one & two.run", "run two": "two.run"}
TEXTS = {"collection": "c.tsv", "qrels": "qrels"}
DEMO = {"run BM25": "d/bm25.run", "collection": "d/collection.tsv", "queries": "d/queries.test.tsv"}
BUILT_IN = {"role": "lexicon", "path": "gender-en", "note": "built in"}
COMMANDS: dict[str, tuple[str, dict[str, str]]] = {
    "audit 'one=one & two.run' two.run --collection c.tsv --qrels qrels --queries q.tsv --lexicon own.csv"
    " --json a.json --report r.html": ("a.json", {**RUNS, **TEXTS, "queries": "q.tsv", "lexicon": "own.csv"}),
    "audit two.run --collection c.tsv --json a.json": ("a.json", {"run two": "two.run", "collection": "c.tsv"}),
    "position answers squad.json --json a.json --report r.html": ("a.json", {"answers": "squad.json"}),
    "embeddings audit v.txt --definitional d.json --most 20 --train 10 --splits 2 --json a.json --report r.html": (
        "a.json",
        {"vectors": "v.txt", "definitional": "d.json"},
    ),
    "embeddings debias v.txt --out v2.txt --definitional d.json --json a.json": (
        "a.json",
        {"vectors": "v.txt", "definitional": "d.json"},
    ),
    "fuse 'one=one & two.run' two.run --tune RR --qrels qrels --folds 2 --out three.run --json a.json": (
        "a.json",
        {**RUNS, "qrels": "qrels"},
    ),
    "negatives two.run --collection c.tsv --qrels qrels --n 1 --quiet --out n.jsonl": (
        "n.jsonl.manifest.json",
        {"run": "two.run", **TEXTS},
    ),
    "rotate c.tsv --out r.tsv --seed 1 --quiet": ("r.tsv.manifest.json", {"collection": "c.tsv"}),
    "demo --out d --passages 200 --model none --quiet": ("d/audit.json", {**DEMO, "qrels": "d/qrels.txt"}),
}


@pytest.mark.parametrize("line", COMMANDS)
def test_commands(folder: Path, evenrank: Command, line: str) -> None:
    written, expected = COMMANDS[line]
    ended = evenrank(*shlex.split(line))
    assert ended.status == 0, ended.err
    made = provenance(written)
    assert made["command"] == f"evenrank {line}"
    # What was typed is forgotten after the command.
    assert Provenance("a function").command == "a function"
    built_in = BUILT_IN in made["files"]
    assert built_in == ("collection" in expected and "lexicon" not in expected and not line.startswith("rotate"))
    assert_files(made, expected, extra=("lexicon",) if built_in else ())
    if "--report" in line:
        section = part_of(Path("r.html").read_text(encoding="utf-8"), "provenance")
        assert all(sha(path) in section for path in expected.values())
        # The texts are escaped.
        assert "one & two.run" not in section
        assert ("&#39;one=one &amp; two.run&#39;" in section) == ("run one" in expected)
    if not line.startswith("demo"):
        # Made again at the same time: the same bytes.
        first = {path: Path(path).read_bytes() for path in (written, "r.html") if Path(path).exists()}
        assert evenrank(*shlex.split(line)).status == 0
        assert {path: Path(path).read_bytes() for path in first} == first


def test_an_audit_of_scores_with_a_background(folder: Path, evenrank: Command) -> None:
    assert evenrank("score", "c.tsv", "--out", "s.parquet").status == 0
    arguments = ["audit", "two.run", "--scores", "s.parquet", "--background", "one & two.run", "--json", "a.json"]
    assert evenrank(*arguments).status == 0
    assert_files(provenance("a.json"), {"run two": "two.run", "scores": "s.parquet", "background": "one & two.run"})


def test_position_sensitivity(folder: Path) -> None:
    ids = squad_collection(["squad.json"], shares=(1, 0, 0)).collection["doc_id"]
    lines = [f"{query} Q0 {doc} 1 {score} x\n" for query in ("q1", "q2") for score, doc in enumerate(ids)]
    (folder / "s.run").write_text("".join(lines), encoding="utf-8")
    result = evenrank.position_sensitivity(
        lambda query, passages: [float(len(passage)) for passage in passages], squad="squad.json", run="s.run"
    )
    Path("a.json").write_text(result.to_json(), encoding="utf-8")
    result.report("r.html")
    assert_files(provenance("a.json"), {"squad": "squad.json", "run": "s.run"}, extra=("model",))
    assert sha("s.run") in Path("r.html").read_text(encoding="utf-8")


def test_an_experiment(folder: Path) -> None:
    from evenrank.papers import _inputs, _sources
    from evenrank.papers.checks import need_file, need_irds, need_package

    (folder / "seed-0").mkdir()
    Path("seed-0/dev.run").write_text(RUN, encoding="utf-8")
    Path("settings.json").write_text("{}", encoding="utf-8")
    Path("mine.vec").write_text("a 1", encoding="utf-8")
    needs = [
        need_irds("msmarco-passage", "passages"),
        need_file("mine.vec", "word vectors", "vectors"),
        need_package("json", "json", "reading"),
    ]
    made = _sources(_inputs(Provenance("evenrank.papers.run_experiment"), needs), folder)
    replace(small_experiment(), provenance=made).write(folder)
    public, vectors, settings, files = provenance("results.json")["files"]
    assert (settings["role"], settings["sha256"]) == ("settings", sha("settings.json"))
    assert public == {"role": "passages", "path": "irds:msmarco-passage", "note": "ir_datasets, by name"}
    assert (vectors["role"], vectors["path"], vectors["sha256"]) == ("word vectors", "mine.vec", sha("mine.vec"))
    names = ["c.tsv", "one & two.run", "q.tsv", "seed-0/dev.run", "two.run"]
    lines = "".join(f"{sha(name)}  {name}\n" for name in names)
    assert (files["files"], files["sha256"]) == (5, hashlib.sha256(lines.encode()).hexdigest())
    assert files["sha256"] in Path("report.html").read_text(encoding="utf-8")


# --- from Python -----------------------------------------------------------------------------------------------------


def test_a_function_names_itself_and_what_is_in_memory(folder: Path) -> None:
    texts = pl.DataFrame({"doc_id": ["a", "b", "c"], "text": ["he", "she", "it"]})
    run = evenrank.read_run("two.run")
    found = evenrank.audit({"mine": run}, collection=texts, lexicon=evenrank.load_lexicon("own.csv"))
    made = json.loads(found.to_json())["provenance"]
    assert made["command"] == "evenrank.audit"
    assert made["files"] == [
        {"role": "run mine", "path": None, "rows": 6, "note": "in memory"},
        {"role": "collection", "path": None, "rows": 3, "note": "in memory"},
        {"role": "lexicon", "path": None, "rows": 4, "note": "in memory"},
    ]
    # Nothing of the environment but what has to be known.
    assert os.environ["PATH"] not in found.to_json()


def test_a_file_that_changed_meanwhile_is_said_to_have(folder: Path) -> None:
    found = evenrank.audit(["two.run"], collection="c.tsv")
    size = os.path.getsize("c.tsv")
    with open("c.tsv", "a", encoding="utf-8") as file:
        file.write("d\tmore\n")
    made = json.loads(found.to_json())["provenance"]["files"]
    assert made[1] == {"role": "collection", "path": "c.tsv", "bytes": size, "sha256": None, "changed": True}
    assert made[0]["sha256"] == sha("two.run")
    # Of the same size, but written anew.
    made_of = Provenance("f").add("run", "two.run").ahead(True)
    made_of._worker.join()  # type: ignore[union-attr]
    os.utime("two.run", ns=(0, 0))
    assert made_of.to_dict()["files"][0]["changed"] is True


def test_what_has_no_digest(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo("pipe")
    made = Provenance("f").add("run", "pipe").add("collection", "/dev/stdin").add("queries", "irds:nowhere/at/all")
    made.add("qrels", "s3://bucket/qrels").add("scores", "lacking").add("none", None).add_model("model", "owner/name")
    assert [(file["role"], file["note"], file.get("sha256")) for file in made.to_dict()["files"]] == [
        ("run", "a pipe, not digested", None),
        ("collection", "a stream, not digested", None),
        ("queries", "ir_datasets, by name", None),
        ("qrels", "an address, not digested", None),
        ("scores", "not found", None),
        ("model", "on the hub, by name", None),
    ]
    # The commit of a model on the hub.
    refs = folder / "hub" / "models--owner--name" / "refs"
    refs.mkdir(parents=True)
    (refs / "main").write_text("0123abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(folder / "hub"))
    (entry,) = Provenance("f").add_model("model", "owner/name").to_dict()["files"]
    assert entry == {"role": "model", "path": "owner/name", "commit": "0123abc", "note": "on the hub, by name"}


def test_folders(folder: Path) -> None:
    (folder / "parts" / "deep").mkdir(parents=True)
    for name in ("b.tsv", "a.tsv", "deep/c", ".hidden", "x.manifest.json"):
        (folder / "parts" / name).write_text(name, encoding="utf-8")

    def digest(*names: str) -> str:
        lines = "".join(f"{sha(folder / 'parts' / name)}  {name}\n" for name in names)
        return hashlib.sha256(lines.encode()).hexdigest()

    read, whole, pattern = (
        Provenance("f").add("c", "parts").add("m", "parts", tree=True).add("p", "parts/*.tsv").to_dict()["files"]
    )
    assert read == {"role": "c", "path": "parts", "files": 2, "bytes": 10, "sha256": digest("a.tsv", "b.tsv")}
    assert (whole["files"], whole["sha256"]) == (4, digest("a.tsv", "b.tsv", "deep/c", "x.manifest.json"))
    assert (pattern["files"], pattern["sha256"]) == (2, digest("a.tsv", "b.tsv"))


def test_the_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH")
    made = Provenance("f")
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", made.date)
    assert made.date >= "2026"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "soon")
    with pytest.raises(EvenrankError, match="SOURCE_DATE_EPOCH: expected a number of seconds, found 'soon'"):
        Provenance("f")
