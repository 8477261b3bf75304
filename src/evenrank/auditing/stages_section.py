"""The page's section on the stages of a pipeline: from the collection to the last stage, step by step."""

from __future__ import annotations

from dataclasses import dataclass

from evenrank.measures.inference import EQUAL
from evenrank.results.format import NONE, Interval, number, p_value, true_minus

from .findings import Decomposition, Findings, Step, signed, signed_interval

COLLECTION, CANDIDATES = "collection", "candidates"
_DIGITS = 4


@dataclass(frozen=True, slots=True)
class StageRow:
    """One step of a pipeline: a figure of its own (``added`` is None), or what is added to the sum before it.

    ``total``: the sum so far; ``ci95`` and ``p``: of what is added, or of the figure.
    """

    name: str
    added: float | None
    ci95: Interval | None
    p: float | None
    total: float
    tie_added: float | None = None
    tie_sensitive: bool = False


def stage_rows(of: Decomposition) -> list[StageRow]:
    """The steps of one measure, from the collection (or the candidates where it is unknown) to the last stage."""
    candidates = f"{CANDIDATES} of {of.steps[0].stage}"
    found = [StageRow(candidates, None, of.ci95, None, of.candidates)]
    if of.collection is not None and of.retrieval is not None:
        found = [StageRow(COLLECTION, None, None, None, of.collection), _step(candidates, of.retrieval)]
    return [*found, *(_step(step.stage, step) for step in of.steps)]


def _step(name: str, step: Step) -> StageRow:
    tied = None if step.tied is None else step.tied.mean
    return StageRow(name, step.added, step.test.ci95, step.test.p, step.figure, tied, step.tie_sensitive)


def stages_section(result: Findings) -> dict[str, object] | None:
    """The rows of the section's table; None unless stages were named and some measure can be taken apart."""
    if result.stages is None or not result.stages.measures:
        return None
    steps = {key: stage_rows(of) for key, of in result.stages.measures.items()}
    every = [row for found in steps.values() for row in found]
    # Without ties, the two means coincide.
    tied = any(abs((row.tie_added or 0.0) - (row.added or 0.0)) > EQUAL for row in every if row.tie_added is not None)
    rows = [
        {
            "measure": key,
            "step": row.name,
            "first": place == 0,
            "cells": [*map(true_minus, _cells(row, tied)), f"{result.stages.measures[key].n:,}"],
            "mark": "~" if row.tie_sensitive else "",
        }
        for key, found in steps.items()
        for place, row in enumerate(found)
    ]
    return {
        "rows": rows,
        "columns": ["Adds", "95% interval", "p", "Sum", *["Tie mean"] * tied, "Queries"],
        "collection": any(of.collection is not None for of in result.stages.measures.values()),
        "documents": None if result.stages.documents is None else f"{result.stages.documents:,}",
        "first": result.stages.names[0],
        "last": result.stages.names[-1],
        "ties": any(row.tie_sensitive for row in every),
    }


def _cells(row: StageRow, tied: bool) -> list[str]:
    known = row.added is not None
    cells = [signed(row.added) if known else "", _ends(row), p_value(row.p) if known else ""]
    cells.append(number(row.total, _DIGITS))
    return [*cells, NONE if row.tie_added is None else signed(row.tie_added)] if tied else cells


def _ends(row: StageRow) -> str:
    if row.ci95 is None:
        return NONE
    ends = f"[{number(row.ci95[0], _DIGITS)}, {number(row.ci95[1], _DIGITS)}]"
    return signed_interval(row.ci95) if row.added is not None else ends
