"""Differences of two systems over several trainings: of these trainings, or of trainings like these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from evenrank.files.types import EQUAL, Array

from .compare import compare
from .estimate import (
    SIGNIFICANT,
    Interval,
    MeanEstimate,
    combined_estimate,
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

    >>> test = random_effects_test([np.array([0.1, 0.3, 0.2]), np.array([0.3, 0.5, 0.4])], same_queries=True)
    >>> round(test.mean, 6), test.seeds, test.queries
    (0.3, 2, 3)
    """
    trainings = _complete([np.where(np.abs(values) <= EQUAL, 0.0, values) for values in differences], same_queries)
    seeds, queries = len(trainings), sum(map(len, trainings[:1] if same_queries else trainings))
    if not queries:
        return RandomEffects(None, None, None, seeds, 0)
    means = np.array([values.mean() for values in trainings])
    of_queries = np.mean(trainings, axis=0) if same_queries or seeds == 1 else None
    if seeds < LEAST_SEEDS:
        return _of_these(float(means.mean()), trainings, of_queries, queries)
    by_queries = 0.0 if of_queries is None or queries < 2 else float(of_queries.var(ddof=1)) / queries
    return of_trainings(float(means.mean()), means, by_queries, queries)


def _complete(trainings: Sequence[Array], same_queries: bool) -> list[Array]:
    """The values [Q_s, …] of the trainings that have some, without undefined ones; with ``same_queries`` of the queries
    of every training: others would give a query's mean and a training's other weights."""
    known = [~np.isnan(values).reshape(len(values), -1).any(axis=1) for values in trainings]
    some = [(values, there) for values, there in zip(trainings, known, strict=True) if there.any()]
    if same_queries and some:
        shared = np.all([there for _, there in some], axis=0)
        return [values[shared] for values, _ in some]
    return [values[there] for values, there in some]


class ResampledSizes:
    """|a| − |b| of two means, from ``draws`` [D, 2] of both together.

    |a| > |b| is a statement about a + b and a − b: both are above 0, or −a − b and −a + b are. So it is said where both
    lower bounds of one of these pairs are above 0 (an intersection–union test), and holds near 0 too, where the
    bootstrap of an absolute value does not.
    """

    def __init__(self, draws: Array) -> None:
        self.draws = draws

    @cached_property
    def _contrasts(self) -> Array:
        """[2, 2, 2, D]: whether a or b is the larger, by its sign: the sum and the difference."""
        a, b = self.draws.T
        pairs = ((a, b), (b, a))
        return np.array([[[sign * first + other, sign * first - other] for sign in (1, -1)] for first, other in pairs])

    def interval(self, level: float) -> Interval:
        """The two-sided interval of |a| − |b|."""
        low = np.quantile(self._contrasts, (1 - level) / 2, axis=-1).min(axis=-1).max(axis=-1)
        return float(low[0]), float(-low[1])

    @property
    def p(self) -> float:
        """The two-sided p of |a| = |b|."""
        return min(1.0, 2 * float((self._contrasts <= 0).mean(axis=-1).max(axis=-1).min()))


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
    pairs = _complete(pairs, same_queries)
    seeds, queries = len(pairs), sum(map(len, pairs[:1] if same_queries else pairs))
    if not queries:
        return RandomEffects(None, None, None, seeds, 0)
    means = np.array([values.mean(axis=0) for values in pairs])
    centre = means.mean(axis=0)
    mean = float(abs(centre[0]) - abs(centre[1]))
    if queries < 2:
        return RandomEffects(mean, None, None, seeds, queries)
    rng, several = np.random.default_rng(0), seeds >= LEAST_SEEDS
    by_queries, by_seeds = np.zeros((2, DRAWS, 2))
    if same_queries:
        by_queries = _resampled(np.mean(pairs, axis=0), rng)
    elif not several:
        by_queries = np.mean([_resampled(values, rng) for values in pairs], axis=0)
    if several:
        draws = rng.normal(size=(DRAWS, seeds)) @ (means - centre) / np.sqrt(seeds * (seeds - 1))
        by_seeds = draws / np.sqrt(rng.chisquare(seeds - 1, DRAWS) / (seeds - 1))[:, None]
    drawn = ResampledSizes(centre + by_queries + by_seeds)
    low, high = drawn.interval(0.95)
    estimate = MeanEstimate(mean, (high - low) / 2 / float(t_quantile(queries - 1.0, 0.975)), queries - 1.0)
    limit: Literal["seeds", "queries"] = "seeds" if by_seeds.var() > by_queries.var() else "queries"
    return RandomEffects(mean, estimate, drawn.p, seeds, queries, limit, (low, high), drawn.interval(0.9))


DRAWS = 2_000
_AT_ONCE = 1 << 18
"""Numbers that are drawn at once."""


def _resampled(pairs: Array, rng: np.random.Generator) -> Array:
    """Deviations [DRAWS, 2] of the mean of resampled rows [Q, 2], as wide as Student's t makes an interval."""
    count = len(pairs)
    means, some = np.empty((DRAWS, 2)), max(1, _AT_ONCE // count)
    for first in range(0, DRAWS, some):
        rows = np.arange(len(means[first : first + some]))[:, None]
        chosen = rng.integers(count, size=(len(rows), count)) + rows * count
        times = np.bincount(chosen.ravel(), minlength=chosen.size).reshape(chosen.shape)
        means[first : first + some] = times @ pairs / count
    wide = t_quantile(max(1.0, count - 1.0), 0.975) / t_quantile(np.inf, 0.975)
    deviations: Array = (means - pairs.mean(axis=0)) * np.sqrt(count / max(1, count - 1)) * wide
    return deviations


def of_trainings(mean: float, means: Array, by_queries: float, queries: int) -> RandomEffects:
    """The test of a ``mean`` over trainings like these: V_seeds of the seeds' ``means`` [S] and V_queries."""
    by_seeds = float(means.var(ddof=1)) / len(means)
    estimate = MeanEstimate(mean, math.sqrt(by_seeds + by_queries), len(means) - 1.0)
    limit: Literal["seeds", "queries"] = "seeds" if by_seeds >= by_queries else "queries"
    return RandomEffects(mean, estimate, _p(estimate), len(means), queries, limit)


def _of_these(mean: float, trainings: list[Array], of_queries: Array | None, queries: int) -> RandomEffects:
    """Of these trainings alone: only queries are a sample."""
    seeds = len(trainings)
    if of_queries is not None and queries > 1:
        comparison = compare(of_queries, zeros="keep")
        p = 1.0 if comparison.p is None and not of_queries.any() else comparison.p
        return RandomEffects(mean, mean_estimate(of_queries), p, seeds, queries, ci95=comparison.ci95)
    if of_queries is None and min(map(len, trainings)) > 1:
        estimate = combined_estimate(trainings, [1 / seeds] * seeds)
        return RandomEffects(mean, estimate, _p(estimate), seeds, queries)
    # A figure of whole trainings has no error but theirs.
    return RandomEffects(mean, None, None, seeds, queries, "seeds" if seeds > 1 else "queries")


def _p(estimate: MeanEstimate) -> float | None:
    """The p of the mean; None where there is no error to compare it with."""
    if estimate.se <= EQUAL:
        return 1.0 if abs(estimate.value) <= EQUAL else None
    return p_two_sided(estimate)
