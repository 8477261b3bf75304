"""Figures with their intervals, and every run's comparison with the baseline and with references of its candidates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files.types import Array, unequally_deep
from evenrank.measures import Evaluation, Lacking, Share, facts, greatest_value, is_bias, is_linear, resolve, signs
from evenrank.measures import inference as st
from evenrank.measures.base import mean_of
from evenrank.results.table import Interval

from .data import (
    RANDOM,
    REFERENCES,
    RELEVANCE_FIRST,
    Comparison,
    Excess,
    Figure,
    FromLabels,
    GroupShare,
    KnownLabels,
    Pair,
    RunAudit,
    decided_by_ties,
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
            count = len(st.defined(run.values[key] if len(parts) == 1 else np.fmax.reduce(parts)))
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
                drawn=drawn_part(run, key),
            )
    return [
        RunAudit(run.name, run.queries, figures[r], run.tie_share, run.by_depth, *_documents(run))
        for r, run in enumerate(measured)
    ]


def _counted_queries(run: Measured, key: str, count: int) -> int:
    """Of how many queries a figure is: those with a value and, with labels, with a labelled document in reach.

    Of a figure that has bounds alone, those with a labelled document.
    """
    known = count if key in run.drawn else run.known_queries.get(key, count)
    return known if run.partly_known(key) and not count else min(count, known)


def _interval(run: Measured, measure: Measure, lean: st.Comparison | None) -> Interval | None:
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
        part = drawn_part(run, key)
        ends = st.estimate(parts[0], drawn=part).ci95
        # An estimate may be beyond what a figure can be; its interval holds it.
        return possible(ends, measure) if part is None else ends
    return st.size_of(st.compare_parts(parts, signs(measure))).ci95


def possible(ends: Interval | None, measure: Measure) -> Interval | None:
    """The interval without the values that no query can have."""
    if ends is None:
        return None
    known = facts(measure)
    least, most = (end if isinstance(end, float) else None for end in (known["least"], known["most"]))
    low = ends[0] if least is None else max(ends[0], least)
    return low, ends[1] if most is None else min(ends[1], most)


def _leans(measured: list[Measured], measure: Measure) -> list[st.Comparison | None]:
    """Whether each run's figure of a signed measure differs from 0; Holm over the runs that were given."""
    key, how = str(measure), resolve(measure)
    if not how.signed:
        return [None] * len(measured)
    found: list[st.Comparison] = []
    for run in measured:
        if run.partly_known(key):
            mean = mean_of(run.values[key]) if len(run.parts[key]) == 1 else None
            found.append(st.untold(mean, run.known_queries.get(key, 0), _why_untold(run)))
        else:
            part = drawn_part(run, key)
            found.append(st.compare_parts(run.parts[key], signs(measure), drawn=part))
    given = [r for r, run in enumerate(measured) if run.name not in REFERENCES]
    for r, lean in zip(given, st.corrected([found[r] for r in given]), strict=True):
        found[r] = lean
    return list(found)


def drawn_part(run: Measured, key: str, other: Measured | None = None, *, tied: bool = False) -> st.Drawn | None:
    """What a run's values owe to labels that were drawn, or its difference from another run."""
    own = run.drawn.get(key)
    if own is None:
        return None
    part = (own[1] if tied else None) or own[0]
    others = None if other is None else other.drawn.get(key)
    return part if others is None else part.plus((others[1] if tied else None) or others[0], -1.0)


def _from_labels(run: Measured, key: str) -> FromLabels | None:
    part = drawn_part(run, key)
    if part is None:
        return None
    these, used = part.of_these(run.values[key]), np.unique(part.document)
    contradict = int(part.contradicts[used].sum()) if run.guessed else None
    return FromLabels(len(used), contradict, st.ends(these) if these.error else None)


PARTLY = "documents without a label could change it"
ONLY_KNOWN = "the figures are of the labelled documents alone"
"""Why nothing can be told of a figure that depends on documents without a label; where these are left out."""


