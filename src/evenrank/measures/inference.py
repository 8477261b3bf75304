"""The one place where an interval, a p-value or a verdict is made: docs/verdicts.md says how often each is false.

A figure is an :class:`Estimate`. A question about it, such as whether a mean differs from 0, is answered by a
:class:`Comparison`, whose verdict is *shown*, *no difference shown* or *cannot be told*. A bound that a figure has to
keep is a :class:`BoundTest`. Rules that hold for every distribution do not exist; these were tried on data where what
they say is false, through the commands that say it (``python -m benchmarks calibration``). NaN is undefined.

[AEA23] Angelopoulos, Duchi & Zrnic (2023). PPI++: efficient prediction-powered inference. arXiv:2311.01453.
[BERGER82] Berger (1982). Multiparameter Hypothesis Testing and Acceptance Sampling. Technometrics 24(4).
[HALL92] Hall (1992). On the removal of skewness by transformation. J. R. Statist. Soc. B 54(1).
[MN85] Miettinen & Nurminen (1985). Comparative analysis of two rates. Statistics in Medicine 4(2).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from evenrank.files.types import EQUAL as EQUAL
from evenrank.files.types import NEAR_ZERO as NEAR_ZERO
from evenrank.files.types import Array
from evenrank.files.types import holm as holm
from evenrank.files.wording import singular

Interval = tuple[float, float]
Verdict = Literal["shown", "no difference shown", "cannot be told"]

SIGNIFICANT = 0.05
MARGIN = 0.05
"""The share of effectiveness that "no loss" is shown within."""
LEAST = 15
"""Fewer values than this that are not 0 decide nothing: no test of their mean holds for skewed ones."""
POWER = 0.8
LEAST_LABELS = 30
"""Fewer labels than this that were drawn tell nothing of the documents that were not."""
_GUARDED = 30
"""With fewer values the tail that a sample lacks decides: one more is added on the other side."""
_GUARDED_GROUP = 200
"""The same of one of two samples of unlike sizes."""
_ZERO = 1e-12
_HELD = 0.6
"""The share of α at which a bound holds: the query that is added for caution makes up for the rest."""
_HALVINGS = 30
_HALVED = 1e-7
_TWO = 1.157
"""How much larger a difference is that is noticed in 9 of 10 samples than in 8: in 8 of 10, then, by two tests."""
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

    def negated(self) -> Estimate:
        """The same figure, counted the other way."""
        mean = None if self.mean is None else -self.mean
        ends = None if self.ci95 is None else (-self.ci95[1], -self.ci95[0])
        return Estimate(mean, ends, self.n, self.unit)


@dataclass(frozen=True, slots=True)
class Comparison(Estimate):
    """Whether a figure differs from 0: a lean, a difference of two runs, an effect.

    Attributes:
        p: Two-sided, None where nothing can be told; ``holm_p``: after Holm's correction, if there was one.
        noticeable: The size that would have been noticed in 8 of 10 such samples; None without a test.
        method: The test.
        why: Why nothing can be told, and what would tell; None where something can.
    """

    also: ClassVar = ("verdict",)
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


def untold(mean: float | None, n: int, why: str, unit: str = "queries", ci95: Interval | None = None) -> Comparison:
    """A figure of which nothing can be told."""
    return Comparison(mean, ci95, n, unit, why=why)


def corrected(comparisons: Sequence[Comparison], parts: int = 1) -> list[Comparison]:
    """The comparisons with Holm's correction over those that have a p.

    ``parts``: of so many families of tests that share the level, these are one. What is ``noticeable`` is then what the
    first of so many tests notices (by normal quantiles).
    """
    after = [None if p is None else min(1.0, parts * p) for p in holm([one.p for one in comparisons])]
    wider = _wider(parts * sum(p is not None for p in after))
    return [
        replace(one, holm_p=p, noticeable=None if one.noticeable is None else wider * one.noticeable)
        for one, p in zip(comparisons, after, strict=True)
    ]


def _wider(tests: int) -> float:
    """How much larger a difference has to be to be noticed as one of so many tests."""
    if tests < 2:
        return 1.0
    from scipy.special import ndtri

    room = ndtri(POWER)
    return float((ndtri(1 - SIGNIFICANT / 2 / tests) + room) / (ndtri(1 - SIGNIFICANT / 2) + room))


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


@dataclass(frozen=True, slots=True)
class Guarded:
    """A mean, and with fewer than 30 values the mean with one more value as far below it (above it) as the furthest.

    Few values of a skewed kind often lack its tail: their mean lies on the other side of the true one, and their spread
    is small. ``least`` is what a claim that the mean is above something needs, ``most`` what the opposite needs.
    """

    found: Mean
    least: Mean
    most: Mean

    @classmethod
    def of(cls, values: Array) -> Guarded:
        """Of values [n], two or more."""
        found = mean_of_samples([values])
        if len(values) >= _GUARDED or not found.error:
            return cls(found, found, found)
        reach = float(np.abs(values - found.mean).max())
        least, most = (mean_of_samples([np.append(values, found.mean + end)]) for end in (-reach, reach))
        return cls(found, least, most)

    def above(self, bound: float = 0.0) -> float:
        """One-sided p of the claim that the mean is above a bound."""
        return max(above(self.found, bound), above(self.least, bound))

    def below(self, bound: float = 0.0) -> float:
        """One-sided p of the claim that the mean is below a bound."""
        return max(above(-self.found, -bound), above(-self.most, -bound))

    def two_sided(self) -> float:
        """Two-sided p that the mean is 0."""
        if self.found.error == 0:
            return two_sided(self.found)
        return min(1.0, 2 * (self.above() if self.found.mean >= 0 else self.below()))

    def noticeable(self) -> float:
        """The size that is noticed in 8 of 10 such samples: the added value moves the mean and widens its error."""
        away = self.most.mean - self.found.mean
        return max(noticeable(one.error, one.freedom) for one in (self.found, self.most)) + away

    def ends(self) -> Interval:
        """The 95% interval: the means that no test rejects."""
        alpha = SIGNIFICANT / 2
        low = min(lower(one, alpha) for one in (self.found, self.least))
        return low, max(upper(one, alpha) for one in (self.found, self.most))


# --- labels that were drawn ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a figure owes to labels of documents that were drawn: a sum of them, estimated from a sample.

    A figure is M = Σ_d W_d x_d, with W_d the document's weight in it, 1/Q times the sum over its queries of the weights
    of its ranks, and x_d the value of its label. With a guess f_d of every value, wrong as it may be, and labels of a
    sample S, drawn with probabilities π_d, M̂ = Σ_d W_d λ f_d + Σ_{d ∈ S} W_d (x_d − λ f_d)/π_d is unbiased whatever
    the guess: the difference estimator of survey sampling, prediction-powered inference [AEA23].

    Attributes:
        query, document, weight: Where a drawn document is in a query's value [P]: the query, from 0, the number of the
            document among those drawn, and the weight of its rank.
        residual: x_d − λ f_d of the documents drawn [k].
        probability: Their π_d [k], above 0 and at most 1.
        contradicts: Whether a label differs from its guess by more than .5 [k].
    """

    query: Array
    document: Array
    weight: Array
    residual: Array
    probability: Array
    contradicts: Array

    @property
    def labels(self) -> int:
        """How many labels were drawn."""
        return len(self.residual)

    def plus(self, other: Drawn | None, sign: float = 1.0) -> Drawn:
        """The part of the sum of two figures from the same sample (``sign`` −1: of their difference)."""
        if other is None:
            return self
        query = np.concatenate([self.query, other.query])
        document = np.concatenate([self.document, other.document])
        return replace(self, query=query, document=document, weight=np.concatenate([self.weight, sign * other.weight]))

    def only(self, known: Array) -> Drawn:
        """The same of the ``known`` [Q] queries alone, by their new numbers."""
        inside, new = known[self.query], np.cumsum(known) - 1
        query, document = new[self.query[inside]], self.document[inside]
        return replace(self, query=query, document=document, weight=self.weight[inside])

    def errors(self, known: Array) -> tuple[float, float, float, float]:
        """Of a mean over the ``known`` [Q] queries: V, V₁, what V has of single queries, and degrees of freedom.

        With z = W(x − λf)/π and z̄ its mean with weights 1 − π, over the k documents with π < 1:
        V = k/(k − 1) · Σ(1 − π)(z − z̄)². V₁, the mean of (1 − π)(W/π)², is what one more error of size 1 would add,
        as a sample may hold none of a few. Twice as many degrees of freedom as labels that contradict the guess, at
        least 2.
        """
        inside = known[self.query]
        query, document, weight = self.query[inside], self.document[inside], self.weight[inside]
        count, size = self.labels, int(known.sum())
        # A document may be in a query twice, as in a difference of two runs.
        pairs, place = np.unique(query * count + document, return_inverse=True)
        each, document = np.bincount(place, weight, len(pairs)), pairs % count
        whole = np.bincount(document, each, count) / size
        left, scaled = 1 - self.probability, self.residual / self.probability
        open_ = left > 0
        if open_.sum() < 2:
            return 0.0, 0.0, 0.0, math.inf
        z = whole * scaled
        apart = z - (left * z).sum() / left.sum()
        k = int(open_.sum())
        variance = k / (k - 1) * float((left * apart**2).sum())
        one_more = float((left * (whole / self.probability) ** 2)[open_].mean())
        single = float((each**2 * (left * scaled**2)[document]).sum()) / size**2
        used = np.abs(whole) > _ZERO
        return variance, one_more, single, float(max(2, 2 * int((self.contradicts & used & open_).sum())))

    def of_these(self, values: Array) -> Mean:
        """The mean of values [Q], for these queries alone: the only chance is which labels were drawn."""
        variance, one_more, _, freedom = self.errors(~np.isnan(values))
        return Mean(float(np.nanmean(values)), math.sqrt(variance + one_more), freedom)

    def of_such(self, values: Array) -> Mean:
        """The mean of two or more values [Q], for queries like these: the queries are a sample as well.

        V_Q = s²(y)/Q + V − Σ_q Σ_d w² (1 − π)(x − λf)²/π²/Q² counts what is chance in both once; V_T is the largest of
        V_Q, V and s²(y)/Q. The variance is V_T + V₁, its degrees of freedom Satterthwaite's.
        """
        known = ~np.isnan(values)
        size = int(known.sum())
        variance, one_more, single, freedom = self.errors(known)
        between = float(values[known].var(ddof=1)) / size
        most = max(between + variance - single, variance, between)
        total = most + one_more
        if not total:
            return Mean(float(values[known].mean()), 0.0, 1.0)
        parts = (variance + one_more) ** 2 / freedom + (most - variance) ** 2 / (size - 1)
        return Mean(float(values[known].mean()), math.sqrt(total), total**2 / parts)

    @property
    def too_few(self) -> str | None:
        """Why so few labels tell nothing; None where they do. Those count whose documents are in the figure."""
        whole = np.bincount(self.document, self.weight, self.labels)
        used = int((np.abs(whole) > _ZERO).sum())
        return None if used >= LEAST_LABELS else f"only {used} labels bear on it, where {LEAST_LABELS} are needed"


