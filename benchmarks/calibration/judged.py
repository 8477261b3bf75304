"""Cells of what is said of effectiveness that is estimated from judgements that were drawn, with a judge or without."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank.auditing.judgements import pair_ids
from evenrank.auditing.label_sample import probabilities, systematic
from evenrank.files.types import Array
from evenrank.stats.compare import compare
from evenrank.stats.estimate import confidence_interval, finite_population_mean
from evenrank.stats.sampling import FOLDS, LabelSample, difference_estimates

from .cell import Cell
from .judges import CHAT_MODELS, CHATS, GREP_BIAS, LANGUAGE_MODELS, TREC, Pool, chats, first_found, trec, two_runs

QUERIES, POOL, DEPTH = 43, 16, 10
SIZES = (50, 100, 200)


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure of effectiveness: the weights [k] of the first ranks, and what a grade is worth."""

    measure: str
    weights: Array
    gain: Callable[[Array], Array]

    def weight(self, ranks: Array) -> Array:
        """The weights of ranks, 0 beyond the cutoff."""
        weights: Array = np.append(self.weights, 0.0)[np.minimum(ranks - 1, len(self.weights))]
        return weights


def precision(relevant: int, depth: int) -> Figure:
    return Figure(f"P(rel={relevant})@{depth}", np.full(depth, 1 / depth), lambda grade: grade >= relevant)


def sdcg(highest: int, depth: int) -> Figure:
    discounts = 1 / np.log2(np.arange(depth) + 2)
    measure = f"SDCG(max_rel={highest})@{depth}"
    return Figure(measure, discounts / discounts.sum(), lambda grade: np.minimum(grade, highest) / highest)


_BINARY, P_DL, _SDCG = precision(1, DEPTH), precision(2, DEPTH), sdcg(3, DEPTH)


@dataclass(frozen=True, slots=True)
class Judged:
    """Two runs, judgements that were drawn for them, and a judge's grades of all pairs.

    ``pool``: people's grades [Q, D], and the ranks [2, Q, D] in both runs; ``drawn`` [k]: the places in the pool of the
    pairs that were drawn, ``chance`` [k]: with which probabilities; ``judge`` [Q, D]: None without one.
    """

    figure: Figure
    pool: Pool
    drawn: Array
    chance: Array
    judge: Array | None

    def truth(self, own: float, other: float = 0.0) -> float:
        """What all judgements say of ``own`` times run a plus ``other`` times run b."""
        return float((self.figure.gain(self.pool.grade) * self._weights(own, other)).sum(axis=1).mean())

    def parts(self, own: float, other: float = 0.0) -> tuple[Array, LabelSample]:
        """The estimates [Q] of the same, and what they owe to the judgements."""
        grade, gain = self.pool.grade, self.figure.gain
        guess = np.zeros(grade.size) if self.judge is None else gain(self.judge).ravel().astype(float)
        label = gain(grade).ravel()[self.drawn].astype(float)
        found = difference_estimates(guess, _folds(grade.shape), self.drawn, label, self.chance)
        weights = self._weights(own, other)
        values = (found.values.reshape(weights.shape) * weights).sum(axis=1)
        of_drawn = weights.ravel()[self.drawn]
        document = np.flatnonzero(of_drawn)
        query = self.drawn[document] // weights.shape[1]
        return values, LabelSample(query, document, of_drawn[document], found.residual, self.chance)

    def _weights(self, own: float, other: float) -> Array:
        first, second = self.figure.weight(self.pool.ranks)
        weights: Array = own * first + other * second
        return weights

    def audit(self, **more: Any) -> Any:
        """The audit of the runs."""
        pairs = _pairs(self.pool.grade.shape)
        qrels = pairs[self.drawn].with_columns(
            pl.Series("grade", self.pool.grade.ravel()[self.drawn]), pl.Series("probability", self.chance)
        )
        judge = None if self.judge is None else pairs.with_columns(pl.Series("relevance", self.judge.ravel()))
        runs = {}
        for name, ranks in zip("ab", self.pool.ranks, strict=True):
            table = pairs.with_columns(pl.Series("score", -ranks.ravel().astype(float)))
            runs[name] = table.filter(pl.col("score") >= -len(self.figure.weights))
        given: dict[str, Any] = {"qrels": qrels, "judge": judge, "query_clusters": "none"}
        return evenrank.audit(runs, baseline="b", measures=self.figure.measure, **given, **more)

    @property
    def audited(self) -> Any:
        """The audit's figure of run a."""
        return self.audit()["a", self.figure.measure]


