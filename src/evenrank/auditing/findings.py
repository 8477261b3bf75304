"""What an audit says: is it better, is it biased, towards whom, whose fault, how sure.

The words are in ``phrases/audit.toml``, the verdicts the core's (:mod:`evenrank.stats`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from ir_measures import Measure

from evenrank.files.types import EQUAL, Array
from evenrank.files.wording import counted, in_clusters
from evenrank.measures import Share, is_bias, is_linear, resolve
from evenrank.measures.base import Construct, mean_of
from evenrank.results.finding import Finding, Level, Place, phrases
from evenrank.stats.bounds import outcome
from evenrank.stats.clusters import effective_clusters
from evenrank.stats.compare import ALL_ZERO, LEAST_NOT_ZERO, Comparison
from evenrank.stats.estimate import SIGNIFICANT, Estimate
from evenrank.stats.planning import queries_to_hold

from .comparison import UNEQUAL_DEPTH
from .data import AuditFigures, GroupShare, MetricValue, OrderEffect, Pair, RunAudit, RunComparison, shown_name
from .impact import impact_findings
from .poles import labelled, pole, poles, side
from .run_names import in_short, short_names
from .selected_measures import shown_lean, target_shares, utility_measures
from .values import ONLY_KNOWN, PARTLY

_PHRASES = phrases("audit")
MOST_MOVED = 2
"""Runs of which it is said how far ties move a figure."""
MOST_LOST = 0.5
"""Up to which share of the queries their clusters are warned of above the table."""
MOST_GROUPS = 5
"""Groups that the screen names for a run."""


@dataclass(frozen=True, slots=True)
class RunFindings:
    """What is found of a run: sentences and verdicts at a glance are made of the same.

    Attributes:
        effectiveness: Whether it is better than the baseline, by the first measure of effectiveness.
        lean: Towards whom it leans, and whose lean that is.
        differences: How it differs from the baseline, measure of bias by measure.
    """

    effectiveness: Finding | None
    lean: Finding | None
    differences: tuple[Finding, ...]


def run_findings(result: AuditFigures) -> dict[str, RunFindings]:
    """What is found of each audited run, by its name; None without a baseline, of itself, or without a measure."""
    lean = shown_lean(result)
    findings = {}
    for run in result.given:
        base = None if result.baseline in (None, run.name) else result[str(result.baseline)]
        findings[run.name] = RunFindings(
            None if base is None else next(_effectiveness(result, run, base), None),
            None if lean is None else _lean(result, run, lean),
            () if base is None else tuple(_differences(result, run, lean)),
        )
    return findings


def audit_findings(result: AuditFigures, by_run: Mapping[str, RunFindings]) -> tuple[Finding, ...]:
    """All findings of an audit, those of the first line before the others; ``by_run``: see :func:`run_findings`."""
    findings = [*_answer(result, by_run), *_warnings(result), *_of_runs(result, by_run)]
    findings += [*impact_findings(result.impact), *_of_query_groups(result), *_notes(result)]
    if all(finding.key == "unknown" for finding in findings if finding.place == "answer"):
        # Where effectiveness is not known or not asked for, the first finding answers.
        first = next((n for n, finding in enumerate(findings) if finding.place == "finding"), None)
        if first is not None:
            answered = [finding for finding in findings[:first] if finding.place == "answer"]
            others = [finding for finding in (*findings[:first], *findings[first + 1 :]) if finding not in answered]
            findings = [*answered, replace(findings[first], place="answer"), *others]
    return tuple(findings)


# --- the first line --------------------------------------------------------------------------------------------------


def _answer(result: AuditFigures, by_run: Mapping[str, RunFindings]) -> Iterator[Finding]:
    runs = result.given
    yield from (finding for finding in result.misleading if finding.place == "answer")
    if len(runs) > 2 or (len(runs) == 2 and result.baseline is None):
        yield from _of_two(result) if len(runs) == 2 else ()
        yield from _orders(result)
        yield from _all_lean(result)
    elif len(runs) == 2 and result.baseline is not None:
        (run,) = (run for run in runs if run.name != result.baseline)
        effectiveness = by_run[run.name].effectiveness
        if effectiveness is not None:
            yield effectiveness
            yield from _loss(result, run)
            yield from _other_measures(result, run)
        yield from (finding for finding in by_run[run.name].differences if finding.place == "answer")
    elif result.judged:
        measure = utility_measures(result)[0]
        figure = runs[0].measures[str(measure)]
        estimate = Estimate(figure.mean, figure.ci95, figure.n)
        yield _PHRASES.finding("effectiveness", runs[0].name, "shown", estimate, "answer", measure=shown_name(measure))


def _effectiveness(result: AuditFigures, run: RunAudit, base: RunAudit) -> Iterator[Finding]:
    """Whether a run is better than the baseline, by the first measure of effectiveness."""
    for measure in utility_measures(result)[:1]:
        compared = _compared(run, measure)
        how = _how_good(compared.test, compared.unequal_depth)
        yield _how_good_of(result, run, base, measure, compared.test, how)


def _of_two(result: AuditFigures) -> Iterator[Finding]:
    """Which of two runs is better where neither is the baseline."""
    for pair in result.pairs:
        measure = next(iter(utility_measures(result)), None)
        if measure is not None and pair.measure == str(measure):
            ahead = (pair.test.mean or 0.0) >= 0
            better, other = (pair.first, pair.second) if ahead else (pair.second, pair.first)
            test = pair.test if ahead else pair.test.negated()
            how = _how_good(test, test.reason == UNEQUAL_DEPTH)
            yield _how_good_of(result, result[better], result[other], measure, test, how)


def _how_good_of(
    result: AuditFigures, run: RunAudit, base: RunAudit, measure: Measure, test: Comparison, how: tuple[str, Level]
) -> Finding:
    """The first sentence: both figures, their difference with its interval, and what it shows."""
    (key, level), called = how, short_names(result)
    values: dict[str, Any] = {"run": called[run.name], "baseline": called[base.name], "measure": str(measure)}
    values |= {"mean": _said(run[measure]), "other": _said(base[measure]), "why": test.reason}
    values |= {"difference": Estimate(test.mean, test.ci95, test.n)}
    values["smallest"] = "" if test.mde is None else _PHRASES.text("smallest", mde=test.mde)
    return _PHRASES.finding(key, run.name, level, test, "answer", **values)


def _said(figure: MetricValue) -> Estimate | float | None:
    """A figure, with its interval where it is estimated from a sample."""
    return figure.mean if figure.from_labels is None else Estimate(figure.mean, figure.ci95, figure.n)


def _difference_of(compared: RunComparison) -> Estimate:
    """A run's difference from the baseline with its interval."""
    return Estimate(compared.difference, compared.test.ci95, compared.test.n)


