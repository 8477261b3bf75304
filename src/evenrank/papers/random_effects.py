"""Differences of two systems over several trainings: of these trainings, or of trainings like these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenrank.files import EQUAL, Array
from evenrank.stats import (
    SIGNIFICANT,
    Interval,
    MeanEstimate,
    ResampledSizes,
    combined_estimate,
    compare,
    confidence_interval,
    mean_estimate,
    p_two_sided,
    t_quantile,
)

LEAST_SEEDS = 5
"""With fewer trainings a claim is of these trainings alone."""


def unseen_share(seeds: int) -> float | None:
    """The share of trainings in which a failure may go unseen, 1 − .05^(1/S); None with fewer than five.

    >>> round(unseen_share(5), 2)
    0.45
    """
    return 1 - SIGNIFICANT ** (1 / seeds) if seeds >= LEAST_SEEDS else None


@dataclass(frozen=True, slots=True)
class RandomEffects:
    """The mean difference over seeds, and its error; p two-sided, None if untested.

    ``estimate``: the mean with its error, None with too few values; ``seeds``: the number of trainings, 0 of a figure
    that is counted; ``limit``: of which the error mostly comes, seeds or queries: more of these would narrow the
    interval. ``ci95`` and ``ci90``: where they are not those of ``estimate``.
    """

    mean: float | None
    estimate: MeanEstimate | None
    p: float | None
    seeds: int
    queries: int
    limit: Literal["seeds", "queries"] = "queries"
    ci95: Interval | None = None
    ci90: Interval | None = None

    @property
    def n(self) -> int:
        """The number of what limits the test."""
        return self.seeds if self.limit == "seeds" else self.queries

    def interval(self, level: float = 0.95) -> Interval | None:
        """The two-sided interval of the mean."""
        known = {0.95: self.ci95, 0.9: self.ci90}.get(level)
        if known is not None:
            return known
        return None if self.estimate is None else confidence_interval(self.estimate, level)


def random_effects_test(differences: Sequence[Array], *, same_queries: bool = False) -> RandomEffects:
    """Whether differences d[s, q] of two systems, queries q in trainings (seeds) s, have mean 0.

    The mean is that of the seeds' means. With fewer than five seeds it is said of these trainings: a query counts with
    its mean over them. From five on it is said of trainings like these: V = V_seeds + V_queries, with S − 1 degrees of
    freedom; V_seeds = s²(seeds' means)/S, V_queries = s²(queries' means)/Q.

    Args:
        differences: The values [Q_s] of each seed; NaN values are left out, and with ``same_queries`` every query that
            a seed lacks.
        same_queries: Every seed has the same queries in the same order. Else each seed has queries of its own, which
            are then in V_seeds already.

    When it misleads: a training that fails in one of many is not among five.

    >>> found = random_effects_test([np.array([0.1, 0.3, 0.2]), np.array([0.3, 0.5, 0.4])], same_queries=True)
    >>> round(found.mean, 6), found.seeds, found.queries
    (0.3, 2, 3)
    """
    tables = [difference for difference in differences if not np.isnan(difference).all()]
    known = [np.where(np.abs(one) <= EQUAL, 0.0, one)[~np.isnan(one)] for one in tables]
    seeds, queries = len(known), sum(map(len, known))
    if not queries:
        return RandomEffects(None, None, None, seeds, 0)
    means = np.array([one.mean() for one in known])
    of_queries = None
    if same_queries or seeds == 1:
        table = np.stack(tables)
        # The queries of every training: others would give a query's mean and a training's other weights.
        table = table[:, ~np.isnan(table).any(axis=0)]
        of_queries, queries = table.mean(axis=0), table.shape[1]
        if not queries:
            return RandomEffects(None, None, None, seeds, 0)
        means = table.mean(axis=1)
    if seeds < LEAST_SEEDS:
        return _of_these(float(means.mean()), known, of_queries, queries)
    by_queries = 0.0 if of_queries is None or queries < 2 else float(of_queries.var(ddof=1)) / queries
    return of_trainings(float(means.mean()), means, by_queries, queries)


def size_test(
    first: Sequence[Array], second: Sequence[Array], factor: float = 1.0, *, same_queries: bool = False
) -> RandomEffects:
    """Whether |mean of a[s, q]| − factor × |mean of b[s, q]| is 0, by a bootstrap of queries nested in seeds s
    (:class:`ResampledSizes`).

    The means are those of the seeds' means. Both are resampled together: queries with replacement (with
    ``same_queries`` the same for every seed, else each seed's own); from five seeds on the seeds' deviations are added,
    drawn from the multivariate t with S − 1 degrees of freedom, and are all of it where queries are the seeds' own.
    With fewer seeds it is said of these trainings.

    Args:
        first, second: Of each seed the values [Q_s]; a pair without one of the two is left out.
        factor: What the second size is multiplied by.
    """
    pairs = [np.stack(both, axis=1) * (1.0, factor) for both in zip(first, second, strict=True)]
    pairs = [one[~np.isnan(one).any(axis=1)] for one in pairs] if not same_queries else pairs
    if same_queries and pairs:
        kept = ~np.isnan(np.stack(pairs)).any(axis=(0, 2))
        pairs = [one[kept] for one in pairs]
    pairs = [one for one in pairs if len(one)]
    seeds, queries = len(pairs), sum(map(len, pairs[:1] if same_queries else pairs))
    if not queries:
        return RandomEffects(None, None, None, seeds, 0)
    means = np.array([one.mean(axis=0) for one in pairs])
    centre = means.mean(axis=0)
    mean = float(abs(centre[0]) - abs(centre[1]))
    if queries < 2:
        return RandomEffects(mean, None, None, seeds, queries)
    rng, several = np.random.default_rng(0), seeds >= LEAST_SEEDS
    by_queries, by_seeds = np.zeros((2, DRAWS, 2))
    if same_queries:
        by_queries = _resampled(np.mean(pairs, axis=0), rng)
    elif not several:
        by_queries = np.mean([_resampled(one, rng) for one in pairs], axis=0)
    if several:
        draws = rng.normal(size=(DRAWS, seeds)) @ (means - centre) / np.sqrt(seeds * (seeds - 1))
        by_seeds = draws / np.sqrt(rng.chisquare(seeds - 1, DRAWS) / (seeds - 1))[:, None]
    drawn = ResampledSizes(centre + by_queries + by_seeds)
    low, high = drawn.interval(0.95)
    estimate = MeanEstimate(mean, (high - low) / 2 / float(t_quantile(queries - 1.0, 0.975)), queries - 1.0)
    limit: Literal["seeds", "queries"] = "seeds" if by_seeds.var() > by_queries.var() else "queries"
    return RandomEffects(mean, estimate, drawn.p, seeds, queries, limit, (low, high), drawn.interval(0.9))


DRAWS = 2_000


def _resampled(pairs: Array, rng: np.random.Generator) -> Array:
    """Deviations [DRAWS, 2] of the mean of resampled rows [Q, 2], as wide as Student's t makes an interval."""
    count = len(pairs)
    times = (np.bincount(rng.integers(count, size=count), minlength=count) for _ in range(DRAWS))
    found = np.array([of @ pairs for of in times]) / count
    wide = t_quantile(max(1.0, count - 1.0), 0.975) / t_quantile(np.inf, 0.975)
    deviations: Array = (found - pairs.mean(axis=0)) * np.sqrt(count / max(1, count - 1)) * wide
    return deviations


