"""An experiment as one HTML page that opens offline: claims, tables of measured and published figures, notes."""

from __future__ import annotations

import csv
import math
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import polars as pl

from evenrank.files.errors import plain
from evenrank.files.json_values import LEFT_OUT, named
from evenrank.files.wording import are, counted
from evenrank.measures.inference import Estimate, Mixed, over_seeds
from evenrank.results.finding import Finding, Level, phrases
from evenrank.results.page import COLOURS, Drawing, Page, bars, curve, render_charts, specification
from evenrank.results.result import Result
from evenrank.results.table import COUNT, NONE, Column, digits, html_text, interval, intervals, number
from evenrank.results.table import Table as Shown

__all__ = ["Drawing", "ExperimentPage", "bars", "curve", "plane"]

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
        return cls.of(over_seeds(np.array([math.nan if value is None else value for value in values])))

    @classmethod
    def of(cls, found: Estimate) -> Value:
        """An estimate."""
        return cls(found.mean, found.n, found.unit, found.ci95)

    @classmethod
    def of_test(cls, test: Mixed, level: float = 0.95) -> Value:
        """The mean of a mixed test; its n is that of what limits it, seeds or queries."""
        return cls(test.mean, test.n, test.limit, test.interval(level))

    def signed(self, digits: int = 4) -> str:
        """A difference with its interval, for a claim."""
        ends = f" [{self.ci95[0]:+.{digits}f}, {self.ci95[1]:+.{digits}f}]" if self.ci95 else ""
        return "undefined" if self.mean is None else f"{self.mean:+.{digits}f}{ends}"


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
        lines = []
        for row in self.rows:
            measured, ends, published = zip(*self.cells(row), strict=True)
            first, *others = row.labels
            lines.append((first + " †" * bool(row.warning), *others, "measured", *measured, row.n))
            below = [("95%", ends)] * any(ends) + [("published", published)] * bool(row.published)
            lines += [(*[""] * len(self.labels), name, *cells, "") for name, cells in below]
        columns = (*map(Column, self.labels), Column("figure", heading=""), *self._figures(), Column("n", COUNT))
        return Shown(f"{self.name}. {self.title}", columns, lines, (*self.warnings, *self.notes)).text()

    def html(self) -> str:
        """The table for pages, with a line per row: in each cell the mean, its interval and the published figure."""

        def figure(row: Row, place: int) -> str:
            mean, ends, published = self.cells(row)[place]
            return "\n".join(filter(None, (mean, ends, f"published {published}" if published != NONE else "")))

        def of_row(place: int, column: Column) -> Column:
            return replace(column, of=lambda row: figure(row, place))

        names = [Column(label, of=f"labels.{place}") for place, label in enumerate(self.labels)]
        names[0] = replace(names[0], mark=lambda row: "†" if row.warning else "")
        figures = [of_row(place, column) for place, column in enumerate(self._figures())]
        columns = (*names, *figures, Column("n", COUNT))
        return Shown(self.title, columns, self.rows, kind=lambda row: "reference" if row.control else "").html()

    def _figures(self) -> list[Column]:
        return [Column(key, COUNT, heading) for key, heading in self.columns.items()]

    @property
    def warnings(self) -> list[str]:
        """The warnings of the rows."""
        return [one.text for one in self.warned()]

    def warned(self) -> Iterator[Finding]:
        """The rows with a warning."""
        for row in self.rows:
            named = [plain(label) for head, label in zip(self.labels, row.labels, strict=True) if head != MARKS]
            if row.warning:
                name, why = " ".join(filter(None, named)), row.warning.removesuffix(".")
                yield _SAYS.find("warned", name, "cannot be told", None, "warning", why=why)

    def figures(self) -> Shown:
        """A row per figure: labels, column, mean, n, unit, interval, published."""
        figures = [(row, key, row.measured.get(key, Value(None))) for row in self.rows for key in self.columns]
        columns = (
            # A label may be called like a column that every table has.
            *(
                Column(f"{label} (label)" if label == "published" else label, of=f"0.labels.{place}")
                for place, label in enumerate(self.labels)
            ),
            Column("column", of="1"),
            Column("mean", digits(3), of="2.mean"),
            Column("n", COUNT, of="2.n"),
            Column("unit", of="2.unit"),
            Column(("low", "high"), intervals(3), of="2.ci95"),
            Column("published", digits(3), of=lambda figure: figure[0].published.get(figure[1])),
        )
        return Shown(self.title, columns, figures)


State = Literal["supported", "not supported", "not decidable"]


