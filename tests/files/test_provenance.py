"""How results and runs say they were made: command, time, versions, and the files with their digests."""

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

import polars as pl
import pytest
from syrupy.assertion import SnapshotAssertion

import evenrank
from evenrank.files import EvenrankError, Provenance, Run, read_run, write_run
from evenrank.files.provenance import card_path, made_by_text, ranker_note, write_card
from page_parts import section as part_of
from small_reports import small_experiment

Command = Callable[..., Any]
RUN = "0 Q0 a 1 3 x\n0 Q0 b 2 2 x\n0 Q0 c 3 1 x\n1 Q0 b 1 3 x\n1 Q0 c 2 2 x\n1 Q0 a 3 1 x\n"
OTHER = "0 Q0 c 1 3 y\n0 Q0 b 2 2 y\n0 Q0 a 3 1 y\n1 Q0 c 1 3 y\n1 Q0 b 2 2 y\n1 Q0 a 3 1 y\n"
FILES = {
    "c.tsv": "a\the and his father\nb\tshe and her mother\nc\ta stone bridge\n",
    "one & two.run": RUN,
    "two.run": OTHER,
    "q.tsv": "0\twho met\n1\twhat is built\n",
    "qrels": "0 0 a 1\n1 0 c 1\n",
    "own.csv": "he,m\nshe,f\nhis,m\nher,f\n",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
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
BUILT_IN = {"role": "lexicon", "path": "gender-en", "note": "built in"}
COMMANDS: dict[str, tuple[str, dict[str, str]]] = {
    "audit 'one=one & two.run' two.run --collection c.tsv --qrels qrels --queries q.tsv --lexicon own.csv"
    " --json a.json --report r.html": ("a.json", {**RUNS, **TEXTS, "queries": "q.tsv", "lexicon": "own.csv"}),
    "fuse 'one=one & two.run' two.run --tune RR --qrels qrels --folds 2 --out three.run --json a.json": (
        "a.json",
        {**RUNS, "qrels": "qrels"},
    ),
    "negatives two.run --collection c.tsv --qrels qrels --n 1 --quiet --out n.jsonl": (
        "n.jsonl.manifest.json",
        {"run": "two.run", **TEXTS},
    ),
    "rotate c.tsv --out r.tsv --seed 1 --quiet": ("r.tsv.manifest.json", {"collection": "c.tsv"}),
}


@pytest.mark.parametrize("line", COMMANDS, ids=[" ".join(line.split()[:2]) for line in COMMANDS])
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
    # Made again at the same time: the same bytes.
    first = {path: Path(path).read_bytes() for path in (written, "r.html") if Path(path).exists()}
    assert evenrank(*shlex.split(line)).status == 0
    assert {path: Path(path).read_bytes() for path in first} == first


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


# --- cards beside runs ------------------------------------------------------------------------------------------------

CARDED = Run.from_table({"q1": {"d1": 2.0, "d2": 1.0}, "q2": {"d2": 1.0}}, "a")
MADE = {"stage": "rerank", "ranker": {"kind": "bi-encoder", "model": "MiniLM"}, "depth": 100}


def carded(folder: Path) -> Path:
    path = folder / "a.run"
    write_run(CARDED, path)
    write_card(MADE, path, Provenance("f").add("queries", {"q1": "x"}))
    return path


def test_a_run_without_a_card_is_not_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.run"
    write_run(CARDED, path)
    monkeypatch.setattr("evenrank.files.provenance.file_digest", lambda _: pytest.fail("hashed"))
    assert read_run(path).card is None
    # Nor one whose card is of a file of another size.
    Path(f"{path}.card.json").write_text(json.dumps({"made_by": MADE, "run_bytes": 1, "run_sha256": "0" * 64}))
    assert read_run(path).card is None


def test_a_card_of_another_run_is_ignored_with_a_note(tmp_path: Path) -> None:
    path = carded(tmp_path)
    # Of the same size.
    path.write_text(path.read_text().replace("d1", "d3"))
    assert read_run(path).card is None
    for name in (None, "B"):
        note = f"{name or 'a.run'}: its card a.run.card.json is of another run and was ignored"
        assert read_run(path, name=name).notes == (note,)


NOT_MADE = [b'{"made_by": 3}', b'{"made_by": {"stage": 1}, "run_bytes": 0}', b" " * (1 << 22) + b"{}"]


@pytest.mark.parametrize("damage", [b"\xff\xfe", b"[" * 100_000, b"[]", *NOT_MADE], ids=len)
def test_a_damaged_card_is_ignored_with_a_note(tmp_path: Path, damage: bytes) -> None:
    path = carded(tmp_path)
    Path(f"{path}.card.json").write_bytes(damage)
    run = read_run(path)
    assert run.card is None
    assert run.notes == ("a.run: its card a.run.card.json is damaged and was ignored",)


def test_what_is_no_local_file_has_no_card(tmp_path: Path) -> None:
    assert card_path(None) is None
    assert card_path("/dev/stdout") is None
    assert card_path("memory://a.run") is None
    assert card_path(tmp_path / "a.run") == str(tmp_path / "a.run.card.json")
    write_card(MADE, "/dev/null", Provenance("f"))


def test_made_by_in_words(snapshot: SnapshotAssertion) -> None:
    ranker = {"kind": "bi-encoder", "model": "MiniLM", "precision": "float32", "reads": 256, "document_prompt": None}
    ranker |= {"query_prompt": "query: "}
    endpoint = {"kind": "endpoint", "model": None, "api": "tei", "url": "http://127.0.0.1:8080/rerank"}
    named = {**endpoint, "model": "org/m", "query_prompt": "q: "}
    reranked = {"stage": "rerank", "ranker": ranker}
    weighted = {"stage": "retrieve", "index": {"kind": "bm25", "settings": {"weighted": True}}}
    of_index = {**ranker, "kind": "dense", "query_prompt": "INDEXQ: ", "document_prompt": "D: "}
    encoder = {**ranker, "query_prompt": "SEARCHQ: "}
    dense = {"stage": "retrieve", "index": {"kind": "dense", "model": of_index}, "query_encoder": encoder}
    cards: list[dict[str, object]] = [
        {**reranked, "truncated": {"cut": 12, "of": 702, "unit": "passage"}},
        {**reranked, "truncated": {"cut": 0, "of": 702}},
        {"stage": "rerank", "ranker": endpoint},
        {"stage": "?"},
        {"stage": "retrieve", "index": {"kind": "bm25", "settings": {"k1": 0.9, "rm3": False, "more": {"x": 1}}}},
        {**weighted, "rm3": {"fb_docs": 5, "fb_terms": 20}},
        {**weighted, "rm3": None},
        dense,
        # A prompt of the index that the search did not have.
        {**dense, "query_encoder": {**encoder, "query_prompt": None}},
        {**dense, "query_encoder": {**encoder, "precision": "bfloat16"}},
        {**dense, "index": {"kind": ["x\n"]}, "query_encoder": 3},
        {"stage": "rerank", "ranker": {"kind": ["x\n"] * 1000, "model": "a\x1b[31m"}},
    ]
    texts = [made_by_text(card) for card in cards]
    assert texts == snapshot
    assert all(text.isprintable() and len(text) < 200 for text in texts)
    rankers = {"127.0.0.1": endpoint, "m": named, "MiniLM": ranker, "f": {"kind": "function", "model": "f"}}
    rankers["knrm"] = {"kind": "knrm", "model": "knrm", "precision": "float32"}
    assert [ranker_note(name, of) for name, of in rankers.items()] == snapshot


def test_commands_write_cards_and_never_over_an_input(
    tmp_path: Path, evenrank: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("c.tsv").write_text("d1\tred fox\nd2\tblue fox\n")
    Path("q.tsv").write_text("q1\tfox\n")
    assert evenrank("retrieve", "c.tsv", "q.tsv", "--out", "a.run", "--quiet").status == 0
    card = read_run("a.run").card
    assert card is not None
    assert [entry["path"] for entry in card["inputs"]] == ["c.tsv", "q.tsv"]  # type: ignore[index]
    assert str(card["command"]).endswith("--out a.run --quiet")
    Path("b.run.card.json").write_text("q1\tfox\n")
    ended = evenrank("retrieve", "c.tsv", "b.run.card.json", "--out", "b.run", "--quiet")
    assert ended.status == 2
    assert ended.err == "evenrank: b.run.card.json: cannot be written: it is an input\n"
    assert not Path("b.run").exists()
