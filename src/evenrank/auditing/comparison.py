"""Figures with their intervals, and every run's comparison with the baseline and with references of its candidates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files.types import EQUAL, NEAR_ZERO, Array, unequally_deep
from evenrank.measures import Evaluation, Lacking, Share, facts, greatest_value, is_bias, is_linear, resolve, signs
from evenrank.measures.base import mean_of
from evenrank.results.table import Interval
from evenrank.stats.bounds import MeanBound, no_loss
from evenrank.stats.compare import (
    ALL_ZERO,
    Comparison,
    compare,
    compare_abs_means,
    compare_combined,
    compare_to_random_order,
    corrected,
    undecidable,
)
from evenrank.stats.estimate import (
    absolute_estimate,
    confidence_interval,
    defined,
    estimate,
    finite_population_mean,
)
from evenrank.stats.sampling import LabelSample

from .data import (
    RANDOM,
    REFERENCES,
    RELEVANCE_FIRST,
    TIES,
    Figure,
    FromLabels,
    GroupShare,
    KnownLabels,
    OrderEffect,
    Pair,
    RunAudit,
    RunComparison,
)
from .figures import Measured, Over, measure_run


def with_statistics(measured: list[Measured], measures: list[Measure], baseline: str | None) -> list[RunAudit]:
    """Every run with its figures, their intervals and leans, and its comparisons with the baseline."""
    figures: list[dict[str, Figure]] = [{} for _ in measured]
    base = next((run for run in measured if run.name == baseline), None)
    compared = _compare(measured, measures, base)
    for measure in measures:
        key, how = str(measure), resolve(measure)
        leans = _leans(measured, measure)
        for r, run in enumerate(measured):
            parts = run.parts[key]
            mean = run.means.get(key, how.figure(parts))
            count = len(defined(run.values[key] if len(parts) == 1 else np.fmax.reduce(parts)))
            tie_mean, tie_range = run.ties[key]
            if run.name in (RANDOM, RELEVANCE_FIRST) and not np.isnan(mean):
                tie_mean, tie_range = mean, (mean, mean)
            figures[r][key] = Figure(
                measure,
                None if np.isnan(mean) else mean,
                _counted_queries(run, key, count),
                run.undefined[key],
                _interval(run, measure, leans[r]),
                tie_mean,
                tie_range,
                run.values[key],
                compared[measure][r],
                run.known.get(key),
                run.bounds.get(key),
                lean=leans[r],
                partly_labelled=run.partly_known(key),
                greatest=run.greatest.get(key, greatest_value(measure)),
                parts=parts if len(parts) > 1 else (),
                from_labels=_from_labels(run, key),
                sample=design_term(run, key),
                over_ties=_over_ties(run, key),
            )
    return [
        RunAudit(run.name, run.queries, figures[r], run.tie_share, run.by_depth, *_documents(run))
        for r, run in enumerate(measured)
    ]


def _over_ties(run: Measured, key: str) -> Array | None:
    """The values' expectations [Q] over the orders of tied documents; None where they are the values."""
    expected = run.expected.get(key)
    return None if expected is None or _same(expected, run.values[key]) else expected


def _counted_queries(run: Measured, key: str, count: int) -> int:
    """Of how many queries a figure is: those with a value and, with labels, with a labelled document in reach.

    Of a figure that has bounds alone, those with a labelled document.
    """
    known = count if key in run.samples else run.known_queries.get(key, count)
    return known if run.partly_known(key) and not count else min(count, known)


def _interval(run: Measured, measure: Measure, lean: Comparison | None) -> Interval | None:
    """The interval of a figure: none of one that was drawn, or of some of the documents that it looks at."""
    key, how = str(measure), resolve(measure)
    if key in run.means or run.partly_known(key):
        return None
    parts = run.parts[key]
    if key in run.intervals:
        return run.intervals[key]
    if lean is not None:
        return lean.ci95
    if len(parts) == 1 and not how.whole_run:
        part = design_term(run, key)
        ends = estimate(parts[0], sample=part, clusters=run.clusters).ci95
        # An estimate may be beyond what a figure can be; its interval holds it.
        return possible(ends, measure) if part is None else ends
    return absolute_estimate(compare_combined(parts, signs(measure), clusters=run.clusters)).ci95


