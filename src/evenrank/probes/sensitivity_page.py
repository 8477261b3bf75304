"""What the position sensitivity of a ranker shows: its findings, tables and charts."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenrank.files.wording import counted
from evenrank.results.finding import Finding, Place, phrases
from evenrank.results.page import COLOURS, Drawing, Page, Section, specification
from evenrank.results.table import COUNT, Column, Table, digits, intervals, number, p_value, short_intervals, shorts
from evenrank.stats.compare import Comparison

from .position_curve import PositionCurve

if TYPE_CHECKING:
    from .sensitivity import Curves, MovedAnswers, SensitivityResult

MEASURE = "nDCG@10"


def sensitivity_findings(result: SensitivityResult) -> Iterator[Finding]:
    """Whether answers at late places rank lower, those at the ends higher, and what truncation has to do with it."""
    moved = result.moved
    if moved is None:
        counts = counted(result.unmovable, "query")
        yield _PHRASES.finding("unmoved", result.name, "cannot be told", None, "answer", count=counts)
        return
    yield from _preference(result.name, moved)
    yield _PHRASES.finding("effectiveness", value=result.value)
    yield from _truncation(moved, result.cut)


def _preference(name: str, moved: MovedAnswers) -> Iterator[Finding]:
    """What moving the answer's sentence does to the score beyond moving another one."""
    score = moved.score.difference
    if not score.n:
        yield _PHRASES.finding("no_scores", name, "cannot be told", None, "answer")
        return
    first, both = score.first_last, score.ends_middle
    # Of places, the change is said from the first to the last.
    change = first.negated()
    values: dict[str, Any] = {"change": change, "noticed": first.mde, "why": first.reason}
    yield _PHRASES.finding(_key(first, _OF_PLACES), name, first.verdict, change, "answer", **values)
    # Where one end alone differs from the middle, first and last differ, which is said.
    only_one = not both.shown and any(end.shown for end in score.ends)
    if not only_one and (first.reason is None or first.reason != both.reason):
        place: Place = "answer" if both.shown else "finding"
        values = {"change": both, "noticed": both.mde, "why": both.reason}
        yield _PHRASES.finding(_key(both, _OF_ENDS), "", both.verdict, both, place, **values)


_OF_PLACES = ("later_lower", "later_higher", "untold", "no_difference", "unchanged")
_OF_ENDS = ("ends_higher", "ends_lower", "ends_untold", "ends_alike", "ends_unchanged")


def _key(found: Comparison, keys: tuple[str, str, str, str, str]) -> str:
    """The key of what is found: above 0, below 0, untold, not shown, or no change at all."""
    above, below, untold, alike, unchanged = keys
    if found.shown:
        return above if (found.mean or 0.0) > 0 else below
    if found.reason is not None:
        return untold
    return alike if found.mde else unchanged


def _truncation(moved: MovedAnswers, cut: int | None) -> Iterator[Finding]:
    """The effect of truncation on the answers."""
    if moved.cut is None or cut is None:
        yield _PHRASES.finding("reads_unknown", level="cannot be told", place="warning")
        return
    if not moved.cut.any():
        yield _PHRASES.finding("reads_all")
        return
    curve = moved.kept.difference
    values: dict[str, Any] = {"cut": int(moved.cut.max()), "count": moved.queries, "whole": curve.n}
    first = curve.first_last if curve.n else None
    if first is None or first.reason is not None or first.mean is None:
        yield _PHRASES.finding("cut_off_untold", level="cannot be told", place="warning", **values)
        return
    change = first.negated()
    key = "cut_off" if first.shown else "cut_off_alike"
    yield _PHRASES.finding(key, "", first.verdict, change, "warning", change=change, **values)


_PHRASES = phrases("position")
_ENDS = short_intervals(2, sign=True)
_SCORE = "score (sd of the candidates)"


def sensitivity_page(result: SensitivityResult) -> Page:
    """All figures of a result as a page."""
    moved = result.moved
    scored = moved is not None and moved.score.difference.n > 0
    sections: tuple[Section, ...] = ()
    if moved is not None:
        sections = (Section("Score by place", (_moved_table(moved),), functools.partial(_moved_chart, moved.score)),)
    return Page(
        "position sensitivity",
        f"Position sensitivity of {result.name}",
        tuple(sensitivity_findings(result)),
        _short(moved) if moved is not None and scored else None,
        ("change of the score (sd of the candidates) with the sentence moved to a place, from 0 (first) to 1 (last)",)
        * scored,
        counted(result.queries, "query"),
        sections=sections,
        facts=_facts(result),
        notes=(*_notes(result), *result.notes),
        provenance=result.provenance,
    )


