"""What an audit says: is it better, is it biased, towards whom, whose fault, how sure.

The words are in ``phrases/audit.toml``, the verdicts the core's (:mod:`evenrank.stats`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from ir_measures import Measure

from evenrank.files.types import EQUAL, Array
from evenrank.files.wording import counted
from evenrank.measures import Share, is_bias, is_linear, resolve
from evenrank.measures.base import mean_of
from evenrank.results.finding import Finding, Level, Place, phrases
from evenrank.stats.bounds import MARGIN, outcome
from evenrank.stats.compare import ALL_ZERO, LEAST_NOT_ZERO, Comparison
from evenrank.stats.estimate import Estimate
from evenrank.stats.planning import queries_to_hold

from .data import AuditFigures, GroupShare, MetricValue, OrderEffect, Pair, RunAudit, RunComparison, shown_name
from .impact import impact_findings
from .poles import pole, poles, side
from .run_names import in_short, short_names
from .selected_measures import shown_lean, utility_measures
from .values import ONLY_KNOWN, PARTLY

_PHRASES = phrases("audit")
MOST_MOVED = 2
"""Runs of which it is said how far ties move a figure."""
MOST_GROUPS = 5
"""Groups that the screen names for a run."""


@dataclass(frozen=True, slots=True)
class RunFindings:
    """What is found of a run: sentences and verdicts at a glance are made of the same.

    Attributes:
        effectiveness: Whether it is better than the baseline, by the first measure of effectiveness.
        lean: Towards whom it leans, and whose lean that is.
        bias: Whether it is less biased than the baseline.
    """

    effectiveness: Finding | None
    lean: Finding | None
    bias: Finding | None


def run_findings(result: AuditFigures) -> dict[str, RunFindings]:
    """What is found of each audited run, by its name; None without a baseline, of itself, or without a measure."""
    lean = shown_lean(result)
    found = {}
    for run in result.given:
        base = None if result.baseline in (None, run.name) else result[str(result.baseline)]
        found[run.name] = RunFindings(
            None if base is None else next(_effectiveness(result, run, base), None),
            None if lean is None else _lean(result, run, lean),
            None if base is None else next(_less_biased(result, run), None),
        )
    return found


def audit_findings(result: AuditFigures, by_run: Mapping[str, RunFindings]) -> tuple[Finding, ...]:
    """All findings of an audit, those of the first line before the others; ``by_run``: see :func:`run_findings`."""
    answer, of_runs = list(_answer(result, by_run)), list(_of_runs(result, by_run))
    if any(one.key == "bias_untold" for one in answer):
        of_runs = [replace(one, place="detail") if one.key == "difference_untold" else one for one in of_runs]
    of_queries = _of_query_groups(result)
    found = [*answer, *_warnings(result), *of_runs, *impact_findings(result.impact), *of_queries]
    found += _notes(result)
    if not any(one.place == "answer" for one in found):
        # Where effectiveness is not asked for and nothing is compared, the first finding answers.
        first = next((n for n, one in enumerate(found) if one.place == "finding"), None)
        found = found if first is None else [replace(found[first], place="answer"), *found[:first], *found[first + 1 :]]
    return tuple(found)


# --- the first line --------------------------------------------------------------------------------------------------


def _answer(result: AuditFigures, by_run: Mapping[str, RunFindings]) -> Iterator[Finding]:
    given = result.given
    yield from (one for one in result.misleading if one.place == "answer")
    if len(given) > 2 or (len(given) == 2 and result.baseline is None):
        yield from _orders(result)
        yield from _all_lean(result)
    elif len(given) == 2 and result.baseline is not None:
        (run,) = (run for run in given if run.name != result.baseline)
        of_run = by_run[run.name]
        effectiveness = next(_by_several(result, run, result[result.baseline]), of_run.effectiveness)
        yield from (one for one in (effectiveness, of_run.bias) if one is not None)
    elif result.judged:
        measure = utility_measures(result)[0]
        figure = given[0].measures[str(measure)]
        found = Estimate(figure.mean, figure.ci95, figure.n)
        yield _PHRASES.finding("effectiveness", given[0].name, "shown", found, "answer", measure=shown_name(measure))


def _effectiveness(result: AuditFigures, run: RunAudit, base: RunAudit) -> Iterator[Finding]:
    """Whether a run is better than the baseline, by the first measure of effectiveness."""
    for measure in utility_measures(result)[:1]:
        compared = _compared(run, measure)
        key, level = _how_good(compared)
        named = {"baseline": base.name, "measure": str(measure), "why": compared.test.reason}
        yield _PHRASES.finding(key, run.name, level, compared.test, "answer", run=run.name, **named)


def _by_several(result: AuditFigures, run: RunAudit, base: RunAudit) -> Iterator[Finding]:
    """In which of several measures of effectiveness a run is better than the baseline or worse, if in any."""
    keys = {measure: _how_good(_compared(run, measure))[0] for measure in utility_measures(result)}
    better = [measure for measure, key in keys.items() if key == "better"]
    worse = [measure for measure, key in keys.items() if key in ("worse", "worse_within")]
    if len(keys) > 1 and (better or worse):
        key = "better_and_worse" if better and worse else "better_in" if better else "worse_in"
        named = {"run": run.name, "baseline": base.name, "better": [*map(str, better)], "worse": [*map(str, worse)]}
        test = _compared(run, (better or worse)[0]).test
        yield _PHRASES.finding(key, run.name, "shown", test, "answer", **named)


def _compared(run: RunAudit, measure: Measure) -> RunComparison:
    """The comparison with the baseline, of an audit that has one."""
    compared = run[measure].vs_baseline
    assert compared is not None
    return compared


def _in_common(runs: Sequence[RunAudit]) -> Array:
    """Which of the audit's queries [Q] all the runs have."""
    has = [~np.isnan(run.lengths) for run in runs if run.lengths is not None]
    return np.asarray(np.logical_and.reduce(has))