def _loss(result: AuditFigures, run: RunAudit) -> Iterator[Finding]:
    """Whether a run loses more than the margin that was asked for."""
    margin = result.settings.get("margin")
    for measure in utility_measures(result)[: margin is not None]:
        compared = _compared(run, measure)
        if not compared.losses or compared.test.reason == ALL_ZERO:
            continue
        # As much is lost only where it is shown, corrected, that something is.
        violated = compared.significant and all(
            outcome(loss, loss.p_violated()) == "violated" for loss in compared.losses
        )
        key = "no_loss" if compared.no_loss else "loss" if violated else "loss_possible"
        level: Level = "no difference shown" if key == "loss_possible" else "shown"
        values: dict[str, Any] = {"margin": f"{100 * float(margin or 0):g}%", "measure": str(measure)}
        values["baseline"] = in_short(str(result.baseline), "the baseline")
        yield _PHRASES.finding(key, run.name, level, compared.test, "answer", **values)


def _other_measures(result: AuditFigures, run: RunAudit) -> Iterator[Finding]:
    """In which other measures of effectiveness a run is better than the baseline or worse."""
    for measure in utility_measures(result)[1:]:
        compared = _compared(run, measure)
        key, level = _how_good(compared.test, compared.unequal_depth)
        if key in ("better", "worse"):
            values: dict[str, Any] = {"measure": str(measure), "difference": _difference_of(compared)}
            yield _PHRASES.finding(f"also_{key}", run.name, level, compared.test, "answer", **values)


def _compared(run: RunAudit, measure: Measure) -> RunComparison:
    """The comparison with the baseline, of an audit that has one."""
    compared = run[measure].vs_baseline
    assert compared is not None
    return compared


def _in_common(runs: Sequence[RunAudit]) -> Array:
    """Which of the audit's queries [Q] all the runs have."""
    has = [~np.isnan(run.lengths) for run in runs if run.lengths is not None]
    return np.asarray(np.logical_and.reduce(has))


def _how_good(test: Comparison, unequal_depth: bool) -> tuple[str, Level]:
    """The template and the level of a difference in effectiveness."""
    if unequal_depth:
        return "depth", "cannot be told"
    if test.reason == ALL_ZERO:
        return "equally_good", "no difference shown"
    if test.shown:
        return "better" if (test.mean or 0.0) > 0 else "worse", "shown"
    if test.reason is not None:
        return "better_untold", "cannot be told"
    return "not_significant_corrected" if _only_uncorrected(test) else "not_significant", "no difference shown"


