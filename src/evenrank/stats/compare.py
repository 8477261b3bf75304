"""Whether a mean differs from 0, or two groups from each other: *shown*, *no difference shown*, *cannot be told*.

A claim is *shown* if two tests agree on its side, p being the larger of theirs: Student's t and Hall's t between the
units that were drawn; where the claim is about a randomisation whose variance is known exactly, also a test with that
variance. There is no Monte Carlo in it. docs/verdicts-table.md says how often each claim is made where it is false.

[BERGER82] Berger (1982). Multiparameter Hypothesis Testing and Acceptance Sampling. Technometrics 24(4).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from evenrank.files.types import Array, holm

from .clusters import ZERO, ClusterSums, cluster_sizes, effective_clusters
from .distributions import ndtr, ndtri
from .estimate import (
    AUGMENTED_BELOW,
    EQUAL,
    POWER,
    SIGNIFICANT,
    SKEWNESS_FACTOR,
    SPARSE_SKEWNESS_FACTOR,
    AugmentedMean,
    Estimate,
    Interval,
    MeanEstimate,
    adjusted_t_sf,
    as_sums,
    bisect_root,
    combined_estimate,
    confidence_interval,
    defined,
    mean_estimate,
    p_greater,
    p_two_sided,
    superpopulation_mean,
)
from .planning import minimum_detectable_effect
from .sampling import LabelSample, SamplePair, on_queries

Verdict = Literal["shown", "no difference shown", "cannot be told"]
Zeros = Literal["keep", "drop"]

LEAST_DIFFERENT = 6
"""Two runs have to differ in so many queries (or clusters) for a test of their effectiveness."""
LEAST_NOT_ZERO = 10
"""So many values have to differ from 0 for a test of values that are mostly 0 or have long tails."""
LEAST_SAMPLE = 15
"""So many values each of two groups needs, and so many queries a bound to hold."""
LEAST_CLUSTERS = 6.0
"""So many clusters of equal size clustered values have to be worth."""
ALL_ZERO = "every value is 0"


@dataclass(frozen=True, slots=True)
class Comparison(Estimate):
    """Whether a figure differs from 0: a lean, a difference of two runs, an effect.

    Attributes:
        p: Two-sided, None where nothing can be told; ``holm_p``: after Holm's correction, if there was one.
        mde: Smallest detectable difference: a smaller one is missed in at least one of five such samples; None without
            a test.
        method: The test.
        reason: Why nothing can be told, and what would tell; None where something can.
    """

    also: ClassVar = ("verdict",)
    p: float | None = None
    holm_p: float | None = None
    mde: float | None = None
    method: str = "t and Hall's t"
    reason: str | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether the difference is shown (p below .05, after correction if there was one)."""
        p = self.p if self.holm_p is None else self.holm_p
        if p is None:
            return "no difference shown" if self.reason == ALL_ZERO else "cannot be told"
        return "shown" if p < SIGNIFICANT else "no difference shown"

    @property
    def shown(self) -> bool:
        """Whether the figure is shown not to be 0."""
        return self.verdict == "shown"

    def negated(self) -> Comparison:
        """The test of the figure with the other sign, such as of the second run minus the first."""
        ends = None if self.ci95 is None else (-self.ci95[1], -self.ci95[0])
        return replace(self, mean=None if self.mean is None else -self.mean, ci95=ends)

    def without_verdict(self, reason: str) -> Comparison:
        """The same estimate and interval without a verdict, for this ``reason``."""
        return undecidable(self.mean, self.n, reason, self.unit, self.ci95)


def undecidable(
    mean: float | None, n: int, reason: str, unit: str = "queries", ci95: Interval | None = None
) -> Comparison:
    """A comparison without a verdict."""
    return Comparison(mean, ci95, n, unit, reason=reason)


def corrected(comparisons: Sequence[Comparison], families: int = 1) -> list[Comparison]:
    """The comparisons with Holm's correction over those that have a p.

    ``families``: the number of families of tests that share the level. ``mde`` is then what the first of so many tests
    detects (by normal quantiles).
    """
    after = [None if p is None else min(1.0, families * p) for p in holm([comparison.p for comparison in comparisons])]
    factor = _mde_factor(families * sum(p is not None for p in after))
    return [
        replace(comparison, holm_p=p, mde=None if comparison.mde is None else factor * comparison.mde)
        for comparison, p in zip(comparisons, after, strict=True)
    ]


