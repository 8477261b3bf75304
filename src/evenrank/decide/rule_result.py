"""The outcome of one rule, in figures and in a sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeGuard

from evenrank.files.errors import EvenrankError
from evenrank.files.json_values import LEFT_OUT
from evenrank.files.types import EQUAL
from evenrank.files.wording import counted, percent
from evenrank.results.finding import Finding, phrases
from evenrank.results.table import NONE, short, true_minus
from evenrank.stats.bounds import BoundTest, MeanBound, Outcome
from evenrank.stats.compare import LEAST_CLUSTERS, LEAST_SAMPLE
from evenrank.stats.estimate import Estimate

from .budget import Rule

_PHRASES = phrases("gate")
Limits = tuple[float, float]
UndecidableReason = Literal["unlabelled", "unequal", "few_labels", "labels", "tied", "missing"]
"""Why nothing can be told of a rule, whatever the number of queries: the template that says it."""
_MANY = 1_000_000
_RARELY = 0.05
"""Below this chance runs would hardly ever pass."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The outcome of one rule.

    Attributes:
        outcome: "holds", "violated" or "not shown".
        value: The estimate that the budget bounds: the figure, its absolute value, the difference from ``against`` or
            that as a share; None if no query has a value. ``run``: the run that was gated.
        limits: The one-sided limits of ``value``, each at the budget's level: of the side that could break the rule
            with one query more that loses all it can. None with one query.
        n: Number of queries with a value (in both runs); ``left_out``: those with a value in only one of them.
        mean, other_mean: The figures of the run and of ``against`` over these queries, with their signs.
        p_holds, p_violated: One-sided p-values of the two claims; ``holm_p``: the second after Holm's correction.
        queries_to_decide: Of a rule that is not shown, the number of queries with which it would be decided in 8 of 10
            samples, if the truth is what was observed; None if no number would, as where lists differ in length or
            documents lack a label, or with one query.
        n_if_equal: Of a margin between two runs, the number that would show that it holds if they are equally good,
            with the spread of these differences; ``n_identical``: if they are the same run; ``chance_if_equal``: in
            what share of samples so many queries as these show it, if they are equally good.
        difference: The difference from ``against`` with its 95% interval, as an audit has it; None of absolute values.
        detectable: The true value nearest to the budget of which so many queries show that it violates it in 8 of 10
            samples at most. None of an absolute value against another run's, and if the measure has no such value.
        direction: The groups that ``mean`` and ``other_mean`` lean to, where their signs tell and the audit names them.
        positive: Of a rule with ``signed = true``, the group that positive values are towards, if the audit names it.
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
    p_violated: float | None
    holm_p: float | None
    queries_to_decide: int | None
    detectable: float | None
    n_if_equal: int | None
    n_identical: int | None
    chance_if_equal: float | None
    difference: Estimate | None
    alpha: float
    level: float
    """The level at which the rule is violated if it is the only one that is; ``alpha``: that of its limits."""
    test: BoundTest | None = field(repr=False, compare=False, default=None, metadata=LEFT_OUT)
    run: str = ""
    direction: tuple[str | None, str | None] = (None, None)
    undecidable_reason: UndecidableReason | None = field(default=None, metadata=LEFT_OUT)
    """Of a rule that is not shown: why more queries would not help."""
    positive: str | None = field(default=None, metadata=LEFT_OUT)

    @property
    def subject(self) -> str:
        """What the rule looks at: ``nDCG@10 vs BM25``, ``ARaB@10 (+ male) vs BM25``."""
        what = self.rule.subject if self.positive is None else f"{self.rule.subject} (+ {self.positive})"
        return what if self.against is None else f"{what} vs {self.against}"

    @property
    def title(self) -> str:
        """The rule's name, if it has one, and what it looks at."""
        return self.subject if self.rule.name is None else f"{self.rule.name} ({self.subject})"

    @property
    def name(self) -> str:
        """The rule's name; without one, what it looks at, whatever the groups are called."""
        return self.rule.name or replace(self, positive=None).subject

    def power(self, at: float) -> float:
        """The probability that a sample like this one shows the rule to be violated if the true value is ``at``.

        In the units of the budget: −0.03 for "-3%". Raises EvenrankError where there was no test, and of an absolute
        value against another run's.
        """
        if self.test is None:
            raise EvenrankError(f"{self.name}: fewer than two queries show nothing")
        if not has_power(self.test):
            raise EvenrankError(f"{self.name}: no power is stated of an absolute value against another run's")
        return self.test.power(at, self.level)


def has_power(test: BoundTest | None) -> TypeGuard[MeanBound]:
    """Whether power is stated: where an absolute value is against another run's, it would depend on both means."""
    return isinstance(test, MeanBound)


def amount(rule: Rule, value: float | None) -> str:
    """A value in the units of a rule: ``−1.2%``, ``+.012`` for a difference, ``.048``."""
    if value is None:
        return "no value"
    if rule.relative:
        return true_minus(f"{round(100 * value, 1) + 0.0:+.1f}%")
    return short(value, sign=rule.against is not None)


