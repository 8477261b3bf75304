"""Audits with differences and stages set by hand, to be shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenrank.auditing import AuditResult
from evenrank.auditing.findings import Decomposition, Excess, Stages, Step
from evenrank.measures import parse_measure

LEAN, NEUTRAL = "ARaB@10", "NFaiRR@10"


def excess(values: list[float], reference: float, ci95: tuple[float, float] | None, p: float | None) -> Excess:
    """A difference with these values of queries, over ``reference``."""
    found = np.array(values)
    defined = found[~np.isnan(found)]
    return Excess(float(defined.mean()), len(defined), ci95, p, None, reference, None, None, found)


def with_differences(result: AuditResult, by_run: dict[str, tuple[Excess, Excess | None]]) -> AuditResult:
    """The audit with these differences of the lean, and none of any other measure."""
    runs = []
    for run in result.runs:
        figures = {key: replace(figure, added=None, beyond_relevance=None) for key, figure in run.figures.items()}
        if run.name in by_run:
            added, beyond = by_run[run.name]
            figures[LEAN] = replace(figures[LEAN], added=added, beyond_relevance=beyond)
        runs.append(replace(run, figures=figures))
    return replace(result, runs=tuple(runs))


def with_stages(result: AuditResult, names: tuple[str, str] = ("first", "second")) -> AuditResult:
    """The audit with two stages: a lean from the collection on, and a neutrality whose collection is unknown."""
    first, second = names
    measures = {
        LEAN: Decomposition(
            parse_measure(LEAN),
            3,
            0.05,
            (0.0, 0.1),
            (
                Step(first, -0.15, (-0.25, -0.05), 0.01, -0.1, 0.05, 0.4),
                Step(second, 0.4, (0.3, 0.5), 0.0001, 0.3, 0.4, 0.0001),
            ),
            0.02,
            Step(first, 0.03, (0.01, 0.06), 0.2, 0.05),
        ),
        NEUTRAL: Decomposition(
            parse_measure(NEUTRAL),
            2,
            0.9,
            None,
            (Step(first, 0.02, None, None, 0.92), Step(second, -0.01, None, None, 0.91)),
        ),
    }
    return replace(result, stages=Stages(names, measures, 1000))
