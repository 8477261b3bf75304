"""What bias remains in word vectors: direct bias, association tests, recovery of the groups, neighbours, analogies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from evenrank.io import EvenrankError, MissingExtraError
from evenrank.io.errors import shown
from evenrank.io.ranges import check_ranges, seed_32

from .associations import Association, association
from .debias import Doubles, Flags, bias_subspace, rows_of, specific_words, unit
from .vectors import Vectors
from .word_sets import Sets, WordSets, gender_en

Integers = np.ndarray[Any, np.dtype[np.int64]]
_BLOCK = 1 << 15


@dataclass(frozen=True, slots=True)
class Recovery:
    """How well the sides of the most biased words are told apart: ``kmeans`` alignment and two SVMs' accuracies.

    ``linear`` and ``rbf``: mean over ``splits`` of the accuracy on the words not trained on, with its deviation.
    """

    kmeans: float
    linear: float
    linear_sd: float
    rbf: float
    rbf_sd: float


@dataclass(frozen=True, slots=True)
class Analogy:
    """a is to b as c is to: the nearest word of ``free`` may be a, b or c; of ``constrained`` not.

    ``robust``: whether, asked the other way round (b is to a as the answer is to …), the constrained search gives c.
    None where a word has no vector.
    """

    a: str
    b: str
    c: str
    free: str | None
    constrained: str | None
    robust: bool | None


@dataclass(frozen=True, slots=True)
class State:
    """The figures of one set of vectors.

    ``direct_bias`` over all neutral words, ``direct_bias_occupations`` over the occupations among them (None: none has
    a vector); ``neighbours``: for each word asked for, the nearest others with their cosines (None: no vector).
    """

    direct_bias: float
    direct_bias_occupations: float | None
    associations: tuple[Association, ...]
    recovery: Recovery | None
    neighbours: dict[str, tuple[tuple[str, float], ...] | None]
    analogies: tuple[Analogy, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Remains:
    """What remains: the figures ``before`` and, where there are vectors after debiasing, ``after``.

    ``most``: the most biased words of each side (first and second group), by the vectors before, the most biased first;
    ``cosines`` [2, N]: their cosines with the bias direction. ``points`` (before, after) [2N, 2]: the same words, first
    group first, on the first two principal components. ``settings`` and ``notes`` say what was done.
    """

    before: State
    after: State | None
    most: tuple[tuple[str, ...], tuple[str, ...]]
    cosines: Doubles
    points: tuple[Doubles, Doubles | None]
    settings: dict[str, Any]
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        states = [state for state in (self.before, self.after) if state is not None]
        parts = [f"direct bias {' → '.join(f'{state.direct_bias:.4f}' for state in states)}"]
        told_apart = [state.recovery.linear for state in states if state.recovery is not None]
        if told_apart:
            parts.append(f"sides told apart {' → '.join(f'{share:.3f}' for share in told_apart)}")
        return f"Remains({', '.join(parts)})"

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "settings": self.settings,
            "before": asdict(self.before),
            "after": None if self.after is None else asdict(self.after),
            "most_biased": [list(words) for words in self.most],
            "notes": list(self.notes),
        }


def direct_bias(rows: np.ndarray[Any, Any], direction: Doubles, c: float = 1.0) -> float:
    """DirectBias_c = mean over words of |cos(w, g)|^c (Bolukbasi et al. 2016, section 4.2); ``rows`` [N, D]."""
    if not len(rows):
        return math.nan
    total = 0.0
    for start in range(0, len(rows), _BLOCK):
        total += float((np.abs(unit(rows[start : start + _BLOCK]) @ direction) ** c).sum())
    return total / len(rows)


def cosines(vectors: Vectors, point: np.ndarray[Any, Any]) -> Doubles:
    """The cosine of every word [V] with a ``point`` [D]; 0 for a vector of 0."""
    towards = unit(point[None])[0]
    found = np.empty(len(vectors.words))
    for start in range(0, len(found), _BLOCK):
        block = vectors.matrix[start : start + _BLOCK]
        length = np.sqrt(np.einsum("ij,ij->i", block, block))
        found[start : start + _BLOCK] = block @ towards.astype(np.float32) / np.where(length > 0, length, 1)
    return found


def most_biased(
    vectors: Vectors, direction: Doubles, neutral: Flags, count: int = 500, first: int = 50_000
) -> tuple[Integers, Integers]:
    """The rows of the ``count`` neutral words with the largest and the smallest cosine with ``direction``.

    As Gonen & Goldberg 2019, among the ``first`` words, those of at most 20 letters, all of them lower-case letters.
    Fewer, as many on each side, where there are not enough words with a positive and a negative cosine.
    """
    check_ranges(count=count, first=first)
    plain = np.fromiter(
        (len(w) <= 20 and w.isalpha() and w == w.lower() for w in vectors.words[:first]),
        np.bool_,
        min(first, len(neutral)),
    )
    rows = np.flatnonzero(plain & neutral[: len(plain)])
    cosine = unit(vectors.matrix[rows]) @ direction
    taken = min(count, int((cosine > 0).sum()), int((cosine < 0).sum()))
    order = np.argsort(-cosine, kind="stable")
    return rows[order[:taken]], rows[order[::-1][:taken]]


def recovery(
    vectors: Vectors, sides: tuple[Integers, Integers], *, train: int = 200, splits: int = 10, seed: int = 0
) -> Recovery:
    """How well vectors tell the two ``sides`` apart (rows), as Gonen & Goldberg 2019, sections 4 and 5.

    ``kmeans``: the share of words in the cluster of their side, of the two ways to name two clusters the better one; by
    chance it lies a little above 0.5. SVMs (linear, and with a radial kernel) trained on ``train`` words of each side
    drawn at random, or on two fifths where a side has fewer than 2.5 times ``train``; tested on the others. On vectors
    of length 1. Raises EvenrankError for sides of fewer than five words; MissingExtraError without scikit-learn.
    """
    check_ranges(train=train, splits=splits, seed=seed)
    try:
        from sklearn.cluster import KMeans
        from sklearn.svm import SVC
    except ModuleNotFoundError:
        raise MissingExtraError("recovering the groups", "embeddings") from None

    size = min(map(len, sides))
    if size < 5:
        raise EvenrankError(f"recovery: expected 5 words or more of each side, found {size}")
    rows = unit(vectors.matrix[np.concatenate(sides)])
    labels = np.repeat([0, 1], [len(side) for side in sides])
    clusters = KMeans(n_clusters=2, n_init=10, random_state=seed_32(seed)).fit_predict(rows)
    agree = float((clusters == labels).mean())
    rng = np.random.default_rng(seed)
    per_side = min(train, size * 2 // 5)
    found: dict[str, list[float]] = {"linear": [], "rbf": []}
    for _ in range(splits):
        drawn = np.concatenate([rng.permutation(np.flatnonzero(labels == side))[:per_side] for side in (0, 1)])
        test = np.ones(len(rows), np.bool_)
        test[drawn] = False
        for kernel, scores in found.items():
            machine = SVC(kernel=kernel, C=1.0, gamma="scale", random_state=seed_32(seed)).fit(
                rows[drawn], labels[drawn]
            )
            scores.append(float((machine.predict(rows[test]) == labels[test]).mean()))
    spread = {kernel: float(np.std(scores, ddof=1)) if splits > 1 else 0.0 for kernel, scores in found.items()}
    means = {kernel: float(np.mean(scores)) for kernel, scores in found.items()}
    return Recovery(max(agree, 1 - agree), means["linear"], spread["linear"], means["rbf"], spread["rbf"])


def nearest(vectors: Vectors, word: str, count: int = 10) -> tuple[tuple[str, float], ...] | None:
    """The ``count`` other words with the largest cosine, and it; None where the word has no vector."""
    row = rows_of(vectors.words, [word]).get(word)
    if row is None:
        return None
    cosine = cosines(vectors, vectors.matrix[row])
    cosine[row] = -np.inf
    return tuple((vectors.words[i], float(cosine[i])) for i in _largest(cosine, min(count, len(cosine) - 1)))


def _largest(values: Doubles, count: int) -> Integers:
    """Where the ``count`` largest stand, the largest first, equal ones in their order."""
    if count < 1:
        return np.empty(0, np.int64)
    bound = np.partition(values, -count)[-count]
    among = np.flatnonzero(values >= bound)
    return among[np.argsort(-values[among], kind="stable")][:count]


def analogy(vectors: Vectors, a: str, b: str, c: str) -> Analogy:
    """a : b :: c : ?, by 3CosAdd (Mikolov et al. 2013): the word nearest to b − a + c by cosine, of unit vectors.

    ``constrained`` leaves a, b and c out, as is usual; ``free`` does not: often it gives b or c itself, and the usual
    answer then says little (Nissim et al. 2020).
    """
    row_of = rows_of(vectors.words, (a, b, c))
    if any(word not in row_of for word in (a, b, c)):
        return Analogy(a, b, c, None, None, None)

    def answers(a: int, b: int, c: int) -> tuple[int, int]:
        u = unit(vectors.matrix[[a, b, c]])
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


def remains(
    before: Vectors,
    after: Vectors | None = None,
    sets: WordSets | None = None,
    *,
    definitional: Sets | None = None,
    specific: Sequence[str] | None = None,
    count: int = 500,
    train: int = 200,
    splits: int = 10,
    first: int = 50_000,
    permutations: int = 10_000,
    words: Sequence[str] | None = None,
    analogies: Sequence[tuple[str, str, str]] | None = None,
    seed: int = 0,
) -> Remains:
    """The bias of vectors, and what of it remains ``after`` debiasing [Gonen & Goldberg 2019].

    The bias direction is the first component of the definitional sets ``before``, for both. ``sets``: the word sets, by
    default :func:`gender_en`; ``definitional``, ``specific``, ``words`` (for neighbours) and ``analogies`` (a, b, c)
    replace theirs. ``count``, ``first``: see :func:`most_biased`; ``train``, ``splits``: see :func:`recovery`; the
    words are chosen ``before`` and the same for both.

    Raises EvenrankError where the two have different words, or vectors of different sizes, and as
    :func:`bias_subspace` does.
    """
    check_ranges(count=count, train=train, splits=splits, first=first, permutations=permutations, seed=seed)
    if after is not None and after.words != before.words:
        lacking = sorted(set(before.words) ^ set(after.words))
        what = f"{shown(lacking[0])} stands in one only" if lacking else "they stand in another order"
        raise EvenrankError(f"vectors before and after: expected the same words, but {what}")
    if after is not None and after.dimensions != before.dimensions:
        raise EvenrankError(f"vectors before and after: {before.dimensions} and {after.dimensions} dimensions")
    sets = gender_en() if sets is None else sets
    definitional = sets.definitional if definitional is None else definitional
    equalized = [word for of in sets.equalize for word in of]
    specific = [*sets.specific, *equalized] if specific is None else specific
    # Of its own examples, those that the vectors have; what was asked for is always answered.
    known = rows_of(before.words, [*sets.neighbours, *(word for three in sets.analogies for word in three)])
    words = [word for word in sets.neighbours if word in known] if words is None else words
    asked = [three for three in sets.analogies if known.keys() >= set(three)] if analogies is None else analogies
    subspace = bias_subspace(before, definitional)
    direction = subspace.basis[0]
    neutral = ~specific_words(before.words, specific)
    sides = most_biased(before, direction, neutral, count, first)
    row_of = rows_of(before.words, sets.occupations)
    work = np.array([row_of[word] for word in sets.occupations if word in row_of], dtype=np.int64)
    work = work[neutral[work]]
    enough = len(sides[0]) >= 5
    notes = []
    if len(sides[0]) < count:
        notes.append(f"Only {len(sides[0])} words a side, not {count}: the vectors have no more that are biased.")
    if subspace.missing:
        notes.append(f"Definitional words without a vector: {', '.join(subspace.missing)}.")

    def state(vectors: Vectors) -> State:
        return State(
            direct_bias(vectors.matrix[neutral], direction),
            direct_bias(vectors.matrix[work], direction) if len(work) else None,
            tuple(association(vectors, test, permutations=permutations, seed=seed) for test in sets.associations),
            recovery(vectors, sides, train=train, splits=splits, seed=seed) if enough else None,
            {word: nearest(vectors, word) for word in words},
            tuple(analogy(vectors, *three) for three in asked),
        )

    rows = np.concatenate(sides)
    return Remains(
        state(before),
        None if after is None else state(after),
        (tuple(before.words[i] for i in sides[0]), tuple(before.words[i] for i in sides[1])),
        np.stack([unit(before.matrix[side]) @ direction for side in sides]),
        (_plane(before.matrix[rows]), None if after is None else _plane(after.matrix[rows])),
        {
            "words": len(before.words),
            "dimensions": before.dimensions,
            "neutral": int(neutral.sum()),
            "occupations": len(work),
            "most_biased": len(sides[0]),
            "train": min(train, len(sides[0]) * 2 // 5),
            "splits": splits,
            "first": first,
            "permutations": permutations,
            "explained": float(subspace.explained[0]),
            "sets": sets.name,
            "seed": seed,
        },
        tuple(notes),
    )


def _plane(rows: np.ndarray[Any, Any]) -> Doubles:
    """Rows [N, D] on their first two principal components [N, 2]."""
    if len(rows) < 2:
        return np.zeros((len(rows), 2))
    centred = unit(rows)
    centred = centred - centred.mean(axis=0)
    u, s, vt = np.linalg.svd(centred, full_matrices=False)
    count = min(2, len(s))
    # The sign is free: the largest coordinate of an axis is positive.
    sign = np.sign(vt[np.arange(count), np.abs(vt[:count]).argmax(axis=1)])
    found = np.zeros((len(rows), 2))
    found[:, :count] = u[:, :count] * s[:count] * np.where(sign == 0, 1, sign)
    return found
