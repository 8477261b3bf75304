"""Whether a run keeps to a budget: every rule holds, is violated, or is not shown."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from evenrank import options as opt
from evenrank.files import Provenance
from evenrank.files.arguments import checked
from evenrank.files.errors import EvenrankError, quoted, shown
from evenrank.files.types import EQUAL, NEAR_ZERO, Array, holm
from evenrank.files.wording import counted
from evenrank.results.finding import Finding, phrases
from evenrank.stats.bounds import BoundTest, Outcome
from evenrank.stats.bounds import outcome as outcome_of
from evenrank.stats.compare import LEAST_CLUSTERS
from evenrank.stats.planning import queries_to_decide, queries_to_hold

from .audited import OF_SUMS, Audited, RuleValues, greatest_of
from .audited_json import audited_json
from .budget import Budget, Rule, as_budget
from .gate_result import Correction, GateResult
from .rule_result import Limits, RuleResult, UndecidableReason, has_power
from .rule_test import RuleTest, rule_test

if TYPE_CHECKING:
    from evenrank.auditing.data import AuditFigures

_PHRASES = phrases("gate")
_MOST_QUERIES = 1e9
_POLES = re.compile(r"poles='([^',]*),([^',]*)'")


@checked
def gate(
    audited: AuditFigures | opt.File | Mapping[str, object],
    *,
    budget: Annotated[Budget | opt.File | Mapping[str, object], opt.Option("The rules (TOML).", reads=True)],
    baseline: Annotated[
        str | None,
        opt.Option("The run that rules call the baseline; a file, or a name.", metavar="[NAME=]RUN", panel="Input"),
    ] = None,
    run: Annotated[
        str | None,
        opt.Option(
            "Which run to gate (default: the first; of AUDIT.json the only other one).",
            metavar="NAME",
            panel="Input",
            rare=True,
        ),
    ] = None,
    correction: Annotated[
        Literal["holm", "none"],
        opt.Option("For the number of rules, of those that are violated: holm or none.", panel="Statistics", rare=True),
    ] = "holm",
) -> GateResult:
    """Decide whether a run keeps to a budget. Every rule holds, is violated, or is not shown.

    A rule *holds* if the one-sided 95% interval of its value lies within the budget. It is *violated* if the value is
    shown to lie beyond the budget, also after Holm's correction for the number of rules: with several rules, more than
    an interval beyond it. Otherwise it is *not shown*. All rules have to hold, so what holds needs no correction.

    Args:
        audited: What :func:`evenrank.audit` returned, or its JSON with the values by query: a file or a dict.
        budget: A TOML file, the values that such a file has, or what :func:`evenrank.decide.budget.as_budget`
            returned, whose ``measures`` are those that the audit needs.
        run: The run to gate; by default the only one that is not the baseline.
        baseline: What "baseline" means in the rules; by default the audit's.
        correction: "holm" (default): several rules are violated by chance in at most 5%; "none": each rule is.

    Raises:
        EvenrankError: For a budget or an audit that cannot be used, or a rule that the audit has no values for.
    """
    provenance = Provenance("evenrank.gate").add("audit", audited)
    provenance.add("budget", budget.path if isinstance(budget, Budget) and budget.path is not None else budget)
    provenance.ahead()
    audit = as_audited(audited)
    rules = as_budget(budget, audit.facts)
    unchecked = next((rule for rule in rules.rules if audit.unchecked and not rule.facts.bias), None)
    if unchecked is not None:
        raise audit.fail(
            f"{unchecked.measure} is by a judge that nobody has checked: a rule needs judgements by people"
            " (evenrank labels sample draws a hundred)"
        )
    base = audit.baseline(baseline)
    gated = audit.run(run, base)
    data = [_rule_data(audit, rules, number, gated, base) for number in range(1, len(rules.rules) + 1)]
    tests = {view: _tests(data, rules, audit, view) for view in _views(data)}
    verdicts = {view: _verdicts(of_view, rules, correction) for view, of_view in tests.items()}
    results = tuple(
        _rule_result(audit, gated, rule, test, {view: of_view[place] for view, of_view in verdicts.items()}, rules)
        for place, (rule, test) in enumerate(zip(data, tests["given"], strict=True))
    )
    # The words of the audit's own are not the gate's.
    passed_on = (Finding("audit", "", "cannot be told", None, text, "warning") for text in audit.warnings)
    return GateResult(
        run=gated,
        baseline=base,
        rules=results,
        alpha=rules.alpha,
        correction=correction,
        misleading=(*passed_on, *_misleading(data, results), *_of_clusters(audit)),
        audit=audit.provenance,
        provenance=provenance,
    )


def as_audited(source: AuditFigures | opt.File | Mapping[str, object]) -> Audited:
    """An audit's values: those of a result, or from its JSON, a file or a dict.

    Raises EvenrankError for anything else; InputError for a file that is no audit's JSON.
    """
    if isinstance(source, str | os.PathLike | Mapping):
        return audited_json(source)
    # Imported late: a gate on a file needs no audits.
    from evenrank.auditing.data import AuditFigures

    from .audited_result import audited_result

    if not isinstance(source, AuditFigures):
        raise EvenrankError(f"`audited`: expected an audit's result, or its JSON, found {shown(source)}")
    if source.views is not None:
        raise EvenrankError(OF_SUMS)
    return audited_result(source)


# --- the values and their tests --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _RuleData:
    """A rule with the values that it is about: those of the run, and those of the run that it is against.

    ``greatest``: the largest size of a query's value; ``both`` [Q]: the queries that both runs have; ``unequal_depth``:
    whether depth rather than order may decide.
    """

    rule: Rule
    against: str | None
    own: RuleValues
    other: RuleValues | None
    greatest: float
    both: Array
    unequal_depth: bool

    @property
    def values(self) -> list[RuleValues]:
        """Those of the run, and of the other if there is one."""
        return [self.own] if self.other is None else [self.own, self.other]


_View = Literal["given", "tied", "missing"]
"""In the order of the runs; over all orders of tied documents; on the queries that both runs have."""


def _rule_data(audit: Audited, budget: Budget, number: int, gated: str, base: str | None) -> _RuleData:
    rule = budget.rules[number - 1]
    other = audit.against(budget, number, base)
    if other == gated:
        raise budget.error(number, f"against: {quoted(gated)} is the run that is gated")
    runs = [gated, *([] if other is None else [other])]
    try:
        if "pooled=True" in rule.measure:
            raise EvenrankError("a pooled ratio is no mean over queries: the audit's impact table tests it")
        own, *others = values = [audit.of(run, rule) for run in runs]
        return _RuleData(
            rule,
            other,
            own,
            others[0] if others else None,
            greatest_of(rule, values),
            audit.both_have(runs),
            other is not None and audit.unequal_depth(gated, rule, other),
        )
    except EvenrankError as error:
        raise budget.error(number, str(error)) from None


def _views(rules: Sequence[_RuleData]) -> list[_View]:
    """The views in which some rule's values are others."""
    views: list[_View] = ["given"]
    if any(values.over_ties is not None for data in rules for values in data.values):
        views.append("tied")
    if any(not data.both.all() and not data.rule.facts.bias for data in rules):
        views.append("missing")
    return views


