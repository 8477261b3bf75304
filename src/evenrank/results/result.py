"""What every result can do: a table for the terminal, JSON, short views for notebooks, and an HTML report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape

from evenrank._version import __version__
from evenrank.io import Provenance, write_text
from evenrank.io.errors import plain
from evenrank.io.outputs import json_text

from .page import Page

_LONGEST = 400
RIGHT = ' style="text-align:right"'


def page_html(page: Page) -> str:
    """A page's facts and tables, without its charts, style or script."""
    facts = ", ".join(f"{text_html(value)} {text_html(name)}" for name, value in page.facts)
    tables = "".join(
        table_html(table.title, [*map(text_html, table.headings)], [[*map(text_html, row)] for row in table.rows])
        for table in page.tables
    )
    return f"<div><p><b>{text_html(page.title)}</b><br>{facts}</p>{tables}</div>"


def summary_line(name: str, values: Mapping[str, object]) -> str:
    """A result's scalar values on one line, nested ones left out: ``Result(queries=5, mean=0.25)``."""
    shown = [
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value!r}"
        for key, value in values.items()
        if value is None or isinstance(value, str | int | float)
    ]
    line = f"{name}({', '.join(shown)})"
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 2]}…)"


def text_html(text: str) -> str:
    """A text as HTML, without control characters."""
    return escape(plain(text))


def table_html(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]], *, numeric: bool = False) -> str:
    """A table; headings and cells are HTML already. If ``numeric``, all columns but the first are right-aligned."""
    right = RIGHT if numeric else ""
    head = "".join(f"<th{right if place else ''}>{cell}</th>" for place, cell in enumerate(headings))
    body = "".join(
        f"<tr><th>{row[0]}</th>{''.join(f'<td{right}>{cell}</td>' for cell in row[1:])}</tr>" for row in rows
    )
    return f"<table><caption>{text_html(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


class Result:
    """A result that can be shown as a table, as JSON and as a page.

    A subclass has :meth:`page` and :meth:`to_dict`, or overrides what is made of them.
    """

    __slots__ = ()
    provenance: Provenance | None

    def __repr__(self) -> str:
        return summary_line(type(self).__name__, {"name": getattr(self, "name", None)} | self.to_dict())

    def _repr_html_(self) -> str:
        """The view in a notebook."""
        return page_html(self.page())

    def page(self) -> Page:
        """The figures as a page."""
        raise NotImplementedError(f"{type(self).__name__} has no page")

    def to_dict(self) -> dict[str, object]:
        """The figures and their settings as JSON values."""
        raise NotImplementedError(f"{type(self).__name__} has no values")

    def table(self) -> str:
        """All figures, for a terminal."""
        return self.page().text()

    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The figures as JSON, also written to ``path`` if one is given."""
        text = json_text(self.enveloped())
        if path is not None:
            write_text(path, text)
        return text

    def enveloped(self, **beside: object) -> dict[str, object]:
        """The values of :meth:`to_json`, with others ``beside`` them."""
        return envelope({**self.to_dict(), **beside}, self.provenance)

    def html(self) -> str:
        """The report: one HTML page that opens without a network."""
        return replace(self.page(), provenance=self.provenance).html()

    def report(self, path: str | os.PathLike[str]) -> None:
        """Writes the report as one HTML page that opens without a network."""
        write_text(path, self.html())


def envelope(values: Mapping[str, object], provenance: Provenance | None) -> dict[str, object]:
    """The JSON of a result: the version first, and last its provenance if it is known."""
    last = {} if provenance is None else {"provenance": provenance.to_dict()}
    return {"evenrank": __version__, **values, **last}