def _mde_factor(tests: int) -> float:
    """How much larger a difference has to be for one of so many tests to detect it."""
    if tests < 2:
        return 1.0
    room = ndtri(POWER)
    return float((ndtri(1 - SIGNIFICANT / 2 / tests) + room) / (ndtri(1 - SIGNIFICANT / 2) + room))


# --- one mean --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class MeanTest:
    """The two tests of a mean, on the values that count.

    Attributes:
        mean: The mean of the values that count, by both tests.
        share: The share of values that count; the mean of all is ``share`` times theirs.
        reason: Why nothing can be told; None where something can.
        reach: The farthest from 0 that a value can be on the other side; None where that is not known. Needed where all
            values are equal: one at that end is then added to them.
        number: Of how many independent values (or clusters) the mean is.
    """

    mean: AugmentedMean
    share: float
    reason: str | None
    reach: float | None
    number: float

    @classmethod
    def of(
        cls,
        sums: ClusterSums,
        zeros: Zeros,
        reach: float | None,
        unit: str = "queries",
        augmented_below: int = 0,
    ) -> MeanTest:
        """The tests of two or more values; ``augmented_below``: as :class:`AugmentedMean` has it."""
        n, k = sums.n, int(sums.nonzero.sum())
        inside = sums if zeros == "keep" else sums.without_zeros()
        factor = SKEWNESS_FACTOR
        if zeros == "drop":
            factor, augmented_below = SPARSE_SKEWNESS_FACTOR, AUGMENTED_BELOW
        number, reason, share = float(inside.n), None, inside.n / n
        least = LEAST_DIFFERENT if zeros == "keep" else LEAST_NOT_ZERO
        if inside.clustered:
            number, groups = effective_clusters(inside.sizes), int((inside.nonzero > 0).sum())
            reason = too_few_clusters(number, LEAST_CLUSTERS, f"the {unit} are")
            if reason is None and groups < least:
                name = "cluster" if groups == 1 else "clusters"
                reason = f"the {unit} that differ from 0 are in {groups} {name}, where {least} are needed"
        elif k < least:
            reason = too_few(k, n, unit, least, paired=zeros == "keep")
        if number < 2:
            alone = MeanEstimate(inside.mean if inside.n else 0.0, 0.0, 1.0)
            return cls(AugmentedMean(alone, alone, alone), share, reason, reach, number)
        mean = AugmentedMean.of(inside, None, factor, augmented_below)
        if reason is None and not mean.estimate.se and reach is None:
            reason = "every value is the same, and how far a value can lie is not known"
        return cls(mean, share, reason, reach, number)

    @property
    def estimate(self) -> MeanEstimate:
        """The mean of the values that count."""
        return self.mean.estimate

    def p_greater(self) -> float:
        """One-sided p of the claim that the mean is above 0."""
        return self._p_equal(1.0) if not self.estimate.se else self.mean.p_greater()

    def p_less(self) -> float:
        """One-sided p of the claim that the mean is below 0."""
        return self._p_equal(-1.0) if not self.estimate.se else self.mean.p_less()

    def p_two_sided(self) -> float:
        """Two-sided p that the mean is 0."""
        return min(1.0, 2 * (self.p_greater() if self.estimate.value >= 0 else self.p_less()))

    def mde(self) -> float:
        """The smallest detectable difference of the mean of all values."""
        se, df = self.estimate.se, self.estimate.df
        if not se:
            se, df = (abs(self.estimate.value) + (self.reach or 0.0)) / (self.number + 1), self.number
        return self.share * minimum_detectable_effect(se, df)

    def _p_equal(self, sign: float) -> float:
        """Of k equal values c and one at the far end −g: t = (ck − g)/(c + g) with k degrees of freedom."""
        value = sign * self.estimate.value
        if value <= EQUAL or self.reach is None:
            return 1.0
        t = (value * self.number - self.reach) / (value + self.reach)
        return adjusted_t_sf(t, self.number)