def _tests(rules: Sequence[_RuleData], budget: Budget, audit: Audited, view: _View) -> list[RuleTest]:
    """Each rule's test in a view; none of what documents without a label could change, or of too few labels."""

    def parts(data: _RuleData, values: RuleValues) -> Sequence[Array]:
        if view == "tied" and values.over_ties is not None:
            return [values.over_ties]
        if view == "missing" and not data.rule.facts.bias:
            return [np.where(data.both, part, np.nan) for part in values.parts]
        return values.parts

    tests = []
    for number, data in enumerate(rules, start=1):
        other = data.other
        try:
            test = rule_test(
                data.rule,
                parts(data, data.own),
                None if other is None else parts(data, other),
                greatest=data.greatest,
                alpha=budget.alpha,
                samples=(data.own.sample, None if other is None else other.sample),
                clusters=audit.clusters,
            )
        except EvenrankError as error:
            raise budget.error(number, str(error)) from None
        undecidable = data.own.few_labels or any(values.partly_labelled for values in data.values)
        tests.append(replace(test, test=None) if undecidable else test)
    return tests


# --- outcomes --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Verdict:
    """What a rule's test decides in a view; ``holm_p``: after correction, ``level``: that of one rule alone."""

    outcome: Outcome
    p_violated: float | None
    holm_p: float | None
    level: float


