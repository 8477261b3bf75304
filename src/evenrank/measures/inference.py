"""The one place where an interval, a p-value or a verdict is made: see :doc:`/verdicts` for how often each is false.

A figure is an :class:`Estimate`. A question about it, such as whether a mean differs from 0, is answered by a
:class:`Comparison`, whose verdict is *shown*, *no difference shown* or *cannot be told*. A bound that a figure has to
keep is a :class:`BoundTest`. Rules that hold for every distribution do not exist; these were tried on data where what
they say is false, through the commands that say it (``python -m benchmarks calibration``). NaN is undefined.

[HALL92] Hall (1992). On the removal of skewness by transformation. J. R. Statist. Soc. B 54(1).
[WSR24] Waudby-Smith & Ramdas (2024). Estimating means of bounded random variables by betting. J. R. Statist. Soc. B
86(1).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from evenrank.io.tolerances import EQUAL as EQUAL
from evenrank.io.tolerances import NEAR_ZERO as NEAR_ZERO
from evenrank.io.tolerances import holm as holm
from evenrank.io.types import Array

Interval = tuple[float, float]
Verdict = Literal["shown", "no difference shown", "cannot be told"]

SIGNIFICANT = 0.05
MARGIN = 0.05
"""The share of effectiveness that "no loss" is shown within."""
LEAST = 15
"""Fewer values than this that are not 0 decide nothing: no test of their mean holds for skewed ones."""
POWER = 0.8
BOOTSTRAP_DRAWS = 2000
_ZERO = 1e-12
_HELD = 0.6
"""The share of α at which a bound holds: the query that is added for caution makes up for the rest."""
_CHUNK = 100
_MOST_KEPT = 1 << 24
_ALL_SIGNS = 13
_EXACT = 50
_HALVINGS = 30
_ONE_SIDED = 1.6449
"""The normal quantile of one minus SIGNIFICANT."""


# --- figures and comparisons -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Estimate:
    """A figure: its value, its 95% interval, and of how many what.

    Attributes:
        mean: The value; None if it is undefined.
        ci95: Its interval; None with fewer than two values, or where it would have no width.
        n: Number of units with a value; ``unit``: what they are, in the plural.
    """

    mean: float | None
    ci95: Interval | None
    n: int
    unit: str = "queries"

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Comparison(Estimate):
    """Whether a figure differs from 0: a lean, a difference of two runs, an effect.

    Attributes:
        p: Two-sided, None where nothing can be told; ``holm_p``: after Holm's correction, if there was one.
        noticeable: The size that would have been noticed in 8 of 10 such samples; None without a test.
        method: The test.
        why: Why nothing can be told, and what would tell; None where something can.
    """

    p: float | None = None
    holm_p: float | None = None
    noticeable: float | None = None
    method: str = "t and Hall's t"
    why: str | None = None

    @property
    def verdict(self) -> Verdict:
        """Whether the difference is shown (p below .05, after correction if there was one)."""
        p = self.p if self.holm_p is None else self.holm_p
        if p is None:
            return "cannot be told"
        return "shown" if p < SIGNIFICANT else "no difference shown"

    @property
    def shown(self) -> bool:
        """Whether the figure is shown not to be 0."""
        return self.verdict == "shown"

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {**asdict(self), "verdict": self.verdict}


def untold(mean: float | None, n: int, why: str, unit: str = "queries", ci95: Interval | None = None) -> Comparison:
    """A figure of which nothing can be told."""
    return Comparison(mean, ci95, n, unit, why=why)


def corrected(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with Holm's correction over those that have a p."""
    after = holm([one.p for one in comparisons])
    return [replace(one, holm_p=p) for one, p in zip(comparisons, after, strict=True)]


