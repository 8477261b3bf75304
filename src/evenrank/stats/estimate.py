"""Means with their standard errors, and intervals by Student's t and Hall's skewness-corrected t. NaN is undefined.

[HALL92] Hall (1992). On the removal of skewness by transformation. J. R. Statist. Soc. B 54(1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenrank.files.types import EQUAL as EQUAL
from evenrank.files.types import NEAR_ZERO as NEAR_ZERO
from evenrank.files.types import Array

from .clusters import ClusterSums, cluster_sizes, effective_clusters
from .distributions import stdtr, stdtrit
from .sampling import LabelSample

Interval = tuple[float, float]

SIGNIFICANT = 0.05
"""The level of every verdict."""
POWER = 0.8
SKEWNESS_FACTOR = 6.0
"""c of a mean over all values: a sample's skewness, times 1 + c/n, stands for that of the population."""
SPARSE_SKEWNESS_FACTOR = 10.0
"""c of a mean over the values that are not 0, which are few and long-tailed."""
AUGMENTED_BELOW = 30
"""With fewer values a sample may lack its longer tail: one value more is added on the other side."""
_HALVINGS = 30


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure: its value, its 95% interval, and the number of its units.

    Attributes:
        mean: The value; None if it is undefined.
        ci95: Its interval; None with fewer than two values, or where it would have no width.
        n: Number of units with a value; ``unit``: what they are, in the plural.
    """

    mean: float | None
    ci95: Interval | None
    n: int
    unit: str = "queries"

    def negated(self) -> Estimate:
        """The same figure with the opposite sign."""
        mean = None if self.mean is None else -self.mean
        ci95 = None if self.ci95 is None else (-self.ci95[1], -self.ci95[0])
        return Estimate(mean, ci95, self.n, self.unit)


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean, or a weighted sum of the means of independent samples.

    Attributes:
        value: The estimate.
        se: Its standard error; 0 if the values do not differ.
        df: Degrees of freedom of the standard error; Welch–Satterthwaite's for several samples.
        skewness: Skewness of the estimate: that of the values, corrected for a small sample, over √n.
    """

    value: float
    se: float
    df: float
    skewness: float = 0.0

    def __neg__(self) -> MeanEstimate:
        return MeanEstimate(-self.value, self.se, self.df, -self.skewness)


def mean_estimate(
    values: Array | ClusterSums, clusters: Array | None = None, skewness_factor: float = SKEWNESS_FACTOR
) -> MeanEstimate:
    """The mean of two or more values [n], or of their sums by cluster, with its standard error.

    With ``clusters`` [n] (whole numbers; None: each value its own) the standard error is that of the delete-one-cluster
    jackknife (CR3), V = (G − 1)/G · Σ(x̄₍₋c₎ − x̄)², which is s²/n where each value is its own cluster. Degrees of
    freedom are G* − 1, with G* = n²/Σn_c² the number of clusters of equal size that are worth as much. The skewness is
    Σe³/(Σe²)^1.5 · (1 + c/G*), e_c the cluster's sum of deviations from the mean and c the ``skewness_factor``.

    Worked example: of 1, 2, 3 and 6 the mean is 3, s² = 14/3 and the standard error √(7/6). As the clusters (1, 2) and
    (3, 6), which leave means of 4.5 and 1.5 behind, V = 1/2 · (1.5² + 1.5²) = 2.25.

    >>> values = np.array([1.0, 2.0, 3.0, 6.0])
    >>> round(mean_estimate(values).se ** 2, 6), mean_estimate(values, np.array([0, 0, 1, 1])).se
    (1.166667, 1.5)
    """
    return combined_estimate([values], (1.0,), None if clusters is None else [clusters], skewness_factor)


def combined_estimate(
    samples: Sequence[Array | ClusterSums],
    factors: Sequence[float],
    clusters: Sequence[Array] | None = None,
    skewness_factor: float = SKEWNESS_FACTOR,
) -> MeanEstimate:
    """Σ factor × mean of independent ``samples`` [n], of two or more values each, as :func:`mean_estimate` has one.

    Clusters that reach over samples count in each as its own. Of a difference of two samples that is cautious where a
    cluster's values are alike: their covariance would make it more certain.
    """
    value = variance = squares = third = satterthwaite = 0.0
    most = 0
    for k, (factor, sample) in enumerate(zip(factors, samples, strict=True)):
        sums = as_sums(sample, None if clusters is None else clusters[k])
        n, mean, sizes = sums.n, sums.mean, sums.sizes
        most = max(most, n)
        deviations, number = sums.totals - sizes * mean, effective_clusters(sizes)
        # Leaving a cluster out moves the mean by −e/(n − n_c).
        shifts = deviations / np.maximum(n - sizes, 1)
        own = (len(sizes) - 1) / len(sizes) * float(shifts @ shifts)
        plain = float(deviations @ deviations) / n**2
        value += factor * mean
        variance += factor**2 * own
        squares += factor**2 * plain
        third += factor**3 * (1 + skewness_factor / number) * float((deviations**3).sum()) / n**3
        satterthwaite += (factor**2 * own) ** 2 / max(number - 1, EQUAL)
    # What is left of equal values is rounding.
    if math.sqrt(variance * most) <= EQUAL:
        return MeanEstimate(value, 0.0, 1.0)
    return MeanEstimate(value, math.sqrt(variance), variance**2 / satterthwaite, third / squares**1.5)


