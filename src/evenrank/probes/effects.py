"""The mean of what pairs of a query and a passage show, with an interval that respects both.

The same query stands in many pairs and so may the same passage: pairs that share either are not independent. The
standard error is that of two-way clustering [Cameron, Gelbach & Miller, JBES 2011].
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from evenrank.measures.inference import EQUAL, SIGNIFICANT

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
FOUND = 0.9
"""The share of samples in which the detectable effect would be found."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A mean over pairs of a query and a passage.

    ``mean`` (NaN without pairs), ``ci95``, two-sided ``p`` that it is 0, standard error ``se``; ``n`` pairs of so many
    ``queries`` and ``passages``; ``detectable``: an effect of this size or more would be found (p < .05) in nine of
    ten such samples. Interval, p, error and detectable effect are None with fewer than two queries or passages.
    ``freedom``: degrees of freedom of Student's t, as many as equal clusters would have.
    """

    mean: float
    ci95: tuple[float, float] | None
    p: float | None
    se: float | None
    n: int
    queries: int
    passages: int
    detectable: float | None
    freedom: float | None = None

    def detectable_among(self, tests: int) -> float | None:
        """The effect that would be found in nine of ten samples as one of so many tests, each at .05 / ``tests``."""
        if self.se is None or self.freedom is None:
            return None
        return _detectable(self.se, self.freedom, SIGNIFICANT / max(tests, 1))

    def to_dict(self) -> dict[str, object]:
        """As JSON values; None for NaN."""
        found = asdict(self)
        return {**found, "mean": self.mean if self.n else None, "ci95": list(self.ci95) if self.ci95 else None}


@dataclass(frozen=True, slots=True)
class Effects:
    """R effects over the same pairs: ``means``, ``errors``, ``p`` and ``detectable``, all [R]; ``freedom`` of t."""

    means: Floats
    errors: Floats
    p: Floats
    detectable: Floats
    freedom: float


def effect(values: Floats, query: Ints, passage: Ints) -> Effect:
    """The mean of ``values`` [N] of the pairs (``query[i]``, ``passage[i]``), any numbers; NaN values are left out.

    V_g = (G − 1)/G · Σ (mean without a cluster − mean)² over the G clusters of g: the queries, the passages, and the
    pairs. The variance is V_query + V_passage − V_pair [Cameron, Gelbach & Miller 2011, eq. 2.8], but no smaller than
    the smaller of the first two; interval and p are those of Student's t, so that they never disagree. Its degrees of
    freedom are the effective number of clusters, N² / Σ N_g² for N_g pairs each, of queries or of passages (the smaller
    one), less 1, and at least 1. Leaving out (the jackknife) and effective numbers are ours: lists of unequal length
    make the usual formula reject up to half of all true null hypotheses. Of null effects that vary by query, passage
    and pair, simulations reject 3 to 7% at p < .05, and fewer where one query has most of the pairs.

    Values that are all equal (within 1e-9) leave no error. Where they are not 0, p is that of flipping the signs of
    whole clusters, 2 / 2^G with the smaller G, and the interval is the value alone if p is below .05, else None.

    When it misleads: with a handful of queries or passages only large effects are found. A pair's value must not depend
    on other pairs' but through the query and the passage that they share.

    Worked example: the values of two queries and two passages are 1, 2, 3, 6, their mean 3. Without either query the
    mean is 4.5 or 1.5, so V = ½ · 2 · 1.5² = 2.25; without either passage 4 or 2, so V = 1; without a pair 11/3, 10/3,
    3 or 2, so V = ¾ · (4/9 + 1/9 + 0 + 1) = 7/6. The variance is 2.25 + 1 − 7/6 = 25/12.

    >>> import numpy as np
    >>> found = effect(np.array([1.0, 2.0, 3.0, 6.0]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    >>> found.mean, round(found.se**2 * 12, 6), round(found.p, 3)
    (3.0, 25.0, 0.285)
    """
    return _effect(values, query, passage, np.ones(len(values), bool))


def difference(own: Floats, placebo: Floats, query: Ints, passage: Ints) -> Effect:
    """The mean of ``own`` [N] less that of ``placebo`` [N], which may be known (not NaN) for fewer of the pairs.

    Pairs without an own value are left out of both. The error is :func:`effect`'s of the values of
    :func:`differences`; as a placebo of few queries or passages is known no better than they are many, the number of
    clusters, for G/(G − 1) and for the degrees of freedom, is that of the pairs with a placebo. Where all have one,
    this is :func:`effect` of own − placebo. ``n``, ``queries`` and ``passages`` are those of ``own``; without any
    placebo there is no figure (a mean of NaN, ``n`` 0).

    Worked example: own values 1, 2, 3 and 6 have the mean 3, the placebo's 1 and 2 of the first and the last pair 1.5.
    The difference is 1.5, its pairs' values are .5, .5, 1.5 and 3.5, and the residuals −1, −1, 0, 2. By query V = 2 ·
    8/16, by passage 2 · 2/16, and by pair, of which two have a placebo, 2 · 6/16: 1 + .25 − .75 = .5.

    >>> import numpy as np
    >>> own, placebo = np.array([1.0, 2.0, 3.0, 6.0]), np.array([1.0, np.nan, np.nan, 2.0])
    >>> found = difference(own, placebo, np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    >>> found.mean, found.n, round(found.se**2, 6)
    (1.5, 4, 0.5)
    """
    return _effect(differences(own, placebo), query, passage, ~np.isnan(placebo))


def differences(own: Floats, placebo: Floats) -> Floats:
    """Values [N] whose mean is the mean of ``own`` [N] less that of ``placebo`` [N], and whose spread is its error's.

    A pair's value is the difference of the two means and the pair's part in each: θ + (own − mean) − (placebo − mean) ·
    n / m, where n pairs have an own value, m of these a placebo, and the last term is 0 without one (the linear terms,
    or influence values, of a difference of means). NaN without an own value, and everywhere without a placebo.

    >>> import numpy as np
    >>> differences(np.array([1.0, 2.0, 3.0, 6.0]), np.array([1.0, np.nan, np.nan, 2.0])).tolist()
    [0.5, 0.5, 1.5, 3.5]
    """
    known = ~np.isnan(own)
    both = known & ~np.isnan(placebo)
    if not both.any():
        return np.full(len(own), np.nan)
    mean = placebo[both].mean()
    parts = np.where(both, placebo - mean, 0.0) * known.sum() / both.sum()
    found: Floats = own - mean - parts
    return found


def _effect(values: Floats, query: Ints, passage: Ints, among: Flags) -> Effect:
    """:func:`effect`, whose clusters are those of the pairs ``among`` [N]."""
    known = ~np.isnan(values)
    values, among = values[known], among[known]
    queries, passages = (_numbered(side[known]) for side in (query, passage))
    number, number_passages = (int(side.max(initial=-1)) + 1 for side in (queries, passages))
    mean = float(values.mean()) if len(values) else float("nan")
    if min(len(np.unique(side[among])) for side in (queries, passages)) < 2:
        return Effect(mean, None, None, None, len(values), number, number_passages, None)
    found = effects(values[None, :], queries, passages, among)
    error, p = float(found.errors[0]), float(found.p[0])
    half = error * _quantile(found.freedom, 1 - SIGNIFICANT / 2)
    interval = (mean - half, mean + half) if error or p < SIGNIFICANT or abs(mean) <= EQUAL else None
    sizes = len(values), number, number_passages
    return Effect(mean, interval, p, error, *sizes, float(found.detectable[0]), found.freedom)


def effects(values: Floats, query: Ints, passage: Ints, among: Flags | None = None) -> Effects:
    """:func:`effect` of each of R samples ``values`` [R, N], without NaN, over the same pairs of at least two queries
    and two passages; ``among`` [N]: the pairs whose clusters are counted (None: all)."""
    from scipy.special import stdtr

    sides = [_numbered(query), _numbered(passage)]
    pairs = _numbered(sides[0] * (int(sides[1].max()) + 1) + sides[1])
    means = values.mean(axis=1)
    residuals = values - means[:, None]
    among = np.ones(len(query), bool) if among is None else among
    numbers = [len(np.unique(side[among])) for side in (*sides, pairs)]
    by_query, by_passage, by_pair = map(_variances, [residuals] * 3, (*sides, pairs), numbers)
    variances = np.maximum(by_query + by_passage - by_pair, np.minimum(by_query, by_passage))
    # Sums that are all 0 do not show values that are all equal; what is below EQUAL is rounding.
    variances = np.where(variances > EQUAL**2, variances, by_pair)
    errors = np.where(np.ptp(values, axis=1) > EQUAL, np.sqrt(variances), 0.0)
    freedom = max(min(_effective(side[among]) for side in sides) - 1, 1.0)
    size = np.abs(means)
    p = 2 * stdtr(freedom, -np.divide(size, errors, out=np.zeros(len(size)), where=errors > 0))
    flipped = 2.0 ** (1 - min(numbers[:2]))
    p = np.where((errors > 0) | (size <= EQUAL), p, flipped)
    return Effects(means, errors, p, _detectable(errors, freedom), freedom)


def _effective(clusters: Ints) -> float:
    """How many clusters of equal size are worth these."""
    sizes = np.bincount(clusters)
    return float(sizes.sum() ** 2 / (sizes**2).sum())


Errors = TypeVar("Errors", float, Floats)


def _detectable(errors: Errors, freedom: float, level: float = SIGNIFICANT) -> Errors:
    return errors * (_quantile(freedom, 1 - level / 2) + _quantile(freedom, FOUND))


def _variances(residuals: Floats, clusters: Ints, counted: int) -> Floats:
    """The jackknife variance [R] of a mean of residuals [R, N] by clusters [N], which are numbered from 0 and count as
    so many."""
    samples, size = residuals.shape
    number = int(clusters.max()) + 1
    places = clusters + np.arange(samples)[:, None] * number
    sums = np.bincount(places.ravel(), residuals.ravel(), samples * number).reshape(samples, number)
    rest = size - np.bincount(clusters)
    correction = ((number - 1) / number) ** 2 * counted / (counted - 1)
    variances: Floats = ((sums / rest) ** 2).sum(axis=1) * correction
    return variances


def _numbered(values: Ints) -> Ints:
    """The values' numbers from 0, without gaps."""
    numbers: Ints = np.unique(values, return_inverse=True)[1]
    return numbers


def _quantile(freedom: float, share: float) -> float:
    """The quantile of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, share))
