"""An experiment as one HTML page that opens without a network: claims, tables, figures, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl

from evenrank import __version__
from evenrank.audit.report import page as base

from .tables import Claim, Table, Value

_COLOURS = ["#0072b2", "#c24d00", "#00795a", "#a3478a", "#7d6200", "#5048b8", "#5a6270"]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart: a Vega-Lite specification with its data."""

    name: str
    title: str
    specification: dict[str, Any]
    hint: str = ""


def curve(name: str, title: str, rows: Sequence[Mapping[str, Any]], x: str, hint: str = "") -> Drawing:
    """Lines over ``x``, a panel for each ``measure``; rows with ``x``, ``measure``, ``value``, ``low``, ``high``."""
    import altair as alt

    base_chart = alt.Chart(alt.Data(values=[dict(row) for row in rows]))
    across = alt.X("x:Q", title=x)
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip("x:Q", title=x), alt.Tooltip("value:Q", format=".4f")]
    line = base_chart.mark_line(point=True, color=_COLOURS[0]).encode(x=across, y=y, tooltip=tooltip)
    band = base_chart.mark_rule(color=_COLOURS[0], opacity=0.5).encode(x=across, y="low:Q", y2="high:Q")
    chart = (
        alt.layer(band, line)
        .properties(width=260, height=220)
        .facet(facet=alt.Facet("measure:N", title=None), columns=3)
        .resolve_scale(y="independent")
    )
    return Drawing(name, title, _plain(chart), hint)


def bars(name: str, title: str, table: pl.DataFrame, y: str, hint: str = "") -> Drawing:
    """One bar a query, sorted; ``table`` has ``query_id`` and ``difference``."""
    import altair as alt

    rows = [{"place": i, "query": q, "difference": d} for i, (q, d) in enumerate(table.iter_rows())]
    colour = alt.condition("datum.difference > 0", alt.value(_COLOURS[0]), alt.value(_COLOURS[1]))
    chart = (
        alt.Chart(alt.Data(values=rows))
        .mark_bar()
        .encode(
            x=alt.X("place:O", title="queries, sorted", axis=alt.Axis(labels=False, ticks=False)),
            y=alt.Y("difference:Q", title=y),
            color=colour,
            tooltip=[alt.Tooltip("query:N"), alt.Tooltip("difference:Q", format=".4f")],
        )
        .properties(width=780, height=260)
    )
    return Drawing(name, title, _plain(chart), hint)


def plane(
    name: str, title: str, points: Mapping[str, tuple[Value, Value]], x: str, y: str, ends: tuple[str, str] | None
) -> Drawing:
    """Utility (x) against bias (y): a point a system with its intervals; the straight line between two ``ends``."""
    import altair as alt

    rows = [_point(system, *values) for system, values in points.items()]
    rows = [row for row in rows if row["x"] is not None and row["y"] is not None]
    data = alt.Chart(alt.Data(values=rows))
    across = alt.X("x:Q", title=x, scale=alt.Scale(zero=False, padding=30))
    up = alt.Y("y:Q", title=y, scale=alt.Scale(zero=False, padding=20))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(range=_COLOURS))
    tips = [
        alt.Tooltip("system:N"),
        alt.Tooltip("x:Q", title=x, format=".4f"),
        alt.Tooltip("y:Q", title=y, format=".4f"),
    ]
    layers = [
        data.mark_rule(opacity=0.5).encode(x=alt.X("xLow:Q", title=x), x2="xHigh:Q", y=up, color=colour),
        data.mark_rule(opacity=0.5).encode(y=alt.Y("yLow:Q", title=y), y2="yHigh:Q", x=across, color=colour),
        data.mark_point(size=90, filled=True, opacity=1).encode(x=across, y=up, color=colour, tooltip=tips),
        data.mark_text(dx=8, dy=-9, align="left", fontSize=12).encode(x=across, y=up, text="system:N", color=colour),
    ]
    found = {row["system"]: row for row in rows}
    hint = "Bars are 95 % intervals (over seeds; over queries where there is one seed)."
    if ends is not None and all(end in found for end in ends):
        line = alt.Chart(alt.Data(values=[{"x": found[end]["x"], "y": found[end]["y"]} for end in ends]))
        layers.insert(0, line.mark_line(strokeDash=[5, 4], color="#8a8f98").encode(x=across, y=up))
        hint += (
            f" The dashed line from {ends[0]} to {ends[1]}: what masking group words in part of the data would give."
        )
    return Drawing(name, title, _plain(alt.layer(*layers).properties(width=780, height=420)), hint)


