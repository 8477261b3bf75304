"""Whether a run keeps to a budget: every rule holds, is broken, or is not shown; in words and for machines."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, Protocol, TypeGuard, runtime_checkable
from xml.etree import ElementTree

from evenrank import options as opt
from evenrank.io import Provenance
from evenrank.io.arguments import checked
from evenrank.io.errors import EvenrankError, plain, quoted, readable, shown
from evenrank.io.json_values import LEFT_OUT, named
from evenrank.io.tolerances import EQUAL, NEAR_ZERO, holm
from evenrank.io.wording import counted, percent
from evenrank.measures.inference import (
    LEAST,
    POWER,
    BoundTest,
    Estimate,
    MeanBound,
    Outcome,
    SizeBound,
    factor_to_decide,
    queries_to_hold,
)
from evenrank.measures.inference import outcome as outcome_of
from evenrank.results.finding import Finding, phrases
from evenrank.results.format import COUNT, NONE, P, digits, short, true_minus
from evenrank.results.page import Chip, Page, Section, Verdicts
from evenrank.results.result import Result
from evenrank.results.table import Column, Table

from .budget import Budget, Rule, as_budget
from .gate_rules import Audited, Tested, against, as_audited, tested, unequal_depth

_SAYS = phrases("gate")
Correction = Literal["holm", "none"]
Limits = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Ruling:
    """The outcome of one rule.

    Attributes:
        outcome: "holds", "broken" or "not shown".
        value: The estimate that the budget bounds: the figure, its absolute value, the difference from ``against`` or
            that as a share; None if no query has a value. ``run``: the run that was gated.
        limits: The one-sided limits of ``value``, each at the budget's level: of the side that could break the rule
            with one query more that loses all it can. None with one query.
        n: Number of queries with a value (in both runs); ``left_out``: those with a value in only one of them.
        mean, other_mean: The figures of the run and of ``against`` over these queries, with their signs.
        p_holds, p_broken: One-sided p-values of the two claims; ``holm_p``: the second after Holm's correction.
        queries_to_decide: Of a rule that is not shown, the number of queries with which it would be decided in 8 of 10
            samples, if the truth is what was observed; None if no number would, or with one query. ``if_equal``: of a
            margin between two runs, the number that would show that it holds if the runs were equal; ``one_in``: one
            query in so many that loses everything would use up the margin.
        catches: The true value nearest to the budget that so many queries show to be broken in 8 of 10 samples. None of
            an absolute value against another run's, and if the measure cannot have such a value.
        towards: The groups that ``mean`` and ``other_mean`` lean to, where their signs tell and the audit names them.
    """

    also: ClassVar = ("name",)
    rule: Rule
    against: str | None
    outcome: Outcome
    value: float | None
    limits: Limits | None
    n: int
    left_out: int
    mean: float | None
    other_mean: float | None
    p_holds: float | None
    p_broken: float | None
    holm_p: float | None
    queries_to_decide: int | None
    catches: float | None
    if_equal: int | None
    one_in: float | None
    alpha: float
    level: float
    """The level at which the rule is broken if it is the only one that is; ``alpha``: that of its limits."""
    test: BoundTest | None = field(repr=False, compare=False, default=None, metadata=LEFT_OUT)
    run: str = ""
    towards: tuple[str | None, str | None] = (None, None)

    @property
    def subject(self) -> str:
        """What the rule looks at: ``nDCG@10 vs BM25``."""
        return self.rule.subject + ("" if self.against is None else f" vs {self.against}")

    @property
    def title(self) -> str:
        """The rule's name, if it has one, and what it looks at."""
        return self.subject if self.rule.name is None else f"{self.rule.name} ({self.subject})"

    @property
    def name(self) -> str:
        """The rule's name; without one, what it looks at."""
        return self.rule.name or self.subject

    def power(self, at: float) -> float:
        """The probability that a sample like this one shows the rule to be broken if the true value is ``at``.

        In the units of the budget: −0.03 for "-3%". Raises EvenrankError where there was no test, and of an absolute
        value against another run's.
        """
        if self.test is None:
            raise EvenrankError(f"{self.name}: fewer than two queries show nothing")
        if not _has_power(self.test):
            raise EvenrankError(f"{self.name}: no power is stated of an absolute value against another run's")
        return self.test.power(at, self.level)


