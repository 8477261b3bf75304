"""A page of facts, tables, charts and notes: as text, and as one HTML file that opens without a network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenrank.io import Provenance, write_text
from evenrank.io.errors import plain
from evenrank.io.wording import singular

from .folding import asset
from .rendering import render

COLOURS = ["#0072b2", "#c24d00", "#00795a", "#a3478a", "#7d6200", "#5048b8", "#5a6270"]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart: a Vega-Lite specification that contains its data."""

    name: str
    title: str
    specification: dict[str, object]
    hint: str = ""


def specification(chart: Any) -> dict[str, object]:
    """An altair chart as JSON values, without its configuration and addresses: the page has its own."""
    values: dict[str, object] = chart.to_dict()
    for name in ("$schema", "config"):
        values.pop(name, None)
    return values


def curve(name: str, title: str, rows: Sequence[Mapping[str, object]], x: str, hint: str = "") -> Drawing:
    """Lines over ``x`` with intervals, one panel per measure.

    ``rows`` have ``x``, ``measure``, ``value``, ``low`` and ``high``.
    """
    import altair as alt

    base_chart = alt.Chart(alt.Data(values=[dict(row) for row in rows]))
    across = alt.X("x:Q", title=x)
    y = alt.Y("value:Q", title=None, scale=alt.Scale(zero=False))
    tooltip = [alt.Tooltip("x:Q", title=x), alt.Tooltip("value:Q", format=".4f")]
    line = base_chart.mark_line(point=True, color=COLOURS[0]).encode(x=across, y=y, tooltip=tooltip)
    band = base_chart.mark_rule(color=COLOURS[0], opacity=0.5).encode(x=across, y="low:Q", y2="high:Q")
    columns = 2 if len({row["measure"] for row in rows}) % 2 == 0 else 3
    chart = (
        alt.layer(band, line)
        .properties(width=780 // columns, height=220)
        .facet(facet=alt.Facet("measure:N", title=None), columns=columns)
        .resolve_scale(y="independent")
        .resolve_axis(x="independent")
    )
    return Drawing(name, title, specification(chart), hint)


def bars(name: str, title: str, table: pl.DataFrame, y: str, hint: str = "", *, signs: tuple[str, str]) -> Drawing:
    """One bar per query, in the order of ``table``, which has ``query_id`` and ``difference``.

    ``signs``: what a difference above 0 and one below 0 mean, for the legend.
    """
    import altair as alt

    names = [f"above 0: {signs[0]}", f"below 0: {signs[1]}"]
    rows = [
        {"place": i, "query": q, "difference": d, "sign": names[d < 0]} for i, (q, d) in enumerate(table.iter_rows())
    ]
    colour = alt.Color("sign:N", title=None, scale=alt.Scale(domain=names, range=COLOURS[:2]))
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
    return Drawing(name, title, specification(chart), hint)


def histogram(
    name: str,
    title: str,
    rows: Sequence[Mapping[str, object]],
    x: str,
    hint: str = "",
    *,
    expected: float | None = None,
) -> Drawing:
    """A histogram of answers: ``rows`` have ``low``, ``high``, ``count`` and ``share``; a line marks ``expected``."""
    import altair as alt

    data = alt.Chart(alt.Data(values=[dict(row) for row in rows]))
    tips = [alt.Tooltip(f"{key}:Q") for key in ("low", "high", "count")] + [alt.Tooltip("share:Q", format=".4f")]
    y = alt.Y("share:Q", title="share of the answers")
    chart: Any = data.mark_bar(color=COLOURS[0]).encode(
        x=alt.X("low:Q", bin="binned", title=x), x2="high:Q", y=y, tooltip=tips
    )
    if expected is not None:
        line = alt.Chart(alt.Data(values=[{"share": expected}])).mark_rule(color=COLOURS[1], strokeWidth=2)
        chart = alt.layer(chart, line.encode(y=y))
    return Drawing(name, title, specification(chart.properties(width=780, height=300)), hint)


@dataclass(frozen=True, slots=True)
class Table:
    """A table of strings: the first ``left`` columns name the row, the others are figures."""

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    left: int = 1

    def text(self) -> str:
        """The table for a terminal."""
        lines = [list(map(plain, line)) for line in (self.headings, *self.rows)]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.headings))]
        shown = [
            "  ".join(
                cell.ljust(width) if i < self.left else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            )
            for line in lines
        ]
        rule = "─" * len(shown[0])
        body = [rule, shown[0].rstrip(), rule, *(line.rstrip() for line in shown[1:]), rule, *map(plain, self.notes)]
        return "\n".join([self.title, *body])


@dataclass(frozen=True, slots=True)
class Page:
    """The report of a command.

    ``kind`` names the command, ``facts`` are (what, how many) pairs, ``summary`` states the findings in sentences,
    ``late`` are long tables, which come after the charts, ``plane`` is an SVG of effectiveness against bias.
    """

    kind: str
    title: str
    source: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]
    drawings: tuple[Drawing, ...] = ()
    notes: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    provenance: Provenance | None = None
    late: tuple[Table, ...] = ()
    plane: str = ""

    def text(self) -> str:
        """The page without its charts, for a terminal."""
        facts = ", ".join(_fact(name, value) for name, value in self.facts)
        parts = [f"{plain(self.title)}\n{facts}"]
        if self.summary:
            parts.append("\n".join(plain(line) for line in self.summary))
        parts += [*(table.text() for table in (*self.tables, *self.late))]
        if self.notes:
            parts.append("\n".join(["Notes:", *(f"  {plain(note)}" for note in self.notes)]))
        return "\n".join(map(plain, "\n\n".join(parts).split("\n")))

    def html(self) -> str:
        """One self-contained HTML page; a content security policy forbids every request and every other script."""
        return render_charts(asset("tables.html.j2"), self.drawings, self.provenance, page=self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the page atomically."""
        write_text(path, self.html())


def _fact(name: str, value: str) -> str:
    """``200 queries``, ``1 query``, ``mean nDCG@10 0.3979``."""
    if "." in value:
        return f"{name} {value}"
    first, space, rest = name.partition(" ")
    return f"{value} {singular(first) if value == '1' else first}{space}{rest}"


def render_charts(template: str, drawings: Sequence[Drawing], provenance: Provenance | None, **context: object) -> str:
    """A page from a template (see :func:`rendering.render`); chart n is drawn into its element ``chart-n``."""
    data = {"data-charts": [drawing.specification for drawing in drawings]}
    return render(template, scripts=("fit.js", "drawings.js"), data=data, provenance=provenance, **context)
