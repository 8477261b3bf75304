"""How far the order in which passages were given to a listwise ranker moves the figures of its run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import polars as pl
from ir_measures import Measure

from evenrank.io import EvenrankError, Order, Run, read_run
from evenrank.io.run_cards import same_file
from evenrank.measures import Evaluation
from evenrank.reports.format import number

from .comparison import with_statistics
from .figures import measure_run
from .findings import Figure, RunAudit


@dataclass(frozen=True, slots=True)
class Orders:
    """The runs of other orders by the name of their run, and notes on those that cannot be used."""

    runs: dict[str, tuple[Run, ...]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def load_orders(runs: list[Run], order: Order) -> Orders:
    """The other orders of listwise runs: in memory, or in the files that a run's card names, if they are unchanged."""
    found: dict[str, tuple[Run, ...]] = {}
    notes = []
    for run in runs:
        others, problem = (run.orders, None) if run.orders else _of_card(run, order)
        others = tuple(_on_queries_of(run, other) for other in others)
        if problem is None and not all(_same_documents(run, other) for other in others):
            problem = "a run of another order ranks other documents"
        if problem is not None:
            notes.append(f"{run.name}: {problem}: how far the order of passages moves its figures is unknown.")
        elif others:
            found[run.name] = others
    return Orders(found, tuple(notes))


def with_orders(
    results: list[RunAudit],
    orders: Orders,
    measures: list[Measure],
    axis: pl.Series,
    evaluation: Callable[[Run], Evaluation],
) -> list[RunAudit]:
    """The results with each figure of a listwise run over all its orders; ``evaluation``: that of a run."""
    return [
        _over_orders(result, [_figures(evaluation(run), measures, axis) for run in orders.runs[result.name]])
        if result.name in orders.runs
        else result
        for result in results
    ]


def order_notes(results: list[RunAudit]) -> list[str]:
    """The figures of listwise runs over all orders, and which of them the order moves further than chance does."""
    notes = []
    for run in results:
        moved = {key: figure for key, figure in run.figures.items() if figure.order_range is not None}
        if not moved:
            continue
        shown = ", ".join(f"{key} {_spread(figure)}" for key, figure in moved.items())
        notes.append(f"{run.name}: mean and range over the orders in which its passages were given: {shown}.")
        flagged = [key for key, figure in moved.items() if figure.order_sensitive]
        if flagged:
            notes.append(
                f"{run.name}: the order in which passages were given moves {', '.join(flagged)} by more than its"
                " interval is wide."
            )
    return notes


def _spread(figure: Figure) -> str:
    low, high = figure.order_range or (None, None)
    return f"{number(figure.order_mean)} ({number(low)} to {number(high)})"


def _figures(run: Evaluation, measures: list[Measure], axis: pl.Series) -> dict[str, Figure]:
    return with_statistics([measure_run(run, run.run.name, measures, axis)], measures, None, 0)[0].figures


def _over_orders(result: RunAudit, others: list[dict[str, Figure]]) -> RunAudit:
    figures = {}
    for key, figure in result.figures.items():
        means = [mean for one in (figure, *(other[key] for other in others)) if (mean := one.mean) is not None]
        if len(means) == 1 + len(others):
            figure = replace(figure, order_mean=sum(means) / len(means), order_range=(min(means), max(means)))
        figures[key] = figure
    return replace(result, figures=figures)


# --- files -----------------------------------------------------------------------------------------------------------


def _of_card(run: Run, order: Order) -> tuple[tuple[Run, ...], str | None]:
    """The orders that a run's card names, and why they cannot be used; none of a run without."""
    listwise = (run.card or {}).get("listwise")
    named = listwise.get("orders") if isinstance(listwise, Mapping) else None
    if run.source is None or not isinstance(named, list) or not named:
        return (), None
    runs = []
    for facts in named:
        name = facts.get("file") if isinstance(facts, Mapping) else None
        # A card names files beside its run, and no others.
        if not isinstance(name, str) or not name or os.path.basename(name) != name:
            return (), "its card does not name the runs of other orders"
        path = os.path.join(os.path.dirname(run.source), name)
        if not same_file(path, facts):
            return (), f"the run of another order, {name}, is missing or has changed"
        try:
            runs.append(read_run(path, run.name, order=order))
        except EvenrankError:
            return (), f"the run of another order, {name}, cannot be read"
    return tuple(runs), None


def _on_queries_of(run: Run, other: Run) -> Run:
    """The ``other`` run of the same name, on the queries that the first has."""
    return replace(other, name=run.name, table=other.table.filter(pl.col("query_id").is_in(run.queries.implode())))


def _same_documents(run: Run, other: Run) -> bool:
    keys = ["query_id", "doc_id"]
    return run.table.height == other.table.height and run.table.join(other.table, on=keys, how="anti").is_empty()