def half_width(weights: Array, chance: Array, wrong: float) -> float:
    """Half the width to expect of the interval for these queries, if labels drawn contradict a share of the guesses.

    ``weights`` [D]: the documents' weights in the figure; ``chance`` [D]: with which probability each is drawn.
    """
    labels = float(chance.sum())
    squares = float((weights**2 * (1 - chance) / chance).sum())
    return quantile(max(2.0, 2 * wrong * labels), 0.975) * math.sqrt((wrong + 1 / labels) * squares)


# --- a mean over queries ---------------------------------------------------------------------------------------------


def defined(values: Array) -> Array:
    """The values that are not NaN."""
    known: Array = values[~np.isnan(values)]
    return known


def estimate(values: Array, *, unit: str = "queries", drawn: Drawn | None = None) -> Estimate:
    """The mean of values [n] and its interval, of Student's t and Hall's t together: what neither of them rejects.

    ``drawn``: the values are estimates from labels that were drawn, and the interval is :meth:`Drawn.of_such`.

    >>> estimate(np.array([0.0, 1.0, 0.5, 0.5, np.nan])).n
    4
    """
    known = defined(values)
    if not len(known):
        return Estimate(None, None, 0, unit)
    if len(known) < 2:
        return Estimate(float(known[0]), None, 1, unit)
    if drawn is not None:
        of_such = drawn.of_such(values)
        return Estimate(of_such.mean, ends(of_such) if of_such.error else None, len(known), unit)
    found = Guarded.of(known)
    return Estimate(float(known.mean()), found.ends() if found.found.error else None, len(known), unit)


