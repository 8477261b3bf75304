"""What a run's order adds to its candidates, and what it has beyond an ideal order of them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import polars as pl

from evenrank.files.types import EQUAL
from evenrank.measures import Evaluation, is_linear
from evenrank.measures.base import Over
from evenrank.stats.compare import Comparison
from evenrank.stats.values import QueryValues

from .comparison import compare_differences, reach_of_difference, unless_tied
from .data import RANDOM, RELEVANCE_FIRST, OrderEffect
from .values import MeasureValues, RunValues, measure_run

ORDERS: dict[Over, str] = {"random": RANDOM, "relevance": RELEVANCE_FIRST}
"""The reference rankings of a run's own candidates that its order is compared with."""


def own_references(evaluation: Evaluation, run: RunValues, axis: pl.Series) -> dict[Over, RunValues]:
    """The reference rankings of a run's candidates, on the measures that are weighted sums over ranks."""
    linear = [values.measure for values in run.measures.values() if is_linear(values.measure)]
    clusters = next((values.by_query.clusters for values in run.measures.values()), None)
    return {
        over: measure_run(evaluation, name, linear, axis, over=over, clusters=clusters)
        for over, name in ORDERS.items()
        if linear and (over == "random" or evaluation.qrels is not None)
    }


def order_effect(run: MeasureValues, references: Mapping[Over, RunValues], over: Over) -> OrderEffect | None:
    """The effect of a run's order on a measure, relative to one of the ``references`` of its own candidates.

    Only of measures that are weighted sums over ranks: of others the difference from an expectation says little of a
    single order. None where candidates have no label: what is known of the first ranks alone says nothing of a random
    order. None as well without a query where both have a value. What is said of a run does not depend on the others.
    """
    if not is_linear(run.measure) or over not in references:
        return None
    reference = references[over][run.measure]
    if run.undecidable_reason is not None or reference.undecidable_reason is not None:
        return None
    values, ideal = run.by_query, reference.by_query
    difference = values.minus(ideal)
    if not difference.n:
        return None
    # The figure of a reference order is its expectation already.
    over_ties = difference if run.over_ties is None else run.over_ties.minus(ideal)
    test, tied = (_test(run, of, over) for of in (difference, over_ties))
    ideal = ideal.on(~np.isnan(difference.values))
    return OrderEffect(
        # A mean of differences that are rounding is 0.
        mean=0.0 if abs(difference.mean or 0.0) <= EQUAL else difference.mean or 0.0,
        n=difference.n,
        test=unless_tied(test, tied),
        reference=ideal.mean or 0.0,
        tied=tied,
        values=difference.values,
        leans=ideal.compare(reach=run.reach),
        sample=difference.label_sample,
        over_ties=None if over_ties.equals(difference) else over_ties.values,
    )


def _test(run: MeasureValues, difference: QueryValues, over: Over) -> Comparison:
    if over == "relevance":
        return compare_differences(difference, run)
    variances = np.zeros(len(difference.values)) if run.order_variances is None else run.order_variances
    return difference.compare_to_random_order(variances, reach_of_difference(run))
