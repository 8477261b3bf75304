"""The bias of word vectors: direct bias, association tests, recovery of the groups, neighbours and analogies."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Annotated

import numpy as np

from evenrank import options as opt
from evenrank.files import EvenrankError, MissingExtraError, Provenance
from evenrank.files.arguments import check_ranges, checked, seed_32
from evenrank.files.errors import quoted
from evenrank.files.json_values import INLINE, LEFT_OUT, named
from evenrank.files.types import Array
from evenrank.models.vectors import Doubles, Flags, Integers, Vectors, read_vectors, row_numbers, unit_rows
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import COLOURS, Drawing, Page, Section, specification
from evenrank.results.result import Result
from evenrank.results.table import Column, P, Table, digits, short, shorts

from .debias import SpecificWords, Subspace, bias_subspace, choose_specific, specific_words
from .word_sets import AssociationTest, WordSets, gender_en, load_word_sets

EXACT = 200_000
"""Up to this number of partitions, all are computed; beyond, a sample."""
_PARTITIONS = 10_000


@dataclass(frozen=True, slots=True)
class Association:
    """The result of a test: ``effect`` size, and one-sided ``p`` over ``partitions`` (all of them if ``exact``).

    Both are None if a set has too few words with a vector; ``missing``: words without one.
    """

    name: str
    effect: float | None
    p: float | None
    partitions: int
    exact: bool
    missing: tuple[str, ...]


@checked
def association(vectors: Vectors, test: AssociationTest, *, permutations: int = 10_000, seed: int = 0) -> Association:
    """Tests whether the words of X are nearer to A than to B, and more so than those of Y (WEAT).

    s(w, A, B) = mean cos(w, a) − mean cos(w, b); effect size d = (mean over X of s − mean over Y of s) / standard
    deviation of s over X ∪ Y (of a sample, n − 1); p: the share of the partitions of X ∪ Y into sets of these sizes
    whose Σ_X s − Σ_Y s is at least the observed one, which is among them (Caliskan et al. 2017, supplement). Up to
    200,000 partitions all are computed, else ``permutations`` random ones and the observed.
    """
    of = {"x": test.x, "y": test.y, "a": test.a, "b": test.b}
    row_of = row_numbers(vectors.words, (word for words in of.values() for word in words))
    missing = tuple(dict.fromkeys(word for words in of.values() for word in words if word not in row_of))
    known = {key: unit_rows(vectors.matrix[[row_of[w] for w in words if w in row_of]]) for key, words in of.items()}
    if min(len(known["a"]), len(known["b"])) < 1 or min(len(known["x"]), len(known["y"])) < 2:
        return Association(test.name, None, None, 0, False, missing)
    targets = np.concatenate([known["x"], known["y"]])
    s: Doubles = targets @ known["a"].mean(axis=0) - targets @ known["b"].mean(axis=0)
    of_x = len(known["x"])
    spread = float(s.std(ddof=1))
    effect = (float(s[:of_x].mean()) - float(s[of_x:].mean())) / spread if spread > 1e-12 else None
    p, partitions, exact = permutation_p(s, of_x, permutations, seed)
    return Association(test.name, effect, p, partitions, exact, missing)


def permutation_p(s: Doubles, of_x: int, permutations: int, seed: int) -> tuple[float, int, bool]:
    """One-sided p of Σ over the first ``of_x`` of ``s`` [N] − Σ over the others; the number of partitions; whether all.

    The difference increases with the first sum, so only that is compared.
    """
    total = math.comb(len(s), of_x)
    # The order of summation must not matter.
    least = float(s[:of_x].sum()) - 1e-9 * max(1.0, float(np.abs(s).sum()))
    if total <= EXACT:
        chosen = np.fromiter(combinations(range(len(s)), of_x), np.dtype((np.int64, of_x)), total)
        return float((s[chosen].sum(axis=1) >= least).mean()), total, True
    rng = np.random.default_rng(seed)
    above = 1
    for start in range(0, permutations, _PARTITIONS):
        drawn = rng.permuted(np.tile(s, (min(_PARTITIONS, permutations - start), 1)), axis=1)
        above += int((drawn[:, :of_x].sum(axis=1) >= least).sum())
    return above / (permutations + 1), permutations + 1, False


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


@checked
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


@checked
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


@dataclass(frozen=True, slots=True)
class Recovery:
    """How well the sides of the most biased words can be recovered: ``kmeans`` alignment and the accuracy of two SVMs.

    ``linear`` and ``rbf``: mean accuracy over random splits on the words not trained on; ``linear_sd``, ``rbf_sd``: its
    standard deviation. ``tested``: the number of words that an SVM is tested on in a split. ``of_word``: by "kmeans",
    "linear" and "rbf", for each word [2N], those of the first side first, the share of the trials that found its side
    (NaN: an SVM was never tested on it).
    """

    kmeans: float
    linear: float
    linear_sd: float
    rbf: float
    rbf_sd: float
    tested: int
    of_word: Mapping[str, Doubles] = field(default_factory=dict, repr=False, compare=False, metadata=LEFT_OUT)


@checked
def recovery(
    vectors: Vectors, sides: tuple[Integers, Integers], *, train: int = 200, splits: int = 10, seed: int = 0
) -> Recovery:
    """How well the two ``sides`` (rows) can be recovered from unit vectors (Gonen & Goldberg 2019, sections 4 and 5).

    ``kmeans``: the share of words in the cluster of their side, for the better of the two assignments; slightly above
    0.5 by chance. The SVMs (linear, and with an RBF kernel) are trained on ``train`` random words of each side, or on
    two fifths of a side with fewer than 2.5 times ``train``, and tested on the others, in ``splits`` random splits.
    Raises EvenrankError for sides of fewer than five words; MissingExtraError without scikit-learn.
    """
    try:
        from sklearn.cluster import KMeans
        from sklearn.svm import SVC
    except ModuleNotFoundError:
        raise MissingExtraError("recovering the groups", "embeddings") from None

    size = min(map(len, sides))
    if size < 5:
        raise EvenrankError(f"recovery: expected 5 words or more of each side, found {size}")
    rows = unit_rows(vectors.matrix[np.concatenate(sides)])
    side_of = np.repeat([0, 1], [len(side) for side in sides])
    clusters = KMeans(n_clusters=2, n_init=10, random_state=seed_32(seed)).fit_predict(rows)
    right = clusters == side_of
    right = right if right.mean() >= 0.5 else ~right
    rng = np.random.default_rng(seed)
    per_side = min(train, size * 2 // 5)
    found: dict[str, list[Doubles]] = {"linear": [], "rbf": []}
    for _ in range(splits):
        drawn = np.concatenate([rng.permutation(np.flatnonzero(side_of == side))[:per_side] for side in (0, 1)])
        test = np.ones(len(rows), np.bool_)
        test[drawn] = False
        for kernel, scores in found.items():
            svm = SVC(kernel=kernel, C=1.0, gamma="scale", random_state=seed_32(seed)).fit(rows[drawn], side_of[drawn])
            scores.append(np.where(test, svm.predict(rows) == side_of, np.nan))
    of_split = {kernel: np.nanmean(scores, axis=1) for kernel, scores in found.items()}
    spread = {kernel: float(of_split[kernel].std(ddof=1)) if splits > 1 else 0.0 for kernel in found}
    means = {kernel: float(of_split[kernel].mean()) for kernel in found}
    tested = len(rows) - 2 * per_side
    of_word = {"kmeans": right.astype(np.float64)}
    for kernel, scores in found.items():
        trials = np.isfinite(scores).sum(axis=0)
        of_word[kernel] = np.where(trials, np.nansum(scores, axis=0) / np.maximum(trials, 1), np.nan)
    return Recovery(
        float(right.mean()), means["linear"], spread["linear"], means["rbf"], spread["rbf"], tested, of_word
    )


_LEAST = 5
"""Words of each side without which recovery is not measured."""


@checked
@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """Settings of :func:`evaluate_bias`.

    ``count``: most biased words of each side, among the ``first`` words (:func:`most_biased`); ``train``, ``splits``:
    see :func:`evenrank.search.embeddings_audit.recovery`; ``permutations``: see
    :func:`evenrank.search.embeddings_audit.association`; ``seed``: of all that is random. Raises EvenrankError for a
    value out of range.
    """

    count: Annotated[
        int, opt.Option("Number of most biased words per side.", flag="--most", panel="Statistics", rare=True)
    ] = 500
    train: Annotated[int, opt.Option("Words per side to train the SVMs on.", panel="Statistics", rare=True)] = 200
    splits: Annotated[int, opt.Option("Random draws of the training words.", panel="Statistics", rare=True)] = 10
    first: Annotated[int, opt.Option("First words to choose the most biased from.", panel="Statistics", rare=True)] = (
        50_000
    )
    permutations: Annotated[
        int,
        opt.Option("Random partitions of an association test with too many to try all.", panel="Statistics", rare=True),
    ] = 10_000
    seed: Annotated[int, opt.Option("Random seed.", panel="Statistics", rare=True)] = 0

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
    most: tuple[tuple[str, ...], tuple[str, ...]] = field(metadata=named("most_biased"))
    cosines: Doubles = field(repr=False, metadata=LEFT_OUT)
    points: tuple[Doubles, Doubles | None] = field(repr=False, metadata=LEFT_OUT)
    settings: dict[str, int | float | str]
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        states = [state for state in (self.before, self.after) if state is not None]
        parts = [f"direct bias {' → '.join(f'{state.direct_bias:.4f}' for state in states)}"]
        recovered = [state.recovery.linear for state in states if state.recovery is not None]
        if recovered:
            parts.append(f"recovery {' → '.join(f'{share:.3f}' for share in recovered)}")
        return f"BiasEvaluation({', '.join(parts)})"


def direct_bias(rows: Array, direction: Doubles, c: float = 1.0) -> float:
    """DirectBias_c = mean over words of |cos(w, g)|^c (Bolukbasi et al. 2016, section 4.2); ``rows`` [N, D]."""
    if not len(rows):
        return math.nan
    total = 0.0
    for start in range(0, len(rows), _BLOCK):
        total += float((np.abs(unit_rows(rows[start : start + _BLOCK]) @ direction) ** c).sum())
    return total / len(rows)


@checked
def most_biased(
    vectors: Vectors, direction: Doubles, neutral: Flags, count: int = 500, first: int = 50_000
) -> tuple[Integers, Integers]:
    """The rows of the ``count`` neutral words with the largest and the smallest cosine with ``direction``.

    Gonen & Goldberg 2019: among the ``first`` words, those of at most 20 characters, all lower-case letters. If too few
    words have a positive or a negative cosine, both sides are equally smaller.
    """
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


@checked
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
    default :func:`~evenrank.search.word_sets.gender_en`; specific words and words of the equalised sets are not
    neutral.
    ``words`` (for neighbours) and ``analogies`` (a, b, c) replace those of the sets. The most biased words are chosen
    ``before`` and are the same for both.

    Raises EvenrankError if the two have different words or dimensions, and as
    :func:`~evenrank.search.embeddings.bias_subspace` does.
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


_SOURCE = (
    "Direct bias: Bolukbasi et al., NeurIPS 2016. Recovery: Gonen & Goldberg, NAACL 2019. Association tests: Caliskan "
    "et al., Science 2017. Analogies: Nissim et al., Computational Linguistics 2020."
)


_SAYS = phrases("embeddings")
_States = Mapping[str, BiasFigures]
"""The figures before, and after if there are any."""


def evaluation_page(
    found: BiasEvaluation, name: str, after: str | None = None, provenance: Provenance | None = None
) -> Page:
    """The figures and charts of an evaluation; ``name`` and ``after``: the names of the vectors."""
    settings = found.settings
    states = {"before": found.before} | ({} if found.after is None else {"after": found.after})
    facts = (
        ("words", f"{settings['words']:,}"),
        ("dimensions", f"{settings['dimensions']}"),
        ("neutral words", f"{settings['neutral']:,}"),
        ("most biased words per side", f"{settings['most_biased']}"),
    )
    title = f"Bias of {name}" if after is None else f"Bias of {name}, and of {after} after debiasing"
    notes = [
        "The bias direction is the first component of the definitional sets before debiasing, for both columns. It "
        f"explains {settings['explained']:.0%} of the variance within them.",
        "Direct bias: the mean of |cos| with that direction. A value near 0 shows only that this direction is gone.",
        f"Recovery: the {settings['most_biased']} neutral words on each side with the largest cosine before debiasing. "
        "k-means: the share of them in the cluster of their side. SVMs: trained on "
        f"{settings['train']} words of each side, tested on the others, mean of {settings['splits']} draws with seed "
        f"{settings['seed']} (standard deviation). Chance is 0.5; far above it, the bias can still be recovered.",
        "Association tests: d is the effect size; p, one-sided, tests whether the first targets are nearer to the "
        "first attribute than the second targets are.",
        "Analogies exclude the three words of the question (usual), or not (free). Robust: the reverse question "
        "returns the third word.",
        *found.notes,
    ]
    lacking = sorted({word for test in found.before.associations for word in test.missing})
    if lacking:
        notes.append(f"Words of the association tests without a vector: {', '.join(lacking)}.")
    sections = [Section("Association tests", (_associations(states),))]
    if len(found.most[0]):
        sections.insert(0, Section("Clusters of the most biased words", (), lambda: [_scatter(found)]))
    words = (*_neighbours(states), *_analogies(states))
    if words:
        sections.append(Section("Nearest words and analogies", words))
    return Page(
        "embeddings audit",
        title,
        tuple(_findings(found)),
        _figures(states),
        aside=f"{settings['words']:,} words",
        next=(("evenrank embeddings debias", "remove it"),) if after is None else (),
        sections=tuple(sections),
        facts=facts,
        source=_SOURCE,
        notes=tuple(notes),
        provenance=provenance,
    )


def _findings(found: BiasEvaluation) -> Iterator[Finding]:
    """How large the bias is, and whether it can be recovered."""
    before, after = found.before, found.after
    share, left = before.recovery, None if after is None else after.recovery
    if after is None:
        yield _SAYS.find("direct", place="answer", bias=before.direct_bias)
    else:
        yield _SAYS.find("direct_change", place="answer", before=before.direct_bias, after=after.direct_bias)
    if share is None:
        yield _SAYS.find("not_recovered", level="cannot be told", place="warning")
    elif left is None:
        yield _SAYS.find("recovered", place="answer", share=share.linear)
    else:
        yield _SAYS.find("recovered_change", place="answer", before=share.linear, after=left.linear)


def _figures(states: _States) -> Table:
    def recovered(key: str, spread: str | None = None) -> Callable[[BiasFigures], str | None]:
        def text(state: BiasFigures) -> str | None:
            if state.recovery is None:
                return None
            value = short(getattr(state.recovery, key))
            return value if spread is None else f"{value} ({short(getattr(state.recovery, spread))})"

        return text

    figures: dict[str, Callable[[BiasFigures], float | str | None]] = {
        "direct bias, all neutral words": lambda state: state.direct_bias,
        "direct bias, occupations": lambda state: state.direct_bias_occupations,
        "recovery by k-means": recovered("kmeans"),
        "recovery by a linear SVM": recovered("linear", "linear_sd"),
        "recovery by an RBF SVM": recovered("rbf", "rbf_sd"),
    }
    rows = [(name, *map(of, states.values())) for name, of in figures.items()]
    known = [row for row in rows if any(value is not None for value in row[1:])]
    return Table("Bias", (Column("figure"), *(Column(head, shorts(3)) for head in states)), known)


def _associations(states: _States) -> Table:
    columns = [Column("test", of="0.name")]
    for place, head in enumerate(states):
        columns += [Column(f"d {head}", digits(2), of=f"{place}.effect"), Column(f"p {head}", P, of=f"{place}.p")]
    rows = [*zip(*(state.associations for state in states.values()), strict=True)]
    sampled = any(not test.exact and test.p is not None for tests in rows for test in tests)
    note = "p over all partitions." if not sampled else "p over random partitions if there are too many."
    return Table("Association tests", tuple(columns), rows, (note,))


def _neighbours(states: _States) -> list[Table]:
    rows = [
        (word, head, None if near is None else ", ".join(other for other, _ in near))
        for word in states["before"].neighbours
        for head, near in ((head, state.neighbours[word]) for head, state in states.items())
    ]
    columns = (Column("word"), Column("vectors", heading=""), Column("nearest"))
    return [Table("Nearest words", columns, rows)] if rows else []


def _analogies(states: _States) -> list[Table]:
    def robust(place: int) -> Callable[[tuple[Analogy, ...]], str | None]:
        return lambda row: {True: "yes", False: "no", None: None}[row[place].robust]

    columns = [Column("question", of=lambda row: f"{row[0].a} : {row[0].b} :: {row[0].c} : ?")]
    for place, head in enumerate(states):
        columns += [
            Column(f"usual {head}", of=f"{place}.constrained"),
            Column(f"free {head}", of=f"{place}.free"),
            Column(f"robust {head}", of=robust(place)),
        ]
    rows = [*zip(*(state.analogies for state in states.values()), strict=True)]
    return [Table("Analogies", tuple(columns), rows)] if rows else []


def _scatter(found: BiasEvaluation) -> Drawing:
    """The most biased words on their first two principal components, with one panel before and one after."""
    import altair as alt

    words = [word for side in found.most for word in side]
    # Sides are named after their most biased words: nothing else identifies the group.
    names = ["like " + ", ".join(side[:3]) for side in found.most]
    if names[0] == names[1]:
        names = ["first group", "second group"]
    side = [names[0]] * len(found.most[0]) + [names[1]] * len(found.most[1])
    rows: list[dict[str, str | float]] = []
    for when, points in zip(("before", "after"), found.points, strict=True):
        for word, group, (x, y) in zip(
            words, side, [] if points is None else points.tolist(), strict=points is not None
        ):
            rows.append({"when": when, "word": word, "side": group, "x": round(x, 4), "y": round(y, 4)})
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_point(filled=True, size=18, opacity=0.6)
        .encode(
            x=alt.X("x:Q", title="first component"),
            y=alt.Y("y:Q", title="second component"),
            color=alt.Color("side:N", title=None, scale=alt.Scale(domain=names, range=COLOURS[:2])),
            tooltip=[alt.Tooltip("word:N"), alt.Tooltip("side:N")],
        )
        .properties(width=360, height=320)
        .facet(column=alt.Column("when:N", title=None, sort=["before", "after"]))
        .resolve_scale(x="independent", y="independent")
    )
    return Drawing(
        "Clusters",
        "The words that were most biased, on their first two principal components",
        specification(chart),
        "Points: words; colours: sides. Colours still separate after debiasing show that bias can be recovered.",
    )


@dataclass(frozen=True, slots=True, repr=False)
class BiasAudit(Result):
    """The result of :func:`audit_file`; ``name`` and ``after``: the names of the files.

    ``specific``: the words that keep their group, as given and as learned.
    """

    name: str = field(metadata=LEFT_OUT)
    after: str | None = field(metadata=LEFT_OUT)
    evaluation: BiasEvaluation = field(metadata=INLINE)
    specific: SpecificWords = field(metadata=LEFT_OUT)
    settings: dict[str, object]

    def _beside(self) -> Mapping[str, object]:
        return {"settings": self.settings | self.evaluation.settings}

    def page(self) -> Page:
        """The figures and charts as a page."""
        return evaluation_page(self.evaluation, self.name, self.after, self.provenance)


@checked
def audit_file(
    vectors: Annotated[opt.File, opt.Option(opt.VECTORS, metavar="IN", reads=True)],
    *,
    after: Annotated[
        opt.File | None, opt.Option("The same vectors after debiasing.", metavar="OUT", reads=True)
    ] = None,
    definitional: opt.Definitional = None,
    equalize: opt.Equalize = None,
    specific: opt.Specific = None,
    learn_specific: opt.LearnSpecific = False,
    words: Annotated[
        str | Sequence[str] | None,
        opt.Option("Words whose nearest words to show, separated by spaces.", metavar="WORDS", panel="Output"),
    ] = None,
    analogies: Annotated[
        Sequence[tuple[str, str, str]] | None,
        opt.Option("A is to B as C is to? Repeatable.", flag="--analogy", metavar="A:B::C", typed=list, panel="Output"),
    ] = None,
    limit: opt.Limit = None,
    settings: EvaluationSettings | None = None,
) -> BiasAudit:
    """Measure the bias of word vectors, and what debiasing leaves.

    ``vectors``, ``after``: see :func:`~evenrank.search.embeddings.read_vectors`; ``limit``: only their first words.
    ``definitional``, ``equalize``, ``specific``: JSON files that replace the built-in sets; ``learn_specific``: also
    learn specific words from them. ``words``, ``analogies``, ``settings`` and the errors: see
    :func:`~evenrank.search.embeddings.evaluate_bias`; also raises InputError for a file that cannot be read.
    """
    settings = EvaluationSettings() if settings is None else settings
    made = Provenance("evenrank embeddings").add("vectors", vectors, tree=True).add("after", after, tree=True)
    made.add("definitional", definitional).add("equalize", equalize).add("specific", specific).ahead()
    sets = load_word_sets(definitional, equalize, specific)
    given = read_vectors(vectors, limit=limit, mmap=True)
    kept = choose_specific(given, sets, learn=learn_specific, seed=settings.seed)
    evaluation = evaluate_bias(
        given,
        None if after is None else read_vectors(after, limit=limit, mmap=True),
        replace(sets, specific=kept.all),
        words=words,
        analogies=analogies,
        settings=settings,
    )
    files = {
        "vectors": vectors,
        "after": after,
        "definitional": definitional,
        "equalize": equalize,
        "specific": specific,
    }
    asked: dict[str, object] = {name: None if path is None else os.fspath(path) for name, path in files.items()}
    asked |= {"learn_specific": learn_specific, "limit": limit}
    after_name = None if after is None else Path(after).name
    return BiasAudit(Path(vectors).name, after_name, evaluation, kept, asked, provenance=made)


@checked
def parse_analogy(text: str) -> tuple[str, str, str]:
    """``A:B::C`` as (A, B, C). Raises EvenrankError for anything else."""
    pair, _, c = text.partition("::")
    a, _, b = pair.partition(":")
    if not (a and b and c) or ":" in b + c:
        raise EvenrankError(f"`analogies`: expected A:B::C, found {quoted(text)}")
    return a, b, c