def _only_uncorrected(test: Comparison) -> bool:
    """Whether a difference would be shown without the correction for several comparisons."""
    return test.p is not None and test.p < SIGNIFICANT and not test.shown


def compared_measures(result: AuditFigures) -> list[Measure]:
    """The measures of bias that have a better side."""
    return [m for m in result.measures if is_bias(m) and not resolve(m).undirected]


def _against(run: RunAudit, measure: Measure) -> RunComparison | None:
    """The comparison with the baseline, unless depth rather than order decides it."""
    compared = run.measures[str(measure)].vs_baseline
    return None if compared is None or compared.unequal_depth else compared


def _orders(result: AuditFigures) -> Iterator[Finding]:
    """Of several runs, the order in which measures put them, by which two are shown to differ."""
    lean, several = shown_lean(result), len(result.given) > 2
    for measure in (*utility_measures(result)[:several], *compared_measures(result)):
        tests = [pair for pair in result.pairs if pair.measure == str(measure)]
        apart = {(test.first, test.second) for test in tests if test.test.shown}
        leading = not is_bias(measure) or measure == (lean or next(iter(compared_measures(result))))
        if tests and (apart or leading) and len({name for test in tests for name in (test.first, test.second)}) > 1:
            yield _order(result, measure, tests, apart | {(second, first) for first, second in apart})


def _order(result: AuditFigures, measure: Measure, tests: Sequence[Pair], apart: set[tuple[str, str]]) -> Finding:
    both = _in_common(result.given)
    means = {run.name: _mean(run.measures[str(measure)], both) for run in result.given}
    ranked = sorted((name for name, mean in means.items() if mean is not None), key=lambda name: means[name] or 0.0)
    called = short_names(result)
    key, order = _in_order(ranked, apart, called)
    noticed = [test.test.mde for test in tests if test.test.mde is not None]
    untold = [test for test in tests if test.test.mde is None and test.test.reason != ALL_ZERO]
    if not apart and all(test.test.reason == ALL_ZERO for test in tests):
        key = "all_same"
    elif not apart and untold:
        key = "some_untold" if noticed else "none_told"
    level: Level = "shown" if apart else "cannot be told" if untold else "no difference shown"
    how, pair, name = resolve(measure), poles(result, measure), shown_name(measure)
    if apart and how.signed and pair is not None:
        name = _PHRASES.text("from_to", measure=name, least=pole(pair, -1.0), most=pole(pair, 1.0))
    elif apart and how.construct in ("neutrality", "exposure"):
        better = "higher" if how.better == "higher" else "lower"
        name = _PHRASES.text(f"{better}_{how.construct}", measure=name)
    values: dict[str, Any] = {
        "measure": name,
        "order": order,
        "count": len(ranked) or len(result.given),
        "noticed": max(noticed, default=None),
        "untold": _some([f"{called[test.first]} and {called[test.second]}" for test in untold]),
        "why": untold[0].test.reason if untold else "",
    }
    return _PHRASES.finding(key, "", level, None, "answer", **values)


def _mean(figure: MetricValue, both: Array) -> float | None:
    """A figure's mean over the queries that ``both`` runs have, as the tests of two runs see them."""
    known = None if both.all() else mean_of(np.where(both, figure.values, np.nan))
    return figure.mean if known is None else known


def _all_lean(result: AuditFigures) -> Iterator[Finding]:
    """That all of several runs are shown to lean to one side, if they are."""
    measure = shown_lean(result)
    figures = [] if measure is None else [run.measures[str(measure)] for run in result.given]
    means = [
        figure.mean for figure in figures if figure.mean is not None and figure.lean is not None and figure.lean.shown
    ]
    pair = None if measure is None else poles(result, measure)
    if pair is None or len(means) < len(result.given) or min(means) * max(means) <= 0:
        return
    low, high = sorted(means, key=abs)[:: len(means) - 1]
    runs = "Both runs" if len(means) == 2 else f"All {counted(len(means), 'run')}"
    values: dict[str, Any] = {"runs": runs, "low": low, "high": high}
    yield _PHRASES.finding("all_lean", "", "shown", None, "answer", pole=side(pair, low), **values)