def compare(values: Array, *, unit: str = "queries", drawn: Drawn | None = None) -> Comparison:
    """Whether the mean of values [n] differs from 0: a lean, what an order adds, a paired difference.

    Only the k values that are not 0 (within 1e-12) tell: zeros do not change the hypothesis. With their mean x̄, their
    standard deviation s, t = x̄√k/s and Hall's t_H (see :func:`above`), whose skewness has the factor 1 + 6/k, the
    difference is shown if |t| and |t_H| both exceed t(.975; k − 1) with the same sign. Fewer than 15 of them tell
    nothing; fewer than 30 need one more, as :class:`Guarded` says. The interval holds the means that neither test
    rejects, k/n of those of the k values. Where zeros are many that alone is too narrow for a mean far from 0, as how
    many values are 0 is chance too: then the ends are those of all n values, but not beyond 0 where the test excludes
    it.

    Values that share what was drawn, such as a passage, are averaged first (:func:`cluster_means`).

    ``drawn``: the values are estimates from labels that were drawn. Then the test is t of :meth:`Drawn.of_such`, and
    fewer than 30 labels tell nothing.

    Worked example: −.1, .2, .3 and .4, four times each, and 84 zeros: x̄ = .2, s = .1932, t = .2 · 4/.1932 = 4.14, and
    the skewness −.687 · (1 + 6/16)/4 = −.236 makes t_H = 4.14 − 1.35 + .15 − .04 = 2.89: p = .011 with 15 degrees.

    >>> values = np.array([-0.1, 0.2, 0.3, 0.4] * 4 + [0.0] * 84)
    >>> found = compare(values)
    >>> found.mean, found.verdict, round(found.p, 3)
    (0.032, 'shown', 0.011)
    """
    given = values
    values = defined(values)
    n = len(values)
    if not n:
        return untold(None, 0, "no value is defined", unit)
    mean = float(values.mean())
    says = np.abs(values) > _ZERO
    k = int(says.sum())
    if k < 2:
        what = "every value is 0" if not k else f"only one of {n} values is not 0"
        return untold(mean, n, what, unit)
    if drawn is not None:
        why = drawn.too_few or (few(k, n, unit) if k < LEAST else None)
        return _of_drawn(drawn.of_such(given), why, n, unit)
    guarded, share = Guarded.of(values[says]), k / n
    found = guarded.found
    ci95 = _ends_with_zeros(guarded, values, share) if found.error else None
    if k < LEAST:
        return untold(mean, n, few(k, n, unit), unit, ci95)
    if not found.error:
        return Comparison(mean, None, n, unit, two_sided(replace(found, freedom=k - 1.0)), noticeable=0.0)
    return Comparison(mean, ci95, n, unit, guarded.two_sided(), noticeable=share * guarded.noticeable())


def _of_drawn(found: Mean, why: str | None, n: int, unit: str) -> Comparison:
    ci95 = ends(found) if found.error else None
    if why is not None or not found.error:
        return untold(found.mean, n, why or "no label makes a difference", unit, ci95)
    size = noticeable(found.error, found.freedom)
    return Comparison(found.mean, ci95, n, unit, two_sided(found), noticeable=size, method="t, of labels drawn")


def few(k: int, n: int, unit: str = "queries") -> str:
    """Why few values tell nothing: ``only 12 of 40 queries differ from 0, where 15 are needed``."""
    of = f"{k} of {n}" if k < n else f"{k}"
    return f"only {of} {unit} differ from 0, where {LEAST} are needed"


def _ends_with_zeros(found: Guarded, values: Array, share: float) -> Interval:
    """The interval of the mean of all values, ``found`` the mean of those that are not 0."""
    low, high = (share * end for end in found.ends())
    if share == 1:
        return low, high
    of_all = Guarded.of(values).ends()
    # 0 stays outside where the test excludes it, however little.
    least = max(of_all[0], sys.float_info.min) if low > 0 else of_all[0]
    most = min(of_all[1], -sys.float_info.min) if high < 0 else of_all[1]
    return min(low, least), max(high, most)


def compare_parts(
    parts: Sequence[Array],
    factors: Sequence[float],
    *,
    drawn: Drawn | None = None,
) -> Comparison:
    """Whether Σ factor × mean of the ``parts`` [n], which are of different queries, differs from 0.

    Of one part it is :func:`compare`; of several t and Hall's t of the sum, with Welch and Satterthwaite's degrees of
    freedom, all values counted and none added. A part of fewer than 15 values tells nothing.
    """
    if len(parts) == 1:
        return compare(factors[0] * parts[0], drawn=drawn)
    own = [defined(part) for part in parts]
    some = (~np.isnan(np.stack(parts))).any(axis=0) if len({len(p) for p in parts}) == 1 else np.zeros(0, np.bool_)
    count = int(some.sum()) or sum(map(len, own))
    least = min(map(len, own))
    if not least:
        return untold(None, count, "a group has no value")
    mean = sum(factor * float(part.mean()) for factor, part in zip(factors, own, strict=True))
    if least < 2:
        return untold(mean, count, few(least, least))
    found = mean_of_samples(own, factors)
    ci95 = ends(found) if found.error else None
    if least < LEAST:
        return untold(mean, count, f"a group has only {least} queries, where {LEAST} are needed", ci95=ci95)
    if not found.error:
        return untold(mean, count, "the values of each group are all the same")
    return Comparison(mean, ci95, count, p=two_sided(found), noticeable=noticeable(found.error, found.freedom))


def compare_groups(inside: Array, others: Array, *, unit: str = "queries") -> Comparison:
    """Whether the mean of a group of queries differs from that of the others, from values [Q] that are NaN elsewhere.

    By t and Hall's t of the difference, with Welch and Satterthwaite's degrees of freedom. With a sample of fewer than
    200 that is tried with one value more as well, as far from its mean as the furthest, against the claim, as
    :class:`Guarded` does with 30: the skewness of a small sample is not cancelled by that of a large one. A sample of
    fewer than 15 values tells nothing.
    """
    samples = [defined(part) for part in (inside, others)]
    count, least = len(samples[0]), min(map(len, samples))
    if not least:
        one = singular(unit)
        why = f"no {one} of the group has a value" if not count else f"no other {one} has a value"
        return untold(None, count, why, unit)
    mean = float(samples[0].mean()) - float(samples[1].mean())
    why = f"the group has only {least} {unit}" if least == count else f"there are only {least} other {unit}"
    if least < 2:
        return untold(mean, count, f"{why}, where {LEAST} are needed", unit)
    found, low, high = (_difference(samples, side) for side in (0.0, -1.0, 1.0))
    guarded = Guarded(found, low, high)
    ci95 = guarded.ends() if found.error else None
    if least < LEAST:
        return untold(mean, count, f"{why}, where {LEAST} are needed", unit, ci95)
    if not found.error:
        why = "the values of each group are all the same" if mean else "every value is the same"
        return untold(mean, count, why, unit)
    return Comparison(mean, ci95, count, unit, guarded.two_sided(), noticeable=guarded.noticeable())


def both(first: Comparison, second: Comparison) -> Comparison:
    """``first``, shown where ``second`` is as well, on the same side: p is the larger of the two [BERGER82].

    For a claim of two parts, such as a difference that is there and is more than a control's.
    """
    if first.p is None or second.p is None:
        return replace(first, p=None, noticeable=None, why=first.why or second.why)
    same = (first.mean or 0.0) * (second.mean or 0.0) > 0
    noticeable = _TWO * max(first.noticeable or 0.0, second.noticeable or 0.0)
    return replace(first, p=max(first.p, second.p) if same else 1.0, noticeable=noticeable, why=None)


def _difference(samples: Sequence[Array], side: float) -> Mean:
    """The first sample's mean less the second's; ``side``: with a value added to small ones that moves it there."""
    parts = []
    for values, sign in zip(samples, (1.0, -1.0), strict=True):
        if side and len(values) < _GUARDED_GROUP:
            reach = float(np.abs(values - values.mean()).max())
            values = np.append(values, values.mean() + side * sign * reach)
        parts.append(values)
    return mean_of_samples(parts, (1.0, -1.0))


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
    means: Array = np.add.reduceat(values[order], starts, axis=0) / sizes.reshape(shape)
    return means


