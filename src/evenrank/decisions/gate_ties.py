"""Whether the order of tied documents decides on a rule."""

from __future__ import annotations

from evenrank.io.tolerances import EQUAL, NEAR_ZERO

from .budget import Rule
from .gate_lines import amount
from .gate_result import Ruling
from .gate_values import Audited, Ties


def value_of(rule: Rule, own: float | None, other: float | None) -> float | None:
    """What a rule bounds, from the means of the run and of the one that it is against; None if it is undefined."""
    if own is None or (rule.against is not None and other is None):
        return None
    size = abs(own) if rule.absolute else own
    if other is None:
        return size
    if rule.relative:
        return None if other <= NEAR_ZERO else size / other - 1
    return size - (abs(other) if rule.absolute else other)


def warning(audited: Audited, run: str, ruling: Ruling) -> str | None:
    """A warning if other orders of tied documents, of either run, would move a rule's value across its bound.

    Also if, with the ties' expectation as value and limits as wide, the rule would be no longer decided.
    """
    rule, other = ruling.rule, ruling.against
    own = _moved(rule, audited.ties(run, rule), ruling.mean)
    others = None if other is None else _moved(rule, audited.ties(other, rule), ruling.other_mean)
    if ruling.value is None or own is None or (other is not None and others is None):
        return None
    expected = value_of(rule, own.expected, None if others is None else others.expected)
    ends = [
        value_of(rule, one, against)
        for one in _extremes(rule, own)
        for against in ([None] if others is None else _extremes(rule, others))
    ]
    sides = {_within(rule, one) for one in (ruling.value, expected, *ends) if one is not None}
    if len(sides) == 1 and (expected is None or _still_decided(ruling, expected)):
        return None
    averaged = "" if expected is None else f" (averaged over their orders, the value is {amount(rule, expected)})"
    return f"{ruling.name}: the order of tied documents decides on which side of the budget it is{averaged}."


def _moved(rule: Rule, ties: Ties | None, mean: float | None) -> Ties | None:
    """The same over the queries that the rule uses: moved by what their ``mean`` differs from that of all."""
    if ties is None or mean is None:
        return None
    # What is written in bars has no sign in the audit, but one in the rule's mean.
    shift = (abs(mean) if rule.measure.startswith("|") else mean) - ties.mean
    return Ties(ties.mean + shift, ties.expected + shift, ties.low + shift, ties.high + shift)


def _extremes(rule: Rule, ties: Ties) -> list[float]:
    """The values between which a mean, or its absolute value, can be."""
    return [ties.low, ties.high, *([0.0] if rule.absolute and ties.low < 0 < ties.high else [])]


def _within(rule: Rule, value: float) -> bool:
    return value >= rule.bound - EQUAL if rule.floor else value <= rule.bound + EQUAL


def _still_decided(ruling: Ruling, expected: float) -> bool:
    """Whether limits that are moved to the ties' expectation still lie on one side of the bound, if they did."""
    if ruling.limits is None or ruling.value is None or ruling.outcome == "not shown":
        return True
    shift = expected - ruling.value
    sides = {_within(ruling.rule, end + shift) for end in ruling.limits}
    as_it_is = {_within(ruling.rule, end) for end in ruling.limits}
    return len(as_it_is) > 1 or sides == as_it_is
