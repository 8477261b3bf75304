"""Every ranking's metric values with their intervals, leans and comparisons: the audit's figures, built once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from ir_measures import Measure

from evenrank.measures import facts, signs
from evenrank.measures.base import Over
from evenrank.results.table import Interval
from evenrank.stats.bounds import MARGIN
from evenrank.stats.compare import Comparison, compare_combined, undecidable
from evenrank.stats.estimate import absolute_estimate, defined

from .comparison import compare_with_baseline, unless_tied
from .data import RANDOM, RELEVANCE_FIRST, MetricValue, RunAudit, RunComparison
from .order_effects import order_effect
from .values import MeasureValues, RunValues


def run_audits(
    rankings: Sequence[RunValues],
    measures: Sequence[Measure],
    baseline: str | None,
    references: Mapping[str, Mapping[Over, RunValues]],
    margin: float = MARGIN,
) -> tuple[RunAudit, ...]:
    """Every ranking with its metric values.

    ``references``: of each audited run the reference rankings of its own candidates; ``margin``: the share of the
    baseline's effectiveness that a loss is compared with.
    """
    base = next((run for run in rankings if run.name == baseline), None)
    compared = compare_with_baseline(rankings, measures, base, margin)
    return tuple(
        RunAudit(
            name=run.name,
            queries=run.queries,
            measures={
                key: _metric_value(run.name, values, compared[key][r], references.get(run.name, {}))
                for key, values in run.measures.items()
            },
            tie_share=run.tie_share,
            absent=run.absent,
            unjudged=run.unjudged,
            lacking=run.lacking,
            labels=run.labels,
            lengths=run.lengths,
        )
        for r, run in enumerate(rankings)
    )


def _metric_value(
    run: str, of: MeasureValues, compared: RunComparison | None, references: Mapping[Over, RunValues]
) -> MetricValue:
    mean = of.figure if of.expected is None else of.expected
    tie_mean, tie_range = of.tie_mean, of.tie_range
    if run in (RANDOM, RELEVANCE_FIRST) and not np.isnan(mean):
        tie_mean, tie_range = mean, (mean, mean)
    lean = _lean(of) if of.how.signed else None
    ties = of.over_ties
    return MetricValue(
        measure=of.measure,
        mean=None if np.isnan(mean) else mean,
        n=_counted_queries(of),
        undefined=of.undefined,
        ci95=_interval(of, lean),
        tie_mean=tie_mean,
        tie_range=tie_range,
        values=of.by_query.values,
        vs_baseline=compared,
        known=of.known,
        bounds=of.bounds,
        vs_random_order=order_effect(of, references, "random"),
        vs_ideal_order=order_effect(of, references, "relevance"),
        lean=lean,
        greatest=of.greatest,
        partly_labelled=of.undecidable_reason is not None,
        parts=of.parts if len(of.parts) > 1 else (),
        from_labels=of.from_labels,
        sample=of.by_query.label_sample,
        over_ties=None if ties is None or ties.equals(of.by_query) else ties.values,
    )


def _counted_queries(of: MeasureValues) -> int:
    """Of how many queries a figure is: those with a value and, with labels, with a labelled document in reach.

    Of a figure that has bounds alone, those with a labelled document.
    """
    count = of.by_query.n if len(of.parts) == 1 else len(defined(np.fmax.reduce(of.parts)))
    if of.known_queries is None or of.by_query.label_sample is not None:
        return count
    return of.known_queries if of.undecidable_reason is not None and not count else min(count, of.known_queries)


def _interval(of: MeasureValues, lean: Comparison | None) -> Interval | None:
    """The interval of a figure: none of one that was drawn, or of some of the documents that it looks at."""
    if of.expected is not None or of.undecidable_reason is not None:
        return None
    if of.interval is not None:
        return of.interval
    if lean is not None:
        return lean.ci95
    if len(of.parts) == 1 and not of.how.whole_run:
        ends = of.by_query.estimate().ci95
        # An estimate may be beyond what a figure can be; its interval holds it.
        return possible(ends, of.measure) if of.by_query.label_sample is None else ends
    return absolute_estimate(compare_combined(of.parts, signs(of.measure), clusters=of.by_query.clusters)).ci95


def possible(ends: Interval | None, measure: Measure) -> Interval | None:
    """The interval without the values that no query can have."""
    if ends is None:
        return None
    known = facts(measure)
    least, most = (end if isinstance(end, float) else None for end in (known["least"], known["most"]))
    low = ends[0] if least is None else max(ends[0], least)
    return low, ends[1] if most is None else min(ends[1], most)


def _lean(of: MeasureValues) -> Comparison:
    """Whether a figure of a signed measure differs from 0, whatever other runs there are."""
    if of.undecidable_reason is not None:
        mean = of.by_query.mean if len(of.parts) == 1 else None
        return undecidable(mean, of.known_queries or 0, of.undecidable_reason)
    values = of.by_query
    if len(of.parts) == 1:
        of_order = values.compare(reach=of.reach)
    else:
        of_order = compare_combined(of.parts, signs(of.measure), clusters=values.clusters)
    return of_order if of.over_ties is None else unless_tied(of_order, of.over_ties.compare(reach=of.reach))
