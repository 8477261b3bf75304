"""The rows of a matrix nearest to some points, exactly; of a large one most rows are left out by a pass in 8 bits."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenrank.io.types import Array

Similarity = Literal["cosine", "dot"]
Floats = NDArray[np.float32]
_BLOCK = 1 << 12
# Below these, compiling or loading the first pass takes longer than all products.
_FEW_PRODUCTS = 1 << 35
_FEW_POINTS, _FEW_ROWS = 16, 1 << 16
_MOST_DIMENSIONS = 1 << 14
"""Sums of so many products of bytes fit into 32 bits."""
_ROOM = 1 << 22
"""The most pairs of a point and a row that one thread keeps."""


def nearest_rows(matrix: Floats, points: Floats, count: int, form: Similarity) -> tuple[Array, Array, Array]:
    """Query, row and score of the first ``count`` rows of ``matrix`` [V, D] for each of ``points`` [Q, D], by query.

    The score is the product, divided by the row's length if ``form`` is cosine. Ties: the earlier row.
    """
    rows = _candidates(matrix, points, count, form)
    if rows is None:
        return _all_multiplied(matrix, points, count, form)
    query, row, score = _all_multiplied(matrix[rows], points, count, form)
    return query, rows[row], score


def lengths(vectors: Floats) -> Floats:
    """The lengths of rows, 1 for zero rows."""
    length: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    length[length == 0] = 1
    return length


def _all_multiplied(matrix: Floats, points: Floats, count: int, form: Similarity) -> tuple[Array, Array, Array]:
    best_query = best_row = np.empty(0, np.int64)
    best_score = np.empty(0, np.float32)
    lowest = np.full(len(points), -np.inf, np.float32)
    for start in range(0, len(matrix), _BLOCK):
        scores = _scores(matrix[start : start + _BLOCK], points, form)
        if start == 0 and count < scores.shape[1]:
            lowest = np.partition(scores, -count, axis=1)[:, -count]
        # Only rows that can still be among the first are sorted.
        query, row = np.nonzero(scores >= lowest[:, None])
        best_query = np.concatenate([best_query, query])
        best_row = np.concatenate([best_row, row + start])
        best_score = np.concatenate([best_score, scores[query, row]])
        order = np.lexsort((best_row, -best_score, best_query))
        best_query, best_row, best_score = best_query[order], best_row[order], best_score[order]
        first = np.searchsorted(best_query, np.arange(len(points)))
        place = np.arange(len(best_query)) - first[best_query]
        keep = place < count
        best_query, best_row, best_score, place = best_query[keep], best_row[keep], best_score[keep], place[keep]
        last = place == count - 1
        lowest[best_query[last]] = best_score[last]
    return best_query, best_row, best_score


def _scores(block: Floats, points: Floats, form: Similarity) -> Floats:
    scores: Floats = points @ block.T
    if form == "cosine":
        scores *= 1 / lengths(block)
    return scores


def _candidates(matrix: Floats, points: Floats, count: int, form: Similarity) -> Array | None:
    """Rows, ascending, that have every point's first ``count`` among them; None: that is not worth finding out.

    Scores of float32 are off by less than ``slack``, so that theirs decide, as without the first pass. The first block
    is whole: its scores say which are too low. So is the last if it is short, and the rows between fill blocks: in
    which order products are added up depends on how many rows are multiplied.
    """
    dimensions = matrix.shape[1]
    few = len(matrix) < _FEW_ROWS or len(points) < _FEW_POINTS or matrix.size * len(points) < _FEW_PRODUCTS
    if few or count > _BLOCK // 4 or dimensions > _MOST_DIMENSIONS or not matrix.flags.c_contiguous:
        return None
    from ._byte_pass import LARGEST, SMALLEST, scan
    from ._byte_products import ROWS, able

    size = np.linalg.norm(points.astype(np.float64), axis=1)
    if not able() or not np.all((size == 0) | (size**2 >= SMALLEST) & (size**2 <= LARGEST)):
        return None
    slack = np.float32((4 * dimensions + 64) * 2.0**-24)
    scores = _scores(matrix[:_BLOCK], points, form)
    if not np.isfinite(scores).all():
        return None
    best = -np.sort(-np.partition(scores, -count, axis=1)[:, -count:], axis=1)
    # For a point of zeros, the first rows are the nearest.
    best[size == 0] = np.inf
    rounded, sizes = _rounded(points, size)
    room = min(max(1 << 16, 32 * count * len(points)), _ROOM)

    def scanned(start: int, stop: int) -> Array | None:
        found = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.float32)
        bytes_ = np.zeros((ROWS, rounded.shape[1] * 4), np.int8)
        own = sizes, best[:, -1].copy(), best.copy(), found, bytes_, bytes_.view(np.int32)
        count = scan(matrix, matrix.view(np.int32), start, stop, points, rounded, *own, form == "cosine", slack)
        return None if count < 0 else found[1][:count]

    end = len(matrix) // _BLOCK * _BLOCK
    step = -(-(end - _BLOCK) // (os.cpu_count() or 1))
    starts = range(_BLOCK, end, step)
    with ThreadPoolExecutor(len(starts)) as pool:
        parts = list(pool.map(lambda start: scanned(start, min(start + step, end)), starts))
    taken = np.ones(len(matrix), bool)
    taken[_BLOCK:end] = False
    for part in parts:
        if part is None:
            return None
        taken[part] = True
    others = np.flatnonzero(~taken)
    taken[others[: -np.count_nonzero(taken[:end]) % _BLOCK]] = True
    return np.flatnonzero(taken)


def _rounded(points: Floats, size: Array) -> tuple[Array, Floats]:
    """``points`` in 8 bits and their units, lengths and those of what rounding leaves out, as the first pass takes
    them."""
    from ._byte_products import POINTS

    unit = np.abs(points).max(axis=1).astype(np.float64) / 127
    unit[unit == 0] = 1
    bytes_ = np.rint(points / unit[:, None])
    rest = np.linalg.norm(points - bytes_ * unit[:, None], axis=1)
    shape = -(-len(points) // POINTS) * POINTS, -(-points.shape[1] // 4) * 4
    filled = np.zeros(shape, np.uint8)
    filled[: len(points), : points.shape[1]] = bytes_ + 128
    tiles = filled.reshape(-1, POINTS, shape[1] // 4, 4).swapaxes(1, 2)
    return np.ascontiguousarray(tiles), np.stack([unit, size, rest], axis=1).astype(np.float32)