@dataclass(frozen=True, slots=True, repr=False)
class GateResult(Result):
    """What :func:`evenrank.gate` returns: whether a run keeps to a budget.

    Attributes:
        run: The run that was gated; ``baseline``: what "baseline" means, if there is one.
        rulings: The rules in the budget's order, each with its outcome.
        alpha: The level of the one-sided limits; ``correction``: of the rules that are broken, "holm" or "none".
        misleading: What misleads in the audit or in the budget; ``warnings``: the sentences.
        audit: The provenance of the audit, as JSON values.
    """

    also: ClassVar = ("outcome", "warnings")
    run: str
    baseline: str | None
    rulings: tuple[Ruling, ...] = field(metadata=named("rules"))
    alpha: float
    correction: Correction
    misleading: tuple[Finding, ...] = field(default=(), metadata=LEFT_OUT)
    audit: Mapping[str, object] | None = field(default=None, repr=False, compare=False)

    @property
    def outcome(self) -> Outcome:
        """ "broken" if one rule is, "holds" if all hold, else "not shown"."""
        outcomes = [ruling.outcome for ruling in self.rulings]
        if "broken" in outcomes:
            return "broken"
        return "not shown" if "not shown" in outcomes else "holds"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What misleads in the audit or in the budget."""
        return tuple(one.text for one in self.misleading)

    def status(self, *, strict: bool = False) -> int:
        """The exit status of ``evenrank gate``: 0 holds, 1 broken, 3 not shown (``strict``: 1)."""
        return {"holds": 0, "broken": 1, "not shown": 1 if strict else 3}[self.outcome]

    def __repr__(self) -> str:
        return self.table()

    def table(self, *, full: bool = False, width: int = 80) -> str:
        """The outcome and the rules for a terminal: no line of it is a command to a pipeline."""
        return "\n".join(map(_printed, self.page().text(full=full, width=width).split("\n")))

    def page(self) -> Page:
        """The outcome, and the rules with their figures."""
        glance = tuple((one.title, (Chip(one.outcome, _TONES[one.outcome]),)) for one in self.rulings)
        found = (_outcome(self), *self.misleading, *(finding(ruling) for ruling in self.rulings))
        return Page(
            "gate",
            f"{self.run} against its budget",
            found,
            rules_table(self, _WIDTH),
            sections=(Section("All figures", (_figures_table(self),)),),
            verdicts=Verdicts(("rule", "outcome"), glance),
            facts=(("level of the limits", f"{self.alpha:g}"),),
            source="A rule holds if the one-sided interval of its value lies within the budget.",
            provenance=self.provenance,
        )

    def markdown(self) -> str:
        """The rules as a Markdown table, for a pull request."""
        return markdown(self)

    def junit(self, *, strict: bool = False) -> str:
        """The rules as JUnit XML: one test case each; what is not shown is skipped (``strict``: a failure)."""
        return junit(self, strict=strict)

    def annotations(self, *, strict: bool = False) -> str:
        """The rules as annotations of GitHub Actions, a line each."""
        return workflow_commands(self, strict=strict)


_MOST_QUERIES = 1e9
_MANY = 1_000_000
_WIDTH = 80
_POLES = re.compile(r"poles='([^',]*),([^',]*)'")


@runtime_checkable
class WithValues(Protocol):
    """The result of an audit."""

    def to_json(self, path: None = None, *, values: bool = False) -> str:
        """The audit as JSON, with the values of every query."""


@checked
def gate(
    audited: WithValues | opt.File | Mapping[str, object],
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
        opt.Option("For the number of rules, of those that are broken: holm or none.", panel="Statistics", rare=True),
    ] = "holm",
) -> GateResult:
    """Decide whether a run keeps to a budget. Every rule holds, is broken, or is not shown.

    A rule *holds* if the one-sided 95% interval of its value lies within the budget. It is *broken* if the value is
    shown to lie beyond the budget, also after Holm's correction for the number of rules: with several rules, more than
    an interval beyond it. Otherwise it is *not shown*. All rules have to hold, so what holds needs no correction.

    Args:
        audited: What :func:`evenrank.audit` returned, or its JSON with the values by query: a file or a dict.
        budget: A TOML file, the values that such a file has, or what :func:`evenrank.decisions.budget.as_budget`
            returned, whose ``measures`` are those that the audit needs.
        run: The run to gate; by default the only one that is not the baseline.
        baseline: What "baseline" means in the rules; by default the audit's.
        correction: "holm" (default): a budget of several rules is broken by chance in at most 5%; "none": each rule is.

    Raises:
        EvenrankError: For a budget or an audit that cannot be used, or a rule that the audit has no values for.
    """
    if not isinstance(audited, str | os.PathLike | Mapping | WithValues):
        raise EvenrankError(f"`audited`: expected an audit's result, or its JSON, found {shown(audited)}")
    provenance = Provenance("evenrank.gate").add("audit", audited)
    provenance.add("budget", budget.path if isinstance(budget, Budget) and budget.path is not None else budget)
    provenance.ahead()
    values = as_audited(as_json_values(audited))
    rules = as_budget(budget, values.facts)
    base = values.baseline(baseline)
    gated = values.run(run, base)
    found: list[tuple[str | None, Tested]] = []
    for place, rule in enumerate(rules.rules, start=1):
        other = against(values, rules, place, base)
        if other == gated:
            raise rules.error(place, f"against: {quoted(gated)} is the run that is gated")
        try:
            parts = values.parts(gated, rule)
            others = None if other is None else values.parts(other, rule)
            if others is not None and len(others) != len(parts):
                raise values.fail(f"no audit's JSON: {rule.measure} has parts in only one of {gated} and {other}")
            greatest = values.greatest(rule, [gated, *([] if other is None else [other])])
            ids = values.ids if rules.guaranteed else None
            test = tested(rule, parts, others, greatest=greatest, guaranteed=ids, alpha=rules.alpha)
            found.append((other, test))
        except EvenrankError as error:
            raise rules.error(place, str(error)) from None
    rulings = tuple(
        replace(ruling, run=gated, towards=_towards(values, ruling)) for ruling in _rulings(rules, found, correction)
    )
    # The words of the audit's own are not the gate's.
    passed_on = (Finding("audit", "", "cannot be told", None, said, "warning") for said in values.warnings)
    misleading = (*passed_on, *_misleading(values, gated, rulings))
    return GateResult(
        gated, base, rulings, rules.alpha, correction, misleading, values.provenance, provenance=provenance
    )


def as_json_values(audited: WithValues | opt.File | Mapping[str, object]) -> opt.File | Mapping[str, object]:
    """A file or a dict as it is, a result as the dict that its JSON has."""
    if isinstance(audited, str | os.PathLike | Mapping):
        return audited
    values: dict[str, object] = json.loads(audited.to_json(values=True))
    return values


def _rulings(budget: Budget, found: list[tuple[str | None, Tested]], correction: Correction) -> tuple[Ruling, ...]:
    p_broken = [None if one.test is None else one.test.p_broken() for _, one in found]
    tests = sum(p is not None for p in p_broken)
    corrected = holm(p_broken) if correction == "holm" else p_broken
    level = budget.alpha / max(tests, 1) if correction == "holm" else budget.alpha
    rows = zip(budget.rules, found, p_broken, corrected, strict=True)
    return tuple(_ruling(rule, other, one, (p, after), (budget.alpha, level)) for rule, (other, one), p, after in rows)


def _ruling(
    rule: Rule,
    other: str | None,
    found: Tested,
    p_broken: tuple[float | None, float | None],
    levels: tuple[float, float],
) -> Ruling:
    """``p_broken``: before and after correction; ``levels``: of what holds, and of what is broken."""
    test, (p, corrected), (alpha, level) = found.test, p_broken, levels
    if test is None:
        value = _value_of(rule, found.mean, found.other)
        counts = found.n, found.left_out, found.mean, found.other
        nothing = (None,) * 7
        return Ruling(rule, other, "not shown", value, None, *counts, *nothing, alpha, level)
    p_holds = test.p_holds()
    outcome = outcome_of(test, corrected, alpha)
    if found.guaranteed is not None and outcome != "broken":
        outcome = "holds" if found.guaranteed > 0 else "not shown"
    return Ruling(
        rule,
        other,
        outcome,
        test.value,
        _limits(test, found.guaranteed, alpha),
        found.n,
        found.left_out,
        found.mean,
        found.other,
        p_holds,
        p,
        corrected,
        _queries_to_decide(test, found, alpha, level) if outcome == "not shown" else None,
        _catches(rule, test, level, found.other),
        found.if_equal,
        found.one_in,
        alpha,
        level,
        test,
    )


def _limits(test: BoundTest, guaranteed: float | None, alpha: float) -> Limits:
    low, high = test.limits(alpha)
    if guaranteed is None or not isinstance(test, MeanBound):
        return low, high
    end = test.bound + test.sign * guaranteed / test.unit
    return (end, high) if test.sign > 0 else (low, end)


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


def _has_power(test: BoundTest | None) -> TypeGuard[BoundTest]:
    """Whether power is stated: where an absolute value is against another run's, it would depend on both means."""
    return isinstance(test, MeanBound) or (isinstance(test, SizeBound) and test.alone)


