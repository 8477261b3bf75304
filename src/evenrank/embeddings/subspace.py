"""The bias subspace of word vectors [Bolukbasi et al. 2016, section 5, step 1]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.io import EvenrankError

from ._rows import Doubles, first_words, one_blas_thread, row_numbers, unit_rows, words_of
from .vectors import Vectors
from .word_sets import Sets

FEW = 3
"""A subspace of fewer definitional sets gets a warning."""


@dataclass(frozen=True, slots=True, eq=False)
class Subspace:
    """A bias subspace: ``basis`` [k, D] float64, orthonormal, and ``explained`` [k], the share of the variance within
    the definitional sets that each component explains. ``missing``: words of the sets without a vector; ``requested``:
    the number of components requested. ``sets``: the number of definitional sets used, and of those given.

    The first component points from the later words of a set to its first.
    """

    basis: Doubles
    explained: Doubles
    missing: tuple[str, ...]
    requested: int = 1
    sets: tuple[int, int] = (0, 0)

    def warning(self) -> str | None:
        """A sentence if fewer than three definitional sets were used: one alone explains all of its variance."""
        used, given = self.sets
        if not 0 < used < FEW:
            return None
        rests = "rests on one definitional set" if used == 1 else f"rests on {used} definitional sets"
        rest = " (the others lack vectors)" if used < given else ""
        return f"Warning: the bias subspace {rests} of {given}{rest} and may not be that of the groups."


def bias_subspace(vectors: Vectors, definitional: Sets, components: int = 1) -> Subspace:
    """The first ``components`` principal components of the definitional sets, each centred on its own mean.

    The first rows of the SVD of C = Σᵢ Σ_{w ∈ Dᵢ} (w − μᵢ)ᵀ(w − μᵢ) / |Dᵢ| over unit vectors (Bolukbasi et al. 2016,
    section 5, step 1). Sets can have any size; sets with fewer than two words with a vector are left out. If the sets
    span fewer dimensions, there are fewer components.

    Raises EvenrankError if no set is left, if the words of every set have the same vector, and if ``components`` is not
    from 1 to D − 1.
    """
    if not 1 <= components < vectors.dimensions:
        raise EvenrankError(
            f"`components`: expected 1 to {vectors.dimensions - 1} (vectors of {vectors.dimensions} dimensions), "
            f"found {components}"
        )
    row_of = row_numbers(vectors.words, (word for of in definitional for word in of))
    centred, towards_first = [], np.zeros(vectors.dimensions)
    for of in definitional:
        known = [row_of[word] for word in of if word in row_of]
        if len(known) < 2:
            continue
        rows = unit_rows(vectors.matrix[known])
        rows = rows - rows.mean(axis=0)
        centred.append(rows / np.sqrt(len(known)))
        towards_first += rows[0] if of[0] in row_of else 0
    if not centred:
        raise EvenrankError(
            f"definitional sets: none has two words with a vector ({first_words(words_of(definitional))})"
        )
    with one_blas_thread():
        _, values, basis = np.linalg.svd(np.concatenate(centred), full_matrices=False)
    if values[0] < 1e-6:
        raise EvenrankError("definitional sets: the words of each set have the same vector")
    rank = int((values > 1e-6 * values[0]).sum())
    basis = basis[: min(components, rank)]
    # The sign of a component is arbitrary: fixed here, so that it is the same on every machine.
    sign = np.sign(basis @ towards_first)
    basis = basis * np.where(sign == 0, 1, sign)[:, None]
    explained = (values**2 / (values**2).sum())[: len(basis)]
    missing = tuple(word for word in words_of(definitional) if word not in row_of)
    sets = len(centred), len(definitional)
    return Subspace(np.ascontiguousarray(basis), explained, missing, components, sets)