def _verdicts(tests: Sequence[RuleTest], budget: Budget, correction: Correction) -> list[_Verdict]:
    p_violated = [None if test.test is None else test.test.p_violated() for test in tests]
    corrected = holm(p_violated) if correction == "holm" else p_violated
    number = max(sum(p is not None for p in p_violated), 1)
    level = budget.alpha / number if correction == "holm" else budget.alpha
    return [
        _Verdict("not shown" if test.test is None else outcome_of(test.test, holm_p, budget.alpha), p, holm_p, level)
        for test, p, holm_p in zip(tests, p_violated, corrected, strict=True)
    ]


def _rule_result(
    audit: Audited,
    run: str,
    data: _RuleData,
    tested: RuleTest,
    verdicts: Mapping[_View, _Verdict],
    budget: Budget,
) -> RuleResult:
    """The result of a rule: what only ties decide, or queries that a run lacks and that count as 0, is not shown."""
    rule, test, verdict = data.rule, tested.test, verdicts["given"]
    turned = [view for view, other in verdicts.items() if verdict.outcome not in (other.outcome, "not shown")]
    outcome: Outcome = "not shown" if turned else verdict.outcome
    reason = _undecidable_reason(data, tested, turned) if outcome == "not shown" else None
    open_ = verdict.outcome == "not shown" and reason not in ("unequal", "labels")
    return RuleResult(
        rule=rule,
        against=data.against,
        outcome=outcome,
        value=_value_of(rule, tested.mean, tested.other) if test is None else test.value,
        limits=None if test is None else _possible_limits(rule, test, budget.alpha, tested.other),
        n=tested.n,
        left_out=tested.left_out,
        mean=tested.mean,
        other_mean=tested.other,
        p_holds=None if test is None else test.p_holds(),
        p_violated=verdict.p_violated,
        holm_p=verdict.holm_p,
        queries_to_decide=_queries_to_decide(test, tested.n, budget.alpha, verdict.level) if test and open_ else None,
        detectable=None if test is None else _detectable(rule, test, verdict.level, tested.other),
        n_if_equal=None if test is None else tested.n_if_equal,
        n_identical=None if test is None else tested.n_identical,
        chance_if_equal=None if test is None else tested.chance_if_equal,
        difference=tested.difference,
        alpha=budget.alpha,
        level=verdict.level,
        test=test,
        run=run,
        direction=_direction(audit, rule, tested),
        positive=_positive(audit, rule) if rule.signed else None,
        undecidable_reason=reason,
    )


def _undecidable_reason(data: _RuleData, tested: RuleTest, turned: Sequence[_View]) -> UndecidableReason | None:
    """Why more queries would do nothing about a rule that is not shown."""
    if any(values.partly_labelled for values in data.values):
        return "unlabelled"
    if data.own.few_labels:
        return "few_labels"
    if data.unequal_depth and tested.test is not None:
        return "unequal"
    if data.own.sample is not None:
        return "labels"
    return next((view for view in turned if view != "given"), None)


