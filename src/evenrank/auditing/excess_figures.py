"""What each run's order adds to its own candidates, and has beyond a perfect ranking of them: computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.io.types import Array
from evenrank.measures import Evaluation, is_linear
from evenrank.measures import statistics as st
from evenrank.reports.format import Interval

from .comparison import compare_runs, differences, on_common_queries, paired_intervals
from .excess import Excess
from .figures import Measured, Over, measure_run
from .findings import RANDOM, RELEVANCE_FIRST, RunAudit

_FIELDS: dict[Over, tuple[str, str]] = {"random": ("added", RANDOM), "relevance": ("beyond_relevance", RELEVANCE_FIRST)}


@dataclass(frozen=True, slots=True)
class _Pair:
    """A run and a reference order of its own candidates, on the queries where both have a value of a measure."""

    place: int
    measure: Measure
    field: str
    run: Measured
    reference: Measured


def with_excesses(
    results: list[RunAudit],
    evaluations: Sequence[Evaluation],
    measured: Sequence[Measured],
    known: Mapping[str, tuple[Evaluation, Measured]],
    axis: pl.Series,
    seed: int,
) -> list[RunAudit]:
    """The results with what each evaluated run, the first of them, adds and has beyond relevance.

    ``measured``: the evaluations' values on the ``axis``; ``known``: the references that are measured, by name, each
    with the evaluation whose candidates it orders. Only of measures that are weighted sums over ranks: of others the
    difference from an expectation says little of a single order.
    """
    pairs = []
    for place, (evaluation, run) in enumerate(zip(evaluations, measured, strict=True)):
        linear = [figure.measure for figure in results[place].figures.values() if is_linear(figure.measure)]
        for over, (field, name) in _FIELDS.items():
            if not linear or (over == "relevance" and evaluation.qrels is None):
                continue
            of, reference = known.get(name, (None, None))
            if of is not evaluation or reference is None:
                reference = measure_run(evaluation, name, linear, axis, over=over, profiled=False)
            for measure in linear:
                own, other = on_common_queries([run, reference], str(measure))
                pairs.append(_Pair(place, measure, field, own, other))
    # One set of draws for all runs and measures.
    intervals = paired_intervals([differences(pair.run, pair.reference, pair.measure) for pair in pairs], seed)
    changed = [dict(result.figures) for result in results]
    for pair, ends in zip(pairs, intervals, strict=True):
        key = str(pair.measure)
        figures = changed[pair.place]
        excess = _excess(pair, ends, seed)
        if pair.field == "added":
            figures[key] = replace(figures[key], added=excess)
        else:
            figures[key] = replace(figures[key], beyond_relevance=excess)
    return [replace(result, figures=figures) for result, figures in zip(results, changed, strict=True)]


def _excess(pair: _Pair, ends: Interval | None, seed: int) -> Excess | None:
    """The difference of a pair; None without a query where both have a value."""
    key = str(pair.measure)
    compared = compare_runs(pair.run, pair.reference, pair.measure, seed)
    if compared.difference is None or compared.baseline_mean is None:
        return None
    return Excess(
        compared.difference,
        compared.n,
        ends,
        compared.t_p,
        compared.wilcoxon_p,
        compared.baseline_mean,
        compared.tie_difference,
        compared.tie_p,
        pair.run.values[key] - pair.reference.values[key],
        _leans(pair.reference.values[key]),
    )


def _leans(values: Array) -> bool | None:
    """Whether the mean of values [Q] is shown not to be 0; None with fewer than two."""
    tests = st.paired_tests(values, np.zeros_like(values))
    if tests.n < 2:
        return None
    # Equal values have no test.
    return tests.difference != 0 if tests.t_p is None else tests.t_p < st.SIGNIFICANT
