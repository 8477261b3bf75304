"""How much contextual word vectors depend on position: average term similarity (ATS) and MATS.

Hofstätter et al., ECIR 2021, "Mitigating the position bias of transformer models in passage re-ranking" [POS], §5.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenrank.io.ranges import check_ranges

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class TermSimilarity:
    """The curve ATS(Δ) for distances Δ = 0 … D.

    ``ats`` [D + 1]: the mean over terms of the mean cosine of a term's vectors in different passages, Δ positions
    apart; NaN if no term has enough pairs. ``deviation`` [D + 1]: standard deviation of all pairs' cosines at Δ;
    ``terms``, ``pairs`` [D + 1]: their numbers. ``delta_max``: the largest Δ with enough terms, −1 if none; D is at
    least that. ``common`` [delta_max + 1]: ATS over the ``common_terms`` terms with enough pairs at every Δ up to
    ``delta_max``.

    When it misleads: a falling curve shows that vectors encode position, not that scores depend on it: a ranker can
    ignore what its vectors encode. Large distances have few terms, and which terms count changes with Δ;
    ``mats_common`` keeps them fixed. Across vectors of other layers or sizes, only the sign can be compared.

    Worked example: one term is at the positions 0, 0, 1 and 2 of four passages; its vectors turn by 60° per position.
    Pairs at Δ = 0: cosine 1; at Δ = 1: 1/2 (three pairs); at Δ = 2: −1/2 (two pairs). MATS = (1/2 + 3/2) / (2 − 1) = 2.

    >>> import numpy as np
    >>> from evenrank.position.term_similarity import term_similarity
    >>> places = np.array([0, 0, 1, 2])
    >>> angle = np.pi / 3 * places
    >>> vectors = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    >>> found = term_similarity(vectors, np.zeros(4, np.int64), places, np.arange(4), min_pairs=1, min_terms=1)
    >>> found.ats.round(4).tolist(), round(found.mats, 4)
    ([1.0, 0.5, -0.5], 2.0)
    """

    ats: Floats
    deviation: Floats
    terms: Ints
    pairs: Ints
    delta_max: int
    common: Floats
    common_terms: int

    @property
    def mats(self) -> float:
        """MATS = 1/(Δmax − 1) Σ_{i=1}^{Δmax} (ATS(0) − ATS(i)), as printed; NaN if Δmax < 2."""
        return _mats(self.ats[: self.delta_max + 1])

    @property
    def mats_deviation(self) -> float:
        """The standard deviation over i = 1 … Δmax of ATS(0) − ATS(i) (n − 1); NaN if Δmax < 2."""
        falls = _falls(self.ats[: self.delta_max + 1])
        return float(falls.std(ddof=1)) if len(falls) > 1 else float("nan")

    @property
    def mats_common(self) -> float:
        """MATS over the terms that count at every Δ, so that the choice of terms cannot bend the curve."""
        return _mats(self.common) if self.common_terms else float("nan")

    def to_dict(self) -> dict[str, object]:
        """As JSON values; NaN as None."""

        def plain(values: Floats) -> list[float | None]:
            return [None if np.isnan(value) else float(value) for value in values]

        found = {"mats": self.mats, "mats_deviation": self.mats_deviation, "mats_common": self.mats_common}
        return {
            **{name: None if np.isnan(value) else value for name, value in found.items()},
            "delta_max": self.delta_max,
            "ats": plain(self.ats),
            "deviation": plain(self.deviation),
            "terms": self.terms.tolist(),
            "pairs": self.pairs.tolist(),
            "common": plain(self.common),
            "common_terms": self.common_terms,
        }


def _falls(ats: Floats) -> Floats:
    """ATS(0) − ATS(i) for i = 1 …, those that are defined."""
    if len(ats) < 3:
        return np.empty(0)
    falls: Floats = ats[0] - ats[1:]
    return falls[~np.isnan(falls)]


def _mats(ats: Floats) -> float:
    falls = _falls(ats)
    return float(falls.sum() / (len(ats) - 2)) if len(falls) else float("nan")


# parameters: four arrays of one row per word, and the settings of `evenrank position similarity`
def term_similarity(
    vectors: NDArray[np.float32],
    terms: Ints,
    places: Ints,
    passages: Ints,
    *,
    min_pairs: int = 5,
    min_terms: int = 100,
    cap: int = 1000,
    seed: int = 0,
    advance: Callable[[int], None] = lambda _: None,
) -> TermSimilarity:
    """ATS and MATS of the words of passages [POS §5].

    ``vectors`` [N, d]: each word's contextual vector; ``terms``, ``places``, ``passages`` [N]: its term id (rows with
    −1 are ignored), its position (in words) and its passage. A pair is two occurrences of one term in different
    passages; T(Δ), the terms that count at Δ, have at least ``min_pairs`` pairs there; Δmax is the largest Δ with at
    least ``min_terms`` of them. Of terms with more than ``cap`` occurrences a seeded sample of that size is compared,
    which limits the pairs per term to cap²/2. ``advance`` is called with the number of terms finished. Raises
    EvenrankError for a setting out of range.
    """
    check_ranges(min_pairs=min_pairs, min_terms=min_terms, cap=cap, seed=seed)
    rng = np.random.default_rng(seed)
    order = np.argsort(terms, kind="stable")
    order = order[np.searchsorted(terms[order], 0) :]
    edges = np.flatnonzero(np.diff(terms[order], prepend=-1, append=-1))
    sums = _Sums(int(places.max()) + 1 if len(places) else 1)
    for start, end in itertools.pairwise(edges):
        rows = order[start:end]
        advance(1)
        if len(rows) < 2:
            continue
        if len(rows) > cap:
            rows = rows[np.sort(rng.choice(len(rows), cap, replace=False))]
        sums.add(*_cosine_sums(vectors[rows], places[rows], passages[rows], sums.width), min_pairs)
    return sums.curve(min_terms)


class _Sums:
    """Sums over terms by distance, each [width]."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.cosines, self.squares, self.means = np.zeros(width), np.zeros(width), np.zeros(width)
        self.pairs, self.terms = np.zeros(width, np.int64), np.zeros(width, np.int64)
        self.term_means: list[NDArray[np.float32]] = []
        self.term_counts_at: list[NDArray[np.bool_]] = []

    def add(self, pairs: Ints, cosines: Floats, squares: Floats, min_pairs: int) -> None:
        """Adds a term: its pairs and the sums of their cosines and squared cosines by distance [width]."""
        counts = pairs >= min_pairs
        if not counts.any():
            return
        self.pairs += np.where(counts, pairs, 0)
        self.cosines += np.where(counts, cosines, 0)
        self.squares += np.where(counts, squares, 0)
        means = np.divide(cosines, pairs, out=np.zeros(self.width), where=counts)
        self.means += means
        self.terms += counts
        self.term_means.append(means.astype(np.float32))
        self.term_counts_at.append(counts)

    def curve(self, min_terms: int) -> TermSimilarity:
        """The curve over all terms added."""
        ats = _divided(self.means, self.terms)
        variance = _divided(self.squares, self.pairs) - _divided(self.cosines, self.pairs) ** 2
        deviation = np.sqrt(np.clip(variance, 0, None))
        enough = np.flatnonzero(self.terms >= min_terms)
        delta_max = int(enough[-1]) if len(enough) else -1
        last = int(np.flatnonzero(self.terms)[-1]) + 1 if self.terms.any() else 1
        common, common_terms = self._common(delta_max)
        return TermSimilarity(
            ats[:last], deviation[:last], self.terms[:last], self.pairs[:last], delta_max, common, common_terms
        )

    def _common(self, delta_max: int) -> tuple[Floats, int]:
        """ATS [delta_max + 1] over the terms that count at every distance up to ``delta_max``, and their number."""
        size = delta_max + 1
        always = np.array([bool(size) and bool(counts[:size].all()) for counts in self.term_counts_at], np.bool_)
        if not always.any():
            return np.full(size, np.nan), 0
        chosen = [self.term_means[term][:size] for term in np.flatnonzero(always)]
        return np.stack(chosen).mean(axis=0, dtype=np.float64), len(chosen)


def _divided(sums: Floats, counts: Ints) -> Floats:
    """``sums`` / ``counts``, NaN for a count of 0."""
    means: Floats = np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0)
    return means


def _cosine_sums(vectors: NDArray[np.float32], places: Ints, passages: Ints, width: int) -> tuple[Ints, Floats, Floats]:
    """Pairs of different passages, and sums of their cosines and squared cosines, by distance [width]."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = vectors / np.where(length > 0, length, 1)
    cosines = (units @ units.T).astype(np.float64)
    first, second = np.triu_indices(len(units), 1)
    apart = passages[first] != passages[second]
    first, second = first[apart], second[apart]
    distance = np.abs(places[first] - places[second])
    values = cosines[first, second]
    return (
        np.bincount(distance, minlength=width).astype(np.int64),
        np.bincount(distance, weights=values, minlength=width).astype(np.float64),
        np.bincount(distance, weights=values**2, minlength=width).astype(np.float64),
    )
