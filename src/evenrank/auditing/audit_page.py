"""The audit as one HTML page that opens without a network."""

from __future__ import annotations

import re

import polars as pl

from evenrank.measures import is_bias, resolve
from evenrank.reports.folding import STEPS, asset
from evenrank.reports.format import NONE, interval, number, p_value, true_minus
from evenrank.reports.rendering import render

from . import charts
from . import page_data as data
from .findings import RANDOM, Figure, Findings, RunAudit
from .phrases import group_label, groups, has_scores, lean_measure, on_common, poles, positive, signed_measures
from .reading import explanations, glossary, literature
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
    lean = lean_measure(result)
    compared = result.baseline is not None and len(result.given) > 1
    kind = f"difference from {result.baseline}" if compared else "value"
    return {
        "specifications": charts.specifications(),
        "folds": STEPS,
        "styles": charts.styles([(run.name, run.reference) for run in result.runs]),
        "focus": result.measures.index(focus) if focus is not None else 0,
        "lean": result.measures.index(lean) if lean is not None else 0,
        "compared": data.compared(result),
        "chosenBy": f"{kind} in {focus}" if focus is not None else "value",
    }


# --- contents of the template ----------------------------------------------------------------------------------------


def _contents(result: Findings) -> dict[str, object]:
    absent = {name for name in ("provenance", "words") if getattr(result, name) is None}
    absent |= set() if has_scores(result) else {"depth"}
    given = [run.name for run in result.given]
    names = ", ".join(given) if len(given) <= 4 else f"{', '.join(given[:3])} and {len(given) - 3} more"
    facts = [(_plural(len(result.queries), "query", "queries"), f"{len(result.queries):,}")]
    facts += [(_plural(len(given), "run", "runs"), str(len(given)))]
    facts += [("is the baseline", result.baseline)] if result.baseline is not None else []
    facts += [("lexicon", str(result.settings.get("lexicon", "unknown")))] if has_scores(result) else []
    return {
        "title": f"evenrank audit: {names}",
        "heading": f"Audit of {names}",
        "facts": facts,
        "warnings": [warning.split(":", 1) for warning in result.warnings],
        "sections": [(name, title) for name, title in _SECTIONS if name not in absent],
        "judged": result.judged,
        "baseline": result.baseline,
        "summary": [re.sub(r"(?<=[ (])-(?=\d)", "−", text) for text in summarise(result)],
        "columns": _columns(result),
        "rows": _rows(result),
        "signed": ", ".join(signed_measures(result)),
        "has_bias": any(map(is_bias, result.measures)),
        "has_values": data.focus(result) is not None,
        "has_scores": has_scores(result),
        "has_magnitude": "magnitude" in result.runs[0].by_depth.columns,
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


def _columns(result: Findings) -> list[dict[str, object]]:
    baseline, signed = result.baseline, signed_measures(result)
    nearer = f" ({', '.join(signed)}: nearer to 0 is better)" if signed else ""
    of = " of the signed difference" if signed else ""
    columns = [
        ("Measure", "Effectiveness first, then bias"),
        ("Run", "The run or reference ranking"),
        ("Mean", "Mean over queries, or the value of the whole run"),
        ("95% interval", "Bootstrap interval over queries; sorts by its lower end"),
        ("Tie mean", "Mean over all orders of tied documents"),
        ("Tie range", "Smallest and largest value over all orders of tied documents; sorts by its width"),
    ]
    if baseline is not None:
        columns += [
            ("Difference", f"Mean of the run minus that of {baseline}, over queries where both have a value"),
            ("Holm p", "The t-test's p, corrected over the runs compared"),
            ("b/e/w", f"Queries better/equal/worse than {baseline}{nearer}; sorts by the better ones"),
            ("t p", f"Paired t-test{of} (permutation test for a measure of the whole run), uncorrected"),
            ("Wilcoxon p", f"Wilcoxon signed-rank test{of}, uncorrected"),
            ("Relative", f"Difference as a share of the mean of {baseline}"),
        ]
    columns.append(("Queries", "Number of queries with a value"))
    return [{"name": name, "title": title, "left": name in ("Measure", "Run")} for name, title in columns]


def _rows(result: Findings) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for measure in result.measures:
        for place, run in enumerate(result.runs):
            kind = " ".join(["first"] * (place == 0) + ["reference"] * run.reference)
            rows.append({"kind": kind, "cells": _cells(result, run, str(measure))})
    return rows


def _cells(result: Findings, run: RunAudit, key: str) -> list[dict[str, object]]:
    figure = run.figures[key]
    tag = "reference" if run.reference else "baseline" if run.name == result.baseline else ""
    low = figure.ci95[0] if figure.ci95 is not None else None
    width = figure.tie_range[1] - figure.tie_range[0] if figure.tie_range is not None else None
    counted = [f"{figure.undefined:,} undefined"] if figure.undefined else []
    counted += [f"{run.absent:,} not in the run, counted as 0"] if run.absent and not is_bias(figure.measure) else []
    return [
        _cell(key, key, left=True),
        _cell(run.name, run.name, left=True, tag=tag),
        _cell(true_minus(number(figure.mean, _DIGITS)), figure.mean),
        _cell(true_minus(interval(figure.ci95, _DIGITS)), low),
        _cell(true_minus(number(figure.tie_mean, _DIGITS)), figure.tie_mean),
        _cell(true_minus(interval(figure.tie_range, _DIGITS)), width, mark="~" if figure.tie_sensitive else ""),
        *(_compared(result, figure) if result.baseline is not None else []),
        _cell(f"{figure.n:,}", figure.n, tag=", ".join(counted)),
    ]


def _compared(result: Findings, figure: Figure) -> list[dict[str, object]]:
    compared = figure.vs_baseline
    if compared is None:
        return [_cell("", None)] * 6
    p = compared.p if figure.whole_run else compared.t_p
    counts = NONE
    if compared.better is not None:
        counts = f"{compared.better:,}/{compared.equal:,}/{compared.worse:,}"
    # A relative difference misleads for a figure that can have either sign.
    signed = resolve(figure.measure).signed
    relative = NONE if compared.relative is None or signed else f"{compared.relative:+.1%}"
    return [
        _cell(
            true_minus(number(compared.difference, _DIGITS)),
            compared.difference,
            tag=true_minus(on_common(result, figure)),
        ),
        _cell(p_value(compared.holm_p), compared.holm_p, mark="*" if compared.significant else ""),
        _cell(counts, compared.better),
        _cell(p_value(p), p),
        _cell(p_value(compared.wilcoxon_p), compared.wilcoxon_p),
        _cell(true_minus(relative), compared.relative),
    ]


def _cell(
    text: str, sort: str | float | None, *, left: bool = False, mark: str = "", tag: str = ""
) -> dict[str, object]:
    return {"text": text, "sort": "" if sort is None else sort, "left": left, "mark": mark, "tag": tag}


def _depth(result: Findings) -> list[dict[str, object]]:
    """The curves by rank depth as tables, at selected ranks."""
    deepest = max(run.by_depth.height for run in result.runs)
    ranks = [rank for rank in _DEPTHS if rank <= deepest]
    parts: list[dict[str, object]] = []
    for name, title in (("neutrality", "Neutrality"), ("magnitude", "Lean")):
        if name not in result.runs[0].by_depth.columns:
            continue
        rows = []
        for run in result.runs:
            by_rank = dict(run.by_depth.select("rank", pl.col(name).fill_nan(None)).iter_rows())
            rows.append((run.name, [true_minus(number(by_rank.get(rank))) for rank in ranks]))
        parts.append({"name": title, "ranks": ranks, "rows": rows})
    return parts
