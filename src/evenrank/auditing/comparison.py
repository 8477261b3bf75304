"""Two rankings compared on a measure, and what decides such a comparison: depth, missing queries, ties, corrections."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from ir_measures import Measure

from evenrank.files.types import EQUAL, NEAR_ZERO, Array, unequally_deep
from evenrank.measures import Share, greatest_value, is_bias, resolve, signs
from evenrank.measures.base import mean_of
from evenrank.stats.bounds import MARGIN, MeanBound
from evenrank.stats.compare import (
    ALL_ZERO,
    Comparison,
    compare_abs_means,
    compare_combined,
    corrected,
    undecidable,
)
from evenrank.stats.estimate import defined
from evenrank.stats.values import QueryValues

from .data import REFERENCES, TIES, Pair, RunComparison
from .values import MeasureValues, RunValues

UNEQUAL_DEPTH = "the lists differ in length"
MISSING_QUERIES = "it depends on the queries that one of them lacks"


def compare_with_baseline(
    rankings: Sequence[RunValues], measures: Sequence[Measure], base: RunValues | None, margin: float = MARGIN
) -> dict[str, list[RunComparison | None]]:
    """Every ranking's comparison with the baseline, by measure; those of the audited runs corrected together.

    ``margin``: the share of the baseline's effectiveness that a loss is compared with.
    """
    compared: dict[str, list[RunComparison | None]] = {
        str(measure): [
            None if base is None or run.name == base.name else _with_baseline(run, base, measure, margin)
            for run in rankings
        ]
        for measure in measures
    }
    own = [
        (measure, r, comparison)
        for measure in measures
        for r, comparison in enumerate(compared[str(measure)])
        if comparison is not None and rankings[r].name not in REFERENCES
    ]
    tests = corrected_with_ties([(measure, c.test, c.tied) for measure, _, c in own])
    sizes = iter(corrected_by_kind([(measure, c.sizes) for measure, _, c in own if c.sizes is not None]))
    for (measure, r, comparison), test in zip(own, tests, strict=True):
        size = None if comparison.sizes is None else next(sizes)
        if size is not None and test.reason in (TIES, UNEQUAL_DEPTH):
            size = size.without_verdict(test.reason)
        compared[str(measure)][r] = replace(comparison, test=test, sizes=size)
    return compared


def _with_baseline(run: RunValues, base: RunValues, measure: Measure, margin: float) -> RunComparison:
    """A run's comparison with the baseline on one measure, not corrected."""
    own, other = run[measure], base[measure]
    comparison = compare_values(own, other, margin)
    if depth_decides(run, base, measure):
        test = comparison.test.without_verdict(UNEQUAL_DEPTH)
        comparison = replace(comparison, test=test, unequal_depth=True)
    elif not is_bias(measure):
        both = run.has & base.has
        losses = () if both.all() else _losses([(own.by_query.on(both), other.by_query.on(both))], own, margin)
        test = unless_missing(comparison.test, run, base, measure)
        comparison = replace(comparison, test=test, losses=(*comparison.losses, *losses))
    if own.how.signed and run.name not in REFERENCES:
        samples = own.by_query.label_sample, other.by_query.label_sample
        sizes = compare_abs_means(
            own.parts, other.parts, signs(measure), samples=samples, clusters=own.by_query.clusters
        )
        comparison = replace(comparison, sizes=sizes)
    return comparison


def compare_pairs(runs: Sequence[RunValues], measures: Sequence[Measure], baseline: str | None) -> tuple[Pair, ...]:
    """Every two of the audited runs, measure by measure; none of fewer than three, or two with a baseline.

    Corrected as comparisons with the baseline are. Measures of whole runs are left out.
    """
    if len(runs) < (2 if baseline is None else 3):
        return ()
    compared = [
        (measure, first.name, second.name, _compare_pair(first, second, measure))
        for measure in measures
        if not resolve(measure).whole_run
        for first, second in itertools.combinations(runs, 2)
    ]
    tests = corrected_with_ties([(measure, *tests) for measure, _, _, tests in compared])
    return tuple(
        Pair(str(measure), first, second, test)
        for (measure, first, second, _), test in zip(compared, tests, strict=True)
    )


def _compare_pair(first: RunValues, second: RunValues, measure: Measure) -> tuple[Comparison, Comparison | None]:
    """The test of a difference, and that over the orders of tied documents."""
    comparison = compare_values(first[measure], second[measure])
    if depth_decides(first, second, measure):
        return comparison.test.without_verdict(UNEQUAL_DEPTH), None
    return unless_missing(comparison.test, first, second, measure), comparison.tied


# --- what decides a comparison ---------------------------------------------------------------------------------------


def depth_decides(run: RunValues, other: RunValues, measure: Measure | None = None) -> bool:
    """Whether one of two runs has less than 95% of the documents of the other within the measure's cutoff.

    A measure without a cutoff, and None, look at whole lists. On the queries that both runs have.
    """
    cutoff = measure.params.get("cutoff") if measure is not None else None
    return unequally_deep(run.lengths, other.lengths, cutoff)


