"""The running top of exact search, compiled, without the interpreter lock."""

# The compiler infers the types here; the docstrings list those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank._jit import compiled

_SIGN = np.uint32(1 << 31)
_ALL = np.uint32(0xFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)


@compiled(nogil=True)
def scan(scores, turn, k, keys, counts, least, start, stop):
    """Takes a block's ``scores`` [Q, ≥ B] float32 into the running tops of the queries from ``start`` to ``stop``.

    ``turn`` [B] int32: the position of each of the block's documents in the order of ties, from 0. ``keys``
    [Q, ≥ k + B] uint64: ``counts`` [Q] of each query's row are taken, falling score above turn; ``least`` [Q] float32:
    the score below which nothing enters any more. A score that is NaN never enters.
    """
    for query in range(start, stop):
        count, bound = counts[query], least[query]
        for place in range(len(turn)):
            score = scores[query, place]
            if score >= bound:
                # Adding 0 makes −0 a 0: they tie.
                bits = np.float32(score + np.float32(0)).view(np.uint32)
                falling = bits if bits & _SIGN else ~(bits | _SIGN) & _ALL
                keys[query, count] = (np.uint64(falling) << np.uint64(32)) | np.uint64(turn[place])
                count += 1
        if count > k:
            kept = np.partition(keys[query, :count], k - 1)[:k]
            keys[query, :k] = kept
            count = k
            least[query] = _score(np.max(kept))
        counts[query] = count


@compiled(nogil=True)
def _score(key):
    """The score in a key."""
    falling = np.uint32(key >> np.uint64(32))
    bits = falling if falling & _SIGN else ~falling & ~_SIGN & _ALL
    return np.uint32(bits).view(np.float32)


@compiled(nogil=True)
def ranked(keys, counts, k, by_turn, documents, scores):
    """Sorts the tops: fills ``documents`` [Q, k] int32 and ``scores`` [Q, k] float32 of as many as each query has.

    Returns whether each query has k, and all are documents [N]; any values of turns are memory-safe.
    """
    size = np.uint64(len(by_turn))
    for query in range(len(counts)):
        top = np.sort(keys[query, : counts[query]])[:k]
        if len(top) < k:
            return False
        for place in range(len(top)):
            at = top[place] & _LOW
            if at >= size or np.uint32(by_turn[at]) >= size:
                return False
            documents[query, place] = by_turn[at]
            scores[query, place] = _score(top[place])
    return True