_ONE = {"queries": "query", "analogies": "analogy", "matches": "match"}
"""Units whose singular is not without the last letter."""


PAPERS = ("ibbr", "sampling", "advbert", "expansion", "position")
"""The five papers, each with a file of claims. AdvBert is the baseline that the experiment ``sampling`` trains."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A claim of a paper, or a line that the experiment itself has to reach.

    where: the table, figure or section that states it; empty: a line of evenrank's own.
    published: the paper's figures for it, as text.
    """

    paper: str
    key: str
    text: str
    where: str = ""
    published: str = ""


@cache
def statements(paper: str) -> dict[str, Statement]:
    """The claims of a paper by their keys, in the order of the file."""
    text = (resources.files(__package__) / "claims" / f"{paper}.toml").read_text(encoding="utf-8")
    return {key: Statement(paper, key, **values) for key, values in tomllib.loads(text).items()}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the data support a claim (None: not decidable), and the n that would decide, in words."""

    supported: bool | None
    needs: str = ""

    @property
    def state(self) -> State:
        """In words."""
        return {True: "supported", False: "not supported", None: "not decidable"}[self.supported]  # type: ignore[return-value]


UNDECIDED = Verdict(None)


def above(value: Value, threshold: float = 0.0) -> Verdict:
    """Whether a figure is shown to be above a threshold: its 95% interval lies on one side of it."""
    if value.mean is None or value.ci95 is None:
        return Verdict(None, f"more than {counted(value.n, _ONE.get(value.unit, value.unit[:-1]))}" if value.n else "")
    if value.ci95[0] > threshold:
        return Verdict(True)
    if value.ci95[1] <= threshold:
        return Verdict(False)
    return Verdict(None, _needed(value, threshold))


def below(value: Value, threshold: float = 0.0) -> Verdict:
    """Whether a figure is shown to be below a threshold."""
    if value.mean is None:
        return above(value, threshold)
    ends = None if value.ci95 is None else (-value.ci95[1], -value.ci95[0])
    return above(Value(-value.mean, value.n, value.unit, ends), -threshold)


def within(value: Value, low: float, high: float) -> Verdict:
    """Whether a figure is shown to lie between two thresholds (equivalence).

    ``value.ci95`` should be the 90% interval for two one-sided tests at 5%.
    """
    return every(above(value, low), below(value, high))


def every(*verdicts: Verdict) -> Verdict:
    """Supported if all are; not supported if one is not."""
    states = [verdict.supported for verdict in verdicts]
    if False in states:
        return Verdict(False)
    if None in states:
        return Verdict(None, "; ".join(dict.fromkeys(one.needs for one in verdicts if one.needs)))
    return Verdict(True)


_SAYS = phrases("experiment")
_LEVELS: dict[str, Level] = {"supported": "shown", "not supported": "broken", "not decidable": "cannot be told"}
FLOOR = "a ranker that beats BM25"


def floored(verdict: Verdict, *floors: Verdict) -> Verdict:
    """A verdict that stands where every floor is shown, and is open elsewhere: a broken ranker shows nothing."""
    return verdict if every(*floors).supported else Verdict(None, FLOOR)


def _needed(value: Value, threshold: float) -> str:
    """The n with which the interval would end at the threshold if the mean and the spread stayed as they are."""
    assert value.mean is not None
    assert value.ci95 is not None
    distance = abs(value.mean - threshold)
    half = (value.ci95[1] - value.ci95[0]) / 2
    if not distance or half / distance > 100:
        return f"more {value.unit} than can be run"
    return f"about {math.ceil(value.n * (half / distance) ** 2 - 1e-6):,} {value.unit}"


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim, the verdict, and the figures with their n."""

    statement: Statement
    verdict: Verdict
    detail: str

    @classmethod
    def of(cls, paper: str, key: str, verdict: Verdict, detail: str) -> Claim:
        """The claim ``key`` of ``claims/PAPER.toml``."""
        return cls(statements(paper)[key], verdict, detail)

    @property
    def text(self) -> str:
        """The claim with its place in the paper."""
        return self.statement.text + (f" [{self.statement.where}]" if self.statement.where else "")

    def __str__(self) -> str:
        return self.finding().text

    def finding(self) -> Finding:
        """The claim with its verdict, as a line."""
        needs, published, state = self.verdict.needs, self.statement.published, self.verdict.state
        figures = [self.detail]
        figures += [_SAYS.say("needs", needs=needs)] if needs else []
        figures += [_SAYS.say("published", published=published)] if published else []
        said: dict[str, Any] = {"state": state.capitalize(), "text": self.text, "figures": "; ".join(figures)}
        return _SAYS.find("claim", f"{self.statement.key} ({self.statement.paper})", _LEVELS[state], **said)

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "paper": self.statement.paper,
            "key": self.statement.key,
            "claim": self.statement.text,
            "where": self.statement.where,
            "published": self.statement.published,
            "verdict": self.verdict.state,
            "detail": self.detail,
            "needs": self.verdict.needs,
        }


