"""Audits with differences and stages set by hand, to be shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenrank.auditing import AuditResult
from evenrank.auditing.data import Decomposition, Excess, Stages, Step
from evenrank.measures import parse_measure
from evenrank.measures.inference import Comparison

LEAN, NEUTRAL = "ARaB@10", "NFaiRR@10"
FEW = "only 3 queries differ from 0, where 15 are needed"


Ends = tuple[float, float] | None


def told(mean: float, ci95: Ends, p: float | None, n: int = 20) -> Comparison:
    """What a test said of a mean; without a p, nothing."""
    return Comparison(mean, ci95, n, p=p, noticeable=None if p is None else 0.1, why=FEW if p is None else None)


def excess(values: list[float], reference: float, ci95: Ends, p: float | None) -> Excess:
    """A difference with these values of queries, over ``reference``, of which nothing can be told."""
    found = np.array(values)
    defined = found[~np.isnan(found)]
    mean = float(defined.mean())
    test = told(mean, ci95, p, len(defined))
    return Excess(mean, len(defined), test, None, None, reference, None, found, told(reference, None, None))


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
                Step(first, -0.15, told(-0.15, (-0.25, -0.05), 0.01), -0.1, told(0.05, None, 0.4)),
                Step(second, 0.4, told(0.4, (0.3, 0.5), 0.0001), 0.3, told(0.4, None, 0.0001)),
            ),
            0.02,
            Step(first, 0.03, told(0.03, (0.01, 0.06), 0.2), 0.05),
        ),
        NEUTRAL: Decomposition(
            parse_measure(NEUTRAL),
            2,
            0.9,
            None,
            (Step(first, 0.02, told(0.02, None, None), 0.92), Step(second, -0.01, told(-0.01, None, None), 0.91)),
        ),
    }
    return replace(result, stages=Stages(names, measures, 1000))