def judge_of(kind: str, rng: np.random.Generator, pool: Pool) -> Array:
    """A judge's grades [Q, D] of a pool that is judged 0 or 1.

    Of a tenth of the pairs the judge is wrong, and of half of the irrelevant ones: at the top of run a, everywhere in
    run a, of half of the queries, of long documents, which run a prefers, or of a group that b has first; or of all
    pairs alike.
    """
    grade, ranks = pool.grade, pool.ranks
    wrong = rng.random(grade.shape) < 0.1
    half = rng.random(grade.shape) < 0.5
    if kind == "random":
        return half.astype(int)
    if kind in ("by length", "by group"):
        # How long a document is, or whether it is of the group, has to do with its rank.
        favoured, steep = (ranks[0], 4) if kind == "by length" else (ranks[1], 2)
        where = rng.normal(size=grade.shape) > (favoured - DEPTH / 2) / steep
    else:
        where = {
            "by rank": ranks.min(axis=0) <= 5,
            "by run": ranks[0] <= DEPTH,
            "by query": (np.arange(len(grade)) % 2 == 0)[:, None] & np.ones_like(half),
            "alike": np.ones_like(half),
        }.get(kind, np.zeros_like(half))
    return np.where(wrong | (where & half & (grade == 0)), 1 - grade, grade)


def simulated(rng: np.random.Generator) -> Pool:
    """Documents found for each query, and their ranks in two runs."""
    quality = rng.normal(size=(QUERIES, POOL)) + rng.normal(size=(QUERIES, 1)) - 0.3
    grade = (quality > 0).astype(int)
    scores = quality * np.array([0.5, 0.8])[:, None, None] + rng.normal(size=(2, QUERIES, POOL))
    return Pool(grade, np.argsort(np.argsort(-scores, axis=2), axis=2) + 1)


def sample(
    rng: np.random.Generator,
    n: int,
    *,
    judge: str | None,
    of: Callable[[np.random.Generator], Pool] = simulated,
    figure: Figure = _BINARY,
    exchanged: bool = False,
) -> Judged:
    """Queries of which n pairs were drawn; ``exchanged``: two runs, exchanged by query at random."""
    pool = of(rng)
    if exchanged:
        swap = rng.random(len(pool.grade)) < 0.5
        pool = replace(pool, ranks=np.where(swap[None, :, None], pool.ranks[::-1], pool.ranks))
    weights = figure.weight(pool.ranks).max(axis=0).ravel()
    could = np.flatnonzero(weights)
    chance = probabilities(weights[could], n)
    places = systematic(chance, n, int(rng.integers(1 << 30)))
    grades = None if judge is None else pool.models.get(judge)
    if judge is not None and grades is None:
        grades = judge_of(judge, rng, pool)
    return Judged(figure, pool, could[places], chance[places], grades)


@functools.cache
def _pairs(shape: tuple[int, ...]) -> pl.DataFrame:
    queries, documents = np.divmod(np.arange(shape[0] * shape[1]), shape[1])
    return pl.DataFrame({"query_id": [f"q{q}" for q in queries], "doc_id": [f"d{d}" for d in documents]})


@functools.cache
def _folds(shape: tuple[int, ...]) -> Array:
    pairs = _pairs(shape)
    return (pair_ids(pairs["query_id"], pairs["doc_id"]).hash(seed=1) % FOLDS).to_numpy()


def _outside(truth: float, ends: tuple[float, float] | None) -> bool:
    return ends is None or not ends[0] - 1e-12 <= truth <= ends[1] + 1e-12


def _interval(drawn: Judged, *factors: float) -> tuple[float, float]:
    values, part = drawn.parts(*factors)
    return confidence_interval(finite_population_mean(part, values))


def misses(drawn: Judged) -> bool:
    """Whether the interval for these queries misses what all judgements say."""
    return _outside(drawn.truth(1.0), _interval(drawn, 1.0))


def misses_in_audit(drawn: Judged) -> bool:
    return _outside(drawn.truth(1.0), drawn.audited.from_labels.ci95)


def misses_difference(drawn: Judged) -> bool:
    return _outside(drawn.truth(1.0, -1.0), _interval(drawn, 1.0, -1.0))