def possible(ends: Interval | None, measure: Measure) -> Interval | None:
    """The interval without the values that no query can have."""
    if ends is None:
        return None
    known = facts(measure)
    least, most = (end if isinstance(end, float) else None for end in (known["least"], known["most"]))
    low = ends[0] if least is None else max(ends[0], least)
    return low, ends[1] if most is None else min(ends[1], most)


def _leans(measured: list[Measured], measure: Measure) -> list[Comparison | None]:
    """Whether each run's figure of a signed measure differs from 0, whatever other runs there are."""
    if not resolve(measure).signed:
        return [None] * len(measured)
    return [_lean(run, measure) for run in measured]


def _lean(run: Measured, measure: Measure) -> Comparison:
    key = str(measure)
    if run.partly_known(key):
        mean = mean_of(run.values[key]) if len(run.parts[key]) == 1 else None
        return undecidable(mean, run.known_queries.get(key, 0), _reason_untested(run))
    reach = _reach(run, measure)
    of_order = compare_combined(
        run.parts[key], signs(measure), sample=design_term(run, key), clusters=run.clusters, reach=reach
    )
    if key not in run.expected:
        return of_order
    part = design_term(run, key, tied=True)
    return unless_tied(of_order, compare(run.expected[key], sample=part, clusters=run.clusters, reach=reach))


def _reach(run: Measured, measure: Measure) -> float | None:
    """The farthest from 0 that a query's value can be; None where that is not known."""
    greatest = run.greatest.get(str(measure), greatest_value(measure))
    return greatest if greatest is not None and np.isfinite(greatest) else None


def design_term(run: Measured, key: str, other: Measured | None = None, *, tied: bool = False) -> LabelSample | None:
    """What a run's values owe to labels that were drawn, or its difference from another run."""
    own = run.samples.get(key)
    if own is None:
        return None
    part = (own[1] if tied else None) or own[0]
    others = None if other is None else other.samples.get(key)
    return part if others is None else part.plus((others[1] if tied else None) or others[0], -1.0)


def _from_labels(run: Measured, key: str) -> FromLabels | None:
    part = design_term(run, key)
    if part is None:
        return None
    mean, used = finite_population_mean(part, run.values[key]), np.unique(part.document)
    contradict = int(part.contradicts[used].sum()) if run.guessed else None
    return FromLabels(len(used), contradict, confidence_interval(mean) if mean.se else None)


PARTLY = "documents without a label could change it"
ONLY_KNOWN = "the figures are of the labelled documents alone"
"""Why nothing can be told of a figure that depends on documents without a label; where these are left out."""
UNEQUAL_DEPTH = "the lists differ in length"
MISSING_QUERIES = "it depends on the queries that one of them lacks"


def _reason_untested(run: Measured) -> str:
    return ONLY_KNOWN if run.only_known else PARTLY


def _documents(run: Measured) -> tuple[int, Lacking | None, KnownLabels | None, Array]:
    """What an audit says of a run's documents."""
    return run.absent, run.lacking, run.labels, run.lengths


def depth_decides(run: Measured, other: Measured, measure: Measure | None = None) -> bool:
    """Whether one of two runs has less than 95% of the documents of the other within the measure's cutoff.

    A measure without a cutoff, and None, look at whole lists. On the queries that both runs have.
    """
    cutoff = measure.params.get("cutoff") if measure is not None else None
    return unequally_deep(run.lengths, other.lengths, cutoff)


def _compare(
    measured: list[Measured], measures: list[Measure], base: Measured | None
) -> dict[Measure, list[RunComparison | None]]:
    """Every run's comparison with the baseline, by measure; those of the runs that were given corrected together."""
    found: dict[Measure, list[RunComparison | None]] = {
        measure: [None if base is None or run.name == base.name else _against(run, base, measure) for run in measured]
        for measure in measures
    }
    given = [
        (measure, r, one)
        for measure, compared in found.items()
        for r, one in enumerate(compared)
        if one is not None and measured[r].name not in REFERENCES
    ]
    tests = corrected_with_ties([(measure, one.test, one.tied) for measure, _, one in given])
    sizes = iter(corrected_by_kind([(measure, one.sizes) for measure, _, one in given if one.sizes is not None]))
    for (measure, r, one), test in zip(given, tests, strict=True):
        size = None if one.sizes is None else next(sizes)
        if size is not None and test.reason in (TIES, UNEQUAL_DEPTH):
            size = size.without_verdict(test.reason)
        found[measure][r] = replace(one, test=test, sizes=size)
    return found


