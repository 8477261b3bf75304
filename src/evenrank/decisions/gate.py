"""Whether a run keeps to a budget: every rule holds, is broken, or is not shown."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Protocol, get_args

from evenrank.io import Provenance
from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.tolerances import EQUAL, NEAR_ZERO, holm
from evenrank.io.wording import counted

from .budget import Budget, Rule, as_budget
from .gate_result import Correction, GateResult, Outcome, Ruling
from .gate_rules import MeanTest, Test, Tested, tested
from .gate_tests import factor_to_decide
from .gate_values import Audited, against, as_audited, unequal_depth

_MOST_QUERIES = 1e9
_POLES = re.compile(r"poles='([^',]*),([^',]*)'")


class WithValues(Protocol):
    """The result of an audit."""

    def to_json(self, path: None = None, *, values: bool = False) -> str:
        """The audit as JSON, with the values of every query."""


def gate(
    audited: WithValues | str | os.PathLike[str] | Mapping[str, object],
    budget: Budget | str | os.PathLike[str] | Mapping[str, object],
    *,
    run: str | None = None,
    baseline: str | None = None,
    correction: Correction = "holm",
) -> GateResult:
    """Decides whether a run keeps to a budget.

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
    if correction not in get_args(Correction):
        raise EvenrankError(f"`correction`: expected holm or none, found {quoted(correction)}")
    provenance = Provenance("evenrank.gate").add("audit", audited)
    provenance.add("budget", budget.path if isinstance(budget, Budget) and budget.path is not None else budget)
    provenance.ahead()
    values = as_audited(audited if isinstance(audited, str | os.PathLike | Mapping) else _values_of(audited))
    rules = as_budget(budget, values.facts)
    base = values.baseline(baseline)
    gated = values.run(run, base)
    found: list[tuple[str | None, Tested]] = []
    for number, rule in enumerate(rules.rules, start=1):
        other = against(values, rules, number, base)
        if other == gated:
            raise rules.error(number, f"against: {quoted(gated)} is the run that is gated")
        try:
            parts = values.parts(gated, rule)
            others = None if other is None else values.parts(other, rule)
            if others is not None and len(others) != len(parts):
                raise values.fail(f"no audit's JSON: {rule.measure} has parts in only one of {gated} and {other}")
            found.append((other, tested(rule, parts, others)))
        except EvenrankError as error:
            raise rules.error(number, str(error)) from None
    rulings = tuple(
        replace(ruling, run=gated, towards=_towards(values, ruling)) for ruling in _rulings(rules, found, correction)
    )
    warnings = [*values.warnings, *_warnings(values, gated, rulings)]
    return GateResult(gated, base, rulings, rules.alpha, correction, tuple(warnings), values.provenance, provenance)


def _values_of(audited: WithValues) -> dict[str, object]:
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
        return Ruling(rule, other, "not shown", value, None, *counts, None, None, None, None, None, alpha, level)
    p_holds = test.p_holds()
    outcome: Outcome = "not shown"
    if p_holds <= alpha:
        outcome = "holds"
    elif corrected is not None and corrected <= alpha:
        outcome = "broken"
    return Ruling(
        rule,
        other,
        outcome,
        test.value,
        test.limits(alpha),
        found.n,
        found.left_out,
        found.mean,
        found.other,
        p_holds,
        p,
        corrected,
        _queries_to_decide(test, found.n, alpha, level) if outcome == "not shown" else None,
        _catches(rule, test, level, found.other),
        alpha,
        level,
        test,
    )


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


def _catches(rule: Rule, test: Test, level: float, other: float | None) -> float | None:
    """What is caught, if the measure can have such a value; None of an absolute value."""
    if not isinstance(test, MeanTest):
        return None
    low, high = rule.scale(other)
    caught = test.caught(level)
    return caught if low - EQUAL <= caught <= high + EQUAL else None


def _towards(audited: Audited, ruling: Ruling) -> tuple[str | None, str | None]:
    """The groups that the means of the run and of the other lean to, where the sign tells and the audit names them."""
    own = _POLES.search(ruling.rule.measure)
    poles = (own[1].strip(), own[2].strip()) if own else audited.poles
    if not ruling.rule.absolute or poles is None:
        return None, None
    signs = [None if not mean else poles[mean < 0] for mean in (ruling.mean, ruling.other_mean)]
    return signs[0], signs[1]


def _queries_to_decide(test: Test, n: int, alpha: float, level: float) -> int | None:
    factor = factor_to_decide(test.distance, test.error, alpha if test.distance > 0 else level)
    if factor is None or n * factor > _MOST_QUERIES:
        return None
    # Fewer than there are would contradict the outcome: the approximation is a little short for few queries.
    return max(math.ceil(n * factor), n + 1)


def _warnings(audited: Audited, run: str, rulings: tuple[Ruling, ...]) -> list[str]:
    warnings = []
    if all(ruling.rule.facts.bias for ruling in rulings):
        warnings.append("No rule is about effectiveness: a ranking of nonsense can be perfectly fair.")
    for ruling in rulings:
        rule, other = ruling.rule, ruling.against
        deep = None if other is None else unequal_depth(audited, run, rule, other)
        if deep:
            warnings.append(f"{ruling.name}: the lists differ in length, and depth rather than order decides.")
        if other is not None and deep is None:
            warnings.append(f"{ruling.name}: the audit does not tell whether the lists of {other} are as long.")
        if ruling.left_out:
            left_out = counted(ruling.left_out, "query")
            warnings.append(f"{ruling.name}: {left_out} left out, with a value in only one of the runs.")
    return warnings