def compare(
    values: Array | ClusterSums,
    *,
    zeros: Zeros = "drop",
    clusters: Array | None = None,
    sample: LabelSample | None = None,
    reach: float | None = None,
    unit: str = "queries",
) -> Comparison:
    """Whether the mean of values [n] differs from 0: a lean, what an order adds, a paired difference.

    t = x̄√k/s and Hall's t_H (:func:`evenrank.stats.estimate.adjusted_t_sf`) both have to exceed t(.975; k − 1) on one
    side. ``zeros="keep"``, for differences in effectiveness: over all n values, six of which have to differ from 0.
    ``zeros="drop"``, for what leans: over the k values that are not 0, ten or more, with a stronger correction of the
    skewness; below 30 also with one value more (:class:`evenrank.stats.estimate.AugmentedMean`). The interval holds the
    means that neither test rejects. With zeros dropped it is k/n of that of the others; where zeros are many that alone
    is too narrow for a mean far from 0, as how many values are 0 is chance too: then the ends are those of all n
    values, but not beyond 0 where the test excludes it.

    Where all values that count are equal, one more stands at the far end of what a value can be.

    When it misleads: what happens in fewer than three of n queries is unknown to this test, as to every other.

    Worked example: −.1, .2, .3 and .4, four times each, and 84 zeros. Dropped: x̄ = .2, s = .1932,
    t = .2 · 4/.1932 = 4.14, and the skewness −.687 · (1 + 10/16)/4 = −.279 makes t_H = 4.14 − 1.59 + .20 − .05 = 2.70;
    p = .016 with 15 degrees of freedom.

    >>> values = np.array([-0.1, 0.2, 0.3, 0.4] * 4 + [0.0] * 84)
    >>> found = compare(values)
    >>> found.mean, found.verdict, round(found.p, 3), round(compare(values, zeros="keep").p, 3)
    (0.032, 'shown', 0.016, 0.003)

    Args:
        values: [n]; NaN values are left out. Or their sums by cluster.
        zeros: Whether values of 0 count ("keep") or not ("drop").
        clusters: The cluster [n] of each value, as whole numbers; None: values are independent. Six clusters (ten with
            zeros dropped) have to differ from 0, and all be worth six of equal size.
        sample: Of values that are estimates from drawn labels, what they owe to them: the test is then t of
            :func:`evenrank.stats.estimate.superpopulation_mean`, and fewer than 30 labels tell nothing.
        reach: The farthest from 0 that a value can be; None where that is not known.
        unit: What the values are of, in the plural.
    """
    sums = as_sums(values, clusters)
    n, k = sums.n, int(sums.nonzero.sum())
    if not n:
        return undecidable(None, 0, "no value is defined", unit)
    mean = sums.mean
    if not k:
        return undecidable(mean, n, ALL_ZERO, unit)
    if n < 2:
        return undecidable(mean, n, f"there is only one of the {unit}", unit)
    if sample is not None and not isinstance(values, ClusterSums):
        return _compare_sampled(values, clusters, sample, k, unit)
    test = MeanTest.of(sums, zeros, reach, unit)
    ci95 = _interval(test, sums)
    if test.reason is not None:
        return undecidable(mean, n, test.reason, unit, ci95)
    return Comparison(mean, ci95, n, unit, test.p_two_sided(), mde=test.mde())


def _compare_sampled(values: Array, clusters: Array | None, sample: LabelSample, k: int, unit: str) -> Comparison:
    mean, n = superpopulation_mean(sample, values, clusters), len(defined(values))
    ci95 = confidence_interval(mean) if mean.se else None
    reason = sample.too_few or (too_few(k, n, unit) if k < LEAST_NOT_ZERO else None)
    reason = reason or (None if mean.se else "no label makes a difference")
    if reason is not None:
        return undecidable(mean.value, n, reason, unit, ci95)
    mde = minimum_detectable_effect(mean.se, mean.df)
    return Comparison(mean.value, ci95, n, unit, p_two_sided(mean), mde=mde, method="t, of labels drawn")


def too_few(k: int, n: int, unit: str = "queries", least: int = LEAST_NOT_ZERO, *, paired: bool = False) -> str:
    """Reason why a few values give no verdict: ``only 8 of 40 queries differ from 0, where 10 are needed``."""
    of = f"{k} of {n}" if k < n else f"{k}"
    if paired:
        return f"the two differ in only {of} {unit}, where {least} are needed"
    return f"only {of} {unit} differ from 0, where {least} are needed"


