"""Cells of what is said of pairs of which a judge calls more relevant than people do: by rank, run, length, group."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from evenrank.auditing.judge_check import Stratum, judge_strata
from evenrank.files.types import Array

from .cell import Cell
from .judged import P_DL, SIZES, Judged, of_trec, sample, simulated
from .judges import LANGUAGE_MODELS, TREC, Pool

RULE = "a judge's excess differs between pairs, of judgements drawn"
FEWER = 0.25
_WORDS, _SHORTEST = ("word", "she", "he"), 5


@dataclass(frozen=True, slots=True)
class Described:
    """Judgements that were drawn, and of each document [D] the number of words and the place of its group in _WORDS."""

    judged: Judged
    words: Array
    group: Array

    def strata(self) -> Iterator[Stratum]:
        """Those of an audit of the runs with the documents' texts."""
        ranks = self.judged.pool.ranks.reshape(2, -1)[:, self.judged.drawn]
        best = ranks.min(axis=0)
        yield "rank", "first", best <= int(np.median(best))
        for name, own in zip("ab", ranks, strict=True):
            yield "ranker", name, own <= len(self.judged.figure.weights)
        yield from self.of_documents()

    def of_documents(self) -> Iterator[Stratum]:
        """Those by length and by group alone."""
        documents = self.judged.drawn % len(self.words)
        words = self.words[documents]
        yield "length", "long", words > int(np.median(words))
        for group in (1, 2):
            yield "group", _WORDS[group], self.group[documents] == group

    def shown(self, strata: Iterator[Stratum]) -> set[str]:
        """By what the judge's excess is shown to differ."""
        drawn, gain = self.judged, self.judged.figure.gain
        assert drawn.judge is not None
        judge, people = (gain(grade).ravel()[drawn.drawn].astype(float) for grade in (drawn.judge, drawn.pool.grade))
        return {stratum.by for stratum in judge_strata(judge - people, 1 / drawn.chance, strata) if stratum.test.shown}

    def shown_in_audit(self) -> set[str]:
        ids = [f"d{number}" for number in range(len(self.words))]
        texts = ["word " * (n - 1) + _WORDS[group] for n, group in zip(self.words, self.group, strict=True)]
        found = self.judged.audit(collection=pl.DataFrame({"doc_id": ids, "text": texts}))
        return {stratum.by for stratum in found.judge.strata if stratum.test.shown}


def unrelated(rng: np.random.Generator) -> Pool:
    """Documents for each query in two random orders, so that a rank says nothing of a grade."""
    pool = simulated(rng)
    return replace(pool, ranks=np.argsort(rng.random(pool.ranks.shape), axis=2) + 1)


def described(rng: np.random.Generator, n: int, *, strict: bool = False, **how: Any) -> Described:
    """Drawn judgements; ``strict``: the judge calls fewer of the long documents relevant."""
    judged = sample(rng, n, **how)
    count = judged.pool.grade.shape[1]
    words = rng.permutation(count) + _SHORTEST
    if strict:
        assert judged.judge is not None
        relevant = judged.judge == 1
        lost = (words > np.median(words)) & relevant & (rng.random(relevant.shape) < FEWER / relevant.mean())
        judged = replace(judged, judge=np.where(lost, 0, judged.judge))
    return Described(judged, words, rng.integers(0, len(_WORDS), count))


def any_shown(drawn: Described) -> bool:
    return bool(drawn.shown(drawn.strata()))


def any_shown_in_audit(drawn: Described) -> bool:
    return bool(drawn.shown_in_audit())


def any_trait_shown(drawn: Described) -> bool:
    return bool(drawn.shown(drawn.of_documents()))


def length_shown(drawn: Described) -> bool:
    return "length" in drawn.shown(drawn.strata())


def length_shown_in_audit(drawn: Described) -> bool:
    return "length" in drawn.shown_in_audit()


JUDGES = {"a judge wrong for 10%": "10%", "a judge too kind": "alike", "a judge who draws lots": "random"}


def _cells() -> Iterator[Cell]:
    few: dict[str, Any] = {"draws": 1000, "quick": 2}
    for n in SIZES:
        for family, judge in JUDGES.items():
            draw = functools.partial(described, n=n, judge=judge, of=unrelated)
            yield Cell(RULE, family, n, draw, any_shown, any_shown_in_audit, **few)
        for model in LANGUAGE_MODELS:
            draw = functools.partial(described, n=n, judge=model, of=of_trec, figure=P_DL)
            yield Cell(RULE, f"TREC DL 2019, random traits, {model}", n, draw, any_trait_shown, data=TREC, **few)
        draw = functools.partial(described, n=n, judge="10%", of=unrelated, strict=True)
        family, floor = "a quarter fewer of long documents", 0.4 if n == 100 else None
        yield Cell(RULE, family, n, draw, length_shown, length_shown_in_audit, "power", floor, **few)


CELLS = tuple(_cells())
