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
MOST_BUCKETS = 8
LEAST_QUERIES = 10
"""Queries of a bucket, about, where buckets are made by how many answers stand where."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Effectiveness by where answers stand.

    ``starts`` [B]: where each half-open bucket begins; the next one's start ends it, the last ends at ``end`` (None: it
    has no end). ``n`` [B] queries, ``means`` [B] (NaN in an empty bucket), ``ci95`` [B] (None for fewer than two
    passages). ``index`` = 1 − min/max of the means (NaN where only one bucket holds queries), with its bootstrap
    interval; ``null``: its mean when places are shuffled (noise alone makes it more than 0, the more the smaller the
    buckets), ``p``: the share of shuffles that give as much. ``slope``: of the values on the place, in effectiveness a
    unit of the place, with ``slope_p``.

    Intervals and tests have one unit, the passage (``units`` of them), since questions of one passage are no
    independent draws: the bootstrap draws whole passages with all their queries, a shuffle gives the queries of each
    passage the values of another passage's. Buckets of places as in Hofstätter et al., ECIR 2021; the index, its null
    and the tests are ours.

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
    units: int

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
            "unit": "passage",
            "units": self.units,
        }


def quantile_starts(places: Array, most: int = MOST_BUCKETS, least: int = LEAST_QUERIES) -> tuple[float, ...]:
    """Where buckets of about as many of the ``places`` [Q] each begin, the first at 0.

    At most ``most``, and two at least, of about ``least`` places or more; equal places stay together, so there may be
    fewer. None is empty.
    """
    number = max(2, min(most, len(places) // least))
    inner = np.quantile(places, np.arange(1, number) / number, method="inverted_cdf")
    return (0.0, *(float(start) for start in np.unique(inner) if start > max(places.min(), 0)))


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

    ``clusters`` [Q], whole numbers: the passage of each query (None: each has its own). Raises EvenrankError where a
    place lies before the first bucket or from ``end`` on, and where no value is defined.
    """
    known = ~np.isnan(values)
    values, places = values[known], places[known]
    if not len(values):
        raise EvenrankError("no query has both an answer in its place and a value")
    clusters = _numbered(np.arange(len(values)) if clusters is None else clusters[known])
    if places.min() < starts[0] or (end is not None and places.max() >= end):
        outside = float(places.min() if places.min() < starts[0] else places.max())
        raise EvenrankError(f"places: expected {starts[0]} to below {end}, found {outside}")
    bucket = np.searchsorted(np.asarray(starts), places, side="right") - 1
    size = len(starts)
    at = places.astype(np.float64)
    drawn_means, drawn_slopes = [], []
    inside = bucket[:, None] == np.arange(size)
    for weights in bootstrap_weights(len(values), seed, BOOTSTRAP_DRAWS, clusters):
        number = weights @ inside
        total = weights @ (inside * values[:, None])
        drawn_means.append(np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0))
        drawn_slopes.append(_weighted_slopes(values, at, weights))
    null, null_slopes = _nulls(values, at, bucket, size, clusters, seed)
    means = _means(values[None], bucket[None], size)[0]
    index = float(_index(means[None])[0])
    slope = float(_slopes(values[None], at[None])[0])
    drawn = np.concatenate(drawn_means)
    # Every draw of a bucket with one passage gives the same mean: that is no interval.
    units = int(clusters.max()) + 1
    passages = [len(np.unique(clusters[bucket == b])) for b in range(size)]
    return Buckets(
        tuple(float(start) for start in starts),
        end,
        np.bincount(bucket, minlength=size),
        means,
        tuple(interval(drawn[:, b]) if passages[b] > 1 else None for b in range(size)),
        index,
        interval(_index(drawn)) if units > 1 else None,
        float(np.nanmean(null)) if not np.isnan(null).all() else float("nan"),
        _as_extreme(null, index) if units > 1 else None,
        slope,
        interval(np.concatenate(drawn_slopes)) if units > 1 else None,
        _as_extreme(np.abs(null_slopes), abs(slope)) if units > 1 else None,
        units,
    )


def _numbered(clusters: Array) -> Array:
    """Clusters by number, from 0 without a gap."""
    found: Array = np.unique(clusters, return_inverse=True)[1]
    return found