def _how_good(compared: RunComparison) -> tuple[str, Level]:
    if compared.unequal_depth:
        return "depth", "cannot be told"
    if compared.test.reason == ALL_ZERO:
        return "equally_good", "no difference shown"
    if compared.significant and compared.difference is not None:
        if compared.difference > 0:
            return "better", "shown"
        return "worse_within" if compared.no_loss else "worse", "shown"
    if compared.losses and all(outcome(loss, loss.p_violated()) == "violated" for loss in compared.losses):
        return "loses", "shown"
    if compared.no_loss:
        return "keeps", "shown"
    if compared.test.reason is not None:
        return "better_untold", "cannot be told"
    return "not_better", "no difference shown"


def _less_biased(result: AuditFigures, run: RunAudit) -> Iterator[Finding]:
    """Whether a run is less biased than the baseline."""
    found = {shown_name(m): (m, one) for m in compared_measures(result) if (one := _against(run, m)) is not None}
    shares = [share for share in result.shares if share.run == run.name and share.vs_baseline is not None]
    if not found and not shares:
        return
    by_verdict: dict[str | None, list[str]] = {"less": [], "more": [], "apart": [], None: []}
    for name, (measure, one) in found.items():
        by_verdict[bias_verdict(measure, one)].append(name)
    less, more, apart, same = by_verdict.values()
    tests = [
        *(one.test for _, one in found.values()),
        *(share.vs_baseline for share in shares if share.vs_baseline is not None),
    ]
    others = [share for share in shares if share.vs_baseline is not None and share.vs_baseline.shown]
    level: Level = "shown"
    if less and more:
        key = "less_and_more_biased"
    elif less or more:
        key = "less_biased" if less else "more_biased"
        key = f"{key}_in" if apart else f"{key}_partly" if same else key
    elif apart:
        key = "bias_apart"
    elif others:
        key = "shares_apart"
    elif any(test.p is not None for test in tests):
        key, level = "no_bias_difference", "no difference shown"
    elif all(test.reason == ALL_ZERO for test in tests):
        partial = any(one.partial for _, one in found.values())
        key, level = "same_bias_in_common" if partial else "same_bias", "no difference shown"
    else:
        key, level = "bias_untold", "cannot be told"
    why = next((test.reason for test in tests if test.reason not in (None, ALL_ZERO)), None)
    values: dict[str, Any] = {"less": less, "more": more, "apart": apart, "same": same, "why": why}
    values["groups"] = _some([other.group for other in sorted(others, key=lambda one: -one.share)])
    deciding = next((found[name][1].test for name in (*less, *more, *apart)), None)
    deciding = deciding or next((other.vs_baseline for other in others), tests[0])
    # The sentence before has named them.
    values["run"] = in_short(run.name, "It") if result.judged else run.name
    values["baseline"] = in_short(str(result.baseline), "the baseline")
    yield _PHRASES.finding(key, run.name, level, deciding, "answer", **values)


