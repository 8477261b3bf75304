"""How much effectiveness depends on where the answer stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenrank.io import EvenrankError

from .statistics import BOOTSTRAP_DRAWS, bootstrap_means, bootstrap_weights, interval

Array = np.ndarray[Any, Any]
Interval = tuple[float, float]
PERMUTATIONS = 2000
FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
TOKENS = (0, 25, 50, 75, 100, 150, 200)
"""Where token buckets begin; the last one has no end."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Effectiveness by where answers stand.

    ``starts`` [B]: where each half-open bucket begins; the next one's start ends it, the last ends at ``end`` (None: it
    has no end). ``n`` [B] queries, ``means`` [B] (NaN in an empty bucket), ``ci95`` [B].
    ``index`` = 1 − min/max of the means, with its bootstrap interval; ``null``: its mean when the places are shuffled
    over the queries (noise alone makes it more than 0, the more the smaller the buckets), ``p``: the share of shuffles
    that give as much. ``slope``: of the values on the place, in effectiveness a unit of the place, with ``slope_p``.
    Buckets of places as in Hofstätter et al., ECIR 2021; the index, its null and the tests are ours.

    When it misleads: passages with early and with late answers can differ in other ways, so a difference of buckets is
    no proof that the place is the cause; the second part of ``evenrank position sensitivity``, which moves the answer
    within the same passage, is. The index is more than 0 by noise alone: compare it with ``null``. An answer beyond
    what a ranker reads is lost by truncation, which is not the same as a preference for early text; such answers are
    counted apart.

    Worked example: two queries with early answers have 1.0 and 0.8, two with late ones 0.6 and 0.3. The bucket means
    are 0.9 and 0.45, the index is 1 − 0.45/0.9.

    >>> import numpy as np
    >>> from evenrank.measures.sensitivity import by_bucket
    >>> found = by_bucket(np.array([1.0, 0.8, 0.6, 0.3]), np.array([0.1, 0.2, 0.7, 0.9]), (0.0, 0.5), 1.0)
    >>> found.means.round(4).tolist(), round(found.index, 4)
    ([0.9, 0.45], 0.5)
    """

    starts: tuple[float, ...]
    end: float | None
    n: Array
    means: Array
    ci95: tuple[Interval | None, ...]
    index: float
    index_ci95: Interval | None
    null: float
    p: float | None
    slope: float
    slope_ci95: Interval | None
    slope_p: float | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; NaN as None."""
        ends = [*self.starts[1:], self.end]
        rows = zip(self.starts, ends, self.n.tolist(), self.means.tolist(), self.ci95, strict=True)
        return {
            "buckets": [
                {"from": low, "to": high, "queries": n, "mean": _plain(mean), "ci95": list(ci) if ci else None}
                for low, high, n, mean, ci in rows
            ],
            "index": _plain(self.index),
            "index_ci95": list(self.index_ci95) if self.index_ci95 else None,
            "index_null": _plain(self.null),
            "index_p": self.p,
            "slope": _plain(self.slope),
            "slope_ci95": list(self.slope_ci95) if self.slope_ci95 else None,
            "slope_p": self.slope_p,
        }


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def by_bucket(
    values: Array,
    places: Array,
    starts: Sequence[float],
    end: float | None = None,
    *,
    clusters: Array | None = None,
    seed: int = 0,
) -> Buckets:
    """Effectiveness ``values`` [Q] by the ``places`` [Q] of the queries' answers; NaN values are left out.

    ``clusters`` [Q], numbers from 0: queries of one passage are drawn together, or intervals would be too narrow.
    Raises EvenrankError where a place lies before the first bucket or from ``end`` on, and where no value is defined.
    """
    known = ~np.isnan(values)
    values, places = values[known], places[known]
    clusters = None if clusters is None else clusters[known]
    if not len(values):
        raise EvenrankError("no query has both an answer in its place and a value")
    if places.min() < starts[0] or (end is not None and places.max() >= end):
        outside = float(places.min() if places.min() < starts[0] else places.max())
        raise EvenrankError(f"places: expected {starts[0]} to below {end}, found {outside}")
    bucket = np.searchsorted(np.asarray(starts), places, side="right") - 1
    size = len(starts)
    rng = np.random.default_rng(seed)
    at = places.astype(np.float64)
    drawn_means, drawn_slopes, null, null_slopes = [], [], [], []
    inside = bucket[:, None] == np.arange(size)
    for weights in bootstrap_weights(len(values), seed, BOOTSTRAP_DRAWS, clusters):
        number = weights @ inside
        total = weights @ (inside * values[:, None])
        drawn_means.append(np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0))
        drawn_slopes.append(_weighted_slopes(values, at, weights))
    # In pieces: all shuffles of many queries at once take gigabytes.
    piece = max(1, min(PERMUTATIONS, 4_000_000 // len(values)))
    for start in range(0, PERMUTATIONS, piece):
        count = min(piece, PERMUTATIONS - start)
        shuffles = rng.permuted(np.broadcast_to(values, (count, len(values))), axis=1)
        null.append(_index(_means(shuffles, np.broadcast_to(bucket, shuffles.shape), size)))
        null_slopes.append(_slopes(shuffles, np.broadcast_to(at, shuffles.shape)))
    means = _means(values[None], bucket[None], size)[0]
    index = float(_index(means[None])[0])
    slope = float(_slopes(values[None], at[None])[0])
    drawn, shuffled = np.concatenate(drawn_means), np.concatenate(null)
    return Buckets(
        tuple(float(start) for start in starts),
        end,
        np.bincount(bucket, minlength=size),
        means,
        tuple(interval(drawn[:, b]) for b in range(size)),
        index,
        interval(_index(drawn)),
        float(np.nanmean(shuffled)) if not np.isnan(shuffled).all() else float("nan"),
        _as_extreme(shuffled, index),
        slope,
        interval(np.concatenate(drawn_slopes)),
        _as_extreme(np.abs(np.concatenate(null_slopes)), abs(slope)),
    )


def _means(values: Array, bucket: Array, size: int) -> Array:
    """Bucket means [R, size] of values [R, Q]; NaN for an empty bucket."""
    rows = np.arange(len(values))[:, None] * size + bucket
    total = np.bincount(rows.ravel(), weights=values.ravel(), minlength=len(values) * size)
    number = np.bincount(rows.ravel(), minlength=len(values) * size)
    means = np.divide(total, number, out=np.full(len(total), np.nan), where=number > 0)
    table: Array = means.reshape(len(values), size)
    return table


def _index(means: Array) -> Array:
    """1 − min/max over the buckets that hold queries [R]; NaN where the largest mean is not above 0."""
    low = np.where(np.isnan(means), np.inf, means).min(axis=1)
    high = np.where(np.isnan(means), -np.inf, means).max(axis=1)
    return np.where(high > 0, 1 - low / np.where(high > 0, high, 1), np.nan)


def _slopes(values: Array, places: Array) -> Array:
    """Slopes of least squares of values [R, N] on places [R, N]; NaN where all places are the same."""
    off = places - places.mean(axis=1, keepdims=True)
    squares = (off**2).sum(axis=1)
    # Places that differ by rounding alone do not differ.
    spread = squares > 1e-12 * np.maximum((places**2).sum(axis=1), 1)
    slopes: Array = np.divide((off * values).sum(axis=1), squares, out=np.full(len(values), np.nan), where=spread)
    return slopes


def _weighted_slopes(values: Array, places: Array, weights: Array) -> Array:
    """Slopes of least squares of values [N] on places [N] under weights [R, N]; NaN where all places are the same."""
    off = places - places.mean()
    whole = weights.sum(axis=1)
    mean = weights @ off / whole
    squares = weights @ off**2 - whole * mean**2
    spread = squares > 1e-12 * np.maximum(weights @ off**2, 1)
    together = weights @ (off * values) - mean * (weights @ values)
    slopes: Array = np.divide(together, squares, out=np.full(len(weights), np.nan), where=spread)
    return slopes


def _as_extreme(null: Array, found: float) -> float | None:
    null = null[~np.isnan(null)]
    if np.isnan(found) or not len(null):
        return None
    return float((1 + (null >= found - 1e-12).sum()) / (1 + len(null)))


@dataclass(frozen=True, slots=True)
class Course:
    """A value as a function of where the same answer stands in the same passage.

    ``places`` [P]: 0 (first) to 1 (last possible); ``means`` [P] over ``n`` queries, ``ci95`` [P]; ``slope``: the mean
    over queries of each query's slope, change from the first to the last place, with its interval.
    """

    places: Array
    n: int
    means: Array
    ci95: tuple[Interval | None, ...]
    slope: float
    slope_ci95: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; NaN as None."""
        rows = zip(self.places.tolist(), self.means.tolist(), self.ci95, strict=True)
        return {
            "queries": self.n,
            "places": [{"place": p, "mean": _plain(m), "ci95": list(ci) if ci else None} for p, m, ci in rows],
            "slope": _plain(self.slope),
            "slope_ci95": list(self.slope_ci95) if self.slope_ci95 else None,
        }


def course(values: Array, places: Array, *, clusters: Array | None = None, seed: int = 0) -> Course:
    """The course of ``values`` [Q, P] over ``places`` [P]; queries with an undefined value are left out.

    ``clusters`` [Q]: as in :func:`by_bucket`.
    """
    known = ~np.isnan(values).any(axis=1)
    values, clusters = values[known], None if clusters is None else clusters[known]
    if not len(values):
        nothing = np.full(len(places), np.nan)
        return Course(places, 0, nothing, (None,) * len(places), float("nan"), None)
    slopes = _slopes(values, np.broadcast_to(places, values.shape))
    draws = bootstrap_means(np.column_stack([values, slopes]), seed, clusters=clusters)
    ends = tuple(interval(draws[:, column]) for column in range(draws.shape[1]))
    return Course(places, len(values), values.mean(axis=0), ends[:-1], float(slopes.mean()), ends[-1])
