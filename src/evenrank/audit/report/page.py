"""The audit as one HTML page that opens without a network."""

from __future__ import annotations

import re
from typing import Any

import polars as pl

from evenrank import __version__
from evenrank.audit.findings import RANDOM, Figure, Findings, RunAudit
from evenrank.measures import is_bias

from . import charts, data
from ._format import (
    NONE,
    group_label,
    groups,
    has_scores,
    interval,
    number,
    on_common,
    p_value,
    pick,
    poles,
    positive,
)
from .folding import STEPS, folding, style_sheet
from .page_parts import asset, bundle, embedded, enclosed, policy, provenance_section, script
from .reading import explained, glossary, literature
from .summary import summarise

_SCRIPTS = ("core.js", "fit.js", "table.js", "charts.js", "browser.js", "words.js")
_SECTIONS = (
    ("summary", "Summary"),
    ("figures", "Figures"),
    ("plane", "Trade-off"),
    ("differences", "By query"),
    ("depth", "By rank"),
    ("ties", "Ties"),
    ("words", "Words"),
    ("queries", "Rankings"),
    ("reading", "How to read"),
    ("notes", "Notes"),
    ("provenance", "Provenance"),
)
_DEPTHS = (1, 2, 3, 5, 10, 20, 50, 100)
_DIGITS = 4
_MOST_WORDS = 15


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
    page = environment.from_string(asset("page.html.j2")).render(
        **_contents(result),
        css=Markup(style_sheet()),
        policy=policy(scripts),
        provenance=provenance_section(result.provenance),
        blocks=[(name, embedded(value)) for name, value in blocks.items()],
        scripts=scripts,
    )
    return folding(page)


def _charts(result: Findings) -> dict[str, Any]:
    """Specifications, the runs' styles, and the measures that are chosen at first."""
    focus = data.focus(result)
    lean = pick(result, "ARaB", "RaB", "AbsARaB", "NFaiRR") or next(filter(is_bias, result.measures), None)
    compared = result.baseline is not None and sum(not run.reference for run in result.runs) > 1
    kind = f"difference to {result.baseline}" if compared else "value"
    return {
        "specifications": charts.specifications(),
        "folds": STEPS,
        "styles": charts.styles([(run.name, run.reference) for run in result.runs]),
        "focus": result.measures.index(focus) if focus is not None else 0,
        "lean": result.measures.index(lean) if lean is not None else 0,
        "compared": data.compared(result),
        "chosenBy": f"{kind} in {focus}" if focus is not None else "value",
    }


# --- what the template shows -----------------------------------------------------------------------------------------


def _contents(result: Findings) -> dict[str, Any]:
    absent = {name for name in ("provenance", "words") if getattr(result, name) is None}
    absent |= set() if has_scores(result) else {"depth"}
    given = [run.name for run in result.runs if not run.reference]
    names = ", ".join(given) if len(given) <= 4 else f"{', '.join(given[:3])} and {len(given) - 3} more"
    facts = [(_plural(len(result.queries), "query", "queries"), f"{len(result.queries):,}")]
    facts += [(_plural(len(given), "run", "runs"), str(len(given)))]
    facts += [("is the baseline", result.baseline)] if result.baseline is not None else []
    facts += [("lexicon", str(result.settings.get("lexicon", "unknown")))] if has_scores(result) else []
    return {
        "version": __version__,
        "title": f"evenrank audit: {names}",
        "heading": f"Audit of {names}",
        "facts": facts,
        "warnings": [warning.split(":", 1) for warning in result.warnings],
        "sections": [(name, title) for name, title in _SECTIONS if name not in absent],
        "judged": result.judged,
        "baseline": result.baseline,
        "summary": [re.sub(r"(?<=[ (])-(?=\d)", "−", text) for text in summarise(result)],
        "columns": _columns(result.baseline),
        "rows": _rows(result),
        "has_bias": any(map(is_bias, result.measures)),
        "has_values": data.focus(result) is not None,
        "has_scores": has_scores(result),
        "has_magnitude": "magnitude" in result.runs[0].by_depth.columns,
        "sign": positive(poles(result)),
        "depth": _depth(result),
        "words": _words(result),
        "measures": explained(result),
        "glossary": glossary(result),
        "literature": literature(result),
        "notes": [note for note in result.notes if note not in result.warnings],
        "settings": [(name.replace("_", " "), _setting(value)) for name, value in result.settings.items()],
    }


def _words(result: Findings) -> dict[str, Any] | None:
    """For every run the words that weigh most of each group; a run with a list in the browser has its place there."""
    words = result.words
    if words is None:
        return None
    names = groups(result)
    number_of = {name: number_ for number_, name in enumerate(words.names)}
    listed = [run.name for run in result.runs if run.name != RANDOM]
    runs = []
    for run, by_group in words.runs.items():
        rows = [
            {
                "group": group_label(group, names),
                "word": word.word,
                "number": number_of[word.word],
                "cells": [
                    f"{word.occurrences:,.0f}" if word.occurrences >= 9.5 else f"{word.occurrences:.3g}",
                    f"{word.share:.1%}",
                    f"{word.share_of_documents:.1%}",
                    _signed(number(word.contribution, _DIGITS)),
                ],
            }
            for group in names
            for word in by_group[group][:_MOST_WORDS]
        ]
        runs.append({"name": run, "place": listed.index(run) if run in listed else None, "rows": rows})
    return {"measure": words.measure, "depth": words.depth, "documents": f"{words.documents:,}", "runs": runs}


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
        ("95% interval", "Bootstrap interval over queries; sorts by its lower end"),
        ("Tie mean", "Mean over all orders of tied documents"),
        ("Tie range", "Smallest and largest value over all orders of tied documents; sorts by its width"),
    ]
    if baseline is not None:
        columns += [
            ("Difference", f"Mean of the run minus that of {baseline}, on queries where both have a value"),
            ("Holm p", "The t-test's p, corrected over the runs compared"),
            ("b/e/w", "Queries that are better, equal, worse; sorts by those that are better"),
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
    counted = [f"{figure.undefined:,} undefined"] if figure.undefined else []
    counted += [f"{run.absent:,} not in the run, counted 0"] if run.absent and not is_bias(figure.measure) else []
    return [
        _cell(key, key, left=True),
        _cell(run.name, run.name, left=True, tag=tag),
        _cell(_signed(number(figure.mean, _DIGITS)), figure.mean),
        _cell(_signed(interval(figure.ci95, _DIGITS)), low),
        _cell(_signed(number(figure.tie_mean, _DIGITS)), figure.tie_mean),
        _cell(_signed(interval(figure.tie_range, _DIGITS)), width, mark="~" if figure.tie_sensitive else ""),
        *(_compared(result, figure) if result.baseline is not None else []),
        _cell(f"{figure.n:,}", figure.n, tag=", ".join(counted)),
    ]


def _compared(result: Findings, figure: Figure) -> list[dict[str, Any]]:
    compared = figure.vs_baseline
    if compared is None:
        return [_cell("", None)] * 6
    p = compared.p if figure.whole_run else compared.t_p
    counts = NONE
    if compared.better is not None:
        counts = f"{compared.better:,}/{compared.equal:,}/{compared.worse:,}"
    # A share of a figure that can have either sign misleads.
    signed = figure.measure.NAME in ("RaB", "ARaB", "DeltaAPRF")
    relative = NONE if compared.relative is None or signed else f"{compared.relative:+.1%}"
    return [
        _cell(
            _signed(number(compared.difference, _DIGITS)),
            compared.difference,
            tag=_signed(on_common(result, figure)),
        ),
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
