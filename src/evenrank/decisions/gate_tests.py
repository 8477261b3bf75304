"""One-sided limits, p-values and power of a mean, from the values of queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from evenrank.io.tolerances import EQUAL
from evenrank.io.types import Array

POWER = 0.8
_HALVINGS = 30


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, or a sum of the means of independent samples.

    Attributes:
        mean: The estimate.
        error: Its standard error; 0 if the values do not differ.
        freedom: The degrees of freedom of the error; Welch and Satterthwaite's for several samples.
        skew: Third central moment of the estimate over ``error``³: the skewness of the values over √n.
    """

    mean: float
    error: float
    freedom: float
    skew: float

    def __neg__(self) -> Estimate:
        return Estimate(-self.mean, self.error, self.freedom, -self.skew)


def estimate(samples: Sequence[Array], factors: Sequence[float] = (1.0,)) -> Estimate:
    """Σ factor × mean of each of the ``samples`` [n], which are of different queries and have two values or more."""
    mean = variance = third = pooled = 0.0
    for factor, sample in zip(factors, samples, strict=True):
        n, centre = len(sample), float(sample.mean())
        apart = sample - centre
        own = factor**2 * float(apart @ apart) / (n - 1) / n
        mean += factor * centre
        variance += own
        third += factor**3 * float((apart**3).mean()) / n**2
        pooled += own**2 / (n - 1)
    # What is left of equal values is rounding.
    if np.sqrt(variance * max(map(len, samples))) <= EQUAL:
        return Estimate(mean, 0.0, 1.0, 0.0)
    return Estimate(mean, float(np.sqrt(variance)), variance**2 / pooled, third / variance**1.5)


def above(found: Estimate, bound: float, *, reached: bool = False) -> float:
    """One-sided p of the claim that the true mean is above ``bound`` (``reached``: or equal to it).

    The larger p of Student's t and of the t from which the skewness is taken out [HALL92, section 2]:
    g(T) = T + κT²/3 + κ²T³/27 + κ/6, where κ is the skewness of the estimate. Alone, t claims too much on one side of
    skewed values, and g on both sides of values with long tails. Values that do not differ decide by the value alone.

    [HALL92] Hall (1992). On the removal of skewness by transformation. J. R. Statist. Soc. B 54(1).

    >>> round(above(Estimate(0.5, 0.2, 29.0, 0.0), 0.0), 4)
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


def lower(found: Estimate, alpha: float) -> float:
    """The lower limit of the mean at the one-sided level ``alpha``: the bound for which :func:`above` is ``alpha``."""
    ratio, skew = _critical(found.freedom, alpha), found.skew
    if abs(skew) > EQUAL:
        # The inverse of Hall's transformation.
        ratio = max(ratio, 3 * (float(np.cbrt(1 + skew * (ratio - skew / 6))) - 1) / skew)
    return found.mean - ratio * found.error


def upper(found: Estimate, alpha: float) -> float:
    """The upper limit of the mean at the one-sided level ``alpha``."""
    return -lower(-found, alpha)


def power(found: Estimate, distance: float, alpha: float) -> float:
    """The probability that a mean whose true value is ``distance`` above the bound is shown to be above it.

    By the non-central t, with the observed spread.
    """
    from scipy.special import nctdtr

    if found.error == 0:
        return float(distance > EQUAL)
    return float(1 - nctdtr(found.freedom, distance / found.error, _critical(found.freedom, alpha)))


def least_shown(found: Estimate, alpha: float) -> float:
    """The smallest distance above the bound that is shown with probability 80%, by the same."""
    if found.error == 0:
        return 0.0
    # Twice what the normal approximation says, and more than enough for small samples.
    most = 2 * found.error * (_critical(found.freedom, alpha) + 3)
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


def _critical(freedom: float, alpha: float) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - alpha))
