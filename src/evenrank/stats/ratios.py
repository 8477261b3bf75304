"""Proportions, and impact ratios of groups of people.

[MN85] Miettinen & Nurminen (1985). Comparative analysis of two rates. Statistics in Medicine 4(2).
[MH59] Mantel & Haenszel (1959). Statistical aspects of the analysis of data. J. Natl. Cancer Inst. 22(4).
[RS92] Rao & Scott (1992). A simple method for the analysis of clustered binary data. Biometrics 48(2).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from evenrank.files.types import EQUAL, Array, holm

from .compare import Comparison, corrected
from .estimate import POWER, SIGNIFICANT, Interval, adjusted_t_sf, bisect_root, t_quantile

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


FOUR_FIFTHS = 0.8
SELECTED_MOST = "selected most"
"""Why there is no verdict on the group that others are compared with."""
LEAST_PEOPLE, LEAST_SHARE = 10, 0.02
"""A group of fewer people, or a smaller share of the candidates, gets no verdict, and no group is compared with it."""
_NONE_LARGE = f"no group has {LEAST_PEOPLE} people and {LEAST_SHARE:.0%} of the candidates"
_MAX_LOG_RATIO = math.log(1e3)
_MIN_LOG_RATIO = -20.0
_NORMAL = math.inf
"""Degrees of freedom with which Student's t is normal."""


@dataclass(frozen=True)
class Selection:
    """Candidates and selected of G groups, summed over the rows of each of P people and over those of each list.

    A row is a person in a list, such as an application for a job. Of people in several groups a weight counts.

    Attributes:
        selected: Selected rows of each person by group [P, G], or their exposure.
        candidates: Rows of each person by group [P, G].
        rows: Rows of each person [P]; None where nobody has more than one.
        by_list: Selected and candidates of each list, [Q, G] each.
        counts: Whether ``selected`` counts rows, rather than their exposure.
    """

    selected: Array
    candidates: Array
    rows: Array | None
    by_list: tuple[Array, Array]
    counts: bool = True

    @classmethod
    def of_rows(
        cls, selected: Array, weights: Array, person: Array | None = None, list_of: Array | None = None
    ) -> Selection:
        """The sums of N rows.

        Args:
            selected: Whether each row is selected [N], from 0 to 1.
            weights: Weight of each group [N, G].
            person: Number of each row's person [N], from 0; None: each row is another person.
            list_of: Number of each row's list [N], from 0; None: one list.
        """
        taken, every = selected[:, None] * weights, weights
        list_of = np.zeros(len(selected), dtype=np.int64) if list_of is None else list_of
        by_list = row_sums(taken, list_of), row_sums(every, list_of)
        if person is None:
            return cls(taken, every, None, by_list)
        return cls(row_sums(taken, person), row_sums(every, person), np.bincount(person), by_list)

    @functools.cached_property
    def people(self) -> Array:
        """People of each group [G]."""
        shares = self.candidates if self.rows is None else self.candidates / np.maximum(self.rows, 1)[:, None]
        people: Array = shares.sum(axis=0)
        return people

    @property
    def large_enough(self) -> Array:
        """Which groups [G] are large enough for a verdict."""
        # Sums of weights are whole but for rounding.
        people, candidates = self.people + EQUAL, self.by_list[1].sum(axis=0)
        large: Array = (people >= LEAST_PEOPLE) & (candidates + EQUAL >= LEAST_SHARE * candidates.sum())
        return large

    @property
    def most_selected(self) -> int:
        """Number of the group with the largest rate, of those that are large enough (of all, if none is)."""
        selected, candidates = (sums.sum(axis=0) for sums in self.by_list)
        rates = np.divide(selected, candidates, out=np.full(len(candidates), -1.0), where=candidates > 0)
        large = self.large_enough
        return int(np.where(large, rates, -1.0).argmax() if large.any() else rates.argmax())


def row_sums(values: Array, key: Array) -> Array:
    """Sums [K, G] of values [N, G] over the rows of each ``key`` [N], a whole number from 0."""
    return np.stack([np.bincount(key, weights=column) for column in values.T], axis=1)