def unless_missing(
    test: Comparison, run: RunValues, base: RunValues, measure: Measure, where: Array | None = None
) -> Comparison:
    """The test of a difference, undecided where only queries decide it that a run lacks and that count as 0.

    ``where`` [Q]: the queries that the test is of.
    """
    both = run.has & base.has
    if is_bias(measure) or both.all() or not test.shown:
        return test
    again = run_difference(run[measure], base[measure], both if where is None else both & where)
    return test if agrees(again, test) else test.without_verdict(MISSING_QUERIES)


def agrees(again: Comparison, test: Comparison) -> bool:
    """Whether another test shows a difference to the same side."""
    return again.shown and (again.mean or 0.0) * (test.mean or 0.0) > 0


def unless_tied(test: Comparison, tied: Comparison | None) -> Comparison:
    """The test, undecided where the order of tied documents decides it: over all their orders the answer is another."""
    if tied is None or tied.mean is None:
        return test
    differs = test.reason == ALL_ZERO and tied.reason != ALL_ZERO
    turned = test.shown and not agrees(tied, test)
    return test.without_verdict(TIES) if differs or turned else test


def corrected_with_ties(
    found: Sequence[tuple[Measure, Comparison, Comparison | None]],
) -> list[Comparison]:
    """The tests with Holm's correction, undecided where ties decide: over all their orders they are corrected alike."""
    tests = corrected_by_kind([(measure, test) for measure, test, _ in found])
    over_ties = corrected_by_kind([(measure, test if tied is None else tied) for measure, test, tied in found])
    return [
        unless_tied(test, None if tied is None else other)
        for test, other, (_, _, tied) in zip(tests, over_ties, found, strict=True)
    ]


def corrected_by_kind(found: Sequence[tuple[Measure, Comparison]]) -> list[Comparison]:
    """The tests of measures, with Holm's correction over all that one sentence of the first line may speak of.

    Those are the tests of effectiveness, and those of bias. Of bias, the measures that have a better side and the
    groups' shares have half of the level each where both are tested: otherwise a ranking of many groups would leave
    nothing to the others. Measures that no sentence is about are corrected one by one.
    """
    tests = [test for _, test in found]
    families = [_family(measure) for measure, _ in found]
    tested = {family for family, test in zip(families, tests, strict=True) if test.p is not None}
    for family in tested:
        places = [place for place, own in enumerate(families) if own == family]
        parts = len(tested & _BIAS) if family in _BIAS else 1
        for place, test in zip(places, corrected([tests[place] for place in places], parts), strict=True):
            tests[place] = test
    return tests


_BIAS = {"bias", "shares"}


def _family(measure: Measure) -> str:
    """What a measure's tests are corrected with."""
    if not resolve(measure).undirected:
        return "bias" if is_bias(measure) else "effectiveness"
    return "shares" if type(measure) is type(Share) else str(measure)


# --- values against values -------------------------------------------------------------------------------------------


def compare_values(run: MeasureValues, base: MeasureValues, margin: float = MARGIN) -> RunComparison:
    """A ranking against another on one measure, over the queries where both have a value, without Holm's correction."""
    if run.expected is not None:
        return _compare_expected(run, base)
    comparison = _compare_whole(run, base) if run.how.whole_run else _compare_queries(run, base, margin)
    if run.by_query.label_sample is not None:
        # A query's own estimate is no value of it.
        comparison = replace(comparison, better=None, equal=None, worse=None)
    reason = run.undecidable_reason or base.undecidable_reason
    if reason is not None:
        n = min(comparison.n if values.known_queries is None else values.known_queries for values in (run, base))
        comparison = replace(comparison, test=undecidable(comparison.difference, n, reason), n=n, tied=None)
    return comparison


def run_difference(run: MeasureValues, base: MeasureValues, where: Array | None = None) -> Comparison:
    """Whether a run's values differ from another's; ``where``: on these queries [Q]."""
    difference = run.by_query.minus(base.by_query)
    return compare_differences(difference if where is None else difference.on(where), run)


def run_difference_over_ties(run: MeasureValues, base: MeasureValues, where: Array | None = None) -> Comparison | None:
    """The same over the orders of tied documents; None where these are not known."""
    if run.over_ties is None or base.over_ties is None:
        return None
    difference = run.over_ties.minus(base.over_ties)
    return compare_differences(difference if where is None else difference.on(where), run)


def compare_differences(difference: QueryValues, run: MeasureValues) -> Comparison:
    """Whether the ``run``'s difference from something differs from 0."""
    return difference.compare("drop" if is_bias(run.measure) else "keep", reach_of_difference(run))


def reach_of_difference(run: MeasureValues) -> float | None:
    """The farthest that a query's difference can be from 0; None where that is not known."""
    # From one end of the values to the other.
    return run.reach if run.reach is None or not run.how.signed else 2 * run.reach