def _interval(test: MeanTest, sums: ClusterSums) -> Interval | None:
    """The interval of the mean of all values, ``test`` that of those that count."""
    ci95 = test.mean.ci95()
    if ci95 is None or test.share == 1:
        return ci95
    low, high = (test.share * end for end in ci95)
    of_all = AugmentedMean.of(sums).ci95() or (low, high)
    # 0 stays outside where the test excludes it, however little.
    least = max(of_all[0], sys.float_info.min) if low > 0 else of_all[0]
    most = min(of_all[1], -sys.float_info.min) if high < 0 else of_all[1]
    return min(low, least), max(high, most)


def worth(clusters: Array) -> float:
    """The number of clusters of equal size that the ``clusters`` [n] of values are worth."""
    return effective_clusters(cluster_sizes(clusters))


def too_few_clusters(number: float, least: float, what: str = "the queries are") -> str | None:
    """Reason why too few clusters of equal size give no verdict; None if they are enough."""
    return None if number >= least else f"{what} worth only {number:.1f} clusters, where {least:.0f} are needed"


def compare_to_random_order(
    values: Array | ClusterSums,
    variances: Array,
    *,
    clusters: Array | None = None,
    sample: LabelSample | None = None,
    reach: float | None = None,
) -> Comparison:
    """Test of whether orders add something: the mean of values [Q] differs from 0 and from that of random orders.

    ``values``: what each query's order has beyond the expectation over random orders of its candidates; ``variances``
    [Q]: its variance over these orders, known exactly; of sums [G] that of each cluster. The test of :func:`compare`
    between queries has to agree with z = Σx / √Σv: where few documents belong to a group, the values are rare and
    large, and no test of their mean alone holds. Within a cluster of queries the same documents may decide: its
    variance is (Σ√v)². Of values that are estimated from drawn labels only the test between queries and labels is made.

    Worked example: of 40 queries each adds .1 or .3, with a variance of .25 a query: z = 8/√10 = 2.53, p = .0114.

    >>> found = compare_to_random_order(np.tile([0.1, 0.3], 20), np.full(40, 0.25))
    >>> round(found.p, 4), found.verdict
    (0.0114, 'shown')
    """
    comparison = compare(values, clusters=clusters, sample=sample, reach=reach)
    if comparison.p is None or sample is not None:
        return comparison
    sds = np.sqrt(np.maximum(variances, 0.0))
    if not isinstance(values, ClusterSums):
        sds = as_sums(np.where(np.isnan(values), np.nan, sds), clusters).totals
    se = math.sqrt(float(sds @ sds)) / comparison.n
    if not se:
        return comparison.without_verdict("every order of the candidates has the same figure")
    mean = comparison.mean or 0.0
    p = max(comparison.p, 2 * float(ndtr(-abs(mean) / se)))
    low, high = confidence_interval(MeanEstimate(mean, se, math.inf))
    ci95 = None if comparison.ci95 is None else (min(low, comparison.ci95[0]), max(high, comparison.ci95[1]))
    mde = max(comparison.mde or 0.0, minimum_detectable_effect(se, math.inf))
    return replace(comparison, ci95=ci95, p=p, mde=mde, method="t, Hall's t and the variance of random orders")


def compare_estimate(estimate: MeanEstimate, n: int, unit: str, *, tests: int = 1, method: str = "t") -> Comparison:
    """Whether a mean differs from 0 whose standard error was found otherwise.

    ``tests``: the smallest detectable difference is that of one of so many tests.
    """
    if not estimate.se:
        if abs(estimate.value) <= EQUAL:
            return Comparison(estimate.value, None, n, unit, 1.0, mde=0.0, method=method)
        return undecidable(estimate.value, n, "every value is the same", unit)
    mde = minimum_detectable_effect(estimate.se, estimate.df, SIGNIFICANT / max(tests, 1))
    return Comparison(
        estimate.value, confidence_interval(estimate), n, unit, p_two_sided(estimate), mde=mde, method=method
    )


