"""What a rebalance returns: the new run, what came of it, and what it costs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from evenrank.auditing import AuditResult, MetricValue
from evenrank.auditing.data import shown_name
from evenrank.auditing.tradeoff_plot import Placed, RankingPoint, tradeoff_plot
from evenrank.files.json_values import IF_KNOWN, INLINE, LEFT_OUT, named
from evenrank.files.runs import Run
from evenrank.files.wording import counted
from evenrank.measures import is_bias
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import Drawing, Page, Section
from evenrank.results.result import Result
from evenrank.results.table import (
    Column,
    P,
    Table,
    digits,
    mark,
    short_intervals,
    shorts,
    with_interval,
)
from evenrank.stats.compare import ALL_ZERO, Comparison
from evenrank.stats.estimate import Estimate

from .bound import BoundResult
from .rebalance_lists import Changes
from .strength import Strengths

_PHRASES = phrases("rebalance")
_SOURCE = "A fairer order of the first documents of each query; their ids and the length of lists are those of the run"


@dataclass(frozen=True, repr=False)
class Rebalanced(Result):
    """What :func:`evenrank.rebalance` returns: the run in its new order, and what came of it.

    Attributes:
        run: The run in its new order.
        method: The method's name; ``strength``: how strong, from 0 to 1; ``learnt``: the direction that it was given or
            learnt on the validation queries.
        changes: How far documents moved, on the queries that are reported.
        outcomes: The bounds of ``max_bias`` and ``min_utility``, on the validation queries and on the others.
        audit: The run and its new order, named ``name``, on the other queries (on all if nothing was tuned); None if no
            figures were asked for. ``validation``: likewise on the validation queries.
        strengths: The method's strengths on the validation queries; None if the strength was given.
        done: What was done, in a sentence.
        settings, notes, provenance: How it was made; ``lacks``: what is said of judged queries that the run lacks, and
            of documents without a label or text.
    """

    also: ClassVar = ("warnings",)
    name: str = field(metadata=named("run"))
    method: str
    strength: float
    learnt: dict[str, object] = field(metadata=INLINE)
    changes: Changes
    outcomes: tuple[BoundResult, ...] = field(metadata=named("bounds"))
    audit: AuditResult | None = field(metadata=LEFT_OUT)
    validation: AuditResult | None = field(metadata=LEFT_OUT)
    settings: dict[str, object]
    notes: tuple[str, ...]
    strengths: Strengths | None = field(default=None, kw_only=True, metadata=IF_KNOWN)
    run: Run = field(kw_only=True, metadata=LEFT_OUT)
    done: Finding = field(kw_only=True, metadata=LEFT_OUT)
    lacks: tuple[Finding, ...] = field(default=(), kw_only=True, metadata=LEFT_OUT)

    @property
    def judged(self) -> bool:
        """Whether effectiveness is known."""
        return self.audit is not None and any(not is_bias(measure) for measure in self.audit.measures)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Judged queries that the run lacks; documents without a label or text; measures of bias that are shown to be
        further from none than they were.
        """
        return tuple(finding.text for finding in (*self.lacks, *self._further()))

    def _further(self) -> Iterator[Finding]:
        """The measures of bias that are shown to be further from none than they were."""
        name = "" if self.audit is None else self.audit.runs[0].name
        for measure, before, after, test in [] if self.audit is None else _rows(self.audit, self.name):
            if (key := _worse(before, after)) is not None:
                named: dict[str, Any] = {"measure": measure, "before": before.mean, "after": after.mean}
                yield _PHRASES.finding(key, measure, "shown", test, "warning", **named)
            if before.lean is not None and not before.lean.shown:
                estimate = Estimate(before.mean, before.ci95, before.n)
                yield _PHRASES.finding("no_lean", measure, before.lean.verdict, estimate, "warning", run=name)

    def _answer(self) -> Iterator[Finding]:
        """What was done; and where documents moved what became of the bias, and at what price."""
        yield self.done
        if self.changes.moved:
            yield self._price()

    def _price(self) -> Finding:
        """What became of the bias, and at what price."""
        rows = [] if self.audit is None else _rows(self.audit, self.name)
        biased = next((row for row in rows if is_bias(row[1].measure)), None)
        if biased is None:
            return _PHRASES.finding("not_measured", self.name, "cannot be told", None, "answer")
        _, before, after, change = biased
        named: dict[str, Any] = {"bias": shown_name(before.measure), "before": before.mean, "after": after.mean}
        sure = change.shown or change.reason == ALL_ZERO
        named["doubt"] = "" if sure else _PHRASES.text(f"doubt_{change.verdict.replace(' ', '_')}")
        cost = next((row for row in rows if not is_bias(row[1].measure)), None)
        if cost is None:
            return _PHRASES.finding("changed_unjudged", self.name, "cannot be told", None, "answer", **named)
        test = cost[3]
        key = "changed" if self.validation is not None else "changed_untuned"
        if test.reason == ALL_ZERO:
            key = f"{key}_freely"
        elif test.reason is not None and test.mean != 0:
            key = "changed_untold"
        # An interval without 0 would tell what the sentence says cannot be told.
        shown = test.mean if key == "changed_untold" else test
        named |= {"utility": cost[0], "cost": shown, "why": test.reason}
        return _PHRASES.finding(key, self.name, test.verdict, test, "answer", **named)

    def _bounds(self) -> Iterator[Finding]:
        """How each bound fares on the queries that it was not chosen on."""
        for outcome in self.outcomes:
            estimate = Estimate(outcome.others, outcome.limits, outcome.n)
            values: dict[str, Any] = {
                "others": outcome.others,
                "limits": outcome.limits,
                "validation": outcome.validation,
                "strength": f"{self.strength:g}",
                "how": _PHRASES.text("bound_limits") if outcome.limits else "",
                "asked": "",
            }
            if outcome.bound.relative and outcome.asked is not None:
                share = f"{100 * outcome.bound.value:g}%"
                values["asked"] = _PHRASES.text("bound_asked", share=share, asked=outcome.asked)
            key = outcome.verdict.replace(" ", "_")
            yield _PHRASES.finding(key, outcome.bound.text, outcome.verdict, estimate, **values)

    @property
    def _which(self) -> str:
        """Which documents are counted: those without text or label are not, where they keep their rank."""
        if not self.changes.lacking or self.settings["missing"] == "neutral":
            return "documents"
        return "documents with a known group"

    def page(self) -> Page:
        """The figures as a page."""
        facts = (
            ("queries", f"{self.changes.queries:,}"),
            (f"{self._which} in the first {self.settings['depth']} ranks", f"{self.changes.documents:,}"),
        )
        table = sections = None
        queries = judged = self.changes.queries
        if self.audit is not None:
            tested = [(row[1].measure, row[3].n) for row in _rows(self.audit, self.name)]
            queries = max(n for _, n in tested)
            judged = min((n for measure, n in tested if not is_bias(measure)), default=queries)
        if self.audit is not None and self.changes.moved:
            table = _short(self.audit, self.name)
        if self.audit is not None:
            sections = [Section("All figures", (_figures(self.audit, self.name, "Figures"),))]
        if self.validation is not None and sections is not None:
            title = "Figures on the validation queries (chosen on these: no evidence)"
            sections.append(Section("On the validation queries", (_figures(self.validation, self.name, title),)))
        if self.strengths is not None and sections is not None:
            sections.append(Section("Strengths", (_strengths(self.strengths, self.strength),)))
        return Page(
            "rebalance",
            f"{self.name}: {self.method} at strength {self.strength:g}",
            (*self._answer(), *self.lacks, *self._further(), *self._bounds()),
            table,
            ("● differs (p < .05, corrected)",),
            counted(queries, "query") + (f", {judged:,} judged" if judged < queries else ""),
            self._next(),
            plot=self._plot(),
            sections=tuple(sections or ()),
            facts=facts,
            source=_SOURCE,
            notes=(f"{self.method} at strength {self.strength:g}. {self.changes.sentence()}", *self.notes),
            provenance=self.provenance,
        )

    def _next(self) -> tuple[tuple[str, str], ...]:
        """What can be done with the new order; nothing with one that is the run's."""
        if not self.changes.moved:
            return ()
        return (
            (("evenrank audit", "both runs"),) if self.audit is None else (("evenrank gate", "limits for pipelines"),)
        )

    def _plot(self) -> Callable[[], Drawing] | None:
        """Makes the plot of the strengths, effectiveness against bias; None without both."""
        strengths = self.strengths
        if self.audit is None or strengths is None or strengths.utility is None:
            return None
        points = [
            RankingPoint(
                f"{self.method} {point.strength:g}" if point.strength else self.audit.runs[0].name,
                Placed(point.utility),
                Placed(point.bias),
                series=self.method if point.strength else None,
            )
            for point in strengths.points
        ]
        chosen = next(point for point in strengths.points if point.strength == self.strength)
        points.append(RankingPoint(self.name, Placed(chosen.utility), Placed(chosen.bias)))
        return functools.partial(tradeoff_plot, (strengths.utility, strengths.bias), points)

    def _beside(self) -> Mapping[str, object]:
        return {"figures": _values(self.audit, self.name), "validation_figures": _values(self.validation, self.name)}


