"""A plain page: facts, tables, charts and notes on one HTML page that opens without a network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from evenrank import __version__
from evenrank.io import write_text
from evenrank.io.written import json_text

from ._format import plain
from .page_parts import asset, bundle, embedded, enclosed, policy, script

COLOURS = ["#0072b2", "#c24d00", "#00795a", "#a3478a", "#7d6200", "#5048b8", "#5a6270"]


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart: a Vega-Lite specification with its data."""

    name: str
    title: str
    specification: dict[str, Any]
    hint: str = ""


def specification(chart: Any) -> dict[str, Any]:
    """An altair chart as JSON values; the page has its own configuration, and names no address."""
    found: dict[str, Any] = chart.to_dict()
    for name in ("$schema", "config"):
        found.pop(name, None)
    return found


def curve(name: str, title: str, rows: Sequence[Mapping[str, Any]], x: str, hint: str = "") -> Drawing:
    """Lines over ``x``, a panel for each ``measure``; rows with ``x``, ``measure``, ``value``, ``low``, ``high``."""
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


def bars(name: str, title: str, table: pl.DataFrame, y: str, hint: str = "") -> Drawing:
    """One bar a query, sorted; ``table`` has ``query_id`` and ``difference``."""
    import altair as alt

    rows = [{"place": i, "query": q, "difference": d} for i, (q, d) in enumerate(table.iter_rows())]
    colour = alt.condition("datum.difference > 0", alt.value(COLOURS[0]), alt.value(COLOURS[1]))
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
    name: str, title: str, rows: Sequence[Mapping[str, Any]], x: str, hint: str = "", *, expected: float | None = None
) -> Drawing:
    """Bars from ``low`` to ``high`` as high as ``share`` (of ``count`` answers); a line at what is ``expected``."""
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
class PlainTable:
    """A table of texts: the first ``left`` columns name the row, the others are figures."""

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
class PlainPage:
    """What a command measured: ``kind`` names the command, ``facts`` are (what, how many)."""

    kind: str
    title: str
    source: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[PlainTable, ...]
    drawings: tuple[Drawing, ...] = ()
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """All of it but the charts, for a terminal."""
        facts = ", ".join(f"{value} {name}" for name, value in self.facts)
        parts = [f"{plain(self.title)}\n{facts}", *(table.text() for table in self.tables)]
        if self.notes:
            parts.append("\n".join(["Notes:", *(f"  {plain(note)}" for note in self.notes)]))
        return "\n\n".join(parts)

    def html(self) -> str:
        """One self-contained page; a content security policy forbids every request and every script but its own."""
        return rendered(asset("plain.html.j2"), self.drawings, page=self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, whole or not at all."""
        write_text(path, self.html())


class PlainResult:
    """A result that can be shown as a table, as JSON and as a page, from its :meth:`page` and :meth:`to_dict`."""

    __slots__ = ()

    def page(self) -> PlainPage:
        """The figures as a page."""
        raise AssertionError(f"{type(self).__name__} has no page")

    def to_dict(self) -> dict[str, Any]:
        """The figures and their settings as JSON values."""
        raise AssertionError(f"{type(self).__name__} has no values")

    def table(self) -> str:
        """All figures for a terminal."""
        return self.page().text()

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The figures as JSON; also written to ``path`` if one is given."""
        text = json_text({"evenrank": __version__, **self.to_dict()})
        if path is not None:
            write_text(path, text)
        return text

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes one HTML page that opens offline."""
        self.page().write(path)


def rendered(template: str, drawings: Sequence[Drawing], **context: Any) -> str:
    """A page from its template, which gets ``css``, ``policy``, ``charts``, ``scripts`` and ``version`` too.

    The script draws the n-th drawing into the element ``chart-n``. Every text is escaped.
    """
    import jinja2
    from markupsafe import Markup

    own = asset("drawings.js")
    scripts = [script(bundle()), script(enclosed(f'"use strict";\n{own}'))]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(template).render(
        **context,
        version=__version__,
        css=Markup(asset("page.css")),
        policy=policy(scripts),
        charts=embedded([drawing.specification for drawing in drawings]),
        scripts=scripts,
    )