def _why_untold(run: Measured) -> str:
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
) -> dict[Measure, list[Comparison | None]]:
    """Every run's comparison with the baseline, by measure; those of the runs that were given corrected together."""
    found: dict[Measure, list[Comparison | None]] = {
        measure: [None if base is None or run.name == base.name else _against(run, base, measure) for run in measured]
        for measure in measures
    }
    given = [
        (measure, r, one)
        for measure, compared in found.items()
        for r, one in enumerate(compared)
        if one is not None and measured[r].name not in REFERENCES
    ]
    tests = corrected_by_kind([(measure, one.test) for measure, _, one in given])
    sizes = iter(corrected_by_kind([(measure, one.sizes) for measure, _, one in given if one.sizes is not None]))
    for (measure, r, one), test in zip(given, tests, strict=True):
        found[measure][r] = replace(one, test=test, sizes=None if one.sizes is None else next(sizes))
    return found


def _against(run: Measured, base: Measured, measure: Measure) -> Comparison:
    """A run's comparison with the baseline on one measure, not corrected."""
    found = replace(compare_runs(run, base, measure), unequal_depth=depth_decides(run, base, measure))
    if resolve(measure).signed and run.name not in REFERENCES:
        parts = run.parts[str(measure)], base.parts[str(measure)]
        drawn = drawn_part(run, str(measure)), drawn_part(base, str(measure))
        found = replace(found, sizes=st.compare_sizes(*parts, signs(measure), drawn=drawn))
    return found


def corrected_by_kind(found: Sequence[tuple[Measure, st.Comparison]]) -> list[st.Comparison]:
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
        for place, test in zip(places, st.corrected([tests[place] for place in places], parts), strict=True):
            tests[place] = test
    return tests


_BIAS = {"bias", "shares"}


def _family(measure: Measure) -> str:
    """What a measure's tests are corrected with."""
    if not resolve(measure).undirected:
        return "bias" if is_bias(measure) else "effectiveness"
    return "shares" if type(measure) is type(Share) else str(measure)


def compare_runs(run: Measured, base: Measured, measure: Measure) -> Comparison:
    """A run against another on one measure, over the queries where both have a value, without Holm's correction."""
    key = str(measure)
    if key in run.means:
        return _compare_drawn(run, base, measure)
    found = (_compare_whole if resolve(measure).whole_run else _compare_queries)(run, base, measure)
    if key in run.drawn:
        # A query's own estimate is no value of it.
        found = replace(found, better=None, equal=None, worse=None, t_p=None)
    if run.partly_known(key) or base.partly_known(key):
        n = min(one.known_queries.get(key, found.n) for one in (run, base))
        test = st.untold(found.difference, n, _why_untold(run))
        found = replace(found, test=test, n=n, t_p=None, tied=None)
    return found


def _compare_queries(run: Measured, base: Measured, measure: Measure) -> Comparison:
    key = str(measure)
    values, baseline = run.values[key], base.values[key]
    paired = st.paired_t_test(values, baseline)
    both = ~np.isnan(values - baseline)
    if resolve(measure).better == "nearer zero":
        gain = np.abs(baseline[both]) - np.abs(values[both])
    else:
        gain = values[both] - baseline[both]
    better, worse = int((gain > st.EQUAL).sum()), int((gain < -st.EQUAL).sum())
    means = [mean_of(np.where(both, of, np.nan)) for of in (values, baseline)]
    tied = tied_loss = None
    greatest = greatest_value(measure)
    if key in run.expected and key in base.expected:
        over_ties = run.expected[key], base.expected[key]
        tied = st.compare(over_ties[0] - over_ties[1], drawn=drawn_part(run, key, base, tied=True))
        moved = not all(map(_same, over_ties, (values, baseline)))
        lossy = moved and not is_bias(measure)
        tied_loss = st.no_loss(*over_ties, greatest=greatest) if lossy else None
    return Comparison(
        paired.difference,
        st.compare(values - baseline, drawn=drawn_part(run, key, base)),
        _relative(paired.difference, means[1]),
        better,
        int(both.sum()) - better - worse,
        worse,
        paired.t_p,
        loss=None if is_bias(measure) else st.no_loss(values, baseline, greatest=greatest),
        tied=tied,
        tied_loss=tied_loss,
        n=paired.n,
        mean=means[0],
        baseline_mean=means[1],
        partial=_partial([(values, baseline)]),
    )