def _nulls(values: Array, places: Array, bucket: Array, size: int, clusters: Array, seed: int) -> tuple[Array, Array]:
    """Indexes and slopes of values [Q] that are shuffled over the clusters, each [PERMUTATIONS]."""
    rng = np.random.default_rng(seed)
    indexes, slopes = [], []
    # In pieces: all shuffles of many queries at once take gigabytes.
    piece = max(1, min(PERMUTATIONS, 4_000_000 // len(values)))
    for start in range(0, PERMUTATIONS, piece):
        shuffles = values[_shuffled(clusters, min(piece, PERMUTATIONS - start), rng)]
        indexes.append(_index(_means(shuffles, np.broadcast_to(bucket, shuffles.shape), size)))
        slopes.append(_slopes(shuffles, np.broadcast_to(places, shuffles.shape)))
    return np.concatenate(indexes), np.concatenate(slopes)


def _shuffled(clusters: Array, count: int, rng: np.random.Generator) -> Array:
    """Which query's value each query takes [count, Q]: in each shuffle, of the queries of another cluster (or its own).

    The queries of a cluster take those of one other, in a drawn order, from the beginning again where that has fewer:
    so what queries of a cluster have in common stays together, as the null hypothesis has it. With clusters of one
    size it is a permutation; with clusters of one query it is the plain one.
    """
    sizes = np.bincount(clusters)
    starts = np.cumsum(sizes) - sizes
    # Each shuffle's queries, cluster by cluster, in a drawn order within each.
    order = np.argsort(clusters + rng.random((count, len(clusters))), axis=1)
    place = np.empty(len(clusters), np.int64)
    place[np.argsort(clusters, kind="stable")] = np.arange(len(clusters))
    within = place - starts[clusters]
    other = rng.permuted(np.broadcast_to(np.arange(len(sizes)), (count, len(sizes))), axis=1)[:, clusters]
    found: Array = np.take_along_axis(order, starts[other] + within % sizes[other], axis=1)
    return found


def _means(values: Array, bucket: Array, size: int) -> Array:
    """Bucket means [R, size] of values [R, Q]; NaN for an empty bucket."""
    rows = np.arange(len(values))[:, None] * size + bucket
    total = np.bincount(rows.ravel(), weights=values.ravel(), minlength=len(values) * size)
    number = np.bincount(rows.ravel(), minlength=len(values) * size)
    means = np.divide(total, number, out=np.full(len(total), np.nan), where=number > 0)
    table: Array = means.reshape(len(values), size)
    return table


def _index(means: Array) -> Array:
    """1 − min/max over the buckets that hold queries [R]; NaN for one such bucket, and where no mean is above 0."""
    low = np.where(np.isnan(means), np.inf, means).min(axis=1)
    high = np.where(np.isnan(means), -np.inf, means).max(axis=1)
    known = (high > 0) & ((~np.isnan(means)).sum(axis=1) > 1)
    return np.where(known, 1 - low / np.where(known, high, 1), np.nan)


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
    over queries of each query's slope, change from the first to the last place, with its interval and ``slope_p``, that
    it is 0: by turning the signs of the slopes of whole passages. ``spread``: the largest mean less the smallest, which
    a curve that falls and rises again has too; ``spread_p``: by shuffling the places of whole passages. The unit of all
    is the passage.
    """

    places: Array
    n: int
    means: Array
    ci95: tuple[Interval | None, ...]
    slope: float
    slope_ci95: Interval | None
    slope_p: float | None
    spread: float
    spread_p: float | None

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; NaN as None."""
        rows = zip(self.places.tolist(), self.means.tolist(), self.ci95, strict=True)
        return {
            "queries": self.n,
            "places": [{"place": p, "mean": _plain(m), "ci95": list(ci) if ci else None} for p, m, ci in rows],
            "slope": _plain(self.slope),
            "slope_ci95": list(self.slope_ci95) if self.slope_ci95 else None,
            "slope_p": self.slope_p,
            "spread": _plain(self.spread),
            "spread_p": self.spread_p,
        }


def course(values: Array, places: Array, *, clusters: Array | None = None, seed: int = 0) -> Course:
    """The course of ``values`` [Q, P] over ``places`` [P]; queries with an undefined value are left out.

    ``clusters`` [Q]: as in :func:`by_bucket`.
    """
    known = ~np.isnan(values).any(axis=1)
    values = values[known]
    if not len(values):
        nothing = np.full(len(places), np.nan)
        return Course(places, 0, nothing, (None,) * len(places), float("nan"), None, None, float("nan"), None)
    clusters = _numbered(np.arange(len(values)) if clusters is None else clusters[known])
    slopes = _slopes(values, np.broadcast_to(places, values.shape))
    draws = bootstrap_means(np.column_stack([values, slopes]), seed, clusters=clusters)
    one = clusters.max() == 0
    ends = tuple(None if one else interval(draws[:, column]) for column in range(draws.shape[1]))
    slope = float(slopes.mean())
    means = values.mean(axis=0)
    spread = float(np.ptp(means))
    slope_p = spread_p = None
    if not one:
        rng = np.random.default_rng(seed)
        sums = np.bincount(clusters, slopes)
        signs = rng.integers(0, 2, (PERMUTATIONS, len(sums))) * 2.0 - 1
        slope_p = _as_extreme(np.abs(signs @ sums) / len(values), abs(slope))
        spread_p = _as_extreme(_spreads(values, clusters, rng), spread)
    return Course(places, len(values), means, ends[:-1], slope, ends[-1], slope_p, spread, spread_p)


def _spreads(values: Array, clusters: Array, rng: np.random.Generator) -> Array:
    """Largest less smallest mean of values [Q, P] whose places are shuffled, all queries of a cluster alike
    [PERMUTATIONS]."""
    sums = np.stack([np.bincount(clusters, column) for column in values.T], axis=1)
    found = []
    piece = max(1, min(PERMUTATIONS, 4_000_000 // sums.size))
    for start in range(0, PERMUTATIONS, piece):
        shape = (min(piece, PERMUTATIONS - start), *sums.shape)
        found.append(np.ptp(rng.permuted(np.broadcast_to(sums, shape), axis=2).sum(axis=1), axis=1) / len(values))
    return np.concatenate(found)
