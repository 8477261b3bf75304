"""What remains of the bias of word vectors: recovery of the groups, and analogies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np

from evenrank import options as opt
from evenrank.files import EvenrankError, MissingExtraError
from evenrank.files.arguments import checked, seed_32
from evenrank.files.errors import arg, quoted
from evenrank.files.json_values import INLINE, LEFT_OUT, named
from evenrank.models.vectors import Doubles, Flags, Integers, Vectors, read_vectors, row_numbers, unit_rows
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import Page, Section
from evenrank.results.result import Result
from evenrank.results.table import Column, Table, short, shorts

from .debias import Subspace, bias_subspace, specific_words
from .debias_file import noted_inputs
from .expansion import nearest_rows
from .word_sets import WordSets, gender_en, load_word_sets


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
        point = unit_rows((u[1] - u[0] + u[2])[None]).astype(np.float32)
        rows = nearest_rows(vectors.matrix, point, 4, "cosine")[1].tolist()
        return rows[0], next((row for row in rows if row not in (a, b, c)), -1)

    first, second, third = row_of[a], row_of[b], row_of[c]
    if len(vectors.words) <= len({first, second, third}):
        return Analogy(a, b, c, None, None, None)
    free, answer = answers(first, second, third)
    back = answers(second, first, answer)[1]
    return Analogy(a, b, c, vectors.words[free], vectors.words[answer], back == third)


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
    vectors: Vectors,
    sides: tuple[Integers, Integers],
    *,
    train: Annotated[int, opt.COUNT] = 200,
    splits: Annotated[int, opt.COUNT] = 10,
    seed: Annotated[int, opt.SEED] = 0,
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
    by_kernel: dict[str, list[Doubles]] = {"linear": [], "rbf": []}
    for _ in range(splits):
        drawn = np.concatenate([rng.permutation(np.flatnonzero(side_of == side))[:per_side] for side in (0, 1)])
        test = np.ones(len(rows), np.bool_)
        test[drawn] = False
        for kernel, scores in by_kernel.items():
            svm = SVC(kernel=kernel, C=1.0, gamma="scale", random_state=seed_32(seed)).fit(rows[drawn], side_of[drawn])
            scores.append(np.where(test, svm.predict(rows) == side_of, np.nan))
    of_split = {kernel: np.nanmean(scores, axis=1) for kernel, scores in by_kernel.items()}
    spread = {kernel: float(of_split[kernel].std(ddof=1)) if splits > 1 else 0.0 for kernel in by_kernel}
    means = {kernel: float(of_split[kernel].mean()) for kernel in by_kernel}
    tested = len(rows) - 2 * per_side
    of_word = {"kmeans": right.astype(np.float64)}
    for kernel, scores in by_kernel.items():
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
    see :func:`evenrank.search.embeddings_audit.recovery`; ``seed``: of all that is random. Raises EvenrankError for a
    value out of range.
    """

    count: Annotated[
        int,
        opt.Option(
            "Number of most biased words per side.", range=opt.COUNT, flag="--most", panel="Statistics", rare=True
        ),
    ] = 500
    train: Annotated[
        int, opt.Option("Words per side to train the SVMs on.", range=opt.COUNT, panel="Statistics", rare=True)
    ] = 200
    splits: Annotated[
        int, opt.Option("Random draws of the training words.", range=opt.COUNT, panel="Statistics", rare=True)
    ] = 10
    first: Annotated[
        int, opt.Option("First words to choose the most biased from.", range=opt.COUNT, panel="Statistics", rare=True)
    ] = 50_000
    seed: Annotated[int, opt.Option("Random seed.", range=opt.SEED, panel="Statistics", rare=True)] = 0


