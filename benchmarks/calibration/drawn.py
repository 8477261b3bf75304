"""Cells of what is said of figures that are estimated from labels that were drawn."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import evenrank
from evenrank.decide.gate import gate
from evenrank.files.types import Array
from evenrank.groups import GroupSource, GroupTable
from evenrank.measures import Evaluation, LinearMeasure, parse_measure, resolve
from evenrank.stats.bounds import limit_absolute, outcome
from evenrank.stats.compare import compare, compare_abs_means
from evenrank.stats.estimate import confidence_interval, finite_population_mean
from evenrank.stats.sampling import LabelSample

from .cell import Cell

MEASURE = parse_measure("ARaB@10")
QUERIES, DEPTH = 117, 10
SIZES = (50, 100, 200)
_GROUPS = np.array(["m", "f", "none"])
LIMIT, SOUGHT = 0.1, 0.2


@dataclass(frozen=True, slots=True)
class Sample:
    """Runs, labels that were drawn for them, a guess of all documents, and what all labels say."""

    runs: dict[str, pl.DataFrame]
    labels: GroupTable
    guess: pl.DataFrame | None
    truth: dict[str, float]
    clusters: Array | None = None

    def parts(self, name: str) -> tuple[Array, LabelSample]:
        """The estimates [Q] of a run, and what they owe to the labels."""
        how = resolve(MEASURE)
        assert isinstance(how, LinearMeasure)
        table = GroupSource(labels=self.labels, guess=self.guess, neutral=("none",), takes_drawn=True).table(
            [self.runs[name]["doc_id"]]
        )
        run = Evaluation(evenrank.Run.from_table(self.runs[name]), table, missing="bounds")
        return how.values(run), how.design_term(run)

    def audit(self, baseline: str | None = None) -> Any:
        """The audit of the runs."""
        clusters: Any = "none"
        if self.clusters is not None:
            clusters = {f"q{place}": f"cluster {number}" for place, number in enumerate(self.clusters.tolist())}
        return evenrank.audit(
            self.runs,
            labels=self.labels,
            guess=self.guess,
            neutral=("none",),
            baseline=baseline,
            measures=str(MEASURE),
            query_clusters=clusters,
        )


def collection(lean: float, size: int) -> Array:
    """Places in ``_GROUPS`` of the documents [D]: half of no group, and as much more m than f as ``lean`` says."""
    count = [round(size * (0.25 + lean / 2)), round(size * (0.25 - lean / 2))]
    return np.repeat([0, 1, 2], [*count, size - sum(count)])


def wrong(rng: np.random.Generator, true: Array, share: float, one_sided: bool) -> Array:
    """A guess that is wrong for a share of the documents, at random or always towards m."""
    other = np.zeros_like(true) if one_sided else rng.integers(0, 3, true.shape)
    return np.where(rng.random(true.shape) < share, other, true)


def sample(
    rng: np.random.Generator,
    n: int,
    *,
    lean: float = 0.0,
    share: float | None = 0.2,
    one_sided: bool = False,
    queries: int = QUERIES,
    follows: bool = False,
    exchanged: bool = False,
    variants: int = 1,
) -> Sample:
    """Queries of a collection, which share documents; ``exchanged``: two runs, exchanged by query at random.

    ``variants``: of so many queries each, which find the same documents in other orders, and are exchanged together.
    """
    # Documents are what they are; queries are drawn. A third looks for m, a third for f, so that queries differ.
    true = collection(lean / (1 - 2 * SOUGHT / 3), queries * 20)
    chosen = np.empty((queries, DEPTH), np.int64)
    for q in range(queries):
        if q % variants:
            chosen[q] = rng.permutation(chosen[q - 1])
            continue
        kind = int(rng.integers(3))
        sought = np.flatnonzero(true == kind)
        first = rng.choice(sought, rng.binomial(DEPTH, SOUGHT) if kind < 2 else 0, replace=False)
        left = np.ones(len(true), bool)
        left[first] = False
        others = rng.choice(np.flatnonzero(left), DEPTH - len(first), replace=False)
        chosen[q] = rng.permutation([*first, *others])
    ids = np.array([f"d{number}" for number in range(len(true))])
    shown, groups = ids[chosen], true[chosen]
    label = dict(zip(ids.tolist(), _GROUPS[true].tolist(), strict=True))
    guess = None
    if share is not None:
        guess = pl.DataFrame({"doc_id": ids, "group": _GROUPS[wrong(rng, true, share, one_sided)]})
    order = np.tile(np.arange(DEPTH), (queries, 1))
    if follows and guess is not None:
        # The guess's m first, its f last.
        said = guess["group"].replace_strict({"m": 0, "none": 1, "f": 2}, return_dtype=pl.Int64).to_numpy()
        key = said[chosen]
        order = np.argsort(key, axis=1, kind="stable")
    runs = {"a": _run(shown, order)}
    if exchanged:
        other = np.argsort(rng.random((queries, DEPTH)), axis=1)
        swap = np.repeat(rng.random(-(-queries // variants)) < 0.5, variants)[:queries, None]
        runs = {"a": _run(shown, np.where(swap, other, order)), "b": _run(shown, np.where(swap, order, other))}
    drawn = evenrank.sample_labels(
        runs, n=n, measures=str(MEASURE), baseline="b" if exchanged else None, seed=int(rng.integers(1 << 30))
    )
    weights = _weights()
    signed = np.array([1.0, -1.0, 0.0])
    truth = {
        "a": float((signed[np.take_along_axis(groups, order, 1)] * weights).sum(axis=1).mean()),
    }
    clusters = np.arange(queries) // variants if variants > 1 else None
    return Sample(runs, drawn.labels(label, poles="m,f"), guess, truth, clusters)


def _weights() -> Array:
    """The weights of ARaB@10's ranks."""
    from evenrank.measures.rank_bias import arab_weights

    return arab_weights(np.array([DEPTH]), DEPTH)[0]