# --- a mean and its skewness -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean, or a sum of the means of independent samples.

    Attributes:
        mean: The estimate.
        error: Its standard error; 0 if the values do not differ.
        freedom: The degrees of freedom of the error; Welch and Satterthwaite's for several samples.
        skew: The skewness of the estimate: that of the values, with its factor for few of them, over √n.
    """

    mean: float
    error: float
    freedom: float
    skew: float = 0.0

    def __neg__(self) -> Mean:
        return Mean(-self.mean, self.error, self.freedom, -self.skew)

    def moved(self, by: float) -> Mean:
        """The same with ``by`` added to every value."""
        return replace(self, mean=self.mean + by)

    def times(self, factor: float) -> Mean:
        """The same with every value times a ``factor`` above 0."""
        return replace(self, mean=self.mean * factor, error=self.error * factor)


def mean_of_samples(samples: Sequence[Array], factors: Sequence[float] = (1.0,)) -> Mean:
    """Σ factor × mean of each of the ``samples`` [n], which are of different queries and have two values or more."""
    mean = variance = plain = third = pooled = 0.0
    for factor, sample in zip(factors, samples, strict=True):
        n, centre = len(sample), float(sample.mean())
        apart = sample - centre
        squares = float(apart @ apart)
        own = factor**2 * squares / (n - 1) / n
        mean += factor * centre
        variance += own
        plain += factor**2 * squares / n**2
        third += factor**3 * (1 + 6 / n) * float((apart**3).mean()) / n**2
        pooled += own**2 / (n - 1)
    # What is left of equal values is rounding.
    if math.sqrt(variance * max(map(len, samples))) <= EQUAL:
        return Mean(mean, 0.0, 1.0)
    return Mean(mean, math.sqrt(variance), variance**2 / pooled, third / plain**1.5)


def above(found: Mean, bound: float = 0.0, *, reached: bool = False) -> float:
    """One-sided p of the claim that the true mean is above ``bound`` (``reached``: or equal to it).

    The larger p of Student's t and of the t from which the skewness is taken out [HALL92, section 2]:
    g(T) = T + κT²/3 + κ²T³/27 + κ/6, where κ is the skewness of the estimate. Alone, t claims too much on one side of
    skewed values, and g on both sides of values with long tails. Values that do not differ decide by the value alone.

    >>> round(above(Mean(0.5, 0.2, 29.0), 0.0), 4)
    0.0092
    """
    if found.error == 0:
        return float(not (found.mean > bound + EQUAL or (reached and found.mean >= bound - EQUAL)))
    return tail((found.mean - bound) / found.error, found.freedom, found.skew)


def tail(ratio: float, freedom: float, skew: float = 0.0) -> float:
    """The p of the ratio T of an estimate to its error."""
    from scipy.special import stdtr

    moved = ratio + skew / 6 + skew * ratio**2 / 3 + skew**2 * ratio**3 / 27
    return float(stdtr(freedom, -min(ratio, moved)))


def lower(found: Mean, alpha: float) -> float:
    """The lower limit of the mean at the one-sided level ``alpha``: the bound for which :func:`above` is ``alpha``."""
    ratio, skew = quantile(found.freedom, 1 - alpha), found.skew
    if abs(skew) > EQUAL:
        # The inverse of Hall's transformation.
        ratio = max(ratio, 3 * (float(np.cbrt(1 + skew * (ratio - skew / 6))) - 1) / skew)
    return found.mean - ratio * found.error


def upper(found: Mean, alpha: float) -> float:
    """The upper limit of the mean at the one-sided level ``alpha``."""
    return -lower(-found, alpha)


def ends(found: Mean, level: float = 0.95) -> Interval:
    """The two-sided interval of the mean: the values that neither test rejects."""
    alpha = (1 - level) / 2
    return lower(found, alpha), upper(found, alpha)


def two_sided(found: Mean) -> float:
    """Two-sided p that the mean is 0: twice the larger of the tests' p, 1 where their signs differ.

    Values that do not differ: as many signs as there are would be equal by chance once in 2ⁿ⁻¹.
    """
    if found.error == 0:
        return 1.0 if abs(found.mean) <= EQUAL else 2.0 ** -max(found.freedom, 1.0)
    return min(1.0, 2 * above(found if found.mean >= 0 else -found))


def quantile(freedom: float, share: float) -> float:
    """The quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))


def noticeable(error: float, freedom: float, level: float = SIGNIFICANT) -> float:
    """The size of a mean that a two-sided test at that level notices in 8 of 10 samples with this error."""
    return error * (quantile(freedom, 1 - level / 2) + quantile(freedom, POWER))


