"""Words that keep their group: given, and learned from the given ones."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from evenrank.io import EvenrankError, MissingExtraError
from evenrank.io.ranges import check_ranges, seed_32

from ._rows import Flags, unit_rows
from .vectors import Vectors
from .word_sets import WordSets

_BLOCK = 4096


def specific_words(words: Sequence[str], specific: Collection[str]) -> Flags:
    """Flags [V] of the ``words`` that are in ``specific``, ignoring case."""
    lower = frozenset(word.lower() for word in specific)
    return np.fromiter((word.lower() in lower for word in words), np.bool_, len(words))


def learn_specific(
    vectors: Vectors, seed_words: Collection[str], *, first: int = 50_000, seed: int = 0
) -> tuple[str, ...]:
    """Learns gender-specific words from a few, with a linear SVM on unit vectors (Bolukbasi et al. 2016, section 5).

    The SVM is trained on the ``first`` words (usually the most frequent), ``seed_words`` and their case variants
    against the others, and on the later seed words. Returns the seed words and those that the SVM classifies as
    specific, in the order of ``vectors``.

    Raises EvenrankError if fewer than two words are seeds, or all are; MissingExtraError without scikit-learn.
    """
    try:
        from sklearn.svm import LinearSVC
    except ModuleNotFoundError:
        raise MissingExtraError("learning gender-specific words", "embeddings") from None

    check_ranges(first=first, seed=seed)
    given = specific_words(vectors.words, seed_words)
    exact = frozenset(seed_words)
    later = [row for row in np.flatnonzero(given[first:]) + first if vectors.words[row] in exact]
    rows = np.concatenate([np.arange(min(first, len(given))), np.array(later, dtype=np.int64)])
    is_seed = given[rows]
    if not 2 <= is_seed.sum() < len(is_seed):
        raise EvenrankError(
            f"learning specific words: expected 2 seed words or more among the vectors and other words, found "
            f"{int(is_seed.sum())} of {len(is_seed)}"
        )
    svm = LinearSVC(C=1.0, tol=1e-4, random_state=seed_32(seed), max_iter=10_000).fit(
        unit_rows(vectors.matrix[rows]), is_seed
    )
    specific = given.copy()
    for start in range(0, len(given), _BLOCK):
        part = slice(start, start + _BLOCK)
        specific[part] |= svm.decision_function(unit_rows(vectors.matrix[part])) > 0
    return tuple(vectors.words[row] for row in np.flatnonzero(specific))


@dataclass(frozen=True, slots=True)
class SpecificWords:
    """Words that keep their group: those ``given``, and those ``learned`` from them (None: none were to be learned)."""

    given: tuple[str, ...]
    learned: tuple[str, ...] | None = None

    @property
    def all(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.given, *(self.learned or ()))

    def message(self) -> str | None:
        """The number of words learned, in a sentence; None if none were to be learned."""
        if self.learned is None:
            return None
        given = {word.lower() for word in self.given}
        new = sum(word.lower() not in given for word in self.learned)
        few = "" if new > len(given) / 100 else " (the vectors have hardly any such words other than those given)"
        return f"{new} more words learned as specific from {len(self.learned) - new}{few}"


def choose_specific(vectors: Vectors, sets: WordSets, *, learn: bool, seed: int) -> SpecificWords:
    """The specific words of ``sets``; with ``learn``, also those learned from them (:func:`learn_specific`)."""
    return SpecificWords(sets.specific, learn_specific(vectors, sets.specific, seed=seed) if learn else None)
