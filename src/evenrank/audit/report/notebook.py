"""Results in a few lines, as an interpreter shows them, and as tables for a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from evenrank._wording import counted
from evenrank.audit.findings import Figure, Findings, RunAudit
from evenrank.io.errors import plain

from ._format import interval, number
from .plain import PlainPage, PlainTable
from .summary import UNKNOWN

_DIGITS = 4
_REFERENCE = "†"
_LONGEST = 400


def audit_lines(result: Findings) -> str:
    """An audit's means, a line a run."""
    figures = list(result.runs[0].figures)
    rows = tuple((_name(run), *(number(run.figures[name].mean, _DIGITS) for name in figures)) for run in result.runs)
    notes = (f"{_REFERENCE} reference ranking of the same candidates",)
    table = PlainTable(_title(result), ("", *figures), rows, notes).text()
    return table if result.judged else f"{UNKNOWN}: there are no qrels.\n{table}"


def audit_html(result: Findings) -> str:
    """An audit's means and intervals as an HTML table, without style or script."""
    figures = list(result.runs[0].figures)
    rows = [[_text(_name(run)), *(_cell(run.figures[name]) for name in figures)] for run in result.runs]
    unknown = "" if result.judged else f"<p>{_text(UNKNOWN)}: there are no qrels.</p>"
    foot = f"<p><small>Mean and 95% interval. {_REFERENCE} reference ranking of the same candidates.</small></p>"
    return f"<div>{unknown}{_table(_title(result), ['', *map(_text, figures)], rows)}{foot}</div>"


def page_html(page: PlainPage) -> str:
    """A page's facts and tables, without its charts, style or script."""
    facts = ", ".join(f"{_text(value)} {_text(name)}" for name, value in page.facts)
    tables = "".join(
        _table(table.title, [*map(_text, table.headings)], [[*map(_text, row)] for row in table.rows])
        for table in page.tables
    )
    return f"<div><p><b>{_text(page.title)}</b><br>{facts}</p>{tables}</div>"


def values_line(name: str, values: Mapping[str, Any]) -> str:
    """A result's plain values, what is made of others left out: ``Result(queries=5, mean=0.25)``."""
    shown = [
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value!r}"
        for key, value in values.items()
        if value is None or isinstance(value, str | int | float)
    ]
    line = f"{name}({', '.join(shown)})"
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 2]}…)"


def _title(result: Findings) -> str:
    given = sum(not run.reference for run in result.runs)
    baseline = "no baseline" if result.baseline is None else f"baseline {result.baseline}"
    queries = counted(len(result.queries), "query")
    return plain(f"{type(result).__name__}: {counted(given, 'run')}, {queries}, {baseline}")


def _name(run: RunAudit) -> str:
    return f"{run.name} {_REFERENCE}" if run.reference else run.name


def _cell(figure: Figure) -> str:
    return f"{number(figure.mean, _DIGITS)}<br><small>{interval(figure.ci95, _DIGITS)}</small>"


def _text(text: str) -> str:
    return escape(plain(text))


def _table(caption: str, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML already."""
    head = "".join(f"<th>{cell}</th>" for cell in headings)
    body = "".join(f"<tr><th>{row[0]}</th>{''.join(f'<td>{cell}</td>' for cell in row[1:])}</tr>" for row in rows)
    return f"<table><caption>{_text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