def _against(run: Measured, base: Measured, measure: Measure) -> RunComparison:
    """A run's comparison with the baseline on one measure, not corrected."""
    found = compare_runs(run, base, measure)
    if depth_decides(run, base, measure):
        found = replace(found, test=found.test.without_verdict(UNEQUAL_DEPTH), unequal_depth=True)
    elif not is_bias(measure):
        both = have_both(run, base)
        values, baseline = (np.where(both, one.values[str(measure)], np.nan) for one in (run, base))
        losses = () if both.all() else _losses([(values, baseline)], measure, run.clusters)
        found = replace(found, test=unless_missing(found.test, run, base, measure), losses=(*found.losses, *losses))
    if resolve(measure).signed and run.name not in REFERENCES:
        key = str(measure)
        samples = design_term(run, key), design_term(base, key)
        sizes = compare_abs_means(
            run.parts[key], base.parts[key], signs(measure), samples=samples, clusters=run.clusters
        )
        found = replace(found, sizes=sizes)
    return found


def have_both(run: Measured, base: Measured) -> Array:
    """Which queries [Q] both runs have."""
    both: Array = ~np.isnan(run.lengths) & ~np.isnan(base.lengths)
    return both


def unless_missing(
    test: Comparison, run: Measured, base: Measured, measure: Measure, where: Array | None = None
) -> Comparison:
    """The test of a difference, undecided where only queries decide it that a run lacks and that count as 0.

    ``where`` [Q]: the queries that the test is of.
    """
    both = have_both(run, base)
    if is_bias(measure) or both.all() or not test.shown:
        return test
    again = compare_values(run, base, measure, both if where is None else both & where)
    return (
        test if again.shown and (again.mean or 0.0) * (test.mean or 0.0) > 0 else test.without_verdict(MISSING_QUERIES)
    )


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
    tests = [one for _, one in found]
    families = [_family(measure) for measure, _ in found]
    tested = {family for family, one in zip(families, tests, strict=True) if one.p is not None}
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


def compare_runs(run: Measured, base: Measured, measure: Measure) -> RunComparison:
    """A run against another on one measure, over the queries where both have a value, without Holm's correction."""
    key = str(measure)
    if key in run.means:
        return _compare_drawn(run, base, measure)
    found = (_compare_whole if resolve(measure).whole_run else _compare_queries)(run, base, measure)
    if key in run.samples:
        # A query's own estimate is no value of it.
        found = replace(found, better=None, equal=None, worse=None)
    if run.partly_known(key) or base.partly_known(key):
        n = min(one.known_queries.get(key, found.n) for one in (run, base))
        test = undecidable(found.difference, n, _reason_untested(run))
        found = replace(found, test=test, n=n, tied=None)
    return found


def compare_values(
    run: Measured, base: Measured, measure: Measure, where: Array | None = None, *, tied: bool = False
) -> Comparison:
    """Whether a run's values differ from another's; ``where``: on these queries [Q]; ``tied``: over orders of ties."""
    key = str(measure)
    values, baseline = (one.expected[key] if tied else one.values[key] for one in (run, base))
    difference = values - baseline if where is None else np.where(where, values - baseline, np.nan)
    reach = _reach(run, measure)
    return compare(
        difference,
        zeros="drop" if is_bias(measure) else "keep",
        sample=design_term(run, key, base, tied=tied),
        clusters=run.clusters,
        # The farthest difference: from one end of the values to the other.
        reach=reach if reach is None or not resolve(measure).signed else 2 * reach,
    )