def _run(shown: Array, order: Array) -> pl.DataFrame:
    queries = np.repeat([f"q{q}" for q in range(len(shown))], DEPTH)
    scores = np.tile(np.arange(DEPTH, 0, -1.0), len(shown))
    documents = np.take_along_axis(shown, order, 1).ravel()
    return pl.DataFrame({"query_id": queries, "doc_id": documents, "score": scores})


def leans(drawn: Sample) -> bool:
    values, part = drawn.parts("a")
    return compare(values, sample=part, clusters=drawn.clusters).shown


def leans_in_audit(drawn: Sample) -> bool:
    return bool(drawn.audit()["a", str(MEASURE)].lean.shown)


def differs(drawn: Sample) -> bool:
    (own, part), (other, base) = drawn.parts("a"), drawn.parts("b")
    return compare(own - other, sample=part.plus(base, -1.0), clusters=drawn.clusters).shown


def differs_in_audit(drawn: Sample) -> bool:
    return bool(drawn.audit("b")["a", str(MEASURE)].vs_baseline.test.shown)


def is_larger(drawn: Sample) -> bool:
    (own, part), (other, base) = drawn.parts("a"), drawn.parts("b")
    return compare_abs_means([own], [other], [1.0], samples=(part, base), clusters=drawn.clusters).shown


def misses(drawn: Sample) -> bool:
    """Whether the interval for these queries misses what all labels say."""
    values, part = drawn.parts("a")
    low, high = confidence_interval(finite_population_mean(part, values))
    return not low - 1e-12 <= drawn.truth["a"] <= high + 1e-12


def misses_in_audit(drawn: Sample) -> bool:
    low, high = drawn.audit()["a", str(MEASURE)].from_labels.ci95
    return not low - 1e-12 <= drawn.truth["a"] <= high + 1e-12


def holds(drawn: Sample) -> bool:
    values, part = drawn.parts("a")
    test = limit_absolute(
        [values], LIMIT, 1.0, sample=part, clusters=None if drawn.clusters is None else [drawn.clusters]
    )
    return outcome(test, None) == "holds"


def holds_in_gate(drawn: Sample) -> bool:
    found = gate(drawn.audit(), budget={"rule": [{"measure": str(MEASURE), "at_most": LIMIT}]})
    return found.outcome == "holds"


GUESSES: dict[str, dict[str, Any]] = {
    "no guess": {"share": None},
    "a guess wrong for 10%": {"share": 0.1},
    "a guess wrong for 30%, towards m": {"share": 0.3, "one_sided": True},
    "a guess of which half is random": {"share": 0.75},
    "30 queries, a guess wrong for 20%": {"queries": 30},
    "24 clusters of 5, a guess wrong for 10%": {"queries": 120, "variants": 5, "share": 0.1},
    "60 clusters of 2, a guess wrong for 10%": {"queries": 120, "variants": 2, "share": 0.1},
    "8 clusters of 15, a guess wrong for 10%": {"queries": 120, "variants": 15, "share": 0.1},
}


def _cells() -> Iterator[Cell]:
    few = {"draws": 500, "quick": 2}
    for family, how in GUESSES.items():
        # Fifteen variants of eight queries find no more than 80 documents.
        for n in SIZES[:1] if how.get("variants", 1) > 5 else SIZES:
            draw = functools.partial(sample, n=n, **how)
            yield Cell("a lean, of labels drawn", family, n, draw, leans, leans_in_audit, **few)
            pair = functools.partial(sample, n=n, exchanged=True, **how)
            yield Cell("a difference, of labels drawn", family, n, pair, differs, differs_in_audit, **few)
            yield Cell("which leans further, of labels drawn", family, n, pair, is_larger, **few)
            edge = functools.partial(sample, n=n, lean=LIMIT, **how)
            yield Cell("a limit, of labels drawn", family, n, edge, holds, holds_in_gate, **few)
            kind = {"kind": "coverage", **few}
            yield Cell("these queries, of labels drawn", family, n, draw, misses, misses_in_audit, **kind)
    for n in SIZES:
        follower = functools.partial(sample, n=n, follows=True)
        kind = {"kind": "coverage", **few}
        family = "a re-ranker that follows the guess"
        yield Cell("these queries, of labels drawn", family, n, follower, misses, misses_in_audit, **kind)
        lean = functools.partial(sample, n=n, lean=0.3, share=0.1)
        yield Cell("a lean, of labels drawn", "a lean of .3", n, lean, leans, kind="power", **few)


CELLS = tuple(_cells())
