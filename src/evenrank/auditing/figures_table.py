"""The page's table of figures: its columns, and a row for each measure and run."""

from __future__ import annotations

from evenrank.measures import is_bias, resolve
from evenrank.reports.format import NONE, interval, number, p_value, true_minus

from .findings import Figure, Findings, RunAudit
from .phrases import labelled, on_common, signed_measures
from .text import known_share
from .unknown_labels import only_bounds

_DIGITS = 4
_NAMES = ("Measure", "Run")
_ALWAYS = (*_NAMES, "Mean", "Queries")
_OF_LABELS = {"Bounds", "Known", "Its interval"}
_NOT_OF_BOUNDS = {"Tie mean", "b/e/w", "t p", "Wilcoxon p", "Relative"}

Cell = dict[str, object]


def figures_table(result: Findings) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
    """The columns and the rows, with those columns that some figure of the audit has a value for."""
    rows = []
    for measure in result.measures:
        for place, run in enumerate(result.runs):
            kind = " ".join(["first"] * (place == 0) + ["reference"] * run.reference)
            rows.append((kind, _cells(result, run, str(measure))))
    names = _shown(result, [cells for _, cells in rows])
    titles = _titles(result)
    columns: list[dict[str, object]] = [
        {"name": name, "title": titles[name], "left": name in _NAMES} for name in titles if name in names
    ]
    return columns, [{"kind": kind, "cells": [cells[name] for name in titles if name in names]} for kind, cells in rows]


def _shown(result: Findings, rows: list[dict[str, Cell]]) -> set[str]:
    """The names of the columns that are shown."""
    names = set(rows[0])
    if not labelled(result):
        return names - _OF_LABELS
    if only_bounds(result):
        names -= _NOT_OF_BOUNDS
    else:
        names -= _OF_LABELS - {"Known"}
    return {name for name in names if name in _ALWAYS or any(cells[name]["sort"] != "" for cells in rows)}


def _titles(result: Findings) -> dict[str, str]:
    """What each column holds, by its name."""
    baseline, signed = result.baseline, signed_measures(result)
    nearer = f" ({', '.join(signed)}: nearer to 0 is better)" if signed else ""
    of = " of the signed difference" if signed else ""
    titles = {
        "Measure": "Effectiveness first, then bias",
        "Run": "The run or reference ranking",
        "Mean": "Mean over queries, or the value of the whole run",
        "95% interval": "Bootstrap interval over queries; sorts by its lower end",
        "Bounds": "Smallest and largest value over every way to label the unknown documents; sorts by their width",
        "Known": "Share of the documents that the figure looks at which have a label",
        "Tie mean": "Mean over all orders of tied documents",
        "Tie range": "Smallest and largest value over all orders of tied documents; sorts by its width",
    }
    if baseline is not None:
        titles |= {
            "Difference": f"Mean of the run minus that of {baseline}, over queries where both have a value",
            "Its interval": "95% interval of the difference of a measure of the whole run; sorts by its lower end",
            "Holm p": "The t-test's p, corrected over the runs compared",
            "b/e/w": f"Queries better/equal/worse than {baseline}{nearer}; sorts by the better ones",
            "t p": f"Paired t-test{of} (permutation test for a measure of the whole run), uncorrected",
            "Wilcoxon p": f"Wilcoxon signed-rank test{of}, uncorrected",
            "Relative": f"Difference as a share of the mean of {baseline}",
        }
    return titles | {"Queries": "Number of queries with a value"}


def _cells(result: Findings, run: RunAudit, key: str) -> dict[str, Cell]:
    figure = run.figures[key]
    tag = "reference" if run.reference else "baseline" if run.name == result.baseline else ""
    low = figure.ci95[0] if figure.ci95 is not None else None
    counted = [f"{figure.undefined:,} undefined"] if figure.undefined else []
    counted += [f"{run.absent:,} not in the run, counted as 0"] if run.absent and not is_bias(figure.measure) else []
    share = figure.known[0] / max(1, figure.known[1]) if figure.known is not None else None
    return {
        "Measure": _cell(key, key, left=True),
        "Run": _cell(run.name, run.name, left=True, tag=tag),
        "Mean": _cell(true_minus(number(figure.mean, _DIGITS)), figure.mean),
        "95% interval": _cell(true_minus(interval(figure.ci95, _DIGITS)), low),
        "Bounds": _cell(true_minus(interval(figure.bounds, _DIGITS)), _width(figure.bounds)),
        "Known": _cell(NONE if figure.known is None else known_share(*figure.known), share),
        "Tie mean": _cell(true_minus(number(figure.tie_mean, _DIGITS)), figure.tie_mean),
        "Tie range": _cell(
            true_minus(interval(figure.tie_range, _DIGITS)),
            _width(figure.tie_range),
            mark="~" if figure.tie_sensitive else "",
        ),
        **(_compared(result, figure) if result.baseline is not None else {}),
        "Queries": _cell(f"{figure.n:,}", figure.n, tag=", ".join(counted)),
    }


def _width(ends: tuple[float, float] | None) -> float | None:
    return None if ends is None else ends[1] - ends[0]


def _compared(result: Findings, figure: Figure) -> dict[str, Cell]:
    compared = figure.vs_baseline
    if compared is None:
        names = ("Difference", "Its interval", "Holm p", "b/e/w", "t p", "Wilcoxon p", "Relative")
        return {name: _cell("", None) for name in names}
    p = compared.p if figure.whole_run else compared.t_p
    counts = NONE
    if compared.better is not None:
        counts = f"{compared.better:,}/{compared.equal:,}/{compared.worse:,}"
    # A relative difference misleads for a figure that can have either sign.
    signed = resolve(figure.measure).signed
    relative = NONE if compared.relative is None or signed else f"{compared.relative:+.1%}"
    return {
        "Difference": _cell(
            true_minus(number(compared.difference, _DIGITS)),
            compared.difference,
            tag=true_minus(on_common(result, figure)),
        ),
        "Its interval": _cell(
            true_minus(interval(compared.ci95, _DIGITS)), compared.ci95[0] if compared.ci95 is not None else None
        ),
        "Holm p": _cell(p_value(compared.holm_p), compared.holm_p, mark="*" if compared.significant else ""),
        "b/e/w": _cell(counts, compared.better),
        "t p": _cell(p_value(p), p),
        "Wilcoxon p": _cell(p_value(compared.wilcoxon_p), compared.wilcoxon_p),
        "Relative": _cell(true_minus(relative), compared.relative),
    }


def _cell(text: str, sort: str | float | None, *, left: bool = False, mark: str = "", tag: str = "") -> Cell:
    return {"text": text, "sort": "" if sort is None else sort, "left": left, "mark": mark, "tag": tag}
