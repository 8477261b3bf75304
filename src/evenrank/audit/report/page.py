"""The audit as one HTML page that opens without a network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from evenrank import __version__
from evenrank.audit.findings import Figure, Findings, RunAudit
from evenrank.measures import is_bias

from . import charts, data
from ._format import NONE, interval, number, p_value, pick, poles, positive
from .page_parts import asset, bundle, embedded, enclosed, policy, script
from .reading import explained, glossary, literature
from .summary import UNKNOWN, summarise

if TYPE_CHECKING:
    pass

_SCRIPTS = ("core.js", "table.js", "charts.js", "browser.js")
_SECTIONS = (
    ("summary", "Summary"),
    ("figures", "Figures"),
    ("plane", "Trade-off"),
    ("differences", "By query"),
    ("depth", "By rank"),
    ("ties", "Ties"),
    ("queries", "Rankings"),
    ("reading", "How to read"),
    ("notes", "Notes"),
)
_DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100)
_DIGITS = 4


def render_page(result: Findings) -> str:
    """One self-contained HTML page: figures, charts, and the rankings of single queries with their words marked.

    It loads nothing: a content security policy forbids every request and every script but its own. Passages come from
    the audit's collection. The same audit gives the same page.
    """
    import jinja2
    from markupsafe import Markup

    shown = data.most_telling(result, data.QUERY_CAP)
    blocks = {
        "data-figures": data.figures(result),
        "data-values": data.values(result, shown),
        "data-queries": data.browser(result, shown),
        "data-charts": _charts(result),
    }
    own = "\n".join(asset(name) for name in _SCRIPTS)
    scripts = [script(bundle()), script(enclosed(f'"use strict";\n{own}'))]
    environment = jinja2.Environment(
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.from_string(asset("page.html.j2")).render(
        **_contents(result),
        css=Markup(asset("page.css")),
        policy=policy(scripts),
        blocks=[(name, embedded(value)) for name, value in blocks.items()],
        scripts=scripts,
    )


def _charts(result: Findings) -> dict[str, Any]:
    """Specifications, the runs' styles, and the measures that are chosen at first."""
    focus = data.focus(result)
    lean = pick(result, "ARaB", "RaB", "AbsARaB", "NFaiRR") or next(filter(is_bias, result.measures), None)
    compared = result.baseline is not None and sum(not run.reference for run in result.runs) > 1
    kind = f"difference to {result.baseline}" if compared else "value"
    return {
        "specifications": charts.specifications(),
        "styles": charts.styles([(run.name, run.reference) for run in result.runs]),
        "focus": result.measures.index(focus) if focus is not None else 0,
        "lean": result.measures.index(lean) if lean is not None else 0,
        "chosenBy": f"{kind} in {focus}" if focus is not None else "value",
    }


# --- what the template shows -----------------------------------------------------------------------------------------


def _contents(result: Findings) -> dict[str, Any]:
    given = [run.name for run in result.runs if not run.reference]
    names = ", ".join(given) if len(given) <= 4 else f"{', '.join(given[:3])} and {len(given) - 3} more"
    facts = [(_plural(len(result.queries), "query", "queries"), f"{len(result.queries):,}")]
    facts += [(_plural(len(given), "run", "runs"), str(len(given)))]
    facts += [("is the baseline", result.baseline)] if result.baseline is not None else []
    facts += [("lexicon", str(result.settings.get("lexicon", "unknown")))]
    return {
        "version": __version__,
        "title": f"evenrank audit: {names}",
        "heading": f"Audit of {names}",
        "facts": facts,
        "sections": _SECTIONS,
        "judged": result.judged,
        "baseline": result.baseline,
        "summary": [re.sub(r"(?<=[ (])-(?=\d)", "−", text) for text in summarise(result)],
        "columns": _columns(result.baseline),
        "rows": _rows(result),
        "has_bias": any(map(is_bias, result.measures)),
        "has_values": data.focus(result) is not None,
        "has_magnitude": "magnitude" in result.runs[0].by_depth.columns,
        "sign": positive(poles(result)),
        "depth": _depth(result),
        "measures": explained(result),
        "glossary": glossary(result),
        "literature": literature(result),
        "notes": [note for note in result.notes if not note.startswith(UNKNOWN)],
        "settings": [(name.replace("_", " "), _setting(value)) for name, value in result.settings.items()],
    }


def _plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


