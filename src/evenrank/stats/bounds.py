"""Whether a figure keeps to a bound: *holds*, *violated*, *not shown*."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from evenrank.files.types import Array

from .clusters import ZERO
from .compare import (
    LEAST_CLUSTERS,
    LEAST_NOT_ZERO,
    LEAST_SAMPLE,
    AbsoluteMeans,
    MeanTest,
    Zeros,
    absolute_means,
    p_size_greater,
    p_size_less,
    too_few,
    too_few_clusters,
    worth,
)
from .estimate import (
    AUGMENTED_BELOW,
    EQUAL,
    NEAR_ZERO,
    SIGNIFICANT,
    AugmentedMean,
    Interval,
    MeanEstimate,
    adjusted_t_sf,
    as_sums,
    bisect_root,
    ci_upper,
    combined_estimate,
    known_clusters,
    superpopulation_mean,
    t_quantile,
    with_value,
)
from .planning import HOLDS_SHARE, LEAST_TO_HOLD, detectable_distance, power
from .sampling import LabelSample, SamplePair

MARGIN = 0.05
"""The share of effectiveness within which "no loss" is shown."""
Outcome = Literal["holds", "violated", "not shown"]
_ONE_SIDED = 1.6449
"""The normal quantile of one minus SIGNIFICANT."""
_ROUNDING = 1e-7


@dataclass(frozen=True, slots=True)
class MeanBound:
    """Whether a mean is on the right side of a bound: a loss within a margin, a value at most or at least.

    With z the distance of each query within the bound, and one imagined query that loses all it can, the bound *holds*
    if z̄ − t(1 − .6α; N − 1) · s/√N > 0 over these N = n + 1 values, which is t(.97) for α = .05: a few ruined queries
    that no sample shows would look like the imagined one. It is *violated* if the two tests of a difference
    (:func:`evenrank.stats.compare.compare`) show z̄ < 0, below 30 queries also with one value more on the other side.

    Attributes:
        z: The mean of z with its standard error.
        test: The tests of z̄ < 0.
        held: The mean of z and of the imagined query (or cluster of the usual size).
        bound: The bound in the units of the rule; ``unit``: what one of these is in those of the measure.
        sign: 1 where the value has to be at least the bound, −1 where at most.
        loss: What the imagined query loses, −z of it; infinite where that is not known, and then nothing holds.
        n: Number of z; fewer than 15 do not hold. ``n_effective``: the number of clusters of equal size that they are
            worth, n where they are independent; fewer than 6 do not hold.
        other_side: Of a limit L of |x|, which holds where L − x and L + x both do: the bound on the side that the mean
            does not lean to. None of a signed value.
    """

    z: MeanEstimate
    test: MeanTest
    held: MeanEstimate
    bound: float
    sign: int
    loss: float
    n: int
    n_effective: float
    unit: float = 1.0
    other_side: MeanBound | None = None

    @property
    def value(self) -> float:
        """The estimate, in the units of the rule."""
        return self.bound + self.sign * self.z.value / self.unit

    @property
    def distance(self) -> float:
        """How far the estimate is within the bound, in the units of the measure."""
        return self.z.value

    @property
    def se(self) -> float:
        """The standard error, in the units of the measure."""
        return self.z.se

    @property
    def design_effect(self) -> float:
        """n/G*: how many queries of a cluster are worth one."""
        return self.n / self.n_effective

    def limits(self, alpha: float = SIGNIFICANT) -> Interval:
        """The one-sided limits of the value, that on the side of the bound with the imagined query."""
        held = self.held if math.isfinite(self.loss) else self.z
        within = held.value
        if held.se:
            within -= t_quantile(held.df, 1 - HOLDS_SHARE * alpha) * held.se
        mean = self.test.mean
        beyond = self.test.share * max(ci_upper(estimate, alpha / 2) for estimate in (mean.estimate, mean.optimistic))
        if not mean.estimate.se:
            beyond = ci_upper(self.z, alpha / 2)
        low, high = (self.bound + end / self.unit for end in sorted((self.sign * within, self.sign * beyond)))
        if self.other_side is None:
            return low, high
        other_low, other_high = self.other_side.limits(alpha)
        return max(low, other_low, 0.0), max(high, other_high)

    def p_holds(self) -> float:
        """p of the claim that it holds: α where the limit reaches the bound; 1 with fewer than 15 queries."""
        if self.n < LEAST_TO_HOLD or self.n_effective < LEAST_CLUSTERS or not math.isfinite(self.loss):
            return 1.0
        if self.held.se:
            p = min(1.0, adjusted_t_sf(self.held.value / self.held.se, self.held.df) / HOLDS_SHARE)
        else:
            p = float(not self.held.value >= -EQUAL)
        return p if self.other_side is None else max(p, self.other_side.p_holds())

    def p_violated(self) -> float | None:
        """Two-sided p of the claim that it is violated; None where too few queries tell."""
        few = self.test.reason is not None or self.n_effective < LEAST_CLUSTERS
        return None if few else min(1.0, 2 * self.test.p_less())

    def power(self, at: float, alpha: float) -> float:
        """The probability of *violated* where the true value is ``at``, in the units of the rule."""
        if self.test.reason is not None:
            return 0.0
        return power(self.z, self.sign * (self.bound - at) * self.unit, alpha / 2)

    def detectable(self, alpha: float) -> float | None:
        """The true value nearest to the bound that is shown to violate it with probability 80%."""
        if self.test.reason is not None:
            return None
        return self.bound - self.sign * detectable_distance(self.z, alpha / 2) / self.unit


@dataclass(frozen=True, slots=True)
class AbsoluteMargin:
    """Whether the absolute value of a signed mean is at most a margin above that of another run's.

    As :class:`MeanBound`: ``held`` with an imagined query that leans as far as any document can; ``pessimistic`` with
    one that leans as far to the other side as the furthest, where there are fewer than 30; ``n_effective``: the number
    of clusters that the queries are worth. ``few``: why too few queries tell that it is violated.
    """

    means: AbsoluteMeans
    pessimistic: AbsoluteMeans
    held: AbsoluteMeans
    bound: float
    loss: float
    n: int
    n_effective: float
    few: str | None

    @property
    def value(self) -> float:
        """The estimate."""
        return self.means.value

    @property
    def distance(self) -> float:
        """How far the estimate is within the bound."""
        return self.bound - self.means.value

    @property
    def se(self) -> float:
        """The standard error, as the limit towards the bound has it: near 0 both signs of the means are possible."""
        if self.distance > 0:
            return (self._high(self.means, SIGNIFICANT) - self.value) / _ONE_SIDED
        return (self.value - self._low(SIGNIFICANT)) / _ONE_SIDED

    def limits(self, alpha: float = SIGNIFICANT) -> Interval:
        """The one-sided limits of the value: the bounds that are just not rejected."""
        low, high = self._low(alpha), max(self._high(self.held, HOLDS_SHARE * alpha), self.value)
        return (0.0 if abs(low) <= _ROUNDING else low), (0.0 if abs(high) <= _ROUNDING else high)

    def _low(self, alpha: float) -> float:
        value = self.means.value
        return bisect_root(lambda bound: self._p_greater(bound) - alpha, value - _reach(self.held), value)

    def _p_greater(self, bound: float) -> float:
        return min(1.0, 2 * max(p_size_greater(self.means, bound), p_size_greater(self.pessimistic, bound)))

    def _high(self, means: AbsoluteMeans, alpha: float) -> float:
        reach = _reach(self.held)
        return -bisect_root(lambda bound: p_size_less(means, -bound) - alpha, -means.value - reach, -means.value)

    def p_holds(self) -> float:
        """p of the claim that it holds; 1 with fewer than 15 queries."""
        if self.n < LEAST_TO_HOLD or self.n_effective < LEAST_CLUSTERS or not math.isfinite(self.loss):
            return 1.0
        return min(1.0, p_size_less(self.held, self.bound) / HOLDS_SHARE)

    def p_violated(self) -> float | None:
        """Two-sided p of the claim that it is violated; None where too few queries tell."""
        return None if self.few else self._p_greater(self.bound)


def _reach(means: AbsoluteMeans) -> float:
    return 20 * (means.own.se + means.other.se) + EQUAL


BoundTest = MeanBound | AbsoluteMargin


def outcome(test: BoundTest, p_violated: float | None, alpha: float = SIGNIFICANT) -> Outcome:
    """Outcome of a test against its bound; ``p_violated``: the test's own or a corrected one, None: not tested."""
    if test.p_holds() <= alpha:
        return "holds"
    return "violated" if p_violated is not None and p_violated <= alpha else "not shown"


