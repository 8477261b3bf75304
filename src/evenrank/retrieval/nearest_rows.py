"""The rows of a matrix nearest to some points, exactly."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenrank.io.types import Array

Similarity = Literal["cosine", "dot"]
Floats = NDArray[np.float32]
_BLOCK = 1 << 12


def nearest_rows(matrix: Floats, points: Floats, count: int, form: Similarity) -> tuple[Array, Array, Array]:
    """Query, row and score of the first ``count`` rows of ``matrix`` [V, D] for each of ``points`` [Q, D], by query.

    The score is the product, divided by the row's length if ``form`` is cosine. Ties: the earlier row.
    """
    best_query = best_row = np.empty(0, np.int64)
    best_score = np.empty(0, np.float32)
    lowest = np.full(len(points), -np.inf, np.float32)
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK]
        scores = points @ block.T
        if form == "cosine":
            scores *= 1 / lengths(block)
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


def lengths(vectors: Floats) -> Floats:
    """The lengths of rows, 1 for zero rows."""
    length: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    length[length == 0] = 1
    return length