def _compare_queries(run: Measured, base: Measured, measure: Measure) -> RunComparison:
    key = str(measure)
    values, baseline = run.values[key], base.values[key]
    both = ~np.isnan(values - baseline)
    if resolve(measure).better == "nearer zero":
        gain = np.abs(baseline[both]) - np.abs(values[both])
    else:
        gain = values[both] - baseline[both]
    better, worse = int((gain > EQUAL).sum()), int((gain < -EQUAL).sum())
    means = [mean_of(np.where(both, of, np.nan)) for of in (values, baseline)]
    differences = values[both] - baseline[both]
    differences[np.abs(differences) <= EQUAL] = 0.0
    difference = mean_of(differences) if len(differences) else None
    tied, pairs = None, [(values, baseline)]
    if key in run.expected and key in base.expected:
        tied = compare_values(run, base, measure, tied=True)
        expected = run.expected[key], base.expected[key]
        pairs += [] if all(map(_same, expected, (values, baseline))) else [expected]
    losses = () if is_bias(measure) else _losses(pairs, measure, run.clusters)
    return RunComparison(
        difference,
        compare_values(run, base, measure),
        _relative(difference, means[1]),
        better,
        int(both.sum()) - better - worse,
        worse,
        losses=losses,
        tied=tied,
        n=int(both.sum()),
        mean=means[0],
        baseline_mean=means[1],
        partial=_partial([(values, baseline)]),
    )


def _losses(pairs: Sequence[tuple[Array, Array]], measure: Measure, clusters: Array | None) -> tuple[MeanBound, ...]:
    """The tests of no loss on pairs of values [Q]; none where there is nothing to lose."""
    greatest = greatest_value(measure)
    tests = (no_loss(*pair, greatest=greatest, clusters=clusters) for pair in pairs)
    return tuple(test for test in tests if test is not None)


def _same(values: Array, other: Array) -> bool:
    return bool(np.array_equal(values, other, equal_nan=True))


def _partial(pairs: list[tuple[Array, Array]]) -> bool:
    """Whether some query has a value in only one of a pair."""
    return any(bool((np.isnan(values) != np.isnan(baseline)).any()) for values, baseline in pairs)


def _relative(difference: float | None, baseline: float | None) -> float | None:
    if difference is None or baseline is None or abs(baseline) <= NEAR_ZERO:
        return None
    return difference / baseline


def _compare_whole(run: Measured, base: Measured, measure: Measure) -> RunComparison:
    """A figure of the whole run, on the queries (of each part) where both runs have a value."""
    pairs = _whole_pairs(run, base, str(measure))
    parts = [common(*pair) for pair in pairs]
    n, n_poles = _counted(pairs)
    how = resolve(measure)
    if any(not len(part) for part in parts):
        test = undecidable(None, n, "no query has a value in both runs")
        return RunComparison(None, test, n=n, n_poles=n_poles, partial=_partial(pairs))
    means = how.combine([_means(*pair) for pair in pairs])
    difference = float(means[0] - means[1])
    if how.signed:
        differences = [values - baseline for values, baseline in pairs]
        test = compare_combined(differences, signs(measure), clusters=run.clusters)
    else:
        own, other = run.parts[str(measure)], base.parts[str(measure)]
        test = compare_abs_means(own, other, signs(measure), clusters=run.clusters)
    return RunComparison(
        difference,
        replace(test, n=n),
        _relative(difference, float(means[1])),
        n=n,
        mean=float(means[0]),
        baseline_mean=float(means[1]),
        n_poles=n_poles,
        partial=_partial(pairs),
    )


def _compare_drawn(run: Measured, base: Measured, measure: Measure) -> RunComparison:
    """A figure that was drawn, and so has no value for single queries, against the baseline's: without a test."""
    pairs = _whole_pairs(run, base, str(measure))
    parts = [common(*pair) for pair in pairs]
    n, n_poles = _counted(pairs)
    test = undecidable(None, n, "its figure was drawn over random orders")
    # A figure drawn over all queries is not available for some of them.
    if _partial(pairs) or any(not len(part) for part in parts):
        return RunComparison(None, test, n=n, n_poles=n_poles, partial=_partial(pairs))
    mean = run.means[str(measure)]
    baseline = float(resolve(measure).combine([_means(*pair) for pair in pairs])[1])
    return RunComparison(
        mean - baseline,
        replace(test, mean=mean - baseline),
        _relative(mean - baseline, baseline),
        n=n,
        mean=mean,
        baseline_mean=baseline,
        n_poles=n_poles,
        partial=_partial(pairs),
    )