def _catches(rule: Rule, test: BoundTest, level: float, other: float | None) -> float | None:
    """What is caught, if the measure can have such a value; None of an absolute value against another run's."""
    if not _has_power(test):
        return None
    low, high = rule.scale(other)
    caught = test.caught(level)
    return caught if caught is not None and low - EQUAL <= caught <= high + EQUAL else None


def _towards(audited: Audited, ruling: Ruling) -> tuple[str | None, str | None]:
    """The groups that the means of the run and of the other lean to, where the sign tells and the audit names them."""
    own = _POLES.search(ruling.rule.measure)
    poles = (own[1].strip(), own[2].strip()) if own else audited.poles
    if not ruling.rule.absolute or poles is None:
        return None, None
    signs = [None if not mean else poles[mean < 0] for mean in (ruling.mean, ruling.other_mean)]
    return signs[0], signs[1]


def _queries_to_decide(test: BoundTest, found: Tested, alpha: float, level: float) -> int | None:
    n = found.n
    if test.distance > 0 and not math.isfinite(test.loss):
        return None
    if test.distance > 0:
        needed = queries_to_hold(test.distance, test.error * math.sqrt(n), test.loss, alpha, POWER)
        # As many as there are did not: what was added to the test is more than this formula knows of.
        return needed if needed is not None and needed > n and found.guaranteed is None else None
    # It is tested on both sides.
    factor = factor_to_decide(test.distance, test.error, level / 2)
    if factor is None or n * factor > _MOST_QUERIES:
        return None
    # Fewer than there are would contradict the outcome: the approximation is a little short for few queries.
    return max(math.ceil(n * factor), n + 1, LEAST)


