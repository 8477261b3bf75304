"""Position sensitivity as tables, charts and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evenrank.io.wording import counted
from evenrank.reports.format import interval, number
from evenrank.reports.page import COLOURS, Drawing, Page, Table, specification

from .curves import PositionCurve
from .sensitivity_result import MEASURE, Comparison, MovedAnswers, SensitivityResult
from .sensitivity_summary import with_interval

_SOURCE = "Position sensitivity; index as in Zeng et al., EMNLP 2025"
_SCORE = "score (sd of the candidates)"
_NAMES = ("answer's sentence", "another sentence", "difference")


def sensitivity_page(result: SensitivityResult) -> Page:
    """All figures of a result as a page."""
    return Page(
        "position sensitivity",
        f"Position sensitivity of {result.name}",
        _SOURCE,
        _facts(result),
        () if result.moved is None else _moved_tables(result.moved),
        () if result.moved is None else tuple(_moved_charts(result.moved)),
        (*_notes(result), *result.notes),
        result.summary(),
    )


def _facts(result: SensitivityResult) -> tuple[tuple[str, str], ...]:
    drawn = ("queries", f"{result.queries:,}")
    if result.sampled_from is not None:
        drawn = ("queries drawn", f"{result.queries:,} of {result.sampled_from:,}")
    counts = (
        ("queries without a located answer, left out", result.without_answer),
        ("queries without other candidates, left out", result.without_candidates),
        ("relevant passages added to the candidates", result.added),
        ("queries whose answer cannot be moved", result.unmovable),
    )
    cut = () if result.cut is None else (("answers not read to the end", f"{result.cut:,}"),)
    return (
        drawn,
        ("passages", f"{result.passages:,}"),
        (f"mean {MEASURE}", number(result.value, 4)),
        *((name, f"{count:,}") for name, count in counts if count),
        *cut,
    )


def _notes(result: SensitivityResult) -> list[str]:
    notes = [
        "Index: Position Sensitivity Index (Zeng et al. 2025), 1 − min/max of the means. Noise alone makes it positive:"
        " compare it with its mean under no effect, and see p.",
        f"The unit of intervals and of p is the passage ({result.passages:,} of them), with all its queries. Means and"
        " indexes: bootstrap of passages. Without an effect a passage's departures from the mean could as well be the"
        " other way round: p of the index draws their signs, passage by passage. A contrast's interval leaves out 0"
        " where p < .05.",
    ]
    if result.sampled_from is not None:
        notes.append(f"All figures are of the {result.queries:,} queries drawn, not of all.")
    if result.added:
        notes.append(
            f"{result.added:,} relevant passages were not among the candidates and were ranked with them:"
            f" {MEASURE} here does not show what the first stage misses."
        )
    moved = result.moved
    if moved is not None:
        notes.append(
            "Moved: the sentence with the answer as a whole, to places from first (0) to last (1), each the nearest"
            " boundary of sentences (the mean of two that are equally near). Another sentence: the nearest in length,"
            " moved to the same places; the answer's moves with it by one sentence at most. Difference: answer's minus"
            " the other, within queries. Score: change from the passage as it is, in standard deviations of the query's"
            f" candidates; rank among the query's other candidates; {MEASURE} with the moved text in the passage's"
            " stead. p of first − last and ends − middle shuffles the places within passages; index of the"
            " difference: at the other sentence's mean."
        )
        notes.append(
            "No move holds fixed which sentences stand beside the answer's. A ranker that sees words across the end of"
            " a sentence can show an effect without looking at the place."
        )
        if moved.left:
            notes.append(f"{counted(moved.left, 'query')} left out: fewer than two sentences besides the answer's.")
        if moved.unvaried:
            notes.append(f"{counted(moved.unvaried, 'query')} without score: all candidates have the same.")
    return notes


def _moved_tables(moved: MovedAnswers) -> tuple[Table, ...]:
    cut = () if moved.cut is None else tuple(f"{count:,}" for count in moved.cut)
    return (
        _moved_table(f"Moved: {_SCORE}", moved.score, cut),
        _moved_table("Moved: rank", moved.rank, ()),
        _moved_table(f"Moved: {MEASURE}", moved.value, ()),
    )


def _moved_table(title: str, found: Comparison, cut: tuple[str, ...]) -> Table:
    curves = (found.answer, found.control, found.difference)
    rows = []
    for i, place in enumerate(found.answer.places):
        cells = [f"{place:.2f}"]
        for curve in curves:
            ci = curve.ci95[i]
            cells += [number(float(curve.means[i]), 4), "one passage" if ci is None else interval(ci, 4)]
        rows.append((*cells, *cut[i : i + 1]))
    heads = ["place", *(head for name in _NAMES for head in (name, "95%")), *(["answers cut"] if cut else [])]
    notes = [f"{name.capitalize()}: {_contrasts(curve)}." for name, curve in zip(_NAMES, curves, strict=True)]
    return Table(title, tuple(heads), tuple(rows), tuple(reversed(notes)))


def _contrasts(curve: PositionCurve) -> str:
    named = (("first − last", curve.first_last), ("ends − middle", curve.ends_middle))
    parts = [f"{name} {number(one.mean, 4)} {with_interval(one.ci95, one.p)}" for name, one in named]
    index = curve.index
    if index is not None and not math.isnan(index.value):
        without = "" if index.p is None else f", without an effect {number(index.null, 4)}"
        parts.append(f"index {number(index.value, 4)}{without} {with_interval(index.ci95, index.p)}")
    return f"{'; '.join(parts)}, {counted(curve.n, 'query')}"


def _moved_charts(moved: MovedAnswers) -> list[Drawing]:
    charts = []
    for name, found in ((_SCORE, moved.score), ("rank", moved.rank), (MEASURE, moved.value)):
        # Beside ranks and effectiveness the difference is drawn at the control's level, which the score has at 0.
        level = 0.0 if found is moved.score else float(found.control.means.mean())
        curves = zip(_NAMES, (found.answer, found.control, found.difference), (0.0, 0.0, level), strict=True)
        rows = [
            {"x": place, "value": mean + up, "low": ci[0] + up, "high": ci[1] + up, "n": curve.n, "queries": series}
            for series, curve, up in curves
            for place, mean, ci in zip(curve.places.tolist(), curve.means.tolist(), curve.ci95, strict=True)
            if ci is not None and not math.isnan(mean)
        ]
        title = f"{name[0].upper()}{name[1:]} of the same passage by the place of a sentence"
        hint = "" if found is moved.score else "Difference: answer's minus another sentence, at the latter's mean."
        charts.append(Drawing(name.split()[0], title, _chart(rows, "place (0 first, 1 last)", name), hint))
    return charts


def _chart(rows: Sequence[Mapping[str, float | str]], x: str, y: str) -> dict[str, object]:
    import altair as alt

    data = alt.Chart(alt.Data(values=[dict(row) for row in rows]))
    across = alt.X("x:Q", title=x)
    scale = alt.Scale(zero=False)
    tips = [alt.Tooltip("x:Q", title=x), alt.Tooltip("value:Q", title=y, format=".4f"), alt.Tooltip("n:Q")]
    colour = alt.Color("queries:N", title=None, scale=alt.Scale(range=COLOURS[:3]), sort=None)
    line = data.mark_line(point=True).encode(
        x=across, y=alt.Y("value:Q", title=y, scale=scale), color=colour, tooltip=tips
    )
    band = data.mark_rule(opacity=0.5).encode(
        x=across, y=alt.Y("low:Q", title=y, scale=scale), y2="high:Q", color=colour
    )
    return specification(alt.layer(band, line).properties(width=780, height=300))
