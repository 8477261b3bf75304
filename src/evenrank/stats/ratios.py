"""Proportions and impact ratios.

[MN85] Miettinen & Nurminen (1985). Comparative analysis of two rates. Statistics in Medicine 4(2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evenrank.files.types import EQUAL, Array

from .compare import Comparison
from .estimate import Interval, adjusted_t_sf, bisect_root, t_quantile
from .planning import minimum_detectable_effect

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
"""A group of fewer people, or of a smaller share of the candidates, is too small for a verdict, or to be the measure of
others."""
_MOST_RATIO = math.log(1e3)
_NORMAL = math.inf
"""Degrees of freedom with which Student's t is normal."""


@dataclass(frozen=True, slots=True)
class RateRatio(Comparison):
    """A group's rate over that of the group selected most, and whether it is below four fifths.

    ``p``: two-sided, of a ratio of four fifths; 1 above it. ``mde``: how far below four fifths.

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
    >>> most.mean, most.reason
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
        return RateRatio(None, None, 0, reason="no candidates")
    ratio = _ratio(selected, people)
    if ratio is None:
        return RateRatio(None, None, n, reason="nobody is selected")
    share = float(people[0]) / everyone
    few = f"fewer than {LEAST_PEOPLE} people" if people[0] < LEAST_PEOPLE else ""
    if share < LEAST_SHARE:
        few = f"fewer than {LEAST_SHARE:.0%} of the candidates"
    return RateRatio(ratio, None, n, reason=few or (SELECTED_MOST if most else "no other group is large enough"))


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
        return RateRatio(None, None, round(float(n)), reason="nobody is selected")
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

    reach = t_quantile(freedom, 0.975)
    low = 0.0 if not x else bisect_root(lambda log: reach - statistic(math.exp(log)), -20.0, math.log(ratio))
    high = bisect_root(lambda log: -reach - statistic(math.exp(log)), math.log(ratio) if x else -20.0, _MOST_RATIO)
    ends = (math.exp(low) if x else 0.0, math.exp(high)) if high < _MOST_RATIO - 0.01 else None
    at = statistic(FOUR_FIFTHS)
    below = min(1.0, 2 * adjusted_t_sf(-at, freedom)) if at < 0 else 1.0
    error = abs(ratio - FOUR_FIFTHS) / abs(at) if at and math.isfinite(at) else 0.0
    z = _two_proportion_z(x, n, y, m) if counts else None
    return RateRatio(
        ratio,
        ends,
        round(float(n)),
        p=below,
        mde=minimum_detectable_effect(error, freedom),
        z=z,
        z_p=None if z is None else 2 * adjusted_t_sf(abs(z), _NORMAL),
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