def _misleading(audited: Audited, run: str, rulings: tuple[Ruling, ...]) -> Iterator[Finding]:
    if all(ruling.rule.facts.bias for ruling in rulings):
        yield _SAYS.find("no_effectiveness", "", "cannot be told", None, "warning")
    for ruling in rulings:
        rule, other = ruling.rule, ruling.against
        deep = None if other is None else unequal_depth(audited, run, rule, other)
        if deep:
            yield _SAYS.find("depth", ruling.name, "cannot be told", None, "warning")
        if other is not None and deep is None:
            yield _SAYS.find("depth_unknown", ruling.name, "cannot be told", None, "warning", other=other)
        if ruling.left_out:
            queries = counted(ruling.left_out, "query")
            yield _SAYS.find("left_out", ruling.name, "cannot be told", None, "warning", queries=queries)


def amount(rule: Rule, value: float | None) -> str:
    """A value in the units of a rule: ``−1.2%``, ``+.012`` for a difference, ``.048``."""
    if value is None:
        return "no value"
    if rule.relative:
        return true_minus(f"{round(100 * value, 1) + 0.0:+.1f}%")
    return short(value, sign=rule.against is not None)


def limits(ruling: Ruling) -> str:
    """The one-sided limits in brackets; "" without."""
    if ruling.limits is None:
        return ""
    low, high = (amount(ruling.rule, end) for end in ruling.limits)
    return f"[{low}, {high}]"


