"""Cells of what is said of effectiveness that is estimated from judgements that were drawn, with a judge or without."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
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

from .cell import DATA, Cell

MEASURE = "P@10"
QUERIES, POOL, DEPTH = 43, 16, 10
SIZES = (50, 100, 200)
PUBLIC = DATA / "grepbiasir"


@dataclass(frozen=True, slots=True)
class Judged:
    """Two runs, judgements that were drawn for them, and a judge's grades of all pairs.

    ``grade``, ``ranks``: people's grades [Q, D] of a pool, and the ranks [2, Q, D] of its documents in both runs;
    ``drawn`` [k]: the places in the pool of the pairs that were drawn, ``chance`` [k]: with which probabilities;
    ``judge`` [Q, D]: None without one.
    """

    grade: Array
    ranks: Array
    drawn: Array
    chance: Array
    judge: Array | None

    @property
    def truth(self) -> dict[str, float]:
        """What all judgements say of each run."""
        found = (self.grade * (self.ranks <= DEPTH)).sum(axis=2).mean(axis=1) / DEPTH
        return dict(zip("ab", found.tolist(), strict=True))

    def parts(self, name: str) -> tuple[Array, LabelSample]:
        """The estimates [Q] of a run, and what they owe to the judgements."""
        guess = np.zeros(self.grade.size) if self.judge is None else self.judge.ravel().astype(float)
        fold = _folds(self.grade.shape)
        label = self.grade.ravel()[self.drawn].astype(float)
        found = difference_estimates(guess, fold, self.drawn, label, self.chance)
        shown = self.ranks["ab".index(name)] <= DEPTH
        values = (found.values.reshape(shown.shape) * shown).sum(axis=1) / DEPTH
        document = np.flatnonzero(shown.ravel()[self.drawn])
        query = self.drawn[document] // shown.shape[1]
        weight = np.full(len(document), 1 / DEPTH)
        return values, LabelSample(query, document, weight, found.residual, self.chance)

    def audit(self) -> Any:
        """The audit of the runs."""
        pairs = _pairs(self.grade.shape)
        qrels = pairs[self.drawn].with_columns(
            pl.Series("grade", self.grade.ravel()[self.drawn]), pl.Series("probability", self.chance)
        )
        judge = None if self.judge is None else pairs.with_columns(pl.Series("relevance", self.judge.ravel()))
        runs = {}
        for name, ranks in zip("ab", self.ranks, strict=True):
            table = pairs.with_columns(pl.Series("score", -ranks.ravel().astype(float)))
            runs[name] = table.filter(pl.col("score") >= -DEPTH)
        given: dict[str, Any] = {"qrels": qrels, "judge": judge, "query_clusters": "none"}
        return evenrank.audit(runs, baseline="b", measures=MEASURE, **given)


def judge_of(kind: str | None, rng: np.random.Generator, grade: Array, ranks: Array) -> Array:
    """A judge's grades [Q, D] of pairs with these grades, whose ranks [2, Q, D] in both runs are known.

    Of a tenth of the pairs the judge is wrong, and of half of the irrelevant ones: at the top of run a, everywhere in
    run a, or of half of the queries; or of all pairs alike.
    """
    wrong = rng.random(grade.shape) < 0.1
    half = rng.random(grade.shape) < 0.5
    where = {
        "by rank": ranks.min(axis=0) <= 5,
        "by run": ranks[0] <= DEPTH,
        "by query": (np.arange(len(grade)) % 2 == 0)[:, None] & np.ones_like(half),
        "alike": np.ones_like(half),
    }
    if kind == "random":
        return half.astype(int)
    kind_wrong = where.get(str(kind), np.zeros_like(half)) & half & (grade == 0)
    return np.where(wrong | kind_wrong, 1 - grade, grade)


def simulated(rng: np.random.Generator) -> tuple[Array, Array]:
    """Grades [Q, D] of a pool of documents for each query, and their ranks [2, Q, D] in two runs that find them."""
    quality = rng.normal(size=(QUERIES, POOL)) + rng.normal(size=(QUERIES, 1)) - 0.3
    grade = (quality > 0).astype(int)
    scores = quality * np.array([0.5, 0.8])[:, None, None] + rng.normal(size=(2, QUERIES, POOL))
    return grade, np.argsort(np.argsort(-scores, axis=2), axis=2) + 1


@functools.cache
def _public() -> tuple[Array, Array]:
    """The same of Grep-BiasIR: people's judgements of what BM25 finds first, which b has in another order."""
    run = evenrank.read_run(PUBLIC / "bm25.run").table.filter(pl.col("rank") <= POOL)
    qrels = evenrank.read_qrels(PUBLIC / "qrels.txt")
    table = run.join(qrels, on=["query_id", "doc_id"], how="left").fill_null(0).sort("query_id", "rank")
    whole = table.filter(pl.len().over("query_id") == POOL)
    grade = (whole["relevance"].to_numpy() > 0).astype(int).reshape(-1, POOL)
    first = np.tile(np.arange(1, POOL + 1), (len(grade), 1))
    order = np.random.default_rng(1).normal(size=grade.shape) * 4 + first
    return grade, np.stack([first, np.argsort(np.argsort(order, axis=1), axis=1) + 1])


