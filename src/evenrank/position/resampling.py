"""Resampling of queries in clusters: shuffles, slopes and p-values."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

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
    chunk = max(1, min(PERMUTATIONS, _CHUNK // size))
    for start in range(0, PERMUTATIONS, chunk):
        yield min(chunk, PERMUTATIONS - start)


def shuffled(clusters: Ints, count: int, rng: np.random.Generator) -> Ints:
    """For each shuffle, the query whose value each query takes [count, Q]: one of another cluster, or of its own.

    The queries of a cluster take the values of one other cluster, in random order, cycling if that has fewer: what
    queries of a cluster share stays together, as the null hypothesis requires. With clusters of equal size this is a
    permutation; with clusters of one query, the plain one.
    """
    sizes = np.bincount(clusters)
    starts = np.cumsum(sizes) - sizes
    # The queries of each shuffle, cluster by cluster, in random order within each.
    order = np.argsort(clusters + rng.random((count, len(clusters))), axis=1)
    place = np.empty(len(clusters), np.int64)
    place[np.argsort(clusters, kind="stable")] = np.arange(len(clusters))
    within = place - starts[clusters]
    other = rng.permuted(np.broadcast_to(np.arange(len(sizes)), (count, len(sizes))), axis=1)[:, clusters]
    found: Ints = np.take_along_axis(order, starts[other] + within % sizes[other], axis=1)
    return found


def slopes(values: Floats, places: Floats) -> Floats:
    """Least-squares slopes [R] of values [R, N] on places [R, N]; NaN if all places are equal."""
    off = places - places.mean(axis=1, keepdims=True)
    squares = (off**2).sum(axis=1)
    # Places that differ only by rounding count as equal.
    spread = squares > 1e-12 * np.maximum((places**2).sum(axis=1), 1)
    found: Floats = np.divide((off * values).sum(axis=1), squares, out=np.full(len(values), np.nan), where=spread)
    return found


def weighted_slopes(values: Floats, places: Floats, weights: Floats) -> Floats:
    """Least-squares slopes [R] of values [N] on places [N] under weights [R, N]; NaN if all places are equal."""
    off = places - places.mean()
    whole = weights.sum(axis=1)
    mean = weights @ off / whole
    squares = weights @ off**2 - whole * mean**2
    spread = squares > 1e-12 * np.maximum(weights @ off**2, 1)
    together = weights @ (off * values) - mean * (weights @ values)
    found: Floats = np.divide(together, squares, out=np.full(len(weights), np.nan), where=spread)
    return found


def p_of(null: Floats, found: float) -> float | None:
    """The share of the ``null`` values, ``found`` among them, that are at least ``found``; None if undefined."""
    null = null[~np.isnan(null)]
    if np.isnan(found) or not len(null):
        return None
    return float((1 + (null >= found - 1e-12).sum()) / (1 + len(null)))


def json_number(value: float) -> float | None:
    """A JSON value; None for NaN."""
    return None if np.isnan(value) else float(value)