Curves = Mapping[str, Sequence[tuple[str, Value, Value]]]
"""For each method that reorders a run its points by strength: name, utility and bias."""


def plane(
    name: str,
    title: str,
    points: Mapping[str, tuple[Value, Value]],
    x: str,
    y: str,
    ends: tuple[str, str] | None,
    curves: Curves | None = None,
) -> Drawing:
    """Utility (x) against bias (y): a point per system with its intervals, the line between two ``ends``, and a line
    per method of ``curves``."""
    import altair as alt

    rows = [_point(system, *values) for system, values in points.items()]
    rows = [row for row in rows if row["x"] is not None and row["y"] is not None]
    middle = (min(row["xLow"] for row in rows) + max(row["xHigh"] for row in rows)) / 2 if rows else 0
    rows = [{**row, "side": "right" if row["x"] > middle else "left"} for row in rows]
    data = alt.Chart(alt.Data(values=rows))
    across = alt.X("x:Q", title=x, scale=alt.Scale(zero=False, padding=30))
    up = alt.Y("y:Q", title=y, scale=alt.Scale(zero=False, padding=20))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(range=COLOURS))
    tips = [
        alt.Tooltip("system:N"),
        alt.Tooltip("x:Q", title=x, format=".4f"),
        alt.Tooltip("y:Q", title=y, format=".4f"),
    ]
    layers = [
        data.mark_rule(opacity=0.5).encode(x=alt.X("xLow:Q", title=x), x2="xHigh:Q", y=up, color=colour),
        data.mark_rule(opacity=0.5).encode(y=alt.Y("yLow:Q", title=y), y2="yHigh:Q", x=across, color=colour),
        data.mark_point(size=90, filled=True, opacity=1).encode(x=across, y=up, color=colour, tooltip=tips),
        # Names are on the side with more room.
        *(
            data.transform_filter(f"datum.side === '{side}'")
            .mark_text(dx=dx, dy=-9, align=side, fontSize=12)
            .encode(x=across, y=up, text="system:N", color=colour)
            for side, dx in (("left", 8), ("right", -8))
        ),
    ]
    found = {row["system"]: row for row in rows}
    hint = "Bars are 95% intervals (over seeds; over queries where there is one seed)."
    if ends is not None and all(end in found for end in ends):
        line = alt.Chart(alt.Data(values=[{"x": found[end]["x"], "y": found[end]["y"]} for end in ends]))
        layers.insert(0, line.mark_line(strokeDash=[5, 4], color="#8a8f98").encode(x=across, y=up))
        hint += (
            f" The dashed line from {ends[0]} to {ends[1]}: what masking group words in part of the data would achieve."
        )
    chart = alt.layer(*layers)
    if curves:
        hint += (
            " Thin lines: the untouched ranker's runs, reordered by each method of rebalance at rising strength, as far"
            " as they lose no fifth of the effectiveness and do not double the bias; the table Rebalance has the rest."
        )
        below = alt.Legend(orient="bottom", columns=3, title="rebalance")
        named = alt.Color("method:N", sort=[*curves], scale=alt.Scale(range=COLOURS), legend=below)
        drawn = alt.Chart(alt.Data(values=_curve_rows(curves))).encode(x=across, y=up, color=named)
        line = drawn.mark_line(strokeWidth=1).encode(order="place:Q")
        spots = drawn.mark_point(size=25).encode(tooltip=[alt.Tooltip("reordering:N"), *tips[1:]])
        chart = alt.layer(alt.layer(line, spots), chart).resolve_scale(color="independent")
    return Drawing(name, title, specification(chart.properties(width=780, height=420)), hint)


def _curve_rows(curves: Curves) -> list[dict[str, object]]:
    """The points of each method's line."""
    return [
        {"method": method, "reordering": name, "place": place, "x": x.mean, "y": y.mean}
        for method, curve in curves.items()
        for place, (name, x, y) in enumerate(curve)
        if x.mean is not None and y.mean is not None
    ]


