"""What may be shown where labels are unknown, and what the page says of it."""

from __future__ import annotations

from ir_measures import Measure

from evenrank.measures import is_bias
from evenrank.results.table import COUNT, Column, Table

from .data import AuditFigures, Known, KnownLabels, MetricValue
from .poles import group_label
from .poles import groups as group_names
from .selected_measures import estimated, lean_measure


def only_bounds(result: AuditFigures) -> bool:
    """Whether measures of bias that look at an unknown document have bounds alone."""
    return result.partly_labelled and result.settings.get("unknown") == "bounds" and not estimated(result)


def plane_bias(result: AuditFigures) -> Measure | None:
    """The measure of bias that the plot shows first: of those with a value or bounds, if any has."""
    usual = lean_measure(result)
    wanted = [measure for measure in (usual, *result.measures) if measure is not None and is_bias(measure)]
    figures = {measure: [run.measures[str(measure)] for run in result.runs] for measure in wanted}
    shown = (m for m in wanted if any(f.mean is not None or f.bounds is not None for f in figures[m]))
    return next(shown, usual)


def shows_queries(result: AuditFigures, figure: MetricValue) -> bool:
    """Whether a figure has values of single queries."""
    alone = figure.from_labels is not None or (only_bounds(result) and is_bias(figure.measure))
    return not (figure.whole_run or alone)


def about_queries(result: AuditFigures) -> str:
    """What the page says of single queries' values over unknown labels."""
    if only_bounds(result):
        return "Measures of bias have no values for single queries: only bounds are known."
    return ""


def about_depth(result: AuditFigures) -> str:
    """What the curves by rank are of where labels are unknown."""
    found = [(run.name, run.labels) for run in result.given if run.labels is not None]
    unknown = result.settings.get("unknown")
    if not any(labels.unknown for _, labels in found):
        return ""
    done = {
        "skip": "Documents without a label are left out, and lists close up over them.",
        "neutral": "Documents without a label count as of no group.",
    }.get(str(unknown), "")
    shares = ", ".join(f"{Known(labels.known, labels.rows)} of {name}" for name, labels in found)
    return f"{done} Known in the first {found[0][1].depth} ranks: {shares}."


# --- the section -----------------------------------------------------------------------------------------------------


def labels_section(result: AuditFigures) -> dict[str, object] | None:
    """The table of each run's first ranks by group, with what is of none and what is unknown; None without labels."""
    known = [(run, run.labels) for run in result.runs if run.labels is not None]
    if not known:
        return None
    groups = group_names(result)
    columns = [*(group_label(group, groups) for group in groups), "No group", "Unknown"]
    rows = [
        (run.name, *(_size(size, labels.rows) for size in _sizes(labels, groups)), labels.rows) for run, labels in known
    ]
    depth = known[0][1].depth
    shown = (Column("Run"), *(Column(name, COUNT) for name in (*columns, "Documents")))
    return {"depth": depth, "table": Table(f"Labels of the first {depth} ranks", shown, rows)}


def _sizes(labels: KnownLabels, groups: list[str]) -> list[float]:
    """The groups' weights, what is left of known documents, and the number of unknown ones; they sum to the rows."""
    weights = [labels.groups.get(group, 0.0) for group in groups]
    return [*weights, max(0.0, labels.known - sum(weights)), float(labels.unknown)]


def _size(size: float, rows: int) -> str:
    """A number of documents and its share: ``31 (1.4%)``; below half of the last decimal, 0."""
    return f"{round(size, 1):,.6g} ({size / max(1, rows):.1%})"
