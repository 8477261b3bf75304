"""Exact search: every query against every vector, in blocks of mapped float16 rows."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Floats = NDArray[np.float32]
Halves = NDArray[np.float16]

_BLOCK = 4096
"""Vectors in a block."""
_QUERIES = 1024
"""The most queries multiplied at once; their number is filled up to a multiple of ``_STEP``."""
_STEP = 32
_CELLS = 1 << 24
"""The most cells of running tops (128 MB)."""


def search_exact(
    vectors: Halves,
    turn: Ints,
    by_turn: Ints,
    queries: Floats,
    k: int,
    advance: Callable[[int], None] = lambda _: None,
) -> tuple[Ints, Floats]:
    """The documents [Q, k'] and scores [Q, k'] of the first k' = min(k, N) of each query, by falling inner product.

    ``vectors`` [N, d], mapped or in memory: multiplied in float32. ``turn`` [N]: the position of each document in the
    order of ties, from 0; ``by_turn`` [N]: the document at each position. ``queries`` [Q, d]: finite. Matrices of one
    shape are multiplied, whatever k and (in steps of 32) the number of queries, so that these do not change a score.
    ``advance`` is called with the number of queries that are done. Raises ValueError for turns that are no order
    and for scores that are NaN.
    """
    k = min(k, len(vectors))
    documents = np.empty((len(queries), k), np.int32)
    scores = np.empty((len(queries), k), np.float32)
    at_once = max(_STEP, _CELLS // (k + _BLOCK) // _STEP * _STEP)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for start in range(0, len(queries), at_once):
            part = slice(start, start + at_once)
            _search(vectors, turn, by_turn, queries[part], documents[part], scores[part], pool)
            advance(len(queries[part]))
    return documents, scores


def _search(
    vectors: Halves,
    turn: Ints,
    by_turn: Ints,
    queries: Floats,
    documents: Ints,
    scores: Floats,
    pool: ThreadPoolExecutor,
) -> None:
    """Fills ``documents`` and ``scores`` [Q, k]."""
    from evenrank.files.compiled import unwritable

    from . import _searching as _kernel

    (by_turn,) = unwritable(by_turn)
    count, k = documents.shape
    filled = np.zeros((-(-count // _STEP) * _STEP, queries.shape[1]), np.float32)
    filled[:count] = queries
    keys = np.empty((count, k + _BLOCK), np.uint64)
    counts = np.zeros(count, np.int64)
    least = np.full(count, -np.inf, np.float32)
    block = np.zeros((_BLOCK, queries.shape[1]), np.float32)
    products = np.empty((min(_QUERIES, len(filled)), _BLOCK), np.float32)
    for row in range(0, len(vectors), _BLOCK):
        (place,) = unwritable(turn[row : row + _BLOCK])
        block[: len(place)] = vectors[row : row + _BLOCK]
        for first in range(0, count, _QUERIES):
            rows = filled[first : first + _QUERIES]
            found = np.matmul(rows, block.T, out=products[: len(rows)])
            own = slice(first, min(first + _QUERIES, count))
            arguments = (place, k, keys[own], counts[own], least[own])
            _each_part(pool, own.stop - own.start, lambda a, b, f=found, g=arguments: _kernel.scan(f, *g, a, b))  # type: ignore[misc]
    sound = _each_part(
        pool,
        count,
        lambda a, b: _kernel.ranked(keys[a:b], counts[a:b], k, by_turn, documents[a:b], scores[a:b]),
    )
    if not all(sound):
        raise ValueError("turns are no order of the documents, or vectors no numbers")


def _each_part(pool: ThreadPoolExecutor, size: int, work: Callable[[int, int], object]) -> list[object]:
    """Calls ``work(start, stop)`` for parts of ``size`` items, on all cores."""
    step = -(-size // (os.cpu_count() or 1))
    parts = [pool.submit(work, start, min(start + step, size)) for start in range(0, size, step)]
    return [done.result() for done in parts]
