"""What each stage of a pipeline adds to the bias of its candidates: the figures, as JSON, text and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ir_measures import Measure
from rich.cells import cell_len, set_cell_size

from evenrank.io.errors import plain
from evenrank.io.wording import are, counted
from evenrank.measures.statistics import SIGNIFICANT
from evenrank.reports.format import Interval, equation, interval, number, p_value

_DIGITS = 4
_LONGEST_NAME = 30
TITLE = (
    "Stages: what the first one's candidates hold in random order, and what each stage adds (on the queries that all"
    " stages have; p: paired test, uncorrected; tie mean: added on average over the orders of tied documents)"
)


@dataclass(frozen=True, slots=True)
class Step:
    """What a stage adds.

    Attributes:
        added: The stage's figure minus that of what it was given: of the candidates in random order for the first
            stage, of the stage before for any other. ``ci95`` and ``p`` (two-sided, paired, uncorrected) belong to it.
        figure: The figure of the stage's run, on the queries that all stages have.
        tie_added, tie_p: The same between expectations over the orders of tied documents; None where there are none.
    """

    stage: str
    added: float
    ci95: Interval | None
    p: float | None
    figure: float
    tie_added: float | None = None
    tie_p: float | None = None

    @property
    def tie_sensitive(self) -> bool:
        """Whether ties decide what is added: their mean lies outside the interval, or has another significance."""
        if self.tie_added is None:
            return False
        outside = self.ci95 is not None and not self.ci95[0] <= self.tie_added <= self.ci95[1]
        known = self.p is not None and self.tie_p is not None
        return outside or (known and (self.p < SIGNIFICANT) != (self.tie_p < SIGNIFICANT))  # type: ignore[operator]

    def shown(self, tied: bool) -> bool:
        """Whether the stage is shown to add anything; ``tied``: averaged over the orders of tied documents."""
        if tied:
            return self.tie_p is not None and self.tie_p < SIGNIFICANT
        if self.p is not None:
            return self.p < SIGNIFICANT
        return self.ci95 is not None and not self.ci95[0] <= 0 <= self.ci95[1]


@dataclass(frozen=True, slots=True)
class Decomposition:
    """One measure of the last stage, as the sum of what the candidates hold and what each step adds.

    ``n``: the number of queries with a value in every stage; ``candidates``: the expectation over random orders of the
    first stage's documents, with its interval.
    """

    measure: Measure
    n: int
    candidates: float
    ci95: Interval | None
    steps: tuple[Step, ...]

    @property
    def total(self) -> float:
        """The figure of the last stage."""
        return self.steps[-1].figure

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        steps = [
            {"stage": step.stage, "added": step.added, "ci95": step.ci95, "p": step.p, "figure": step.figure}
            | {"tie_added": step.tie_added, "tie_p": step.tie_p}
            for step in self.steps
        ]
        candidates = {"figure": self.candidates, "ci95": self.ci95}
        return {"n": self.n, "candidates": candidates, "steps": steps, "total": self.total}

    def sentence(self) -> str:
        """The sum in words, which stages are shown to change it, and what ties have to do with it if they decide."""
        parts = [number(s.added) + ("" if s.ci95 is None else f" {interval(s.ci95)}") for s in self.steps]
        tied = any(step.tie_sensitive for step in self.steps)
        shown = [step.stage for step in self.steps if step.shown(tied)]
        verdict = (
            f"{' and '.join(shown)} {are(len(shown))} shown to change it" if shown else "no stage is shown to change it"
        )
        text = (
            f"{self.measure} of {self.steps[-1].stage} is {number(self.total)}: in random order its candidates have"
            f" {number(self.candidates)}, {self._listed(parts)}"
        )
        if not tied:
            return f"{text}; {verdict}."
        averaged = self._listed([_on_average(step) for step in self.steps])
        return f"{text}. That depends on the order of tied documents: averaged over it, {averaged}, and {verdict}."

    def _listed(self, parts: Sequence[str]) -> str:
        """What each stage adds, one after the other."""
        named = [
            f"{s.stage}{' adds' * (not n)} {part}" for n, (s, part) in enumerate(zip(self.steps, parts, strict=True))
        ]
        return f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]


def _on_average(step: Step) -> str:
    """What a stage adds averaged over the orders of tied documents."""
    if step.tie_added is None:
        return "an unknown amount"
    return number(step.tie_added) + ("" if step.tie_p is None else f" ({equation('p', step.tie_p)})")


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages of a pipeline by name, in order, and each bias measure taken apart, by its text."""

    names: tuple[str, ...]
    measures: dict[str, Decomposition]

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {"names": list(self.names), "measures": {key: of.to_dict() for key, of in self.measures.items()}}

    def sentences(self, *measures: Measure | None) -> list[str]:
        """The sums of these measures, or of the first, in words."""
        wanted = [str(measure) for measure in measures if str(measure) in self.measures]
        return [self.measures[key].sentence() for key in wanted or list(self.measures)[:1]]

    def text(self) -> str:
        """A table for the terminal, to go below :data:`TITLE`: each measure's sum, a line for each step."""
        rows: list[tuple[str, ...]] = [("", "adds", "95% interval", "p", "sum", "tie mean")]
        for key, of in self.measures.items():
            rows.append((f"{key} (n = {counted(of.n, 'query')})", "", "", "", "", ""))
            rows.append(_line("(candidates)", of.candidates, of.ci95, None, of.candidates, None))
            rows += [_line(plain(s.stage), s.added, s.ci95, s.p, s.figure, s.tie_added) for s in of.steps]
        steps = [row for row in rows if any(row[1:])]
        widths = [max(cell_len(row[column]) for row in steps) for column in range(6)]
        lines = []
        for row in rows:
            cells = [" " * (width - cell_len(cell)) + cell for cell, width in zip(row[1:], widths[1:], strict=True)]
            name = row[0] if row not in steps else f"  {row[0]}{' ' * (widths[0] - cell_len(row[0]))}"
            lines.append("  ".join([name, *cells]).rstrip())
        return "\n".join(lines)


def _line(
    name: str, added: float, ends: Interval | None, p: float | None, total: float, of_ties: float | None
) -> tuple[str, ...]:
    name = name if cell_len(name) <= _LONGEST_NAME else set_cell_size(name, _LONGEST_NAME - 1) + "…"
    shown, ties = "" if p is None else p_value(p), "" if of_ties is None else number(of_ties, _DIGITS)
    return name, number(added, _DIGITS), interval(ends, _DIGITS), shown, number(total, _DIGITS), ties