def bound_mean(
    within: Sequence[Array],
    loss: float,
    *,
    gain: float | None = None,
    zeros: Zeros = "keep",
    bound: float = 0.0,
    sign: int = 1,
    unit: float = 1.0,
    factors: Sequence[float] = (1.0,),
    sample: LabelSample | None = None,
    clusters: Sequence[Array] | None = None,
) -> MeanBound:
    """The test of z ≥ 0.

    Args:
        within: The parts of z [n], two values or more each.
        loss: What the imagined query loses.
        gain: The largest z that a query can have; None where that is not known.
        zeros: Whether z of 0 count in the test of z̄ < 0 ("keep": effectiveness).
        bound, sign, unit: As :class:`MeanBound` has them.
        factors: How the means of the parts enter z̄.
        sample: What z owes to drawn labels.
        clusters: The clusters [n] of each part; None: values are independent.
    """
    lost, n = loss if math.isfinite(loss) else 0.0, min(map(len, within))
    n_effective = _effective_number(n, clusters)
    if sample is not None:
        z = within[0]
        groups = None if clusters is None else clusters[0]
        mean = superpopulation_mean(sample, z, groups)
        few = too_few(k, n) if (k := int((np.abs(z) > ZERO).sum())) < LEAST_NOT_ZERO else None
        held = superpopulation_mean(sample, *with_value(z, -lost, groups))
        return MeanBound(mean, _plain_test(mean, few, n), held, bound, sign, loss, n, n_effective, unit)
    sums = [as_sums(part, None if clusters is None else clusters[k]) for k, part in enumerate(within)]
    more = [part.with_value(-lost * float(np.sign(factor))) for part, factor in zip(sums, factors, strict=True)]
    mean, held = combined_estimate(sums, factors), combined_estimate(more, factors)
    if len(sums) > 1:
        k = min(int(part.nonzero.sum()) for part in sums)
        test = _plain_test(mean, too_few(k, n, least=LEAST_SAMPLE) if k < LEAST_SAMPLE else None, n)
    else:
        test = MeanTest.of(sums[0], zeros, gain, augmented_below=AUGMENTED_BELOW)
    return MeanBound(mean, test, replace(held, skewness=0.0), bound, sign, loss, n, n_effective, unit)