def compared_measures(result: AuditFigures) -> list[Measure]:
    """The measures of bias that have a better side."""
    return [m for m in result.measures if is_bias(m) and not resolve(m).undirected]


def _against(run: RunAudit, measure: Measure) -> RunComparison | None:
    """The comparison with the baseline, unless depth rather than order decides it."""
    compared = run.measures[str(measure)].vs_baseline
    return None if compared is None or compared.unequal_depth else compared


def bias_verdict(measure: Measure, compared: RunComparison) -> str | None:
    """Whether a run is shown to be "less" biased than the baseline, "more", or "apart"; None where nothing is."""
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


def _orders(result: AuditFigures) -> Iterator[Finding]:
    """Of several runs, the order in which measures put them, by which two are shown to differ."""
    lean = shown_lean(result)
    for measure in (*utility_measures(result)[:1], *compared_measures(result)):
        tests = [pair for pair in result.pairs if pair.measure == str(measure)]
        apart = {(test.first, test.second) for test in tests if test.test.shown}
        leading = not is_bias(measure) or measure == (lean or next(iter(compared_measures(result))))
        if tests and (apart or leading) and len({name for test in tests for name in (test.first, test.second)}) > 1:
            yield _order(result, measure, tests, apart | {(second, first) for first, second in apart})


