"""What debiasing leaves of the bias of word vectors: the critique that the expansion paper answers to.

Gonen and Goldberg 2019: the most biased words of both sides still form clusters and can be told apart. Nissim et al.
2020: biased analogies say little, and reversed they do not lead back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenrank.embeddings import Recovery, Vectors, WordSets, bias_subspace, most_biased, recovery, specific_words
from evenrank.io.types import Array

from .paper_tables import Row, Table, Value

KMEANS, SVM = 0.925, 0.965
"""Of the debiased vectors, as published by the critique."""
COSINES = (0.57, 0.73)
"""Of the answers to a biased and to an appropriate analogy, as published."""
_BLOCK = 1 << 15
LEAST = 5
"""Words of a side without which nothing can be recovered."""
FROM, TO = "man", "woman"
Question = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers to analogies a : b :: c : ?, one kind of them.

    ``cosine`` [n]: of each answer with the point b − a + c; ``robust`` [n]: whether the reversed analogy
    (c : answer :: a : ?) leads back to b.
    """

    words: tuple[str, ...]
    cosine: Array
    robust: Array


@dataclass(frozen=True, slots=True)
class Critique:
    """The checks before and after debiasing. ``common``: the number of words that both sets of vectors have.

    ``side``: the most biased words of each side, by the vectors before; recovery is None with too few.
    """

    common: int
    side: int
    recovered: tuple[Recovery | None, Recovery | None]
    biased: tuple[Answers, Answers]
    """Of occupations: man : programmer :: woman : ?"""
    appropriate: tuple[Answers, Answers]
    """Of words for one gender: man : king :: woman : ?"""


def criticise(before: Vectors, after: Vectors, sets: WordSets, *, count: int, train: int, seed: int) -> Critique:
    """Measures both sets of vectors on the words that they have in common."""
    before, after = common_words(before, after)
    direction = bias_subspace(before, sets.definitional).basis[0]
    neutral = ~specific_words(before.words, [*sets.specific, *(word for of in sets.equalize for word in of)])
    sides = most_biased(before, direction, neutral, count)
    known = frozenset(before.words)
    jobs = [(FROM, word, TO) for word in sets.occupations if word in known]
    pairs_of = [of for of in sets.equalize if len(of) == 2]
    pairs = [(FROM, male, TO) for female, male in pairs_of if {female, male} <= known and male not in (FROM, "he")]
    asked = known >= {FROM, TO}
    recovered = [
        recovery(vectors, sides, train=train, seed=seed) if len(sides[0]) >= LEAST else None
        for vectors in (before, after)
    ]
    biased = [answers(vectors, jobs if asked else []) for vectors in (before, after)]
    appropriate = [answers(vectors, pairs if asked else []) for vectors in (before, after)]
    return Critique(
        len(known),
        len(sides[0]),
        (recovered[0], recovered[1]),
        (biased[0], biased[1]),
        (appropriate[0], appropriate[1]),
    )


def common_words(before: Vectors, after: Vectors) -> tuple[Vectors, Vectors]:
    """Both sets of vectors with the words that both have, in the order of the first."""
    if before.words == after.words:
        return before, after
    row_of = {word: row for row, word in enumerate(after.words)}
    kept = before.keep(row_of.keys())
    return kept, Vectors(kept.words, after.matrix[[row_of[word] for word in kept.words]])


def answers(vectors: Vectors, questions: Sequence[Question]) -> Answers:
    """The word nearest by cosine to b − a + c for each question (a, b, c), without a, b and c; and the way back."""
    if not questions or len(vectors.words) < 4:
        return Answers((), np.empty(0), np.empty(0))
    row_of = {word: row for row, word in enumerate(vectors.words)}
    a, b, c = (np.array([row_of[question[i]] for question in questions]) for i in range(3))
    found, cosine = _nearest(vectors, a, b, c)
    back, _ = _nearest(vectors, c, found, a)
    return Answers(tuple(vectors.words[row] for row in found), cosine, (back == b).astype(np.float64))


def _nearest(vectors: Vectors, a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """The row nearest to b − a + c among the others, and its cosine, for rows a, b, c [n]."""
    matrix = vectors.matrix
    points = matrix[b] - matrix[a] + matrix[c]
    length = np.linalg.norm(points, axis=1, keepdims=True)
    points = points / np.where(length > 0, length, 1)
    best = np.full(len(points), -np.inf)
    row = np.zeros(len(points), np.int64)
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK]
        length = np.linalg.norm(block, axis=1)
        cosine = points @ block.T / np.where(length > 0, length, 1)
        for given in (a, b, c):
            inside = np.flatnonzero((given >= start) & (given < start + len(block)))
            cosine[inside, given[inside] - start] = -np.inf
        first = cosine.argmax(axis=1)
        value = cosine[np.arange(len(points)), first]
        better = value > best
        best[better], row[better] = value[better], first[better] + start
    return row, best


def criticised(label: str, critique: Critique) -> Table:
    """Clusters, SVMs, analogies and reversed analogies before and after debiasing."""
    before, after = critique.recovered
    n = 2 * critique.side
    rows = [
        _recovery_row("k-means: share in their side's cluster", before, after, lambda one: (one.kmeans, n), KMEANS),
        _recovery_row("linear SVM: accuracy", before, after, lambda one: (one.linear, one.tested), None),
        _recovery_row("RBF SVM: accuracy", before, after, lambda one: (one.rbf, one.tested), SVM),
    ]
    kinds = (("biased", critique.biased, COSINES[0]), ("appropriate", critique.appropriate, COSINES[1]))
    for name, pair, cosine in kinds:
        printed = {"before": cosine}
        rows.append(Row((f"{name} analogies: cosine of the answer",), _analogies(pair, "cosine"), printed))
        rows.append(Row((f"{name} analogies: reversed, they lead back",), _analogies(pair, "robust")))
    notes = (
        f"{critique.side} most biased words a side by the vectors before, of {critique.common:,} words that both have"
        " [Gonen and Goldberg 2019]; first seed. Chance: .5, k-means slightly above.",
        "Published .925 and .965 are the critique's figures after debiasing: clusters, and an SVM.",
        "Analogies man : b :: woman : ?, of occupations (biased) and of words for one gender (appropriate); the cosine"
        " of the answer with b − man + woman. Published .57 and .73 are single analogies of the Google News vectors;"
        " that .73 is king to queen and .57 computer programmer to homemaker is our reading.",
    )
    headings = {"before": "before debiasing", "after": "after"}
    title = "What debiasing leaves of the vectors' bias"
    return Table(f"Critique {label}", title, ("check",), headings, tuple(rows), notes)


def _recovery_row(
    label: str,
    before: Recovery | None,
    after: Recovery | None,
    of: Callable[[Recovery], tuple[float, int]],
    printed: float | None,
) -> Row:
    both = (("before", before), ("after", after))
    measured = {key: Value(*of(one), "words") for key, one in both if one is not None}
    return Row((label,), measured, {} if printed is None else {"after": printed})


def _analogies(pair: tuple[Answers, Answers], figure: Literal["cosine", "robust"]) -> dict[str, Value]:
    found = {}
    for key, one in zip(("before", "after"), pair, strict=True):
        values = one.cosine if figure == "cosine" else one.robust
        over = Value.over_seeds(values.tolist())
        found[key] = Value(over.mean, over.n, "analogies", over.ci95)
    return found