def _compare_queries(run: MeasureValues, base: MeasureValues, margin: float) -> RunComparison:
    values, baseline = run.by_query.values, base.by_query.values
    both = ~np.isnan(values - baseline)
    if run.how.better == "nearer zero":
        gain = np.abs(baseline[both]) - np.abs(values[both])
    else:
        gain = values[both] - baseline[both]
    better, worse = int((gain > EQUAL).sum()), int((gain < -EQUAL).sum())
    means = [by_query.on(both).mean for by_query in (run.by_query, base.by_query)]
    differences = values[both] - baseline[both]
    differences[np.abs(differences) <= EQUAL] = 0.0
    difference = mean_of(differences) if len(differences) else None
    pairs = [(run.by_query, base.by_query)]
    if run.over_ties is not None and base.over_ties is not None:
        tied = (run.over_ties, base.over_ties)
        pairs += [] if all(a.equals(b) for a, b in zip(tied, pairs[0], strict=True)) else [tied]
    return RunComparison(
        difference,
        run_difference(run, base),
        _relative(difference, means[1]),
        better,
        int(both.sum()) - better - worse,
        worse,
        losses=() if is_bias(run.measure) else _losses(pairs, run, margin),
        tied=run_difference_over_ties(run, base),
        n=int(both.sum()),
        mean=means[0],
        baseline_mean=means[1],
        partial=_partial([(values, baseline)]),
    )


def _losses(
    pairs: Sequence[tuple[QueryValues, QueryValues]], of: MeasureValues, margin: float
) -> tuple[MeanBound, ...]:
    """The tests of no loss on pairs of values [Q]; none where there is nothing to lose, and of estimates by query."""
    if of.by_query.label_sample is not None:
        return ()
    tests = (values.no_loss(baseline, greatest_value(of.measure), margin) for values, baseline in pairs)
    return tuple(test for test in tests if test is not None)


def _partial(pairs: Sequence[tuple[Array, Array]]) -> bool:
    """Whether some query has a value in only one of a pair."""
    return any(bool((np.isnan(values) != np.isnan(baseline)).any()) for values, baseline in pairs)


def _relative(difference: float | None, baseline: float | None) -> float | None:
    if difference is None or baseline is None or abs(baseline) <= NEAR_ZERO:
        return None
    return difference / baseline


def _compare_whole(run: MeasureValues, base: MeasureValues) -> RunComparison:
    """A figure of the whole run, on the queries (of each part) where both runs have a value."""
    pairs, how = list(zip(run.parts, base.parts, strict=True)), run.how
    n = _counted(pairs)
    if any(not len(common(*pair)) for pair in pairs):
        test = undecidable(None, n, "no query has a value in both runs")
        return RunComparison(None, test, n=n, partial=_partial(pairs))
    mean, baseline_mean = map(float, how.combine([_means(*pair) for pair in pairs]))
    if how.signed:
        differences = [values - baseline for values, baseline in pairs]
        test = compare_combined(differences, signs(run.measure), clusters=run.by_query.clusters)
    else:
        test = compare_abs_means(run.parts, base.parts, signs(run.measure), clusters=run.by_query.clusters)
    return RunComparison(
        mean - baseline_mean,
        replace(test, n=n),
        _relative(mean - baseline_mean, baseline_mean),
        n=n,
        mean=mean,
        baseline_mean=baseline_mean,
        partial=_partial(pairs),
    )


def _compare_expected(run: MeasureValues, base: MeasureValues) -> RunComparison:
    """An expectation over random orders that has no value for single queries, against the baseline: without a test."""
    pairs = list(zip(run.parts, base.parts, strict=True))
    n = _counted(pairs)
    reason = "its figure was drawn over random orders"
    # A figure drawn over all queries is not available for some of them.
    if run.expected is None or _partial(pairs) or any(not len(common(*pair)) for pair in pairs):
        return RunComparison(None, undecidable(None, n, reason), n=n, partial=_partial(pairs))
    baseline_mean = float(run.how.combine([_means(*pair) for pair in pairs])[1])
    difference = run.expected - baseline_mean
    return RunComparison(
        difference,
        undecidable(difference, n, reason),
        _relative(difference, baseline_mean),
        n=n,
        mean=run.expected,
        baseline_mean=baseline_mean,
        partial=_partial(pairs),
    )


def _counted(pairs: Sequence[tuple[Array, Array]]) -> int:
    """How many queries have a value in both runs, of any part."""
    return len(defined(np.fmax.reduce([values - baseline for values, baseline in pairs])))


def common(values: Array, baseline: Array) -> Array:
    """Both runs' values [Q, 2] of the queries where both have one."""
    both = ~np.isnan(values - baseline)
    return np.stack([values[both], baseline[both]], axis=1)


def _means(values: Array, baseline: Array) -> Array:
    """Both runs' means [2] over the queries where both have a value."""
    both = values + baseline
    means = (mean_of(np.where(np.isnan(both), np.nan, of)) for of in (values, baseline))
    return np.array([np.nan if mean is None else mean for mean in means])
