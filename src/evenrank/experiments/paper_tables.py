"""Tables of measured and published figures: means with intervals over seeds, or over queries for one seed."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from evenrank.io.errors import plain
from evenrank.io.types import Array
from evenrank.measures.nested import Mixed
from evenrank.reports.format import NONE, interval, number

Interval = tuple[float, float]


MARKS = "p < .05"
"""The heading of a label that says which of a row's figures differ significantly; it is no part of the row's name."""
CONTROLS = ("blind", "random", "neutral-first")
"""Rankings that every table has in addition to the paper's."""


@dataclass(frozen=True, slots=True)
class Value:
    """A measured figure: the mean of ``n`` ``unit`` (seeds or queries) with its 95% interval."""

    mean: float | None
    n: int = 0
    unit: str = "seeds"
    ci95: Interval | None = None

    @classmethod
    def over_seeds(cls, values: Sequence[float | None]) -> Value:
        """The mean over seeds with its t interval (none for a single seed)."""
        known = np.array([value for value in values if value is not None and not math.isnan(value)])
        if not len(known):
            return cls(None)
        return cls(float(known.mean()), len(known), "seeds", t_interval(known))

    @classmethod
    def of_test(cls, test: Mixed, level: float = 0.95) -> Value:
        """The mean of a mixed test; its n is that of what limits it, seeds or queries."""
        return cls(test.mean, test.n, test.limit, test.interval(level))

    def signed(self, digits: int = 4) -> str:
        """A difference with its interval, for a claim."""
        ends = f" [{self.ci95[0]:+.{digits}f}, {self.ci95[1]:+.{digits}f}]" if self.ci95 else ""
        return "undefined" if self.mean is None else f"{self.mean:+.{digits}f}{ends}"

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {"mean": self.mean, "n": self.n, "unit": self.unit, "ci95": list(self.ci95) if self.ci95 else None}


def t_interval(values: Array, level: float = 0.95) -> Interval | None:
    """The two-sided interval of a mean by Student's t; None for fewer than two values."""
    if len(values) < 2:
        return None
    from scipy import stats

    half = float(stats.t.ppf((1 + level) / 2, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
    return float(values.mean()) - half, float(values.mean()) + half


def paired(values: Sequence[float], baseline: Sequence[float]) -> Value:
    """The mean difference over seeds, each seed's two figures paired."""
    return Value.over_seeds([a - b for a, b in zip(values, baseline, strict=True)])


@dataclass(frozen=True, slots=True)
class Row:
    """A row: its labels, the measured figures and the published ones."""

    labels: tuple[str, ...]
    measured: Mapping[str, Value] = field(default_factory=dict)
    published: Mapping[str, float] = field(default_factory=dict)
    control: bool = False
    warning: str = ""
    """What a reader has to know before the figures: that the ranker is destroyed (:func:`ruined`)."""

    @property
    def n(self) -> str:
        """What the measured means are over: seeds or queries, and how many."""
        known = [value for value in self.measured.values() if value.mean is not None]
        if not known:
            return NONE
        parts = []
        for unit in sorted({value.unit for value in known}, reverse=True):
            counts = sorted({value.n for value in known if value.unit == unit})
            name = unit if counts != [1] else unit.removesuffix("s").replace("querie", "query")
            parts.append(f"{counts[0]}–{counts[-1]} {name}" if len(counts) > 1 else f"{counts[0]} {name}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Table:
    """A table in the layout of the paper: ``labels`` are the headings of the first columns, ``columns`` (key → heading)
    those of the figures."""

    name: str
    title: str
    labels: tuple[str, ...]
    columns: Mapping[str, str]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()
    digits: int = 3

    def cells(self, row: Row) -> list[tuple[str, str, str]]:
        """Each column's measured mean, its interval, and the published figure, as strings."""
        found = []
        for key in self.columns:
            value = row.measured.get(key, Value(None))
            digits = 0 if value.unit == "count" else self.digits
            ends = interval(value.ci95, digits) if value.ci95 else ""
            printed = row.published.get(key)
            whole = printed is not None and printed == round(printed) and abs(printed) >= 10
            found.append((number(value.mean, digits), ends, number(printed, 0 if whole else self.digits)))
        return found

    def text(self) -> str:
        """The table for a terminal, with three lines per row: measured, interval, published."""
        head = [*self.labels, "", *self.columns.values(), "n"]
        lines = [head]
        for row in self.rows:
            cells = self.cells(row)
            mark = " †" if row.warning else ""
            first, *others = map(plain, row.labels)
            lines.append([first + mark, *others, "measured", *(cell[0] for cell in cells), row.n])
            if any(cell[1] for cell in cells):
                lines.append([*[""] * len(self.labels), "95%", *(cell[1] for cell in cells), ""])
            if row.published:
                lines.append([*[""] * len(self.labels), "published", *(cell[2] for cell in cells), ""])
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        left = len(self.labels) + 1
        shown = [
            "  ".join(t.ljust(w) if i < left else t.rjust(w) for i, (t, w) in enumerate(zip(line, widths, strict=True)))
            for line in lines
        ]
        rule = "─" * len(shown[0])
        title = f"{self.name}. {self.title}"
        return "\n".join(
            [title, rule, shown[0], rule, *(line.rstrip() for line in shown[1:]), rule, *self.warnings, *self.notes]
        )

    @property
    def warnings(self) -> list[str]:
        """The warnings of the rows, each once."""
        shown = []
        for row in self.rows:
            named = [plain(label) for head, label in zip(self.labels, row.labels, strict=True) if head != MARKS]
            if row.warning:
                shown.append(f"† {' '.join(filter(None, named))}: {row.warning}")
        return shown

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "name": self.name,
            "title": self.title,
            "labels": list(self.labels),
            "columns": dict(self.columns),
            "rows": [
                {
                    "labels": list(row.labels),
                    "control": row.control,
                    "warning": row.warning,
                    "measured": {key: value.to_dict() for key, value in row.measured.items()},
                    "published": dict(row.published),
                }
                for row in self.rows
            ],
            "notes": list(self.notes),
        }

    def csv(self) -> str:
        """One line per figure: labels, column, mean, n, unit, interval, published."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow([*self.labels, "column", "mean", "n", "unit", "low", "high", "published"])
        for row in self.rows:
            for key in self.columns:
                value = row.measured.get(key, Value(None))
                low, high = value.ci95 or (None, None)
                writer.writerow([*row.labels, key, value.mean, value.n, value.unit, low, high, row.published.get(key)])
        return out.getvalue()