def noticed(ruling: Ruling) -> str:
    """The value nearest to the budget that would be shown to break it; "" where none is stated."""
    return amount(ruling.rule, ruling.catches) if ruling.catches is not None and _has_power(ruling.test) else ""


def _undecided(ruling: Ruling) -> str:
    """Why a rule is not shown: the template of the reason."""
    test = ruling.test
    if test is None:
        return "few"
    if not math.isfinite(test.loss):
        return "unbounded"
    if ruling.p_broken is not None and ruling.p_broken <= ruling.alpha:
        return "corrected"
    if ruling.one_in is not None and ruling.if_equal is not None and ruling.if_equal > ruling.n:
        return "margin"
    if ruling.queries_to_decide is not None:
        return "needs"
    if abs(test.distance) <= EQUAL:
        return "never"
    return "notices" if noticed(ruling) else "undecided"


def _reason(ruling: Ruling) -> str:
    """Why a rule is not shown, in words."""
    return _SAYS.say(
        _undecided(ruling),
        needed=many(ruling.queries_to_decide),
        if_equal=many(ruling.if_equal),
        count=ruling.n,
        one_in=None if ruling.one_in is None else round(ruling.one_in),
        noticed=noticed(ruling),
    )


def many(queries: int | None) -> str:
    """A number of queries that would be needed."""
    if queries is None:
        return NONE
    return "more than a million queries" if queries > _MANY else f"about {counted(queries, 'query')}"


def finding(ruling: Ruling) -> Finding:
    """A rule in a sentence."""
    values: dict[str, Any] = {"value": found(ruling), "limit": ruling.rule.limit}
    estimate = Estimate(ruling.value, ruling.limits, ruling.n)
    if ruling.outcome == "not shown":
        values["reason"] = _reason(ruling)
        return _SAYS.find("untold", ruling.title, ruling.outcome, estimate, "detail", **values)
    key = "is_broken" if ruling.outcome == "broken" else "holds_notices" if noticed(ruling) else "holds"
    return _SAYS.find(key, ruling.title, ruling.outcome, estimate, "detail", noticed=noticed(ruling), **values)


def found(ruling: Ruling) -> str:
    """The value with its limits, and where an absolute value leans to: ``.056 [.039, .114] towards f``."""
    value = " ".join(filter(None, [amount(ruling.rule, ruling.value), limits(ruling)]))
    own, other = ruling.towards
    if own is not None and other is not None and own != other:
        return f"{value} ({ruling.run} towards {own}, {ruling.against} towards {other})"
    return value if own is None else f"{value} towards {own}"


def _leaning(ruling: Ruling) -> str:
    own = ruling.towards[0]
    return amount(ruling.rule, ruling.value) + ("" if own is None or ruling.against is not None else f" ({own})")


