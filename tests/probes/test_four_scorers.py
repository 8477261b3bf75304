"""Four rankers that know one thing each, and three kinds of variants: each moves where it should, and nowhere else."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence

import numpy as np
import polars as pl
import pytest

from evenrank import probe, variants
from evenrank.models.scorers import FunctionScorer
from evenrank.probes.variants import KINDS, WITH_PLACEBO

QUERIES, OTHERS = 60, 5
MOVED = {"length": set(), "position": {"rotate"}, "overlap": set(), "group": {"swap", "neutral"}}
"""Which kinds are to move which ranker."""
SIDES = (("she", "her"), ("he", "his"))


def words(rng: np.random.Generator, count: int) -> list[str]:
    """Words that mean nothing, of four letters after an initial that is not theirs."""
    return ["x" + "".join(rng.choice(list("bdfklmnprt"), 4)) for _ in range(count)]


def sentence(parts: list[str]) -> str:
    line = " ".join(parts)
    return f"{line[0].upper()}{line[1:]}."


class Collection:
    """Sixty lists: a passage of nine sentences with the answer's as its third, and five others.

    Only the others have words of the query or of a group, in a sentence of 20 words after one of 10 that they all
    share.
    """

    def __init__(self) -> None:
        rng = np.random.default_rng(18)
        self.texts: dict[str, str] = {}
        self.queries: dict[str, str] = {}
        self.lists: dict[str, dict[str, float]] = {}
        first = sentence(words(rng, 10))
        for query in range(QUERIES):
            asked = [f"q{query}{letter}" for letter in "abc"]
            self.queries[f"q{query}"] = "Which " + " ".join(asked)
            sentences = [sentence(words(rng, 9)) for _ in range(8)]
            answer = sentence([*words(rng, 5), f"answer{query}", *words(rng, 3)])
            self.texts[f"a{query}"] = " ".join([*sentences[:2], answer, *sentences[2:]])
            for other in range(OTHERS):
                subject, own = SIDES[(query + other) % 2]
                known = asked[: other % 3]
                rest = words(rng, 10 - len(known))
                parts = [*rest[:3], "but", subject, *known, *rest[3:], "perhaps", "and", own, f"mark{query}of{other}"]
                parts += words(rng, 20 - len(parts))
                self.texts[f"d{query}of{other}"] = f"{first} {sentence(parts)}"
            self.lists[f"q{query}"] = {f"a{query}": 9.0} | {f"d{query}of{o}": 8.0 - o for o in range(OTHERS)}


def noise(*texts: str) -> float:
    """Normal noise that depends on texts alone."""
    return random.Random("\t".join(texts)).gauss()


def length(query: str, text: str) -> float:
    return len(text.split()) / 20


def position(query: str, text: str) -> float:
    """Prefers the answer within the first tenth of the words before it, and then up to four tenths.

    A text without the answer counts as the passages do.
    """
    number = query.split()[1][1:-1]
    sentences = re.split(r"(?<=\.) ", text)
    place = next((at for at, one in enumerate(sentences) if f"answer{number} " in one), None)
    if place is None:
        return 1.0
    before = len(" ".join(sentences[:place]).split()) / len(text.split())
    return 2.0 if before < 0.1 else 1.0 if before < 0.4 else -1.0


def overlap(query: str, text: str) -> float:
    found = set(re.findall(r"\w+", text.lower()))
    return sum(word in found for word in query.lower().split()[1:])


def group(query: str, text: str) -> float:
    """Averse to women."""
    return -sum(word in ("she", "her", "hers") for word in re.findall(r"\w+", text.lower()))


class OfWords(FunctionScorer):
    """Whose tokens are words: what is in their letters is nothing to it."""

    def tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]


def ranker(name: str) -> OfWords:
    """Scores by what it knows, by a mark that no variant touches, and by a little noise of the whole text."""
    knows = {"length": length, "position": position, "overlap": overlap, "group": group}[name]

    def scores(query: str, passages: list[str]) -> list[float]:
        marks = (re.search(r"mark\w+", text) for text in passages)
        return [
            knows(query, text) + (0.5 * noise(query, mark[0]) if mark else 0.0) + 0.1 * noise(name, query, text)
            for text, mark in zip(passages, marks, strict=True)
        ]

    return OfWords(scores, name)


@pytest.fixture(scope="module")
def made() -> tuple[Collection, dict[str, pl.DataFrame], dict[str, pl.DataFrame]]:
    """The collection, its variants and their placebos."""
    given = Collection()
    tables = {kind: variants(given.texts, kind=kind).table for kind in KINDS}
    placebos = {kind: variants(given.texts, kind="placebo", of=kind).table for kind in WITH_PLACEBO}
    return given, tables, placebos


@pytest.mark.parametrize("name", MOVED)
def test_each_moves_where_it_should_and_nowhere_else(name, made):
    given, tables, placebos = made
    given = {"collection": given.texts, "queries": given.queries, "run": given.lists}
    found = probe(ranker(name), variants=tables, placebos=placebos, **given)
    assert {one.name for one in found.variants} == set(KINDS)
    assert {one.name for one in found.variants if one.finding.shown} == MOVED[name]
    for one in found.variants:
        assert one.means.beyond_placebo == (one.name in WITH_PLACEBO)
        assert one.finding.n >= QUERIES
        assert abs(one.finding.mean) > 0.5 if one.finding.shown else abs(one.finding.mean) < 0.1
    # Holm's correction over the three kinds.
    ordered = sorted(found.variants, key=lambda one: one.finding.p)
    holm = np.maximum.accumulate([(3 - at) * one.finding.p for at, one in enumerate(ordered)]).clip(max=1)
    assert [one.finding.holm_p for one in ordered] == pytest.approx(holm.tolist())
    means = {one.name: one.finding.mean for one in found.variants}
    if name == "position":
        assert means["rotate"] < 0
    if name == "group":
        # A swap to men's words and back is twice the step from women's to neutral ones, which half of them take.
        assert means["swap"] == pytest.approx(2 * means["neutral"], rel=0.1)