@dataclass(frozen=True, slots=True)
class RateRatio(Comparison):
    """A group's rate of selection over that of the group selected most, and whether it is below four fifths.

    ``n`` people. ``p``: two-sided, of a ratio of four fifths; 1 above it. ``mde``: how far below four fifths a true
    ratio has to be; None too where not even a ratio of 0 is that far.

    Attributes:
        p_equal: Two-sided p of equal rates, by the same statistic; ``holm_p_equal``: corrected for all groups and for
            the choice of the largest rate.
        z: The two-proportion z of the two rates, unadjusted; None of exposure, which is no count,
            and where people occur more than once. ``z_p``: its
            two-sided p.
        within_lists: The ratio within lists, by Mantel and Haenszel; None of a single list.
    """

    unit: str = "people"
    method: str = "score test"
    p_equal: float | None = None
    holm_p_equal: float | None = None
    z: float | None = None
    z_p: float | None = None
    within_lists: float | None = None

    @property
    def below(self) -> bool:
        """Whether the ratio is below four fifths, shown or not, of the rate of a group that is large enough."""
        return self.mean is not None and self.mean < FOUR_FIFTHS - EQUAL and self.reason != _NONE_LARGE

    def to_equal_rates(self) -> Comparison:
        """Whether the rates differ at all."""
        return Comparison(self.mean, self.ci95, self.n, self.unit, self.p_equal, self.holm_p_equal, method=self.method)


def rate_ratios(selection: Selection) -> list[RateRatio]:
    """The impact ratio of each of G groups: its rate of selection over that of the group selected most.

    With the rates p of n rows and r of m rows, of a group and of the one selected most, a ratio of θ is tested by
    T = (p − θr)/√V. The interval holds the θ that T does not reject; ``p`` is T's at .8, ``p_equal`` at 1. Lists are as
    they are, people are drawn. V is Miettinen and Nurminen's variance [MN85, equations 9 and 10], of rates that are as
    likely as can be if their ratio is θ, which holds for small groups and for nobody selected; T is normal.

    Where people have several rows it is the larger of two, and T Student's with the lesser group's (Σn_i)²/Σn_i² − 1
    degrees of freedom, n_i rows of person i:

    - the same times the design effect d = C/(C − 1) · [Σ(s_i − p n_i)² + Σ(s_i − r m_i)²]/[n p(1 − p) + m r(1 − r)] if
      that is above 1 [RS92]: of C people, s_i of whose rows are selected. Of nobody selected it is that of the others.
    - C/(C − 1) · Σu_i², u_i = (s_i − p n_i)/n − θ(s_i − r m_i)/m: the sandwich with people as clusters.

    It assumes that people are independent. A fixed number of places makes the N people of a list compete, which a
    difference of rates sees as a factor of N/(N − 1): V has the mean of the lists' factors, by the variances that the
    two groups have in them. Exposure is at most 1 a row and varies no more than a selection with its mean.
    The ratio within lists is Σ_q s_q m_q/(n_q + m_q) / Σ_q t_q n_q/(n_q + m_q) of the group's s_q and the other's t_q
    selected [MH59].

    Worked example: 30 of 100 and 60 of 100 are selected: the ratio is .5, z = −.3/√(.45 · .55 · 2/100) = −4.26.

    >>> group = np.repeat(np.eye(2), 100, axis=0)
    >>> selected = (np.arange(200) % 100 < np.repeat([30, 60], 100)).astype(float)
    >>> ratio, most = rate_ratios(Selection.of_rows(selected, group))
    >>> ratio.mean, round(ratio.z, 2), ratio.verdict, [round(end, 3) for end in ratio.ci95]
    (0.5, -4.26, 'shown', [0.353, 0.695])
    >>> most.mean, most.reason
    (1.0, 'selected most')

    Verdicts need :func:`corrected_ratios`.
    """
    most, large = selection.most_selected, selection.large_enough
    return [
        _compare_rates(selection, group, most) if large[group] and group != most else _undecided(selection, group, most)
        for group in range(len(large))
    ]


def _undecided(selection: Selection, group: int, most: int) -> RateRatio:
    """A group without a verdict, and why."""
    selected, candidates = (sums.sum(axis=0) for sums in selection.by_list)
    people = float(selection.people[group])
    if candidates[group] <= 0:
        return RateRatio(None, None, 0, reason="no candidates")
    if selected[most] <= 0:
        return RateRatio(None, None, round(people), reason="nobody is selected")
    reason = SELECTED_MOST
    if not selection.large_enough.any():
        reason = _NONE_LARGE
    elif candidates[group] + EQUAL < LEAST_SHARE * candidates.sum():
        reason = f"fewer than {LEAST_SHARE:.0%} of the candidates"
    elif people + EQUAL < LEAST_PEOPLE:
        reason = f"fewer than {LEAST_PEOPLE} people"
    ratio = float(selected[group] / candidates[group] / (selected[most] / candidates[most]))
    # A small share of many people is no lack of data: the interval is known.
    many = group != most and people + EQUAL >= LEAST_PEOPLE and selection.large_enough.any()
    return RateRatio(
        ratio, _RatesTest.of(selection, group, most).ci95(ratio) if many else None, round(people), reason=reason
    )


