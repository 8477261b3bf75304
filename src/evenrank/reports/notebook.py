"""Short views of pages and values, for the interpreter and for notebooks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING

from evenrank.io.errors import plain

if TYPE_CHECKING:
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