def _effective_number(n: int, clusters: Sequence[Array] | None) -> float:
    """The number of clusters of equal size that the smallest of several parts is worth, n where none share one."""
    return n if clusters is None else min(map(worth, clusters))


def _plain_test(mean: MeanEstimate, reason: str | None, n: int) -> MeanTest:
    return MeanTest(AugmentedMean(mean, mean, mean), 1.0, reason, None, float(n))


def limit_absolute(
    values: Sequence[Array],
    limit: float,
    greatest: float,
    factors: Sequence[float] = (1.0,),
    *,
    sample: LabelSample | None = None,
    clusters: Sequence[Array] | None = None,
) -> MeanBound:
    """The test of |mean| ≤ ``limit`` from the parts of the values [n], two or more each.

    ``greatest``: the size of the largest value that a query can have; infinite where that is not known. The imagined
    query leans so far, on either side.
    """

    def bounded(side: float) -> MeanBound:
        within = [limit / len(values) / factor - side * part for factor, part in zip(factors, values, strict=True)]
        part = None if sample is None else replace(sample, weight=-side * sample.weight)
        return bound_mean(
            within,
            greatest - limit,
            gain=greatest + limit if math.isfinite(greatest) else None,
            zeros="drop",
            bound=limit,
            sign=-1,
            factors=factors,
            sample=part,
            clusters=clusters,
        )

    upper, lower = bounded(1.0), bounded(-1.0)
    return replace(lower, other_side=upper) if upper.value < 0 else replace(upper, other_side=lower)


