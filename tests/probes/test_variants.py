"""Variants: the same bytes however they are made, in every form, and counts that a recount confirms."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from evenrank.files import EvenrankError, scan_collection
from evenrank.groups import load_lexicon
from evenrank.mitigation.rotation import rotate_texts
from evenrank.probes.group_wording import neutralised, swapped
from evenrank.probes.placebos import placebo_of_words
from evenrank.probes.variants import Varied, variants

PHRASES = [
    "Although she often met Ada, her mother did not.",
    "The nurse, Ada, said so to him.",
    "Then his uncle, a midwife, ran to Ghent.",
    "It rained in Ghent.",
]
TEXTS = {f"d{i}": " ".join(PHRASES[(i * step + step) % 4] for step in range(i % 5)) for i in range(1, 40)}
KINDS = ["swap", "neutral", "rotate", "placebo synonym", "placebo name", "placebo spacing", "placebo any"]


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


@pytest.mark.parametrize("kind", ["swap", "placebo any"])
def test_the_bytes_do_not_depend_on_cores_and_blocks(
    folder: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: Callable[[int], None], kind: str
) -> None:
    contents = set()
    for number, (size, cores) in enumerate(((1 << 24, 1), (1 << 24, 4), (300, 4), (1000, 1))):
        block_bytes(size)
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        make(folder / "c.tsv", kind, folder / f"{number}.jsonl")
        contents.add((folder / f"{number}.jsonl").read_bytes())
    assert len(contents) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_every_form_and_way_in_gives_the_same_rows(folder: Path, kind: str) -> None:
    in_memory = make(TEXTS, kind)
    table = in_memory.table
    assert table is not None
    assert table.columns == ["doc_id", "text", "edits"]
    assert table["doc_id"].to_list() == list(TEXTS)
    for given in (pl.DataFrame({"docno": list(TEXTS), "text": list(TEXTS.values())}), folder / "c.tsv"):
        other = make(given, kind)
        assert other == in_memory
        assert other.table is not None
        assert other.table.equals(table)
    for form in ("jsonl", "parquet"):
        done = make(folder / "c.tsv", kind, folder / f"v.{form}")
        assert done == in_memory
        assert done.table is None
        assert read(folder / f"v.{form}").equals(table)
    make(folder / "c.tsv", kind, folder / "v.tsv")
    assert pl.concat(list(scan_collection(folder / "v.tsv"))).equals(table.select("doc_id", "text"))
    edits = [line.split("\t") for line in (folder / "v.tsv.edits.tsv").read_text().splitlines()]
    assert edits == [[doc, str(count)] for doc, count in table.select("doc_id", "edits").iter_rows()]


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
    name, _, form = kind.partition(" ")
    of_words = None if name == "rotate" else "gender-en"
    settings = (name, "swap" if form else None, form or None, of_words, "sentence" if name == "rotate" else None, 3)
    assert tuple(manifest[key] for key in ("kind", "of", "form", "lexicon", "mode", "seed")) == settings
    roles = [file["role"] for file in manifest["provenance"]["files"]]
    assert roles == ["collection", "lexicon"] if of_words else ["collection"]


def test_the_edits_are_those_of_their_functions() -> None:
    lexicon = load_lexicon("gender-en")
    frame = pl.DataFrame({"doc_id": list(TEXTS), "text": list(TEXTS.values())})

    def texts(kind: str, **more: Any) -> list[str]:
        table = make(TEXTS, kind, **more).table
        assert table is not None
        return table["text"].to_list()

    swap = swapped(frame["text"], lexicon)
    assert texts("swap") == swap.texts.to_list()
    assert texts("neutral") == neutralised(frame["text"], lexicon).texts.to_list()
    assert texts("placebo synonym") == placebo_of_words(frame, swap.edits, lexicon, "synonym", 3, None).texts.to_list()
    assert texts("placebo") == texts("placebo any")
    assert texts("placebo") != texts("placebo synonym")
    assert texts("rotate") == rotate_texts(frame, 3, "sentence")[0].to_list()
    assert texts("rotate", mode="word") == rotate_texts(frame, 3, "word")[0].to_list()
    made = make({"d": "She met her mother, the midwife."}, "swap")
    assert made.to_dict()["left"] == {"total": 1, "words": {"midwife": 1}}
    assert made.notes == ("Left, as the lexicon has no counterpart: 1 group word (midwife 1).",)
    made = make({"d": "She ran."}, "neutral")
    assert (made.verbs_left, made.notes) == (
        1,
        ("1 verb after *they* stays as it is, which may not agree (*they is*).",),
    )


def test_a_passage_cut_before_its_first_word_is_unchanged() -> None:
    table = variants(
        {"a": "One  sentence only.", "b": "It is one. It is two. It is three."}, kind="rotate", seed=1
    ).table
    assert table is not None
    assert table.row(0) == ("a", "One  sentence only.", 0)
    assert table["edits"][1] == 1


def test_an_error_half_way_leaves_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: Callable[[int], None]
) -> None:
    block_bytes(300)
    (folder / "c.tsv").write_text((folder / "c.tsv").read_text() + "no tab here\n")
    with pytest.raises(EvenrankError, match=r"c\.tsv, line 40: expected an id, a tab and a text"):
        make(folder / "c.tsv", "swap", folder / "v.tsv")
    assert [path.name for path in folder.iterdir()] == ["c.tsv"]
