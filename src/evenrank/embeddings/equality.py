"""The two equal-distance properties that hard debiasing guarantees, measured on all words."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evenrank.io.types import Array

from ._rows import Doubles, Flags, Rows, cores, one_blas_thread
from .vectors import Vectors

# Words per block, candidates per block, directions up to which the product is split.
_WORDS, _CANDIDATES, _DIRECTIONS = 2048, 64, 32


@dataclass(frozen=True, slots=True)
class EqualityCheck:
    """The largest |w·a − w·b| (``dot``) and |‖w − a‖ − ‖w − b‖| (``distance``) over ``words`` neutral words and
    ``pairs`` of equalised words."""

    dot: float
    distance: float
    words: int
    pairs: int

    def holds(self) -> bool:
        """Whether both are below 1e-6."""
        return max(self.dot, self.distance) < 1e-6


def check_equality(vectors: Vectors, neutral: Flags, sets: Iterable[Rows]) -> EqualityCheck:
    """The largest |w·a − w·b| and |‖w − a‖ − ‖w − b‖| over every neutral word w and every two words a, b of a set.

    ``neutral`` [V]; ``sets``: the rows of each set. Computed in blocks of words, as exact as in float64.
    """
    pairs = np.array([pair for of in sets for pair in combinations(of, 2)], dtype=np.int64).reshape(-1, 2)
    rows = np.flatnonzero(neutral)
    if not len(pairs) or not len(rows):
        return EqualityCheck(0.0, 0.0, len(rows), len(pairs))
    a, b = (vectors.matrix[pairs[:, side]].astype(np.float64) for side in (0, 1))
    squares = (a * a).sum(axis=1) - (b * b).sum(axis=1)
    between = np.maximum(np.linalg.norm(a - b, axis=1), 1e-300)
    with one_blas_thread():
        directions, differences = _split(a - b)
    found = [0.0]

    def gaps(start: int) -> tuple[float, float]:
        words = vectors.matrix[rows[start : start + _WORDS]]
        along = words.astype(np.float64) @ directions if directions.size else np.empty((len(words), 0))
        gap = np.concatenate([words, along], axis=1, dtype=differences.dtype) @ differences
        # ‖w − a‖ − ‖w − b‖ is (‖a‖² − ‖b‖² − 2 w·(a − b)) / (‖w − a‖ + ‖w − b‖), and that sum is at least ‖a − b‖:
        # a bound that excludes pairs which cannot exceed the largest value so far.
        least = (1 - 1e-5) * found[0]
        above, below = ((squares + sign * least * between) / 2 for sign in (1, -1))
        beyond = gap > above.astype(gap.dtype)
        beyond |= gap < below.astype(gap.dtype)
        word, pair = np.divmod(np.flatnonzero(beyond), len(pairs))
        bound = np.abs(squares[pair] - 2 * gap[word, pair]) / between[pair]
        order = np.argsort(-bound)
        distance = 0.0
        for part in range(0, len(order), _CANDIDATES):
            some = order[part : part + _CANDIDATES]
            if bound[some[0]] < (1 - 1e-5) * distance:
                break
            w, p = words[word[some]].astype(np.float64), pair[some]
            to_a, to_b = np.linalg.norm(w - a[p], axis=1), np.linalg.norm(w - b[p], axis=1)
            distance = max(distance, float(np.abs(to_a - to_b).max()))
        found[0] = max(found[0], distance)
        return max(float(gap.max()), -float(gap.min())), distance

    # One thread per core instead of BLAS threads, which wait for one another at every block.
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        dots, distances = zip(*pool.map(gaps, range(0, len(rows), _WORDS)), strict=True)
    return EqualityCheck(max(dots), max(distances), len(rows), len(pairs))


def _split(apart: Doubles) -> tuple[Doubles, Array]:
    """Directions [D, k] and a table [D + k, P] with words·apartᵀ = [words, words·directions] · table.

    Differences [P, D] of equalised words are in the bias subspace, except for rounding. Without their components along
    its directions (taken in float64), the rest is so small that a product in float32, twice as fast, is as exact as one
    in float64. Otherwise k = 0 and the table is float64.
    """
    _, values, axes = np.linalg.svd(apart, full_matrices=False)
    count = int((values > 1e-5 * values[0]).sum()) if values[0] > 0 else 0
    axes = axes[:count]
    along = apart @ axes.T
    rest = apart - along @ axes
    if count > _DIRECTIONS or np.abs(rest).max(initial=0) > 1e-5:
        return np.empty((apart.shape[1], 0)), np.ascontiguousarray(apart.T)
    return axes.T, np.concatenate([rest, along], axis=1).T.astype(np.float32)