def cluster_parts(values: Array, clusters: Array) -> Array:
    """One value a cluster [G], of values [n], whose mean is theirs and whose spread is its error's.

    x̄ + (total − size · x̄) · G/n: the linear terms of a mean over clusters of unequal sizes. For an interval far from 0,
    where totals alone would count the spread of the sizes as one of the values; too narrow where one cluster
    has most of the values.
    """
    _, place = np.unique(clusters, return_inverse=True)
    apart = np.bincount(place, values - values.mean())
    parts: Array = values.mean() + apart * len(apart) / len(values)
    return parts


# --- an estimate over pairs of two kinds of units --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Side:
    """What leaving out each cluster [G] does to the coefficients [K], as a jackknife.

    Attributes:
        shifts: Coefficients without the cluster less those of all rows [G, K].
        sizes: The rows of each cluster that count [G]; ``part``: the independent sample that it is of [G].
    """

    shifts: Array
    sizes: Array
    part: Array

    def parts(self, weights: Array) -> Iterator[tuple[Array, float]]:
        """The shifts of Σ weight × coefficient in each part, and how many clusters of equal size are worth its own."""
        shifts = self.shifts @ weights
        for part in np.unique(self.part):
            inside = self.part == part
            sizes = self.sizes[inside]
            yield shifts[inside], float(sizes.sum() ** 2 / max((sizes**2).sum(), 1.0))

    def variance(self, weights: Array) -> float:
        """Σ shift²: G/(G − 1) times the usual one, without which 20 skewed values say too much (.062 for .05)."""
        return sum(float(s @ s) for s, _ in self.parts(weights))

    def freedom(self, weights: Array) -> float:
        """Welch and Satterthwaite's, from effective numbers of clusters; 1 or more."""
        own = [(float(s @ s), max(worth - 1, 1.0)) for s, worth in self.parts(weights)]
        squares = sum(variance**2 / freedom for variance, freedom in own)
        return max(sum(variance for variance, _ in own) ** 2 / squares, 1.0) if squares else 1.0

    def skew(self, weights: Array) -> float:
        """The skewness of the estimate, with its factor 1 + 6/G for few clusters."""
        found = list(self.parts(weights))
        third = sum((1 + 6 / max(worth, 1.0)) * float((s**3).sum()) for s, worth in found)
        plain = sum(float(s @ s) for s, _ in found)
        return -third / plain**1.5 if plain else 0.0


@dataclass(frozen=True, slots=True)
class Clustered:
    """Coefficients of least squares whose rows share units of two kinds, such as queries and passages.

    Attributes:
        coefficients: Of all rows [K].
        first, second, both: What leaving out each unit of a kind does, and each pair of units.
    """

    coefficients: Array
    first: _Side
    second: _Side
    both: _Side

    def mean(self, weights: Array, value: float | None = None) -> Mean:
        """Σ weight [K] × coefficient, or the ``value`` of which the ``weights`` are the derivatives (delta method).

        Its variance is the largest of that by the first units, that by the second, and V₁ + V₂ − V₁₂ [Cameron, Gelbach
        & Miller, JBES 2011, eq. 2.8]. Degrees of freedom are those of the second units where their variance is the
        largest, else the fewer of the two.
        """
        value = float(self.coefficients @ weights) if value is None else value
        first, second, both = (side.variance(weights) for side in (self.first, self.second, self.both))
        variance = max(first, second, first + second - both)
        if variance <= EQUAL**2:
            # Sums that are all 0 do not show values that are all equal; what is below EQUAL is rounding.
            variance = both if both > EQUAL**2 else 0.0
        if not variance:
            return Mean(value, 0.0, float(min(len(self.first.sizes), len(self.second.sizes)) - 1))
        freedom = self.second.freedom(weights)
        if variance > second:
            freedom = min(freedom, self.first.freedom(weights))
        side = self.first if first > second else self.second
        return Mean(value, math.sqrt(variance), freedom, side.skew(weights))


def clustered(
    values: Array,
    first: Array,
    second: Array,
    columns: Array | None = None,
    *,
    instruments: Array | None = None,
    part: Array | None = None,
    counted: Array | None = None,
) -> Clustered:
    """Least squares of values [N] on ``columns`` [N, K] (None: their mean), with what units shared by rows do to it.

    ``first``, ``second`` [N]: the units of a row, as whole numbers from 0: its query and its passage. ``instruments``
    [N, K]: what the coefficients are learnt from (None: the columns), so that Σ instrument × residual is 0 for each.
    ``part`` [N]: of which independent sample a row's second unit is (None: all of one). ``counted`` [N]: the rows that
    make clusters count for the degrees of freedom (None: all). Each unit is left out in turn and the rest fitted anew,
    as unequal clusters make the usual formula reject up to half of all true null hypotheses.

    Worked example: the values of two queries and two passages are 1, 2, 3, 6, their mean 3. Without either query the
    mean is 4.5 or 1.5, so V = 2 · 1.5² = 4.5; without either passage 4 or 2, so V = 2; without a pair 11/3, 10/3, 3 or
    2, so V = 4/9 + 1/9 + 0 + 1 = 14/9. The largest of 4.5, 2 and 4.5 + 2 − 14/9 is 89/18.

    >>> found = clustered(np.array([1.0, 2.0, 3.0, 6.0]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    >>> one = found.mean(np.ones(1))
    >>> one.mean, round(18 * one.error**2, 6)
    (3.0, 89.0)
    """
    columns = np.ones((len(values), 1)) if columns is None else columns
    learnt_from = columns if instruments is None else instruments
    moments = learnt_from[:, :, None] * columns[:, None, :], learnt_from * values[:, None]
    whole = [moment.sum(axis=0) for moment in moments]
    coefficients = _solved(*whole)
    alone = np.zeros(len(values), np.int64)
    counted = np.ones(len(values), bool) if counted is None else counted

    def side(units: Array, parts: Array) -> _Side:
        _, place = np.unique(units, return_inverse=True)
        size = int(place.max()) + 1
        own = [_totals(moment, place, size) for moment in moments]
        left = _solved(*(total - of for total, of in zip(whole, own, strict=True)))
        part_of = np.zeros(size, np.int64)
        part_of[place] = parts
        return _Side(left - coefficients, np.bincount(place, counted, size), part_of)

    parts = alone if part is None else part
    by_second, pairs = side(second, parts), first * (int(second.max()) + 1) + second
    number = len(np.unique(pairs))
    both = by_second if number == len(by_second.sizes) else side(pairs, parts)
    # Where every query has passages of its own, one each, the sides are the same.
    by_first = by_second if number == len(np.unique(first)) == len(by_second.sizes) else side(first, alone)
    return Clustered(coefficients, by_first, by_second, both)


