"""Short views of an audit, for the interpreter and for notebooks."""

from __future__ import annotations

from evenrank.io.errors import plain
from evenrank.io.wording import counted
from evenrank.reports.format import NONE, equation, interval, number, true_minus
from evenrank.reports.notebook import table_html, text_html
from evenrank.reports.page import Table

from .excess import Excess
from .findings import Figure, Findings, RunAudit
from .origin_words import with_origins
from .phrases import labelled
from .plane import plane_svg
from .stage_steps import signed, signed_interval
from .stages_section import StageRow, stage_rows
from .summary import UNKNOWN
from .text import known_share
from .unknown_labels import only_bounds

_DIGITS = 4
_REFERENCE = "†"
_TIES = "~"


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
    return f"<div>{unknown}{table}{foot}{plane_svg(result)}{_origins(result)}{_stages(result)}</div>"


def _origins(result: Findings) -> str:
    """What each run's order adds to its candidates, and what it has beyond relevance; "" where that is not known."""
    names = list(map(str, with_origins(result)))
    if not names:
        return ""
    rows = [[text_html(run.name), *(_added(run.figures[name]) for name in names)] for run in result.given]
    beyond = any(run.figures[name].beyond_relevance is not None for run in result.given for name in names)
    tied = any(of.tie_sensitive for run in result.given for name in names for of in _differences(run.figures[name]))
    more = " Beyond relevance: run minus a perfect ranking of the same candidates." if beyond else ""
    table = table_html("What the order adds to its candidates", ["", *map(text_html, names)], rows, numeric=True)
    return (
        f"{table}<p><small>Run minus its own candidates in random order, with 95% interval.{more} p of paired t-tests,"
        f" uncorrected.{_of_ties(tied)}</small></p>"
    )


def _of_ties(tied: bool) -> str:
    """The legend of the mark, if the table has it."""
    return f" {_TIES} the order of tied documents decides." if tied else ""


def _differences(figure: Figure) -> list[Excess]:
    return [of for of in (figure.added, figure.beyond_relevance) if of is not None]


def _added(figure: Figure) -> str:
    if figure.added is None:
        return NONE
    below = [_with_p(figure.added)]
    if figure.beyond_relevance is not None:
        beyond = figure.beyond_relevance
        mark = _TIES if beyond.tie_sensitive else ""
        below.append(f"beyond relevance {signed(beyond.mean)}{mark}<br>{_with_p(beyond)}")
    mark = _TIES if figure.added.tie_sensitive else ""
    return true_minus(f"{signed(figure.added.mean)}{mark}<br><small>{'<br>'.join(below)}</small>")


def _with_p(of: Excess) -> str:
    return f"{signed_interval(of.ci95)}, {text_html(equation('p', of.t_p))}"


def _stages(result: Findings) -> str:
    """What each step of a pipeline adds, and the sum after it, as a table; "" without stages."""
    if result.stages is None or not result.stages.measures:
        return ""
    steps = {key: stage_rows(of) for key, of in result.stages.measures.items()}
    longest = max(steps.values(), key=len)
    rows = []
    for place, step in enumerate(longest):
        found = [of[place - len(longest)] if place >= len(longest) - len(of) else None for of in steps.values()]
        rows.append([text_html(step.name), *(NONE if one is None else _stage(one) for one in found)])
    table = table_html("What each stage adds", ["", *map(text_html, steps)], rows, numeric=True)
    tied = any(row.tie_sensitive for of in steps.values() for row in of)
    return f"{table}<p><small>Added, with 95% interval, and the sum so far.{_of_ties(tied)}</small></p>"


def _stage(row: StageRow) -> str:
    if row.added is None:
        return true_minus(f"{number(row.total, _DIGITS)}<br><small>{interval(row.ci95, _DIGITS)}</small>")
    below = f"{signed_interval(row.ci95)}<br>sum {number(row.total, _DIGITS)}"
    mark = _TIES if row.tie_sensitive else ""
    return true_minus(f"{signed(row.added)}{mark}<br><small>{below}</small>")


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
