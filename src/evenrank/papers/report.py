"""An experiment's result: claims with their verdicts, tables of measured and published figures, charts and notes."""

from __future__ import annotations

import fnmatch
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from evenrank.files import LEFT_OUT, counted, holm, named, write_text
from evenrank.results import (
    COLOURS,
    COUNT,
    NONE,
    Column,
    Drawing,
    Finding,
    Page,
    Result,
    Section,
    Table,
    curve,
    digits,
    interval,
    intervals,
    number,
    phrases,
    specification,
)
from evenrank.stats import Estimate
from evenrank.training import ruined

from .claims import DIFFERENT, Decided, base_of, decided_claims, number_of, of_paper, published_of, published_rows
from .figures import Figures
from .study import FIRST, REFERENCES, Settings, Study

_PHRASES = phrases("experiment")


@dataclass(frozen=True, slots=True)
class Row:
    """A system's row: what stands for the paper's ranker here, and by figure what was measured, published and changed.

    ``changes``: by figure the relative change from the row's baseline, and Holm's p of the difference.
    """

    system: str
    here: str
    measured: Mapping[str, Estimate]
    published: Mapping[str, float]
    changes: Mapping[str, tuple[float | None, float | None]] = field(default_factory=dict)
    warning: str = ""

    @property
    def n(self) -> str:
        """What the means are over: seeds or queries, and how many."""
        return ", ".join(dict.fromkeys(number_of(v) for v in self.measured.values() if v.n)) or NONE


@dataclass(frozen=True, slots=True)
class Layout:
    """A table of a paper: its rows are the published ones and those that the patterns ``also`` name ({model}: each).

    ``figures``: its columns; between bars without their signs. ``against``: for the end of a system's name that of the
    system it is compared with. ``utility``: the figure by which a ranker is called destroyed.
    """

    name: str
    title: str
    figures: tuple[str, ...]
    also: tuple[str, ...] = ()
    against: Mapping[str, str] = field(default_factory=dict)
    digits: int = 3
    notes: tuple[str, ...] = ()
    utility: str = ""

    def rows(self, study: Study[Any, Any], figures: Figures, published: Mapping[tuple[str, str], float]) -> list[Row]:
        """The rows, each with what was measured and published."""
        models = study.settings.models
        named = [row["system"] for row in published_rows(study.name) if row["table"] == self.name]
        known = list(dict.fromkeys(system for name in self.figures for system in figures.systems(name.strip("|"))))
        for pattern in self.also:
            for model in models if "{model}" in pattern else [""]:
                named += fnmatch.filter(known, pattern.replace("{model}", model))
        rows = []
        for system in dict.fromkeys(named):
            measured = {name: value for name in self.figures if (value := figures.row(name, system)) is not None}
            printed = {name: published[system, name] for name in self.figures if (system, name) in published}
            if measured or printed:
                changes = self._changes(figures, system)
                warning = _warning(study, figures, system, self.utility)
                rows.append(Row(system, study.settings.here(system), measured, printed, changes, warning))
        return rows

    def _changes(self, figures: Figures, system: str) -> dict[str, tuple[float | None, float | None]]:
        """The change from the system's baseline by figure, in shares, and p of the difference; Holm's over the row."""
        end = next((suffix for suffix in self.against if system.endswith(suffix)), None)
        base = "" if end is None else system.removesuffix(end) + self.against[end]
        changes: dict[str, tuple[float | None, float | None]] = {}
        for name in self.figures:
            key, size = name.strip("|"), name.startswith("|")
            if base and figures.has(key, system) and figures.has(key, base):
                before, after = figures.mean(key, base), figures.mean(key, system)
                before, after = (abs(before), abs(after)) if size else (before, after)
                p = figures.test(key, {system: 1.0, base: -1.0}, size=size).p
                changes[name] = ((after - before) / abs(before) if before else None, p)
        corrected = holm([p for _, p in changes.values()])
        return {name: (changes[name][0], p) for name, p in zip(changes, corrected, strict=True)}

    def table(self, rows: Sequence[Row]) -> Table:
        """For the terminal and the page: a system has a line each for measured, interval, change and published."""
        lines, here = [], any(row.here for row in rows)
        for row in rows:
            head, n = [row.system + " †" * bool(row.warning), *([row.here] if here else [])], row.n
            kinds = zip(*(self._cells(row, name) for name in self.figures), strict=True)
            for kind, values in zip(("measured", "95%", "change", "published"), kinds, strict=True):
                if any(value != NONE for value in values):
                    lines.append((*head, kind, *values, n))
                    head, n = [""] * len(head), ""
        columns = (
            Column("system"),
            *([Column("here")] if here else []),
            Column("figure", heading=""),
            *(Column(f"c{place}", COUNT, name) for place, name in enumerate(self.figures)),
            Column("n", COUNT),
        )
        warned = tuple(f"{row.system} †: {row.warning}" for row in rows if row.warning)
        return Table(f"{self.name}. {self.title}", columns, lines, (*warned, *self.notes))

    def _cells(self, row: Row, name: str) -> tuple[str, str, str, str]:
        value, printed = row.measured.get(name), row.published.get(name)
        is_integer = printed is not None and printed == round(printed) and abs(printed) >= 10
        mean = NONE if value is None else number(value.mean, self.digits)
        ends = NONE if value is None or value.ci95 is None else interval(value.ci95, self.digits)
        change, p = row.changes.get(name, (None, None))
        changed = NONE if change is None else f"{change:+.1%}{'*' if p is not None and p < 0.05 else ''}"
        return mean, ends, changed, number(printed, 0 if is_integer else self.digits)

    def figures_table(self, rows: Sequence[Row]) -> Table:
        """A row per figure: for files and frames."""
        lines = [
            (row, name, row.measured.get(name), *row.changes.get(name, (None, None)), row.published.get(name))
            for row in rows
            for name in self.figures
        ]
        columns = (
            Column("system", of="0.system"),
            Column("here", of="0.here"),
            Column("figure", of="1"),
            Column("mean", digits(3), of="2.mean"),
            Column(("low", "high"), intervals(3), of="2.ci95"),
            Column("n", COUNT, of="2.n"),
            Column("unit", of="2.unit"),
            Column("change", digits(3), of="3"),
            Column("holm_p", digits(3), of="4"),
            Column("published", digits(3), of="5"),
        )
        return Table(f"{self.name}. {self.title}", columns, lines)