def of_trainings(mean: float, means: Array, by_queries: float, queries: int) -> RandomEffects:
    """The test of a ``mean`` over trainings like these: V_seeds of the seeds' ``means`` [S] and V_queries."""
    by_seeds = float(means.var(ddof=1)) / len(means)
    estimate = MeanEstimate(mean, math.sqrt(by_seeds + by_queries), len(means) - 1.0)
    limit: Literal["seeds", "queries"] = "seeds" if by_seeds >= by_queries else "queries"
    return RandomEffects(mean, estimate, _p(estimate), len(means), queries, limit)


def _of_these(mean: float, known: list[Array], of_queries: Array | None, queries: int) -> RandomEffects:
    """Of these trainings alone: only queries are a sample."""
    if of_queries is not None and queries > 1:
        found = compare.compare(of_queries, zeros="keep")
        p = 1.0 if found.p is None and not of_queries.any() else found.p
        estimate = mean_estimate(of_queries)
        return RandomEffects(mean, estimate, p, len(known), queries, ci95=found.ci95)
    if of_queries is None and min(map(len, known)) > 1:
        estimate = combined_estimate(known, [1 / len(known)] * len(known))
        return RandomEffects(mean, estimate, _p(estimate), len(known), queries)
    # A figure of whole trainings has no error but theirs.
    return RandomEffects(mean, None, None, len(known), queries, "seeds" if len(known) > 1 else "queries")


def _p(estimate: MeanEstimate) -> float | None:
    """The p of the mean; None where there is no error to compare it with."""
    if estimate.se <= EQUAL:
        return 1.0 if abs(estimate.value) <= EQUAL else None
    return p_two_sided(estimate)