# --- a mean over queries ---------------------------------------------------------------------------------------------


def estimate(values: Array, *, unit: str = "queries") -> Estimate:
    """The mean of values [n] and its interval, of Student's t and Hall's t together: what neither of them rejects.

    >>> estimate(np.array([0.0, 1.0, 0.5, 0.5, np.nan])).n
    4
    """
    known = values[~np.isnan(values)]
    if not len(known):
        return Estimate(None, None, 0, unit)
    if len(known) < 2:
        return Estimate(float(known[0]), None, 1, unit)
    found = mean_of_samples([known])
    return Estimate(float(known.mean()), ends(found) if found.error else None, len(known), unit)


def compare(values: Array, *, clusters: Array | None = None, unit: str = "queries") -> Comparison:
    """Whether the mean of values [n] differs from 0: a lean, what an order adds, a paired difference.

    Only the k values that are not 0 (within 1e-12) tell: zeros do not change the hypothesis. With their mean x̄, their
    standard deviation s, t = x̄√k/s and Hall's t_H (see :func:`above`), whose skewness has the factor 1 + 6/k, the
    difference is shown if |t| and |t_H| both exceed t(.975; k − 1) with the same sign. Fewer than 15 of them tell
    nothing. The interval holds the means that neither test rejects, k/n of those of the k values. Where zeros are many
    that alone is too narrow for a mean far from 0, as how many values are 0 is chance too: then the ends are those of
    all n values, but not beyond 0 where the test excludes it.

    ``clusters`` [n]: what values share, such as a passage; the total of each cluster is one value, over the mean size.

    Worked example: −.1, .2, .3 and .4, four times each, and 84 zeros: x̄ = .2, s = .1932, t = .2 · 4/.1932 = 4.14, and
    the skewness −.687 · (1 + 6/16)/4 = −.236 makes t_H = 4.14 − 1.35 + .15 − .04 = 2.89: p = .011 with 15 degrees.

    >>> values = np.array([-0.1, 0.2, 0.3, 0.4] * 4 + [0.0] * 84)
    >>> found = compare(values)
    >>> found.mean, found.verdict, round(found.p, 3)
    (0.032, 'shown', 0.011)
    """
    known = ~np.isnan(values)
    count = int(known.sum())
    values = values[known]
    if not count:
        return untold(None, 0, "no value is defined", unit)
    mean = float(values.mean())
    if clusters is not None:
        values = cluster_totals(values, clusters[known])
        unit = "clusters" if unit == "queries" else unit
    present = values[np.abs(values) > _ZERO]
    n, k = len(values), len(present)
    if k < 2:
        what = "every value is 0" if not k else f"only one of {n} values is not 0"
        return untold(mean, count, what, unit)
    found, share = mean_of_samples([present]), k / n
    ci95 = _ends_with_zeros(found, values, share) if found.error else None
    if k < LEAST:
        return untold(mean, count, few(k, n, unit), unit, ci95)
    if not found.error:
        found = replace(found, freedom=k - 1.0)
    size = share * noticeable(found.error, found.freedom) if found.error else 0.0
    return Comparison(mean, ci95, count, unit, two_sided(found), noticeable=size)


def few(k: int, n: int, unit: str = "queries") -> str:
    """Why few values tell nothing: ``only 12 of 40 queries say anything, where 15 are needed``."""
    of = f"{k} of {n}" if k < n else f"{k}"
    return f"only {of} {unit} say anything, where {LEAST} are needed"


def _ends_with_zeros(found: Mean, values: Array, share: float) -> Interval:
    """The interval of the mean of all values, ``found`` the mean of those that are not 0."""
    low, high = (share * end for end in ends(found))
    if share == 1:
        return low, high
    of_all = ends(mean_of_samples([values]))
    if low > 0:
        return min(low, max(of_all[0], 0.0) or low), max(high, of_all[1])
    if high < 0:
        return min(low, of_all[0]), max(high, min(of_all[1], 0.0) or high)
    return min(low, of_all[0]), max(high, of_all[1])


