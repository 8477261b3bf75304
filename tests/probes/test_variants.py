"""Variants: the same bytes however they are made, in every form, and counts that a recount confirms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.files import EvenrankError, scan_collection
from evenrank.probes.variants import Varied, variants

PHRASES = [
    "Although she often met Ada, her mother did not.",
    "The nurse, Ada, said so to him.",
    "Then his uncle, a midwife, ran to Ghent.",
    "It rained in Ghent.",
]
TEXTS = {f"d{i}": " ".join(PHRASES[(i * step + step) % 4] for step in range(i % 5)) for i in range(1, 40)}
KINDS = ["swap", "rotate", "placebo name"]


def make(collection: object, kind: str, out: Path | None = None, **more: Any) -> Varied:
    kind, _, form = kind.partition(" ")
    return variants(collection, kind=kind, out=out, form=form or None, seed=3, **more)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    lines = "".join(f"{doc}\t{text}\n" for doc, text in TEXTS.items())
    (tmp_path / "c.tsv").write_text(lines, encoding="utf-8")
    return tmp_path


def read(path: Path) -> pl.DataFrame:
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_ndjson(path)


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_and_way_in_gives_the_same_rows(folder: Path, kind: str) -> None:
    in_memory = make(TEXTS, kind)
    table = in_memory.table
    assert table.columns == ["doc_id", "text", "edits"]
    assert table["doc_id"].to_list() == list(TEXTS)
    given = make(pl.DataFrame({"docno": list(TEXTS), "text": list(TEXTS.values())}), kind)
    assert given == in_memory
    assert given.table.equals(table)
    for form in ("jsonl", "parquet"):
        done = make(folder / "c.tsv", kind, folder / f"v.{form}")
        assert done == in_memory
        assert done.table is None
        assert read(folder / f"v.{form}").equals(table)
    make(folder / "c.tsv", kind, folder / "v.tsv")
    assert pl.concat(list(scan_collection(folder / "v.tsv"))).equals(table.select("doc_id", "text"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_manifest_says_what_a_recount_finds(folder: Path, kind: str) -> None:
    done = make(folder / "c.tsv", kind, folder / "v.jsonl")
    manifest = json.loads((folder / "v.jsonl.manifest.json").read_text())
    rows = read(folder / "v.jsonl").rows(named=True)
    assert [row["doc_id"] for row in rows] == list(TEXTS)
    differ = [row["text"] != TEXTS[row["doc_id"]] for row in rows]
    assert [row["edits"] > 0 for row in rows] == differ
    edits = [row["edits"] for row in rows]
    histogram = {str(n): edits.count(n) for n in range(10)} | {"10+": sum(n >= 10 for n in edits)}
    expected = {"documents": 39, "changed": sum(differ), "edits": sum(edits), "histogram": histogram}
    assert {name: manifest[name] for name in expected} == expected
    assert {name: value for name, value in manifest.items() if name not in ("evenrank", "provenance")} == done.to_dict()
    settings = {"swap": ("swap", None, None, "gender-en", None), "rotate": ("rotate", None, None, None, "sentence")}
    settings["placebo name"] = ("placebo", "swap", "name", "gender-en", None)
    assert tuple(manifest[key] for key in ("kind", "of", "form", "lexicon", "mode")) == settings[kind]


def test_an_error_half_way_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: Callable[[int], None]
) -> None:
    block_bytes(300)
    (folder / "c.tsv").write_text((folder / "c.tsv").read_text() + "no tab here\n")
    with pytest.raises(EvenrankError, match=r"c\.tsv, line 40: expected an id, a tab and a text"):
        make(folder / "c.tsv", "swap", folder / "v.tsv")
    assert [path.name for path in folder.iterdir()] == ["c.tsv"]


# --- what is refused, and printed -------------------------------------------------------------------------------------


@pytest.fixture
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("c.tsv").write_text("a\tShe ran. He did not.\nb\tIt rained.\n")
    Path("l.csv").write_text("word,group\nshe,f\nhe,m\n")
    Path("rain.tsv").write_text("b\tIt rained.\n")
    Path("lines.jsonl").write_text('{"id": "a", "text": "She ran.\\nHe did not."}\n')
    Path("tab.jsonl").write_text('{"id": "a\\tb", "text": "She ran."}\n')
    return tmp_path


CASES = [
    ("--kind swop", "--kind: expected swap, neutral, rotate or placebo, found 'swop'"),
    ("--kind placebo --of rotate", "--of: expected swap or neutral, found 'rotate'"),
    ("--kind placebo --form word", "--form: expected synonym, name, spacing or any, found 'word'"),
    ("--kind swap --form any", "--form needs --kind placebo"),
    ("--kind swap --of swap", "--of needs --kind placebo"),
    ("--kind swap --mode word", "--mode needs --kind rotate"),
    ("--kind rotate --mode letter", "--mode: expected word or sentence, found 'letter'"),
    ("--kind swap --lexicon l.csv", "--lexicon: l has no [pairs], the counterparts of its words"),
    ("--kind neutral --lexicon l.csv", "--lexicon: l has no [neutral], the neutral counterparts of its words"),
    ("--kind swap --lexicon none.toml", "--lexicon: no file and no built-in lexicon 'none.toml'"),
    ("--kind swap --out v.jsonl.gz", "v.jsonl.gz: expected a TSV, .jsonl or .parquet to write, found .gz"),
    ("--kind swap --out -", "expected a file as output, found '-'"),
    ("rain.tsv --kind swap", "no passage could be changed, so there is no variant"),
    ("lines.jsonl --kind swap --out v.tsv", "v.tsv: a TSV cannot hold the text of 'a', which has several lines: write"),
    ("tab.jsonl --kind swap --out v.tsv", "v.tsv: a TSV cannot hold the id 'a\\tb': write .jsonl or .parquet"),
]


@pytest.mark.parametrize(("options", "message"), CASES)
def test_a_mistake_is_one_line_and_writes_nothing(
    small: Path, evenrank: Callable[..., Any], options: str, message: str
) -> None:
    before = {path.name: path.read_bytes() for path in small.iterdir()}
    words = options.split()
    collection = [] if words[0].endswith(("tsv", "jsonl")) else ["c.tsv"]
    done = evenrank("variants", *collection, *words, *(() if "--out" in words else ("--out", "v.jsonl")))
    assert done.status == 2
    assert done.err.startswith(f"evenrank: {message}"), done.err
    assert done.err.count("\n") == 1
    assert done.out == ""
    assert {path.name: path.read_bytes() for path in small.iterdir()} == before


def test_what_is_printed(small: Path, evenrank: Callable[..., Any]) -> None:
    done = evenrank("variants", "c.tsv", "--kind", "swap", "--out", "v.tsv")
    assert (done.status, done.out) == (0, "")
    assert done.err == "2 documents: 1 changed (2 edits), 1 unchanged: v.tsv\n"
    assert Path("v.tsv").read_text() == "a\tHe ran. She did not.\nb\tIt rained.\n"