@dataclass(frozen=True, slots=True)
class BiasFigures:
    """The figures of one set of vectors; ``recovery`` is None with fewer than five biased words per side."""

    recovery: Recovery | None
    analogies: tuple[Analogy, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BiasEvaluation:
    """The figures ``before`` debiasing and, if there are vectors after it, ``after``.

    ``most``: the most biased words of each side (first and second group), by the vectors before, in descending order.
    ``settings``: the settings and the numbers of words; ``notes``: sentences on missing words.
    """

    before: BiasFigures
    after: BiasFigures | None
    most: tuple[tuple[str, ...], tuple[str, ...]] = field(metadata=named("most_biased"))
    settings: dict[str, int | float | str]
    notes: tuple[str, ...] = field(default=())

    def __repr__(self) -> str:
        states = [state.recovery for state in (self.before, self.after) if state is not None]
        recovered = " → ".join("none" if state is None else f"{state.linear:.3f}" for state in states)
        return f"BiasEvaluation(recovery {recovered})"


@checked
def most_biased(
    vectors: Vectors,
    direction: Doubles,
    neutral: Flags,
    count: Annotated[int, opt.COUNT] = 500,
    first: Annotated[int, opt.COUNT] = 50_000,
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
    analogies: Sequence[tuple[str, str, str]] | None = None,
    settings: EvaluationSettings | None = None,
) -> BiasEvaluation:
    """Measures what is left of the bias of vectors ``after`` debiasing [Gonen & Goldberg 2019].

    The bias direction is the first component of the definitional sets ``before``, for both. ``sets``: the word sets, by
    default :func:`~evenrank.search.word_sets.gender_en`; specific words and words of the equalised sets are not
    neutral. ``analogies`` (a, b, c) replace those of the sets. The most biased words are chosen ``before`` and are the
    same for both: before debiasing they are told apart by construction, in random vectors too.

    Raises EvenrankError if the two have different words or dimensions, and as
    :func:`~evenrank.search.bias_subspace` does.
    """
    settings, sets = settings or EvaluationSettings(), sets or gender_en()
    if after is not None and (after.words != before.words or after.dimensions != before.dimensions):
        raise EvenrankError("vectors before and after: expected the same words, in the same order, and dimensions")
    direction = (subspace := bias_subspace(before, sets.definitional)).basis[0]
    neutral = ~specific_words(before.words, [*sets.specific, *(word for of in sets.equalize for word in of)])
    sides = most_biased(before, direction, neutral, settings.count, settings.first)
    known = row_numbers(before.words, (word for three in sets.analogies for word in three)).keys()
    questions = [three for three in sets.analogies if known >= {*three}] if analogies is None else analogies
    recover = partial(recovery, sides=sides, train=settings.train, splits=settings.splits, seed=settings.seed)

    def figures(vectors: Vectors) -> BiasFigures:
        return BiasFigures(
            recover(vectors) if len(sides[0]) >= _LEAST else None,
            tuple(analogy(vectors, *three) for three in questions),
        )

    numbers = {
        "words": len(before.words),
        "dimensions": before.dimensions,
        "neutral": int(neutral.sum()),
        "most_biased": len(sides[0]),
        "train": min(settings.train, len(sides[0]) * 2 // 5),
        "splits": settings.splits,
        "first": settings.first,
    }
    return BiasEvaluation(
        figures(before),
        None if after is None else figures(after),
        (tuple(before.words[i] for i in sides[0]), tuple(before.words[i] for i in sides[1])),
        {**numbers, "explained": float(subspace.explained[0]), "sets": sets.name, "seed": settings.seed},
        _notes(subspace, len(sides[0]), settings.count),
    )


def _notes(subspace: Subspace, found: int, count: int) -> tuple[str, ...]:
    notes = []
    if found < count:
        notes.append(f"Only {found} words per side, not {count}: the vectors have no more biased words.")
    if subspace.missing:
        notes.append(f"Definitional words without a vector: {', '.join(subspace.missing)}.")
    return tuple(notes)


_SOURCE = "Recovery: Gonen & Goldberg, NAACL 2019. Analogies: Nissim et al., Computational Linguistics 2020."
_PHRASES = phrases("embeddings")
_States = Mapping[str, BiasFigures]
"""The figures before, and after if there are any."""


def _findings(found: BiasEvaluation) -> Iterator[Finding]:
    """Whether the bias can be recovered after debiasing."""
    if found.after is None:
        yield _PHRASES.finding("no_after", level="cannot be told", place="answer")
    elif found.after.recovery is None:
        yield _PHRASES.finding("not_recovered", level="cannot be told", place="answer")
    else:
        yield _PHRASES.finding("recovered", place="answer", share=found.after.recovery.linear)


def _figures(states: _States) -> Table | None:
    recoveries = [state.recovery for state in states.values() if state.recovery is not None]
    if not recoveries:
        return None
    rows = [
        ("recovery by k-means", *(short(r.kmeans) for r in recoveries)),
        ("recovery by a linear SVM", *(f"{short(r.linear)} ({short(r.linear_sd)})" for r in recoveries)),
        ("recovery by an RBF SVM", *(f"{short(r.rbf)} ({short(r.rbf_sd)})" for r in recoveries)),
    ]
    return Table("Bias", (Column("figure"), *(Column(head, shorts(3)) for head in states)), rows)


def _analogies(states: _States) -> Table:
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
    return Table("Analogies", tuple(columns), rows)


@dataclass(frozen=True, slots=True, repr=False)
class BiasAudit(Result):
    """The result of :func:`audit_file`; ``name`` and ``after``: the names of the files."""

    name: str = field(metadata=LEFT_OUT)
    after: str | None = field(metadata=LEFT_OUT)
    evaluation: BiasEvaluation = field(metadata=INLINE)
    settings: dict[str, object]

    def _beside(self) -> Mapping[str, object]:
        return {"settings": self.settings | self.evaluation.settings}

    def page(self) -> Page:
        """The figures as a page."""
        evaluation, settings = self.evaluation, self.evaluation.settings
        states = {"before": evaluation.before} | ({} if evaluation.after is None else {"after": evaluation.after})
        facts = (
            ("words", f"{settings['words']:,}"),
            ("dimensions", f"{settings['dimensions']}"),
            ("neutral words", f"{settings['neutral']:,}"),
            ("most biased words per side", f"{settings['most_biased']}"),
        )
        title = f"Bias of {self.name}"
        if self.after is not None:
            title += f", and of {self.after} after debiasing"
        notes = [
            "The bias direction is the first component of the definitional sets before debiasing. It explains "
            f"{settings['explained']:.0%} of the variance within them.",
            f"Recovery: the {settings['most_biased']} neutral words on each side with the largest cosine with it"
            " before debiasing, where they are therefore told apart by construction, in random vectors too. k-means:"
            " the share of them in the cluster of their side. SVMs: trained on"
            f" {settings['train']} words of each side, tested on the others, mean of {settings['splits']} draws with"
            f" seed {settings['seed']} (standard deviation). Chance is 0.5; far above it after debiasing, the bias can"
            " still be recovered.",
            "Analogies exclude the three words of the question (usual), or not (free). Robust: the reverse question "
            "returns the third word.",
            *evaluation.notes,
        ]
        return Page(
            "embeddings audit",
            title,
            tuple(_findings(evaluation)),
            _figures(states),
            aside=f"{settings['words']:,} words",
            next=(("evenrank embeddings debias", "remove it"),) if self.after is None else (),
            sections=(Section("Analogies", (_analogies(states),)),) if evaluation.before.analogies else (),
            facts=facts,
            source=_SOURCE,
            notes=tuple(notes),
            provenance=self.provenance,
        )


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
    analogies: Annotated[
        Sequence[tuple[str, str, str]] | None,
        opt.Option("A is to B as C is to? Repeatable.", flag="--analogy", metavar="A:B::C", typed=list, panel="Output"),
    ] = None,
    limit: opt.Limit = None,
    settings: EvaluationSettings | None = None,
) -> BiasAudit:
    """Measure what debiasing leaves of the bias of word vectors.

    ``vectors``, ``after``: see :func:`~evenrank.search.read_vectors`; ``limit``: only their first words.
    ``definitional``, ``equalize``, ``specific``: JSON files that replace the built-in sets. ``analogies``,
    ``settings`` and the errors: see :func:`~evenrank.search.evaluate_bias`; also raises InputError for a
    file that cannot be read.
    """
    settings = EvaluationSettings() if settings is None else settings
    provenance, files = noted_inputs(
        vectors=vectors, after=after, definitional=definitional, equalize=equalize, specific=specific
    )
    sets = load_word_sets(definitional, equalize, specific)
    space = read_vectors(vectors, limit=limit)
    evaluation = evaluate_bias(
        space,
        None if after is None else read_vectors(after, limit=limit),
        sets,
        analogies=analogies,
        settings=settings,
    )
    after_name = None if after is None else Path(after).name
    return BiasAudit(Path(vectors).name, after_name, evaluation, {**files, "limit": limit}, provenance=provenance)


@checked
def parse_analogy(text: str) -> tuple[str, str, str]:
    """``A:B::C`` as (A, B, C). Raises EvenrankError for anything else."""
    pair, _, c = text.partition("::")
    a, _, b = pair.partition(":")
    if not (a and b and c) or ":" in b + c:
        raise EvenrankError(f"{arg.analogies}: expected A:B::C, found {quoted(text)}")
    return a, b, c
