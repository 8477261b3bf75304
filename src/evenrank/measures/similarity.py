"""How much of a word's contextual vector is its place: average term similarity (ATS) and MATS.

Hofstätter et al., ECIR 2021, "Mitigating the position bias of transformer models in passage re-ranking" [POS], §5.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenrank.io.ranges import check_ranges

Floats = np.ndarray[Any, np.dtype[np.float64]]
Ints = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Similarity:
    """The curve ATS(Δ) for Δ = 0 … D.

    ``ats`` [D + 1]: the mean over terms of the mean cosine of a term's vectors in different passages, Δ places apart;
    NaN where no term has enough pairs. ``deviation`` [D + 1]: of all pairs' cosines at Δ; ``terms``, ``pairs`` [D + 1]:
    how many. ``delta_max``: the largest Δ with enough terms, −1 where there is none; D is at least that. ``common``
    [delta_max + 1]: ATS over the terms that have enough pairs at every Δ up to ``delta_max``, ``common_terms`` of them.

    When it misleads: a falling curve says that vectors carry their place, not that the scores do: a ranker can ignore
    what its vectors carry. Far distances have few terms, and which terms count changes with Δ; ``mats_common`` holds
    them fixed. Values of rankers with vectors of other layers or sizes can be compared in sign only.

    Worked example: one term stands at the places 0, 0, 1 and 2 of four passages; its vectors turn by 60° a place. Pairs
    at Δ = 0: cosine 1; at Δ = 1: 1/2 (three pairs); at Δ = 2: −1/2 (two pairs). MATS = (1/2 + 3/2) / (2 − 1) = 2.

    >>> import numpy as np
    >>> from evenrank.measures.similarity import term_similarity
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
        """MATS = 1/(Δmax − 1) Σ_{i=1}^{Δmax} (ATS(0) − ATS(i)), as printed; NaN where Δmax < 2."""
        return _mats(self.ats[: self.delta_max + 1])

    @property
    def mats_deviation(self) -> float:
        """The standard deviation over i = 1 … Δmax of ATS(0) − ATS(i) (n − 1); NaN where Δmax < 2."""
        falls = _falls(self.ats[: self.delta_max + 1])
        return float(falls.std(ddof=1)) if len(falls) > 1 else float("nan")

    @property
    def mats_common(self) -> float:
        """MATS over the terms that are there at every Δ; terms that come and go with Δ bend the curve by themselves."""
        return _mats(self.common) if self.common_terms else float("nan")

    def to_dict(self) -> dict[str, Any]:
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


def term_similarity(
    vectors: np.ndarray[Any, np.dtype[np.float32]],
    terms: Ints,
    places: Ints,
    passages: Ints,
    *,
    min_pairs: int = 5,
    min_terms: int = 100,
    cap: int = 1000,
    seed: int = 0,
    advance: Callable[[int], None] = lambda _: None,
) -> Similarity:
    """ATS and MATS of words in passages [POS §5].

    ``vectors`` [N, d]: each word's contextual vector; ``terms``, ``places``, ``passages`` [N]: which word it is (−1:
    none, the row is left out), at which place (in words) of which passage. A pair is two places of one term in
    different passages; T(Δ), the terms that count at Δ, have at least ``min_pairs`` pairs there; Δmax is the largest Δ
    with ``min_terms`` of them. Of a term that stands in more than ``cap`` places a seeded sample of so many is
    compared, which bounds the pairs of a term by cap²/2. ``advance`` is called with each number of terms done. Raises
    EvenrankError for a setting out of range.
    """
    check_ranges(min_pairs=min_pairs, min_terms=min_terms, cap=cap, seed=seed)
    rng = np.random.default_rng(seed)
    order = np.argsort(terms, kind="stable")
    order = order[np.searchsorted(terms[order], 0) :]
    edges = np.flatnonzero(np.diff(terms[order], prepend=-1, append=-1))
    width = int(places.max()) + 1 if len(places) else 1
    total, squares = np.zeros(width), np.zeros(width)
    pairs, count = np.zeros(width, np.int64), np.zeros(width, np.int64)
    mean_sum = np.zeros(width)
    kept_means, kept_there = [], []
    for start, end in itertools.pairwise(edges):
        rows = order[start:end]
        advance(1)
        if len(rows) < 2:
            continue
        if len(rows) > cap:
            rows = rows[np.sort(rng.choice(len(rows), cap, replace=False))]
        found, sums, square = _of_term(vectors[rows], places[rows], passages[rows], width)
        there = found >= min_pairs
        if not there.any():
            continue
        pairs += np.where(there, found, 0)
        total += np.where(there, sums, 0)
        squares += np.where(there, square, 0)
        means = np.divide(sums, found, out=np.zeros(width), where=there)
        mean_sum += means
        count += there
        kept_means.append(means.astype(np.float32))
        kept_there.append(there)
    ats = np.divide(mean_sum, count, out=np.full(width, np.nan), where=count > 0)
    mean = np.divide(total, pairs, out=np.full(width, np.nan), where=pairs > 0)
    spread = np.divide(squares, pairs, out=np.full(width, np.nan), where=pairs > 0) - mean**2
    enough = np.flatnonzero(count >= min_terms)
    delta_max = int(enough[-1]) if len(enough) else -1
    last = int(np.flatnonzero(count)[-1]) + 1 if count.any() else 1
    common: Floats = np.full(delta_max + 1, np.nan)
    everywhere = 0
    if delta_max >= 0:
        always = np.array([there[: delta_max + 1].all() for there in kept_there])
        everywhere = int(always.sum())
        if everywhere:
            chosen = [kept_means[i][: delta_max + 1] for i in np.flatnonzero(always)]
            common = np.stack(chosen).mean(axis=0, dtype=np.float64)
    deviation = np.sqrt(np.clip(spread, 0, None))
    return Similarity(ats[:last], deviation[:last], count[:last], pairs[:last], delta_max, common, everywhere)


def _of_term(
    vectors: np.ndarray[Any, np.dtype[np.float32]], places: Ints, passages: Ints, width: int
) -> tuple[Ints, Floats, Floats]:
    """Pairs, sum and sum of squares of cosines [width] by distance, over the pairs of different passages."""
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