def differs(drawn: Judged) -> bool:
    values, part = drawn.parts(1.0, -1.0)
    return compare(values, zeros="keep", sample=part).shown


def differs_in_audit(drawn: Judged) -> bool:
    return bool(drawn.audited.vs_baseline.test.shown)


def _narrow(drawn: Judged, most: float, factors: tuple[float, ...]) -> bool:
    """Whether half of the interval for these queries is at most a tenth wider than ``most``."""
    low, high = _interval(drawn, *factors)
    return (high - low) / 2 <= 1.1 * most


_FIRST = functools.partial(first_found, POOL)
JUDGES: dict[str, dict[str, Any]] = {
    "no judge": {"judge": None},
    "a judge wrong for 10%": {"judge": "10%"},
    "a judge too kind": {"judge": "alike"},
    "a judge too kind at the top": {"judge": "by rank"},
    "a judge too kind to one run": {"judge": "by run"},
    "a judge too kind for half of the queries": {"judge": "by query"},
    "a judge too kind to long documents": {"judge": "by length"},
    "a judge too kind to a group": {"judge": "by group"},
    "a judge who draws lots": {"judge": "random"},
    "Grep-BiasIR, no judge": {"judge": None, "of": lambda rng: _FIRST()},
    "Grep-BiasIR, a judge too kind": {"judge": "alike", "of": lambda rng: _FIRST()},
    "Grep-BiasIR, a judge too kind to one run": {"judge": "by run", "of": lambda rng: _FIRST()},
}


def of_trec(rng: np.random.Generator, *, alone: bool = False) -> Pool:
    """Two of TREC's runs; ``alone``: one, twice, so that all judgements are drawn for it."""
    pool = two_runs(trec(DEPTH), rng)
    return replace(pool, ranks=pool.ranks[[0, 0]]) if alone else pool


def _families() -> Iterator[tuple[str, dict[str, Any], Path | None]]:
    """Judges and runs, and the data that they need."""
    for family, how in JUDGES.items():
        yield family, how, GREP_BIAS if "of" in how else None
    for judge in (None, *LANGUAGE_MODELS):
        name = f"TREC DL 2019, {judge or 'no judge'}"
        yield name, {"judge": judge, "of": of_trec, "figure": P_DL}, TREC
    for judge in (None, "Llama 3 8B, four prompts", "Llama 3 70B, four prompts"):
        name = f"TREC DL 2019, SDCG, {judge or 'no judge'}"
        yield name, {"judge": judge, "of": of_trec, "figure": _SDCG}, TREC
    for judge in (None, *CHAT_MODELS):
        how = {"judge": judge, "of": lambda rng: chats(), "figure": precision(1, 3)}
        yield f"Grep-BiasIR's own documents, {judge or 'no judge'}", how, CHATS


def _cells() -> Iterator[Cell]:
    for family, how, data in _families():
        few: dict[str, Any] = {"draws": 1000, "quick": 2, "data": data}
        for n in SIZES:
            draw = functools.partial(sample, n=n, **how)
            kind = {**few, "kind": "coverage"}
            yield Cell("these queries, of judgements drawn", family, n, draw, misses, misses_in_audit, **kind)
            rule = "a difference on these queries, of judgements drawn"
            yield Cell(rule, family, n, draw, misses_difference, **kind)
            pair = functools.partial(sample, n=n, exchanged=True, **how)
            yield Cell("a difference, of judgements drawn", family, n, pair, differs, differs_in_audit, **few)
    for figure, most, apart in ((P_DL, 0.080, 0.110), (_SDCG, 0.060, 0.089)):
        for what, half, factors in (("", most, (1.0,)), (", a difference", apart, (1.0, -1.0))):
            of = of_trec if what else functools.partial(of_trec, alone=True)
            draw = functools.partial(sample, n=100, judge="Llama 3 70B, four prompts", of=of, figure=figure)
            said: Callable[[Judged], bool] = functools.partial(_narrow, most=half, factors=factors)
            family = f"TREC DL 2019, {figure.measure}{what}: at most {half:.3f}"
            few = {"draws": 1000, "quick": 2, "data": TREC, "kind": "power", "floor": 0.5}
            yield Cell("intervals of judgements drawn are narrow", family, 100, draw, said, **few)


CELLS = tuple(_cells())
