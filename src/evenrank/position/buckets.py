"""Effectiveness by the position of the answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.io import EvenrankError
from evenrank.measures.statistics import BOOTSTRAP_DRAWS, bootstrap_weights, interval

from .resampling import (
    Floats,
    Interval,
    Ints,
    chunks,
    cluster_ids,
    json_number,
    p_of,
    shuffled,
    slopes,
    weighted_slopes,
)

FIFTHS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
"""Edges of the buckets of relative positions."""
MOST_BUCKETS = 8
LEAST_QUERIES = 10
"""Approximate queries per bucket, if buckets are quantiles."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Effectiveness by the position of the answer.

    ``starts`` [B]: the start of each half-open bucket, which ends at the next start; the last one ends at ``end``
    (None: it is open). ``n`` [B] queries, ``means`` [B] (NaN for an empty bucket), ``ci95`` [B] (None for fewer than
    two passages). ``index`` = 1 − min/max of the means (NaN if only one bucket has queries), with its bootstrap
    interval; ``null``: its mean over shuffled positions (noise alone makes it positive, the more so the smaller the
    buckets), ``p``: the share of shuffles with at least the same index. ``slope``: of the values on the positions, in
    effectiveness per unit of position, with ``slope_p``.

    The unit of intervals and tests is the passage (``units`` of them), since questions of one passage are not
    independent: the bootstrap draws whole passages with all their queries; a shuffle assigns the values of one
    passage's queries to another passage. Buckets of positions as in Hofstätter et al., ECIR 2021; the index, its null
    and the tests are ours.

    When it misleads: passages with early and with late answers can differ in other ways, so a difference between
    buckets does not prove that position is the cause; the second part of ``evenrank position sensitivity``, which
    moves the answer within the same passage, does. The index is positive by noise alone: compare it with ``null``. An
    answer beyond what a ranker reads is lost by truncation, which is not a preference for early text; such answers are
    counted separately.

    Worked example: two queries with early answers have 1.0 and 0.8, two with late ones 0.6 and 0.3. The bucket means
    are 0.9 and 0.45, the index is 1 − 0.45/0.9.

    >>> import numpy as np
    >>> from evenrank.position.buckets import by_bucket
    >>> found = by_bucket(np.array([1.0, 0.8, 0.6, 0.3]), np.array([0.1, 0.2, 0.7, 0.9]), (0.0, 0.5), 1.0)
    >>> found.means.round(4).tolist(), round(found.index, 4)
    ([0.9, 0.45], 0.5)
    """

    starts: tuple[float, ...]
    end: float | None
    n: Ints
    means: Floats
    ci95: tuple[Interval | None, ...]
    index: float
    index_ci95: Interval | None
    null: float
    p: float | None
    slope: float
    slope_ci95: Interval | None
    slope_p: float | None
    units: int

    def to_dict(self) -> dict[str, object]:
        """As JSON values; None for NaN."""
        ends = [*self.starts[1:], self.end]
        rows = zip(self.starts, ends, self.n.tolist(), self.means.tolist(), self.ci95, strict=True)
        return {
            "buckets": [
                {"from": low, "to": high, "queries": n, "mean": json_number(mean), "ci95": list(ci) if ci else None}
                for low, high, n, mean, ci in rows
            ],
            "index": json_number(self.index),
            "index_ci95": list(self.index_ci95) if self.index_ci95 else None,
            "index_null": json_number(self.null),
            "index_p": self.p,
            "slope": json_number(self.slope),
            "slope_ci95": list(self.slope_ci95) if self.slope_ci95 else None,
            "slope_p": self.slope_p,
            "unit": "passage",
            "units": self.units,
        }


def quantile_starts(places: Floats, most: int = MOST_BUCKETS, least: int = LEAST_QUERIES) -> tuple[float, ...]:
    """Starts of buckets with about equal numbers of the ``places`` [Q], the first at 0.

    Between two and ``most`` buckets of about ``least`` places or more. Equal places share a bucket, so there may be
    fewer; none is empty.
    """
    number = max(2, min(most, len(places) // least))
    inner = np.quantile(places, np.arange(1, number) / number, method="inverted_cdf")
    return (0.0, *(float(start) for start in np.unique(inner) if start > max(places.min(), 0)))


def by_bucket(
    values: Floats,
    places: NDArray[np.float64] | Ints,
    starts: Sequence[float],
    end: float | None = None,
    *,
    clusters: Ints | None = None,
    seed: int = 0,
) -> Buckets:
    """Effectiveness ``values`` [Q] by the ``places`` [Q] of the queries' answers; NaN values are left out.

    ``clusters`` [Q], whole numbers: the passage of each query (None: each has its own). Raises EvenrankError if a place
    is before the first bucket or not before ``end``, and if no value is defined.
    """
    known = ~np.isnan(values)
    values, places = values[known], places[known]
    if not len(values):
        raise EvenrankError("no query has both a located answer and a value")
    clusters = cluster_ids(clusters, known)
    if places.min() < starts[0] or (end is not None and places.max() >= end):
        outside = float(places.min() if places.min() < starts[0] else places.max())
        raise EvenrankError(f"places: expected {starts[0]} to below {end}, found {outside}")
    bucket = np.searchsorted(np.asarray(starts), places, side="right") - 1
    size, at = len(starts), places.astype(np.float64)
    means = bucket_means(values[None], bucket[None], size)[0]
    index, slope = float(bucket_index(means[None])[0]), float(slopes(values[None], at[None])[0])
    drawn, drawn_slopes = _bootstrap(values, at, bucket, size, clusters, seed)
    null, null_slopes = null_distribution(values, at, bucket, size, clusters, seed)
    # Every draw of a bucket with one passage has the same mean: that is no interval.
    units = int(clusters.max()) + 1
    passages = [len(np.unique(clusters[bucket == b])) for b in range(size)]
    return Buckets(
        tuple(float(start) for start in starts),
        end,
        np.bincount(bucket, minlength=size),
        means,
        tuple(interval(drawn[:, b]) if passages[b] > 1 else None for b in range(size)),
        index,
        interval(bucket_index(drawn)) if units > 1 else None,
        float(np.nanmean(null)) if not np.isnan(null).all() else float("nan"),
        p_of(null, index) if units > 1 else None,
        slope,
        interval(drawn_slopes) if units > 1 else None,
        p_of(np.abs(null_slopes), abs(slope)) if units > 1 else None,
        units,
    )


def _bootstrap(
    values: Floats, places: Floats, bucket: Ints, size: int, clusters: Ints, seed: int
) -> tuple[Floats, Floats]:
    """Bucket means [R, size] and slopes [R] of bootstrap draws of whole clusters."""
    means, drawn_slopes = [], []
    inside = bucket[:, None] == np.arange(size)
    for weights in bootstrap_weights(len(values), seed, BOOTSTRAP_DRAWS, clusters):
        number = weights @ inside
        total = weights @ (inside * values[:, None])
        means.append(np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0))
        drawn_slopes.append(weighted_slopes(values, places, weights))
    return np.concatenate(means), np.concatenate(drawn_slopes)


def null_distribution(
    values: Floats, places: Floats, bucket: Ints, size: int, clusters: Ints, seed: int
) -> tuple[Floats, Floats]:
    """Indexes and slopes of values [Q] shuffled over the clusters, each [PERMUTATIONS]."""
    rng = np.random.default_rng(seed)
    indexes, null_slopes = [], []
    for count in chunks(len(values)):
        shuffles = values[shuffled(clusters, count, rng)]
        indexes.append(bucket_index(bucket_means(shuffles, np.broadcast_to(bucket, shuffles.shape), size)))
        null_slopes.append(slopes(shuffles, np.broadcast_to(places, shuffles.shape)))
    return np.concatenate(indexes), np.concatenate(null_slopes)


def bucket_means(values: Floats, bucket: Ints, size: int) -> Floats:
    """Bucket means [R, size] of values [R, Q]; NaN for an empty bucket."""
    rows = np.arange(len(values))[:, None] * size + bucket
    total = np.bincount(rows.ravel(), weights=values.ravel(), minlength=len(values) * size)
    number = np.bincount(rows.ravel(), minlength=len(values) * size)
    means = np.divide(total, number, out=np.full(len(total), np.nan), where=number > 0)
    table: Floats = means.reshape(len(values), size)
    return table


def bucket_index(means: Floats) -> Floats:
    """1 − min/max over non-empty buckets [R]; NaN for fewer than two of them, and if no mean is positive."""
    low = np.where(np.isnan(means), np.inf, means).min(axis=1)
    high = np.where(np.isnan(means), -np.inf, means).max(axis=1)
    known = (high > 0) & ((~np.isnan(means)).sum(axis=1) > 1)
    return np.where(known, 1 - low / np.where(known, high, 1), np.nan)
