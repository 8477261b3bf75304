"""Cells of queries in clusters, such as variants of a query or questions about one paragraph."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import evenrank
from evenrank.files.types import Array
from evenrank.stats.bounds import no_loss, outcome
from evenrank.stats.compare import compare, compare_groups, compare_to_random_order

from . import queries as q
from .cell import Cell
from .orders import TOP

SIZES: dict[str, Array] = {
    "24 clusters of 5": np.full(24, 5),
    "60 clusters of 2": np.full(60, 2),
    "8 clusters of 15": np.full(8, 15),
    "6 clusters of 10 and 40 single queries": np.array([10] * 6 + [1] * 40),
    "a cluster of 30 and 87 single queries": np.array([30] + [1] * 87),
}
LEAN, DIFFERENCE, LOSS = (
    "a mean of clusters differs from 0",
    "runs differ, clusters",
    "no loss of more than 5%, clusters",
)
GROUP, ORDER = "a query group differs, clusters", "an order adds to a group, clusters"
UNLIKE = "clusters of unlike size whose values have a long tail"


@dataclass(frozen=True, slots=True)
class Clustered:
    """Values [n], those of a baseline, and the cluster of each."""

    values: Array
    base: Array
    clusters: Array

    @property
    def of(self) -> dict[str, str]:
        """The clusters as an audit takes them."""
        return {f"q{place}": f"cluster {number}" for place, number in enumerate(self.clusters.tolist())}


def leaning(values: q.Values, sizes: Array, rng: np.random.Generator) -> Clustered:
    """Values of mean 0: one of each cluster, and half as much of each query."""
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    found = values(rng, len(sizes))[clusters] + 0.5 * values(rng, len(clusters))
    return Clustered(found, np.zeros(len(found)), clusters)


def variants(sizes: Array, rng: np.random.Generator) -> Clustered:
    """Reciprocal ranks of two runs that are exchanged at random cluster by cluster, whose queries are nearly alike."""
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    ranks = np.where(rng.random((2, len(clusters))) < 0.8, 1.0, rng.choice([0.5, 0.25, 0.1], (2, len(clusters))))
    own, other = np.where(
        rng.random((2, len(clusters))) < 0.8, rng.choice(ranks[0], (2, len(sizes)))[:, clusters], ranks
    )
    swap = (rng.random(len(sizes)) < 0.5)[clusters]
    return Clustered(np.where(swap, other, own), np.where(swap, own, other), clusters)


def ruined(sizes: Array, share: float, rng: np.random.Generator) -> Clustered:
    """Base values, and new ones that lose everything in so many clusters that the mean loses 5%."""
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    base = np.clip(q.base_of(rng, len(sizes))[clusters] + rng.normal(0, 0.05, len(clusters)), 0, 1)
    hit = (rng.random(len(sizes)) < share)[clusters]
    return Clustered(base - hit * base * min(1.0, 0.05 / share) + rng.normal(0, 0.01, len(base)) * ~hit, base, clusters)


def leans(sample: Clustered) -> bool:
    return compare(sample.values, clusters=sample.clusters).shown


def leans_in_audit(sample: Clustered) -> bool:
    table, run, _ = q.table_of(sample.values)
    found = evenrank.audit({"a": run}, scores=table, measures="ARaB@1", query_clusters=sample.of)
    lean = found["a", "ARaB@1"].lean
    return lean is not None and lean.shown


def differ(sample: Clustered) -> bool:
    return compare(sample.values - sample.base, zeros="keep", clusters=sample.clusters, reach=1.0).shown


def differ_in_audit(sample: Clustered) -> bool:
    runs = {"new": q.trec(sample.values), "old": q.trec(sample.base)}
    qrels = q.judged(len(sample.values))
    found = evenrank.audit(runs, qrels=qrels, baseline="old", measures="RR@10", query_clusters=sample.of)
    against = found["new", "RR@10"].vs_baseline
    return against is not None and against.significant


def holds(sample: Clustered) -> bool:
    test = no_loss(sample.values, sample.base, clusters=sample.clusters)
    return test is not None and outcome(test, None) == "holds"


def gate_holds(sample: Clustered) -> bool:
    rule = {"measure": "nDCG@10", "against": "baseline", "at_least": "-5%"}
    return q.gated(rule, "holds", (sample.values, sample.base), sample.clusters)


def grouped(values: q.Values, sizes: Array, rng: np.random.Generator) -> tuple[Clustered, Array]:
    """Values of clusters that are all alike, and a group: a third of the clusters, taken at random."""
    sample = leaning(values, sizes, rng)
    return sample, rng.permuted(np.arange(len(sizes)) % 3 == 0)[sample.clusters]


def split(values: q.Values, sizes: Array, rng: np.random.Generator) -> tuple[Clustered, Array]:
    """The same with a group of a third of the queries, whatever their clusters."""
    sample = leaning(values, sizes, rng)
    return sample, rng.random(len(sample.values)) < 1 / 3


def apart(sample: tuple[Clustered, Array]) -> bool:
    of, inside = sample
    values = np.where(inside, of.values, np.nan), np.where(inside, np.nan, of.values)
    return compare_groups(*values, clusters=of.clusters).shown


def apart_in_audit(sample: tuple[Clustered, Array]) -> bool:
    of, inside = sample
    table, run, _ = q.table_of(of.values)
    groups = {f"q{place}": "inside" if own else "outside" for place, own in enumerate(inside.tolist())}
    found = evenrank.audit({"a": run}, scores=table, measures="ARaB@1", query_groups=groups, query_clusters=of.of)
    return any(one.test.shown for one in found.query_groups)


def ordered(sizes: Array, members: int, rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """What random orders of 200 candidates add to a group's share, the same in a cluster; variances, and clusters."""
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    found = rng.hypergeometric(members, 200 - members, TOP, len(sizes))[clusters] / TOP
    share = members / 200
    variances = np.full(len(clusters), (1 / TOP - 1 / 200) * 200 / 199 * share * (1 - share))
    return found - share, variances, clusters


