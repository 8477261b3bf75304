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
    errors,
    json_number,
    lowest_to_highest,
    p_of,
    ratios,
    signs,
    sums_by,
    tested,
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
    two passages). ``index`` = 1 − min/max of the means (NaN if only one bucket has queries), the Position Sensitivity
    Index [PSI], with its bootstrap interval; ``null``: its mean under no effect (noise alone makes it positive, the
    more so the smaller the buckets), ``p``: how often it is then as large. ``slope``: of the values on the positions,
    in effectiveness per unit of position, with ``slope_p``. ``length_slope``: the same among passages of equal length
    (a least-squares fit on the position, the words of the passage and their logarithm), with interval and p; NaN where
    lengths are not given or leave nothing to compare.

    The unit of intervals and tests is the passage (``units`` of them), since questions of one passage are not
    independent: the bootstrap of means and index draws whole passages. Under no effect a passage's departures from the
    mean are as likely to be the other way round, all of them together: their signs are drawn, passage by passage (wild
    cluster bootstrap, Cameron, Gelbach & Miller 2008). A slope is compared as a multiple of its standard error over
    passages, and its interval is made of the same draws: it leaves out 0 exactly where p < .05. Buckets of positions as
    in Hofstätter et al., ECIR 2021; null and tests are ours.

    When it misleads: this is a correlation. Passages with early and with late answers can differ in other ways, so a
    difference between buckets does not prove that position is the cause; the first part of ``evenrank position
    sensitivity``, which moves the answer's sentence within its passage, does. The index is positive by noise alone:
    compare it with ``null``. An answer beyond what a ranker reads is lost by truncation, which is not a preference for
    early text; such answers are counted separately.

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
    length_slope: float = float("nan")
    length_slope_ci95: Interval | None = None
    length_slope_p: float | None = None

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
            "length_slope": json_number(self.length_slope),
            "length_slope_ci95": list(self.length_slope_ci95) if self.length_slope_ci95 else None,
            "length_slope_p": self.length_slope_p,
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
    lengths: Ints | None = None,
    seed: int = 0,
) -> Buckets:
    """Effectiveness ``values`` [Q] by the ``places`` [Q] of the queries' answers; NaN values are left out.

    ``clusters`` [Q], whole numbers: the passage of each query (None: each has its own). ``lengths`` [Q]: the words of
    the passages, 1 or more (None: they are not compared). Raises EvenrankError if a place is before the first bucket or
    not before ``end``, and if no value is defined.
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
    means = bucket_means(values, bucket, size)
    index = float(lowest_to_highest(means[None])[0])
    drawn = _bootstrap(values, bucket, size, clusters, seed)
    null = null_indexes(values, bucket, size, clusters, seed)
    units = int(clusters.max()) + 1
    slope = slope_of(values, at, clusters, seed=seed)
    fitted: tuple[float, Interval | None, float | None] = (float("nan"), None, None)
    if lengths is not None:
        words = lengths[known].astype(np.float64)
        fitted = slope_of(values, at, clusters, beside=np.stack([words, np.log(words)]), seed=seed)
    # Every draw of a bucket with one passage has the same mean: that is no interval.
    passages = [len(np.unique(clusters[bucket == b])) for b in range(size)]
    return Buckets(
        tuple(float(start) for start in starts),
        end,
        np.bincount(bucket, minlength=size),
        means,
        tuple(interval(drawn[:, b]) if passages[b] > 1 else None for b in range(size)),
        index,
        interval(lowest_to_highest(drawn)) if units > 1 else None,
        float(np.nanmean(null)) if not np.isnan(null).all() else float("nan"),
        p_of(null, index) if units > 1 else None,
        *slope,
        units,
        *fitted,
    )


def bucket_means(values: Floats, bucket: Ints, size: int) -> Floats:
    """Means [size] of the values [Q] in each bucket; NaN for an empty one."""
    number = np.bincount(bucket, minlength=size)
    total = np.bincount(bucket, values, minlength=size)
    found: Floats = np.divide(total, number, out=np.full(size, np.nan), where=number > 0)
    return found


def slope_of(
    values: Floats, places: Floats, clusters: Ints, *, beside: Floats | None = None, seed: int = 0
) -> tuple[float, Interval | None, float | None]:
    """The least-squares slope of values [Q] on places [Q], its interval and p; NaN, None, None if places are equal.

    ``beside`` [B, Q]: other regressors, whose share is taken out of both first (Frisch, Waugh & Lovell).
    """
    ones = np.ones(len(values))
    others = ones[None] if beside is None else np.vstack([ones, beside])
    basis = _basis(others)
    off = places - basis @ (basis.T @ places)
    squares = float(off @ off)
    # Places that differ only by rounding, or as the others do, count as equal.
    if squares <= 1e-12 * max(float(places @ places), 1):
        return float("nan"), None, None
    residuals = values - basis @ (basis.T @ values)
    slope = float(off @ residuals) / squares
    if not clusters.any():
        return slope, None, None
    whole = np.column_stack([basis, off / np.sqrt(squares)])

    def error(samples: Floats) -> Floats:
        left = samples - (samples @ whole) @ whole.T
        return errors(sums_by(left * off, clusters), squares)

    rng, found = np.random.default_rng(seed), []
    for count in chunks(len(values)):
        samples = residuals * signs(int(clusters.max()) + 1, count, rng)[:, clusters]
        found.append(ratios(samples @ off / squares, error(samples)))
    return slope, *tested(slope, float(error(residuals[None])[0]), np.concatenate(found))


def _basis(rows: Floats) -> Floats:
    """Orthonormal columns [Q, ≤ B] that span the rows [B, Q], those left out that the ones before them span."""
    columns: list[Floats] = []
    for row in rows:
        left = row - sum((column * (column @ row) for column in columns), np.zeros(len(row)))
        size = float(np.linalg.norm(left))
        if size > 1e-9 * max(float(np.linalg.norm(row)), 1e-300):
            columns.append(left / size)
    return np.stack(columns, axis=1)


def _bootstrap(values: Floats, bucket: Ints, size: int, clusters: Ints, seed: int) -> Floats:
    """Bucket means [R, size] of bootstrap draws of whole clusters."""
    means = []
    inside = bucket[:, None] == np.arange(size)
    for weights in bootstrap_weights(len(values), seed, BOOTSTRAP_DRAWS, clusters):
        number = weights @ inside
        total = weights @ (inside * values[:, None])
        means.append(np.divide(total, number, out=np.full(number.shape, np.nan), where=number > 0))
    return np.concatenate(means)


def null_indexes(values: Floats, bucket: Ints, size: int, clusters: Ints, seed: int) -> Floats:
    """Indexes [PERMUTATIONS] of the values [Q] with the signs of each passage's departures from the mean drawn."""
    mean = values.mean()
    number = np.bincount(bucket, minlength=size)
    units = int(clusters.max()) + 1
    sums = np.bincount(clusters * size + bucket, values - mean, minlength=units * size).reshape(units, size)
    shares = np.divide(sums, number, out=np.full(sums.shape, np.nan), where=number > 0)
    rng = np.random.default_rng(seed)
    drawn = [signs(units, count, rng) @ shares + mean for count in chunks(units)]
    return lowest_to_highest(np.concatenate(drawn))
