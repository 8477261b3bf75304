"""The bias of word vectors: direct bias, association tests, recovery of the groups, neighbours and analogies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

import numpy as np

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.io.ranges import check_ranges
from evenrank.io.types import Array

from ._rows import Doubles, Flags, Integers, row_numbers, unit_rows
from .associations import Association, association
from .neighbours import Analogy, analogy, nearest
from .recovery import Recovery, recovery
from .specific import specific_words
from .subspace import Subspace, bias_subspace
from .vectors import Vectors
from .word_sets import WordSets, gender_en

_BLOCK = 1 << 15
_LEAST = 5
"""Words of each side without which recovery is not measured."""


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """Settings of :func:`evaluate_bias`.

    ``count``: most biased words of each side, among the ``first`` words (:func:`most_biased`); ``train``, ``splits``:
    see :func:`evenrank.embeddings.recovery.recovery`; ``permutations``: see
    :func:`evenrank.embeddings.associations.association`; ``seed``: of all that is random. Raises EvenrankError for a
    value out of range.
    """

    count: int = 500
    train: int = 200
    splits: int = 10
    first: int = 50_000
    permutations: int = 10_000
    seed: int = 0

    def __post_init__(self) -> None:
        check_ranges(**asdict(self))


@dataclass(frozen=True, slots=True)
class BiasFigures:
    """The figures of one set of vectors.

    ``direct_bias`` over all neutral words, ``direct_bias_occupations`` over the occupations among them (None: none has
    a vector); ``recovery`` is None with fewer than five biased words per side; ``neighbours``: the nearest words of
    each word requested, with their cosines (None: no vector).
    """

    direct_bias: float
    direct_bias_occupations: float | None
    associations: tuple[Association, ...]
    recovery: Recovery | None
    neighbours: dict[str, tuple[tuple[str, float], ...] | None]
    analogies: tuple[Analogy, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BiasEvaluation:
    """The figures ``before`` debiasing and, if there are vectors after it, ``after``.

    ``most``: the most biased words of each side (first and second group), by the vectors before, in descending order;
    ``cosines`` [2, N]: their cosines with the bias direction. ``points`` (before, after) [2N, 2]: the same words, first
    group first, on the first two principal components. ``settings``: the settings and the numbers of words; ``notes``:
    sentences on missing words.
    """

    before: BiasFigures
    after: BiasFigures | None
    most: tuple[tuple[str, ...], tuple[str, ...]]
    cosines: Doubles
    points: tuple[Doubles, Doubles | None]
    settings: dict[str, int | float | str]
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        states = [state for state in (self.before, self.after) if state is not None]
        parts = [f"direct bias {' → '.join(f'{state.direct_bias:.4f}' for state in states)}"]
        recovered = [state.recovery.linear for state in states if state.recovery is not None]
        if recovered:
            parts.append(f"recovery {' → '.join(f'{share:.3f}' for share in recovered)}")
        return f"BiasEvaluation({', '.join(parts)})"

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "settings": self.settings,
            "before": asdict(self.before),
            "after": None if self.after is None else asdict(self.after),
            "most_biased": [list(words) for words in self.most],
            "notes": list(self.notes),
        }


def direct_bias(rows: Array, direction: Doubles, c: float = 1.0) -> float:
    """DirectBias_c = mean over words of |cos(w, g)|^c (Bolukbasi et al. 2016, section 4.2); ``rows`` [N, D]."""
    if not len(rows):
        return math.nan
    total = 0.0
    for start in range(0, len(rows), _BLOCK):
        total += float((np.abs(unit_rows(rows[start : start + _BLOCK]) @ direction) ** c).sum())
    return total / len(rows)


def most_biased(
    vectors: Vectors, direction: Doubles, neutral: Flags, count: int = 500, first: int = 50_000
) -> tuple[Integers, Integers]:
    """The rows of the ``count`` neutral words with the largest and the smallest cosine with ``direction``.

    Gonen & Goldberg 2019: among the ``first`` words, those of at most 20 characters, all lower-case letters. If too few
    words have a positive or a negative cosine, both sides are equally smaller.
    """
    check_ranges(count=count, first=first)
    plain = np.fromiter(
        (len(w) <= 20 and w.isalpha() and w == w.lower() for w in vectors.words[:first]),
        np.bool_,
        min(first, len(neutral)),
    )
    rows = np.flatnonzero(plain & neutral[: len(plain)])
    cosine = unit_rows(vectors.matrix[rows]) @ direction
    taken = min(count, int((cosine > 0).sum()), int((cosine < 0).sum()))
    order = np.argsort(-cosine, kind="stable")
    return rows[order[:taken]], rows[order[::-1][:taken]]


def evaluate_bias(
    before: Vectors,
    after: Vectors | None = None,
    sets: WordSets | None = None,
    *,
    words: Sequence[str] | None = None,
    analogies: Sequence[tuple[str, str, str]] | None = None,
    settings: EvaluationSettings | None = None,
) -> BiasEvaluation:
    """Measures the bias of vectors, and what is left of it ``after`` debiasing [Gonen & Goldberg 2019].

    The bias direction is the first component of the definitional sets ``before``, for both. ``sets``: the word sets, by
    default :func:`evenrank.embeddings.gender_en`; specific words and words of the equalised sets are not neutral.
    ``words`` (for neighbours) and ``analogies`` (a, b, c) replace those of the sets. The most biased words are chosen
    ``before`` and are the same for both.

    Raises EvenrankError if the two have different words or dimensions, and as
    :func:`evenrank.embeddings.bias_subspace` does.
    """
    settings, sets = settings or EvaluationSettings(), sets or gender_en()
    _check_same_words(before, after)
    direction = (subspace := bias_subspace(before, sets.definitional)).basis[0]
    neutral = ~specific_words(before.words, [*sets.specific, *(word for of in sets.equalize for word in of)])
    sides = most_biased(before, direction, neutral, settings.count, settings.first)
    occupations = _occupations(before, sets, neutral)
    asked, questions = _examples(before, sets, words, analogies)
    test = partial(association, permutations=settings.permutations, seed=settings.seed)
    recover = partial(recovery, sides=sides, train=settings.train, splits=settings.splits, seed=settings.seed)

    def figures(vectors: Vectors) -> BiasFigures:
        return BiasFigures(
            direct_bias(vectors.matrix[neutral], direction),
            direct_bias(vectors.matrix[occupations], direction) if len(occupations) else None,
            tuple(test(vectors, one) for one in sets.associations),
            recover(vectors) if len(sides[0]) >= _LEAST else None,
            {word: nearest(vectors, word) for word in asked},
            tuple(analogy(vectors, *three) for three in questions),
        )

    rows = np.concatenate(sides)
    numbers = {
        "words": len(before.words),
        "dimensions": before.dimensions,
        "neutral": int(neutral.sum()),
        "occupations": len(occupations),
        "most_biased": len(sides[0]),
        "train": min(settings.train, len(sides[0]) * 2 // 5),
        "splits": settings.splits,
        "first": settings.first,
        "permutations": settings.permutations,
    }
    return BiasEvaluation(
        figures(before),
        None if after is None else figures(after),
        (tuple(before.words[i] for i in sides[0]), tuple(before.words[i] for i in sides[1])),
        np.stack([unit_rows(before.matrix[side]) @ direction for side in sides]),
        (_projected(before.matrix[rows]), None if after is None else _projected(after.matrix[rows])),
        {**numbers, "explained": float(subspace.explained[0]), "sets": sets.name, "seed": settings.seed},
        _notes(subspace, len(sides[0]), settings.count),
    )


def _occupations(vectors: Vectors, sets: WordSets, neutral: Flags) -> Integers:
    """The rows of the neutral occupations."""
    row_of = row_numbers(vectors.words, sets.occupations)
    rows = np.array([row_of[word] for word in sets.occupations if word in row_of], dtype=np.int64)
    return rows[neutral[rows]]


def _check_same_words(before: Vectors, after: Vectors | None) -> None:
    if after is None:
        return
    if after.words != before.words:
        lacking = sorted(set(before.words) ^ set(after.words))
        problem = f"{quoted(lacking[0])} is in one of them only" if lacking else "their order differs"
        raise EvenrankError(f"vectors before and after: expected the same words, but {problem}")
    if after.dimensions != before.dimensions:
        raise EvenrankError(f"vectors before and after: {before.dimensions} and {after.dimensions} dimensions")


def _examples(
    vectors: Vectors,
    sets: WordSets,
    words: Sequence[str] | None,
    analogies: Sequence[tuple[str, str, str]] | None,
) -> tuple[Sequence[str], list[tuple[str, str, str]]]:
    """Words for neighbours, and analogies: as requested, else those of the sets whose words all have a vector."""
    known = row_numbers(vectors.words, [*sets.neighbours, *(word for three in sets.analogies for word in three)])
    if analogies is None:
        analogies = [(a, b, c) for a, b, c in sets.analogies if known.keys() >= {a, b, c}]
    return [word for word in sets.neighbours if word in known] if words is None else words, list(analogies)


def _notes(subspace: Subspace, found: int, count: int) -> tuple[str, ...]:
    notes = []
    if found < count:
        notes.append(f"Only {found} words per side, not {count}: the vectors have no more biased words.")
    if subspace.missing:
        notes.append(f"Definitional words without a vector: {', '.join(subspace.missing)}.")
    return tuple(notes)


def _projected(rows: Array) -> Doubles:
    """Rows [N, D] projected on their first two principal components [N, 2]."""
    if len(rows) < 2:
        return np.zeros((len(rows), 2))
    centred = unit_rows(rows)
    centred = centred - centred.mean(axis=0)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    count = min(2, len(s))
    # The sign of an axis is arbitrary: its largest coordinate is made positive.
    sign = np.sign(vt[np.arange(count), np.abs(vt[:count]).argmax(axis=1)])
    found = np.zeros((len(rows), 2))
    found[:, :count] = u[:, :count] * s[:count] * np.where(sign == 0, 1, sign)
    return found
