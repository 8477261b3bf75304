"""Position sensitivity as tables, charts and a page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evenrank.io.wording import counted
from evenrank.reports.format import interval, number, p_value
from evenrank.reports.page import COLOURS, Drawing, Page, Table, specification

from .buckets import Buckets
from .curves import PositionCurve
from .place_blind import PlaceBlind
from .sensitivity_result import MEASURE, Comparison, MovedAnswers, SensitivityResult
from .sensitivity_summary import with_interval

_SOURCE = "Position sensitivity; buckets as in Hofstätter et al., ECIR 2021; index as in Zeng et al., EMNLP 2025"
_SCORE = "score (sd of the candidates)"
_NAMES = ("answer's sentence", "another sentence", "difference")


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
        tables = [*_moved_tables(result.moved), *tables]
        charts = [*_moved_charts(result.moved), *charts]
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
        "By fifths and by words: as the answers stand, a correlation. Passages with early and with late answers can"
        " differ in other ways; only moving the answer within its passage shows the effect of its place. Slope: least"
        " squares of a query's value on the position; below 0: early answers do better. At equal length: fitted"
        " together with the passage's words and their logarithm.",
        f"The unit of intervals and of p is the passage ({result.passages:,} of them), with all its queries. Means and"
        " indexes: bootstrap of passages. Without an effect a passage's departures from the mean could as well be the"
        " other way round: p draws their signs, passage by passage. A slope's interval leaves out 0 where p < .05.",
        "By words: ranges with about equal numbers of answers.",
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
            " stead. p of slope, first − last and ends − middle shuffles the places within passages; index of the"
            " difference: at the other sentence's mean."
        )
        notes.append(
            "No move holds fixed which sentences stand beside the answer's. A ranker that sees words across the end of"
            " a sentence can show an effect without looking at the place; scorers that cannot see places show how much."
        )
        if moved.left:
            notes.append(f"{counted(moved.left, 'query')} left out: fewer than two sentences besides the answer's.")
        if moved.unvaried:
            notes.append(f"{counted(moved.unvaried, 'query')} without score: all candidates have the same.")
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
        tested = f" {interval(found.index_ci95, 4)}; without an effect {number(found.null, 4)}, p {p_value(found.p)}"
        index = f"Index {number(found.index, 4)}{alone or tested}."
    if math.isnan(found.slope):
        return [index, "No slope: all answers are at the same position."]
    slopes = [("Slope", found.slope, found.slope_ci95, found.slope_p)]
    if not math.isnan(found.length_slope):
        slopes.append(("At equal length", found.length_slope, found.length_slope_ci95, found.length_slope_p))
    for name, slope, ci, p in slopes:
        ends = None if ci is None else (ci[0] * scale, ci[1] * scale)
        tested = f", {'no interval' if ends is None else interval(ends, 4)}, p {p_value(p)}"
        index += f"\n{name} {number(slope * scale, 4)} per {unit}{alone or tested}."
    return index.split("\n")


def _moved_tables(moved: MovedAnswers) -> list[Table]:
    cut = () if moved.cut is None else tuple(f"{count:,}" for count in moved.cut)
    compared = [one for one in moved.place_blind if one.beyond_score.n]
    return [
        _moved_table(f"Moved: {_SCORE}", moved.score, cut),
        _moved_table("Moved: rank", moved.rank, ()),
        _moved_table(f"Moved: {MEASURE}", moved.value, ()),
        *([_blind_table(compared)] if compared else []),
    ]


def _blind_table(found: Sequence[PlaceBlind]) -> Table:
    """The contrasts of the scorers that cannot see places, and the ranker's beyond them."""
    rows = []
    for one in found:
        for name, score, value in (
            (f"window of {one.window} words", one.score, one.value),
            ("the model's beyond it", one.beyond_score, one.beyond_value),
        ):
            cells = [name, f"{score.n:,}"]
            for contrast in (score.slope, score.first_last, score.ends_middle):
                ci = contrast.ci95
                cells += [number(contrast.mean, 4), "no interval" if ci is None else interval(ci, 4)]
            index = value.index
            tested = ("none", "none") if index is None else (number(index.value, 4), p_value(index.p))
            rows.append((*cells, *tested))
    heads = ("scorer", "queries", "slope", "95%", "first − last", "95%", "ends − middle", "95%", "index", "p")
    notes = (
        "Score: the most content words of the query in any window of the text. Differences to another sentence, as"
        " above: slope, first − last, ends − middle of the score (in sd of the scorer's own candidates), index of"
        f" {MEASURE}. Queries whose candidates all have one score are left out.",
        "The model's beyond it: difference of the two curves, paired within queries. A preference is reported only if"
        " it goes beyond each of these scorers.",
    )
    return Table("Scorers that cannot see places", heads, tuple(rows), notes)


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
    named = (("slope", curve.slope), ("first − last", curve.first_last), ("ends − middle", curve.ends_middle))
    parts = [f"{name} {number(one.mean, 4)} {with_interval(one.ci95, one.p)}" for name, one in named]
    index = curve.index
    if index is not None and not math.isnan(index.value):
        without = "" if index.p is None else f", without an effect {number(index.null, 4)}"
        parts.append(f"index {number(index.value, 4)}{without} {with_interval(index.ci95, index.p)}")
    return f"{'; '.join(parts)}, {counted(curve.n, 'query')}"


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