def intersection_union(first: Comparison, second: Comparison) -> Comparison:
    """``first``, shown where ``second`` is as well, on the same side: p is the larger of the two [BERGER82].

    For a claim of two parts, such as a difference that is there and is more than a control's.
    """
    if first.p is None or second.p is None:
        return replace(first, p=None, mde=None, reason=first.reason or second.reason)
    same_side = (first.mean or 0.0) * (second.mean or 0.0) > 0
    mde = max(first.mde or 0.0, second.mde or 0.0)
    return replace(first, p=max(first.p, second.p) if same_side else 1.0, mde=mde, reason=None)


# --- several samples -------------------------------------------------------------------------------------------------


def compare_combined(
    samples: Sequence[Array],
    factors: Sequence[float],
    *,
    sample: LabelSample | None = None,
    clusters: Array | None = None,
    reach: float | None = None,
) -> Comparison:
    """Whether Σ factor × mean of ``samples`` [Q], which are of different queries (NaN elsewhere), differs from 0.

    Of one sample it is :func:`compare`; of several t and Hall's t of the sum, with Welch–Satterthwaite's degrees of
    freedom, all values counted and none added. A sample of fewer than 15 values tells nothing.
    """
    if len(samples) == 1:
        return compare(factors[0] * samples[0], sample=sample, clusters=clusters, reach=reach)
    own = [defined(values) for values in samples]
    within = _clusters_of(samples, clusters)
    n, least = int((~np.isnan(np.stack(samples))).any(axis=0).sum()), min(map(len, own))
    if not least:
        return undecidable(None, n, "a group has no value")
    mean = sum(factor * float(one.mean()) for factor, one in zip(factors, own, strict=True))
    if least < 2:
        return undecidable(mean, n, f"a group has only one query, where {LEAST_SAMPLE} are needed")
    estimate = combined_estimate(own, factors, within)
    ci95 = confidence_interval(estimate) if estimate.se else None
    reason = f"a group has only {least} queries, where {LEAST_SAMPLE} are needed" if least < LEAST_SAMPLE else None
    reason = reason or (None if within is None else too_few_clusters(min(map(worth, within)), LEAST_CLUSTERS))
    if reason is not None:
        return undecidable(mean, n, reason, ci95=ci95)
    if not estimate.se:
        return undecidable(mean, n, "the values of each group are all the same")
    mde = minimum_detectable_effect(estimate.se, estimate.df)
    return Comparison(mean, ci95, n, p=p_two_sided(estimate), mde=mde)


def _clusters_of(samples: Sequence[Array], clusters: Array | None) -> list[Array] | None:
    """The clusters of each sample's defined values; None where no two values share one."""
    if clusters is None:
        return None
    within = [clusters[~np.isnan(sample)] for sample in samples]
    return within if any((cluster_sizes(numbers) > 1).any() for numbers in within) else None


def compare_groups(inside: Array, others: Array, *, clusters: Array | None = None, unit: str = "queries") -> Comparison:
    """Test of the mean of a group of queries against that of the others, from values [Q] that are NaN elsewhere.

    Welch's t, with the groups' own variances, and Student's, with the pooled one, both have to show it, and of Welch's
    also Hall's: Student's is the test of exchanging the groups' names, and holds where rare values happen to lie all in
    the larger group; Hall's is for a group whose values are skewed where those of the others are not. The interval
    holds the differences that none rejects. With ``clusters`` [Q] the groups' variances are those of
    :func:`evenrank.stats.estimate.mean_estimate`, pooled by clusters. A group of fewer than 15 values tells nothing.
    """
    samples = [defined(sample) for sample in (inside, others)]
    within = _clusters_of([inside, others], clusters)
    n, least = len(samples[0]), min(map(len, samples))
    if not least:
        name = unit[:-3] + "y" if unit.endswith("ies") else unit.removesuffix("s")
        why = f"no {name} of the group has a value" if not n else f"no other {name} has a value"
        return undecidable(None, n, why, unit)
    mean = float(samples[0].mean()) - float(samples[1].mean())
    size = f"the group has only {least} {unit}" if least == n else f"there are only {least} other {unit}"
    if least < 2:
        return undecidable(mean, n, f"{size}, where {LEAST_SAMPLE} are needed", unit)
    estimates = _two_groups(samples, within)
    welch = estimates[0]
    low, high = zip(*(confidence_interval(estimate) for estimate in estimates), strict=True)
    ci95 = (min(low), max(high)) if welch.se else None
    if least < LEAST_SAMPLE:
        return undecidable(mean, n, f"{size}, where {LEAST_SAMPLE} are needed", unit, ci95)
    reason = None if within is None else too_few_clusters(min(map(worth, within)), LEAST_SAMPLE, "a group is")
    if reason is not None:
        return undecidable(mean, n, reason, unit, ci95)
    if not welch.se:
        why = "the values of each group are all the same" if mean else "every value is the same"
        return undecidable(mean, n, why, unit)
    p, mde = (max(of(estimate) for estimate in estimates) for of in (p_two_sided, _mde))
    return Comparison(mean, ci95, n, unit, p, mde=mde, method="Welch's t, Hall's and Student's")


