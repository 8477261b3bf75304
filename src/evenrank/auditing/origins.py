"""The page's section on where the bias comes from: what candidates hold, and what their order adds.

What a perfect ranking of a run's own candidates would add is what the run adds minus what it has beyond relevance.
"""

from __future__ import annotations

from ir_measures import Measure

from evenrank.io.wording import counted
from evenrank.measures import is_bias
from evenrank.measures.statistics import EQUAL
from evenrank.reports.format import NONE, number, p_value, true_minus

from .excess import Excess
from .findings import Figure, Findings
from .origin_words import perfect, with_origins
from .page_data import rounded
from .stage_steps import signed, signed_interval
from .unknown_labels import only_bounds

_DIGITS = 4
_ORDER, _BEYOND = 2, 6
"""The columns of the two differences."""
_NO_SUM = (
    "No measure of bias in this audit can be taken apart like this: that takes a weighted sum over ranks, such as"
    " ARaB, FaiRR or NFaiRR."
)
_BOUNDS = (
    "Only bounds are known: where in them a figure lies is not known, and so neither is what the order of the"
    " documents adds."
)
_NO_QRELS = (
    "Without qrels it is unknown what a perfect ranking of the same candidates would add, and so is what a run has"
    " beyond relevance."
)
_NO_COMMON = "No query has both a judgement and a value, so what a perfect ranking would add is unknown."


def origins_section(result: Findings) -> dict[str, object] | None:
    """The rows of the section's table and what it says; None without a measure of bias."""
    biased = [measure for measure in result.measures if is_bias(measure)]
    if not biased:
        return None
    found = with_origins(result)
    relevance = any(run.figures[str(m)].beyond_relevance is not None for m in found for run in result.given)
    rows = [row for measure in found for row in _rows(result, str(measure), relevance)]
    return {
        "rows": rows,
        "relevance": relevance,
        "columns": _headings(relevance),
        "missing": _missing(result, found, relevance),
        "left_out": ", ".join(str(measure) for measure in biased if measure not in found) if found else "",
        "ties": any(row["ties"] for row in rows),
    }


def _missing(result: Findings, found: list[Measure], relevance: bool) -> str:
    """Why something is not known."""
    if not found:
        return _BOUNDS if only_bounds(result) else _NO_SUM
    if relevance:
        return ""
    return _NO_COMMON if result.judged else _NO_QRELS


def _headings(relevance: bool) -> list[str]:
    of_relevance = ["Perfect ranking adds", "Beyond relevance", "Interval (beyond)", "p (beyond)"] if relevance else []
    return ["Figure", "Candidates hold", "Order adds", "Interval (order)", "p (order)", *of_relevance, "Queries"]


def _rows(result: Findings, key: str, relevance: bool) -> list[dict[str, object]]:
    """A row for each run that is known to be such a sum."""
    rows: list[dict[str, object]] = []
    for run in result.given:
        figure = run.figures[key]
        added, beyond = figure.added, figure.beyond_relevance
        if added is None:
            continue
        cells = [number(added.reference + added.mean, _DIGITS), number(added.reference, _DIGITS), *_difference(added)]
        if relevance:
            cells += [signed(perfect(figure)), *(_difference(beyond) if beyond is not None else (NONE,) * 3)]
        ties = [one is not None and one.tie_sensitive for one in (added, beyond)]
        rows.append(
            {
                "measure": key,
                "run": run.name,
                "first": not rows,
                "cells": [*map(true_minus, cells), f"{added.n:,}"],
                "ties": any(ties),
                # The columns of the differences, by whether ties decide them.
                "marked": [place for place, tied in zip((_ORDER, _BEYOND), ties, strict=True) if tied],
                "tags": _tags(figure, added, beyond),
            }
        )
    return rows


def _difference(of: Excess) -> tuple[str, str, str]:
    return signed(of.mean), signed_interval(of.ci95), p_value(of.t_p)


def _tags(figure: Figure, added: Excess, beyond: Excess | None) -> dict[int, str]:
    """Remarks by column: where a figure is over fewer queries than that of the table of figures."""
    tags = {}
    if added.n != figure.n or abs(added.reference + added.mean - (figure.mean or 0.0)) > EQUAL:
        tags[0] = f"of {counted(added.n, 'query')}"
    if beyond is not None and beyond.n != added.n:
        tags[_BEYOND] = f"of {counted(beyond.n, 'query')}"
    return tags


# --- data of the chart ------------------------------------------------------------------------------------------------


def origins_chart(result: Findings) -> dict[str, object]:
    """By the measures' places: for each run its name, and its differences as (kind, mean, low, high, p)."""
    found = with_origins(result)
    return {
        str(place): [
            {"run": run.name, "marks": _marks(run.figures[str(measure)])}
            for run in result.given
            if run.figures[str(measure)].added is not None
        ]
        for place, measure in enumerate(result.measures)
        if measure in found
    }


def _marks(figure: Figure) -> list[tuple[object, ...]]:
    marks: list[tuple[object, ...]] = []
    for kind, of in (("added", figure.added), ("beyond", figure.beyond_relevance)):
        if of is not None:
            low, high = of.ci95 or (None, None)
            marks.append((kind, rounded(of.mean), rounded(low), rounded(high), rounded(of.t_p)))
    would = perfect(figure)
    if would is not None:
        marks.insert(1, ("perfect", rounded(would), None, None, None))
    return marks