def _same(values: Array, other: Array) -> bool:
    return bool(np.array_equal(values, other, equal_nan=True))


def _partial(pairs: list[tuple[Array, Array]]) -> bool:
    """Whether some query has a value in only one of a pair."""
    return any(bool((np.isnan(values) != np.isnan(baseline)).any()) for values, baseline in pairs)


def _relative(difference: float | None, baseline: float | None) -> float | None:
    if difference is None or baseline is None or abs(baseline) <= st.NEAR_ZERO:
        return None
    return difference / baseline


def _compare_whole(run: Measured, base: Measured, measure: Measure) -> Comparison:
    """A figure of the whole run, on the queries (of each part) where both runs have a value."""
    pairs = _whole_pairs(run, base, str(measure))
    parts = [common(*pair) for pair in pairs]
    n, n_poles = _counted(pairs)
    how = resolve(measure)
    if any(not len(part) for part in parts):
        test = st.untold(None, n, "no query has a value in both runs")
        return Comparison(None, test, n=n, n_poles=n_poles, partial=_partial(pairs))
    means = how.combine([_means(*pair) for pair in pairs])
    difference = float(means[0] - means[1])
    if how.signed:
        test = st.compare_parts([values - baseline for values, baseline in pairs], signs(measure))
    else:
        own, other = run.parts[str(measure)], base.parts[str(measure)]
        test = st.compare_sizes(own, other, signs(measure))
    return Comparison(
        difference,
        replace(test, n=n),
        _relative(difference, float(means[1])),
        n=n,
        mean=float(means[0]),
        baseline_mean=float(means[1]),
        n_poles=n_poles,
        partial=_partial(pairs),
    )


def _compare_drawn(run: Measured, base: Measured, measure: Measure) -> Comparison:
    """A figure that was drawn, and so has no value for single queries, against the baseline's: without a test."""
    pairs = _whole_pairs(run, base, str(measure))
    parts = [common(*pair) for pair in pairs]
    n, n_poles = _counted(pairs)
    test = st.untold(None, n, "its figure was drawn over random orders")
    # A figure drawn over all queries is not available for some of them.
    if _partial(pairs) or any(not len(part) for part in parts):
        return Comparison(None, test, n=n, n_poles=n_poles, partial=_partial(pairs))
    mean = run.means[str(measure)]
    baseline = float(resolve(measure).combine([_means(*pair) for pair in pairs])[1])
    return Comparison(
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
    poles = [len(st.defined(one)) for one in differences]
    return len(st.defined(np.fmax.reduce(differences))), (poles[0], poles[1]) if len(poles) > 1 else None


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
) -> list[RunAudit]:
    """The results with what each evaluated run, the first of them, adds and has beyond relevance.

    ``measured``: the evaluations' values on the ``axis``; ``known``: the references that are measured, by name, each
    with the evaluation whose candidates it orders. Only of measures that are weighted sums over ranks: of others the
    difference from an expectation says little of a single order. None where candidates have no label: what is known of
    the first ranks alone says nothing of a random order. Holm over the runs.
    """
    pairs: list[_Pair] = []
    for place, (evaluation, run) in enumerate(zip(evaluations, measured, strict=True)):
        linear = [figure.measure for figure in results[place].figures.values() if is_linear(figure.measure)]
        for over, (key, name) in _FIELDS.items():
            if not linear or (over == "relevance" and evaluation.qrels is None):
                continue
            of, reference = known.get(name, (None, None))
            if of is not evaluation or reference is None:
                reference = measure_run(evaluation, name, linear, axis, over=over, profiled=False)
            for measure in linear:
                if run.partly_known(str(measure)) or reference.partly_known(str(measure)):
                    continue
                pairs.append(_Pair(place, measure, key, *_on_common_queries(run, reference, str(measure))))
    changed = [dict(result.figures) for result in results]
    for (measure, key), found in _by_measure(pairs).items():
        excesses = [(pair, _excess(pair)) for pair in found]
        defined = [(pair, one) for pair, one in excesses if one is not None]
        tests = st.corrected([one.test for _, one in defined])
        leans = st.corrected([one.leans for _, one in defined])
        for (pair, excess), test, lean in zip(defined, tests, leans, strict=True):
            figures, name = changed[pair.place], str(measure)
            excess = replace(excess, test=test, leans=lean)
            if key == "added":
                figures[name] = replace(figures[name], added=excess)
            else:
                figures[name] = replace(figures[name], beyond_relevance=excess)
    return [replace(result, figures=figures) for result, figures in zip(results, changed, strict=True)]