def _bound(ruling: Ruling) -> str:
    """The limit that has to be within the budget."""
    return "" if ruling.limits is None else amount(ruling.rule, ruling.limits[0 if ruling.rule.floor else 1])


def _outcome(result: GateResult) -> Finding:
    """The outcome of all rules."""
    total = len(result.rulings)
    by_outcome = {outcome: [one for one in result.rulings if one.outcome == outcome] for outcome in _LEVELS}
    broken, open_ = by_outcome["broken"], by_outcome["not shown"]
    values: dict[str, Any] = {"run": result.run, "total": counted(total, "rule")}
    if not broken and not open_:
        return _SAYS.find("all_hold" if total > 1 else "one_holds", result.run, "holds", place="answer", **values)
    named = [one.rule.name or one.rule.subject for one in broken or open_]
    values |= {"rules": named, "count": len(broken), "held": len(by_outcome["holds"])}
    if broken:
        return _SAYS.find("broken" if total > 1 else "one_broken", result.run, "broken", place="answer", **values)
    effective = [one for one in result.rulings if not one.rule.facts.bias]
    kept = bool(effective) and all(one.outcome == "holds" for one in effective)
    key = "effective" if kept else "not_shown" if total > 1 else "one_not_shown"
    if all(_undecided(one) == "needs" for one in open_):
        key += "_needs"
        needed = max(one.queries_to_decide or 0 for one in open_)
        values |= {"needed": many(needed), "count": max(one.n for one in open_)}
    return _SAYS.find(key, result.run, "not shown", place="answer", **values)


def verdict(result: GateResult) -> str:
    """The outcome of all rules in one sentence."""
    return _outcome(result).text


def rules_table(result: GateResult, width: int | None = None) -> Table:
    """The rules with their outcomes, a line each; below what is not shown what would decide it.

    ``width``: in characters; what would be noticed is left out where it does not fit (the findings say it).
    """

    def below(ruling: Ruling) -> str:
        return _reason(ruling) if ruling.outcome == "not shown" else ""

    columns = (
        Column("outcome", heading=""),
        Column("rule", of="title", heading=""),
        Column("value", of=_leaning),
        Column("bound", heading=f"{percent(1 - result.alpha, 1)} limit", of=_bound),
        Column("budget", of="rule.limit"),
    )
    table = Table("Rules", columns, result.rulings, below=below)
    wider = replace(table, columns=(*columns, Column("noticed", heading="would notice", of=noticed)))
    fits = width is None or wider.fits(width)
    return wider if fits and any(map(noticed, result.rulings)) else table


def _figures_table(result: GateResult) -> Table:
    columns = (
        Column("rule", of="title"),
        Column("n", COUNT, "queries"),
        Column("left_out", COUNT, "left out"),
        Column("mean", digits(4), result.run),
        Column("other_mean", digits(4), "against"),
        Column("p_holds", P, "p holds"),
        Column("p_broken", P, "p broken"),
        Column("holm_p", P, "Holm p"),
    )
    return Table("All figures", columns, result.rulings)


def _printed(text: str) -> str:
    """One line that no pipeline takes for a command, whatever the runs are called."""
    shown = plain(readable(text)).replace("##[", "## [")
    return f"run {shown}" if shown.lstrip().startswith("::") else shown


_MARKS = re.compile(r"([\\`*_{}\[\]#!|~])")
_LINKED = re.compile(r"(?<![a-zA-Z0-9_])@|#|:(?=//)|\bwww(?=\.)", re.IGNORECASE)
_TONES: dict[str, Literal["good", "bad", "unknown"]] = {"holds": "good", "broken": "bad", "not shown": "unknown"}
_LEVELS = {"holds": "notice", "broken": "error", "not shown": "warning"}


