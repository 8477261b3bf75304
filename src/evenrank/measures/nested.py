"""Tests over queries nested in seeds: a mixed view of repeated trainings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenrank.io.types import Array

from .statistics import EQUAL


@dataclass(frozen=True, slots=True)
class Mixed:
    """The mean difference over seeds, its standard error and degrees of freedom; p two-sided, None if untested.

    limit: of which the error mostly comes, seeds or queries: more of these would narrow the interval.
    """

    mean: float | None
    error: float | None
    freedom: float | None
    p: float | None
    seeds: int
    queries: int
    limit: Literal["seeds", "queries"] = "queries"

    @property
    def n(self) -> int:
        """The number of what limits the test."""
        return self.seeds if self.limit == "seeds" else self.queries

    def interval(self, level: float = 0.95) -> tuple[float, float] | None:
        """The two-sided interval of the mean."""
        if self.mean is None or self.error is None or self.freedom is None:
            return None
        from scipy import stats

        half = float(stats.t.ppf((1 + level) / 2, self.freedom)) * self.error
        return self.mean - half, self.mean + half


@dataclass(frozen=True, slots=True)
class _Error:
    """A standard error, its degrees of freedom, and of which it mostly comes; None with too few values."""

    size: float | None
    freedom: float | None
    limit: Literal["seeds", "queries"]


def mixed_test(differences: Sequence[Array], *, same_queries: bool = False) -> Mixed:
    """Tests whether differences d[s, q] of two systems, queries q in seeds s, have mean 0.

    The model is d[s, q] = μ + seed + error: a seed is one training, which all its queries share. μ is the mean of the
    seeds' means; its variance is (σ_seed² + σ²/n_s) / S², the components by the analysis of variance. Where seeds
    differ by more than their queries explain, the test has S − 1 degrees of freedom, as the t-test over seeds; where
    they do not, all queries count (from three seeds on). With one seed it is the paired t-test over its queries.

    ``same_queries``: every seed has the same queries in the same order, so that d[s, q] = μ + seed + query + error:
    the variances of the seeds' and of the queries' means add, less that of the error, which is in both; degrees of
    freedom by Satterthwaite's approximation. Where a seed lacks some of the queries (NaN) nothing is subtracted, which
    makes the error larger, never smaller.

    Values that are NaN are left out.
    """
    known = [one[~np.isnan(one)] for one in differences]
    known = [np.where(np.abs(one) <= EQUAL, 0.0, one) for one in known if len(one)]
    seeds, queries = len(known), sum(map(len, known))
    if not queries:
        return Mixed(None, None, None, None, seeds, 0)
    means = np.array([one.mean() for one in known])
    mean = float(means.mean())
    if same_queries and seeds > 1:
        table = np.stack([one for one in differences if not np.isnan(one).all()])
        queries = int((~np.isnan(table)).any(axis=0).sum())
        found = _crossed(table, means)
    else:
        found = _nested(known, means)
    return Mixed(mean, found.size, found.freedom, _p(mean, found), seeds, queries, found.limit)


def _nested(known: Sequence[Array], means: Array) -> _Error:
    """The error of the mean of the seeds' means, each seed with queries of its own."""
    sizes = np.array([len(one) for one in known])
    seeds, total = len(known), int(sizes.sum())
    inside = sum(float(((one - one.mean()) ** 2).sum()) for one in known)
    if total == seeds:
        # One value a seed: the t-test over them.
        error = None if seeds < 2 else float(means.std(ddof=1)) / math.sqrt(seeds)
        return _Error(error, None if error is None else seeds - 1.0, "seeds" if seeds > 1 else "queries")
    within = inside / (total - seeds)
    if seeds == 1:
        return _Error(math.sqrt(within / total), total - 1.0, "queries")
    grand = float((sizes * means).sum() / total)
    between = float((sizes * (means - grand) ** 2).sum()) / (seeds - 1)
    typical = (total - float((sizes**2).sum()) / total) / (seeds - 1)
    component = max(0.0, (between - within) / typical)
    error = math.sqrt(float((component + within / sizes).sum())) / seeds
    if component or seeds == 2:
        # Two seeds that happen to agree do not show that seeds agree: all queries would reject too often.
        return _Error(error, float(seeds - 1), "seeds")
    return _Error(error, float(total - seeds), "queries")


def _crossed(table: Array, means: Array) -> _Error:
    """The error of the mean of the seeds' means, all seeds with the same queries: [seeds, queries]; may have NaN."""
    table = table[:, (~np.isnan(table)).any(axis=0)]
    seeds, queries = table.shape
    if queries < 2:
        return _Error(float(means.std(ddof=1)) / math.sqrt(seeds), seeds - 1.0, "seeds")
    of_queries = np.nanmean(table, axis=0)
    parts = [(float(means.var(ddof=1)) / seeds, seeds - 1), (float(of_queries.var(ddof=1)) / queries, queries - 1)]
    by_seeds, by_queries = parts[0][0], parts[1][0]
    total = by_seeds + by_queries
    if not np.isnan(table).any():
        rest = table - means[:, None] - of_queries + means.mean()
        residual = float((rest**2).sum()) / ((seeds - 1) * (queries - 1)) / (seeds * queries)
        # A component below 0 is none: the larger of the two errors is left.
        total = max(total - residual, by_seeds, by_queries)
    squares = sum(part**2 / freedom for part, freedom in parts)
    freedom = total**2 / squares if squares else float(seeds - 1)
    return _Error(math.sqrt(total), freedom, "seeds" if by_seeds > by_queries else "queries")


def crossed_figures(values: Array, draws: Array, queries: int) -> Mixed:
    """The mean over seeds of a figure of whole runs [S] whose seeds share queries; ``draws`` [S, D]: the figure for
    bootstrap draws of the queries, the same for all seeds.

    As in :func:`mixed_test` with ``same_queries``, the variance over seeds and that over queries add; nothing is
    subtracted for what is in both, so the error is too large rather than too small. With one seed it is over queries.
    """
    known = ~np.isnan(values)
    values, draws, seeds = values[known], draws[known], int(known.sum())
    if not seeds:
        return Mixed(None, None, None, None, 0, 0)
    parts = [(float(np.nanvar(draws.mean(axis=0), ddof=1)), queries - 1)]
    if seeds > 1:
        parts.append((float(values.var(ddof=1)) / seeds, seeds - 1))
    total = sum(part for part, _ in parts)
    mean, error = float(values.mean()), math.sqrt(total)
    limit: Literal["seeds", "queries"] = "seeds" if seeds > 1 and parts[1][0] > parts[0][0] else "queries"
    if error <= EQUAL:
        return Mixed(mean, error, 1.0, 1.0 if abs(mean) <= EQUAL else None, seeds, queries, limit)
    from scipy import stats

    freedom = total**2 / sum(part**2 / free for part, free in parts)
    return Mixed(mean, error, freedom, float(2 * stats.t.sf(abs(mean) / error, freedom)), seeds, queries, limit)


def _p(mean: float, found: _Error) -> float | None:
    if found.size is None or found.freedom is None:
        return None
    if found.size <= EQUAL:
        return 1.0 if abs(mean) <= EQUAL else None
    from scipy import stats

    return float(2 * stats.t.sf(abs(mean) / found.size, found.freedom))