def adds(sample: tuple[Array, Array, Array]) -> bool:
    values, variances, clusters = sample
    return compare_to_random_order(values, variances, clusters=clusters, reach=1.0).shown


def _cells() -> Iterator[Cell]:
    values: dict[str, q.Values] = {"normal": q.normal, "lognormal": q.lognormal, "like ARaB": q.arab}
    for family, sizes in SIZES.items():
        n = int(sizes.sum())
        for kind, of in values.items():
            known = UNLIKE if kind != "normal" and family.startswith("6 clusters") else None
            more: dict[str, Any] = {"known_to_fail": known, "quick": 50}
            named = f"{family}, {kind}"
            yield Cell(LEAN, named, n, functools.partial(leaning, of, sizes), leans, leans_in_audit, **more)
            draw = functools.partial(grouped, of, sizes)
            yield Cell(GROUP, named, n, draw, apart, apart_in_audit, quick=20)
        draw = functools.partial(variants, sizes)
        yield Cell(DIFFERENCE, family, n, draw, differ, differ_in_audit, quick=50)
        for share in (0.05, 0.1):
            draw = functools.partial(ruined, sizes, share)
            yield Cell(LOSS, f"{family}, {share:.0%} of clusters ruined", n, draw, holds, gate_holds, quick=50)
        for members in (1, 20):
            # An audit has no candidates of which several queries have the very same order by chance.
            draw = functools.partial(ordered, sizes, members)
            yield Cell(ORDER, f"{family}, {members} of 200", n, draw, adds, quick=50)
    many = {
        "60 clusters of 5": np.full(60, 5),
        "120 clusters of 2": np.full(120, 2),
        "20 clusters of 10 and 100 single queries": np.array([10] * 20 + [1] * 100),
    }
    for family, sizes in many.items():
        for kind, of in values.items():
            draw = functools.partial(grouped, of, sizes)
            yield Cell(GROUP, f"{family}, {kind}", int(sizes.sum()), draw, apart, apart_in_audit, quick=20)
            draw = functools.partial(split, of, sizes)
            named = f"{family}, over both groups, {kind}"
            yield Cell(GROUP, named, int(sizes.sum()), draw, apart, apart_in_audit, quick=20)
    for sizes, family in ((np.full(120, 5), "120 clusters of 5"), (np.full(60, 2), "60 clusters of 2")):
        draw = functools.partial(_better, sizes)
        yield Cell(LEAN, f"{family}, .3 sd", int(sizes.sum()), draw, leans, kind="power")


def _better(sizes: Array, rng: np.random.Generator) -> Clustered:
    sample = leaning(q.normal, sizes, rng)
    return Clustered(sample.values + 0.3 * np.sqrt(1.25), sample.base, sample.clusters)


CELLS = tuple(_cells())