def _compare_rates(selection: Selection, group: int, most: int) -> RateRatio:
    """The comparison of a group with the one selected most."""
    test, people = _RatesTest.of(selection, group, most), round(float(selection.people[group]))
    if test.y <= 0:
        return RateRatio(None, None, people, reason="nobody is selected")
    ratio = test.x / test.n / (test.y / test.m)
    ci95 = test.ci95(ratio)
    # z takes rows for people: it is stated where they are.
    once = people == round(test.n)
    z = _two_proportion_z(test.x, test.n, test.y, test.m) if selection.counts and once else None
    known = ci95 is not None
    return RateRatio(
        ratio,
        ci95,
        people,
        p=None if not known else test.p(FOUR_FIFTHS) if ratio < FOUR_FIFTHS else 1.0,
        mde=test.mde() if known else None,
        reason=None if known else "too few are selected of the group selected most",
        p_equal=test.p(1.0) if known else None,
        z=z,
        z_p=None if z is None else 2 * adjusted_t_sf(abs(z), _NORMAL),
        within_lists=mantel_haenszel_ratio(*(sums[:, [group, most]] for sums in selection.by_list)),
    )


@dataclass(frozen=True, slots=True)
class _RatesTest:
    """The test that the ratio of two rates, x/n and y/m, is θ.

    Attributes:
        competition: By how much the competition for a list's places makes the variance larger, at least 1.
        design_effect: By how much rows of one person make the variance larger, at least 1.
        sandwich: Variance of x/n, its covariance with y/m, and variance of y/m, with people as clusters.
        df: Degrees of freedom.
    """

    x: float
    n: float
    y: float
    m: float
    competition: float = 1.0
    design_effect: float = 1.0
    sandwich: tuple[float, float, float] = (0.0, 0.0, 0.0)
    df: float = _NORMAL

    @classmethod
    def of(cls, selection: Selection, group: int, most: int) -> _RatesTest:
        """Of two groups of a selection."""
        x, y, n, m = (float(sums[:, place].sum()) for sums in selection.by_list for place in (group, most))
        competition = _competition(selection.by_list[1], group, most)
        if selection.rows is None:
            return cls(x, n, y, m, competition)
        selected, candidates = selection.selected[:, [group, most]], selection.candidates[:, [group, most]]
        inside = candidates.any(axis=1)
        if selection.rows[inside].max() < 2:
            return cls(x, n, y, m, competition)
        rates = np.array([x / n, y / m])
        residuals = selected - rates * candidates
        factor = inside.sum() / (inside.sum() - 1)
        binomial = float((np.array([n, m]) * rates * (1 - rates)).sum())
        effect = factor * float((residuals**2).sum()) / binomial if binomial > 0 else 1.0
        (a, b), (_, c) = (factor * (residuals.T @ residuals) / np.outer([n, m], [n, m])).tolist()
        df = float((np.array([n, m]) ** 2 / (candidates**2).sum(axis=0)).min()) - 1
        return cls(x, n, y, m, competition, max(1.0, effect), (a, b, c), max(0.1, df))

    def variance(self, theta: float) -> float:
        """V of x/n − θ · y/m."""
        a, b, c = self.sandwich
        score = self.design_effect * _score_variance(self.x, self.n, self.y, self.m, theta)
        return self.competition * max(score, a - 2 * theta * b + theta**2 * c)

    def t(self, theta: float) -> float:
        """The statistic T."""
        difference, variance = self.x / self.n - theta * self.y / self.m, self.variance(theta)
        if variance > 0:
            return difference / math.sqrt(variance)
        return math.copysign(math.inf, difference) if abs(difference) > EQUAL else 0.0

    def p(self, theta: float) -> float:
        """Two-sided p of the ratio θ."""
        return min(1.0, 2 * adjusted_t_sf(abs(self.t(theta)), self.df))

    def ci95(self, ratio: float) -> Interval | None:
        """The ratios that are not rejected; None where there is no largest."""
        limit = t_quantile(self.df, 1 - SIGNIFICANT / 2)
        start = math.log(ratio) if ratio > 0 else _MIN_LOG_RATIO
        high = bisect_root(lambda log: -limit - self.t(math.exp(log)), start, _MAX_LOG_RATIO)
        if high >= _MAX_LOG_RATIO - 0.01:
            return None
        low = bisect_root(lambda log: limit - self.t(math.exp(log)), _MIN_LOG_RATIO, start) if ratio > 0 else -math.inf
        return math.exp(low), math.exp(high)

    def mde(self) -> float | None:
        """How far below four fifths a true ratio is that is shown in 8 of 10 samples with the same rate y/m.

        By the variances that the test has on average under such a ratio, as much larger than those of independent rows
        as the variance at four fifths is. None where none is.
        """
        rate = self.y / self.m
        base = _score_variance(self.x, self.n, self.y, self.m, FOUR_FIFTHS)
        larger = self.variance(FOUR_FIFTHS) / base if base > 0 else 1.0
        quantiles = t_quantile(self.df, 1 - SIGNIFICANT / 2), t_quantile(self.df, POWER)

        def surplus(distance: float) -> float:
            own = (FOUR_FIFTHS - distance) * rate
            tested = _score_variance(own * self.n, self.n, self.y, self.m, FOUR_FIFTHS)
            true = own * (1 - own) / self.n + FOUR_FIFTHS**2 * rate * (1 - rate) / self.m
            errors = math.sqrt(larger * tested), math.sqrt(larger * true)
            return distance * rate - quantiles[0] * errors[0] - quantiles[1] * errors[1]

        return bisect_root(surplus, 0.0, FOUR_FIFTHS) if surplus(FOUR_FIFTHS) > 0 else None