def cluster_totals(values: Array, clusters: Array) -> Array:
    """The total of each cluster over the mean size of clusters [G], of values [n]: their mean is that of the values."""
    _, place = np.unique(clusters, return_inverse=True)
    totals = np.bincount(place, values)
    return totals * len(totals) / len(values)


def compare_parts(parts: Sequence[Array], factors: Sequence[float], *, unit: str = "queries") -> Comparison:
    """Whether Σ factor × mean of the ``parts`` [n], which are of different queries, differs from 0.

    As :func:`compare`, with Welch and Satterthwaite's degrees of freedom; of one part, it is that.
    """
    if len(parts) == 1:
        return compare(factors[0] * parts[0], unit=unit)
    known = [part[~np.isnan(part)] for part in parts]
    count = int((~np.isnan(np.stack(parts))).any(axis=0).sum()) if len({len(p) for p in parts}) == 1 else 0
    count = count or sum(map(len, known))
    if not all(map(len, known)):
        return untold(None, count, "a group has no value", unit)
    mean = sum(factor * float(part.mean()) for factor, part in zip(factors, known, strict=True))
    least = min(map(len, known))
    if least < 2:
        return untold(mean, count, few(least, least, unit), unit)
    found = mean_of_samples(known, factors)
    ci95 = ends(found) if found.error else None
    if least < LEAST:
        return untold(mean, count, f"a group has only {least} {unit}, where {LEAST} are needed", unit, ci95)
    if not found.error:
        return untold(mean, count, "no value differs from another", unit)
    return Comparison(mean, ci95, count, unit, two_sided(found), noticeable=noticeable(found.error, found.freedom))


def from_error(found: Mean, n: int, unit: str, *, tests: int = 1, method: str = "t") -> Comparison:
    """A figure whose error was found otherwise; ``tests``: noticeable is what would be as one of so many."""
    if not found.error:
        return Comparison(found.mean, None, n, unit, two_sided(found), noticeable=0.0, method=method)
    size = noticeable(found.error, found.freedom, SIGNIFICANT / max(tests, 1))
    return Comparison(found.mean, ends(found), n, unit, two_sided(found), noticeable=size, method=method)


def cluster_means(values: Array, clusters: Array) -> Array:
    """The mean of each cluster [G, …] of values [n, …], in the order of the clusters' names: each counts as one."""
    _, place, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    order = np.argsort(place, kind="stable")
    starts = np.cumsum(sizes) - sizes
    shape = (-1, *[1] * (values.ndim - 1))
    return np.add.reduceat(values[order], starts, axis=0) / sizes.reshape(shape)


def cluster_parts(values: Array, clusters: Array) -> Array:
    """One value a cluster [G], of values [n], whose mean is theirs and whose spread is its error's.

    x̄ + (total − size · x̄) · G/n: the linear terms of a mean over clusters of unequal sizes. For an interval far from 0,
    where :func:`cluster_totals` would count the spread of the sizes as one of the values; too narrow where one cluster
    has most of the values.
    """
    _, place = np.unique(clusters, return_inverse=True)
    apart = np.bincount(place, values - values.mean())
    found: Array = values.mean() + apart * len(apart) / len(values)
    return found


def size_of(found: Estimate) -> Estimate:
    """The absolute value of a figure: from 0 where its interval holds both signs."""
    if found.mean is None:
        return found
    ci95 = found.ci95
    if ci95 is not None:
        least, most = sorted(map(abs, ci95))
        ci95 = (0.0 if ci95[0] <= 0 <= ci95[1] else least), most
    return Estimate(abs(found.mean), ci95, found.n, found.unit)


_Z = 1.959963984540054


def proportion(part: int, n: int) -> Interval | None:
    """Wilson's 95% interval of ``part`` of ``n``, without continuity correction; None where n is 0.

    >>> [round(end, 4) for end in proportion(8, 10)]
    [0.4902, 0.9433]
    """
    if not n:
        return None
    share, squared = part / n, _Z * _Z / n
    middle = (share + squared / 2) / (1 + squared)
    half = _Z / (1 + squared) * math.sqrt(share * (1 - share) / n + squared / (4 * n))
    return max(0.0, middle - half), min(1.0, middle + half)


