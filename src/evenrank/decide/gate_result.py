"""What a gate returns: the outcome of all rules, as a screen, JSON, JUnit, Markdown and annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from evenrank.files.errors import plain, readable
from evenrank.files.json_values import LEFT_OUT
from evenrank.files.wording import counted, percent
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import Chip, Page, Section, Verdicts
from evenrank.results.result import Result, metric_entries
from evenrank.results.table import COUNT, Column, P, Table, digits
from evenrank.stats.bounds import Outcome

from .gate_outputs import junit, markdown, workflow_commands
from .rule_result import (
    RuleResult,
    about_queries,
    claim,
    detects_from,
    finding,
    limit_text,
    reason,
    undecided,
    value_and_direction,
)

_PHRASES = phrases("gate")
Correction = Literal["holm", "none"]
WIDTH = 80
"""Characters of a line of the screen."""
_TONES: dict[str, Literal["good", "bad", "unknown"]] = {"holds": "good", "violated": "bad", "not shown": "unknown"}


@dataclass(frozen=True, slots=True, repr=False)
class GateResult(Result):
    """What :func:`evenrank.gate` returns: whether a run keeps to a budget.

    Attributes:
        run: The run that was gated; ``baseline``: what "baseline" means, if there is one.
        rules: The rules in the budget's order, each with its outcome.
        alpha: The level of the one-sided limits; ``correction``: of the rules that are violated, "holm" or "none".
        misleading: What misleads in the audit or in the budget; ``warnings``: the sentences.
        audit: The provenance of the audit, as JSON values.
    """

    also: ClassVar = ("outcome", "warnings")
    run: str
    baseline: str | None
    rules: tuple[RuleResult, ...]
    alpha: float
    correction: Correction
    misleading: tuple[Finding, ...] = field(default=(), metadata=LEFT_OUT)
    audit: Mapping[str, object] | None = field(default=None, repr=False, compare=False)

    @property
    def outcome(self) -> Outcome:
        """ "violated" if one rule is, "holds" if all hold, else "not shown"."""
        outcomes = [rule.outcome for rule in self.rules]
        if "violated" in outcomes:
            return "violated"
        return "not shown" if "not shown" in outcomes else "holds"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What misleads in the audit or in the budget."""
        return tuple(caveat.text for caveat in self.misleading if caveat.place == "warning")

    def status(self, *, strict: bool = False) -> int:
        """The exit status of ``evenrank gate``: 0 holds, 1 violated, 3 not shown (``strict``: 1)."""
        return {"holds": 0, "violated": 1, "not shown": 1 if strict else 3}[self.outcome]

    def __repr__(self) -> str:
        return self.table()

    def metrics(self) -> dict[str, float]:
        """Each rule's value by name, as trackers of experiments take it, with its one-sided limits, and ``status``.

        ``nDCG@10 vs old``, ``nDCG@10 vs old/low``, ``nDCG@10 vs old/high``; ``status``: 0, 1 (violated), 3 (not shown).
        """
        entries = [metric_entries(rule.name, rule.value, rule.limits) for rule in self.rules]
        values = {name: value for entry in entries for name, value in entry.items()}
        return values | {"status": float(self.status())}

    def table(self, *, full: bool = False, width: int = 80) -> str:
        """The outcome and the rules for a terminal: no line of it is a command to a pipeline."""
        return "\n".join(map(_printed, self.page().text(full=full, width=width).split("\n")))

    def page(self) -> Page:
        """The outcome, and the rules with their figures."""
        # Of one rule on a share the first line has the difference with its interval.
        interval = len(self.rules) == 1 and self.rules[0].rule.relative and self.rules[0].difference is not None
        verdicts = tuple((rule.title, (Chip(rule.outcome, _TONES[rule.outcome]),)) for rule in self.rules)
        return Page(
            "gate",
            f"{self.run} against its budget",
            (_answer(self), *_reason_of_one(self), *self.misleading, *map(finding, self.rules)),
            _rules_table(self, WIDTH),
            sections=(Section("All figures", (_figures_table(self),)),),
            verdicts=Verdicts(("rule", "outcome"), verdicts),
            facts=(("level of the limits", f"{self.alpha:g}"),),
            legend=(f"limit: as if one more query lost all it can{'; the interval above is without it' * interval}",),
            source="A rule holds if its limit lies within the budget.",
            provenance=self.provenance,
        )

    def markdown(self) -> str:
        """The rules as a Markdown table, for a pull request."""
        return markdown(_answer(self).text, replace(_rules_table(self), below=None), self.warnings)

    def junit(self, *, strict: bool = False) -> str:
        """The rules as JUnit XML: one test case each; what is not shown is skipped (``strict``: a failure)."""
        return junit(self.run, self.rules, self.warnings, strict=strict)

    def annotations(self, *, strict: bool = False) -> str:
        """The rules as annotations of GitHub Actions, a line each."""
        return workflow_commands(self.run, self.rules, self.warnings, strict=strict)


