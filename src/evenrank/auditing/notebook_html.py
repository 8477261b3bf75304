"""Short views of an audit, for the interpreter and for notebooks."""

from __future__ import annotations

from evenrank.io.errors import plain
from evenrank.io.wording import counted
from evenrank.reports.format import interval, number, true_minus
from evenrank.reports.notebook import table_html, text_html
from evenrank.reports.page import Table

from .findings import Figure, Findings, RunAudit
from .phrases import labelled
from .plane import plane_svg
from .summary import UNKNOWN
from .text import known_share
from .unknown_labels import only_bounds

_DIGITS = 4
_REFERENCE = "†"


def audit_lines(result: Findings) -> str:
    """An audit's means as a small table, one line per run."""
    names = list(result.runs[0].figures)
    rows = tuple((_name(run), *(number(run.figures[name].mean, _DIGITS) for name in names)) for run in result.runs)
    notes = (f"{_REFERENCE} reference ranking of the same candidates",)
    table = Table(_title(result, type(result).__name__), ("", *names), rows, notes).text()
    return table if result.judged else f"{UNKNOWN}: there are no qrels.\n{table}"


def audit_html(result: Findings) -> str:
    """An audit's means and intervals as an HTML table, its legend, and the plane of effectiveness against bias."""
    names = list(result.runs[0].figures)
    rows = [[text_html(_name(run)), *(_cell(run.figures[name]) for name in names)] for run in result.runs]
    unknown = "" if result.judged else f"<p>{text_html(UNKNOWN)}: there are no qrels.</p>"
    table = table_html(_title(result, "Audit"), ["", *map(text_html, names)], rows, numeric=True)
    bounds = " Without a value: bounds over every way to label the unknown documents." if only_bounds(result) else ""
    known = " Known: share of the documents looked at that have a label." if labelled(result) else ""
    foot = (
        f"<p><small>Mean and 95% interval.{bounds}{known} {_REFERENCE} reference ranking of the same candidates."
        "</small></p>"
    )
    return f"<div>{unknown}{table}{foot}{plane_svg(result)}</div>"


def _title(result: Findings, heading: str) -> str:
    baseline = "no baseline" if result.baseline is None else f"baseline {result.baseline}"
    queries = counted(len(result.queries), "query")
    return plain(f"{heading}: {counted(len(result.given), 'run')}, {queries}, {baseline}")


def _name(run: RunAudit) -> str:
    return f"{run.name} {_REFERENCE}" if run.reference else run.name


def _cell(figure: Figure) -> str:
    below = [interval(figure.ci95, _DIGITS)]
    if figure.mean is None and figure.bounds is not None:
        below = [f"bounds {interval(figure.bounds, _DIGITS)}"]
    if figure.known is not None:
        below.append(f"known {known_share(*figure.known)}")
    return true_minus(f"{number(figure.mean, _DIGITS)}<br><small>{'<br>'.join(below)}</small>")