def _rows(audit: AuditResult, name: str) -> list[tuple[str, MetricValue, MetricValue, Comparison]]:
    """Each measure with the run's figure, that of the new order, and the difference."""
    before = audit.runs[0].name
    rows = []
    for measure in map(str, audit.measures):
        first, second = audit[before, measure], audit[name, measure]
        assert second.vs_baseline is not None
        rows.append((measure, first, second, second.vs_baseline.test))
    return rows


def _worse(before: MetricValue, after: MetricValue) -> str | None:
    """The template of a signed measure that is shown to be further from 0 than it was; None of others."""
    sizes = None if after.vs_baseline is None else after.vs_baseline.sizes
    if sizes is None or not sizes.shown or before.mean is None or after.mean is None:
        return None
    if (sizes.mean or 0.0) < 0:
        return None
    return "other_side" if before.mean * after.mean < 0 else "further"


def _short(audit: AuditResult, name: str) -> Table:
    """Before, after, and the difference, with an interval where a verdict can be given."""
    rows = [(*row[:3], replace(row[3], ci95=None) if row[3].reason else row[3]) for row in _rows(audit, name)]
    columns = (
        Column("measure", heading="", of=lambda row: shown_name(row[1].measure)),
        Column("run", shorts(3), "before", "1.mean"),
        Column("rebalanced", shorts(3), "after", "2.mean"),
        Column("difference", shorts(3, sign=True), of="3.mean", mark=lambda row: mark(row[3].shown)),
        Column(("difference_low", "difference_high"), short_intervals(3, sign=True), "", "3.ci95"),
    )
    return Table("Before and after", columns, rows)


