"""What the position experiment measured, and differences of it with intervals that respect seeds and queries."""

from __future__ import annotations

import numpy as np

from evenrank.io.types import Array
from evenrank.measures.nested import Mixed, mixed_test
from evenrank.measures.statistics import bootstrap_means, interval
from evenrank.position.term_similarity import Floats, TermSimilarity

from .paper_tables import Value
from .position_setup import DEBIASED, ORIGINAL

MEASURES = {"ndcg": "nDCG@10", "mrr": "RR@10", "recall": "R@10"}
SHORT = {ORIGINAL: "orig", DEBIASED: "deb"}
UNTRAINED = "untrained"
Values = dict[str, Array]
"""The values of each measure by query, in the order of the sorted query ids."""
Key = tuple[str, str, str, str]
"""Collection, ranker, training, version of the test passages."""


def both_tests(name: str, ranker: str, training: str) -> tuple[Key, Key]:
    """The keys of a training on the rotated and on the original test, whose difference is the cost of rotation."""
    return (name, ranker, training, DEBIASED), (name, ranker, training, ORIGINAL)


class Found:
    """The measured values, by :data:`Key`, for each seed.

    same_queries: whether all seeds have the same test queries (published data), so that they are no new evidence.
    """

    def __init__(self, *, same_queries: bool = False) -> None:
        self.same_queries = same_queries
        self.values: dict[Key, list[Values]] = {}
        self.similarity: dict[tuple[str, str], list[TermSimilarity]] = {}
        self.different: dict[tuple[str, str], list[Floats]] = {}
        """The mean cosine of different terms by distance."""

    def mean(self, key: Key, measure: str) -> list[float]:
        """The mean for each seed."""
        return [float(np.nanmean(values[measure])) for values in self.values.get(key, [])]

    def value(self, key: Key, measure: str) -> Value:
        """The mean over seeds; for a single seed, with the interval over queries."""
        means = self.mean(key, measure)
        if len(means) != 1:
            return Value.over_seeds(list(means))
        draws = bootstrap_means(self.values[key][0][measure][:, None], 0)[:, 0]
        return Value(means[0], len(self.values[key][0][measure]), "queries", interval(draws))

    def change(self, key: tuple[str, str, str], measure: str, *, of_original: bool = False) -> Value:
        """(debiased − original)/debiased in percent, as published, or relative to the original.

        Over seeds; for a single seed, with the percentile bootstrap interval over queries.
        """
        pairs = self.paired_values((*key, ORIGINAL), (*key, DEBIASED), measure)
        means = np.array([(np.nanmean(original), np.nanmean(debiased)) for original, debiased in pairs])
        changes = _changes(means, of_original)
        if len(pairs) != 1:
            return Value.over_seeds(list(changes))
        draws = _changes(bootstrap_means(np.column_stack(pairs[0]), 0), of_original)
        return Value(float(changes[0]), len(pairs[0][0]), "queries", interval(draws))

    def paired_values(self, first: Key, second: Key, measure: str) -> list[tuple[Array, Array]]:
        """The values by query of two keys, for each seed that both have."""
        one, other = self.values.get(first, []), self.values.get(second, [])
        if self.same_queries and len(other) == 1:
            # A first stage, which is the same for every seed.
            other = other * len(one)
        return [(a[measure], b[measure]) for a, b in zip(one, other, strict=False)]

    def tested(self, key: Key, base: Key, measure: str = "ndcg") -> Mixed:
        """The difference ``key`` − ``base``: a paired t-test over queries, or, over seeds, the mixed view."""
        differences = [one - other for one, other in self.paired_values(key, base, measure)]
        return mixed_test(differences, same_queries=self.same_queries)

    def difference(self, key: Key, base: Key, measure: str = "ndcg", level: float = 0.95) -> Value:
        """:meth:`tested` as a value with its interval."""
        return as_value(self.tested(key, base, measure), level)


def as_value(found: Mixed, level: float = 0.95) -> Value:
    """The mean of a test with its interval, and the number of what limits it."""
    return Value(found.mean, found.n, found.limit, found.interval(level))


def _changes(means: Array, of_original: bool) -> Array:
    """Changes in percent [R] of means [R, 2] on the original and on the debiased test."""
    if not len(means):
        return np.empty(0)
    original, debiased = means.T
    base = original if of_original else debiased
    changes: Array = np.divide(debiased - original, base, out=np.full(len(means), np.nan), where=base != 0)
    return 100 * changes


def between(found: Found, name: str, training: str) -> list[float]:
    """The mean cosine of different terms for each seed: over all distances up to Δmax."""
    pairs = zip(found.different.get((name, training), []), found.similarity.get((name, training), []), strict=True)
    return [float(np.nanmean(curve[: one.delta_max + 1])) for curve, one in pairs]


def relative_mats(found: Found, name: str, training: str) -> list[float]:
    """MATS relative to how far ATS(0) is above the level of different terms, for each seed.

    A collapsed transformer has a small MATS because all cosines are near 1; this ratio does not shrink by that alone.
    """
    values = []
    for one, level in zip(found.similarity.get((name, training), []), between(found, name, training), strict=True):
        room = float(one.ats[0]) - level
        values.append(one.mats / room if room > 0 else float("nan"))
    return values
