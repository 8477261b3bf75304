"""Evaluation of a file of word vectors: the call behind ``evenrank embeddings audit``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated

from evenrank import options as opt
from evenrank.io import EvenrankError, Provenance
from evenrank.io.arguments import checked
from evenrank.io.errors import quoted
from evenrank.io.json_values import INLINE, LEFT_OUT
from evenrank.results.finding import Finding, phrases
from evenrank.results.format import P, digits, short, shorts
from evenrank.results.page import COLOURS, Drawing, Page, Section, specification
from evenrank.results.result import Result
from evenrank.results.table import Column, Table

from .debias import SpecificWords, choose_specific
from .evaluation import Analogy, BiasEvaluation, BiasFigures, EvaluationSettings, evaluate_bias
from .vectors import read_vectors
from .word_sets import load_word_sets

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
    return BiasAudit(Path(vectors).name, after_name, evaluation, kept, asked, provenance=made)


@checked
def parse_analogy(text: str) -> tuple[str, str, str]:
    """``A:B::C`` as (A, B, C). Raises EvenrankError for anything else."""
    pair, _, c = text.partition("::")
    a, _, b = pair.partition(":")
    if not (a and b and c) or ":" in b + c:
        raise EvenrankError(f"`analogies`: expected A:B::C, found {quoted(text)}")
    return a, b, c
