"""How many queries a test needs, and what it detects with those at hand."""

from __future__ import annotations

import math
from bisect import bisect_left

from evenrank.files.types import Array

from .distributions import nctdtr, ndtr, ndtri
from .estimate import EQUAL, POWER, SIGNIFICANT, MeanEstimate, bisect_root, t_quantile

HOLDS_SHARE = 0.6
"""The share of α at which a bound holds: the imagined query makes up for the rest."""
LEAST_TO_HOLD = 15
"""With fewer queries nothing holds."""
_MOST = 1 << 29
"""Queries that nobody has."""
PLANNED_CHANCE = 0.85
"""The chance that is planned for, so that .8 remains although the standard deviation is an estimate."""


def minimum_detectable_effect(se: float, df: float, level: float = SIGNIFICANT) -> float:
    """The smallest true mean that a two-sided test detects in 8 of 10 samples with this standard error.

    X = (t(1 − α/2; df) + t(.8; df)) · se. A second test that has to agree, or an added value, makes it a limit: what is
    smaller is missed in at least one of five samples.
    """
    return se * (t_quantile(df, 1 - level / 2) + t_quantile(df, POWER))


def power(estimate: MeanEstimate, distance: float, alpha: float) -> float:
    """The probability that a mean whose true value is ``distance`` above a bound is shown to be above it.

    By the non-central t, with the observed standard error, at the one-sided level ``alpha``.
    """
    if estimate.se == 0:
        return float(distance > EQUAL)
    # Near 38 errors the function of SciPy is not a number; from 30 on the probability is 1.
    errors = min(distance / estimate.se, 30.0)
    return float(1 - nctdtr(estimate.df, errors, t_quantile(estimate.df, 1 - alpha)))


def detectable_distance(estimate: MeanEstimate, alpha: float) -> float:
    """The smallest distance above a bound that is shown with probability 80% (:func:`power`)."""
    if estimate.se == 0:
        return 0.0
    # Twice what the normal approximation says, and more than enough for small samples.
    most = 2 * estimate.se * (t_quantile(estimate.df, 1 - alpha) + 3)
    return bisect_root(lambda distance: power(estimate, distance, alpha) - POWER, 0.0, most)


def queries_to_decide(distance: float, se: float, n: int, alpha: float) -> int | None:
    """How many queries show a mean at ``distance`` from a bound to be beyond it, in 8 of 10 samples.

    If the truth is what ``n`` queries with standard error ``se`` show: n((z₁₋α + z.₈) · se / distance)², one more than
    n at least. None where no number of queries would.
    """
    if abs(distance) <= EQUAL:
        return None
    return max(math.ceil(n * float(((ndtri(1 - alpha) + ndtri(POWER)) * se / distance) ** 2)), n + 1)


def queries_to_hold(
    mean: float,
    sd: float,
    loss: float,
    alpha: float = SIGNIFICANT,
    chance: float = PLANNED_CHANCE,
    design_effect: float = 1.0,
) -> int | None:
    """How many queries show that a bound holds, one imagined query that loses all included; None: no number does.

    The smallest n with z̄ − t(1 − .6α; n) · s/√(n + 1) > 0 for the n + 1 values, in a share ``chance`` of samples.

    Args:
        mean, sd: Mean and standard deviation of z, the distance of a query within the bound. For "if the runs are
            equally good" the mean is the margin, and the sd that of d − d̄ + m · base of two runs, or of m · base
            alone if they are the same.
        loss: What the imagined query loses.
        alpha: The level.
        chance: The share of samples.
        design_effect: n/G*, how many queries of a cluster count as one.
    """
    if mean <= EQUAL:
        return None
    margin = float(ndtri(chance)) * sd

    def holds(n: int) -> bool:
        return _surplus(n, mean, sd, loss, alpha) > margin / math.sqrt(n)

    if not holds(_MOST):
        return None
    least = bisect_left(range(_MOST), True, lo=2, key=holds)
    return math.ceil(max(least, LEAST_TO_HOLD) * design_effect)


def chance_to_hold(
    n: int, mean: float, sd: float, loss: float, alpha: float = SIGNIFICANT, design_effect: float = 1.0
) -> float:
    """The chance that ``n`` queries show that a bound holds, the inverse of :func:`queries_to_hold`.

    >>> n = queries_to_hold(0.05, 0.25, 1.0)
    >>> n, round(chance_to_hold(n, 0.05, 0.25, 1.0), 2), round(chance_to_hold(n // 2, 0.05, 0.25, 1.0), 2)
    (263, 0.85, 0.47)
    """
    units = math.floor(n / design_effect + EQUAL)
    if mean <= EQUAL or units < LEAST_TO_HOLD:
        return 0.0
    surplus = _surplus(units, mean, sd, loss, alpha)
    return float(ndtr(surplus * math.sqrt(units) / sd)) if sd > EQUAL else float(surplus > 0)


def _surplus(n: int, mean: float, sd: float, loss: float, alpha: float) -> float:
    """How far the limit of a bound is within it where n queries have this mean and standard deviation."""
    total = n + 1
    squares = n * sd**2 + n / total * (mean + loss) ** 2
    return (n * mean - loss) / total - t_quantile(n, 1 - HOLDS_SHARE * alpha) * math.sqrt(squares / n / total)


def expected_half_width(weights: Array, probability: Array, variance: float) -> float:
    """Half the width to expect of an interval from drawn labels, for these queries.

    ``weights`` [D]: the documents' weights in the figure; ``probability`` [D]: with which each is drawn; ``variance``:
    of the labels' values. A guess makes the interval narrower.
    """
    labels = float(probability.sum())
    squares = float((weights**2 * (1 - probability) / probability).sum())
    return t_quantile(max(2.0, 2 * labels), 0.975) * math.sqrt((variance + 1 / labels) * squares)
