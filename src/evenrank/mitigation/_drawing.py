"""The draw of negatives: one pass over a table of candidates, compiled, without the interpreter lock."""

# The compiler infers the types here; the docstrings describe those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank.files.compiled import compiled
from evenrank.files.compiled_bytes import OFFSET, hashed, mixed
from evenrank.files.hashing import GOLDEN

_STEP = np.uint64(GOLDEN)


@compiled(inline="always")
def _hash(data, start, end):
    return mixed(hashed(data, start, end, OFFSET))


@compiled(nogil=True)
def random_keys(data, offsets, query_data, query_offsets, starts, seed):
    """A random key [M] (uint64) for each candidate, from the seed, its query's id and its own id alone.

    With h(id) = mix(FNV-1a of the id's bytes): mix(mix(mix(seed + 0x9E3779B97F4A7C15) ^ h(query)) ^ h(document)),
    where mix is the finalizer of SplitMix64. Query q has the candidates ``starts[q]`` to ``starts[q + 1]``.
    """
    keys = np.empty(len(offsets) - 1, dtype=np.uint64)
    start = mixed(seed + _STEP)
    for query in range(len(starts) - 1):
        of_query = mixed(start ^ _hash(query_data, query_offsets[query], query_offsets[query + 1]))
        for row in range(starts[query], starts[query + 1]):
            keys[row] = mixed(of_query ^ _hash(data, offsets[row], offsets[row + 1]))
    return keys


@compiled(nogil=True)
def draw(starts, beta, keys, n, quota, gendered_only):
    """The rows drawn [T], query by query, and which of them are in the biased part [T].

    The biased part: up to ``quota`` rows of largest ``beta`` [M], ties by position; with ``gendered_only`` only those
    above 0, never a NaN. Then, up to ``n`` in all, the other rows of smallest ``keys`` [M].
    """
    total = 0
    for query in range(len(starts) - 1):
        total += min(n, starts[query + 1] - starts[query])
    rows = np.empty(total, dtype=np.int64)
    biased = np.zeros(total, dtype=np.bool_)
    taken = np.zeros(len(beta), dtype=np.bool_)
    first = 0
    for query in range(len(starts) - 1):
        start, end = starts[query], starts[query + 1]
        wanted = min(n, end - start)
        limit = min(quota, wanted)
        chosen = 0
        if limit > 0:
            for row in range(start, end):
                value = beta[row]
                if np.isnan(value) or (gendered_only and not value > 0):
                    continue
                # The rows so far, by decreasing β: a later row passes only those of smaller β.
                if chosen < limit:
                    place = first + chosen
                    chosen += 1
                elif value > beta[rows[first + limit - 1]]:
                    place = first + limit - 1
                else:
                    continue
                while place > first and value > beta[rows[place - 1]]:
                    rows[place] = rows[place - 1]
                    place -= 1
                rows[place] = row
            for place in range(first, first + chosen):
                biased[place] = True
                taken[rows[place]] = True
        first += chosen
        limit = wanted - chosen
        chosen = 0
        if limit > 0:
            for row in range(start, end):
                if taken[row]:
                    continue
                key = keys[row]
                if chosen < limit:
                    place = first + chosen
                    chosen += 1
                elif key < keys[rows[first + limit - 1]]:
                    place = first + limit - 1
                else:
                    continue
                while place > first and key < keys[rows[place - 1]]:
                    rows[place] = rows[place - 1]
                    place -= 1
                rows[place] = row
        first += chosen
    return rows, biased


@compiled(nogil=True)
def totals(starts, beta):
    """Of each query's candidates: how many have a ``beta`` [M] above 0, how many a known one, and its sum [Q]."""
    size = len(starts) - 1
    gendered, known = np.zeros(size, dtype=np.int64), np.zeros(size, dtype=np.int64)
    total = np.zeros(size, dtype=np.float64)
    for query in range(size):
        for row in range(starts[query], starts[query + 1]):
            if not np.isnan(beta[row]):
                known[query] += 1
                total[query] += beta[row]
                gendered[query] += beta[row] > 0
    return gendered, known, total