def _point(system: str, x: Value, y: Value) -> dict[str, Any]:
    kind = "control" if system in ("blind", "random", "neutral-first", "BM25") else "ranker"
    x_low, x_high = x.ci95 or (x.mean, x.mean)
    y_low, y_high = y.ci95 or (y.mean, y.mean)
    ends = {"xLow": x_low, "xHigh": x_high, "yLow": y_low, "yHigh": y_high}
    return {"system": system, "kind": kind, "x": x.mean, "y": y.mean, **ends}


def _plain(chart: Any) -> dict[str, Any]:
    specification: dict[str, Any] = chart.to_dict()
    for name in ("$schema", "config"):
        specification.pop(name, None)
    return specification


@dataclass(frozen=True, slots=True)
class Page:
    """What an experiment found."""

    name: str
    title: str
    source: str
    facts: tuple[tuple[str, str], ...]
    claims: tuple[Claim, ...]
    tables: tuple[Table, ...]
    drawings: tuple[Drawing, ...]
    notes: tuple[str, ...]

    def text(self) -> str:
        """All of it for a terminal."""
        facts = ", ".join(f"{value} {name}" for name, value in self.facts)
        parts = [f"{self.title}\n{self.source}\n{facts}", *(table.text() for table in self.tables)]
        parts.append("\n".join(["What it had to show:", *(f"  {claim}" for claim in self.claims)]))
        parts.append("\n".join(["Notes:", *(f"  {note}" for note in self.notes)]))
        return "\n\n".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        claims = [{"claim": c.text, "reached": c.reached, "detail": c.detail} for c in self.claims]
        return {
            "evenrank": __version__,
            "experiment": self.name,
            "facts": dict(self.facts),
            "claims": claims,
            "tables": [table.to_dict() for table in self.tables],
            "figures": [{"name": d.name, "title": d.title, "chart": d.specification} for d in self.drawings],
            "notes": list(self.notes),
        }

    def html(self) -> str:
        """One self-contained page; a content security policy forbids every request and every script but its own."""
        import jinja2
        from markupsafe import Markup

        assets = resources.files(__package__) / "assets"
        own = (assets / "experiment.js").read_text(encoding="utf-8")
        scripts = [base._script(base._bundle()), base._script(base._enclosed(f'"use strict";\n{own}'))]
        environment = jinja2.Environment(
            autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
        )
        template = environment.from_string((assets / "experiment.html.j2").read_text(encoding="utf-8"))
        rows = [[(row, table.cells(row)) for row in table.rows] for table in self.tables]
        return template.render(
            page=self,
            tables=list(zip(self.tables, rows, strict=True)),
            version=__version__,
            css=Markup(base._asset("page.css")),
            policy=base._policy(scripts),
            charts=base._json([drawing.specification for drawing in self.drawings]),
            scripts=scripts,
        )

    def write(self, folder: Path) -> Path:
        """``results.json``, a CSV a table and ``report.html``, which is returned."""
        import json

        from .work import write_tables

        files = {"results.json": json.dumps(self.to_dict(), indent=1, ensure_ascii=False), "report.html": self.html()}
        for table in self.tables:
            files["_".join(table.name.lower().replace(":", "").split()) + ".csv"] = table.csv()
        write_tables(folder, files)
        return folder / "report.html"
