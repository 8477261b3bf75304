"""The level that ATS has to be read against: how similar the vectors of different terms are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenrank.io.ranges import check_ranges

from .term_similarity import Floats, Ints

PAIRS = 200_000


def different_terms(
    vectors: NDArray[np.float32], terms: Ints, places: Ints, passages: Ints, *, pairs: int = PAIRS, seed: int = 0
) -> Floats:
    """[D + 1] the mean cosine of the vectors of different terms in different passages by distance Δ; NaN without pairs.

    The arrays are those of :func:`evenrank.position.term_similarity.term_similarity`; a seeded sample of at most
    ``pairs`` pairs is compared. Near 1 the transformer has collapsed: every word has the same vector, and a small MATS
    says nothing.

    >>> import numpy as np
    >>> from evenrank.position.different_terms import different_terms
    >>> vectors = np.array([[1, 0], [0, 1]], np.float32)
    >>> different_terms(vectors, np.arange(2), np.arange(2), np.arange(2)).round(4).tolist()
    [nan, 0.0]
    """
    check_ranges(seed=seed)
    known = np.flatnonzero(terms >= 0)
    width = int(places.max()) + 1 if len(places) else 1
    if len(known) < 2:
        return np.full(width, np.nan)
    rng = np.random.default_rng(seed)
    first, second = known[rng.integers(len(known), size=(2, pairs))]
    apart = (terms[first] != terms[second]) & (passages[first] != passages[second])
    first, second = first[apart], second[apart]
    sums, counts = np.zeros(width), np.zeros(width, np.int64)
    for start in range(0, len(first), 1 << 14):
        a, b = first[start : start + (1 << 14)], second[start : start + (1 << 14)]
        one, other = vectors[a].astype(np.float64), vectors[b].astype(np.float64)
        length = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
        cosines = (one * other).sum(1) / np.where(length > 0, length, 1)
        distance = np.abs(places[a] - places[b])
        sums += np.bincount(distance, weights=cosines, minlength=width)
        counts += np.bincount(distance, minlength=width)
    found: Floats = np.divide(sums, counts, out=np.full(width, np.nan), where=counts > 0)
    last = int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 1
    return found[:last]