def _order(result: AuditFigures, measure: Measure, tests: Sequence[Pair], apart: set[tuple[str, str]]) -> Finding:
    both = _in_common(result.given)
    means = {run.name: _mean(run.measures[str(measure)], both) for run in result.given}
    ranked = sorted((name for name, mean in means.items() if mean is not None), key=lambda name: means[name] or 0.0)
    key, order = _in_order(ranked, apart, short_names(result))
    noticed = [test.test.mde for test in tests if test.test.mde is not None]
    if not apart and all(test.test.reason == ALL_ZERO for test in tests):
        key = "all_same"
    elif not apart and len(noticed) < len(tests):
        key = "none_shown" if noticed else "none_told"
    level: Level = "shown" if apart else "cannot be told" if key == "none_told" else "no difference shown"
    how, pair, name = resolve(measure), poles(result, measure), shown_name(measure)
    if apart and how.signed and pair is not None:
        name = _PHRASES.text("from_to", measure=name, least=pole(pair, -1.0), most=pole(pair, 1.0))
    elif apart and is_bias(measure):
        name = _PHRASES.text("higher" if how.better == "higher" else "lower", measure=name)
    values: dict[str, Any] = {
        "measure": name,
        "order": order,
        "count": len(ranked) or len(result.given),
        "noticed": max(noticed, default=None),
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
    said = {called[a]: ", ".join(called[b] for b in above) for a, above in below.items() if above}
    return "ranked_in_part", "; ".join(f"{a} < {above}" for a, above in said.items())


# --- what misleads ---------------------------------------------------------------------------------------------------


def _warnings(result: AuditFigures) -> Iterator[Finding]:
    yield from (one for one in result.misleading if one.place == "warning")
    both = _in_common(result.given)
    said = any(one.key in ("absent", "unjudged") for one in result.misleading)
    if len(result.given) > 1 and not both.all() and not said:
        yield _PHRASES.finding(
            "in_common", level="cannot be told", place="warning", count=int(both.sum()), total=len(both)
        )
    if len(result.queries) < LEAST_NOT_ZERO:
        yield _PHRASES.finding(
            "few", level="cannot be told", place="warning", count=counted(len(result.queries), "query")
        )


# --- whose lean it is ------------------------------------------------------------------------------------------------


def _of_runs(result: AuditFigures, by_run: Mapping[str, RunFindings]) -> Iterator[Finding]:
    lean = shown_lean(result)
    only = len(result.given) == 1
    of_groups = {} if lean is not None and len(_shares(result)) < 3 else _of_groups(result)
    if lean is None and len({_predicate(one[0]) for one in of_groups.values()}) == 1 and not only:
        # Runs share a line.
        (first, *_), *_ = of_groups.values()
        key = "no_groups_apart" if first.key == "groups_alike" else "each"
        yield replace(first, key=key, subject="", text=_PHRASES.text(key, does=_predicate(first)))
        of_groups = {name: [replace(found[0], place="detail"), *found[1:]] for name, found in of_groups.items()}
    leans = {} if lean is None else {name: one.lean for name, one in by_run.items() if one.lean is not None}
    beyond = {name: list(_beyond(result[name], one, lean)) for name, one in leans.items() if lean is not None}
    said = {one.key for found in (*beyond.values(), *of_groups.values()) for one in found}
    as_perfect = not said & {"lean_beyond", "groups_beyond"}
    by_relevance = as_perfect and sum(map(len, beyond.values())) > 1
    for run in result.given:
        if lean is not None:
            place: Place = "answer" if only else "finding"
            against = [] if by_relevance else beyond[run.name]
            yield from (replace(one, place=place) for one in (leans[run.name], *against))
        for one in of_groups.get(run.name, ()):
            if lean is None or one.level == "shown":
                yield replace(one, place="answer") if only and lean is None else one
        if run.name == result.baseline or result.baseline is None:
            continue
        leading = lean if lean is not None else next(iter(compared_measures(result)), None)
        for measure in compared_measures(result):
            compared = _against(run, measure)
            if compared is not None and (measure == leading or compared.significant):
                yield from _difference(result, run, measure, compared)
    if by_relevance or (as_perfect and len(of_groups) > 1 and _all_by_relevance(result)):
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
    held = None if added is None else added.reference
    values: dict[str, Any] = {
        "pole": side(pair, figure.mean),
        "other": "" if held is None else side(pair, held),
        "lean": figure.mean,
        "held": held,
        "added": None if added is None else Estimate(added.mean, added.ci95, added.n),
        "noticed": test.mde,
    }
    return _PHRASES.finding(key, run.name, test.verdict, test, **values)


def _beyond(run: RunAudit, found: Finding, lean: Measure) -> Iterator[Finding]:
    """Of a lean that a run's order makes larger: whether a perfect ranking would, too."""
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
    held, adds = added.leans.shown and abs(added.reference) > EQUAL, added.test.shown
    mean = figure.mean or 0.0
    if not shown:
        if held:
            return "no_lean_but_candidates" if adds else "no_lean_as_candidates"
        return "no_lean_by_order" if adds else "no_lean"
    if held and mean * added.reference < 0:
        return "leans_turned" if adds else "leans_whose"
    if held:
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


def _difference(result: AuditFigures, run: RunAudit, measure: Measure, compared: RunComparison) -> Iterator[Finding]:
    """How a run differs from the baseline in bias."""
    test, verdict, signed = compared.test, bias_verdict(measure, compared), resolve(measure).signed
    if test.reason == ALL_ZERO:
        return
    if compared.holm_p is None:
        key = "difference_untold"
    elif verdict is None:
        key = "no_difference"
    elif verdict == "apart":
        key = "apart"
    elif signed:
        key = "nearer" if verdict == "less" else "further"
    else:
        key = "fairer" if verdict == "less" else "less_fair"
    named: dict[str, Any] = {"measure": shown_name(measure), "why": test.reason, "noticed": test.mde}
    named["baseline"] = in_short(str(result.baseline), "the baseline")
    named["difference"] = Estimate(compared.difference, test.ci95, test.n)
    # Of several runs the table and the first line say which differ.
    place: Place = "detail" if len(result.given) > 2 else "finding"
    yield _PHRASES.finding(key, run.name, test.verdict, test, place, **named)


# --- several groups --------------------------------------------------------------------------------------------------


def _shares(result: AuditFigures) -> list[Measure]:
    return [measure for measure in result.measures if type(measure) is type(Share)]


def _of_groups(result: AuditFigures) -> dict[str, list[Finding]]:
    """Of each run the groups that it shows in another share than its candidates have, from the largest."""
    return {run.name: list(_group_findings(result, run)) for run in result.given} if _shares(result) else {}


def _group_findings(result: AuditFigures, run: RunAudit) -> Iterator[Finding]:
    tests = [share for share in result.shares if share.run == run.name]
    shown = sorted((test for test in tests if test.test.shown), key=lambda one: -one.share)
    if not shown and any(test.test.p is not None for test in tests):
        yield _PHRASES.finding("groups_alike", run.name, "no difference shown")
        return
    if not shown:
        why = ONLY_KNOWN if result.settings.get("unknown") == "skip" else PARTLY
        why = next((test.test.reason for test in tests if test.test.reason is not None), why)
        yield _PHRASES.finding("groups_untold", run.name, "cannot be told", why=why)
        return
    several = len(result.given) > 2
    more, less = ([one for one in shown if (sign * (one.test.mean or 0.0)) > 0] for sign in (1, -1))
    key = "more_and_fewer_groups" if more and less else "more_groups" if more else "fewer_groups"
    listed = [_some([_group(one, figures=not several) for one in of]) for of in (more, less)]
    yield _PHRASES.finding(key, run.name, "shown", shown[0].test, more=listed[0], less=listed[1])
    beyond = [one for one in shown if one.beyond_perfect]
    if beyond:
        groups = _some([one.group for one in beyond])
        yield _PHRASES.finding("groups_beyond", run.name, "shown", beyond[0].vs_ideal_order, groups=groups)
    elif len(result.given) == 1 and _all_by_relevance(result):
        yield _PHRASES.finding("groups_by_relevance", run.name, "no difference shown")


def _predicate(found: Finding) -> str:
    """What is said of its subject."""
    return found.text.removeprefix(f"{found.subject} ").removesuffix(".")


def _all_by_relevance(result: AuditFigures) -> bool:
    """Whether groups differ from the candidates, and nowhere is that shown to be beyond a perfect ranking."""
    shown = [share for share in result.shares if share.test.shown]
    return bool(shown) and all(one.vs_ideal_order is not None and not one.beyond_perfect for one in shown)


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
        shown, key=lambda one: (is_bias(measures[one.measure]), _gain(measures[one.measure], one.test) >= 0)
    )
    for one in ranked[:1]:
        alike = [two for two in ranked if (two.run, two.measure) == (one.run, one.measure)]
        worst = min(alike, key=lambda two: _gain(measures[two.measure], two.test))
        how = resolve(measures[one.measure])
        better, fair = _gain(measures[worst.measure], worst.test) >= 0, is_bias(measures[one.measure])
        key = ("group_fairer" if better else "group_less_fair") if fair else "group_best" if better else "group_worst"
        key = "group_apart" if how.undirected or how.signed else key
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
            tests = [one for one in result.query_groups if (one.run, one.measure) == (run.name, name)]
            compared = [(one.group, one.vs_baseline) for one in tests if one.vs_baseline is not None]
            shown = [(group, test) for group, test in compared if test.shown]
            if not shown:
                continue
            better, worse = ([g for g, test in shown if sign * _gain(measure, test) > 0] for sign in (1, -1))
            how = resolve(measure)
            key = "groups_better_and_worse" if better and worse else "groups_better" if better else "groups_worse"
            fair = (
                "groups_fairer_and_less_fair" if better and worse else "groups_fairer" if better else "groups_less_fair"
            )
            template = "groups_changed" if how.undirected or how.signed else fair if is_bias(measure) else key
            said: dict[str, Any] = {"better": _some(better), "worse": _some(worse), "measure": shown_name(measure)}
            said |= {"groups": _some([group for group, _ in shown]), "baseline": result.baseline}
            yield _PHRASES.finding(template, "", "shown", shown[0][1], run=run.name, **said)
            return