def _warning(study: Study[Any, Any], figures: Figures, system: str, utility: str) -> str:
    """Whether a ranker is destroyed: shown to be below the first stage, or far below its base."""
    if not utility or system in (FIRST, *REFERENCES) or not figures.has(utility, system):
        return ""
    base = base_of(study.name, system)
    first, before = (figures.mean(utility, s) if figures.has(utility, s) else None for s in (FIRST, base))
    ends = None if first is None else figures.test(utility, {system: 1.0, FIRST: -1.0}).interval(DIFFERENT)
    shown = ends is not None and ends[1] < 0
    value = figures.mean(utility, system)
    return ruined(value, first, before if base != system else None, measure=utility, shown=shown)


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of figures: a plane of two of them, or a line of each over the numbers that ``at`` puts into a name.

    ``systems``: patterns; ``x`` and ``y``: of a plane, its figures; ``figures``: of lines.
    """

    title: str
    systems: tuple[str, ...]
    x: str
    y: str = ""
    figures: tuple[str, ...] = ()
    at: tuple[float, ...] = ()
    hint: str = ""

    def drawings(self, figures: Figures, models: Sequence[str]) -> Iterator[Drawing]:
        """A chart for each model."""
        for model in models if any("{model}" in system for system in self.systems) else [""]:
            title = f"{self.title}, {model}" if model else self.title
            patterns = [system.replace("{model}", model) for system in self.systems]
            drawn = _lines(self, title, figures, patterns) if self.at else _plane(self, title, figures, patterns)
            if drawn is not None:
                yield drawn


def _plane(chart: Chart, title: str, figures: Figures, patterns: Sequence[str]) -> Drawing | None:
    import altair as alt

    rows = []
    known = figures.systems(chart.x.strip("|"))
    for system in dict.fromkeys(name for pattern in patterns for name in fnmatch.filter(known, pattern)):
        x, y = (figures.row(name, system) for name in (chart.x, chart.y))
        if x is None or y is None or x.mean is None or y.mean is None:
            continue
        ends = [v.ci95 or (v.mean, v.mean) for v in (x, y)]
        kind = "control" if system in (FIRST, *REFERENCES) else "ranker"
        where = {"xLow": ends[0][0], "xHigh": ends[0][1], "yLow": ends[1][0], "yHigh": ends[1][1]}
        rows.append({"system": system, "kind": kind, "x": x.mean, "y": y.mean, **where})
    if not rows:
        return None
    data = alt.Chart(alt.Data(values=rows))
    across = alt.X("x:Q", title=chart.x, scale=alt.Scale(zero=False, padding=30))
    up = alt.Y("y:Q", title=chart.y, scale=alt.Scale(zero=False, padding=20))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(range=COLOURS))
    tips = [
        "system:N",
        alt.Tooltip("x:Q", title=chart.x, format=".4f"),
        alt.Tooltip("y:Q", title=chart.y, format=".4f"),
    ]
    layers = [
        data.mark_rule(opacity=0.5).encode(x=alt.X("xLow:Q", title=chart.x), x2="xHigh:Q", y=up, color=colour),
        data.mark_rule(opacity=0.5).encode(y=alt.Y("yLow:Q", title=chart.y), y2="yHigh:Q", x=across, color=colour),
        data.mark_point(size=90, filled=True, opacity=1).encode(x=across, y=up, color=colour, tooltip=tips),
        data.mark_text(dx=8, dy=-9, align="left", fontSize=12).encode(x=across, y=up, text="system:N", color=colour),
    ]
    hint = chart.hint or "Bars are 95% intervals."
    return Drawing(title, title, specification(alt.layer(*layers).properties(width=780, height=420)), hint)


def _lines(chart: Chart, title: str, figures: Figures, patterns: Sequence[str]) -> Drawing | None:
    rows = []
    for pattern in patterns:
        for at in chart.at:
            for name in chart.figures:
                value = figures.row(name, pattern.replace("{at}", f"{at:g}"))
                # Of one system or one figure, the other names the line.
                line = name if len(patterns) == 1 else pattern.rpartition(", ")[0]
                if value is not None:
                    low, high = value.ci95 or (value.mean, value.mean)
                    rows.append({"x": at, "measure": line, "value": value.mean, "low": low, "high": high})
    return curve(title, title, rows, chart.x, chart.hint) if rows else None


def layouts(study: Study[Any, Any]) -> list[Layout]:
    """The tables that a study's file of claims lays out."""
    return [Layout(**table) for table in of_paper("claims", study.name).get("tables", ())]


