"""Evaluation of a file of word vectors: the call behind ``evenrank embeddings audit``."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from evenrank.io import EvenrankError, Provenance
from evenrank.io.errors import quoted
from evenrank.results.format import NONE, number, p_value
from evenrank.results.page import COLOURS, Drawing, Page, Table, specification
from evenrank.results.result import Result

from .debias import SpecificWords, choose_specific
from .evaluation import Analogy, Association, BiasEvaluation, BiasFigures, EvaluationSettings, evaluate_bias
from .vectors import read_vectors
from .word_sets import load_word_sets

_SOURCE = (
    "Direct bias: Bolukbasi et al., NeurIPS 2016. Recovery: Gonen & Goldberg, NAACL 2019. Association tests: Caliskan "
    "et al., Science 2017. Analogies: Nissim et al., Computational Linguistics 2020."
)


def evaluation_page(found: BiasEvaluation, name: str, after: str | None = None) -> Page:
    """The figures and charts of an evaluation; ``name`` and ``after``: the names of the vectors."""
    settings = found.settings
    states = [("before", found.before)] + ([] if found.after is None else [("after", found.after)])
    heads = tuple(head for head, _ in states)
    tables = [_figures(states, heads), _associations(states), *_neighbours(states), *_analogies(states, heads)]
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
        "After LEACE fitted on these words, a linear SVM can be below 0.5: if both sides have the same mean over all "
        "words, the words tested lean away from where the words trained on lean.",
        "Association tests: d is the effect size; p, one-sided, tests whether the first targets are nearer to the "
        "first attribute than the second targets are.",
        "Analogies exclude the three words of the question (usual), or not (free). Robust: the reverse question "
        "returns the third word.",
        *found.notes,
    ]
    lacking = sorted({word for test in found.before.associations for word in test.missing})
    if lacking:
        notes.append(f"Words of the association tests without a vector: {', '.join(lacking)}.")
    drawings = (_scatter(found),) if len(found.most[0]) else ()
    return Page("embeddings audit", title, _SOURCE, facts, tuple(tables), drawings, tuple(notes))


def _figures(states: list[tuple[str, BiasFigures]], heads: tuple[str, ...]) -> Table:
    def row(what: str, of: Callable[[BiasFigures], str]) -> tuple[str, ...]:
        return (what, *(of(state) for _, state in states))

    def of_recovery(key: str, spread: str | None = None) -> Callable[[BiasFigures], str]:
        def text(state: BiasFigures) -> str:
            if state.recovery is None:
                return NONE
            value = f"{getattr(state.recovery, key):.3f}"
            return value if spread is None else f"{value} ({getattr(state.recovery, spread):.3f})"

        return text

    rows = (
        row("direct bias, all neutral words", lambda state: number(state.direct_bias, 4)),
        row("direct bias, occupations", lambda state: number(state.direct_bias_occupations, 4)),
        row("recovery by k-means", of_recovery("kmeans")),
        row("recovery by a linear SVM", of_recovery("linear", "linear_sd")),
        row("recovery by an RBF SVM", of_recovery("rbf", "rbf_sd")),
    )
    return Table("Bias", ("figure", *heads), rows)


def _associations(states: list[tuple[str, BiasFigures]]) -> Table:
    def cells(test: Association) -> tuple[str, str]:
        return number(test.effect, 2), p_value(test.p)

    rows = tuple(
        (tests[0].name, *(cell for test in tests for cell in cells(test)))
        for tests in zip(*(state.associations for _, state in states), strict=True)
    )
    sampled = any(not test.exact and test.p is not None for _, state in states for test in state.associations)
    note = ("p over all partitions.",) if not sampled else ("p over random partitions if there are too many.",)
    heads = tuple(f"{what} {head}" for head, _ in states for what in ("d", "p"))
    return Table("Association tests", ("test", *heads), rows, note)


def _neighbours(states: list[tuple[str, BiasFigures]]) -> list[Table]:
    rows = []
    for word in states[0][1].neighbours:
        for head, state in states:
            near = state.neighbours[word]
            rows.append((word, head, NONE if near is None else ", ".join(other for other, _ in near)))
    return [Table("Nearest words", ("word", "", "nearest"), tuple(rows), left=3)] if rows else []


def _analogies(states: list[tuple[str, BiasFigures]], heads: tuple[str, ...]) -> list[Table]:
    def cells(found: Analogy) -> tuple[str, str, str]:
        robust = {True: "yes", False: "no", None: NONE}[found.robust]
        return found.constrained or NONE, found.free or NONE, robust

    columns = tuple(f"{what} {head}".strip() for head in heads for what in ("usual", "free", "robust"))
    rows = tuple(
        (f"{of[0].a} : {of[0].b} :: {of[0].c} : ?", *(cell for found in of for cell in cells(found)))
        for of in zip(*(state.analogies for _, state in states), strict=True)
    )
    return [Table("Analogies", ("question", *columns), rows, left=1 + len(columns))] if rows else []


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

    name: str
    after: str | None
    evaluation: BiasEvaluation
    specific: SpecificWords
    settings: dict[str, object]
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {**self.evaluation.to_dict(), "settings": self.settings | self.evaluation.settings}

    def page(self) -> Page:
        """The figures and charts as a page."""
        return evaluation_page(self.evaluation, self.name, self.after)


def audit_file(
    vectors: str | os.PathLike[str],
    after: str | os.PathLike[str] | None = None,
    *,
    definitional: str | os.PathLike[str] | None = None,
    equalize: str | os.PathLike[str] | None = None,
    specific: str | os.PathLike[str] | None = None,
    learn_specific: bool = False,
    words: Sequence[str] | None = None,
    analogies: Sequence[tuple[str, str, str]] | None = None,
    limit: int | None = None,
    settings: EvaluationSettings | None = None,
) -> BiasAudit:
    """Evaluates the bias of a file of word vectors, and what is left of it in the file ``after`` debiasing.

    ``vectors``, ``after``: see :func:`evenrank.embeddings.read_vectors`; ``limit``: only their first words.
    ``definitional``, ``equalize``, ``specific``: JSON files that replace the built-in sets; ``learn_specific``: also
    learn specific words from them. ``words``, ``analogies``, ``settings`` and the errors: see
    :func:`evenrank.embeddings.evaluate_bias`; also raises InputError for a file that cannot be read.
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
    return BiasAudit(Path(vectors).name, after_name, evaluation, kept, asked, made)


def parse_analogy(text: str) -> tuple[str, str, str]:
    """``A:B::C`` as (A, B, C). Raises EvenrankError for anything else."""
    pair, _, c = text.partition("::")
    a, _, b = pair.partition(":")
    if not (a and b and c) or ":" in b + c:
        raise EvenrankError(f"`analogy`: expected A:B::C, found {quoted(text)}")
    return a, b, c
