"""Rows of word vectors: unit length, row numbers, and the threads that compute on them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
from numpy.typing import NDArray

from evenrank.io.types import Array

from .word_sets import Sets

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Rows = tuple[int, ...]


def unit_rows(rows: Array) -> Doubles:
    """Rows [N, D] scaled to length 1, in float64; zero rows stay zero."""
    found = np.asarray(rows, dtype=np.float64)
    length = np.linalg.norm(found, axis=1, keepdims=True)
    length[length == 0] = 1
    divided: Doubles = found / length
    return divided


def row_numbers(words: Sequence[str], wanted: Iterable[str]) -> dict[str, int]:
    """The row number of each of the ``wanted`` words that is in ``words``."""
    asked = frozenset(wanted)
    return {word: row for row, word in enumerate(words) if word in asked}


def words_of(sets: Sets) -> list[str]:
    """The distinct words of sets, in their order."""
    return list(dict.fromkeys(word for of in sets for word in of))


def first_words(words: Sequence[str], count: int = 5) -> str:
    """The first words, for a message."""
    return ", ".join(words[:count]) + (", …" if len(words) > count else "")


def one_blas_thread() -> AbstractContextManager[object]:
    """Restricts matrix products to the calling thread if threadpoolctl (of scikit-learn) is installed."""
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1, "blas")
    return limits


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