def charts(study: Study[Any, Any]) -> list[Chart]:
    """The charts that it names."""
    return [Chart(**chart) for chart in of_paper("claims", study.name).get("charts", ())]


@dataclass(frozen=True, slots=True, repr=False)
class ExperimentPage(Result):
    """The results of an experiment: claims with verdicts, tables, charts, notes."""

    also: ClassVar = ("warnings",)
    name: str = field(metadata=named("experiment"))
    title: str
    source: str
    scale: str
    seeds: tuple[int, ...]
    models: Mapping[str, str]
    """What stood for each of the paper's rankers."""
    stand_ins: Mapping[str, str]
    """What stood for each of its collections."""
    claims: tuple[Decided, ...]
    layouts: tuple[tuple[Layout, tuple[Row, ...]], ...] = field(metadata=LEFT_OUT)
    extra: tuple[Table, ...] = field(metadata=LEFT_OUT)
    drawings: tuple[Drawing, ...] = field(metadata=LEFT_OUT)
    notes: tuple[str, ...]

    def _beside(self) -> Mapping[str, object]:
        tables = [
            {
                "name": layout.name,
                "title": layout.title,
                "rows": [
                    {
                        "system": row.system,
                        "here": row.here,
                        "figures": {
                            name: {"measured": row.measured.get(name), "published": row.published.get(name)}
                            for name in layout.figures
                        },
                        "warning": row.warning,
                    }
                    for row in rows
                ],
            }
            for layout, rows in self.layouts
        ]
        figures = [
            {"name": drawing.name, "title": drawing.title, "chart": drawing.specification} for drawing in self.drawings
        ]
        return {"tables": tables, "figures": figures}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """How many claims are supported, and each claim with its verdict."""
        return (self._count(), *self._warned(), *(claim.finding() for claim in self.claims))

    def _count(self) -> Finding:
        """How many claims are supported, not supported and undecided."""
        states = Counter[str](claim.verdict.state for claim in self.claims)
        return _PHRASES.finding(
            "count",
            self.name,
            place="answer",
            claims=counted(len(self.claims), "claim"),
            supported=states["supported"],
            refused=states["not supported"],
            open=states["undecided"],
        )

    def _claims_table(self) -> Table:
        """The claims, a line each with its verdict and where the paper has it."""
        columns = (
            Column("verdict", of=lambda decided: decided.verdict.state.capitalize()),
            Column("where", heading="in the paper", of=lambda decided: decided.claim.where or "own line"),
            Column("claim", of="claim.text"),
        )
        return Table("Claims", columns, self.claims)

    def _compared_table(self) -> Table:
        """What was compared for each claim, what was published, and what would decide it."""
        columns = (
            Column("claim", of="claim.text"),
            Column("verdict", of="verdict.state"),
            Column("compared", of=lambda decided: "; ".join(map(str, decided.effects))),
            Column("published", of="claim.published"),
            Column("needs", heading="what would decide", of="verdict.needs"),
        )
        return Table("What was compared", columns, self.claims)

    def _warned(self) -> Sequence[Finding]:
        """The destroyed rankers, each once."""
        warnings = dict.fromkeys((row.system, row.warning) for _, rows in self.layouts for row in rows if row.warning)
        return [
            _PHRASES.finding("warned", system, "cannot be told", None, "warning", why=why.removesuffix("."))
            for system, why in warnings
        ]

    @property
    def warnings(self) -> list[str]:
        """What is said of destroyed rankers."""
        return [finding.text for finding in self._warned()]

    def page(self) -> Page:
        """The claims; tables, charts and notes behind them."""
        drawn = Section("Charts", draw=lambda: self.drawings) if self.drawings else None
        tables = (*(layout.table(rows) for layout, rows in self.layouts), *self.extra)
        compared = self._compared_table()
        sections = [Section(table.title, (table,)) for table in (compared, *tables)]
        return Page(
            "experiment",
            self.title,
            self.findings,
            self._claims_table(),
            sections=(sections[0], *([drawn] if drawn else []), *sections[1:]),
            source=self.source,
            notes=self.notes,
            lines=10 + 3 * len(self.claims),
        )

    def write(self, folder: Path) -> Path:
        """Writes ``results.json``, a CSV per table and ``report.html``, whose path is returned."""
        write_text(folder / "results.json", self.to_json() + "\n")
        for layout, rows in self.layouts:
            layout.figures_table(rows).csv(folder / f"{_file_name(layout.name)}.csv")
        for table in self.extra:
            table.csv(folder / f"{_file_name(table.title.partition('.')[0])}.csv")
        self.report(folder / "report.html")
        return folder / "report.html"


