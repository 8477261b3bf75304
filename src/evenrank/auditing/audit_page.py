"""The audit as one HTML page that opens without a network."""

from __future__ import annotations

import re

import polars as pl

from evenrank.measures import is_bias
from evenrank.reports.folding import STEPS, asset
from evenrank.reports.format import NONE, number, true_minus
from evenrank.reports.rendering import render

from . import charts
from . import page_data as data
from .figures_table import figures_table
from .findings import RELEVANCE_FIRST, Findings
from .origins import origins_chart, origins_section
from .phrases import group_label, groups, has_scores, labelled, poles, positive, signed_measures
from .reading import explanations, glossary, literature
from .stages_section import stages_section
from .summary import summarise
from .unknown_labels import about_depth, about_queries, labels_section, only_bounds, plane_bias

_SCRIPTS = ("core.js", "fit.js", "table.js", "charts.js", "browser.js", "words.js", "origins.js")
_SECTIONS = (
    ("summary", "Summary"),
    ("figures", "Figures"),
    ("labels", "Labels"),
    ("plane", "Trade-off"),
    ("origins", "Origin"),
    ("stages", "Stages"),
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
    """One self-contained HTML page: figures, charts, and single queries' rankings with the group words marked.

    It loads nothing: a content security policy forbids every request and every other script. Passages are read from
    the audit's collection. The same audit renders to the same bytes.
    """
    shown = data.most_telling(result, data.QUERY_CAP)
    return render(
        asset("audit.html.j2"),
        scripts=_SCRIPTS,
        data={
            "data-figures": data.figures(result),
            "data-values": data.values(result, shown),
            "data-queries": data.browser(result, shown),
            "data-charts": _charts(result),
        },
        provenance=result.provenance,
        **_contents(result),
    )


def _charts(result: Findings) -> dict[str, object]:
    """Specifications, the runs' styles, and the measures that are selected at first."""
    focus = data.focus(result)
    lean = plane_bias(result)
    compared = result.baseline is not None and len(result.given) > 1
    kind = f"difference from {result.baseline}" if compared else "value"
    return {
        "specifications": charts.specifications(),
        "folds": STEPS,
        "styles": charts.styles([(run.name, run.reference) for run in result.runs]),
        "focus": result.measures.index(focus) if focus is not None else 0,
        "lean": result.measures.index(lean) if lean is not None else 0,
        "compared": data.compared(result),
        "onlyBounds": only_bounds(result),
        "origins": origins_chart(result),
        "chosenBy": f"{kind} in {focus}" if focus is not None else None,
    }


# --- contents of the template ----------------------------------------------------------------------------------------


def _contents(result: Findings) -> dict[str, object]:
    absent = {name for name in ("provenance", "words") if getattr(result, name) is None}
    absent |= set() if _has_curves(result) else {"depth"}
    absent |= set() if labelled(result) else {"labels"}
    origins, stages = origins_section(result), stages_section(result)
    absent |= {name for name, section in (("origins", origins), ("stages", stages)) if section is None}
    given = [run.name for run in result.given]
    names = ", ".join(given) if len(given) <= 4 else f"{', '.join(given[:3])} and {len(given) - 3} more"
    facts = [(_plural(len(result.queries), "query", "queries"), f"{len(result.queries):,}")]
    facts += [(_plural(len(given), "run", "runs"), str(len(given)))]
    facts += [("is the baseline", result.baseline)] if result.baseline is not None else []
    kind = "labels" if labelled(result) else "lexicon"
    facts += [(kind, str(result.settings.get(kind, "unknown")))] if has_scores(result) else []
    columns, rows = figures_table(result)
    return {
        "title": f"evenrank audit: {names}",
        "heading": f"Audit of {names}",
        "facts": facts,
        "warnings": [warning.split(":", 1) for warning in result.warnings],
        "sections": [(name, title) for name, title in _SECTIONS if name not in absent],
        "judged": result.judged,
        "baseline": result.baseline,
        "summary": [re.sub(r"(?<=[ (\[])-(?=\d)", "−", text) for text in summarise(result)],
        "columns": columns,
        "rows": rows,
        "counts_queries": any(column["name"] == "b/e/w" for column in columns),
        "signed": ", ".join(signed_measures(result)),
        "labels": labels_section(result),
        "origins": origins,
        "stages": stages,
        "relevance_first": any(run.name == RELEVANCE_FIRST for run in result.runs),
        "unknown": {
            "only_bounds": only_bounds(result),
            "queries": about_queries(result),
            "depth": about_depth(result),
        },
        "has_bias": any(map(is_bias, result.measures)),
        "has_values": data.focus(result) is not None,
        "has_curves": _has_curves(result),
        "magnitude": _magnitude(result),
        "has_shares": bool(data.share_fields(result)),
        "sign": positive(poles(result)),
        "depth": _depth(result),
        "words": _words(result),
        "measures": explanations(result),
        "glossary": glossary(result),
        "literature": literature(result),
        "notes": [note for note in result.notes if note not in result.warnings],
        "settings": [(name.replace("_", " "), _setting(value)) for name, value in result.settings.items()],
    }


def _words(result: Findings) -> dict[str, object] | None:
    """Each run's words with the largest shares by group; ``place`` is the run's number in the query browser."""
    words = result.words
    if words is None:
        return None
    names = groups(result)
    number_of = {name: number_ for number_, name in enumerate(words.names)}
    listed = data.listed(result)
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
                    true_minus(number(word.contribution, _DIGITS)),
                ],
            }
            for group in names
            for word in by_group[group][:_MOST_WORDS]
        ]
        runs.append({"name": run, "place": listed.index(run) if run in listed else None, "rows": rows})
    return {"measure": words.measure, "depth": words.depth, "documents": f"{words.documents:,}", "runs": runs}


def _plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many


def _setting(value: object) -> str:
    if value is None:
        return NONE
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _has_curves(result: Findings) -> bool:
    """Whether anything is known by rank; where only bounds are, no curve is."""
    return has_scores(result) and not only_bounds(result)


def _magnitude(result: Findings) -> str:
    """What a lean by rank is a mean of; "" without poles."""
    if "magnitude" not in result.runs[0].by_depth.columns:
        return ""
    return "weight" if labelled(result) else "magnitude tf"


def _depth(result: Findings) -> list[dict[str, object]]:
    """The curves by rank depth as tables, at selected ranks."""
    deepest = max(run.by_depth.height for run in result.runs)
    ranks = [rank for rank in _DEPTHS if rank <= deepest]
    parts: list[dict[str, object]] = []
    shares = [(str(group["field"]), f"Share of {group['label']}") for group in data.share_fields(result)]
    for name, title in (("neutrality", "Neutrality"), ("magnitude", "Lean"), *shares):
        if name not in result.runs[0].by_depth.columns:
            continue
        rows = []
        for run in result.runs:
            by_rank = dict(run.by_depth.select("rank", pl.col(name).fill_nan(None)).iter_rows())
            rows.append((run.name, [true_minus(number(by_rank.get(rank))) for rank in ranks]))
        parts.append({"name": title, "ranks": ranks, "rows": rows})
    return parts
