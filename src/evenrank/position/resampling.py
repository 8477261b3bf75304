"""Resampling with passages as units: shuffled places, signs, tests and the intervals that agree with them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from evenrank.measures.statistics import EQUAL, SIGNIFICANT

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Interval = tuple[float, float]
PERMUTATIONS = 2000
"""Random shuffles or sign changes of a test."""
_CHUNK = 4_000_000
"""Values that are shuffled at once: all shuffles of many queries would take gigabytes."""


def cluster_ids(clusters: Ints | None, known: NDArray[np.bool_]) -> Ints:
    """Cluster numbers from 0, without gaps, of the ``known`` [Q] queries; None: each query is its own cluster."""
    found = np.arange(int(known.sum())) if clusters is None else clusters[known]
    numbers: Ints = np.unique(found, return_inverse=True)[1]
    return numbers


def chunks(size: int) -> Iterator[int]:
    """PERMUTATIONS in chunks whose arrays of ``size`` values per shuffle fit into memory."""
    chunk = max(1, min(PERMUTATIONS, _CHUNK // max(size, 1)))
    for start in range(0, PERMUTATIONS, chunk):
        yield min(chunk, PERMUTATIONS - start)


def signs(units: int, count: int, rng: np.random.Generator) -> Floats:
    """Random signs [count, units]: what a passage's queries share keeps together."""
    found: Floats = 2 * rng.integers(0, 2, (count, units)).astype(np.float64) - 1
    return found


def errors(residual_sums: Floats, scale: float) -> Floats:
    """Standard errors [R] from the sums of residuals [R, G] of each cluster: √(G/(G−1) Σ sum²) / scale.

    Liang & Zeger 1986, with the factor of Cameron, Gelbach & Miller 2011.
    """
    number = residual_sums.shape[1]
    found: Floats = np.sqrt(number / (number - 1) * (residual_sums**2).sum(axis=1)) / scale
    return found


def ratios(figures: Floats, error: Floats) -> Floats:
    """|figure| / error [R]; 0 for a figure of 0, infinite where there is no error."""
    size = np.abs(figures)
    zero = np.where(size <= EQUAL, 0.0, np.inf)
    found: Floats = np.divide(size, error, out=zero, where=(error > EQUAL) & (size > EQUAL))
    return found


def tested(figure: float, error: float, null: Floats) -> tuple[Interval | None, float | None]:
    """The 95% interval and the two-sided p of a figure, from the ``ratios`` under the null hypothesis [R].

    The interval is figure ± error times that ratio which one null ratio in twenty exceeds, so it leaves out 0 exactly
    where p < .05. None where the figure is undefined, and for an interval without end.
    """
    p = p_of(null, float(ratios(np.array([figure]), np.array([error]))[0]))
    if p is None:
        return None, None
    # p < .05 if fewer than this many null ratios are as large.
    rank = max(1, int(np.ceil(SIGNIFICANT * (len(null) + 1))) - 1)
    # A ratio that equals that one but for rounding counts as equal, as for p.
    half = float(np.partition(null, -rank)[-rank]) * (1 + EQUAL) * error if error > EQUAL else 0.0
    return ((figure - half, figure + half) if np.isfinite(half) else None), p


def p_of(null: Floats, found: float) -> float | None:
    """The share of the ``null`` values, ``found`` among them, that are at least ``found``; None if undefined."""
    null = null[~np.isnan(null)]
    if np.isnan(found) or not len(null):
        return None
    return float((1 + (null >= found - 1e-12).sum()) / (1 + len(null)))


def lowest_to_highest(means: Floats) -> Floats:
    """1 − min/max over the defined means [R, B]: [R]; NaN for fewer than two of them, and if none is positive."""
    low = np.where(np.isnan(means), np.inf, means).min(axis=1)
    high = np.where(np.isnan(means), -np.inf, means).max(axis=1)
    known = (high > 0) & ((~np.isnan(means)).sum(axis=1) > 1)
    return np.where(known, 1 - low / np.where(known, high, 1), np.nan)


def json_number(value: float) -> float | None:
    """A JSON value; None for NaN."""
    return None if np.isnan(value) else float(value)
