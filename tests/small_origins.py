"""Audits with differences set by hand, to be shown."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenrank.auditing import AuditResult
from evenrank.auditing.data import OrderEffect
from evenrank.stats.compare import Comparison

LEAN, NEUTRAL = "ARaB@10", "NFaiRR@10"
FEW = "only 3 queries differ from 0, where 10 are needed"
Ends = tuple[float, float] | None


def told(mean: float, ci95: Ends, p: float | None, n: int = 20) -> Comparison:
    """What a test said of a mean; without a p, nothing."""
    return Comparison(mean, ci95, n, p=p, mde=None if p is None else 0.1, reason=FEW if p is None else None)


def excess(values: list[float], reference: float, ci95: Ends, p: float | None) -> OrderEffect:
    """A difference with these values of queries, over ``reference``, of which nothing can be told."""
    found = np.array(values)
    defined = found[~np.isnan(found)]
    mean = float(defined.mean())
    test = told(mean, ci95, p, len(defined))
    return OrderEffect(mean, len(defined), test, reference, None, found, told(reference, None, None))


def with_differences(result: AuditResult, by_run: dict[str, tuple[OrderEffect, OrderEffect | None]]) -> AuditResult:
    """The audit with these differences of the lean, and none of any other measure."""
    runs = []
    for run in result.runs:
        figures = {
            key: replace(figure, vs_random_order=None, vs_ideal_order=None) for key, figure in run.measures.items()
        }
        if run.name in by_run:
            added, beyond = by_run[run.name]
            figures[LEAN] = replace(figures[LEAN], vs_random_order=added, vs_ideal_order=beyond)
        runs.append(replace(run, measures=figures))
    return replace(result, runs=tuple(runs))