def _solved(squares: Array, products: Array) -> Array:
    """The coefficients [..., K] of normal equations [..., K, K] and [..., K]; those of least size where many fit."""
    sizes = np.sqrt(np.abs(np.diagonal(squares, axis1=-2, axis2=-1)))
    scale = np.where(sizes > 0, sizes, 1.0)
    scaled = squares / (scale[..., :, None] * scale[..., None, :])
    regular = np.abs(np.linalg.det(scaled)) > EQUAL
    # Solving is ten times as fast.
    safe = np.where(regular[..., None, None], scaled, np.eye(squares.shape[-1]))
    right = products / scale
    found = np.linalg.solve(safe, right[..., None])[..., 0]
    if not regular.all():
        least = (np.linalg.pinv(scaled, rcond=EQUAL) @ right[..., None])[..., 0]
        found = np.where(regular[..., None], found, least)
    coefficients: Array = found / scale
    return coefficients


def _totals(values: Array, place: Array, size: int) -> Array:
    """The sums [size, …] of values [N, …] by place [N]."""
    flat = values.reshape(len(values), -1)
    sums = np.stack([np.bincount(place, column, size) for column in flat.T], axis=1)
    return sums.reshape(size, *values.shape[1:])


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


# --- impact ratios ---------------------------------------------------------------------------------------------------

FOUR_FIFTHS = 0.8
SELECTED_MOST = "selected most"
"""Why there is no verdict on the group that others are compared with."""
LEAST_PEOPLE, LEAST_SHARE = 10, 0.02
"""A group of fewer people, or of a smaller share of the candidates, is too small for a verdict, or to be the measure of
others."""
_MOST_RATIO = math.log(1e3)
_NORMAL = math.inf
"""Degrees of freedom with which Student's t is normal."""


@dataclass(frozen=True, slots=True)
class RateRatio(Comparison):
    """A group's rate over that of the group selected most, and whether it is below four fifths.

    ``p``: two-sided, of a ratio of four fifths; 1 above it. ``noticeable``: how far below four fifths.

    Attributes:
        z: The two-proportion z of the two rates, unadjusted; None of exposure, which is no count. ``z_p``: its
            two-sided p.
    """

    unit: str = "people"
    method: str = "score test"
    z: float | None = None
    z_p: float | None = None


def large_enough(people: Array) -> Array:
    """Which of groups of so many ``people`` [G] are large enough for a verdict."""
    # Sums of weights are whole but for rounding.
    people = people + EQUAL
    found: Array = (people >= LEAST_PEOPLE) & (people >= LEAST_SHARE * people.sum())
    return found


def most_selected(selected: Array, people: Array) -> int:
    """The number of the group with the largest rate, of those that are large enough (of all, if none is)."""
    rates = np.divide(selected, people, out=np.full(len(people), -1.0), where=people > 0)
    enough = large_enough(people)
    return int(np.where(enough, rates, -1.0).argmax() if enough.any() else rates.argmax())


def rate_ratios(selected: Array, people: Array, *, counts: bool = True) -> list[RateRatio]:
    """The impact ratio of each of G groups: its rate of selection over that of the group selected most.

    With the rates p and r of a group and of the one selected most, a ratio of θ is tested by T = (p − θr)/√V, and the
    interval holds the θ with |T| up to the quantile. V is the larger of two: Miettinen and Nurminen's variance
    [MN85, equations 9 and 10], of rates that are as likely as can be if their ratio is θ, with people as units, which
    holds for small groups and for nobody selected; and with several lists that over queries, Q/(Q − 1) Σ_q e_q² with
    e_q = (s_q − p n_q)/n − θ(s'_q − r n'_q)/n', since candidates in one list compete for its places and lists differ.
    The quantile is then Student's, with n²/Σ n_q² − 1 degrees of freedom, the fewer of both groups: how many lists of
    equal length have as little weight in one place.

    It assumes that lists are independent, and in a single list that people are; a fixed number of places makes them
    compete, which a difference of rates sees as N/(N − 1), a factor of V. People who apply twice are not seen. Exposure
    (not ``counts``) is at most 1 a person and so varies no more than a selection with its mean: T is then cautious.

    Worked example: 30 of 100 and 60 of 100 are selected: the ratio is .5, z = −.3/√(.45 · .55 · 2/100) = −4.26.

    >>> found, most = rate_ratios(np.array([[30.0, 60.0]]), np.array([[100.0, 100.0]]))
    >>> found.mean, round(found.z, 2), found.verdict, [round(end, 3) for end in found.ci95]
    (0.5, -4.26, 'shown', [0.353, 0.695])
    >>> most.mean, most.why
    (1.0, 'selected most')

    Verdicts need Holm's correction over the groups (:func:`corrected`). It also makes up for the largest of several
    rates being taken: a group that is compared with one of b equal rates is one of b hypotheses at least.

    Args:
        selected: [Q, G]: how many of each group each query's list selects, or their exposure.
        people: [Q, G]: how many candidates of each group it has.
        counts: Whether ``selected`` counts people.
    """
    total, of_group = selected.sum(axis=0), people.sum(axis=0)
    most, enough = most_selected(total, of_group), large_enough(of_group)
    return [
        _rate_ratio(selected[:, [group, most]], people[:, [group, most]], counts)
        if enough[group] and group != most
        else _untold_ratio(total[[group, most]], of_group[[group, most]], of_group.sum(), group == most)
        for group in range(len(total))
    ]


def _untold_ratio(selected: Array, people: Array, everyone: float, most: bool) -> RateRatio:
    n = round(float(people[0]))
    if people[0] <= 0:
        return RateRatio(None, None, 0, why="no candidates")
    ratio = _ratio(selected, people)
    if ratio is None:
        return RateRatio(None, None, n, why="nobody is selected")
    share = float(people[0]) / everyone
    few = f"fewer than {LEAST_PEOPLE} people" if people[0] < LEAST_PEOPLE else ""
    if share < LEAST_SHARE:
        few = f"fewer than {LEAST_SHARE:.0%} of the candidates"
    return RateRatio(ratio, None, n, why=few or (SELECTED_MOST if most else "no other group is large enough"))


def _ratio(selected: Array, people: Array) -> float | None:
    """The ratio of two rates [2]; None where the second is 0."""
    if min(people) <= 0 or selected[1] <= 0:
        return None
    return float(selected[0] / people[0] / (selected[1] / people[1]))