def _file_name(title: str) -> str:
    return re.sub(r"[^\w-]+", "_", title.lower()).strip("_")


def page_of(study: Study[Any, Any], figures: Figures) -> ExperimentPage:
    """The page of a study that ran."""
    settings: Settings = study.settings
    published = published_of(study.name)
    decided = decided_claims(study.name, figures, settings.models, settings.scale, settings.stand_ins)
    laid = [(layout, tuple(layout.rows(study, figures, published))) for layout in layouts(study)]
    drawn = [drawing for chart in charts(study) for drawing in chart.drawings(figures, list(settings.models))]
    stood = [f"{name} is {here}" for name, here in {**settings.models, **settings.stand_ins}.items()]
    seeds, chosen_on = (", ".join(map(str, some)) for some in (settings.seeds, settings.development))
    scale = [
        _PHRASES.text("scale", scale=settings.scale, seeds=seeds),
        *([_PHRASES.text("developed", seeds=chosen_on)] if chosen_on else []),
        _PHRASES.text("stood", names="; ".join(stood)),
    ]
    return ExperimentPage(
        study.name,
        study.about["title"],
        study.about["source"],
        settings.scale,
        settings.seeds,
        settings.models,
        settings.stand_ins,
        decided,
        tuple((layout, rows) for layout, rows in laid if any(row.measured for row in rows)),
        tuple(study.tables(figures)),
        (*drawn, *study.drawings()),
        (*scale, *study.notes()),
    )
