"""Texts in another language than the lexicon's: by hand, and real ones."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl

from evenrank.groups import load_lexicon
from evenrank.probes.group_wording import language_notes
from evenrank.probes.variants import variants

ENGLISH, GERMAN = load_lexicon("gender-en"), load_lexicon("gender-de")


def notes(*texts: list[str]) -> tuple[str, ...]:
    return language_notes([pl.DataFrame({"text": each}) for each in texts], ENGLISH)


def test_by_hand() -> None:
    note = "The texts hardly look English (9% of the words of the first documents are English stop words), but the "
    note += "lexicon gender-en is: its words may mean other things here."
    assert notes(["der " * 182], ["the " * 18]) == (note,)
    assert notes(["der " * 180 + "the " * 20]) == ()
    # Few words say nothing, and a thousand documents suffice.
    assert notes(["der " * 199]) == notes() == ()
    assert notes(["the"] * 999 + ["der"], ["der " * 10**6]) == ()
    assert language_notes([pl.DataFrame({"text": ["she " * 300]})], GERMAN) == ()


def test_variants_have_the_note() -> None:
    german = {"d": "Nun fragt man sie. " * 60}
    for kind in ("swap", "neutral"):
        assert [note for note in variants(german, kind=kind).notes if "hardly look English" in note]
    assert not [note for note in variants(german, kind="rotate").notes if "English" in note]
    assert variants({"d": "She told him that he was in the house. " * 60}, kind="swap").notes == ()


def test_real_texts(shared_data: Path) -> None:
    def squad(name: str) -> list[str]:
        data = json.loads((shared_data / "xquad" / f"xquad.{name}.json").read_text())["data"]
        return [paragraph["context"] for article in data for paragraph in article["paragraphs"]]

    assert notes(squad("de"))
    assert notes(squad("es"))
    assert not notes(squad("en"))
    lines = (shared_data / "grepbiasir" / "collection.tsv").read_text().splitlines()
    assert not notes([line.partition("\t")[2] for line in lines])
    assert not notes(pl.read_ndjson(shared_data / "nq_utd" / "human.jsonl")["text"].to_list())
