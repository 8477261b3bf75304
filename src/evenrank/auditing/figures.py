"""One run's values on every measure, before any statistics: per query, and what ties do to the figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.io.types import Array
from evenrank.measures import Evaluation, Lacking, resolve
from evenrank.reports.format import Interval

SHOWN_DEPTH = 10
PROFILE_DEPTH = 100


@dataclass(frozen=True)
class Measured:
    """A run's values before statistics: per measure the values on the audit's axis, and what ties do to the figure."""

    name: str
    queries: int
    tie_share: float
    by_depth: pl.DataFrame
    values: dict[str, Array]
    undefined: dict[str, int]
    ties: dict[str, tuple[float | None, Interval | None]]
    parts: dict[str, tuple[Array, ...]]
    """Per measure the arrays that its figure is made of, on the axis: one, or one for each pole."""
    expected: dict[str, Array]
    """Per measure each query's expectation over the orders of tied documents, on the axis."""
    means: dict[str, float]
    """Figures that are no mean of the values: the expectation of an absolute value over random orders."""
    lengths: Array
    """How many documents each query has, on the axis; NaN where the run lacks it."""
    absent: int
    """How many judged queries the run lacks."""
    lacking: Lacking | None
    """The documents without scores; not said again of a reference ranking."""


def query_axis(evaluations: list[Evaluation], background: Evaluation, qrels: pl.DataFrame | None) -> pl.Series:
    """All queries of the audit: those of the runs, then the judged ones that no run has."""
    parts = [evaluation.queries for evaluation in [*evaluations, background]]
    if qrels is not None:
        parts.append(qrels["query_id"])
    return pl.concat(parts).unique(maintain_order=True).alias("query_id")


def _place(values: Array, queries: pl.Series, axis: pl.Series) -> Array:
    index = pl.DataFrame({"q": axis}).with_row_index("place")
    place = pl.DataFrame({"q": queries}).join(index, on="q", how="left", maintain_order="left")["place"].to_numpy()
    laid = np.full(len(axis), np.nan)
    laid[place] = values
    return laid


def measure_run(
    evaluation: Evaluation,
    name: str,
    measures: list[Measure],
    axis: pl.Series,
    *,
    random: bool = False,
    lacking: Lacking | None = None,
) -> Measured:
    """A run's values on all measures; with ``random``, the expectation over random orders of its candidates."""
    values: dict[str, Array] = {}
    undefined: dict[str, int] = {}
    ties: dict[str, tuple[float | None, Interval | None]] = {}
    parts: dict[str, tuple[Array, ...]] = {}
    expected: dict[str, Array] = {}
    means: dict[str, float] = {}
    for measure in measures:
        how, key = resolve(measure), str(measure)
        queries = how.queries(evaluation)
        own = how.parts(evaluation, random=random)
        undefined[key] = int(np.isnan(own).all(axis=0).sum())
        parts[key] = tuple(_place(part, queries, axis) for part in own)
        values[key] = how.per_query(parts[key])
        if random:
            ties[key] = None, None
            figure = how.random_figure(evaluation)
            if figure is not None:
                means[key] = figure
        else:
            of_ties = how.ties(evaluation)
            ties[key] = of_ties.mean, of_ties.range
            if of_ties.expected is not None:
                expected[key] = _place(of_ties.expected, queries, axis)
    lists = evaluation.scored_lists
    absent = 0
    if evaluation.qrels is not None:
        absent = int((~evaluation.judged.is_in(evaluation.queries.implode())).sum())
    return Measured(
        name,
        len(evaluation.queries),
        0.0 if random else lists.tie_share(SHOWN_DEPTH),
        _profile(evaluation, random=random),
        values,
        undefined,
        ties,
        parts,
        expected,
        means,
        _place(evaluation.lists.lengths, evaluation.queries, axis),
        absent,
        lacking,
    )


def _profile(evaluation: Evaluation, *, random: bool) -> pl.DataFrame:
    """Mean over queries of the signed magnitude (tf) and the neutrality of the documents down to each rank."""
    lists = evaluation.scored_lists
    depth = min(PROFILE_DEPTH, int(lists.lengths.max(initial=0)))
    ranks = np.arange(1, depth + 1)
    counts = np.minimum(ranks, lists.lengths[:, None])
    columns: dict[str, Any] = {"rank": ranks}
    if evaluation.group_table is None:
        return pl.DataFrame(columns)
    kinds = {"neutrality": evaluation.neutrality}
    if evaluation.group_table.poles is not None:
        kinds["magnitude"] = evaluation.magnitude("tf")
    for name, values in kinds.items():
        top = values.first(lists, depth)
        running = values.means(lists)[:, None] * counts if random else np.cumsum(top, axis=1)
        columns[name] = np.nanmean(
            np.divide(running, counts, where=counts > 0, out=np.full(running.shape, np.nan)), axis=0
        )
    return pl.DataFrame(columns)
