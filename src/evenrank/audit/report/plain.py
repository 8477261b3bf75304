"""A plain page: facts, tables, charts and notes on one HTML page that opens without a network."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import polars as pl

from evenrank import __version__
from evenrank._wording import singular
from evenrank.io import Provenance, write_text
from evenrank.io.errors import plain
from evenrank.io.written import json_text

from .folding import folding, style_sheet
from .page_parts import asset, bundle, embedded, enclosed, policy, provenance_section, script

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


def bars(name: str, title: str, table: pl.DataFrame, y: str, hint: str = "", *, signs: tuple[str, str]) -> Drawing:
    """One bar a query, sorted; ``table`` has ``query_id`` and ``difference``.

    ``signs`` says what a difference above 0 and one below 0 mean; the legend names the colours by it.
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
    """What a command measured: ``kind`` names the command, ``facts`` are (what, how many), ``summary`` says what was
    found, in sentences."""

    kind: str
    title: str
    source: str
    facts: tuple[tuple[str, str], ...]
    tables: tuple[PlainTable, ...]
    drawings: tuple[Drawing, ...] = ()
    notes: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    provenance: Provenance | None = None

    def text(self) -> str:
        """All of it but the charts, for a terminal."""
        facts = ", ".join(_fact(name, value) for name, value in self.facts)
        parts = [f"{plain(self.title)}\n{facts}"]
        if self.summary:
            parts.append("\n".join(plain(line) for line in self.summary))
        parts += [*(table.text() for table in self.tables)]
        if self.notes:
            parts.append("\n".join(["Notes:", *(f"  {plain(note)}" for note in self.notes)]))
        return "\n".join(map(plain, "\n\n".join(parts).split("\n")))

    def html(self) -> str:
        """One self-contained page; a content security policy forbids every request and every script but its own."""
        return rendered(asset("plain.html.j2"), self.drawings, self.provenance, page=self)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the page, whole or not at all."""
        write_text(path, self.html())


def _fact(name: str, value: str) -> str:
    """``200 queries``, ``1 query``, ``mean nDCG@10 0.3979``."""
    if "." in value:
        return f"{name} {value}"
    first, space, rest = name.partition(" ")
    return f"{value} {singular(first) if value == '1' else first}{space}{rest}"


class PlainResult:
    """A result that can be shown as a table, as JSON and as a page, from its :meth:`page` and :meth:`to_dict`."""

    __slots__ = ()
    provenance: Provenance | None

    def __repr__(self) -> str:
        from .notebook import values_line

        return values_line(type(self).__name__, {"name": getattr(self, "name", None)} | self.to_dict())

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from .notebook import page_html

        return page_html(self.page())

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
        text = json_text({"evenrank": __version__, **self.to_dict(), **made(self.provenance)})
        if path is not None:
            write_text(path, text)
        return text

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes one HTML page that opens offline."""
        replace(self.page(), provenance=self.provenance).write(path)


def made(provenance: Provenance | None) -> dict[str, Any]:
    """How a result was made, as an entry of its JSON; none where nobody knows."""
    return {} if provenance is None else {"provenance": provenance.to_dict()}


def rendered(template: str, drawings: Sequence[Drawing], provenance: Provenance | None, **context: Any) -> str:
    """A page from its template, which gets ``css``, ``policy``, ``charts``, ``scripts``, ``version`` and
    ``provenance`` (a section, or nothing) too.

    The script draws the n-th drawing into the element ``chart-n``. Every text is escaped.
    """
    import jinja2
    from markupsafe import Markup

    own = asset("fit.js") + asset("drawings.js")
    scripts = [script(bundle()), script(enclosed(f'"use strict";\n{own}'))]
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    page = environment.from_string(template).render(
        **context,
        version=__version__,
        css=Markup(style_sheet()),
        policy=policy(scripts),
        charts=embedded([drawing.specification for drawing in drawings]),
        scripts=scripts,
        provenance=provenance_section(provenance),
    )
    return folding(page)