def _mde(estimate: MeanEstimate) -> float:
    return minimum_detectable_effect(estimate.se, estimate.df)


def _two_groups(samples: Sequence[Array], clusters: Sequence[Array] | None) -> tuple[MeanEstimate, MeanEstimate]:
    """The difference of two groups' means with Welch's standard error, and with that of a pooled variance."""
    own = [mean_estimate(one, None if clusters is None else clusters[k]) for k, one in enumerate(samples)]
    welch = combined_estimate(samples, (1.0, -1.0), clusters, SPARSE_SKEWNESS_FACTOR)
    # The number of independent values (or clusters of equal size) behind each.
    numbers = [len(one) if clusters is None else worth(clusters[k]) for k, one in enumerate(samples)]
    df = sum(numbers) - 2
    variance = sum((k - 1) * k * one.se**2 for k, one in zip(numbers, own, strict=True)) / df
    se = math.sqrt(variance * sum(1 / k for k in numbers))
    return welch, MeanEstimate(welch.value, se, df)


# --- absolute values of means ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AbsoluteMeans:
    """Two signed means of the same queries, μ of a run and ν of another one; ν is 0 where there is no other.

    Attributes:
        own, other: The means.
        total, difference: μ + ν and μ − ν, with the standard errors that pairing gives.
    """

    own: MeanEstimate
    other: MeanEstimate
    total: MeanEstimate
    difference: MeanEstimate

    @property
    def value(self) -> float:
        """|μ| − |ν|."""
        return abs(self.own.value) - abs(self.other.value)

    @property
    def swapped(self) -> AbsoluteMeans:
        """The two means exchanged."""
        return AbsoluteMeans(self.other, self.own, self.total, -self.difference)


NOTHING = MeanEstimate(0.0, 0.0, 1.0)


def absolute_means(
    own: Sequence[Array],
    other: Sequence[Array],
    factors: Sequence[float],
    samples: SamplePair = (None, None),
    clusters: Sequence[Array] | None = None,
) -> AbsoluteMeans:
    """The means of a run's parts [n], and of the other's on the same queries."""
    if samples[0] is not None and samples[1] is not None:
        within = None if clusters is None else clusters[0]
        total, difference = (
            superpopulation_mean(samples[0].plus(samples[1], sign), own[0] + sign * other[0], within)
            for sign in (1.0, -1.0)
        )
        own_mean, other_mean = (
            superpopulation_mean(sample, values[0], within)
            for sample, values in zip((samples[0], samples[1]), (own, other), strict=True)
        )
        return AbsoluteMeans(own_mean, other_mean, total, difference)
    pairs = list(zip(own, other, strict=True))

    def mean_of(parts: Sequence[Array]) -> MeanEstimate:
        return combined_estimate(parts, factors, clusters, SPARSE_SKEWNESS_FACTOR)

    total, difference = (mean_of([a + sign * b for a, b in pairs]) for sign in (1, -1))
    return AbsoluteMeans(mean_of(own), mean_of(other), total, difference)