def _setting(value: Any) -> str:
    if value is None:
        return NONE
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _columns(baseline: str | None) -> list[dict[str, Any]]:
    columns = [
        ("Measure", "Utility first, then bias"),
        ("Run", "The run or reference ranking"),
        ("Mean", "Mean over queries, or the figure of the whole run"),
        ("95 % interval", "Bootstrap interval over queries; sorts by its lower end"),
        ("Tie mean", "Mean over all orders of tied documents"),
        ("Tie range", "Smallest and largest value over all orders of tied documents; sorts by its width"),
    ]
    if baseline is not None:
        columns += [
            ("Difference", f"Mean of the run minus that of {baseline}, on queries where both have a value"),
            ("Holm p", "The t-test's p, corrected over the runs compared"),
            ("b / e / w", "Queries that are better, equal, worse; sorts by those that are better"),
            ("t p", "Paired t-test (permutation test for a measure of the whole run), not corrected"),
            ("Wilcoxon p", "Wilcoxon signed-rank test, not corrected"),
            ("Relative", f"Difference as a share of the mean of {baseline}"),
        ]
    columns.append(("Queries", "Queries that have a value"))
    return [{"name": name, "title": title, "left": name in ("Measure", "Run")} for name, title in columns]


def _rows(result: Findings) -> list[dict[str, Any]]:
    rows = []
    for measure in result.measures:
        for place, run in enumerate(result.runs):
            kind = " ".join(["first"] * (place == 0) + ["reference"] * run.reference)
            rows.append({"kind": kind, "cells": _cells(result, run, str(measure))})
    return rows


def _cells(result: Findings, run: RunAudit, key: str) -> list[dict[str, Any]]:
    figure = run.figures[key]
    tag = "reference" if run.reference else "baseline" if run.name == result.baseline else ""
    low = figure.ci95[0] if figure.ci95 is not None else None
    width = figure.tie_range[1] - figure.tie_range[0] if figure.tie_range is not None else None
    undefined = f"{figure.undefined:,} undefined" if figure.undefined else ""
    return [
        _cell(key, key, left=True),
        _cell(run.name, run.name, left=True, tag=tag),
        _cell(_signed(number(figure.mean, _DIGITS)), figure.mean),
        _cell(_signed(interval(figure.ci95, _DIGITS)), low),
        _cell(_signed(number(figure.tie_mean, _DIGITS)), figure.tie_mean),
        _cell(_signed(interval(figure.tie_range, _DIGITS)), width, mark="~" if figure.tie_sensitive else ""),
        *(_compared(figure) if result.baseline is not None else []),
        _cell(f"{figure.n:,}", figure.n, tag=undefined),
    ]


def _compared(figure: Figure) -> list[dict[str, Any]]:
    compared = figure.vs_baseline
    if compared is None:
        return [_cell("", None)] * 6
    p = compared.p if figure.whole_run else compared.t_p
    counts = NONE
    if compared.better is not None:
        counts = f"{compared.better:,} / {compared.equal:,} / {compared.worse:,}"
    relative = NONE if compared.relative is None else f"{compared.relative:+.1%}"
    return [
        _cell(_signed(number(compared.difference, _DIGITS)), compared.difference),
        _cell(p_value(compared.holm_p), compared.holm_p, mark="*" if compared.significant else ""),
        _cell(counts, compared.better),
        _cell(p_value(p), p),
        _cell(p_value(compared.wilcoxon_p), compared.wilcoxon_p),
        _cell(_signed(relative), compared.relative),
    ]


def _cell(text: str, sort: str | float | None, *, left: bool = False, mark: str = "", tag: str = "") -> dict[str, Any]:
    return {"text": text, "sort": "" if sort is None else sort, "left": left, "mark": mark, "tag": tag}


def _signed(text: str) -> str:
    """Numbers with a true minus sign."""
    return text.replace("-", "−").replace("e−", "e-")


def _depth(result: Findings) -> list[dict[str, Any]]:
    """The curves by rank depth as tables, at some ranks."""
    deepest = max(run.by_depth.height for run in result.runs)
    ranks = [rank for rank in _DEPTHS if rank <= deepest]
    parts = []
    for name, title in (("neutrality", "Neutrality"), ("magnitude", "Lean")):
        if name not in result.runs[0].by_depth.columns:
            continue
        rows = []
        for run in result.runs:
            by_rank = dict(run.by_depth.select("rank", pl.col(name).fill_nan(None)).iter_rows())
            rows.append((run.name, [_signed(number(by_rank.get(rank))) for rank in ranks]))
        parts.append({"name": title, "ranks": ranks, "rows": rows})
    return parts