def _in_order(ranked: Sequence[str], apart: set[tuple[str, str]], called: Mapping[str, str]) -> tuple[str, str]:
    """The template, and the runs from the lowest mean to the highest: ``BM25 < TK = BERT < MiniLM``.

    Where that would say of two runs that they differ, or do not, and they do not, or do: the pairs that differ.
    """
    if not apart:
        return "none_apart", ""
    tiers: list[list[str]] = [[ranked[0]]]
    for before, name in pairwise(ranked):
        if (before, name) in apart:
            tiers.append([])
        tiers[-1].append(name)
    tier = {name: place for place, names in enumerate(tiers) for name in names}
    if all(((a, b) in apart) == (tier[a] != tier[b]) for a in ranked for b in ranked if a != b):
        key = "ranked" if len(tiers) == len(ranked) else "ranked_with_equals"
        return key, " < ".join(" = ".join(called[name] for name in names) for names in tiers)
    below = {a: [b for b in ranked[place + 1 :] if (a, b) in apart] for place, a in enumerate(ranked)}
    higher = {called[a]: ", ".join(called[b] for b in above) for a, above in below.items() if above}
    return "ranked_in_part", "; ".join(f"{a} < {above}" for a, above in higher.items())


# --- what misleads ---------------------------------------------------------------------------------------------------


def _warnings(result: AuditFigures) -> Iterator[Finding]:
    yield from (finding for finding in result.misleading if finding.place == "warning")
    both = _in_common(result.given)
    absent = any(finding.key == "absent" for finding in result.misleading)
    if len(result.given) > 1 and not both.all() and not absent:
        yield _PHRASES.finding(
            "in_common", level="cannot be told", place="warning", count=int(both.sum()), total=len(both)
        )
    clusters = result.query_cluster
    units = result.n if clusters is None else clusters.n_unique()
    if units < LEAST_NOT_ZERO:
        count = counted(units, "query" if clusters is None else "cluster of queries")
        yield _PHRASES.finding("few", level="cannot be told", place="warning", count=count)


# --- whose lean it is ------------------------------------------------------------------------------------------------


def _of_runs(result: AuditFigures, by_run: Mapping[str, RunFindings]) -> Iterator[Finding]:
    lean = shown_lean(result)
    only = len(result.given) == 1
    of_groups = {} if lean is not None and len(_shares(result)) < 3 else _of_groups(result)
    if lean is None and len({_predicate(findings[0]) for findings in of_groups.values()}) == 1 and not only:
        # Runs share a line.
        (first, *_), *_ = of_groups.values()
        key = "no_groups_apart" if first.key == "groups_alike" else "each"
        yield replace(first, key=key, subject="", text=_PHRASES.text(key, does=_predicate(first)))
        of_groups = {name: [replace(f[0], place="detail"), *f[1:]] for name, f in of_groups.items()}
    leans = {} if lean is None else {name: f.lean for name, f in by_run.items() if f.lean is not None}
    beyond = {name: list(_beyond(result[name], finding, lean)) for name, finding in leans.items() if lean is not None}
    keys = {finding.key for findings in (*beyond.values(), *of_groups.values()) for finding in findings}
    as_ideal = not keys & {"lean_beyond", "groups_beyond"}
    by_relevance = as_ideal and sum(map(len, beyond.values())) > 1
    for run in result.given:
        if lean is not None:
            place: Place = "answer" if only else "finding"
            yield replace(leans[run.name], place=place)
        differences = [finding for finding in by_run[run.name].differences if finding.place != "answer"]
        # Before what an ideal order does, as a short screen keeps what comes first.
        shown = [finding for finding in differences if finding.level == "shown" and lean is not None]
        yield from shown
        if lean is not None and not by_relevance:
            yield from (replace(finding, place=place) for finding in beyond[run.name])
        for finding in of_groups.get(run.name, ()):
            if lean is None or finding.level == "shown":
                yield replace(finding, place="answer") if only and lean is None else finding
        yield from (finding for finding in differences if finding not in shown)
    if by_relevance or (as_ideal and len(of_groups) > 1 and _all_by_relevance(result)):
        yield _PHRASES.finding("none_beyond", level="no difference shown")