def _curves(found: Curves) -> tuple[tuple[str, str, PositionCurve], ...]:
    """Key, name and curve of each."""
    return (
        ("answer", "answer's sentence", found.answer),
        ("control", "another sentence", found.control),
        ("difference", "difference", found.difference),
    )


def _short(moved: MovedAnswers) -> Table:
    """The change of the score by place."""
    columns = [Column("place", shorts(2), of=lambda place: float(moved.score.answer.places[place]))]
    for key, heading, curve in _curves(moved.score):
        columns.append(Column(key, shorts(2, sign=True), heading, functools.partial(_mean_at, curve)))
    ends = moved.score.difference.ci95
    columns.append(Column(("low", "high"), _ENDS, "", lambda place: ends[place]))
    cut = moved.cut
    if cut is not None and cut.any():
        columns.append(Column("cut", COUNT, "answers cut", lambda place: int(cut[place])))
    return Table("Score by place", tuple(columns), range(len(moved.score.answer.places)))


def _mean_at(curve: PositionCurve, place: int) -> float:
    return float(curve.means[place])


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
        f"The unit of intervals and of p is the passage ({result.passages:,} of them), with all its queries. p of"
        " first − last and ends − middle (of which both ends have to be on the same side): t and Hall's t,"
        " Holm-corrected over the two.",
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
            " moved to the same places but the answer's, which stays where it is. Difference: answer's minus the"
            " other, within queries. Score: change from the passage as it is, in standard deviations of the query's"
            " candidates."
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


def _moved_table(moved: MovedAnswers) -> Table:
    curves, cut = moved.score, moved.cut
    columns = [Column("place", digits(2), of=lambda place: float(curves.answer.places[place]))]
    for key, heading, curve in _curves(curves):
        columns += _curve_columns(key, heading, curve)
    if cut is not None:
        columns.append(Column("cut", COUNT, "answers cut", lambda place: int(cut[place])))
    notes = [f"{name.capitalize()}: {_contrasts(curve)}." for _, name, curve in _curves(curves)]
    return Table(f"Moved: {_SCORE}", tuple(columns), range(len(curves.answer.places)), tuple(reversed(notes)))


def _curve_columns(key: str, heading: str, curve: PositionCurve) -> tuple[Column, Column]:
    """The columns of the means by place, and of their intervals."""
    return (
        Column(key, digits(4), heading, lambda place: _defined(float(curve.means[place]))),
        Column((f"{key}_low", f"{key}_high"), intervals(4), "95%", lambda place: curve.ci95[place] or "one passage"),
    )


def _defined(mean: float) -> float | str:
    return "no value" if math.isnan(mean) else mean


def _contrasts(curve: PositionCurve) -> str:
    named = (("first − last", curve.first_last), ("ends − middle", curve.ends_middle))
    parts = [f"{name} {_figure(contrast)}" for name, contrast in named]
    return f"{'; '.join(parts)}, {counted(curve.n, 'query')}"


def _figure(found: Comparison) -> str:
    if found.mean is None:
        return f"({found.reason})"
    p = found.p if found.holm_p is None else found.holm_p
    between = (
        "no interval" if found.ci95 is None else "95% interval {} to {}".format(*(number(end, 4) for end in found.ci95))
    )
    return f"{number(found.mean, 4)} ({between}, {'no p' if p is None else f'p {p_value(p)}'})"


def _moved_chart(found: Curves) -> list[Drawing]:
    """The curves of the score."""
    rows = [
        {"x": x, "value": mean, "low": ci[0], "high": ci[1], "n": curve.n, "queries": series}
        for _, series, curve in _curves(found)
        for x, mean, ci in zip(curve.places.tolist(), curve.means.tolist(), curve.ci95, strict=True)
        if ci is not None and not math.isnan(mean)
    ]
    title = "Score (sd of the candidates) of the same passage by the place of a sentence"
    return [Drawing("score", title, _chart(rows, "place (0 first, 1 last)", _SCORE))]


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