def detects_from(result: RuleResult) -> str:
    """The value nearest to the budget that would be shown to break it; "" where none is stated."""
    return amount(result.rule, result.detectable) if result.detectable is not None and has_power(result.test) else ""


def undecided(result: RuleResult) -> str:
    """Why a rule is not shown: the template of the reason."""
    test = result.test
    if result.undecidable_reason is not None:
        return result.undecidable_reason
    if test is None:
        return "few"
    if not math.isfinite(test.loss) and test.distance > 0:
        return unbounded(result.rule)
    if result.p_violated is not None and result.p_violated <= result.alpha:
        return "corrected"
    if test.n_effective < LEAST_CLUSTERS <= result.n:
        return "few_clusters"
    if result.n < LEAST_SAMPLE and test.distance > 0:
        return "few_queries"
    if result.p_violated is None and test.distance < 0:
        return "few_differ"
    if test.distance >= 0 and result.n_if_equal is not None and result.n_if_equal > result.n:
        return "margin"
    if result.queries_to_decide is not None:
        return "needs"
    if abs(test.distance) <= EQUAL:
        return "never"
    return "notices" if detects_from(result) else "undecided"


def unbounded(rule: Rule) -> str:
    """The template that says that the largest value of a query is not known: of a lean, what would tell it."""
    return "unbounded" if rule.facts.order else "unbounded_value"


def reason(result: RuleResult) -> str:
    """Why a rule is not shown, in words."""
    template = undecided(result)
    needed = about_queries(result.n_if_equal if template == "margin" else result.queries_to_decide)
    count, chance = counted(result.n, "query"), result.chance_if_equal or 0.0
    if template == "margin" and chance < _RARELY:
        template = "margin_rarely"
    # Of five tries; four are what is asked for.
    tries = min(max(round(5 * chance), 1), 3)
    return _PHRASES.text(template, needed=needed, count=count, tries=tries, noticed=detects_from(result))


def about_queries(queries: int | None) -> str:
    """A number of queries that would be needed."""
    if queries is None:
        return NONE
    return "more than a million queries" if queries > _MANY else f"about {counted(queries, 'query')}"


def finding(result: RuleResult) -> Finding:
    """A rule in a sentence."""
    values: dict[str, Any] = {"value": value_with_limit(result), "limit": result.rule.limit}
    # The limit has an imagined query in it: it is no end of an interval.
    estimate = Estimate(result.value, None, result.n)
    if result.outcome == "not shown":
        values["reason"] = reason(result)
        return _PHRASES.finding("untold", result.title, result.outcome, estimate, "detail", **values)
    key = "is_violated" if result.outcome == "violated" else "holds_notices" if detects_from(result) else "holds"
    return _PHRASES.finding(
        key, result.title, result.outcome, estimate, "detail", noticed=detects_from(result), **values
    )


def claim(result: RuleResult) -> str:
    """What a rule claims of the run that is gated, with the figures: ``new keeps 95% of old's nDCG@10: …``."""
    rule = result.rule
    values: dict[str, Any] = {"run": result.run, "subject": result.subject, "limit": rule.limit}
    violated = result.outcome == "violated"
    if result.difference is None or result.against is None or not rule.relative:
        values["figures"] = value_with_limit(result)
        return _PHRASES.text("claim_violated" if violated else "claim", **values)
    figures = {"own": result.mean, "other": result.other_mean, "difference": result.difference}
    values |= {"against": result.against, "measure": rule.subject, "share": percent(1 + rule.bound, 1)}
    if rule.floor:
        return _PHRASES.text("claim_keeps_violated" if violated else "claim_keeps", **values, **figures)
    return _PHRASES.text("claim_at_most_violated" if violated else "claim_at_most", **values, **figures)


def value_with_limit(result: RuleResult) -> str:
    """The value with its limit, and where an absolute value leans to: ``.056 (limit .114) towards f``."""
    limit = limit_text(result)
    imagined = result.test is not None and math.isfinite(result.test.loss)
    value = amount(result.rule, result.value)
    if limit:
        value = _PHRASES.text("with_limit" if imagined else "with_plain_limit", value=value, limit=limit)
    own, other = result.direction
    if own is not None and other is not None and own != other:
        return f"{value} ({result.run} towards {own}, {result.against} towards {other})"
    return value if own is None else f"{value} towards {own}"


def value_and_direction(result: RuleResult) -> str:
    """The value, and behind it where an absolute one leans to: ``.056 (f)``."""
    own = result.direction[0]
    return amount(result.rule, result.value) + ("" if own is None or result.against is not None else f" ({own})")


def limit_text(result: RuleResult) -> str:
    """The limit that has to be within the budget."""
    return "" if result.limits is None else amount(result.rule, result.limits[0 if result.rule.floor else 1])
