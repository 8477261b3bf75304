"""Position sensitivity as tables, charts and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evenrank.reports.format import interval, number, p_value
from evenrank.reports.page import COLOURS, Drawing, Page, Table, specification

from .buckets import Buckets
from .sensitivity_result import MEASURE, RotationCurves, SensitivityResult
from .sensitivity_summary import with_interval

_SOURCE = "Position sensitivity; rotation as in Hofstätter et al., ECIR 2021"


def sensitivity_page(result: SensitivityResult) -> Page:
    """All figures of a result as a page."""
    tables = [
        _bucket_table("Effectiveness by fifths of the passage", result.relative, "{:.1f}", 1, "passage"),
        _bucket_table("Effectiveness by words before the answer", result.tokens, "{:,.0f}", 100, "100 words"),
    ]
    charts = [
        _bucket_chart("Fifths", "by fifths of the passage", result.relative),
        _bucket_chart("Words", "by words before the answer", result.tokens),
    ]
    if result.moved is not None:
        tables.append(_rotation_table(result.moved))
        charts += _rotation_charts(result.moved)
    return Page(
        "position sensitivity",
        f"Position sensitivity of {result.name}",
        _SOURCE,
        _facts(result),
        tuple(tables),
        tuple(charts),
        (*_notes(result), *result.notes),
        result.summary(),
    )


def _facts(result: SensitivityResult) -> tuple[tuple[str, str], ...]:
    drawn = ("queries", f"{result.queries:,}")
    if result.sampled_from is not None:
        drawn = ("queries drawn", f"{result.queries:,} of {result.sampled_from:,}")
    counts = (
        ("queries missing from the run, counted as 0", result.absent),
        ("queries without a located answer, left out", result.without_answer),
        ("queries without other candidates, left out", result.without_candidates),
        ("relevant passages added to the candidates", result.added),
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
        "Index: 1 − min/max of the buckets' means. Noise alone makes it positive: compare it with its mean over"
        " shuffled positions, and see p.",
        "Slope: least squares of a query's value on the position; below 0: early answers do better.",
        f"The unit of intervals and of p is the passage ({result.passages:,} of them), with all its queries: the"
        " bootstrap draws whole passages; a shuffle assigns the values of one passage's queries to another passage.",
        "By words: ranges with about equal numbers of answers.",
        "Passages with early and with late answers can differ in other ways: only rotating the same passage shows the"
        " effect of the position itself.",
    ]
    if result.sampled_from is not None:
        notes.append(f"All figures are of the {result.queries:,} queries drawn, not of all.")
    if result.added:
        notes.append(
            f"{result.added:,} relevant passages were not among the candidates and were ranked with them:"
            f" {MEASURE} here does not show what the first stage misses."
        )
    if result.moved is not None:
        notes.append(
            "The same passage: its words rotated so that the answer begins at the first position, the last possible"
            " one, and between (at the last one, the text that followed the answer comes first, so a ranker that reads"
            " only the beginning still sees the answer's context); rank among the query's other candidates. Whole: only"
            " queries whose answer is read whole at every position. Slope: from the first position to the last; its p"
            " flips the signs of whole passages."
        )
    return notes


def _bucket_table(title: str, found: Buckets, form: str, scale: float, unit: str) -> Table:
    """The non-empty buckets; ``scale`` positions are a ``unit``."""
    ends = [*found.starts[1:], math.inf if found.end is None else found.end]
    shown = [
        (form.format(low), form.format(high), n, mean, ci)
        for low, high, n, mean, ci in zip(found.starts, ends, found.n, found.means, found.ci95, strict=True)
    ]
    rows = tuple(
        (low, high, f"{n:,}", number(float(mean), 4), "one passage" if ci is None else interval(ci, 4))
        for low, high, n, mean, ci in shown
        if n
    )
    empty = [f"{low}–{high}" for low, high, n, _, _ in shown if not n]
    notes = [f"No answer begins in {', '.join(empty)}."] if empty else []
    notes += _bucket_notes(found, len(rows), scale, unit)
    return Table(title, ("from", "to below", "queries", MEASURE, "95% interval"), rows, tuple(notes), left=2)


def _bucket_notes(found: Buckets, filled: int, scale: float, unit: str) -> list[str]:
    """Index and slope, or why there is none; ``filled``: the number of non-empty buckets."""
    alone = "" if found.units > 1 else " (one passage: no interval, no p)"
    if math.isnan(found.index):
        why = "all answers are in one range" if filled == 1 else f"no query has a positive {MEASURE}"
        index = f"No index: {why}."
    else:
        tested = f" {interval(found.index_ci95, 4)}; shuffled {number(found.null, 4)}, p {p_value(found.p)}"
        index = f"Index {number(found.index, 4)}{alone or tested}."
    if math.isnan(found.slope):
        return [index, "No slope: all answers are at the same position."]
    ci = None if found.slope_ci95 is None else (found.slope_ci95[0] * scale, found.slope_ci95[1] * scale)
    tested = f", {interval(ci, 4)}, p {p_value(found.slope_p)}"
    return [index, f"Slope {number(found.slope * scale, 4)} per {unit}{alone or tested}."]


def _rotation_table(moved: RotationCurves) -> Table:
    # If none or all of the answers are read whole everywhere, their columns would add nothing.
    partly = 0 < moved.kept_rank.n < moved.rank.n
    curves = [("score", moved.score), ("rank", moved.rank), *([("rank, whole", moved.kept_rank)] if partly else [])]
    rows = []
    for i, place in enumerate(moved.score.places):
        cells = [f"{place:.2f}"]
        for _, curve in curves:
            ci = curve.ci95[i]
            cells += [number(float(curve.means[i]), 4), "one passage" if ci is None else interval(ci, 4)]
        rows.append((*cells, *(() if moved.cut is None else (f"{moved.cut[i]:,}",))))
    heads = ["position", *(head for name, _ in curves for head in (name, "95%"))]
    heads += [] if moved.cut is None else ["answers cut"]
    slopes = [("score", moved.score), ("rank", moved.rank)]
    slopes += [("score, whole", moved.kept_score), ("rank, whole", moved.kept_rank)] if partly else []
    notes = [
        f"Slope of the {name}: {number(curve.slope, 4)} {with_interval(curve.slope_ci95, curve.slope_p)},"
        f" {curve.n:,} queries."
        for name, curve in slopes
    ]
    if not moved.kept_rank.n:
        notes.append("No answer is read whole at every position.")
    return Table("The same passage, its answer at each position", tuple(heads), tuple(rows), tuple(notes))


def _bucket_chart(name: str, by: str, found: Buckets) -> Drawing:
    rows = [
        {"x": low, "value": mean, "low": ci[0], "high": ci[1], "n": int(n), "queries": "all queries"}
        for low, n, mean, ci in zip(found.starts, found.n, found.means.tolist(), found.ci95, strict=True)
        if ci is not None and not math.isnan(mean)
    ]
    return Drawing(
        name,
        f"{MEASURE} {by} (each point: from here to the next)",
        _chart(rows, "position of the answer", MEASURE),
        "95% intervals; queries of one passage are drawn together.",
    )


def _rotation_charts(moved: RotationCurves) -> list[Drawing]:
    charts = []
    for name, curves in (("Score", (moved.score, moved.kept_score)), ("Rank", (moved.rank, moved.kept_rank))):
        rows = []
        for queries, curve in zip(("all queries", "answer read whole at every position"), curves, strict=True):
            if curve.n == curves[0].n and curve is not curves[0]:
                continue
            for place, mean, ci in zip(curve.places.tolist(), curve.means.tolist(), curve.ci95, strict=True):
                if ci is not None and not math.isnan(mean):
                    interval_ends = {"low": ci[0], "high": ci[1]}
                    rows.append({"x": place, "value": mean, **interval_ends, "n": curve.n, "queries": queries})
        title = f"{name} of the same passage by the position of its answer"
        chart = _chart(rows, "position of the answer (0 first, 1 last)", name.lower())
        charts.append(Drawing(name, title, chart))
    return charts


def _chart(rows: Sequence[Mapping[str, float | str]], x: str, y: str) -> dict[str, object]:
    import altair as alt

    data = alt.Chart(alt.Data(values=[dict(row) for row in rows]))
    across = alt.X("x:Q", title=x)
    scale = alt.Scale(zero=False)
    tips = [alt.Tooltip("x:Q", title=x), alt.Tooltip("value:Q", title=y, format=".4f"), alt.Tooltip("n:Q")]
    colour = alt.Color("queries:N", title=None, scale=alt.Scale(range=COLOURS[:2]))
    line = data.mark_line(point=True).encode(
        x=across, y=alt.Y("value:Q", title=y, scale=scale), color=colour, tooltip=tips
    )
    band = data.mark_rule(opacity=0.5).encode(
        x=across, y=alt.Y("low:Q", title=y, scale=scale), y2="high:Q", color=colour
    )
    return specification(alt.layer(band, line).properties(width=780, height=300))