def _figures(audit: AuditResult, name: str, title: str) -> Table:
    columns = (
        Column("measure"),
        *with_interval("run", "1", 4),
        *with_interval("rebalanced", "2", 4),
        *with_interval("difference", "3", 4),
        Column("p", P, of="3.p"),
    )
    note = "Difference: paired by query; p: t and Hall's t, not corrected."
    return Table(title, columns, _rows(audit, name), (note,))


def _strengths(strengths: Strengths, chosen: float) -> Table:
    measures = ("utility", strengths.utility), ("bias", strengths.bias)
    columns = (
        Column("strength", digits(3), mark=lambda row: "◂" if row.strength == chosen else ""),
        *(Column(name, digits(4), shown_name(measure)) for name, measure in measures if measure is not None),
    )
    note = "◂ chosen, on the validation queries, of which the figures are: no evidence."
    return Table("Strengths", columns, strengths.points, (note,))


def _values(audit: AuditResult | None, name: str) -> dict[str, object] | None:
    if audit is None:
        return None
    return {
        measure: {
            "run": {"mean": first.mean, "n": first.n, "ci95": first.ci95},
            "rebalanced": {"mean": second.mean, "n": second.n, "ci95": second.ci95},
            "difference": apart,
        }
        for measure, first, second, apart in _rows(audit, name)
    }