def p_size_greater(means: AbsoluteMeans, bound: float, *, inclusive: bool = False) -> float:
    """One-sided p of the claim |μ| − |ν| > ``bound`` (``inclusive``: or equal to it).

    The claim is that for one sign s and both signs t, sμ − tν > ``bound``. For a given s both have to be shown, so
    their p is the larger one (intersection–union). Either s would do (union): to the p of the estimate's own sign comes
    the chance of as clear an estimate of the other sign, where the truth is on the bound as near to the estimate as it
    can be. Without ν, and with a bound of 0, that is the two-sided test.
    """
    if any(estimate.se == 0 and abs(estimate.value) <= EQUAL for estimate in (means.difference, means.total)):
        # The values are the same, or have the other sign: their means have the same size, whatever it is.
        return p_greater(NOTHING, bound, inclusive=inclusive)
    size, sign = abs(means.own.value), -1.0 if means.own.value < 0 else 1.0
    covariance = (means.total.se**2 - means.difference.se**2) / 4
    p = extra = 0.0
    for t in (1.0, -1.0):
        # sμ − tν is the difference or the total, up to the sign s.
        apart = means.difference if sign * t > 0 else means.total
        distance = size - t * means.other.value - bound
        here = _p_of_side(apart, distance, sign, inclusive)
        if here > p:
            extra = 0.0
            # Without an error of its own, the mean has one sign only.
            if apart.se > 0 and means.own.se > 0:
                # The truth nearest to the estimate on the bound, in the metric of the errors.
                weight = (means.own.se**2 - sign * t * covariance) / apart.se**2
                nearest = max(size - weight * distance, 0.0)
                extra = adjusted_t_sf((distance + 2 * nearest) / apart.se, apart.df)
            p = here
    return min(p + extra, 1.0)


def _p_of_side(apart: MeanEstimate, distance: float, sign: float, inclusive: bool) -> float:
    """The p that sμ − tν, which is ``apart`` or its negative, lies above the bound, from which it is ``distance``."""
    if apart.se > 0:
        return adjusted_t_sf(distance / apart.se, apart.df, sign * apart.skewness)
    return float(not (distance > EQUAL or (inclusive and distance >= -EQUAL)))


def p_size_less(means: AbsoluteMeans, bound: float, *, inclusive: bool = True) -> float:
    """One-sided p of the claim |μ| − |ν| < ``bound`` (``inclusive``: or equal to it)."""
    return p_size_greater(means.swapped, -bound, inclusive=inclusive)


def compare_abs_means(
    own: Sequence[Array],
    other: Sequence[Array],
    factors: Sequence[float],
    *,
    samples: SamplePair = (None, None),
    clusters: Array | None = None,
) -> Comparison:
    """Whether the size of a run's signed figure differs from that of another, from their parts [Q] on the same queries.

    Values that are undefined in one of them are left out of both. The interval holds the differences that neither of
    two one-sided tests (:func:`p_size_greater`, :func:`p_size_less`) rejects.
    """
    both = [~np.isnan(a - b) for a, b in zip(own, other, strict=True)]
    within = _clusters_of([a - b for a, b in zip(own, other, strict=True)], clusters)
    own, other = ([part[known] for part, known in zip(parts, both, strict=True)] for parts in (own, other))
    samples = on_queries(samples, both[0])
    n, least = max(map(len, own)), min(map(len, own))
    differ = sum(int((np.abs(a - b) > ZERO).sum()) for a, b in zip(own, other, strict=True))
    if least < 2:
        return undecidable(None, n, too_few(least, least))
    means = absolute_means(own, other, factors, samples, within)
    if not differ:
        return undecidable(0.0, n, ALL_ZERO)
    alpha = SIGNIFICANT / 2
    reach = 20 * (means.own.se + means.other.se) + EQUAL
    low = bisect_root(lambda bound: p_size_greater(means, bound) - alpha, means.value - reach, means.value)
    high = -bisect_root(lambda bound: p_size_less(means, -bound) - alpha, -means.value - reach, -means.value)
    reason = too_few(min(least, differ), n) if min(least, differ) < LEAST_NOT_ZERO else None
    reason = reason or (None if samples[0] is None else samples[0].too_few)
    reason = reason or (None if within is None else too_few_clusters(min(map(worth, within)), LEAST_CLUSTERS))
    if reason:
        return undecidable(means.value, n, reason, ci95=(low, high))
    p = min(1.0, 2 * min(p_size_greater(means, 0.0), p_size_less(means, 0.0, inclusive=False)))
    apart = means.difference if means.own.value * means.other.value >= 0 else means.total
    mde = minimum_detectable_effect(apart.se, apart.df) if apart.se else 0.0
    return Comparison(means.value, (low, high), n, p=p, mde=mde)