def _whole_pairs(run: Measured, base: Measured, key: str) -> list[tuple[Array, Array]]:
    """Both runs' values on the axis: a pair for each part of the figure."""
    return list(zip(run.parts[key], base.parts[key], strict=True))


def _counted(pairs: list[tuple[Array, Array]]) -> tuple[int, tuple[int, int] | None]:
    """How many queries have a value in both runs, and how many in each pole where there are two."""
    differences = [values - baseline for values, baseline in pairs]
    poles = [len(defined(one)) for one in differences]
    return len(defined(np.fmax.reduce(differences))), (poles[0], poles[1]) if len(poles) > 1 else None


def common(values: Array, baseline: Array) -> Array:
    """Both runs' values [Q, 2] of the queries where both have one."""
    both = ~np.isnan(values - baseline)
    return np.stack([values[both], baseline[both]], axis=1)


def _means(values: Array, baseline: Array) -> Array:
    """Both runs' means [2] over the queries where both have a value."""
    both = values + baseline
    means = (mean_of(np.where(np.isnan(both), np.nan, of)) for of in (values, baseline))
    return np.array([np.nan if mean is None else mean for mean in means])


def _on_common_queries(run: Measured, reference: Measured, key: str) -> tuple[Measured, Measured]:
    """Both rankings with the values of one weighted sum over ranks only for queries where both have one."""
    missing = np.isnan(run.values[key] + reference.values[key])

    def restricted(of: Measured) -> Measured:
        values = np.where(missing, np.nan, of.values[key])
        # The figure of a random order is its expectation already.
        expected = np.where(missing, np.nan, of.expected.get(key, of.values[key]))
        return replace(of, parts={key: (values,)}, values={key: values}, expected={key: expected})

    return restricted(run), restricted(reference)


_REFERENCE_OF: dict[Over, str] = {"random": RANDOM, "relevance": RELEVANCE_FIRST}


def with_order_effects(
    results: list[RunAudit],
    evaluations: Sequence[Evaluation],
    measured: Sequence[Measured],
    known: Mapping[str, tuple[Evaluation, Measured]],
    axis: pl.Series,
) -> list[RunAudit]:
    """The results with what each evaluated run, the first of them, adds and has beyond relevance.

    ``measured``: the evaluations' values on the ``axis``; ``known``: the references that are measured, by name, each
    with the evaluation whose candidates it orders. Only of measures that are weighted sums over ranks: of others the
    difference from an expectation says little of a single order. None where candidates have no label: what is known of
    the first ranks alone says nothing of a random order. What is said of a run does not depend on the others.
    """
    changed = []
    for result, evaluation, run in zip(results, evaluations, measured, strict=False):
        figures = dict(result.figures)
        linear = [figure.measure for figure in figures.values() if is_linear(figure.measure)]
        for over, name in _REFERENCE_OF.items():
            if not linear or (over == "relevance" and evaluation.qrels is None):
                continue
            of, reference = known.get(name, (None, None))
            if of is not evaluation or reference is None:
                reference = measure_run(
                    evaluation, name, linear, axis, over=over, profiled=False, clusters=run.clusters
                )
            for measure in linear:
                key = str(measure)
                if run.partly_known(key) or reference.partly_known(key):
                    continue
                effect = _order_effect(*_on_common_queries(run, reference, key), measure, random=over == "random")
                if effect is not None:
                    if over == "random":
                        figures[key] = replace(figures[key], added=effect)
                    else:
                        figures[key] = replace(figures[key], beyond_relevance=effect)
        changed.append(replace(result, figures=figures))
    return [*changed, *results[len(changed) :]]


