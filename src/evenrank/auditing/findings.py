"""What an audit says: is it better, is it biased, towards whom, whose fault, how sure.

The words are in ``phrases/audit.toml``, the verdicts the core's (:mod:`evenrank.measures.inference`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ir_measures import Measure

from evenrank.io.wording import counted
from evenrank.measures import inference as st
from evenrank.measures import is_bias, resolve
from evenrank.measures.inference import EQUAL, LEAST, MARGIN, outcome, queries_to_hold
from evenrank.results.finding import Finding, Level, Place, phrases

from .about import Poles, in_short, poles, short_names, shown_lean, utility_measures
from .data import ALL_ZERO, AuditFigures, Comparison, Excess, Figure, RunAudit

_SAYS = phrases("audit")
MOST_MOVED = 2
"""Runs of which it is said how far ties move a figure."""
MOST_GROUPS = 5
"""Groups that the screen names for a run."""


def audit_findings(result: AuditFigures) -> tuple[Finding, ...]:
    """All findings of an audit, those of the first line before the others."""
    return (*_answer(result), *_warnings(result), *_of_runs(result), *_notes(result))


# --- the first line --------------------------------------------------------------------------------------------------


def _answer(result: AuditFigures) -> Iterator[Finding]:
    given = result.given
    if not result.judged:
        yield _SAYS.find("unknown", level="cannot be told", place="answer")
    if len(given) > 2 or (len(given) == 2 and result.baseline is None):
        yield from _orders(result)
    elif len(given) == 2 and result.baseline is not None:
        (run,) = (run for run in given if run.name != result.baseline)
        yield from _better(result, run, result[result.baseline])
        yield from _less_biased(result, run)
    elif result.judged:
        measure = utility_measures(result)[0]
        figure = given[0].figures[str(measure)]
        found = st.Estimate(figure.mean, figure.ci95, figure.n)
        yield _SAYS.find("effectiveness", given[0].name, "shown", found, "answer", measure=str(measure))


def _better(result: AuditFigures, run: RunAudit, base: RunAudit) -> Iterator[Finding]:
    """Whether the only other run is better than the baseline, by the first measure of effectiveness."""
    measures = utility_measures(result)
    if not measures:
        return
    figure, other = run.figures[str(measures[0])], base.figures[str(measures[0])]
    compared = figure.vs_baseline
    assert compared is not None
    key, level = _how_good(compared)
    if figure.order_sensitive or other.order_sensitive:
        key, level = "passage_order", "cannot be told"
    named: dict[str, Any] = {
        "run": run.name,
        "baseline": base.name,
        "measure": str(measures[0]),
        "why": compared.test.why,
    }
    yield _SAYS.find(key, run.name, level, compared.test, "answer", **named)


def _how_good(compared: Comparison) -> tuple[str, Level]:
    if compared.unequal_depth:
        return "depth", "cannot be told"
    if compared.significant and compared.difference is not None:
        if compared.difference > 0:
            return "better", "shown"
        return "worse_within" if compared.no_loss else "worse", "shown"
    if compared.loss is not None and outcome(compared.loss, compared.loss.p_broken()) == "broken":
        return "loses", "shown"
    if compared.test.why == ALL_ZERO:
        return "equally_good", "no difference shown"
    if compared.no_loss:
        return "keeps", "shown"
    if compared.test.why is not None:
        return "better_untold", "cannot be told"
    return "not_better", "no difference shown"


def _less_biased(result: AuditFigures, run: RunAudit) -> Iterator[Finding]:
    """Whether the only other run is less biased than the baseline."""
    found = [(measure, one) for measure in _compared_measures(result) if (one := _against(run, measure)) is not None]
    if not found:
        return
    level: Level = "shown"
    less = [str(measure) for measure, one in found if bias_verdict(measure, one) == "less"]
    more = [str(measure) for measure, one in found if bias_verdict(measure, one) == "more"]
    apart = [str(measure) for measure, one in found if bias_verdict(measure, one) == "apart"]
    if less and more:
        key = "less_and_more_biased"
    elif less or more:
        key = "less_biased" if less else "more_biased"
    elif apart:
        key = "bias_apart"
    elif any(one.test.p is not None for _, one in found):
        key, level = "no_bias_difference", "no difference shown"
    elif all(one.test.why == ALL_ZERO for _, one in found):
        key, level = "same_bias", "no difference shown"
    else:
        key, level = "bias_untold", "cannot be told"
    why = next((one.test.why for _, one in found if one.test.why not in (None, ALL_ZERO)), None)
    named: dict[str, Any] = {
        # The sentence before has named them.
        "run": in_short(run.name, "It") if result.judged else run.name,
        "baseline": in_short(str(result.baseline), "the baseline"),
        "measures": less or more or apart,
        "why": why,
    }
    yield _SAYS.find(key, run.name, level, found[0][1].test, "answer", less=less, more=more, **named)


def _compared_measures(result: AuditFigures) -> list[Measure]:
    """The measures of bias that have a better side."""
    return [m for m in result.measures if is_bias(m) and not resolve(m).undirected]


def _against(run: RunAudit, measure: Measure) -> Comparison | None:
    """The comparison with the baseline, unless depth rather than order decides it."""
    compared = run.figures[str(measure)].vs_baseline
    return None if compared is None or compared.unequal_depth else compared


def bias_verdict(measure: Measure, compared: Comparison) -> str | None:
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
    utility = utility_measures(result)[:1]
    bias = [measure for measure in _compared_measures(result) if measure == shown_lean(result)][:1]
    for measure in (*utility, *(bias or _compared_measures(result)[:1])):
        apart = {(one.first, one.second) for one in result.pairs if one.measure == str(measure) and one.test.shown}
        apart |= {(second, first) for first, second in apart}
        means = {run.name: run.figures[str(measure)].mean for run in result.given}
        ranked = sorted((name for name, mean in means.items() if mean is not None), key=lambda name: means[name] or 0.0)
        if len(ranked) < 2:
            continue
        key, order = _in_order(ranked, apart, short_names(result))
        level: Level = "shown" if apart else "no difference shown"
        yield _SAYS.find(key, "", level, None, "answer", measure=str(measure), order=order, count=len(ranked))


def _in_order(ranked: Sequence[str], apart: set[tuple[str, str]], called: Mapping[str, str]) -> tuple[str, str]:
    """The template, and the runs from the lowest mean to the highest: ``BM25 < TK = BERT < MiniLM``.

    Where that would say of two runs that they differ, or do not, and they do not, or do: the pairs that differ.
    """
    if not apart:
        return "none_apart" if len(ranked) > 2 else "two_alike", ""
    tiers: list[list[str]] = [[ranked[0]]]
    for before, name in pairwise(ranked):
        if (before, name) in apart:
            tiers.append([])
        tiers[-1].append(name)
    tier = {name: place for place, names in enumerate(tiers) for name in names}
    if all(((a, b) in apart) == (tier[a] != tier[b]) for a in ranked for b in ranked if a != b):
        return "ranked", " < ".join(" = ".join(called[name] for name in names) for names in tiers)
    below = {a: [b for b in ranked[place + 1 :] if (a, b) in apart] for place, a in enumerate(ranked)}
    said = {called[a]: ", ".join(called[b] for b in above) for a, above in below.items() if above}
    return "ranked_in_part", "; ".join(f"{a} < {above}" for a, above in said.items())


# --- what misleads ---------------------------------------------------------------------------------------------------


def _warnings(result: AuditFigures) -> Iterator[Finding]:
    for said in result.warnings:
        if not said.startswith("Effectiveness is unknown"):
            yield Finding("warning", "", "cannot be told", None, said, "warning")
    if len(result.queries) < LEAST:
        yield _SAYS.find("few", level="cannot be told", place="warning", count=counted(len(result.queries), "query"))


# --- whose lean it is ------------------------------------------------------------------------------------------------


def _of_runs(result: AuditFigures) -> Iterator[Finding]:
    lean = shown_lean(result)
    only = len(result.given) == 1
    several = len(result.given) > 2
    of_groups = [one for run in result.given for one in (() if lean is not None else _group_findings(result, run))]
    alike = several and bool(of_groups) and all(one.key == "groups_alike" for one in of_groups)
    if alike:
        yield _SAYS.find("no_groups_apart", level="no difference shown")
    for run in result.given:
        if lean is not None:
            found = lean_finding(result, run, lean)
            yield replace(found, place="answer") if only else found
        elif result.shares:
            place: Place = "detail" if alike else "finding"
            yield from (replace(one, place=place) for one in of_groups if one.subject == run.name)
        if run.name == result.baseline or result.baseline is None:
            continue
        leading = lean if lean is not None else next(iter(_compared_measures(result)), None)
        for measure in _compared_measures(result):
            compared = _against(run, measure)
            if compared is not None and (measure == leading or compared.significant):
                yield from _difference(result, run, measure, compared)


def lean_finding(result: AuditFigures, run: RunAudit, measure: Measure) -> Finding:
    """Towards which group a run leans, and whether its candidates or their order do it."""
    figure, pair = run.figures[str(measure)], poles(result, measure)
    test = figure.lean
    if figure.mean is None or test is None or pair is None:
        return _without_mean(run, figure)
    if test.why == ALL_ZERO:
        return _SAYS.find("never_leans", run.name, "no difference shown", test)
    if test.why is not None:
        why = test.why if test.n > 1 else "there is only one query"
        return _SAYS.find("lean_untold", run.name, "cannot be told", test, why=why)
    added = figure.added
    key = _whose(test.shown, figure, added)
    held = None if added is None else added.reference
    values: dict[str, Any] = {
        "pole": side(pair, figure.mean),
        "other": "" if held is None else side(pair, held),
        "lean": figure.mean,
        "held": held,
        "added": None if added is None else st.Estimate(added.mean, added.ci95, added.n),
        "noticed": test.noticeable,
        "tied": figure.tie_mean,
    }
    return _SAYS.find(key, run.name, test.verdict, test, **values)


def _whose(shown: bool, figure: Figure, added: Excess | None) -> str:
    """The template of a lean that is ``shown`` or not, from what its candidates hold and what their order adds."""
    if shown and added is not None and added.tie_sensitive:
        return "leans_by_ties"
    if added is None:
        return "leans_alone" if shown else "no_lean"
    held, adds = added.leans.shown and abs(added.reference) > EQUAL, added.shown()
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


def side(pair: Poles, mean: float) -> str:
    """The side of a mean in words: ``male``, ``towards rest``."""
    pole = pair.second if mean < 0 else pair.first
    if pair.worded:
        return {"m": "male", "f": "female"}[pole]
    return "towards the other groups" if pole == "rest" else f"towards {pole}"


def _without_mean(run: RunAudit, figure: Figure) -> Finding:
    named: dict[str, Any] = {"measure": str(figure.measure)}
    if figure.bounds is not None:
        low, high = figure.bounds
        return _SAYS.find("lean_within", run.name, "cannot be told", low=low, high=high, **named)
    if figure.known is not None and figure.known[0] == 0:
        why = "no document that it looks at has a label"
    elif figure.known is not None and not figure.undefined:
        why = "it has no exact bounds over unknown labels"
    else:
        why = "it is undefined for every query"
    return _SAYS.find("lean_undefined", run.name, "cannot be told", why=why, **named)


def _difference(result: AuditFigures, run: RunAudit, measure: Measure, compared: Comparison) -> Iterator[Finding]:
    """How a run differs from the baseline in bias."""
    test, verdict, signed = compared.test, bias_verdict(measure, compared), resolve(measure).signed
    if test.why == ALL_ZERO:
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
    named: dict[str, Any] = {
        "baseline": in_short(str(result.baseline), "the baseline"),
        "measure": str(measure),
        "why": test.why,
        "noticed": test.noticeable,
    }
    difference = st.Estimate(compared.difference, test.ci95, test.n)
    # Of several runs the table and the first line say which differ.
    place: Place = "finding" if len(result.given) == 2 else "detail"
    yield _SAYS.find(key, run.name, test.verdict, test, place, difference=difference, **named)


# --- several groups --------------------------------------------------------------------------------------------------


def _group_findings(result: AuditFigures, run: RunAudit) -> Iterator[Finding]:
    """The groups that a run shows in another share than its candidates have, from the largest."""
    found = [one for one in result.shares if one.run == run.name]
    if not found:
        return
    shown = sorted((one for one in found if one.test.shown), key=lambda one: -one.share)
    if not shown:
        why = next((one.test.why for one in found if one.test.p is None), None)
        untold = all(one.test.p is None for one in found)
        level: Level = "cannot be told" if untold else "no difference shown"
        yield _SAYS.find("groups_untold" if untold else "groups_alike", run.name, level, why=why)
        return
    groups = [one.group for one in shown]
    more = [f"{len(groups) - MOST_GROUPS} more"] * (len(groups) > MOST_GROUPS)
    yield _SAYS.find("groups_differ", run.name, "shown", groups=[*groups[:MOST_GROUPS], *more])
    for one in shown[:MOST_GROUPS]:
        added = st.Estimate(one.test.mean, one.test.ci95, one.test.n)
        yield _SAYS.find("more_of", run.name, "shown", one.test, group=one.group, share=one.share, added=added)


# --- what could change the answer ------------------------------------------------------------------------------------


def _notes(result: AuditFigures) -> Iterator[Finding]:
    moved = _moved(result, "tie")
    if moved:
        yield _SAYS.find("ties", level="cannot be told", place="note", figures=moved)
    moved = _moved(result, "order")
    if moved:
        yield _SAYS.find("orders", level="cannot be told", place="note", figures=moved)
    if result.unequal_depth:
        yield _SAYS.find("unequal_depth", level="cannot be told", place="note", measures=list(result.unequal_depth))
    yield from (Finding("caution", "", "cannot be told", None, said, "note") for said in result.cautions)
    if len(result.given) == 2:
        yield from _to_rule_out(result)


def _moved(result: AuditFigures, by: str) -> list[str]:
    """What ties, or the order of passages, could move further than the interval is wide: one measure a run."""
    found, called = [], short_names(result)
    for run in result.given:
        figures = [one for one in run.figures.values() if is_bias(one.measure) or by == "order"]
        ends = [
            (one.measure, one.tie_range if by == "tie" else one.order_range)
            for one in figures
            if (one.tie_sensitive if by == "tie" else one.order_sensitive)
        ]
        for measure, (low, high) in ((measure, of) for measure, of in ends[:1] if of is not None):
            found.append(_SAYS.say("moved_figure", measure=str(measure), run=called[run.name], low=low, high=high))
    more = len(found) - MOST_MOVED
    return found if more <= 0 else [*found[:MOST_MOVED], f"figures of {counted(more, 'more run')}"]


def _to_rule_out(result: AuditFigures) -> Iterator[Finding]:
    """How many queries would rule a loss out, where one is possible."""
    for run in result.given:
        for measure in utility_measures(result)[:1]:
            compared = run.figures[str(measure)].vs_baseline
            if compared is None or _how_good(compared)[0] != "not_better" or compared.loss is None:
                continue
            needed = queries_to_hold(MARGIN * (compared.baseline_mean or 0.0), 0.0, compared.loss.loss)
            if needed is not None and needed > compared.n:
                values: dict[str, Any] = {"needed": needed, "count": compared.n}
                yield _SAYS.find("to_rule_out", run.name, "cannot be told", place="note", **values)
