"""The search loop of the first stage, compiled, without the interpreter lock."""

# The compiler infers the types here; those of the arguments stand in the docstrings.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank.io.jit import compiled

# The sixteen upper bits of a positive float32: so many buckets, in the order of the numbers.
_BUCKETS = 1 << 15
# A word that weighs less changes no score.
NO_WEIGHT = np.float32(1e-20)
# −0, which no sum of absolute values can be: it marks a document that was not met. 0 would not do: scores underflow.
_NOT_MET = np.float32(-0.0)
_NOT_MET_BITS = np.uint32(1 << 31)


@compiled(nogil=True)
def first(data, indices, indptr, turn, by_turn, terms, weights, starts, k, documents, scores):
    """The first ``k`` documents of each query by falling score Σ weight · data, equal ones by rising ``turn``.

    Postings by term: ``data`` [P] float32 from 0, ``indices`` [P] int32 (documents), ``indptr`` [T + 1]. ``turn`` [N]:
    each document's place among all, from 0, and ``by_turn`` [N] the document at each. Queries: ``terms`` [·] and
    ``weights`` [·] float32, those of query q from ``starts``[q] to ``starts``[q + 1]. Fills ``documents`` [Q, k] int32
    and ``scores`` [Q, k] float32, and gives how many each query has [Q] int64: documents without one of its terms are
    none. Whatever numbers ``data`` and ``weights`` hold, every write stays within its array.
    """
    total = np.full(len(turn), _NOT_MET, np.float32)
    bits = total.view(np.uint32)
    seen = np.empty(len(turn), np.int32)
    bucket = np.empty(_BUCKETS, np.int64)
    found = np.zeros(len(starts) - 1, np.int64)
    for query in range(len(starts) - 1):
        count = 0
        for place in range(starts[query], starts[query + 1]):
            term, weight = terms[place], weights[place]
            if weight < NO_WEIGHT:
                continue
            for posting in range(indptr[term], indptr[term + 1]):
                document = indices[posting]
                if bits[document] == _NOT_MET_BITS:
                    seen[count] = document
                    count += 1
                # Without its sign, which also keeps the upper bits within the buckets.
                total[document] += abs(weight * data[posting])
        # The bucket that the k-th score lies in: only what is not below it needs sorting.
        least = 0
        if count > k:
            bucket[:] = 0
            for i in range(count):
                bucket[bits[seen[i]] >> 16] += 1
            least, above = _BUCKETS - 1, bucket[_BUCKETS - 1]
            while above < k:
                least -= 1
                above += bucket[least]
        keys = np.empty(count, np.uint64)
        kept = 0
        for i in range(count):
            document = seen[i]
            if bits[document] >> 16 >= least:
                falling = np.uint64(0xFFFFFFFF) - np.uint64(bits[document])
                keys[kept] = (falling << np.uint64(32)) | np.uint64(turn[document])
                kept += 1
        keys = np.sort(keys[:kept])[:k]
        found[query] = len(keys)
        for i in range(len(keys)):
            document = by_turn[keys[i] & np.uint64(0xFFFFFFFF)]
            documents[query, i] = document
            scores[query, i] = total[document]
        for i in range(count):
            total[seen[i]] = _NOT_MET
    return found
