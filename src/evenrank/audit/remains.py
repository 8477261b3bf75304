"""What bias remains in word vectors, as tables and a page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from evenrank.embeddings.associations import Association
from evenrank.embeddings.remains import Analogy, Remains, State

from .report._format import NONE, number, p_value
from .report.plain import COLOURS, Drawing, PlainPage, PlainTable, specification

_SOURCE = (
    "Direct bias: Bolukbasi et al., NeurIPS 2016. Recovery: Gonen & Goldberg, NAACL 2019. Association tests: Caliskan "
    "et al., Science 2017. Analogies: Nissim et al., Computational Linguistics 2020."
)


def remains_page(found: Remains, name: str, after: str | None = None) -> PlainPage:
    """The figures and charts of what remains; ``name`` and ``after`` say whose vectors they are."""
    settings = found.settings
    states = [("before", found.before)] + ([] if found.after is None else [("after", found.after)])
    heads = tuple(head for head, _ in states)
    tables = [_figures(states, heads), _associations(states), *_neighbours(states), *_analogies(states, heads)]
    facts = (
        ("words", f"{settings['words']:,}"),
        ("dimensions", f"{settings['dimensions']}"),
        ("neutral words", f"{settings['neutral']:,}"),
        ("most biased words a side", f"{settings['most_biased']}"),
    )
    title = f"Bias of {name}" if after is None else f"Bias of {name}, and what remains in {after}"
    notes = [
        "The bias direction is the first component of the definitional sets before debiasing, for both columns. It "
        f"holds {settings['explained']:.0%} of the variance within them.",
        "Direct bias: the mean of |cos| with that direction. Near 0 it says only that this direction is gone.",
        f"Recovery: the {settings['most_biased']} neutral words on each side with the largest cosine before debiasing. "
        "k-means: the share of them in the cluster of their side. SVMs: trained on "
        f"{settings['train']} words of each side, tested on the others, mean of {settings['splits']} draws by seed "
        f"{settings['seed']} (standard deviation). Chance is 0.5; far above it, the bias is still there to be found.",
        "A linear SVM below 0.5 after LEACE that was fitted on these words: where the means of both sides are equal "
        "over all words, what the words trained on lean to, the others lean away from.",
        "Association tests: d is the effect size, p one-sided, that words of the first kind are no nearer to the first "
        "attribute than those of the second.",
        "Analogies leave out the three words asked with (usual), or not (free). Robust: asked the other way round, the "
        "third word comes back.",
        *found.notes,
    ]
    lacking = sorted({word for test in found.before.associations for word in test.missing})
    if lacking:
        notes.append(f"Words of the association tests without a vector: {', '.join(lacking)}.")
    drawings = (_scatter(found),) if len(found.most[0]) else ()
    return PlainPage("embeddings audit", title, _SOURCE, facts, tuple(tables), drawings, tuple(notes))


def _figures(states: list[tuple[str, State]], heads: tuple[str, ...]) -> PlainTable:
    def row(what: str, of: Callable[[State], str]) -> tuple[str, ...]:
        return (what, *(of(state) for _, state in states))

    def of_recovery(key: str, spread: str | None = None) -> Callable[[State], str]:
        def text(state: State) -> str:
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
    return PlainTable("Bias", ("figure", *heads), rows)


def _associations(states: list[tuple[str, State]]) -> PlainTable:
    def cells(test: Association) -> tuple[str, str]:
        return number(test.effect, 2), p_value(test.p)

    rows = tuple(
        (tests[0].name, *(cell for test in tests for cell in cells(test)))
        for tests in zip(*(state.associations for _, state in states), strict=True)
    )
    sampled = any(not test.exact and test.p is not None for _, state in states for test in state.associations)
    note = ("p over all partitions.",) if not sampled else ("p over random partitions where there are too many.",)
    heads = tuple(f"{what} {head}" for head, _ in states for what in ("d", "p"))
    return PlainTable("Association tests", ("test", *heads), rows, note)


def _neighbours(states: list[tuple[str, State]]) -> list[PlainTable]:
    rows = []
    for word in states[0][1].neighbours:
        for head, state in states:
            near = state.neighbours[word]
            rows.append((word, head, NONE if near is None else ", ".join(other for other, _ in near)))
    return [PlainTable("Nearest words", ("word", "", "nearest"), tuple(rows), left=3)] if rows else []


def _analogies(states: list[tuple[str, State]], heads: tuple[str, ...]) -> list[PlainTable]:
    def cells(found: Analogy) -> tuple[str, str, str]:
        robust = {True: "yes", False: "no", None: NONE}[found.robust]
        return found.constrained or NONE, found.free or NONE, robust

    columns = tuple(f"{what} {head}".strip() for head in heads for what in ("usual", "free", "robust"))
    rows = tuple(
        (f"{of[0].a} : {of[0].b} :: {of[0].c} : ?", *(cell for found in of for cell in cells(found)))
        for of in zip(*(state.analogies for _, state in states), strict=True)
    )
    return [PlainTable("Analogies", ("question", *columns), rows, left=1 + len(columns))] if rows else []


def _scatter(found: Remains) -> Drawing:
    """The most biased words on the first two principal components, a panel a state."""
    import altair as alt

    words = [word for side in found.most for word in side]
    # Each side by the name of its most biased words: nothing else says which group it is.
    names = ["like " + ", ".join(side[:3]) for side in found.most]
    if names[0] == names[1]:
        names = ["first group", "second group"]
    side = [names[0]] * len(found.most[0]) + [names[1]] * len(found.most[1])
    rows: list[dict[str, Any]] = []
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
        "A point a word, a colour a side. Colours that still lie apart after debiasing: the bias can still be found.",
    )
