"""Tests of absolute values of means, |μ| and |μ| − |ν|, which hold where a mean is near 0 as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenrank.io.tolerances import EQUAL
from evenrank.io.types import Array

from .gate_tests import POWER, Estimate, above, crossing, estimate, tail

_DRAWS = 1000
_TWO_SIDED = 1.96
_UNSURE = 0.05
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
        return above(Estimate(0.0, 0.0, 1.0, 0.0), bound, reached=reached)
    means = np.array([found.own.mean]), np.array([found.other.mean])
    return float(_larger(found, bound, means, np.ones(1), reached)[0])


def smaller(found: Sizes, bound: float, *, reached: bool = True) -> float:
    """One-sided p of the claim |μ| − |ν| < ``bound`` (``reached``: or equal to it); without ν two one-sided tests."""
    return larger(found.swapped, -bound, reached=reached)


def _larger(found: Sizes, bound: float, means: tuple[Array, Array], scale: Array, reached: bool = False) -> Array:
    """:func:`larger` for many pairs of ``means`` [N], with all errors times ``scale`` [N]."""
    own, other = means
    size, sign = np.abs(own), np.where(own < 0, -1.0, 1.0)
    covariance = (found.total.error**2 - found.difference.error**2) / 4
    p, extra = np.zeros(len(own)), np.zeros(len(own))
    for t in (1.0, -1.0):
        # sμ − tν is the difference or the total, up to the sign s.
        one = np.where(sign * t > 0, found.difference.error, found.total.error)
        distance = size - t * other - bound
        here, beyond = _of_side(found, distance, sign, sign * t, one * scale, reached)
        # The truth nearest to the estimate on the bound, in the metric of the errors.
        weight = np.divide(found.own.error**2 - sign * t * covariance, one**2, out=np.zeros(len(own)), where=one > 0)
        nearest = np.maximum(size - weight * distance, 0.0)
        error = one * scale
        shift = np.divide(distance + 2 * nearest, error, out=np.zeros(len(own)), where=error > 0)
        # Without an error of its own, the mean has one sign only.
        otherwise = np.where((error > 0) & (found.own.error > 0), tail(shift, beyond), 0.0)
        extra = np.where(here > p, otherwise, extra)
        p = np.maximum(p, here)
    return np.minimum(p + extra, 1.0)


def _of_side(
    found: Sizes, distance: Array, sign: Array, same: Array, error: Array, reached: bool
) -> tuple[Array, Array]:
    """The p [N] that sμ − tν is ``distance`` above the bound, and the degrees of freedom of its error."""
    freedom = np.where(same > 0, found.difference.freedom, found.total.freedom)
    skew = sign * np.where(same > 0, found.difference.skew, found.total.skew)
    ratio = np.divide(distance, error, out=np.zeros(len(distance)), where=error > 0)
    exact = (distance > EQUAL) | (reached & (distance >= -EQUAL))
    return np.where(error > 0, tail(ratio, freedom, skew), 1.0 - exact), freedom


def limits(found: Sizes, alpha: float) -> tuple[float, float]:
    """The one-sided limits of |μ| − |ν|: the bounds that :func:`larger` and :func:`smaller` just do not reject."""
    reach = 20 * (found.own.error + found.other.error) + EQUAL
    low = crossing(lambda bound: larger(found, bound) - alpha, found.value - reach, found.value)
    high = -crossing(lambda bound: smaller(found, -bound) - alpha, -found.value - reach, -found.value)
    return low, high


@dataclass(frozen=True, slots=True)
class Alternatives:
    """What the truth may be where |μ| − |ν| has a given value, and 1,000 draws of the sampling error around it.

    The power depends on ν and on the sign of μ, which the sample does not settle: ``others`` are ν as observed and
    others within its 95% interval, ``signs`` the signs that μ may have, the observed ones first.
    """

    found: Sizes
    bound: float
    alpha: float
    others: tuple[float, ...]
    signs: tuple[float, ...]
    noise: Array
    scale: Array

    @classmethod
    def of(cls, found: Sizes, bound: float, alpha: float) -> Alternatives:
        """Those of a sample. The draws are of normal means with the observed errors, always the same ones."""
        rng = np.random.default_rng(0)
        covariance = (found.total.error**2 - found.difference.error**2) / 4
        errors = [[found.own.error**2, covariance], [covariance, found.other.error**2]]
        noise = rng.multivariate_normal([0.0, 0.0], errors, _DRAWS, method="eigh")
        freedom = found.difference.freedom
        scale = np.sqrt(rng.chisquare(freedom, _DRAWS) / freedom)
        observed, reach = found.other.mean, _TWO_SIDED * found.other.error
        others = [observed] if reach == 0 else [observed, observed - reach, observed + reach]
        if abs(observed) < reach:
            others.append(0.0)
        sign = -1.0 if found.own.mean < 0 else 1.0
        signs = (sign,) if abs(found.own.mean) > _TWO_SIDED * found.own.error else (sign, -sign)
        return cls(found, bound, alpha, tuple(others), signs, noise, scale)

    def powers(self, distance: float) -> list[float]:
        """The probability that |μ| − |ν| is shown to be above the bound if it is ``distance`` above it, in each case.

        The first is that of what was observed.
        """
        return [self.power(distance, other, sign) for sign in self.signs for other in self.others]

    def power(self, distance: float, other: float, sign: float) -> float:
        """The probability in one case."""
        size = max(abs(other) + self.bound + distance, 0.0)
        means = sign * size + self.noise[:, 0], other + self.noise[:, 1]
        return float((_larger(self.found, self.bound, means, self.scale) <= self.alpha).mean())


def power(found: Sizes, bound: float, distance: float, alpha: float) -> float | None:
    """The probability that |μ| − |ν| is shown to be above ``bound`` if it is ``distance`` above it.

    None if it depends by more than 5 points on what the sample leaves open of ν and of the sign of μ.
    """
    first, *more = Alternatives.of(found, bound, alpha).powers(distance)
    return first if all(abs(one - first) <= _UNSURE for one in more) else None


def least_shown(found: Sizes, bound: float, alpha: float) -> float:
    """The smallest distance of |μ| − |ν| above the bound that is shown with probability 80%, whatever ν is."""
    cases = Alternatives.of(found, bound, alpha)
    most = 8 * (found.own.error + found.other.error) + max(-bound - abs(found.other.mean), 0.0)
    if not most:
        return 0.0
    return crossing(lambda distance: min(cases.powers(distance)) - POWER, 0.0, most)