# --- tests and intervals of a mean -----------------------------------------------------------------------------------


def adjusted_t_sf(t: float, df: float, skewness: float = 0.0) -> float:
    """One-sided p of a t statistic: the larger of Student's and of Hall's, which takes the skewness out.

    With κ the skewness of the estimate, t_H = t + κt²/3 + κ²t³/27 + κ/6 [HALL92, section 2]. Student's t alone claims
    too much on one side of skewed values, Hall's on both sides of values with long tails.
    """
    hall = t + skewness / 6 + skewness * t**2 / 3 + skewness**2 * t**3 / 27
    return float(stdtr(df, -min(t, hall)))


def p_greater(estimate: MeanEstimate, bound: float = 0.0, *, inclusive: bool = False) -> float:
    """One-sided p of the claim that the true mean is above ``bound`` (``inclusive``: or equal to it).

    Values that do not differ decide by the value alone.

    >>> round(p_greater(MeanEstimate(0.5, 0.2, 29.0)), 4)
    0.0092
    """
    if estimate.se == 0:
        return float(not (estimate.value > bound + EQUAL or (inclusive and estimate.value >= bound - EQUAL)))
    return adjusted_t_sf((estimate.value - bound) / estimate.se, estimate.df, estimate.skewness)


def p_two_sided(estimate: MeanEstimate) -> float:
    """Two-sided p that the mean is 0: twice the larger of the tests' p, 1 where their signs differ."""
    if estimate.se == 0:
        return 1.0 if abs(estimate.value) <= EQUAL else 0.0
    return min(1.0, 2 * p_greater(estimate if estimate.value >= 0 else -estimate))


def ci_lower(estimate: MeanEstimate, alpha: float) -> float:
    """Lower confidence limit at the one-sided level ``alpha``: the bound for which :func:`p_greater` is ``alpha``."""
    t, skewness = t_quantile(estimate.df, 1 - alpha), estimate.skewness
    if abs(skewness) > EQUAL:
        # The inverse of Hall's transformation.
        t = max(t, 3 * (float(np.cbrt(1 + skewness * (t - skewness / 6))) - 1) / skewness)
    return estimate.value - t * estimate.se


def ci_upper(estimate: MeanEstimate, alpha: float) -> float:
    """Upper confidence limit at the one-sided level ``alpha``."""
    return -ci_lower(-estimate, alpha)


def confidence_interval(estimate: MeanEstimate, level: float = 0.95) -> Interval:
    """The two-sided interval: the means that neither Student's t nor Hall's rejects."""
    alpha = (1 - level) / 2
    return ci_lower(estimate, alpha), ci_upper(estimate, alpha)


def t_quantile(df: float, probability: float) -> float:
    """Quantile of Student's t distribution."""

    return float(stdtrit(df, probability))


def bisect_root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a non-decreasing function crosses 0 between ``low`` and ``high``, by bisection."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return (low + high) / 2


@dataclass(frozen=True, slots=True)
class AugmentedMean:
    """A mean, and below 30 values the same with one value more, as far below (above) it as the furthest value.

    Few values of a skewed kind often lack the tail of their population: their mean lies on the other side of the true
    one, and their spread is small. A claim that the mean is above something has to hold of ``pessimistic`` too, the
    opposite claim of ``optimistic``.
    """

    estimate: MeanEstimate
    pessimistic: MeanEstimate
    optimistic: MeanEstimate

    @classmethod
    def of(
        cls,
        values: Array | ClusterSums,
        clusters: Array | None = None,
        skewness_factor: float = SKEWNESS_FACTOR,
        augmented_below: int = AUGMENTED_BELOW,
    ) -> AugmentedMean:
        """Of values [n], two or more; with ``clusters`` [n] a cluster of the usual size is added."""
        sums = as_sums(values, clusters)
        estimate = mean_estimate(sums, None, skewness_factor)
        if len(sums.sizes) >= augmented_below or not estimate.se:
            return cls(estimate, estimate, estimate)
        reach = sums.reach(estimate.value)
        pessimistic, optimistic = (
            mean_estimate(sums.with_value(estimate.value + end), None, skewness_factor) for end in (-reach, reach)
        )
        return cls(estimate, pessimistic, optimistic)

    def p_greater(self, bound: float = 0.0) -> float:
        """One-sided p of the claim that the mean is above ``bound``."""
        return max(p_greater(self.estimate, bound), p_greater(self.pessimistic, bound))

    def p_less(self, bound: float = 0.0) -> float:
        """One-sided p of the claim that the mean is below ``bound``."""
        return max(p_greater(-self.estimate, -bound), p_greater(-self.optimistic, -bound))

    def ci95(self) -> Interval | None:
        """The means that no test rejects at .05; None where the values do not differ."""
        if not self.estimate.se:
            return None
        alpha = SIGNIFICANT / 2
        low = min(ci_lower(mean, alpha) for mean in (self.estimate, self.pessimistic))
        return low, max(ci_upper(mean, alpha) for mean in (self.estimate, self.optimistic))