def _lean(result: AuditFigures, run: RunAudit, measure: Measure) -> Finding:
    """Towards which group a run leans, and whether its candidates or their order do it."""
    figure, pair = run.measures[str(measure)], poles(result, measure)
    test = figure.lean
    if figure.mean is None or test is None or pair is None:
        return _without_mean(run, figure)
    if test.reason == ALL_ZERO:
        return _PHRASES.finding("never_leans", run.name, "no difference shown", test)
    if test.reason is not None:
        why = test.reason if test.n > 1 else _PHRASES.text("why_one_query")
        return _PHRASES.finding("lean_untold", run.name, "cannot be told", test, why=why)
    added = figure.vs_random_order
    key = _whose(test.shown, figure, added)
    reference = None if added is None else added.reference
    values: dict[str, Any] = {
        "pole": side(pair, figure.mean),
        "other": "" if reference is None else side(pair, reference),
        "lean": figure.mean,
        "held": reference,
        "added": None if added is None else Estimate(added.mean, added.ci95, added.n),
        "noticed": test.mde,
    }
    return _PHRASES.finding(key, run.name, test.verdict, test, **values)


def _beyond(run: RunAudit, found: Finding, lean: Measure) -> Iterator[Finding]:
    """Of a lean that a run's order makes larger: whether an ideal ranking would, too."""
    figure = run.measures[str(lean)]
    beyond, mean = figure.vs_ideal_order, figure.mean or 0.0
    if beyond is None or found.key not in ("leans_more", "leans_by_order", "leans_turned"):
        return
    if beyond.test.shown and beyond.mean * mean > 0:
        by = Estimate(beyond.mean, beyond.ci95, beyond.n)
        yield _PHRASES.finding("lean_beyond", run.name, "shown", beyond.test, beyond=by)
    else:
        level: Level = "cannot be told" if beyond.test.p is None else "no difference shown"
        yield _PHRASES.finding("lean_by_relevance", run.name, level, beyond.test)


def _whose(shown: bool, figure: MetricValue, added: OrderEffect | None) -> str:
    """The template of a lean that is ``shown`` or not, from what its candidates hold and what their order adds."""
    if added is None:
        return "no_lean" if not shown else "leans_alone" if is_linear(figure.measure) else "leans"
    candidates_lean, adds = added.leans.shown and abs(added.reference) > EQUAL, added.test.shown
    mean = figure.mean or 0.0
    if not shown:
        if candidates_lean:
            return "no_lean_but_candidates" if adds else "no_lean_as_candidates"
        return "no_lean_by_order" if adds else "no_lean"
    if candidates_lean and mean * added.reference < 0:
        return "leans_turned" if adds else "leans_whose"
    if candidates_lean:
        further = abs(mean) > abs(added.reference)
        return ("leans_more" if further else "leans_less") if adds else "leans_as_candidates"
    return "leans_by_order" if adds and added.mean * mean > 0 else "leans_whose"


def _without_mean(run: RunAudit, figure: MetricValue) -> Finding:
    named: dict[str, Any] = {"measure": shown_name(figure.measure)}
    if figure.bounds is not None:
        low, high = figure.bounds
        return _PHRASES.finding("lean_within", run.name, "cannot be told", low=low, high=high, **named)
    return _PHRASES.finding("lean_undefined", run.name, "cannot be told", why=_why_none(figure), **named)


def _why_none(figure: MetricValue) -> str:
    """Why there is neither a figure nor bounds."""
    if figure.known is not None and figure.known[0] == 0:
        return _PHRASES.text("why_no_label")
    if figure.known is not None and not figure.undefined:
        return _PHRASES.text("why_no_bounds")
    return _PHRASES.text("why_undefined")


Change = Literal["less", "more", "apart"]
_CHANGES: dict[Construct, dict[Change | None, str]] = {
    "lean": {"less": "leans_less_than", "more": "leans_more_than", "apart": "lean_differs", None: "lean_alike"},
    "neutrality": {"less": "more_neutral", "more": "less_neutral", None: "neutrality_alike"},
    "exposure": {"less": "nearer_target", "more": "farther_from_target", None: "target_alike"},
    "other": {"less": "nearer_zero", "more": "farther_from_zero", "apart": "figure_differs", None: "figure_alike"},
}
"""The templates of a difference, by what the measure measures and what is shown."""


def bias_change(measure: Measure, compared: RunComparison) -> Change | None:
    """Whether a run is shown to have "less" bias than the baseline, "more", or to be "apart"; None if nothing is."""
    if not compared.significant or compared.difference is None:
        return None
    how = resolve(measure)
    if how.better == "higher":
        return "less" if compared.difference > 0 else "more"
    if not how.signed:
        return "less" if compared.difference < 0 else "more"
    sizes = compared.sizes
    if sizes is None or not sizes.shown or sizes.mean is None:
        return "apart"
    return "less" if sizes.mean < 0 else "more"


