"""Shares of what comes in clusters: their standard errors, a limit of many at once, and which of two counts is larger.

[WILSON27] Wilson (1927). Probable inference, the law of succession, and statistical inference. JASA 22.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.stats import binom

from evenrank.files.types import Array


def clustered_error(influence: Array, clusters: Array) -> float:
    """The standard error of a sum of ``influence`` [n], whose parts within ``clusters`` [n] are not independent.

    √(G/(G − 1) · Σ_c (Σ_i∈c influence_i)²) of G clusters; infinite of fewer than two.

    >>> clustered_error(np.array([0.1, 0.1, -0.2]), np.array([0, 0, 1]))
    0.4
    """
    _, index = np.unique(clusters, return_inverse=True)
    sums = np.bincount(index, influence) if len(index) else np.zeros(0)
    number = len(sums)
    return float(np.sqrt(number / (number - 1) * (sums**2).sum())) if number > 1 else math.inf


def wilson_lower(part: Array, number: int, z: float) -> Array:
    """Wilson's lower limit of shares ``part`` [n] of ``number`` [WILSON27].

    >>> wilson_lower(np.array([8]), 10, 1.96).round(4).tolist()
    [0.4902]
    """
    share, squared = part / number, z * z / number
    half = z * np.sqrt(share * (1 - share) / number + squared / (4 * number))
    lower: Array = (share + squared / 2 - half) / (1 + squared)
    return lower


def sign_p(more: int, fewer: int) -> float:
    """P(Bin(more + fewer, ½) ≥ more): the one-sided p of the sign test that ``more`` is the larger count.

    >>> sign_p(8, 0)
    0.00390625
    """
    return float(binom.sf(more - 1, more + fewer, 0.5))


def binomial_quantiles(level: float, draws: Array, p: float) -> Array:
    """The least number m of hits with F(m; n, p) ≥ ``level``, for each number n of ``draws`` [N] (int64)."""
    quantiles: Array = np.maximum(binom.ppf(level, draws, p), 0).astype(np.int64)
    return quantiles
