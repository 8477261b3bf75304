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
"""The most cells of scores at once, of each core (128 MB)."""
_SIGN, _LOW, _NONE = np.uint32(1 << 31), np.uint64(0xFFFFFFFF), np.uint64(0xFFFFFFFFFFFFFFFF)


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
    at_once = max(_STEP, min(_QUERIES, _CELLS // (k + _BLOCK) // _STEP * _STEP))
    tops = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = [queries[start : start + at_once] for start in range(0, len(queries), at_once)]
        for top in pool.map(lambda part: _top(vectors, turn, part, k), parts):
            tops.append(top)
            advance(len(top))
    keys = np.concatenate(tops) if tops else np.empty((0, k), np.uint64)
    place = keys & _LOW
    if (place >= len(by_turn)).any():
        raise ValueError("turns are no order of the documents")
    documents = by_turn[place]
    if (documents < 0).any() or (documents >= len(vectors)).any():
        raise ValueError("turns are no order of the documents")
    return documents, _scores(keys)


def _top(vectors: Halves, turn: Ints, queries: Floats, k: int) -> NDArray[np.uint64]:
    """The keys [Q, k] of the first k of each query: the falling score above the turn."""
    filled = np.zeros((-(-len(queries) // _STEP) * _STEP, queries.shape[1]), np.float32)
    filled[: len(queries)] = queries
    block = np.zeros((_BLOCK, queries.shape[1]), np.float32)
    top = np.empty((len(queries), 0), np.uint64)
    least = np.full((len(queries), 1), -np.inf, np.float32)
    for start in range(0, len(vectors), _BLOCK):
        place = turn[start : start + _BLOCK].astype(np.uint32)
        block[: len(place)] = vectors[start : start + _BLOCK]
        scores = (filled @ block.T)[: len(queries), : len(place)]
        # Of most blocks only a few scores can enter.
        query, column = np.nonzero(scores >= least)
        keys = _keys(scores[query, column], place[column])
        entering = np.bincount(query, minlength=len(queries))
        more = np.full((len(queries), int(entering.max(initial=0))), _NONE)
        more[query, np.arange(len(query)) - np.repeat(np.cumsum(entering) - entering, entering)] = keys
        top = np.concatenate([top, more], axis=1)
        if top.shape[1] > k:
            top = np.partition(top, k - 1, axis=1)[:, :k]
            least = _scores(top.max(axis=1, keepdims=True))
    if top.shape[1] < k or (top == _NONE).any():
        raise ValueError("vectors are no numbers")
    return np.sort(top, axis=1)


def _keys(scores: Floats, turn: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Numbers that rise as scores fall and, where they tie, as turns rise."""
    # Adding 0 makes −0 a 0: they tie.
    bits = (scores + np.float32(0)).view(np.uint32)
    falling = np.where(bits & _SIGN, bits, ~(bits | _SIGN))
    keys: NDArray[np.uint64] = (falling.astype(np.uint64) << np.uint64(32)) | turn
    return keys


def _scores(keys: NDArray[np.uint64]) -> Floats:
    """The scores in keys; that of no document is below all."""
    falling = (keys >> np.uint64(32)).astype(np.uint32)
    scores = np.where(falling & _SIGN, falling, ~(falling | _SIGN)).view(np.float32)
    return np.where(keys == _NONE, np.float32(-np.inf), scores)
