"""What came of a fairer order: as text, as JSON and as a page."""

from __future__ import annotations

from dataclasses import dataclass, field

from evenrank.auditing import AuditResult, Figure
from evenrank.io import Provenance, Run
from evenrank.measures import is_bias, resolve
from evenrank.measures import statistics as st
from evenrank.reports.format import interval, number, p_value
from evenrank.reports.page import Page, Table
from evenrank.reports.result import Result

from .paired_figures import Difference, difference
from .rebalance_budget import Outcome
from .rebalance_lists import Changes

_SOURCE = "A fairer order of the first documents of each query; their ids and the length of lists are those of the run"


@dataclass(frozen=True, repr=False)
class Rebalanced(Result):
    """What :func:`evenrank.rebalance` returns: the run in its new order, and what came of it.

    Attributes:
        run: The run in its new order.
        method: The method's name; ``strength``: how strong, from 0 to 1; ``learnt``: the direction that it was given or
            learnt on the tuning queries.
        changes: How far documents moved, on the queries that are reported.
        outcomes: The bounds of ``meet`` and ``keep``, on the tuning queries and on the others.
        audit: The run and its new order, named ``name``, on the other queries (on all if nothing was tuned); None if no
            figures were asked for. ``tuning``: likewise on the tuning queries.
        settings, notes, provenance: How it was made.
    """

    name: str
    method: str
    strength: float
    learnt: dict[str, object]
    changes: Changes
    outcomes: tuple[Outcome, ...]
    audit: AuditResult | None
    tuning: AuditResult | None
    settings: dict[str, object]
    notes: tuple[str, ...]
    provenance: Provenance | None = field(default=None, compare=False)
    run: Run = field(kw_only=True)

    @property
    def judged(self) -> bool:
        """Whether effectiveness is known."""
        return self.audit is not None and any(not is_bias(measure) for measure in self.audit.measures)

    @property
    def headline(self) -> str:
        """What was done, in a line."""
        bounds = [*self.settings["meet"], *self.settings["keep"]]  # type: ignore[misc]
        if self.strength > 0 or not bounds:
            return f"{self.name}: {self.method} at strength {self.strength:g}"
        met = "the bound is" if len(bounds) == 1 else "the bounds are"
        if not self.settings["meet"]:
            return f"{self.name}: unchanged: {self.method} lessens no bias on the tuning queries where {met} kept"
        return f"{self.name}: unchanged: {met} met already on the tuning queries"

    @property
    def warnings(self) -> tuple[str, ...]:
        """Measures of bias that are further from none than they were, on the queries that are reported."""
        if self.audit is None:
            return ()
        found: dict[str, list[str]] = {}
        for measure, before, after, _ in _rows(self.audit, self.name):
            if (how := _worse(before, after)) is not None:
                figures = f"{measure} {number(before.mean, 4)} before, {number(after.mean, 4)} after"
                found.setdefault(how, []).append(figures)
        return tuple(f"Warning: the new order {how}: {'; '.join(figures)}." for how, figures in found.items())

    @property
    def _which(self) -> str:
        """Which documents are counted: those without text or label are not, where they keep their rank."""
        if not self.changes.lacking or self.settings["missing"] == "neutral":
            return "documents"
        return "documents with a known group"

    def page(self) -> Page:
        """The figures as a page."""
        tables = [] if self.audit is None else [_figures(self.audit, self.name, "Figures")]
        if self.tuning is not None:
            tables.append(
                _figures(self.tuning, self.name, "Figures on the tuning queries (chosen on these: no evidence)")
            )
        facts = (
            ("queries", f"{self.changes.queries:,}"),
            (f"{self._which} in the first {self.settings['depth']} ranks", f"{self.changes.documents:,}"),
        )
        # What is not known of the cost is said first, and is the first of the notes.
        first = self.notes[:1] if not self.judged else ()
        said = (*first, *self.warnings, *(found.sentence() for found in self.outcomes), self.changes.sentence())
        return Page("rebalance", self.headline, _SOURCE, facts, tuple(tables), (), self.notes[len(first) :], said)

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "run": self.name,
            "method": self.method,
            "strength": self.strength,
            **self.learnt,
            "settings": self.settings,
            "bounds": [found.to_dict() for found in self.outcomes],
            "changes": self.changes.to_dict(),
            "figures": _values(self.audit, self.name),
            "tuning_figures": _values(self.tuning, self.name),
            "warnings": list(self.warnings),
            "notes": list(self.notes),
        }


def _rows(audit: AuditResult, name: str) -> list[tuple[str, Figure, Figure, Difference]]:
    """Each measure with the run's figure, that of the new order, and the difference."""
    before = audit.runs[0].name
    rows = []
    seed = int(audit.settings["seed"])
    for measure in map(str, audit.measures):
        first, second = audit[before, measure], audit[name, measure]
        rows.append((measure, first, second, _apart(second, first, seed)))
    return rows


def _worse(before: Figure, after: Figure) -> str | None:
    """How a signed measure is further from 0 than it was; None if it is not, and of other measures."""
    if not resolve(before.measure).signed or before.mean is None or after.mean is None:
        return None
    if abs(after.mean) <= abs(before.mean) + st.EQUAL:
        return None
    if before.mean * after.mean < 0:
        return "leans to the other side, by more than the run does"
    return "leans further than the run does"


def _apart(figure: Figure, of_run: Figure, seed: int) -> Difference:
    compared = figure.vs_baseline
    if figure.whole_run and compared is not None:
        return Difference(compared.difference, compared.ci95, compared.p, compared.n)
    return difference(figure.values, of_run.values, seed)


def _figures(audit: AuditResult, name: str, title: str) -> Table:
    rows = tuple(
        (
            measure,
            number(first.mean, 4),
            interval(first.ci95, 4),
            number(second.mean, 4),
            interval(second.ci95, 4),
            number(apart.mean, 4),
            interval(apart.ci95, 4),
            p_value(apart.t_p),
        )
        for measure, first, second, apart in _rows(audit, name)
    )
    heads = ("measure", "run", "95%", "rebalanced", "95%", "difference", "95%", "p")
    note = "Difference: paired by query, with a bootstrap interval; p of a paired t-test, not corrected."
    return Table(title, heads, rows, (note,))


def _values(audit: AuditResult | None, name: str) -> dict[str, object] | None:
    if audit is None:
        return None
    return {
        measure: {
            "run": {"mean": first.mean, "n": first.n, "ci95": first.ci95},
            "rebalanced": {"mean": second.mean, "n": second.n, "ci95": second.ci95},
            "difference": apart.to_dict(),
        }
        for measure, first, second, apart in _rows(audit, name)
    }