def _answer(result: GateResult) -> Finding:
    """The outcome of all rules."""
    total = len(result.rules)
    by_outcome = {outcome: [rule for rule in result.rules if rule.outcome == outcome] for outcome in _TONES}
    violated, open_ = by_outcome["violated"], by_outcome["not shown"]
    values: dict[str, Any] = {"run": result.run, "total": counted(total, "rule")}
    if total == 1:
        (rule,) = result.rules
        key = f"one_{rule.outcome.replace(' ', '_')}"
        return _PHRASES.finding(key, result.run, rule.outcome, rule.difference, "answer", claim=claim(rule))
    if not violated and not open_:
        return _PHRASES.finding("all_hold", result.run, "holds", place="answer", **values)
    names = [rule.rule.name or rule.rule.subject for rule in violated or open_]
    values |= {"rules": names, "count": len(violated), "held": len(by_outcome["holds"])}
    if violated:
        return _PHRASES.finding("violated", result.run, "violated", place="answer", **values)
    effective = [rule for rule in result.rules if not rule.rule.facts.bias]
    keeps = bool(effective) and all(rule.outcome == "holds" for rule in effective)
    key = "effective" if keeps else "not_shown"
    if all(undecided(rule) == "needs" for rule in open_):
        key += "_needs"
        needed = max(rule.queries_to_decide or 0 for rule in open_)
        values |= {"needed": about_queries(needed), "count": counted(max(rule.n for rule in open_), "query")}
    elif open_[0].undecidable_reason is not None and len({rule.undecidable_reason for rule in open_}) == 1:
        key += "_why"
        values["why"] = reason(open_[0])
    return _PHRASES.finding(key, result.run, "not shown", place="answer", **values)


def _reason_of_one(result: GateResult) -> Iterator[Finding]:
    """Why the only rule is not shown."""
    if len(result.rules) == 1 and result.outcome == "not shown":
        (rule,) = result.rules
        sentence = reason(rule)
        yield _PHRASES.finding("why", rule.title, "not shown", place="warning", why=sentence[:1].upper() + sentence[1:])


def _rules_table(result: GateResult, width: int | None = None) -> Table:
    """The rules with their outcomes, a line each; below what is not shown what would decide it.

    ``width``: in characters; what is detected is left out where it does not fit (the findings say it).
    """

    def below(rule: RuleResult) -> str:
        return reason(rule) if rule.outcome == "not shown" and len(result.rules) > 1 else ""

    columns = (
        Column("outcome", heading=""),
        Column("rule", of="title", heading=""),
        Column("value", of=value_and_direction),
        Column("bound", heading=f"{percent(1 - result.alpha, 1)} limit", of=limit_text),
        Column("budget", of="rule.limit"),
    )
    table = Table("Rules", columns, result.rules, below=below)
    wider = replace(table, columns=(*columns, Column("noticed", heading="detects from", of=detects_from)))
    # A title that names a group of queries is not cut for it.
    fits = width is None or (wider.fits(width) and all(rule.rule.queries is None for rule in result.rules))
    return wider if fits and any(map(detects_from, result.rules)) else table


def _figures_table(result: GateResult) -> Table:
    columns = (
        Column("rule", of="title"),
        Column("n", COUNT, "queries"),
        Column("left_out", COUNT, "left out"),
        Column("mean", digits(4), result.run),
        Column("other_mean", digits(4), "against"),
        Column("p_holds", P, "p holds"),
        Column("p_violated", P, "p violated"),
        Column("holm_p", P, "Holm p"),
    )
    return Table("All figures", columns, result.rules)


def _printed(text: str) -> str:
    """One line that no pipeline takes for a command, whatever the runs are called."""
    shown = plain(readable(text)).replace("##[", "## [")
    return f"run {shown}" if shown.lstrip().startswith("::") else shown