def _no_group_apart(result: AuditFigures, measures: Mapping[str, Measure]) -> Finding:
    """That no group of queries is shown to differ from the others, or why that cannot be told."""
    told = [group for group in result.query_groups if group.test.mde is not None]
    if not told:
        why = next((group.test.reason for group in result.query_groups if group.test.reason is not None), "")
        return _PHRASES.finding("query_groups_untold", "", "cannot be told", why=why)
    first = [one for one in told if one.measure == told[0].measure]
    least = max(one.test.mde or 0.0 for one in first)
    values: dict[str, Any] = {"measure": shown_name(measures[first[0].measure]), "noticed": least}
    return _PHRASES.finding("query_groups_alike", "", "no difference shown", **values)


# --- what could change the answer ------------------------------------------------------------------------------------


def _notes(result: AuditFigures) -> Iterator[Finding]:
    if result.query_cluster is not None:
        sizes = result.query_cluster.n_unique(), len(result.queries)
        values: dict[str, Any] = {"clusters": counted(sizes[0], "cluster"), "count": counted(sizes[1], "query")}
        yield _PHRASES.finding("clusters", place="note", why=result.settings["query_clusters"], **values)
    moved = _moved(result)
    if moved:
        yield _PHRASES.finding("ties", level="cannot be told", place="note", figures=moved)
    if result.unequal_depth:
        measures = [shown_name(measure) for measure in result.measures if str(measure) in result.unequal_depth]
        yield _PHRASES.finding("unequal_depth", level="cannot be told", place="note", measures=measures)
    yield from _no_figures(result)
    yield from result.cautions
    if len(result.given) == 2:
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
    found, called = [], short_names(result)
    for run in result.given:
        figures = [one for one in run.measures.values() if is_bias(one.measure)]
        ends = [(figure.measure, figure.tie_range) for figure in figures if figure.tie_sensitive]
        for measure, (low, high) in ((measure, of) for measure, of in ends[:1] if of is not None):
            found.append(
                _PHRASES.text("moved_figure", measure=shown_name(measure), run=called[run.name], low=low, high=high)
            )
    more = len(found) - MOST_MOVED
    return found if more <= 0 else [*found[:MOST_MOVED], _PHRASES.text("moved_others", runs=counted(more, "more run"))]