def sample(
    rng: np.random.Generator, n: int, *, judge: str | None, public: bool = False, exchanged: bool = False
) -> Judged:
    """Queries of which n pairs were drawn; ``exchanged``: two runs, exchanged by query at random."""
    grade, ranks = _public() if public else simulated(rng)
    if exchanged:
        swap = rng.random(len(grade)) < 0.5
        ranks = np.where(swap[None, :, None], ranks[::-1], ranks)
    # All pairs within the cutoff weigh the same.
    could = np.flatnonzero((ranks <= DEPTH).any(axis=0))
    chance = probabilities(np.ones(len(could)), n)
    places = systematic(chance, n, int(rng.integers(1 << 30)))
    said = None if judge is None else judge_of(judge, rng, grade, ranks)
    return Judged(grade, ranks, could[places], chance[places], said)


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


def misses(drawn: Judged) -> bool:
    """Whether the interval for these queries misses what all judgements say."""
    values, part = drawn.parts("a")
    return _outside(drawn.truth["a"], confidence_interval(finite_population_mean(part, values)))


def misses_in_audit(drawn: Judged) -> bool:
    return _outside(drawn.truth["a"], drawn.audit()["a", MEASURE].from_labels.ci95)


def misses_difference(drawn: Judged) -> bool:
    (own, part), (other, base) = drawn.parts("a"), drawn.parts("b")
    ends = confidence_interval(finite_population_mean(part.plus(base, -1.0), own - other))
    return _outside(drawn.truth["a"] - drawn.truth["b"], ends)


def differs(drawn: Judged) -> bool:
    (own, part), (other, base) = drawn.parts("a"), drawn.parts("b")
    return compare(own - other, zeros="keep", sample=part.plus(base, -1.0)).shown


def differs_in_audit(drawn: Judged) -> bool:
    return bool(drawn.audit()["a", MEASURE].vs_baseline.test.shown)


JUDGES: dict[str, dict[str, Any]] = {
    "no judge": {"judge": None},
    "a judge wrong for 10%": {"judge": "10%"},
    "a judge too kind": {"judge": "alike"},
    "a judge too kind at the top": {"judge": "by rank"},
    "a judge too kind to one run": {"judge": "by run"},
    "a judge too kind for half of the queries": {"judge": "by query"},
    "a judge who draws lots": {"judge": "random"},
    "Grep-BiasIR, no judge": {"judge": None, "public": True},
    "Grep-BiasIR, a judge too kind": {"judge": "alike", "public": True},
    "Grep-BiasIR, a judge too kind to one run": {"judge": "by run", "public": True},
}


def _cells() -> Iterator[Cell]:
    for family, how in JUDGES.items():
        few: dict[str, Any] = {"draws": 1000, "quick": 2, "data": PUBLIC if how.get("public") else None}
        for n in SIZES:
            draw = functools.partial(sample, n=n, **how)
            kind = {**few, "kind": "coverage"}
            yield Cell("these queries, of judgements drawn", family, n, draw, misses, misses_in_audit, **kind)
            rule = "a difference on these queries, of judgements drawn"
            yield Cell(rule, family, n, draw, misses_difference, **kind)
            pair = functools.partial(sample, n=n, exchanged=True, **how)
            yield Cell("a difference, of judgements drawn", family, n, pair, differs, differs_in_audit, **few)


CELLS = tuple(_cells())
