"""Intervals and tests over queries, and over queries nested in seeds. NaN is undefined."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenrank.io.tolerances import EQUAL as EQUAL
from evenrank.io.tolerances import NEAR_ZERO as NEAR_ZERO
from evenrank.io.tolerances import holm as holm
from evenrank.io.types import Array

# Here as well, for what reads no more than statistics; the gate starts without this folder.

BOOTSTRAP_DRAWS = 2000
PERMUTATIONS = 10_000
MARGIN = 0.05
SIGNIFICANT = 0.05
_CHUNK = 100
_MOST_KEPT = 1 << 24
_ALL_SIGNS = 13
_EXACT = 50


def bootstrap_weights(queries: int, seed: int, draws: int, clusters: Array | None = None) -> Iterator[Array]:
    """How often each query is drawn, in pieces [·, Q] of ``draws`` draws in all.

    ``clusters`` [Q]: the number, from 0, of what a query shares with others (its passage): whole clusters are drawn.
    """
    units = queries if clusters is None else int(clusters.max()) + 1
    chunk = max(1, min(_CHUNK, 4_000_000 // max(queries, 1)))
    few = units * draws <= _MOST_KEPT
    for drawn in _kept_counts(units, seed, draws, chunk) if few else _counts(units, seed, draws, chunk):
        weights = drawn.astype(np.float64)
        yield weights if clusters is None else weights[:, clusters]


def _counts(units: int, seed: int, draws: int, chunk: int) -> Iterator[Array]:
    """How often each of ``units`` is drawn, in pieces [chunk, units]."""
    rng = np.random.default_rng(seed)
    for start in range(0, draws, chunk):
        count = min(chunk, draws - start)
        picks = rng.integers(0, units, (count, units)) + np.arange(count)[:, None] * units
        yield np.bincount(picks.ravel(), minlength=count * units).reshape(count, units)


@functools.lru_cache(maxsize=4)
def _kept_counts(units: int, seed: int, draws: int, chunk: int) -> tuple[Array, ...]:
    """:func:`_counts`, kept: an audit draws the same queries for each of its tables."""
    every = _counts(units, seed, draws, chunk)
    return tuple(counts.astype(np.min_scalar_type(int(counts.max(initial=0)))) for counts in every)


def bootstrap_means(values: Array, seed: int, draws: int = BOOTSTRAP_DRAWS, *, clusters: Array | None = None) -> Array:
    """Means [draws, M] of M measures over queries drawn with replacement, from values [Q, M].

    All measures see the same draws, so differences between columns are paired. A draw without a defined value of a
    measure is NaN there. ``clusters``: see :func:`bootstrap_weights`.
    """
    defined = ~np.isnan(values)
    filled = np.where(defined, values, 0.0)
    whole = clusters is None and bool(defined.all())
    means = []
    for weights in bootstrap_weights(len(values), seed, draws, clusters):
        total = weights @ filled
        number = np.full(total.shape, float(len(values))) if whole else weights @ defined
        means.append(np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0))
    return np.concatenate(means)


def interval(draws: Array) -> tuple[float, float] | None:
    """The 95% percentile interval of bootstrap draws [D]; None where no draw is defined."""
    defined = draws[~np.isnan(draws)]
    if not len(defined):
        return None
    low, high = np.percentile(defined, [2.5, 97.5])
    return float(low), float(high)


@dataclass(frozen=True, slots=True)
class Paired:
    """A run against a baseline on the queries where both have a value, tests two-sided; None where there is none."""

    n: int
    difference: float | None
    t_p: float | None
    wilcoxon_p: float | None


def paired_tests(values: Array, baseline: Array) -> Paired:
    """Paired t-test and Wilcoxon signed-rank test of values [Q] against baseline values [Q].

    Where no query differs both p are 1; with fewer than two queries there is no test, and no t-test where all queries
    differ by the same.
    """
    difference = values - baseline
    difference = difference[~np.isnan(difference)]
    difference[np.abs(difference) <= EQUAL] = 0.0
    n = len(difference)
    if n == 0:
        return Paired(0, None, None, None)
    mean = float(difference.mean())
    if n < 2:
        return Paired(n, mean, None, None)
    if not difference.any():
        return Paired(n, mean, 1.0, 1.0)
    from scipy.special import stdtr

    spread = float(difference.std(ddof=1)) / np.sqrt(n)
    t_p = float(2 * stdtr(n - 1, -abs(mean) / spread)) if np.ptp(difference) > EQUAL else None
    return Paired(n, mean, t_p, _signed_ranks_p(difference))


def _signed_ranks_p(difference: Array) -> float:
    """Two-sided p of Wilcoxon's signed-rank test, exact or by the normal approximation where SciPy's is."""
    sizes = np.abs(difference)
    plain = bool(sizes.all()) and len(np.unique(sizes)) == len(sizes)
    if plain and len(sizes) <= _EXACT:
        return _exact_p(difference)
    # SciPy goes through the same signs, but takes up to two seconds for them.
    return _all_signs_p(difference) if len(sizes) <= _ALL_SIGNS else _normal_p(difference)


def _exact_p(difference: Array) -> float:
    """Two-sided p of the signed ranks of differences without zeros and ties: SciPy's, whose import takes a second."""
    n = len(difference)
    chance = np.ones(1)
    for rank in range(1, n + 1):
        longer = np.zeros(len(chance) + rank)
        longer[: len(chance)] = chance * 0.5
        longer[rank:] += chance * 0.5
        chance = longer
    order = np.argsort(np.abs(difference), kind="stable")
    positive = int((np.flatnonzero(difference[order] > 0) + 1).sum())
    # Whole numbers of 2⁻ⁿ, so their sums are exact in any order.
    return float(min(1.0, 2 * min(chance[: positive + 1].sum(), chance[positive:].sum())))


