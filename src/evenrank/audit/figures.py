"""One run's values on every measure, before any statistics: per query, and what ties do to the figure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.measures import DELTA, Evaluation, Lacking
from evenrank.measures.pairwise import delta_aprf

from .findings import Interval

Array = np.ndarray[Any, Any]
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
    poles: dict[str, tuple[Array, Array]]
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
    poles: dict[str, tuple[Array, Array]] = {}
    expected: dict[str, Array] = {}
    means: dict[str, float] = {}
    for measure in measures:
        key, queries = str(measure), evaluation.axis(measure)
        if measure.NAME in DELTA:
            pair = evaluation.poles_prf(measure)
            if random:
                pair = tuple(np.where(np.isnan(pole), pole, 0.5) for pole in pair)  # type: ignore[assignment]
            poles[key] = (_place(pair[0], queries, axis), _place(pair[1], queries, axis))
            own = pair[0] - pair[1]
            undefined[key] = int((np.isnan(pair[0]) & np.isnan(pair[1])).sum())
        else:
            own = evaluation.random_values(measure) if random else evaluation.values(measure)
            undefined[key] = int(np.isnan(own).sum())
        values[key] = _place(own, queries, axis)
        if random:
            ties[key] = None, None
            if measure.NAME.startswith("|"):
                means[key] = _random_absolute(evaluation, measure)
        else:
            tied = None if measure.NAME in DELTA else evaluation.tie_values(measure)
            ties[key] = _ties(evaluation, measure, tied)
            if tied is not None:
                expected[key] = _place(tied, queries, axis)
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
        poles,
        expected,
        means,
        _place(evaluation.lists.lengths, evaluation.queries, axis),
        absent,
        lacking,
    )


def _random_absolute(evaluation: Evaluation, measure: Measure) -> float:
    """The expectation of the absolute value of a run's figure over random orders of the candidates, by draws."""
    if measure.NAME in DELTA:
        return float(np.mean([abs(delta_aprf(*pair)) for pair in evaluation.drawn_poles_prf(measure, random=True)]))
    return float(np.mean(np.abs(evaluation.mean_draws(measure, random=True))))


def mean_of(values: Array) -> float | None:
    """Mean of the values that are defined; None where none is."""
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else None


def _ties(evaluation: Evaluation, measure: Measure, tied: Array | None) -> tuple[float | None, Interval | None]:
    """The figure's expectation over orders of tied documents, and its smallest and largest value where known.

    ``tied``: each query's expectation; None for ΔA-PRF.
    """
    if tied is None:
        ends = [delta_aprf(*evaluation.poles_prf(measure, weights)) for weights in ((0.0, 1.0), (1.0, 0.0))]
        if measure.NAME == "DeltaAPRF":
            middle = delta_aprf(*evaluation.poles_prf(measure, (0.5, 0.5)))
        else:
            middle = float(np.mean([abs(delta_aprf(*pair)) for pair in evaluation.drawn_poles_prf(measure)]))
            ends = list(_absolute(ends[0], ends[1]))
        return (None, None) if np.isnan(middle) else (middle, (ends[0], ends[1]))
    low, high = (mean_of(bound) for bound in evaluation.tie_bounds(measure))
    known = None if low is None or high is None else (low, high)
    if measure.NAME == "|ARaB|" and known is not None:
        return float(np.nanmean(np.abs(evaluation.mean_draws(measure)))), _absolute(*known)
    return mean_of(tied), known


def _absolute(low: float, high: float) -> Interval:
    """The range of |x| for x in [low, high]."""
    ends = sorted((abs(low), abs(high)))
    return (0.0 if low <= 0 <= high else ends[0], ends[1])


def _profile(evaluation: Evaluation, *, random: bool) -> pl.DataFrame:
    """Mean over queries of the signed magnitude (tf) and the neutrality of the documents down to each rank."""
    lists = evaluation.scored_lists
    depth = min(PROFILE_DEPTH, int(lists.lengths.max(initial=0)))
    ranks = np.arange(1, depth + 1)
    counts = np.minimum(ranks, lists.lengths[:, None])
    columns: dict[str, Any] = {"rank": ranks}
    if evaluation.scores is None:
        return pl.DataFrame(columns)
    kinds = {"neutrality": evaluation.neutrality}
    if evaluation.scores.poles is not None:
        kinds["magnitude"] = evaluation.magnitude("tf")
    for name, values in kinds.items():
        top = values.first(lists, depth)
        running = values.means(lists)[:, None] * counts if random else np.cumsum(top, axis=1)
        columns[name] = np.nanmean(
            np.divide(running, counts, where=counts > 0, out=np.full(running.shape, np.nan)), axis=0
        )
    return pl.DataFrame(columns)