def _point(system: str, x: Value, y: Value) -> dict[str, Any]:
    kind = "control" if system in ("blind", "random", "neutral-first", "BM25") else "ranker"
    x_low, x_high = x.ci95 or (x.mean, x.mean)
    y_low, y_high = y.ci95 or (y.mean, y.mean)
    ends = {"xLow": x_low, "xHigh": x_high, "yLow": y_low, "yHigh": y_high}
    return {"system": system, "kind": kind, "x": x.mean, "y": y.mean, **ends}


@dataclass(frozen=True, slots=True, repr=False)
class ExperimentPage(Result):
    """The results of an experiment."""

    also: ClassVar = ("warnings",)
    name: str = field(metadata=named("experiment"))
    title: str
    source: str
    facts: tuple[tuple[str, str], ...] = field(metadata=LEFT_OUT)
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    drawings: tuple[Drawing, ...] = field(metadata=LEFT_OUT)
    notes: tuple[str, ...]

    def _beside(self) -> Mapping[str, object]:
        figures = [{"name": one.name, "title": one.title, "chart": one.specification} for one in self.drawings]
        return {"facts": dict(self.facts), "figures": figures}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """How many claims are supported, and each claim with its verdict."""
        return (self._count(), *self._warned(), *(claim.finding() for claim in self.claims))

    def _count(self) -> Finding:
        states = Counter[str](claim.verdict.state for claim in self.claims)
        if len(self.claims) == 1:
            return _SAYS.find("one", self.name, place="answer", state=list(states))
        said = [_SAYS.say("state", count=n, are=are(n), state=one) for one in get_args(State) if (n := states[one])]
        claims = counted(len(self.claims), "claim")
        return _SAYS.find("count", self.name, place="answer", claims=claims, states=said or NONE)

    def _warned(self) -> Sequence[Finding]:
        """The warnings of all tables, each once: destroyed rankers."""
        return list(dict.fromkeys(one for table in self.tables for one in table.warned()))

    def page(self) -> Page:
        """The claims; the page of an experiment has its tables beside."""
        return Page(
            "experiment",
            self.title,
            self.findings,
        )

    def table(self, *, full: bool = False, width: int = 80) -> str:
        """The claims, one a line with its verdict; ``full``: with all tables and notes."""
        screen = self.page().text(width=width)
        if not full:
            return screen
        facts = "; ".join(f"{name}: {value}" for name, value in self.facts)
        parts = [screen, "\n".join([self.title, self.source, facts]), *(table.text() for table in self.tables)]
        parts.append("\n".join(["Notes:", *(f"  {note}" for note in self.notes)]))
        return "\n".join(map(plain, "\n\n".join(parts).split("\n")))

    @property
    def warnings(self) -> list[str]:
        """What is said of destroyed rankers."""
        return [one.text for one in self._warned()]

    def html(self) -> str:
        """One self-contained page; its content security policy forbids all requests and all scripts but its own."""
        template = (resources.files(__package__) / "assets" / "experiment.html.j2").read_text(encoding="utf-8")
        return render_charts(template, self.drawings, self.provenance, page=self)

    def frames(self) -> dict[str, pl.DataFrame]:
        """The figures of each table, by its title."""
        return {table.title: table.figures().frame() for table in self.tables}

    def _repr_html_(self) -> str:
        """The claims and the tables, for a notebook."""
        claims = "".join(f"<li>{html_text(str(claim))}</li>" for claim in self.claims)
        tables = "".join(table.html() for table in self.tables)
        return f"<div><p><b>{html_text(self.title)}</b></p><ul>{claims}</ul>{tables}</div>"

    def write(self, folder: Path) -> Path:
        """Writes ``results.json``, a CSV per table and ``report.html``, whose path is returned."""
        from .work import write_tables

        write_tables(folder, {"results.json": self.to_json(), "report.html": self.html()})
        for table in self.tables:
            table.figures().csv(folder / (re.sub(r"[^\w-]+", "_", table.name.lower()).strip("_") + ".csv"))
        return folder / "report.html"


def published(name: str) -> list[dict[str, str]]:
    """The rows of a published table such as ``ibbr_table1``; values are strings, empty if the paper has none."""
    file = resources.files(__package__) / "published" / f"{name}.csv"
    return list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))


def numbers(row: dict[str, str], columns: list[str]) -> dict[str, float]:
    """The figures of a row in ``columns``, as far as the paper has them."""
    return {column: float(row[column]) for column in columns if row.get(column)}


def fact(paper: str, name: str) -> float:
    """A figure from the text of a paper."""
    found = {(row["paper"], row["fact"]): row["value"] for row in published("facts")}
    return float(found[paper, name])