def margin_absolute(
    own: Sequence[Array],
    other: Sequence[Array],
    margin: float,
    greatest: float,
    factors: Sequence[float] = (1.0,),
    *,
    samples: SamplePair = (None, None),
    clusters: Sequence[Array] | None = None,
) -> AbsoluteMargin:
    """The test of |mean of own| − |mean of other| ≤ ``margin`` from the parts [n], two values or more each.

    ``greatest``: the size of the largest value that a query can have; infinite where that is not known. ``samples``:
    what the values owe to drawn labels.
    """
    means = absolute_means(own, other, factors, samples, clusters)
    loss = greatest - margin
    greatest = greatest if math.isfinite(greatest) else 0.0
    direction = -1.0 if means.own.value < 0 else 1.0
    # The query that leans as far as any can: of one part either way, of several parts in those that add to it.
    ends = [direction * greatest] if len(own) == 1 else [greatest * (f * direction > 0) for f in factors]
    groups = [None] * len(own) if clusters is None else list(clusters)
    more = [with_value(part, end, group) for part, end, group in zip(own, ends, groups, strict=True)]
    beside = [with_value(part, 0.0, group)[0] for part, group in zip(other, groups, strict=True)]
    within = None if clusters is None else [group for _, group in more if group is not None]
    held = absolute_means([part for part, _ in more], beside, factors, samples, within)
    pessimistic = means
    if len(own) == 1 and len(own[0]) < AUGMENTED_BELOW and samples[0] is None:
        centre = float(own[0].mean())
        further = centre - direction * float(np.abs(own[0] - centre).max())
        values, group = with_value(own[0], further, groups[0])
        others = with_value(other[0], float(other[0].mean()), groups[0])[0]
        pessimistic = absolute_means([values], [others], factors, clusters=None if group is None else [group])
    apart = [a - b for a, b in zip(own, other, strict=True)]
    # Of a margin that is not 0, an equal value tells something too.
    k = min(len(part) if margin else int((np.abs(part) > ZERO).sum()) for part in apart)
    n = min(map(len, own))
    n_effective = _effective_number(n, clusters)
    few = too_few_clusters(n_effective, LEAST_CLUSTERS) or (too_few(k, n) if k < LEAST_NOT_ZERO else None)
    plain = AbsoluteMeans(
        *(replace(estimate, skewness=0.0) for estimate in (held.own, held.other, held.total, held.difference))
    )
    return AbsoluteMargin(means, pessimistic, plain, margin, loss, n, n_effective, few)


def no_loss(
    values: Array,
    baseline: Array,
    margin: float = MARGIN,
    greatest: float | None = 1.0,
    clusters: Array | None = None,
) -> MeanBound | None:
    """Whether the mean of values [Q] is at least (1 − ``margin``) times the baseline's: no more than that is lost.

    z = new − (1 − m) · base over the queries that both have, and an imagined one that loses the ``greatest`` value that
    the measure can take, None where that is not known. None with fewer than two queries, where the baseline's mean is
    not above 0, and without a ``greatest`` value.

    >>> base = np.full(20, 0.6)
    >>> no_loss(base, base).p_holds() < 0.05, no_loss(np.tile(base, 10), np.tile(base, 10)).p_holds() < 0.05
    (False, True)
    """
    both = ~np.isnan(values - baseline)
    new, base = values[both], baseline[both]
    if greatest is None or both.sum() < 2 or (mean := float(base.mean())) <= NEAR_ZERO:
        return None
    within = known_clusters(clusters, both)
    groups = None if within is None else [within]
    z, lost = [new - (1 - margin) * base], (1 - margin) * greatest
    return bound_mean(z, lost, gain=greatest, bound=-margin, unit=mean, clusters=groups)