def _rate_ratio(selected: Array, people: Array, counts: bool) -> RateRatio:
    """The ratio of the first of two groups [Q, 2] to the second."""
    (x, y), (n, m) = selected.sum(axis=0), people.sum(axis=0)
    ratio = _ratio(np.array([x, y]), np.array([n, m]))
    if ratio is None:
        return RateRatio(None, None, round(float(n)), why="nobody is selected")
    p, r = x / n, y / m
    freedom = _NORMAL
    apart = np.zeros((1, 2))
    if len(selected) > 1:
        freedom = max(0.1, float(((people.sum(axis=0) ** 2) / (people**2).sum(axis=0)).min()) - 1)
        apart = (selected - np.array([p, r]) * people) / np.array([n, m])

    def statistic(theta: float) -> float:
        of_lists = apart @ np.array([1.0, -theta])
        over_lists = len(apart) / max(1, len(apart) - 1) * float(of_lists @ of_lists)
        error = math.sqrt(max(_score_variance(x, n, y, m, theta), over_lists))
        return float((p - theta * r) / error) if error > 0 else math.copysign(math.inf, p - theta * r)

    reach = quantile(freedom, 0.975)
    low = 0.0 if not x else crossing(lambda log: reach - statistic(math.exp(log)), -20.0, math.log(ratio))
    high = crossing(lambda log: -reach - statistic(math.exp(log)), math.log(ratio) if x else -20.0, _MOST_RATIO)
    ends = (math.exp(low) if x else 0.0, math.exp(high)) if high < _MOST_RATIO - 0.01 else None
    at = statistic(FOUR_FIFTHS)
    below = min(1.0, 2 * tail(-at, freedom)) if at < 0 else 1.0
    error = abs(ratio - FOUR_FIFTHS) / abs(at) if at and math.isfinite(at) else 0.0
    z = _two_proportion_z(x, n, y, m) if counts else None
    return RateRatio(
        ratio,
        ends,
        round(float(n)),
        p=below,
        noticeable=noticeable(error, freedom),
        z=z,
        z_p=None if z is None else 2 * tail(abs(z), _NORMAL),
    )


def _score_variance(x: float, n: float, y: float, m: float, theta: float) -> float:
    """The variance of x/n − θ·y/m, at the most likely rates whose ratio is θ [MN85, equations 9 and 10]."""
    if y <= 0 and x <= 0:
        return 0.0
    a, b, c = theta * (n + m), -(theta * (n + y) + x + m), x + y
    rate = (-b - math.sqrt(max(0.0, b * b - 4 * a * c))) / (2 * a)
    own, other = min(1.0, theta * rate), min(1.0, rate)
    return (own * (1 - own) / n + theta**2 * other * (1 - other) / m) * (n + m) / (n + m - 1)


def _two_proportion_z(x: float, n: float, y: float, m: float) -> float | None:
    """The z of two proportions with their common rate [29 CFR 1607.4 D asks for significance in statistical terms]."""
    rate = (x + y) / (n + m)
    variance = rate * (1 - rate) * (1 / n + 1 / m)
    return float((x / n - y / m) / math.sqrt(variance)) if variance > 0 else None


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


DrawnPair = tuple[Drawn | None, Drawn | None]
"""What a run's values and another's owe to labels that were drawn."""


def on_queries(drawn: DrawnPair, known: Array) -> DrawnPair:
    """The same of the ``known`` [Q] queries alone, by their new numbers."""
    first, second = (None if one is None else one.only(known) for one in drawn)
    return first, second


def sizes(
    own: Sequence[Array],
    other: Sequence[Array] | None,
    factors: Sequence[float],
    drawn: DrawnPair = (None, None),
) -> Sizes:
    """The means of a run's parts [n], and of the other's on the same queries."""
    if drawn[0] is not None:
        mean = drawn[0].of_such(own[0])
        if other is None or drawn[1] is None:
            return Sizes(mean, _NOTHING, mean, mean)
        both = (drawn[0].plus(drawn[1], sign).of_such(own[0] + sign * other[0]) for sign in (1.0, -1.0))
        return Sizes(mean, drawn[1].of_such(other[0]), *both)
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


def compare_sizes(
    own: Sequence[Array],
    other: Sequence[Array],
    factors: Sequence[float],
    *,
    drawn: DrawnPair = (None, None),
) -> Comparison:
    """Whether the size of a run's signed figure differs from that of another, from their parts [n] on the same queries.

    Values that are undefined in one of them are left out of both. The interval holds the differences that neither of
    two one-sided tests (:func:`larger`, :func:`smaller`) rejects.
    """
    both = [~np.isnan(a - b) for a, b in zip(own, other, strict=True)]
    own, other = ([part[known] for part, known in zip(parts, both, strict=True)] for parts in (own, other))
    drawn = on_queries(drawn, both[0])
    n, least = max(map(len, own)), min(map(len, own))
    differ = sum(int((np.abs(a - b) > _ZERO).sum()) for a, b in zip(own, other, strict=True))
    if least < 2:
        return untold(None, n, few(least, least))
    found = sizes(own, other, factors, drawn)
    if not differ:
        return untold(0.0, n, "every value is 0")
    alpha = SIGNIFICANT / 2
    reach = 20 * (found.own.error + found.other.error) + EQUAL
    low = crossing(lambda bound: larger(found, bound) - alpha, found.value - reach, found.value)
    high = -crossing(lambda bound: smaller(found, -bound) - alpha, -found.value - reach, -found.value)
    why = few(min(least, differ), n) if min(least, differ) < LEAST else drawn[0] and drawn[0].too_few
    if why:
        return untold(found.value, n, why, ci95=(low, high))
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
    t and Hall's t of the n values (:func:`above`) are both below −t(1 − α/2): where a long tail is on the other side,
    t(1 − α) would be too often.

    Attributes:
        found: The mean of z; ``most``: that which "broken" needs (:class:`Guarded`); ``held``: that with the query that
            loses all.
        bound: The bound in the units of the rule; ``unit``: what one of these is in those of the measure.
        sign: 1 where the value has to be at least the bound, −1 where at most.
        loss: What that query loses, −z of it; infinite where that is not known, and then nothing holds.
        k: Number of z that are not 0; fewer than 15 break no bound. ``n``: number of z; fewer than 15 do not hold.
    """

    found: Mean
    most: Mean
    held: Mean
    bound: float
    sign: int
    loss: float
    k: int
    n: int
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
        held = self.held if math.isfinite(self.loss) else self.found
        within = held.mean
        if held.error:
            within -= quantile(held.freedom, 1 - _HELD * alpha) * held.error
        beyond = max(upper(one, alpha / 2) for one in (self.found, self.most))
        low, high = sorted((self.sign * within, self.sign * beyond))
        return self.bound + low / self.unit, self.bound + high / self.unit

    def p_holds(self) -> float:
        """p of the claim that it holds: α where the limit reaches the bound; 1 with fewer than 15 queries."""
        if self.n < LEAST or not math.isfinite(self.loss):
            return 1.0
        if not self.held.error:
            return float(not self.held.mean >= -EQUAL)
        return min(1.0, tail(self.held.mean / self.held.error, self.held.freedom) / _HELD)

    def p_broken(self) -> float | None:
        """One-sided p of the claim that it is broken; None with fewer than 15 queries that differ from 0."""
        return min(1.0, 2 * max(above(-self.found), above(-self.most))) if self.k >= LEAST else None

    def power(self, at: float, alpha: float) -> float:
        """The probability of "broken" where the true value is ``at``, in the units of the rule."""
        return power(self.most, self.sign * (self.bound - at) * self.unit, alpha / 2) if self.k >= LEAST else 0.0

    def caught(self, alpha: float) -> float | None:
        """The true value nearest to the bound that is shown to be beyond it with probability 80%."""
        return self.bound - self.sign * least_shown(self.most, alpha / 2) / self.unit if self.k >= LEAST else None


@dataclass(frozen=True, slots=True)
class SizeBound:
    """Whether the size of a signed mean is at most a bound, or that much above another run's; ``alone``: no other.

    As :class:`MeanBound`: ``held`` with a query that leans as far as any document does; ``least`` with one that leans
    as far to the other side as the furthest, where there are fewer than 30.
    """

    found: Sizes
    least: Sizes
    held: Sizes
    bound: float
    loss: float
    k: int
    n: int
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
        low, high = (max(low, 0.0) if self.alone else low), max(high, self.value)
        # What halving leaves of 0.
        return (0.0 if abs(low) <= _HALVED else low), (0.0 if abs(high) <= _HALVED else high)

    def _low(self, alpha: float, reach: float) -> float:
        value = self.found.value
        return crossing(lambda bound: self._larger(bound) - alpha, value - reach, value)

    def _larger(self, bound: float) -> float:
        return min(1.0, 2 * max(larger(self.found, bound), larger(self.least, bound)))

    @staticmethod
    def _high(of: Sizes, alpha: float, reach: float) -> float:
        return -crossing(lambda bound: smaller(of, -bound) - alpha, -of.value - reach, -of.value)

    def p_holds(self) -> float:
        """p of the claim that it holds; 1 with fewer than 15 queries."""
        if self.n < LEAST or not math.isfinite(self.loss):
            return 1.0
        return min(1.0, smaller(self.held, self.bound, reached=True) / _HELD)

    def p_broken(self) -> float | None:
        """One-sided p of the claim that it is broken; None with fewer than 15 queries that differ from 0."""
        return self._larger(self.bound) if self.k >= LEAST else None

    def power(self, at: float, alpha: float) -> float:
        """The probability of "broken" where the true value is ``at`` and there is no other run."""
        return power(self.found.own, at - self.bound, self._one_sided(alpha)) if self.k >= LEAST else 0.0

    def caught(self, alpha: float) -> float | None:
        """The true value nearest to the bound that is shown to be beyond it with probability 80%."""
        return self.bound + least_shown(self.found.own, self._one_sided(alpha)) if self.k >= LEAST else None

    def _one_sided(self, alpha: float) -> float:
        """The level left for the estimate's own sign: the p of :func:`larger` has the other sign's chance too."""
        own, alpha = self.found.own, alpha / 2
        if own.error == 0:
            return alpha
        apart = 2 * self.bound / own.error
        most = quantile(own.freedom, 1 - alpha / 2)
        ratio = crossing(lambda t: alpha - tail(t, own.freedom) - tail(t + apart, own.freedom), 0.0, most)
        return tail(ratio, own.freedom)


BoundTest = MeanBound | SizeBound
Outcome = Literal["holds", "broken", "not shown"]


def outcome(test: BoundTest, p_broken: float | None, alpha: float = SIGNIFICANT) -> Outcome:
    """What a test says of its bound; ``p_broken``: the test's own or that after correction, None: nothing is broken."""
    if test.p_holds() <= alpha:
        return "holds"
    return "broken" if p_broken is not None and p_broken <= alpha else "not shown"