def _differences(result: AuditFigures, run: RunAudit, lean: Measure | None) -> Iterator[Finding]:
    """How a run differs from the baseline in bias: in each measure that shows it, and in the first one anyway."""
    measures = compared_measures(result)
    compared_on = {measure: comparison for measure in measures if (comparison := _against(run, measure)) is not None}
    leading = lean if lean is not None else next(iter(measures), None)
    # What is shown comes first.
    for measure, compared in sorted(compared_on.items(), key=lambda item: not item[1].significant):
        if measure == leading or compared.significant:
            yield _difference(result, run, measure, compared)
    yield from _share_differences(result, run)


def _difference(result: AuditFigures, run: RunAudit, measure: Measure, compared: RunComparison) -> Finding:
    """How a run differs from the baseline in a measure of bias."""
    test, change, how = compared.test, bias_change(measure, compared), resolve(measure)
    if test.reason == ALL_ZERO:
        key = "same_figure_in_common" if compared.partial else "same_figure"
    elif compared.holm_p is None:
        key = "difference_untold"
    elif how.construct == "other" and not how.signed and compared.significant:
        key = "higher_figure" if (compared.difference or 0.0) > 0 else "lower_figure"
    else:
        key = _CHANGES[how.construct][change]
    values: dict[str, Any] = {
        "measure": shown_name(measure),
        "why": test.reason,
        "difference": _difference_of(compared),
    }
    values["baseline"] = in_short(str(result.baseline), "the baseline")
    values["where"] = ""
    if compared.partial:
        values["where"] = _PHRASES.text("on_common", count=counted(compared.n, "query"))
    pair = poles(result, measure)
    values["pole"] = "" if pair is None else pole(pair, compared.difference or 0.0)
    values["target"] = target_shares(measure)
    values["corrected"] = _PHRASES.text("after_correction") if _only_uncorrected(test) else ""
    values["neutral"] = "neutral" if labelled(result) else "neutral in wording"
    level: Level = "no difference shown" if key.startswith("same") else test.verdict
    # Without effectiveness this is the answer, where the run has to be named; of several runs the table and the order
    # say which differ.
    answers = len(result.given) == 2 and not result.judged
    place: Place = "detail" if len(result.given) > 2 else "answer" if answers else "finding"
    return _PHRASES.finding(key, run.name, level, test, place, who=run.name if answers else "It", **values)


def _share_differences(result: AuditFigures, run: RunAudit) -> Iterator[Finding]:
    """The groups that a run shows more or less of than the baseline, from the largest."""
    shares = sorted((share for share in result.shares if share.run == run.name), key=lambda share: -share.share)
    shown = [(share.group, share.vs_baseline) for share in shares if share.vs_baseline and share.vs_baseline.shown]
    if not shown:
        return
    more, less = ([group for group, test in shown if sign * (test.mean or 0.0) > 0] for sign in (1, -1))
    key = "more_and_fewer_than_baseline" if more and less else "more_than_baseline" if more else "fewer_than_baseline"
    place: Place = "detail" if len(result.given) > 2 else "finding"
    values: dict[str, Any] = {"more": _some(more), "less": _some(less), "who": "It"}
    values["baseline"] = in_short(str(result.baseline), "the baseline")
    yield _PHRASES.finding(key, run.name, "shown", shown[0][1], place, **values)


# --- several groups --------------------------------------------------------------------------------------------------


def _shares(result: AuditFigures) -> list[Measure]:
    return [measure for measure in result.measures if type(measure) is type(Share)]


def _of_groups(result: AuditFigures) -> dict[str, list[Finding]]:
    """Of each run the groups that it shows in another share than its candidates have, from the largest."""
    return {run.name: list(_group_findings(result, run)) for run in result.given} if _shares(result) else {}


def _group_findings(result: AuditFigures, run: RunAudit) -> Iterator[Finding]:
    tests = [share for share in result.shares if share.run == run.name]
    shown = sorted((test for test in tests if test.test.shown), key=lambda share: -share.share)
    if not shown and any(test.test.p is not None for test in tests):
        yield _PHRASES.finding("groups_alike", run.name, "no difference shown")
        return
    if not shown:
        why = ONLY_KNOWN if result.settings.get("unknown") == "skip" else PARTLY
        why = next((test.test.reason for test in tests if test.test.reason is not None), why)
        yield _PHRASES.finding("groups_untold", run.name, "cannot be told", why=why)
        return
    several = len(result.given) > 2
    more, less = ([share for share in shown if (sign * (share.test.mean or 0.0)) > 0] for sign in (1, -1))
    key = "more_and_fewer_groups" if more and less else "more_groups" if more else "fewer_groups"
    listed = [_some([_group(share, figures=not several) for share in of]) for of in (more, less)]
    yield _PHRASES.finding(key, run.name, "shown", shown[0].test, more=listed[0], less=listed[1])
    beyond = [share for share in shown if share.beyond_ideal]
    if beyond:
        groups = _some([share.group for share in beyond])
        yield _PHRASES.finding("groups_beyond", run.name, "shown", beyond[0].vs_ideal_order, groups=groups)
    elif len(result.given) == 1 and _all_by_relevance(result):
        yield _PHRASES.finding("groups_by_relevance", run.name, "no difference shown")