def junit(result: GateResult, *, strict: bool) -> str:
    """The rules as JUnit XML: a test case each."""
    failed, skipped = _counted(result, strict)
    counts = {"tests": str(len(result.rulings)), "failures": str(failed), "errors": "0"}
    root = ElementTree.Element("testsuites", {"name": "evenrank gate", **counts})
    suite = ElementTree.SubElement(root, "testsuite", {"name": _xml(f"evenrank gate {result.run}"), **counts})
    suite.set("skipped", str(skipped))
    for ruling, name in zip(result.rulings, _case_names(result), strict=True):
        names = {"classname": _xml(f"evenrank.gate.{result.run}"), "name": _xml(name), "time": "0"}
        case = ElementTree.SubElement(suite, "testcase", names)
        said = _xml(finding(ruling).text)
        if _fails(ruling, strict):
            ElementTree.SubElement(case, "failure", {"message": said, "type": ruling.outcome}).text = said
        elif ruling.outcome == "not shown":
            ElementTree.SubElement(case, "skipped", {"message": said})
        else:
            ElementTree.SubElement(case, "system-out").text = said
    if result.warnings:
        said = "\n".join(_xml(f"note: {warning}") for warning in result.warnings)
        ElementTree.SubElement(suite, "system-out").text = said
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _case_names(result: GateResult) -> list[str]:
    """A name for each rule, all of them different: what shows JUnit's files keeps one case of a name."""
    names: list[str] = []
    for ruling in result.rulings:
        name = f"{ruling.title}, {ruling.rule.limit}"
        names.append(name if name not in names else f"{name} (rule {len(names) + 1})")
    return names


def _fails(ruling: Ruling, strict: bool) -> bool:
    return ruling.outcome == "broken" or (strict and ruling.outcome == "not shown")


def _counted(result: GateResult, strict: bool) -> tuple[int, int]:
    failed = sum(_fails(ruling, strict) for ruling in result.rulings)
    return failed, 0 if strict else sum(ruling.outcome == "not shown" for ruling in result.rulings)


def _xml(text: str) -> str:
    """``text`` in one line, without characters that XML cannot have, escaped or not."""
    return re.sub(r"[\ufffe\uffff]", "�", plain(readable(text)))


def markdown(result: GateResult) -> str:
    """The rules as a Markdown table, and the outcome above it."""
    table = replace(rules_table(result), below=None)
    rows = [[_cell(column.read(column.value(ruling, 0))) for column in table.columns] for ruling in table.rows]
    for row in rows:
        row[0] = row[0] if row[0] == "holds" else f"**{row[0]}**"
    head = [[column.title for column in table.columns], ["---"] * len(table.columns)]
    lines = [f"**{_cell(verdict(result))}**", "", *(f"| {' | '.join(row)} |" for row in [*head, *rows])]
    if result.warnings:
        lines += ["", *(f"- {_cell(warning)}" for warning in result.warnings)]
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    """``text`` as Markdown that shows it as it is: nothing is a mark, a tag, a mention, a link or a new cell.

    Mentions and links are found after entities are decoded: a space of no width keeps them apart.
    """
    escaped = plain(readable(text)).replace("&", "&amp;").replace("<", "&lt;")
    escaped = _LINKED.sub("\\g<0>\u200b", escaped)
    return _MARKS.sub(r"\\\1", escaped)


def workflow_commands(result: GateResult, *, strict: bool) -> str:
    """The rules as workflow commands: ``::error title=…::…``; what holds is a notice, what is not shown a warning."""
    lines = [f"::warning title=evenrank gate::{_command(warning)}" for warning in result.warnings]
    for ruling in result.rulings:
        level = "error" if _fails(ruling, strict) else _LEVELS[ruling.outcome]
        title = f"evenrank gate {result.run}: {ruling.outcome}"
        lines.append(f"::{level} title={_property(title)}::{_command(finding(ruling).text)}")
    return "\n".join(lines)


def _command(text: str) -> str:
    """The message of a workflow command."""
    return readable(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """A property of a workflow command."""
    return _command(text).replace(":", "%3A").replace(",", "%2C")