def bound_of_mean(
    within: Sequence[Array],
    loss: float,
    *,
    bound: float = 0.0,
    sign: int = 1,
    unit: float = 1.0,
    factors: Sequence[float] = (1.0,),
    drawn: Drawn | None = None,
) -> MeanBound:
    """The test of z ≥ 0 from the parts of z [n], two values or more each; ``loss``: what the added query loses.

    ``drawn``: what z owes to labels that were drawn.
    """
    if drawn is not None:
        z, lost = within[0], loss if math.isfinite(loss) else 0.0
        found, held = drawn.of_such(z), drawn.of_such(np.append(z, -lost))
        k = int((np.abs(z) > _ZERO).sum())
        return MeanBound(found, found, held, bound, sign, loss, k, len(z), unit)
    lost = loss if math.isfinite(loss) else 0.0
    each = [np.append(part, -lost * np.sign(factor)) for part, factor in zip(within, factors, strict=True)]
    k = min(int((np.abs(part) > _ZERO).sum()) for part in within)
    n = min(map(len, within))
    found = mean_of_samples(within, factors)
    most = Guarded.of(within[0]).most if len(within) == 1 else found
    held = replace(mean_of_samples(each, factors), skew=0.0)
    return MeanBound(found, most, held, bound, sign, loss, k, n, unit)


def bound_of_size(
    own: Sequence[Array],
    other: Sequence[Array] | None,
    bound: float,
    greatest: float,
    factors: Sequence[float] = (1.0,),
    drawn: DrawnPair = (None, None),
) -> SizeBound:
    """The test of |mean of own| − |mean of other| ≤ ``bound`` from the parts [n], two values or more each.

    ``greatest``: the size of the greatest value that a query can have; infinite where that is not known. ``drawn``:
    what the values owe to labels that were drawn.
    """
    found = sizes(own, other, factors, drawn)
    loss = greatest - bound
    greatest = greatest if math.isfinite(greatest) else 0.0
    towards = -1.0 if found.own.mean < 0 else 1.0
    # The query that leans as far as any can: of one part either way, of several parts in those that add to it.
    most = [towards * greatest] if len(own) == 1 else [greatest * (f * towards > 0) for f in factors]
    more = [np.append(part, one) for part, one in zip(own, most, strict=True)]
    held = sizes(more, None if other is None else [np.append(part, 0.0) for part in other], factors, drawn)
    plain = Sizes(*(replace(one, skew=0.0) for one in (held.own, held.other, held.total, held.difference)))
    least = found
    if len(own) == 1 and len(own[0]) < _GUARDED and drawn[0] is None:
        centre = float(own[0].mean())
        further = np.append(own[0], centre - towards * float(np.abs(own[0] - centre).max()))
        beside = None if other is None else [np.append(other[0], float(other[0].mean()))]
        least = sizes([further], beside, factors)
    apart = own if other is None else [a - b for a, b in zip(own, other, strict=True)]
    # Of a bound that is not 0, an equal value tells something too.
    k = min(len(part) if bound else int((np.abs(part) > _ZERO).sum()) for part in apart)
    n = min(map(len, own))
    return SizeBound(found, least, plain, bound, loss, k, n, other is None)


