"""The compiled loop of a search of postings."""

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
        keys, length = np.empty(count, np.uint64), 0
        for i in range(count):
            document = seen[i]
            if bits[document] >> 16 >= least:
                falling = np.uint64(0xFFFFFFFF) - np.uint64(bits[document])
                keys[length] = (falling << np.uint64(32)) | np.uint64(turn[document])
                length += 1
        keys = np.sort(keys[:length])[:k]
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