def _predicate(found: Finding) -> str:
    """What is said of its subject."""
    return found.text.removeprefix(f"{found.subject} ").removesuffix(".")


def _all_by_relevance(result: AuditFigures) -> bool:
    """Whether groups differ from the candidates, and nowhere is that shown to be beyond an ideal ranking."""
    shown = [share for share in result.shares if share.test.shown]
    return bool(shown) and all(share.vs_ideal_order is not None and not share.beyond_ideal for share in shown)


def _group(found: GroupShare, *, figures: bool) -> str:
    """A group, with what the order adds to its share where there is room for ``figures``."""
    return _PHRASES.text("a_group", group=found.group, added=found.test) if figures else found.group


def _some(names: Sequence[str]) -> list[str]:
    """Names, and how many more there are."""
    rest = len(names) - MOST_GROUPS
    return [*names[:MOST_GROUPS], _PHRASES.text("others", count=rest)] if rest > 1 else list(names)


# --- groups of queries -----------------------------------------------------------------------------------------------


def _of_query_groups(result: AuditFigures) -> Iterator[Finding]:
    """Who is served worse than others, and for whom a run is better or worse than the baseline: one sentence each."""
    if not result.query_groups:
        return
    measures = {str(measure): measure for measure in result.measures}
    shown = [group for group in result.query_groups if group.test.shown]
    # What is not shown to be worse for a group comes after what is; effectiveness before bias.
    ranked = sorted(
        shown, key=lambda group: (is_bias(measures[group.measure]), _gain(measures[group.measure], group.test) >= 0)
    )
    for group in ranked[:1]:
        alike = [other for other in ranked if (other.run, other.measure) == (group.run, group.measure)]
        worst = min(alike, key=lambda other: _gain(measures[other.measure], other.test))
        better = _gain(measures[worst.measure], worst.test) >= 0
        key = "group_best" if better else "group_worst"
        if is_bias(measures[group.measure]):
            key = "group_higher" if (worst.test.mean or 0.0) > 0 else "group_lower"
        named: dict[str, Any] = {"run": worst.run, "group": worst.group, "measure": shown_name(measures[worst.measure])}
        yield _PHRASES.finding(key, "", "shown", worst.test, **named)
    if not shown:
        yield _no_group_apart(result, measures)
    yield from _of_groups_against(result, measures)


def _gain(measure: Measure, test: Comparison) -> float:
    """How far a difference is for the better; of measures without a better side, and signed ones, minus its size."""
    how, mean = resolve(measure), test.mean or 0.0
    return -abs(mean) if how.undirected or how.signed else mean if how.better == "higher" else -mean


def _of_groups_against(result: AuditFigures, measures: Mapping[str, Measure]) -> Iterator[Finding]:
    """The groups of queries on which a run is shown to differ from the baseline, of the first measure that shows it."""
    for name, measure in measures.items():
        for run in result.given:
            tests = [group for group in result.query_groups if (group.run, group.measure) == (run.name, name)]
            compared = [(group.group, group.vs_baseline) for group in tests if group.vs_baseline is not None]
            shown = [(group, test) for group, test in compared if test.shown]
            if not shown:
                continue
            better, worse = ([g for g, test in shown if sign * _gain(measure, test) > 0] for sign in (1, -1))
            key = "groups_better_and_worse" if better and worse else "groups_better" if better else "groups_worse"
            template = "groups_changed" if is_bias(measure) else key
            fields: dict[str, Any] = {"better": _some(better), "worse": _some(worse), "measure": shown_name(measure)}
            fields |= {"groups": _some([group for group, _ in shown]), "baseline": result.baseline}
            yield _PHRASES.finding(template, "", "shown", shown[0][1], run=run.name, **fields)
            return