def _by_measure(pairs: Sequence[_Pair]) -> dict[tuple[Measure, str], list[_Pair]]:
    found: dict[tuple[Measure, str], list[_Pair]] = {}
    for pair in pairs:
        found.setdefault((pair.measure, pair.field), []).append(pair)
    return found


def _excess(pair: _Pair) -> Excess | None:
    """The difference of a pair; None without a query where both have a value."""
    key = str(pair.measure)
    compared = compare_runs(pair.run, pair.reference, pair.measure)
    if compared.difference is None or compared.baseline_mean is None:
        return None
    return Excess(
        compared.difference,
        compared.n,
        compared.test,
        compared.t_p,
        compared.baseline_mean,
        compared.tied,
        pair.run.values[key] - pair.reference.values[key],
        st.compare(pair.reference.values[key], drawn=drawn_part(pair.reference, key)),
        drawn_part(pair.run, key, pair.reference),
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
    tests = corrected_by_kind([(measure, one.test) for measure, _, _, one in compared])
    return tuple(
        Pair(str(measure), first, second, test, one.tied)
        for (measure, first, second, one), test in zip(compared, tests, strict=True)
    )


def _compare_pair(first: Measured, second: Measured, measure: Measure) -> Comparison:
    found = compare_runs(first, second, measure)
    if not depth_decides(first, second, measure):
        return found
    return replace(found, test=st.untold(found.difference, found.n, "the lists differ in length"), tied=None)


def group_shares(results: Sequence[RunAudit]) -> tuple[GroupShare, ...]:
    """The groups' shares against those of the candidates, of a perfect ranking, and of the baseline."""
    rows = [(run.name, one) for run in results for one in run.figures.values() if type(one.measure) is type(Share)]
    # Of documents without labels, and so of what a random order would add, nothing is known.
    known = [(run, one, one.added) for run, one in rows if one.added is not None and one.mean is not None]
    added = _over_groups([of for _, _, of in known])
    beyond = _over_groups([one.beyond_relevance for _, one, _ in known])
    compared = [one.vs_baseline for _, one, _ in known]
    against = [None if of is None or of.unequal_depth else unless_tied(of.test, of.tied) for of in compared]
    return tuple(
        GroupShare(run, str(one.measure["group"]), float(one.mean or 0.0), of.reference, test, *others)
        for (run, one, of), test, *others in zip(known, added, beyond, against, strict=True)
        if test is not None
    )


def _over_groups(found: Sequence[Excess | None]) -> list[st.Comparison | None]:
    """Whether there is an excess, whatever the order of ties; Holm over all of them."""
    tests: list[st.Comparison | None] = [None] * len(found)
    known = [(place, of) for place, of in enumerate(found) if of is not None]
    corrected = st.corrected([st.compare(of.values, drawn=of.drawn) for _, of in known])
    for (place, of), test in zip(known, corrected, strict=True):
        tests[place] = unless_tied(test, of.tied)
    return tests


def unless_tied(test: st.Comparison, tied: st.Comparison | None) -> st.Comparison:
    """The test, where the order of tied documents does not decide it."""
    why = "it depends on the order of tied documents"
    return st.untold(test.mean, test.n, why, ci95=test.ci95) if decided_by_ties(test, tied) else test