def no_loss(values: Array, baseline: Array, margin: float = MARGIN, greatest: float | None = 1.0) -> MeanBound | None:
    """Whether the mean of values [Q] is at least (1 − ``margin``) times the baseline's: no more than that is lost.

    z = new − (1 − m) · base over the queries that both have, and one that loses the ``greatest`` value that the measure
    can take, None where that is not known. None with fewer than two queries, where the baseline's mean is not above 0,
    and without a ``greatest`` value.

    >>> base = np.full(20, 0.6)
    >>> no_loss(base, base).p_holds() < 0.05, no_loss(np.tile(base, 10), np.tile(base, 10)).p_holds() < 0.05
    (False, True)
    """
    both = ~np.isnan(values - baseline)
    new, base = values[both], baseline[both]
    if greatest is None or both.sum() < 2 or (mean := float(base.mean())) <= NEAR_ZERO:
        return None
    within, lost = [new - (1 - margin) * base], (1 - margin) * greatest
    return bound_of_mean(within, lost, bound=-margin, unit=mean)


def queries_to_hold(
    mean: float, spread: float, loss: float, alpha: float = SIGNIFICANT, chance: float = 0.5
) -> int | None:
    """How many queries with this mean and standard deviation of z show that a bound holds; None: no number does.

    ``loss``: what the added query loses; ``chance``: in which share of samples.
    """
    if mean <= EQUAL:
        return None
    from scipy.special import ndtri

    room = float(ndtri(chance)) * spread

    def holds(n: int) -> bool:
        total = n + 1
        centre = (n * mean - loss) / total
        squares = n * spread**2 + n / total * (mean + loss) ** 2
        centre -= room / math.sqrt(n)
        return bool(centre > quantile(n, 1 - _HELD * alpha) * math.sqrt(squares / n / total))

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


# --- the conventional test, for the reader's own eyes -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Paired:
    """A run against a baseline on the queries where both have a value, p two-sided; None where there is none."""

    n: int
    difference: float | None
    t_p: float | None


def paired_t_test(values: Array, baseline: Array) -> Paired:
    """Paired t-test of values [Q] against baseline values [Q].

    Where no query differs p is 1; there is no test with fewer than two queries, and where all differ by the same.
    """
    difference = values - baseline
    difference = difference[~np.isnan(difference)]
    difference[np.abs(difference) <= EQUAL] = 0.0
    n = len(difference)
    if n == 0:
        return Paired(0, None, None)
    mean = float(difference.mean())
    if n < 2:
        return Paired(n, mean, None)
    if not difference.any():
        return Paired(n, mean, 1.0)
    from scipy.special import stdtr

    spread = float(difference.std(ddof=1)) / np.sqrt(n)
    t_p = float(2 * stdtr(n - 1, -abs(mean) / spread)) if np.ptp(difference) > EQUAL else None
    return Paired(n, mean, t_p)


# --- seeds ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mixed:
    """The mean difference over seeds, and its error; p two-sided, None if untested.

    ``found``: the mean with its error, None with too few values; limit: of which the error mostly comes, seeds or
    queries: more of these would narrow the interval. ``ci95``: where it is not that of ``found``.
    """

    mean: float | None
    found: Mean | None
    p: float | None
    seeds: int
    queries: int
    limit: Literal["seeds", "queries"] = "queries"
    ci95: Interval | None = None

    @property
    def n(self) -> int:
        """The number of what limits the test."""
        return self.seeds if self.limit == "seeds" else self.queries

    def interval(self, level: float = 0.95) -> Interval | None:
        """The two-sided interval of the mean."""
        if level == 0.95 and self.ci95 is not None:
            return self.ci95
        return None if self.found is None else ends(self.found, level)


@dataclass(frozen=True, slots=True)
class _Error:
    """A standard error, its degrees of freedom, and of which it mostly comes; None with too few values."""

    size: float | None
    freedom: float | None
    limit: Literal["seeds", "queries"]
    skew: float = 0.0


def mixed_test(differences: Sequence[Array], *, same_queries: bool = False) -> Mixed:
    """Tests whether differences d[s, q] of two systems, queries q in seeds s, have mean 0.

    The model is d[s, q] = μ + seed + error: a seed is one training, which all its queries share. μ is the mean of the
    seeds' means; its variance is (σ_seed² + σ²/n_s) / S², the components by the analysis of variance. Where seeds
    differ by more than their queries explain, the test has S − 1 degrees of freedom, as the t-test over seeds; where
    they do not, all queries count (from three seeds on). With one seed it is :func:`compare` over its queries.

    ``same_queries``: every seed has the same queries in the same order, so that d[s, q] = μ + seed + query + error: the
    variances of the seeds' and of the queries' means add, less that of the error, which is in both; degrees of freedom
    by :func:`joint_freedom`. Where a seed lacks some of the
    queries (NaN) nothing is subtracted, which makes the error larger, never smaller.

    Values that are NaN are left out.
    """
    known = [one[~np.isnan(one)] for one in differences]
    known = [np.where(np.abs(one) <= EQUAL, 0.0, one) for one in known if len(one)]
    seeds, queries = len(known), sum(map(len, known))
    if not queries:
        return Mixed(None, None, None, seeds, 0)
    means = np.array([one.mean() for one in known])
    mean = float(means.mean())
    if seeds == 1 and queries > 1:
        alone = compare(known[0])
        p = 1.0 if alone.p is None and not known[0].any() else alone.p
        return Mixed(mean, mean_of_samples(known), p, 1, queries, ci95=alone.ci95)
    if same_queries and seeds > 1:
        table = np.stack([one for one in differences if not np.isnan(one).all()])
        queries = int((~np.isnan(table)).any(axis=0).sum())
        found = _crossed(table, means)
    else:
        found = _nested(known, means)
    error = None if found.size is None or found.freedom is None else Mean(mean, found.size, found.freedom, found.skew)
    return Mixed(mean, error, _p(error), seeds, queries, found.limit)


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
    freedom = joint_freedom(parts)
    # The queries' skewness is the mean's as far as its error is theirs.
    skew = mean_of_samples([of_queries]).skew * (by_queries / total) ** 1.5 if total else 0.0
    return _Error(math.sqrt(total), freedom, "seeds" if by_seeds > by_queries else "queries", skew)


def joint_freedom(parts: Sequence[tuple[float, float]]) -> float:
    """The degrees of freedom of a sum of ``parts``, each a variance and its own degrees of freedom.

    Those with which the 95% interval is as wide as the root of the sum of squares of the parts' own. Satterthwaite's
    are too many where a few seeds happen to agree: their variance is then small and counts for little.

    >>> joint_freedom([(1.0, 2.0), (0.0, 100.0)])
    2.0
    """
    total = sum(part for part, _ in parts)
    least, most = min(free for _, free in parts), max(free for _, free in parts)
    if not total or least == most:
        return float(least)
    wide = math.sqrt(sum(part * quantile(free, 0.975) ** 2 for part, free in parts) / total)
    found = crossing(lambda log: wide - quantile(math.exp(log), 0.975), math.log(least), math.log(most))
    return round(math.exp(found), 6)


def _p(found: Mean | None) -> float | None:
    """The p of the mean; None where there is no error to compare it with."""
    if found is None:
        return None
    if found.error <= EQUAL:
        return 1.0 if abs(found.mean) <= EQUAL else None
    return two_sided(found)
