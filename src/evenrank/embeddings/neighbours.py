"""Nearest words and analogies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.io.types import Array

from ._rows import Doubles, Integers, row_numbers, unit_rows
from .vectors import Vectors

_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True)
class Analogy:
    """a is to b as c is to …: ``free`` is the nearest word, ``constrained`` the nearest other than a, b and c.

    ``robust``: whether the constrained search for the reverse analogy (b is to a as the answer is to …) returns c.
    All are None if a word has no vector.
    """

    a: str
    b: str
    c: str
    free: str | None
    constrained: str | None
    robust: bool | None


def cosines(vectors: Vectors, point: Array) -> Doubles:
    """The cosine [V] of every word with a ``point`` [D]; 0 for a zero vector."""
    direction = unit_rows(point[None])[0]
    found = np.empty(len(vectors.words))
    for start in range(0, len(found), _BLOCK):
        block = vectors.matrix[start : start + _BLOCK]
        length = np.sqrt(np.einsum("ij,ij->i", block, block))
        found[start : start + _BLOCK] = block @ direction.astype(np.float32) / np.where(length > 0, length, 1)
    return found


def nearest(vectors: Vectors, word: str, count: int = 10) -> tuple[tuple[str, float], ...] | None:
    """The ``count`` nearest other words with their cosines; None if the word has no vector."""
    row = row_numbers(vectors.words, [word]).get(word)
    if row is None:
        return None
    cosine = cosines(vectors, vectors.matrix[row])
    cosine[row] = -np.inf
    return tuple((vectors.words[i], float(cosine[i])) for i in _largest(cosine, min(count, len(cosine) - 1)))


def _largest(values: Doubles, count: int) -> Integers:
    """The indexes of the ``count`` largest values, in descending order; ties in their original order."""
    if count < 1:
        return np.empty(0, np.int64)
    bound = np.partition(values, -count)[-count]
    among = np.flatnonzero(values >= bound)
    return among[np.argsort(-values[among], kind="stable")][:count]


def analogy(vectors: Vectors, a: str, b: str, c: str) -> Analogy:
    """a : b :: c : ?, by 3CosAdd (Mikolov et al. 2013): the word nearest to b − a + c by cosine, of unit vectors.

    ``constrained`` excludes a, b and c, as is usual; ``free`` does not: it is often b or c itself, and the usual answer
    then means little (Nissim et al. 2020).
    """
    row_of = row_numbers(vectors.words, (a, b, c))
    if any(word not in row_of for word in (a, b, c)):
        return Analogy(a, b, c, None, None, None)

    def answers(a: int, b: int, c: int) -> tuple[int, int]:
        u = unit_rows(vectors.matrix[[a, b, c]])
        cosine = cosines(vectors, u[1] - u[0] + u[2])
        free = int(_largest(cosine, 1)[0])
        cosine[[a, b, c]] = -np.inf
        return free, int(_largest(cosine, 1)[0])

    first, second, third = row_of[a], row_of[b], row_of[c]
    if len(vectors.words) <= len({first, second, third}):
        return Analogy(a, b, c, None, None, None)
    free, found = answers(first, second, third)
    back = answers(second, first, found)[1]
    return Analogy(a, b, c, vectors.words[free], vectors.words[found], back == third)
