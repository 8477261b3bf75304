"""Cells of what an order adds: orders that are independent of a group of few documents."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

import evenrank
from evenrank.files.types import Array
from evenrank.measures.rank_bias import arab_weights
from evenrank.stats.compare import compare_to_random_order

from .cell import DATA, Cell

RULE = "an order adds to a group"
CANDIDATES, TOP = 200, 10
RUNS = DATA / "runs"
LISTS = "msmarco_dev_fair_BM25.run"


@dataclass(frozen=True, slots=True)
class Lists:
    """Documents [L], in lists one after another; ``places``: the queries [L]; ``groups``: 1, −1 or 0 for each [L]."""

    documents: Array
    places: Array
    groups: Array
    measure: str

    def shown(self) -> bool:
        """Whether an order is shown to add something, by the statistics alone."""
        _, starts, lengths = np.unique(self.places, return_index=True, return_counts=True)
        ranks = np.arange(len(self.places)) - np.repeat(starts, lengths)
        if self.measure.startswith("ARaB"):
            weights = np.where(ranks < TOP, arab_weights(lengths, TOP)[self.places, np.minimum(ranks, TOP - 1)], 0.0)
            values, reach = self.groups, 2.0
        else:
            weights = np.where(ranks < TOP, 1 / np.repeat(np.minimum(lengths, TOP), lengths), 0.0)
            values, reach = (self.groups > 0).astype(float), 1.0

        def total(of: Array) -> Array:
            return np.bincount(self.places, of, len(lengths))

        means, sums = total(values) / lengths, total(weights)
        squares = total((values - means[self.places]) ** 2)
        variances = (total(weights**2) - sums**2 / lengths) * squares / np.maximum(lengths - 1, 1)
        return compare_to_random_order(total(weights * values) - sums * means, variances, reach=reach).shown

    def shown_in_audit(self) -> bool:
        """The same through ``evenrank.audit``."""
        scores = -np.arange(len(self.places), dtype=float)
        table = {"query_id": self.places, "doc_id": self.documents, "score": scores}
        run = pl.DataFrame(table).with_columns(pl.col("query_id", "doc_id").cast(pl.String))
        names = np.array(["other", "few", "opposite"])[self.groups.astype(int)]
        labels = dict(zip(run["doc_id"].to_list(), names.tolist(), strict=True))
        labels |= {f"none {name}": name for name in ("other", "few", "opposite")}
        found = evenrank.audit({"run": run}, labels=labels, measures=self.measure, poles="few,opposite")
        added = found["run", self.measure].vs_random_order
        return added is not None and added.test.shown


def lists(
    n: int, members: Callable[[np.random.Generator, int], Array], measure: str, rng: np.random.Generator
) -> Lists:
    """Lists of 200 documents in random order, of which so many are of the group."""
    count = members(rng, n)
    first = np.arange(CANDIDATES) < count[:, None]
    groups = rng.permuted(first.astype(float), axis=1).ravel()
    if measure.startswith("ARaB"):
        groups *= rng.choice([1.0, -1.0], len(groups))
    return Lists(np.arange(n * CANDIDATES), np.repeat(np.arange(n), CANDIDATES), groups, measure)


@functools.cache
def real() -> tuple[Array, Array]:
    """Queries and documents [L] of a real run, as numbers, in its order."""
    table = evenrank.read_run(RUNS / LISTS).table
    queries = np.unique(table["query_id"].to_numpy(), return_inverse=True)[1]
    order = np.lexsort((table["rank"].to_numpy(), queries))
    documents = np.unique(table["doc_id"].to_numpy(), return_inverse=True)[1]
    return queries[order], documents[order]


def labelled(n: int, share: float, measure: str, rng: np.random.Generator) -> Lists:
    """The lists of ``n`` queries of a real run, with labels of a ``share`` of its documents at random."""
    queries, documents = real()
    chosen = np.zeros(queries.max() + 1, bool)
    chosen[rng.choice(len(chosen), n, replace=False)] = True
    inside = chosen[queries]
    places = np.unique(queries[inside], return_inverse=True)[1]
    marks = np.where(rng.random(documents.max() + 1) < share, rng.choice([1.0, -1.0], documents.max() + 1), 0.0)
    return Lists(documents[inside], places, marks[documents[inside]], measure)


def _fixed(members: int) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: np.full(n, members)


def _poisson(mean: float) -> Callable[[np.random.Generator, int], Array]:
    return lambda rng, n: np.minimum(rng.poisson(mean, n), CANDIDATES)


MEMBERS = {
    "1 of 200": (_fixed(1), (15, 50, 117)),
    "1 of 1,000, by chance": (_poisson(0.2), (50, 117, 400)),
    "5 of 1,000, by chance": (_poisson(1), (15, 50, 117)),
    "20 of 200": (_fixed(20), (15, 50, 117)),
    "none of 200, or all values equal": (lambda rng, n: (rng.random(n) < 0.9).astype(int), (15,)),
}


def _cells() -> Iterator[Cell]:
    for measure in (f"Share(group='few')@{TOP}", f"ARaB@{TOP}"):
        name = measure.split("@")[0].split("(")[0]
        for family, (members, sizes) in MEMBERS.items():
            for n in sizes:
                draw = functools.partial(lists, n, members, measure)
                yield Cell(RULE, f"{name}, {family}", n, draw, Lists.shown, Lists.shown_in_audit, quick=20)
    for share in (0.001, 0.002, 0.005, 0.01, 0.02, 0.05):
        for n in (50, 100, 215):
            draw = functools.partial(labelled, n, share, f"ARaB@{TOP}")
            family = f"ARaB, real lists, {share:.1%} labelled at random"
            yield Cell(RULE, family, n, draw, Lists.shown, Lists.shown_in_audit, data=RUNS, draws=2000, quick=5)
    draw = functools.partial(moved, 50, 0.3)
    yield Cell(RULE, "Share, 100 of 200, higher by .3 sd", 50, draw, Lists.shown, kind="power", floor=0.4)


def moved(n: int, by: float, rng: np.random.Generator) -> Lists:
    """Lists of 200 documents, half of them of the group, which is scored higher by so much."""
    groups = (np.arange(CANDIDATES) % 2 == 0).astype(float)
    scores = rng.normal(0, 1, (n, CANDIDATES)) + by * groups
    ranked = groups[np.argsort(-scores, axis=1)].ravel()
    return Lists(np.arange(n * CANDIDATES), np.repeat(np.arange(n), CANDIDATES), ranked, f"Share(group='few')@{TOP}")


CELLS = tuple(_cells())