def _competition(candidates: Array, group: int, most: int) -> float:
    """Σ_q N_q/(N_q − 1) of the lists' sizes, weighted by the two groups' variances in them, over N/(N − 1) of all."""
    sizes, n, m = candidates.sum(axis=1), float(candidates[:, group].sum()), float(candidates[:, most].sum())
    factors = np.divide(sizes, sizes - 1, out=np.ones(len(sizes)), where=sizes > 1 + EQUAL)
    weights = candidates[:, group] / n**2 + candidates[:, most] / m**2
    return max(1.0, float((factors * weights).sum() / weights.sum()) * (n + m - 1) / (n + m))


def corrected_ratios(tables: Sequence[Sequence[RateRatio]]) -> list[list[RateRatio]]:
    """The ratios of several tables with Holm's correction over all of them.

    That the largest of k rates is chosen makes any of k(k − 1)/2 pairs the one that differs most, so that a p of equal
    rates counts k/2 times. Of four fifths Holm's correction makes up for it: a group that is compared with one of b
    equal rates is one of b hypotheses at least.
    """
    rows = list(itertools.chain.from_iterable(tables))
    choices = [(1 + sum(row.p is not None for row in table)) / 2 for table in tables for _ in table]
    equal = [None if row.p_equal is None else choice * row.p_equal for row, choice in zip(rows, choices, strict=True)]
    after = iter(
        replace(row, holm_p=one.holm_p, mde=one.mde if (one.mde or 0.0) < FOUR_FIFTHS else None, holm_p_equal=p)
        for row, one, p in zip(rows, corrected(rows), holm(equal), strict=True)
    )
    return [[next(after) for _ in table] for table in tables]


def mantel_haenszel_ratio(selected: Array, candidates: Array) -> float | None:
    """Mantel and Haenszel's ratio of two rates within strata, from sums [Q, 2]; None of a single one.

    Worked example: 1 of 10 and 2 of 10 in one stratum, 8 of 10 and 16 of 20 in another: (1 · 10/20 + 8 · 20/30) /
    (2 · 10/20 + 16 · 10/30) = .921.

    >>> selected, candidates = np.array([[1.0, 2.0], [8.0, 16.0]]), np.array([[10.0, 10.0], [10.0, 20.0]])
    >>> round(mantel_haenszel_ratio(selected, candidates), 3)
    0.921
    """
    total = candidates.sum(axis=1)
    shares = np.divide(candidates, total[:, None], out=np.zeros(candidates.shape), where=total[:, None] > 0)
    first, second = (selected * shares[:, ::-1]).sum(axis=0).tolist()
    return first / second if second > 0 and len(total) > 1 else None


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