def _to_rule_out(result: AuditFigures) -> Iterator[Finding]:
    """How many queries would rule a loss out, where one is possible."""
    for run in result.given:
        for measure in utility_measures(result)[:1]:
            compared = run.measures[str(measure)].vs_baseline
            if compared is None or _how_good(compared)[0] != "not_better" or not compared.losses:
                continue
            needed = queries_for_no_loss(run[measure], result[str(result.baseline)][measure])
            if needed is not None and needed > compared.n:
                values: dict[str, Any] = {"needed": needed, "count": compared.n}
                yield _PHRASES.finding("to_rule_out", run.name, "cannot be told", place="note", **values)


def queries_for_no_loss(figure: MetricValue, baseline: MetricValue) -> int | None:
    """How many queries show a loss of at most 5%, with the spread of these, if the two runs are equally good."""
    both = ~np.isnan(figure.values - baseline.values)
    difference, base = figure.values[both] - baseline.values[both], baseline.values[both]
    compared = figure.vs_baseline
    if compared is None or not compared.losses or len(base) < 2:
        return None
    loss = compared.losses[0]
    sd = float(np.std(difference + MARGIN * base, ddof=1))
    return queries_to_hold(MARGIN * float(base.mean()), sd, loss.loss, design_effect=loss.design_effect)