# --- a bound that a figure keeps -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Sizes:
    """Two signed means of the same queries, μ of the run and ν of the other; ν is 0 where there is no other.

    Attributes:
        own, other: The means.
        total, difference: μ + ν and μ − ν, with the errors that pairing gives.
    """

    own: Mean
    other: Mean
    total: Mean
    difference: Mean

    @property
    def value(self) -> float:
        """|μ| − |ν|."""
        return abs(self.own.mean) - abs(self.other.mean)

    @property
    def swapped(self) -> Sizes:
        """The same with the roles exchanged."""
        return Sizes(self.other, self.own, self.total, -self.difference)


_NOTHING = Mean(0.0, 0.0, 1.0)


def sizes(own: Sequence[Array], other: Sequence[Array] | None, factors: Sequence[float]) -> Sizes:
    """The means of a run's parts [n], and of the other's on the same queries."""
    mean = mean_of_samples(own, factors)
    if other is None:
        return Sizes(mean, _NOTHING, mean, mean)
    pairs = list(zip(own, other, strict=True))
    total, difference = (mean_of_samples([a + sign * b for a, b in pairs], factors) for sign in (1, -1))
    return Sizes(mean, mean_of_samples(other, factors), total, difference)


def larger(found: Sizes, bound: float, *, reached: bool = False) -> float:
    """One-sided p of the claim |μ| − |ν| > ``bound`` (``reached``: or equal to it).

    The claim is that for one sign s and both signs t, sμ − tν > ``bound``. For a given s both have to be shown, so
    their p is the larger one (intersection–union). Either s would do (union): to the p of the estimate's own sign comes
    the chance of as clear an estimate of the other sign, where the truth is on the bound as near to the estimate as it
    can be. Without ν, and with a bound of 0, that is the two-sided test.
    """
    if any(one.error == 0 and abs(one.mean) <= EQUAL for one in (found.difference, found.total)):
        # The values are the same, or have the other sign: their means have the same size, whatever it is.
        return above(_NOTHING, bound, reached=reached)
    size, sign = abs(found.own.mean), -1.0 if found.own.mean < 0 else 1.0
    covariance = (found.total.error**2 - found.difference.error**2) / 4
    p = extra = 0.0
    for t in (1.0, -1.0):
        # sμ − tν is the difference or the total, up to the sign s.
        apart = found.difference if sign * t > 0 else found.total
        distance = size - t * found.other.mean - bound
        here = _of_side(apart, distance, sign, reached)
        if here > p:
            extra = 0.0
            # Without an error of its own, the mean has one sign only.
            if apart.error > 0 and found.own.error > 0:
                # The truth nearest to the estimate on the bound, in the metric of the errors.
                weight = (found.own.error**2 - sign * t * covariance) / apart.error**2
                nearest = max(size - weight * distance, 0.0)
                extra = tail((distance + 2 * nearest) / apart.error, apart.freedom)
            p = here
    return min(p + extra, 1.0)


def _of_side(apart: Mean, distance: float, sign: float, reached: bool) -> float:
    """The p that sμ − tν, which is ``apart`` or its negative, lies above the bound, from which it is ``distance``."""
    if apart.error > 0:
        return tail(distance / apart.error, apart.freedom, sign * apart.skew)
    return float(not (distance > EQUAL or (reached and distance >= -EQUAL)))


def smaller(found: Sizes, bound: float, *, reached: bool = True) -> float:
    """One-sided p of the claim |μ| − |ν| < ``bound`` (``reached``: or equal to it); without ν two one-sided tests."""
    return larger(found.swapped, -bound, reached=reached)