def _no_group_apart(result: AuditFigures, measures: Mapping[str, Measure]) -> Finding:
    """That no group of queries is shown to differ from the others, or why that cannot be told."""
    groups = [group for group in result.query_groups if group.test.mde is not None]
    if not groups:
        why = next((group.test.reason for group in result.query_groups if group.test.reason is not None), "")
        return _PHRASES.finding("query_groups_untold", "", "cannot be told", why=why)
    first = [group for group in groups if group.measure == groups[0].measure]
    least = max(group.test.mde or 0.0 for group in first)
    values: dict[str, Any] = {"measure": shown_name(measures[first[0].measure]), "noticed": least}
    return _PHRASES.finding("query_groups_alike", "", "no difference shown", **values)


# --- what could change the answer ------------------------------------------------------------------------------------


def _notes(result: AuditFigures) -> Iterator[Finding]:
    if result.query_cluster is not None:
        views = None if result.views is None else result.views.to_numpy()
        sizes = np.bincount(np.unique(result.query_cluster.to_numpy(), return_inverse=True)[1], views)
        worth = effective_clusters(sizes)
        clusters = in_clusters(len(sizes), worth)
        values: dict[str, Any] = {"clusters": clusters, "count": counted(result.n, result.unit)}
        # Few of them decide how sure all else is.
        place: Place = "warning" if worth <= MOST_LOST * result.n else "note"
        yield _PHRASES.finding("clusters", place=place, why=result.settings["query_clusters"], **values)
    moved = _moved(result)
    if moved:
        yield _PHRASES.finding("ties", level="cannot be told", place="note", figures=moved)
    if result.unequal_depth:
        measures = [shown_name(measure) for measure in result.measures if str(measure) in result.unequal_depth]
        yield _PHRASES.finding("unequal_depth", level="cannot be told", place="note", measures=measures)
    yield from _no_figures(result)
    yield from result.cautions
    if len(result.given) == 2 and result.settings.get("margin") is not None:
        yield from _to_rule_out(result)


def _no_figures(result: AuditFigures) -> Iterator[Finding]:
    """The measures of which no run has a figure."""
    by_reason: dict[str, list[str]] = {}
    for measure in result.measures:
        figures = [run.measures[str(measure)] for run in result.given]
        if measure != shown_lean(result) and all(figure.mean is None and figure.bounds is None for figure in figures):
            by_reason.setdefault(_why_none(figures[0]), []).append(shown_name(measure))
    for why, measures in by_reason.items():
        yield _PHRASES.finding("no_figure", level="cannot be told", place="note", measures=measures, why=why)


def _moved(result: AuditFigures) -> list[str]:
    """What ties could move further than the interval is wide: one measure a run."""
    texts, called = [], short_names(result)
    for run in result.given:
        figures = [figure for figure in run.measures.values() if is_bias(figure.measure)]
        ends = [(figure.measure, figure.tie_range) for figure in figures if figure.tie_sensitive]
        for measure, (low, high) in ((measure, of) for measure, of in ends[:1] if of is not None):
            texts.append(
                _PHRASES.text("moved_figure", measure=shown_name(measure), run=called[run.name], low=low, high=high)
            )
    more = len(texts) - MOST_MOVED
    return texts if more <= 0 else [*texts[:MOST_MOVED], _PHRASES.text("moved_others", runs=counted(more, "more run"))]


def _to_rule_out(result: AuditFigures) -> Iterator[Finding]:
    """How many queries would rule a loss of more than the margin out, where one is possible."""
    margin = float(result.settings["margin"])
    for run in result.given:
        for measure in utility_measures(result)[:1]:
            compared = run.measures[str(measure)].vs_baseline
            if compared is None or compared.no_loss is not False or compared.unequal_depth:
                continue
            needed = queries_for_no_loss(run[measure], result[str(result.baseline)][measure], margin)
            if needed is not None and needed > compared.n:
                values: dict[str, Any] = {"needed": needed, "count": compared.n, "margin": f"{100 * margin:g}%"}
                yield _PHRASES.finding("to_rule_out", run.name, "cannot be told", place="note", **values)


def queries_for_no_loss(figure: MetricValue, baseline: MetricValue, margin: float) -> int | None:
    """How many queries rule a loss of more than ``margin`` out, with these queries' spread, if both are equal."""
    both = ~np.isnan(figure.values - baseline.values)
    difference, base = figure.values[both] - baseline.values[both], baseline.values[both]
    compared = figure.vs_baseline
    if compared is None or not compared.losses or len(base) < 2:
        return None
    loss = compared.losses[0]
    sd = float(np.std(difference + margin * base, ddof=1))
    return queries_to_hold(margin * float(base.mean()), sd, loss.loss, design_effect=loss.design_effect)