def with_value(values: Array, value: float, clusters: Array | None = None) -> tuple[Array, Array | None]:
    """Values [n + 1] with one more; with ``clusters`` a cluster more, of the usual size Σn_c²/n [n + m]."""
    if clusters is None:
        return np.append(values, value), None
    sizes = cluster_sizes(clusters)
    size = max(1, round(float((sizes**2).sum()) / len(values)))
    return np.append(values, np.full(size, value)), np.append(clusters, np.full(size, int(clusters.max()) + 1))


def as_sums(values: Array | ClusterSums, clusters: Array | None = None) -> ClusterSums:
    """The sums of values [n] by ``clusters`` [n]; sums as they are."""
    return values if isinstance(values, ClusterSums) else ClusterSums.of(values, clusters)


def defined(values: Array) -> Array:
    """The values that are not NaN."""
    known: Array = values[~np.isnan(values)]
    return known


def known_clusters(clusters: Array | None, known: Array) -> Array | None:
    """The clusters of the ``known`` [n] values; None where none of them share one."""
    if clusters is None:
        return None
    inside = clusters[known]
    return inside if len(np.unique(inside)) < len(inside) else None


def estimate(
    values: Array | ClusterSums,
    *,
    clusters: Array | None = None,
    sample: LabelSample | None = None,
    unit: str = "queries",
) -> Estimate:
    """The mean of values [n] with its 95% interval.

    Args:
        values: [n]; NaN values are left out. Or their sums by cluster.
        clusters: The cluster [n] of each value (see :func:`mean_estimate`); None: values are independent.
        sample: Of values that are estimates from drawn labels, what they owe to them: the interval is then that of
            :meth:`LabelSample.superpopulation_mean`.
        unit: What the values are of, in the plural.

    >>> estimate(np.array([0.0, 1.0, 0.5, 0.5, np.nan])).n
    4
    """
    sums = as_sums(values, clusters)
    if not sums.n:
        return Estimate(None, None, 0, unit)
    if len(sums.sizes) < 2:
        return Estimate(sums.mean, None, sums.n, unit)
    if sample is not None and not isinstance(values, ClusterSums):
        mean = superpopulation_mean(sample, values, clusters)
        return Estimate(mean.value, confidence_interval(mean) if mean.se else None, sums.n, unit)
    return Estimate(sums.mean, AugmentedMean.of(sums).ci95(), sums.n, unit)


def absolute_estimate(figure: Estimate) -> Estimate:
    """The absolute value of a figure; its interval starts at 0 where that of the figure holds both signs."""
    if figure.mean is None:
        return figure
    ci95 = figure.ci95
    if ci95 is not None:
        least, most = sorted(map(abs, ci95))
        ci95 = (0.0 if ci95[0] <= 0 <= ci95[1] else least), most
    return Estimate(abs(figure.mean), ci95, figure.n, figure.unit)


# --- means of values that are estimated from drawn labels -------------------------------------------------------------


def finite_population_mean(sample: LabelSample, values: Array) -> MeanEstimate:
    """The mean of values [Q] for these queries alone: the only chance is which labels were drawn."""
    error = sample.design_error(~np.isnan(values))
    return MeanEstimate(float(np.nanmean(values)), math.sqrt(error.variance + error.one_more), error.df)


def superpopulation_mean(sample: LabelSample, values: Array, clusters: Array | None = None) -> MeanEstimate:
    """The mean of two or more values [Q] for queries like these: the queries are a sample as well as the labels.

    V_Q = s²(y)/Q + V − Σ_q Σ_d w² (1 − π)(x − m)²/π²/Q² counts what is chance in both once; V_T is the largest of
    V_Q, V and s²(y)/Q. The variance is V_T + V₁, its degrees of freedom Satterthwaite's. With ``clusters`` [Q] of
    queries s²(y)/Q is the variance of :func:`mean_estimate`.
    """
    known = ~np.isnan(values)
    error = sample.design_error(known)
    of_queries = mean_estimate(values[known], known_clusters(clusters, known))
    between = of_queries.se**2
    total = max(between + error.variance - error.within_queries, error.variance, between)
    variance = total + error.one_more
    if not variance:
        return MeanEstimate(of_queries.value, 0.0, 1.0)
    queries_df = of_queries.df if of_queries.se else float(known.sum()) - 1
    parts = (error.variance + error.one_more) ** 2 / error.df + (total - error.variance) ** 2 / queries_df
    return MeanEstimate(of_queries.value, math.sqrt(variance), variance**2 / parts)