def _order_effect(run: Measured, reference: Measured, measure: Measure, *, random: bool) -> OrderEffect | None:
    """What a run's order has beyond a reference order; None without a query where both have a value."""
    key = str(measure)
    compared = compare_runs(run, reference, measure)
    if compared.difference is None or compared.baseline_mean is None:
        return None
    test, tied = compared.test, compared.tied
    if random:
        test, tied = (_against_random_orders(run, reference, measure, tied=of_ties) for of_ties in (False, True))
    return OrderEffect(
        compared.difference,
        compared.n,
        unless_tied(test, tied),
        compared.baseline_mean,
        tied,
        run.values[key] - reference.values[key],
        compare(
            reference.values[key],
            sample=design_term(reference, key),
            clusters=run.clusters,
            reach=_reach(run, measure),
        ),
        design_term(run, key, reference),
        None if (over_ties := _over_ties(run, key)) is None else over_ties - reference.values[key],
    )


def _against_random_orders(run: Measured, reference: Measured, measure: Measure, *, tied: bool) -> Comparison:
    key, reach = str(measure), _reach(run, measure)
    values = (run.expected if tied else run.values)[key] - reference.values[key]
    return compare_to_random_order(
        values,
        run.order_variances.get(key, np.zeros(len(values))),
        clusters=run.clusters,
        sample=design_term(run, key, reference, tied=tied),
        reach=reach if reach is None or not resolve(measure).signed else 2 * reach,
    )


def compare_pairs(given: Sequence[Measured], measures: Sequence[Measure], baseline: str | None) -> tuple[Pair, ...]:
    """Every two of the runs that were given, measure by measure; none of fewer than three, or two with a baseline.

    Corrected as comparisons with the baseline are. Measures of whole runs are left out.
    """
    if len(given) < (2 if baseline is None else 3):
        return ()
    compared = [
        (measure, first.name, second.name, _compare_pair(first, second, measure))
        for measure in measures
        if not resolve(measure).whole_run
        for first, second in itertools.combinations(given, 2)
    ]
    tests = corrected_with_ties([(measure, one.test, one.tied) for measure, _, _, one in compared])
    return tuple(
        Pair(str(measure), first, second, test)
        for (measure, first, second, _), test in zip(compared, tests, strict=True)
    )


def _compare_pair(first: Measured, second: Measured, measure: Measure) -> RunComparison:
    found = compare_runs(first, second, measure)
    if not depth_decides(first, second, measure):
        return replace(found, test=unless_missing(found.test, first, second, measure))
    return replace(found, test=found.test.without_verdict(UNEQUAL_DEPTH), tied=None)


def group_shares(results: Sequence[RunAudit]) -> tuple[GroupShare, ...]:
    """The groups' shares against those of the candidates, of an ideal ranking, and of the baseline; Holm by run."""
    return tuple(share for run in results for share in _shares_of(run))


def _shares_of(run: RunAudit) -> list[GroupShare]:
    figures = [one for one in run.figures.values() if type(one.measure) is type(Share)]
    # Of documents without labels, and so of what a random order would add, nothing is known.
    known = [(one, one.added) for one in figures if one.added is not None and one.mean is not None]
    # What ties decide is in the family all the same.
    tests = [of.test for _, of in known]
    holm = corrected([replace(test, p=1.0) if test.reason == TIES else test for test in tests])
    added = [test if test.reason == TIES else one for test, one in zip(tests, holm, strict=True)]
    beyond = corrected_where([None if one.beyond_relevance is None else one.beyond_relevance.test for one, _ in known])
    compared = [one.vs_baseline for one, _ in known]
    return [
        GroupShare(
            run.name,
            str(one.measure["group"]),
            float(one.mean or 0.0),
            of.reference,
            test,
            further,
            None if against is None or against.unequal_depth else against.test,
        )
        for (one, of), test, further, against in zip(known, added, beyond, compared, strict=True)
    ]


def corrected_where(tests: Sequence[Comparison | None]) -> list[Comparison | None]:
    """The tests that there are, with Holm's correction over them."""
    after = iter(corrected([test for test in tests if test is not None]))
    return [None if test is None else next(after) for test in tests]


def unless_tied(test: Comparison, tied: Comparison | None) -> Comparison:
    """The test, undecided where the order of tied documents decides it: over all their orders the answer is another."""
    if tied is None or tied.mean is None:
        return test
    differs = test.reason == ALL_ZERO and tied.reason != ALL_ZERO
    turned = test.shown and not (tied.shown and (test.mean or 0.0) * tied.mean > 0)
    return test.without_verdict(TIES) if differs or turned else test
