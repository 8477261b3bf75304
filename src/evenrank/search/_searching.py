"""The compiled loops of the first stages: postings scored and searched, and the running top of exact search."""

from __future__ import annotations

import numpy as np

from evenrank.files.compiled import compiled

# The compiler infers the types here; the docstring lists those of the arguments.
# mypy: ignore-errors


# One bucket for each value of the upper sixteen bits of a positive float32, in the order of the numbers.
_BUCKETS = 1 << 15
# A word that weighs less changes no score.
NO_WEIGHT = np.float32(1e-20)
# Marks a document without a term of the query: no sum of absolute values is −0, but it can underflow to 0.
UNSEEN = np.float32(-0.0)
_UNSEEN_BITS = np.uint32(1 << 31)


@compiled(nogil=True)
def search(data, indices, indptr, turn, by_turn, terms, weights, starts, k, documents, scores, total, seen):
    """The first ``k`` documents of each query by falling score Σ weight · data, ties by rising ``turn``.

    Postings by term: ``data`` [P] float32 from 0, ``indices`` [P] int32 (documents), ``indptr`` [T + 1]. ``turn`` [N]:
    the position of each document in the order of ties, from 0; ``by_turn`` [N]: the document at each position. Queries:
    ``terms`` [·] and ``weights`` [·] float32, those of query q from ``starts``[q] to ``starts``[q + 1]. Fills
    ``documents`` [Q, k] int32 and ``scores`` [Q, k] float32, and returns the number of results of each query [Q] int64:
    −1 from a query on that leads to a document outside the index; a document without a term of the query is no result.
    ``total`` [N] float32, all UNSEEN, and ``seen`` [N] int32: room to work in, left so. Any values are memory-safe, but
    those of ``indptr`` and ``terms``.
    """
    bits, size = total.view(np.uint32), np.uint32(len(turn))
    bucket = np.empty(_BUCKETS, np.int64)
    results = np.zeros(len(starts) - 1, np.int64)
    for query in range(len(starts) - 1):
        count = 0
        for place in range(starts[query], starts[query + 1]):
            term, weight = terms[place], weights[place]
            if weight < NO_WEIGHT:
                continue
            for posting in range(indptr[term], indptr[term + 1]):
                document = indices[posting]
                if np.uint32(document) >= size:
                    results[query:] = -1
                    return results
                if bits[document] == _UNSEEN_BITS:
                    seen[count] = document
                    count += 1
                # Without a sign, so that the upper bits stay within the buckets.
                total[document] += abs(weight * data[posting])
        # Only scores from the bucket of the k-th score on need sorting.
        least = 0
        if count > k:
            bucket[:] = 0
            for i in range(count):
                bucket[bits[seen[i]] >> 16] += 1
            least, above = _BUCKETS - 1, bucket[_BUCKETS - 1]
            while above < k:
                least -= 1
                above += bucket[least]
        keys, kept = np.empty(count, np.uint64), 0
        for i in range(count):
            document = seen[i]
            if bits[document] >> 16 >= least:
                falling = np.uint64(0xFFFFFFFF) - np.uint64(bits[document])
                keys[kept] = (falling << np.uint64(32)) | np.uint64(turn[document])
                kept += 1
        keys = np.sort(keys[:kept])[:k]
        results[query] = len(keys)
        for i in range(len(keys)):
            at = np.uint32(keys[i] & np.uint64(0xFFFFFFFF))
            if at >= size or np.uint32(by_turn[at]) >= size:
                results[query:] = -1
                return results
            document = by_turn[at]
            documents[query, i] = document
            scores[query, i] = total[document]
        for i in range(count):
            total[seen[i]] = UNSEEN
    return results


# The compiler infers the types here; the docstrings list those of the arguments.
# mypy: ignore-errors


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


# The compiler infers the types here; the docstring lists those of the arguments.
# mypy: ignore-errors


@compiled(nogil=True)
def scatter(terms, ends, documents, values, free, base, data, indices):
    """Puts the postings of a batch where they belong among those of all batches.

    ``terms`` [U], with postings up to ``ends`` [U] in ``documents`` and ``values`` [P]. ``free`` [T]: the next place of
    each term, which moves on, less ``base`` a place in ``data`` and ``indices``.
    """
    start = 0
    for i in range(len(terms)):
        term = terms[i]
        place = free[term] - base
        for j in range(start, ends[i]):
            data[place] = values[j]
            indices[place] = documents[j]
            place += 1
        free[term] = place + base
        start = ends[i]


@compiled(nogil=True)
def weigh(data, indices, starts, idf, norm):
    """Makes BM25's scores of term frequencies, in place: ``data`` [P] float32 of the documents ``indices`` [P].

    Those of term t from ``starts``[t] − ``starts``[0] on. ``idf`` [T], ``norm`` [N]: float64, in which it computes.
    """
    for term in range(len(idf)):
        for place in range(starts[term] - starts[0], starts[term + 1] - starts[0]):
            tf = data[place]
            data[place] = idf[term] * tf / (tf + norm[indices[place]])