def compare_sizes(own: Sequence[Array], other: Sequence[Array], factors: Sequence[float]) -> Comparison:
    """Whether the size of a run's signed figure differs from that of another, from their parts [n] on the same queries.

    The interval holds the differences that neither of two one-sided tests (:func:`larger`, :func:`smaller`) rejects.
    """
    n = max(map(len, own))
    least = min(map(len, own))
    differ = sum(int((np.abs(a - b) > _ZERO).sum()) for a, b in zip(own, other, strict=True))
    if least < 2:
        return untold(None, n, few(least, least))
    found = sizes(own, other, factors)
    if not differ:
        return untold(0.0, n, "every value is 0")
    alpha = SIGNIFICANT / 2
    reach = 20 * (found.own.error + found.other.error) + EQUAL
    low = crossing(lambda bound: larger(found, bound) - alpha, found.value - reach, found.value)
    high = -crossing(lambda bound: smaller(found, -bound) - alpha, -found.value - reach, -found.value)
    if min(least, differ) < LEAST:
        return untold(found.value, n, few(min(least, differ), n), ci95=(low, high))
    p = min(1.0, 2 * min(larger(found, 0.0), smaller(found, 0.0, reached=False)))
    apart = found.difference if found.own.mean * found.other.mean >= 0 else found.total
    size = noticeable(apart.error, apart.freedom) if apart.error else 0.0
    return Comparison(found.value, (low, high), n, p=p, noticeable=size)


@dataclass(frozen=True, slots=True)
class MeanBound:
    """Whether a mean is on the side of a bound that it has to be on: a loss within a margin, a value at least.

    With z the distance of each query from the bound, above 0 within it, and one query more that loses all it can:
    the bound *holds* if z̄ − t(1 − .6α; N − 1) · s/√N > 0 over these N = n + 1 values, which is t(.97) for α = .05.
    The query that no sample shows but that may be there is what a few ruined ones would look like. It is *broken* if
    t and Hall's t of the n values (:func:`above`) are both below −t(1 − α).

    Attributes:
        found: The mean of z; ``held``: that with the query that loses all.
        bound: The bound in the units of the rule; ``unit``: what one of these is in those of the measure.
        sign: 1 where the value has to be at least the bound, −1 where at most.
        loss: What that query loses, −z of it.
        k: Number of z that are not 0; fewer than 15 break no bound.
    """

    found: Mean
    held: Mean
    bound: float
    sign: int
    loss: float
    k: int
    unit: float = 1.0

    @property
    def value(self) -> float:
        """The estimate, in the units of the rule."""
        return self.bound + self.sign * self.found.mean / self.unit

    @property
    def distance(self) -> float:
        """How far the estimate is within the bound, in the units of the measure."""
        return self.found.mean

    @property
    def error(self) -> float:
        """The standard error."""
        return self.found.error

    def limits(self, alpha: float = SIGNIFICANT) -> Interval:
        """The one-sided limits of the value: of the side that may break it with the query that loses all."""
        within = self.held.mean
        if self.held.error:
            within -= quantile(self.held.freedom, 1 - _HELD * alpha) * self.held.error
        beyond = upper(self.found, alpha)
        low, high = sorted((self.sign * within, self.sign * beyond))
        return self.bound + low / self.unit, self.bound + high / self.unit

    def p_holds(self) -> float:
        """p of the claim that it holds: α where the limit reaches the bound."""
        if not self.held.error:
            return float(not self.held.mean >= -EQUAL)
        return min(1.0, tail(self.held.mean / self.held.error, self.held.freedom) / _HELD)

    def p_broken(self) -> float | None:
        """One-sided p of the claim that it is broken; None with fewer than 15 queries that say anything."""
        return above(-self.found) if self.k >= LEAST else None

    def power(self, at: float, alpha: float) -> float:
        """The probability of "broken" where the true value is ``at``, in the units of the rule."""
        return power(self.found, self.sign * (self.bound - at) * self.unit, alpha) if self.k >= LEAST else 0.0

    def caught(self, alpha: float) -> float | None:
        """The true value nearest to the bound that is shown to be beyond it with probability 80%."""
        return self.bound - self.sign * least_shown(self.found, alpha) / self.unit if self.k >= LEAST else None