def _possible_limits(rule: Rule, test: BoundTest, alpha: float, other: float | None) -> Limits | None:
    """The limits without values that the rule's quantity cannot have; None below six clusters, as of one query."""
    if test.n_effective < LEAST_CLUSTERS <= test.n:
        return None
    least, most = rule.scale(other)
    low, high = test.limits(alpha)
    return min(max(low, least), most), max(min(high, most), least)


def _value_of(rule: Rule, own: float | None, other: float | None) -> float | None:
    """What a rule bounds, from the means of the run and of the one that it is against; None if it is undefined."""
    if own is None or (rule.against is not None and other is None):
        return None
    size = abs(own) if rule.absolute else own
    if other is None:
        return size
    if rule.relative:
        return None if other <= NEAR_ZERO else size / other - 1
    return size - (abs(other) if rule.absolute else other)


def _detectable(rule: Rule, test: BoundTest, level: float, other: float | None) -> float | None:
    """What is caught, if the measure can have such a value; None of an absolute value against another run's."""
    if not has_power(test):
        return None
    low, high = rule.scale(other)
    value = test.detectable(level)
    return value if value is not None and low - EQUAL <= value <= high + EQUAL else None


def _direction(audit: Audited, rule: Rule, tested: RuleTest) -> tuple[str | None, str | None]:
    """The groups that the means of the run and of the other lean to, where the sign tells and the audit names them."""
    poles = _poles(audit, rule)
    if not rule.absolute or poles is None:
        return None, None
    signs = [None if not mean else poles[mean < 0] for mean in (tested.mean, tested.other)]
    return signs[0], signs[1]


def _positive(audit: Audited, rule: Rule) -> str | None:
    """The group that positive values of a rule with ``signed = true`` are towards, where the audit names it."""
    from evenrank.auditing.poles import Poles, pole

    poles = _poles(audit, rule)
    return None if poles is None else pole(Poles(*poles), 1.0)


def _poles(audit: Audited, rule: Rule) -> tuple[str, str] | None:
    """The groups that a rule's measure compares, the positive one first."""
    own = _POLES.search(rule.measure)
    return (own[1].strip(), own[2].strip()) if own else audit.poles


def _queries_to_decide(test: BoundTest, n: int, alpha: float, level: float) -> int | None:
    """How many queries decide a rule if the truth is what these show."""
    if test.distance > 0 and not math.isfinite(test.loss):
        return None
    if test.distance > 0:
        # In independent units: a cluster is imagined as one, and the standard error is that of clusters.
        effect = max(1.0, n / test.n_effective)
        sd = test.se * math.sqrt(n / effect)
        needed = queries_to_hold(test.distance, sd, test.loss, alpha, design_effect=effect)
        # As many as there are did not: what was added to the test is more than this formula knows of.
        return needed if needed is not None and needed > n else None
    # It is tested on both sides.
    needed = queries_to_decide(test.distance, test.se, n, level / 2)
    return needed if needed is not None and needed <= _MOST_QUERIES else None


# --- what misleads ---------------------------------------------------------------------------------------------------


def _misleading(rules: Sequence[_RuleData], results: Sequence[RuleResult]) -> Iterator[Finding]:
    if all(data.rule.facts.bias for data in rules):
        yield _PHRASES.finding("no_effectiveness", "", "cannot be told", None, "warning")
    for data, result in zip(rules, results, strict=True):
        name = result.name
        if data.unequal_depth and result.undecidable_reason is None:
            yield _PHRASES.finding("depth", name, "cannot be told", None, "warning")
        if result.left_out:
            queries = counted(result.left_out, "query")
            yield _PHRASES.finding("left_out", name, "cannot be told", None, "warning", queries=queries)


def _of_clusters(audit: Audited) -> Iterator[Finding]:
    """That queries share clusters, which are the units of every limit."""
    if audit.clusters is not None:
        values = {"count": counted(audit.queries, "query"), "clusters": audit.clusters_in_words}
        yield _PHRASES.finding("clusters", "", "cannot be told", None, "note", **values)
