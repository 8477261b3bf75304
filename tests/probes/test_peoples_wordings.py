"""Swaps beside what people wrote: the male and female wordings of Grep-BiasIR."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl

from evenrank.files.tokens import tokenize
from evenrank.groups import load_lexicon
from evenrank.probes.group_wording import POSSESSIVE, swapped

GENDER = load_lexicon("gender-en")
PRONOUNS = {word for pair in POSSESSIVE for word in pair if word not in ("them", "theirs")}
PAIRED = {tuple(tokenize(word)) for word, _ in GENDER.pairs}


def one_for_one(words: list[str], others: list[str]) -> bool:
    """Whether people exchanged words and did nothing else: each word always for one and the same other word, and the
    reverse (*her*, *his*, *him* and *hers* count as one), and none is left that has a counterpart."""
    if len(words) != len(others):
        return False
    pairs = {tuple("her" if word in PRONOUNS else word for word in pair) for pair in zip(words, others, strict=True)}
    kept = any(word == other and (word,) in PAIRED for word, other in zip(words, others, strict=True))
    return len(pairs) == len({first for first, _ in pairs}) == len({second for _, second in pairs}) and not kept


def test_swaps_are_what_people_wrote(shared_data: Path) -> None:
    """All pairs of a male and a female text that differ word for word: in the direction to *guy* people wrote less
    often what the swap writes, which is *boy*, as it should be of children."""
    folder = shared_data / "grepbiasir"
    texts = dict(line.split("\t", 1) for line in (folder / "collection.tsv").read_text().splitlines())
    wordings: dict[tuple[str, str], dict[str, str]] = {}
    with open(folder / "documents.csv", newline="") as file:
        for row in csv.DictReader(file):
            wordings.setdefault((row["query_id"], row["relevance"]), {})[row["content_gender"]] = row["doc_id"]
    pairs = [(of["M"], of["F"]) for of in wordings.values() if {"M", "F"} <= of.keys()]
    equal = {}
    for side in (0, 1):
        given = pl.Series([texts[pair[side]] for pair in pairs])
        swaps = map(tokenize, swapped(given, GENDER).texts)
        people = [tokenize(texts[pair[1 - side]]) for pair in pairs]
        known = zip(map(tokenize, given), swaps, people, strict=True)
        clean = [(swap, theirs) for words, swap, theirs in known if one_for_one(words, theirs)]
        equal[side] = sum(swap == theirs for swap, theirs in clean), len(clean)
    assert equal == {0: (181, 201), 1: (170, 201)}