@dataclass(frozen=True, slots=True)
class SizeBound:
    """Whether the size of a signed mean is at most a bound, or that much above another run's; ``alone``: no other.

    As :class:`MeanBound`: ``held`` with a query that leans as far as any document does.
    """

    found: Sizes
    held: Sizes
    bound: float
    loss: float
    k: int
    alone: bool

    @property
    def value(self) -> float:
        """The estimate."""
        return self.found.value

    @property
    def distance(self) -> float:
        """How far the estimate is within the bound."""
        return self.bound - self.found.value

    @property
    def error(self) -> float:
        """The standard error, as the limit towards the bound has it: near 0 both signs of the means are possible."""
        reach = 20 * (self.found.own.error + self.found.other.error) + EQUAL
        if self.distance > 0:
            return (self._high(self.found, SIGNIFICANT, reach) - self.value) / _ONE_SIDED
        return (self.value - self._low(SIGNIFICANT, reach)) / _ONE_SIDED

    def limits(self, alpha: float = SIGNIFICANT) -> Interval:
        """The one-sided limits of the value: the bounds that are just not rejected."""
        reach = 20 * (self.held.own.error + self.held.other.error) + EQUAL
        low, high = self._low(alpha, reach), self._high(self.held, _HELD * alpha, reach)
        return (max(low, 0.0) if self.alone else low), max(high, self.value)

    def _low(self, alpha: float, reach: float) -> float:
        value = self.found.value
        return crossing(lambda bound: larger(self.found, bound) - alpha, value - reach, value)

    @staticmethod
    def _high(of: Sizes, alpha: float, reach: float) -> float:
        return -crossing(lambda bound: smaller(of, -bound) - alpha, -of.value - reach, -of.value)

    def p_holds(self) -> float:
        """p of the claim that it holds."""
        return min(1.0, smaller(self.held, self.bound, reached=True) / _HELD)

    def p_broken(self) -> float | None:
        """One-sided p of the claim that it is broken; None with fewer than 15 queries that say anything."""
        return larger(self.found, self.bound) if self.k >= LEAST else None

    def power(self, at: float, alpha: float) -> float:
        """The probability of "broken" where the true value is ``at`` and there is no other run."""
        return power(self.found.own, at - self.bound, self._one_sided(alpha)) if self.k >= LEAST else 0.0

    def caught(self, alpha: float) -> float | None:
        """The true value nearest to the bound that is shown to be beyond it with probability 80%."""
        return self.bound + least_shown(self.found.own, self._one_sided(alpha)) if self.k >= LEAST else None

    def _one_sided(self, alpha: float) -> float:
        """The level left for the estimate's own sign: the p of :func:`larger` has the other sign's chance too."""
        own = self.found.own
        if own.error == 0:
            return alpha
        apart = 2 * self.bound / own.error
        most = quantile(own.freedom, 1 - alpha / 2)
        ratio = crossing(lambda t: alpha - tail(t, own.freedom) - tail(t + apart, own.freedom), 0.0, most)
        return tail(ratio, own.freedom)


BoundTest = MeanBound | SizeBound


def bound_of_mean(
    within: Sequence[Array],
    loss: float,
    *,
    bound: float = 0.0,
    sign: int = 1,
    unit: float = 1.0,
    factors: Sequence[float] = (1.0,),
) -> MeanBound:
    """The test of z ≥ 0 from the parts of z [n], two values or more each; ``loss``: what the added query loses."""
    found = mean_of_samples(within, factors)
    each = [np.append(part, -loss * np.sign(factor)) for part, factor in zip(within, factors, strict=True)]
    k = min(int((np.abs(part) > _ZERO).sum()) for part in within)
    return MeanBound(found, replace(mean_of_samples(each, factors), skew=0.0), bound, sign, loss, k, unit)


def no_loss(values: Array, baseline: Array, margin: float = MARGIN, greatest: float = 1.0) -> MeanBound | None:
    """Whether the mean of values [Q] is at least (1 − ``margin``) times the baseline's: no more than that is lost.

    z = new − (1 − m) · base over the queries that both have, and one that loses the ``greatest`` value that the measure
    can take. None with fewer than two queries, or where the baseline's mean is not above 0.

    >>> base = np.full(20, 0.6)
    >>> no_loss(base, base).p_holds() < 0.05, no_loss(np.tile(base, 10), np.tile(base, 10)).p_holds() < 0.05
    (False, True)
    """
    both = ~np.isnan(values - baseline)
    new, base = values[both], baseline[both]
    if both.sum() < 2 or base.mean() <= NEAR_ZERO:
        return None
    return bound_of_mean([new - (1 - margin) * base], (1 - margin) * greatest, bound=-margin, unit=float(base.mean()))


