"""The page's section on the stages of a pipeline: from the collection to the last stage, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evenrank.measures import resolve
from evenrank.measures.statistics import EQUAL
from evenrank.reports.format import NONE, Interval, number, p_value, true_minus

from .findings import Findings
from .page_data import rounded
from .stage_steps import Decomposition, Step, signed, signed_interval

COLLECTION, CANDIDATES, TOTAL = "collection", "candidates", "total"
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class Fall:
    """One step of a waterfall: a figure of its own (``added`` is None), or what is added to the sum before it.

    ``total``: the sum so far; ``ci95`` and ``p``: of what is added, or of the figure.
    """

    name: str
    added: float | None
    ci95: Interval | None
    p: float | None
    total: float
    tie_added: float | None = None
    tie_sensitive: bool = False


def falls(of: Decomposition) -> list[Fall]:
    """The steps of one measure, from the collection (or the candidates where it is unknown) to the last stage."""
    candidates = f"{CANDIDATES} of {of.steps[0].stage}"
    found = [Fall(candidates, None, of.ci95, None, of.candidates)]
    if of.collection is not None and of.retrieval is not None:
        found = [Fall(COLLECTION, None, None, None, of.collection), _step(candidates, of.retrieval)]
    return [*found, *(_step(step.stage, step) for step in of.steps)]


def _step(name: str, step: Step) -> Fall:
    return Fall(name, step.added, step.ci95, step.p, step.figure, step.tie_added, step.tie_sensitive)


def stages_section(result: Findings) -> dict[str, object] | None:
    """The rows of the section's table; None unless stages were named and some measure can be taken apart."""
    if result.stages is None or not result.stages.measures:
        return None
    steps = {key: falls(of) for key, of in result.stages.measures.items()}
    every = [fall for found in steps.values() for fall in found]
    # Without ties, the two means coincide.
    tied = any(
        abs((fall.tie_added or 0.0) - (fall.added or 0.0)) > EQUAL for fall in every if fall.tie_added is not None
    )
    rows = [
        {
            "measure": key,
            "step": fall.name,
            "first": place == 0,
            "cells": [*map(true_minus, _cells(fall, tied)), f"{result.stages.measures[key].n:,}"],
            "mark": "~" if fall.tie_sensitive else "",
        }
        for key, found in steps.items()
        for place, fall in enumerate(found)
    ]
    return {
        "rows": rows,
        "columns": ["Adds", "95% interval", "p", "Sum", *["Tie mean"] * tied, "Queries"],
        "collection": any(of.collection is not None for of in result.stages.measures.values()),
        "documents": None if result.stages.documents is None else f"{result.stages.documents:,}",
        "first": result.stages.names[0],
        "last": result.stages.names[-1],
        "ties": any(fall.tie_sensitive for fall in every),
    }


def _cells(fall: Fall, tied: bool) -> list[str]:
    known = fall.added is not None
    cells = [signed(fall.added) if known else "", _ends(fall), p_value(fall.p) if known else ""]
    cells.append(number(fall.total, _DIGITS))
    return [*cells, NONE if fall.tie_added is None else signed(fall.tie_added)] if tied else cells


def _ends(fall: Fall) -> str:
    if fall.ci95 is None:
        return NONE
    ends = f"[{number(fall.ci95[0], _DIGITS)}, {number(fall.ci95[1], _DIGITS)}]"
    return signed_interval(fall.ci95) if fall.added is not None else ends


def waterfalls(result: Findings) -> dict[str, object]:
    """By the measures' places, the rows of the chart: each a bar from ``start`` to ``end`` with its interval's ends.

    A figure of its own starts at 0, or where 0 has no meaning at itself, as a line without a bar.
    """
    if result.stages is None:
        return {}
    return {
        str(place): _rows(result.stages.measures[str(measure)])
        for place, measure in enumerate(result.measures)
        if str(measure) in result.stages.measures
    }


def _rows(of: Decomposition) -> list[dict[str, object]]:
    bars = resolve(of.measure).better == "nearer zero"
    steps = falls(of)
    steps.append(Fall(TOTAL, None, None, None, of.total))
    labels = _distinct([step.name for step in steps])
    rows: list[dict[str, object]] = []
    before = 0.0
    for step, label, below in zip(steps, labels, [*labels[1:], None], strict=True):
        level = step.added is None
        start = before if not level else 0.0 if bars else step.total
        low, high = (None, None) if step.ci95 is None else step.ci95
        base = 0.0 if level else start
        rows.append(
            {
                "label": label,
                "next": below,
                "name": step.name,
                "start": rounded(start),
                "end": rounded(step.total),
                "low": None if low is None else rounded(base + low),
                "high": None if high is None else rounded(base + high),
                "added": rounded(step.added),
                "ends": [rounded(low), rounded(high)],
                "p": rounded(step.p),
                "kind": "level" if level else "up" if (step.added or 0.0) >= 0 else "down",
            }
        )
        before = step.total
    return rows


def _distinct(names: Sequence[str]) -> list[str]:
    """The names, those that are there already (a stage may be called “total”) with strokes behind them."""
    found: list[str] = []
    for name in names:
        while name in found:
            name += "′"
        found.append(name)
    return found