def _ranks(sizes: Array) -> tuple[Array, Array]:
    """The ranks [N] of sizes from 1, equal ones sharing their mean; and how many share each [T]."""
    _, place, count = np.unique(sizes, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place], count


def _normal_p(difference: Array) -> float:
    """Two-sided p of the signed ranks by the normal approximation, corrected for ties; zeros are left out."""
    from scipy.special import ndtr

    present = difference[difference != 0]
    n = len(present)
    ranks, shared = _ranks(np.abs(present))
    shared = shared.astype(np.float64)
    variance = (n * (n + 1.0) * (2 * n + 1) - (shared**3 - shared).sum() / 2) / 24
    z = (ranks[present > 0].sum() - n * (n + 1.0) / 4) / np.sqrt(variance)
    return float(2 * ndtr(-abs(z)))


def _all_signs_p(difference: Array) -> float:
    """Two-sided p of Wilcoxon's signed ranks over every way to give the differences signs; zeros are left out."""
    present = difference[difference != 0]
    # Ranks that are shared are halves.
    ranks = np.rint(2 * _ranks(np.abs(present))[0]).astype(np.int64)
    sums = np.zeros(1, np.int64)
    for rank in ranks:
        sums = np.concatenate([sums, sums + rank])
    observed = ranks[present > 0].sum()
    return float(min(1.0, 2 * min((sums <= observed).mean(), (sums >= observed).mean())))


def non_inferior(values: Array, baseline: Array, seed: int, margin: float = MARGIN) -> bool | None:
    """Whether the mean of values [Q] is shown to be no more than ``margin`` (relative) below the baseline's.

    True where the lower end of the one-sided 95% bootstrap interval of the difference lies above −margin × baseline
    mean, which a single query cannot show; None without a query where both are defined or where the baseline's mean is
    not above 0.
    """
    both = ~np.isnan(values - baseline)
    if not both.any() or baseline[both].mean() <= 0:
        return None
    if both.sum() < 2:
        return False
    draws = bootstrap_means((values - baseline)[both][:, None], seed)
    return bool(np.percentile(draws, 5) > -margin * baseline[both].mean())


def permuted_group_p(first: Array, second: Array, seed: int, permutations: int = PERMUTATIONS) -> float | None:
    """Two-sided p that the means of two groups' values differ, by permutation of the group labels.

    ``first`` and ``second`` hold each group's values (NaN left out). (1 + as extreme) / (1 + permutations).
    """
    first, second = first[~np.isnan(first)], second[~np.isnan(second)]
    if not len(first) or not len(second):
        return None
    pooled = np.concatenate([first, second])
    observed = abs(first.mean() - second.mean())
    rng = np.random.default_rng(seed)
    extreme = 0
    for start in range(0, permutations, _CHUNK):
        count = min(_CHUNK, permutations - start)
        shuffled = rng.permuted(np.broadcast_to(pooled, (count, len(pooled))), axis=1)
        means = shuffled[:, : len(first)].mean(axis=1) - shuffled[:, len(first) :].mean(axis=1)
        extreme += int((np.abs(means) >= observed - 1e-12).sum())
    return (1 + extreme) / (1 + permutations)


def permuted_runs_p(values: Array, baseline: Array, seed: int, permutations: int = PERMUTATIONS) -> float | None:
    """Two-sided p that |mean| of two runs' values [Q] differ, by swapping the runs' values query by query."""
    both = ~np.isnan(values - baseline)
    if both.sum() < 2:
        return None
    a, b = values[both], baseline[both]
    observed = abs(abs(a.mean()) - abs(b.mean()))
    rng = np.random.default_rng(seed)
    middle, half = (a + b).mean() / 2, (a - b) / 2
    extreme = 0
    for start in range(0, permutations, _CHUNK):
        count = min(_CHUNK, permutations - start)
        signs = rng.integers(0, 2, (count, len(a))) * 2.0 - 1
        shift = signs @ half / len(a)
        extreme += int((np.abs(np.abs(middle + shift) - np.abs(middle - shift)) >= observed - 1e-12).sum())
    return (1 + extreme) / (1 + permutations)


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