def one_in(margin: float, baseline: float, greatest: float = 1.0) -> float:
    """X of "a loss in 1 of X queries could make up the margin", a share of the baseline's mean."""
    return greatest / (margin * baseline)


def queries_to_hold(mean: float, spread: float, loss: float, alpha: float = SIGNIFICANT) -> int | None:
    """How many queries with this mean and standard deviation of z show that a bound holds; None: no number does."""
    if mean <= EQUAL:
        return None

    def holds(n: int) -> bool:
        total = n + 1
        centre = (n * mean - loss) / total
        squares = n * spread**2 + n / total * (mean + loss) ** 2
        return centre > quantile(n, 1 - _HELD * alpha) * math.sqrt(squares / n / total)

    high = 2
    while not holds(high):
        high *= 2
        if high > 1e9:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def power(found: Mean, distance: float, alpha: float) -> float:
    """The probability that a mean whose true value is ``distance`` above the bound is shown to be above it.

    By the non-central t, with the observed spread.
    """
    from scipy.special import nctdtr

    if found.error == 0:
        return float(distance > EQUAL)
    return float(1 - nctdtr(found.freedom, distance / found.error, quantile(found.freedom, 1 - alpha)))


def least_shown(found: Mean, alpha: float) -> float:
    """The smallest distance above the bound that is shown with probability 80%, by the same."""
    if found.error == 0:
        return 0.0
    # Twice what the normal approximation says, and more than enough for small samples.
    most = 2 * found.error * (quantile(found.freedom, 1 - alpha) + 3)
    return crossing(lambda distance: power(found, distance, alpha) - POWER, 0.0, most)


def crossing(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that does not fall crosses 0 between ``low`` and ``high``, by halving."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if function(middle) > 0 else (middle, high)
    return (low + high) / 2


def factor_to_decide(distance: float, error: float, alpha: float) -> float | None:
    """How many times as many queries show a true ``distance`` from the bound with probability 80%; None: none would.

    Normal approximation with the observed error: ((z₁₋α + z.₈) · error / distance)².
    """
    from scipy.special import ndtri

    if abs(distance) <= EQUAL:
        return None
    return float(((ndtri(1 - alpha) + ndtri(POWER)) * error / distance) ** 2)


def guaranteed_lower(values: Array, least: float, most: float, alpha: float = SIGNIFICANT) -> float:
    """A lower limit of the mean of values [n] between ``least`` and ``most`` that holds at any n, for any such values.

    The betting bound [WSR24, section 4]: who bets λ on each value in turn, λ chosen from those before, multiplies what
    they have by 1 + λ(x − m). If the mean is m or less, they have 1/α times as much at any time in at most a share α of
    all samples, so the limit may be looked at after every batch. The values have to come in an order that does not
    depend on them. λ = √(2 ln(1/α) / (σ̂² t ln(t + 1))), at most 3/4 of what could lose all.

    >>> guaranteed_lower(np.full(200, 0.6), 0.0, 1.0) > 0.5
    True
    """
    scaled = (values - least) / (most - least)
    n = len(scaled)
    if not n:
        return least
    times = np.arange(1, n + 1)
    means = (0.5 + np.cumsum(scaled)) / (times + 1)
    spreads = (0.25 + np.cumsum((scaled - means) ** 2)) / (times + 1)
    before = np.concatenate([[0.25], spreads[:-1]])
    bets = np.sqrt(2 * math.log(1 / alpha) / (before * times * np.log(times + 1)))

    def wins(m: float) -> bool:
        stakes = np.minimum(bets, 0.75 / max(m, _ZERO))
        return bool(np.cumsum(np.log1p(stakes * (scaled - m))).max() >= -math.log(alpha))

    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if wins(middle) else (low, middle)
    return least + low * (most - least)


# --- conventional tests, for the reader's own eyes --------------------------------------------------------------------


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


# --- figures that are no mean: the bootstrap, exchanges of two runs ---------------------------------------------------


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


# --- seeds ------------------------------------------------------------------------------------------------------------


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
