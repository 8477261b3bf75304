"""Tests of absolute values of means, |μ| and |μ| − |ν|, which hold where a mean is near 0 as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenrank.io.tolerances import EQUAL
from evenrank.io.types import Array

from .gate_tests import Estimate, above, crossing, estimate, tail

_NOTHING = Estimate(0.0, 0.0, 1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Two signed means of the same queries, μ of the run and ν of the other; ν is 0 where there is no other.

    Attributes:
        own, other: The means.
        total, difference: μ + ν and μ − ν, with the errors that pairing gives.
    """

    own: Estimate
    other: Estimate
    total: Estimate
    difference: Estimate

    @property
    def value(self) -> float:
        """|μ| − |ν|."""
        return abs(self.own.mean) - abs(self.other.mean)

    @property
    def swapped(self) -> Sizes:
        """The same with the roles exchanged."""
        return Sizes(self.other, self.own, self.total, -self.difference)


def sizes(own: Sequence[Array], other: Sequence[Array] | None, factors: Sequence[float]) -> Sizes:
    """The means of a run's parts [n], and of the other's on the same queries."""
    mean = estimate(own, factors)
    if other is None:
        return Sizes(mean, _NOTHING, mean, mean)
    pairs = list(zip(own, other, strict=True))
    total, difference = (estimate([a + sign * b for a, b in pairs], factors) for sign in (1, -1))
    return Sizes(mean, estimate(other, factors), total, difference)


def larger(found: Sizes, bound: float, *, reached: bool = False) -> float:
    """One-sided p of the claim |μ| − |ν| > ``bound`` (``reached``: or equal to it).

    The claim is that for one sign s and both signs t, sμ − tν > ``bound``. For a given s both have to be shown, so
    their p is the larger one (intersection–union). Either s would do (union): to the p of the estimate's own sign comes
    the chance of as clear an estimate of the other sign, where the truth is on the bound as near to the estimate as it
    can be. Without ν, and with a bound of 0, that is the two-sided t-test.
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


def _of_side(apart: Estimate, distance: float, sign: float, reached: bool) -> float:
    """The p that sμ − tν, which is ``apart`` or its negative, lies above the bound, from which it is ``distance``."""
    if apart.error > 0:
        return tail(distance / apart.error, apart.freedom, sign * apart.skew)
    return float(not (distance > EQUAL or (reached and distance >= -EQUAL)))


def smaller(found: Sizes, bound: float, *, reached: bool = True) -> float:
    """One-sided p of the claim |μ| − |ν| < ``bound`` (``reached``: or equal to it); without ν two one-sided tests."""
    return larger(found.swapped, -bound, reached=reached)


def limits(found: Sizes, alpha: float) -> tuple[float, float]:
    """The one-sided limits of |μ| − |ν|: the bounds that :func:`larger` and :func:`smaller` just do not reject."""
    reach = 20 * (found.own.error + found.other.error) + EQUAL
    low = crossing(lambda bound: larger(found, bound) - alpha, found.value - reach, found.value)
    high = -crossing(lambda bound: smaller(found, -bound) - alpha, -found.value - reach, -found.value)
    return low, high
