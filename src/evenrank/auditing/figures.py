"""One run's values on every measure, before any statistics: per query, and what ties do to the figure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.io.types import Array
from evenrank.measures import Evaluation, Lacking, LinearMeasure, RunMeasure, is_bias, resolve
from evenrank.measures.base import mean_of
from evenrank.measures.by_relevance import means_by_relevance
from evenrank.measures.imputation import FEW_IMPUTATIONS, IMPUTATIONS
from evenrank.measures.joined import JoinedRun
from evenrank.measures.ranked_lists import expand
from evenrank.reports.format import Interval

from .findings import KnownLabels

Over = Literal["random", "relevance"]
"""An expectation over orders of the same candidates: all orders, or all by falling grade."""
SHOWN_DEPTH = 10
PROFILE_DEPTH = 100


@dataclass(frozen=True)
class Measured:
    """A run's values before statistics: per measure the values on the audit's axis, and what ties do to the figure."""

    name: str
    queries: int
    tie_share: float
    by_depth: pl.DataFrame
    lengths: Array
    """How many documents each query has, on the axis; NaN where the run lacks it."""
    absent: int
    """How many judged queries the run lacks."""
    lacking: Lacking | None
    """The documents without scores; not said again of a reference ranking."""
    labels: KnownLabels | None
    values: dict[str, Array] = field(default_factory=dict)
    undefined: dict[str, int] = field(default_factory=dict)
    ties: dict[str, tuple[float | None, Interval | None]] = field(default_factory=dict)
    parts: dict[str, tuple[Array, ...]] = field(default_factory=dict)
    """Per measure the arrays that its figure is made of, on the axis: one, or one for each pole."""
    expected: dict[str, Array] = field(default_factory=dict)
    """Per measure each query's expectation over the orders of tied documents, on the axis."""
    means: dict[str, float] = field(default_factory=dict)
    """Figures that are no mean of the values: the expectation of an absolute value over random orders."""
    draws: dict[str, tuple[Array, ...]] = field(default_factory=dict)
    """Per measure its parts [M, Q] in each draw of unknown labels; none where all labels are known."""
    limits: dict[str, Interval] = field(default_factory=dict)
    """Per measure of labels what no figure is beyond."""
    sources: float = np.inf
    """How many documents the draws take labels from."""
    tie_shifts: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    """Per measure with draws, what ties add to its figure: in expectation, at least, at most."""
    known: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Per measure of labels, how many of the rows that it looks at are known, and how many it looks at."""
    bounds: dict[str, Interval] = field(default_factory=dict)
    """Per measure the smallest and largest figure over every way to label the unknown, where that is exact."""


def query_axis(evaluations: list[Evaluation], background: Evaluation, qrels: pl.DataFrame | None) -> pl.Series:
    """All queries of the audit: those of the runs, then the judged ones that no run has."""
    parts = [evaluation.queries for evaluation in [*evaluations, background]]
    if qrels is not None:
        parts.append(qrels["query_id"])
    return pl.concat(parts).unique(maintain_order=True).alias("query_id")


def _places(queries: pl.Series, axis: pl.Series) -> Array:
    """The place [Q] on the axis of each of the queries."""
    if queries.equals(axis[: len(queries)]):
        return np.arange(len(queries))
    index = pl.DataFrame({"q": axis}).with_row_index("place")
    places = pl.DataFrame({"q": queries}).join(index, on="q", how="left", maintain_order="left")["place"]
    return places.cast(pl.Int64).to_numpy()


def _laid(values: Array, places: Array, size: int) -> Array:
    """The values [Q] at their places on an axis of ``size`` queries; NaN elsewhere."""
    laid = np.full(size, np.nan)
    laid[places] = values
    return laid


def place_values(values: Array, queries: pl.Series, axis: pl.Series) -> Array:
    """The values [Q] of ``queries`` on the axis; NaN for its other queries."""
    return _laid(values, _places(queries, axis), len(axis))


def measure_run(
    evaluation: Evaluation,
    name: str,
    measures: list[Measure],
    axis: pl.Series,
    *,
    over: Over | None = None,
    lacking: Lacking | None = None,
    profiled: bool = True,
) -> Measured:
    """A run's values on all measures; with ``over``, their expectation over orders of its candidates.

    ``profiled``: whether to look at the documents down to each rank as well.
    """
    absent = 0
    if evaluation.qrels is not None:
        absent = int((~evaluation.judged.is_in(evaluation.queries.implode())).sum())
    measured = Measured(
        name,
        len(evaluation.queries),
        0.0 if over else evaluation.scored_lists.tie_share(SHOWN_DEPTH),
        _profile(evaluation.completed(None), over) if profiled else pl.DataFrame(),
        lengths=place_values(evaluation.lists.lengths, evaluation.queries, axis),
        absent=absent,
        lacking=lacking,
        labels=known_labels(evaluation, SHOWN_DEPTH) if not over else None,
        sources=min((imputation.sources for imputation in evaluation.imputations), default=np.inf),
    )
    labelled = evaluation.group_table is not None and evaluation.group_table.labelled
    unknown = [
        measure for measure in measures if labelled and is_bias(measure) and _is_unknown(evaluation, measure, over)
    ]
    for measure in measures:
        if is_bias(measure) and labelled:
            _note_labels(measured, evaluation, measure, over)
        if measure not in unknown:
            _measure(measured, evaluation, measure, axis, over)
        elif evaluation.missing == "bounds":
            _undefined(measured, measure, len(axis))
    if unknown and evaluation.missing == "estimate":
        _estimate(measured, evaluation, unknown, axis, over)
    return measured


def _measure(run: Measured, evaluation: Evaluation, measure: Measure, axis: pl.Series, over: Over | None) -> None:
    """Adds a measure's values to those of a run."""
    how, key = resolve(measure), str(measure)
    queries = how.queries(evaluation)
    own = _parts(how, evaluation, over)
    run.undefined[key] = int(np.isnan(own).all(axis=0).sum())
    run.parts[key] = tuple(place_values(part, queries, axis) for part in own)
    run.values[key] = how.per_query(run.parts[key])
    if over:
        run.ties[key] = None, None
        figure = _whole_figure(how, evaluation, over)
        if figure is not None:
            run.means[key] = figure
        return
    of_ties = how.ties(evaluation)
    run.ties[key] = of_ties.mean, of_ties.range
    if of_ties.expected is not None:
        run.expected[key] = place_values(of_ties.expected, queries, axis)


def _parts(how: RunMeasure, run: Evaluation, over: Over | None) -> tuple[Array, ...]:
    """The arrays that a figure is made of."""
    return how.parts_by_relevance(run) if over == "relevance" else how.parts(run, random=over == "random")


def _whole_figure(how: RunMeasure, run: Evaluation, over: Over) -> float | None:
    """An expected figure that is not that of its expected parts."""
    return how.figure_by_relevance(run) if over == "relevance" else how.random_figure(run)


# --- labels ----------------------------------------------------------------------------------------------------------


def _is_unknown(evaluation: Evaluation, measure: Measure, over: Over | None) -> bool:
    """Whether a measure depends on documents without a label, which are neither left out nor counted as neutral."""
    if evaluation.missing not in ("estimate", "bounds"):
        return False
    how, background = resolve(measure), evaluation.background
    if not _known_rows(how, evaluation, over, ties=True).all():
        return True
    # Not of the candidates that a target is taken from: those without a label have no share in it.
    if type(how).needs_background and background is not None and background.lacks_labels:
        return True
    return how.of_rankings and not all(
        _known_rows(how, ranking, over, ties=True).all() for ranking in evaluation.rankings
    )


def _note_labels(run: Measured, evaluation: Evaluation, measure: Measure, over: Over | None) -> None:
    """Adds how many of the rows that a measure looks at are known, and its bounds."""
    how, key = resolve(measure), str(measure)
    of_rankings = evaluation.rankings if how.of_rankings else ()
    known = np.concatenate([_known_rows(how, one, over) for one in (evaluation, *of_rankings)])
    run.known[key] = int(known.sum()), len(known)
    run.limits[key] = how.limits(evaluation.required_table)
    # Of whole lists, they take a while: not where they would be the figure itself.
    if evaluation.missing in ("estimate", "bounds") and not (over and known.all()):
        if over == "relevance":
            bounds = how.label_bounds_by_relevance(evaluation)
        else:
            bounds = how.label_bounds(evaluation, random=over == "random")
        ends = None if bounds is None else tuple(map(mean_of, bounds))
        if ends is not None and ends[0] is not None and ends[1] is not None:
            run.bounds[key] = how.bounds_of_figure((ends[0], ends[1]))


def _known_rows(how: RunMeasure, run: JoinedRun, over: Over | None, *, ties: bool = False) -> Array:
    """Which of the rows that a measure looks at are known; ``ties``: and of those that are tied with them."""
    places = None if over else how.looked_at(run)
    if ties and places is not None and run.lists.tied:
        starts, first = np.unique(run.lists.tie_of(places)[0], return_index=True)
        places, _ = expand(starts, run.lists.tie_of(places[first])[1])
    known: Array = (run.document if places is None else run.document[places]) >= 0
    return known


def _undefined(run: Measured, measure: Measure, queries: int) -> None:
    """A measure of which only bounds are asked for."""
    key = str(measure)
    run.parts[key] = (np.full(queries, np.nan),) * resolve(measure).part_count
    run.values[key], run.undefined[key], run.ties[key] = run.parts[key][0], 0, (None, None)


def _estimate(
    run: Measured, evaluation: Evaluation, measures: list[Measure], axis: pl.Series, over: Over | None
) -> None:
    """Adds the measures' values in each draw of the labels that are unknown, and their means over the draws.

    A measure of how a query's labels fall together has no value unless all that it looks at are known: labels from
    other queries would mix evenly what one query keeps apart.
    """
    for measure in measures:
        if resolve(measure).joint and run.known[str(measure)][0] < run.known[str(measure)][1]:
            _undefined(run, measure, len(axis))
    measures = [measure for measure in measures if str(measure) not in run.values]
    drawn: dict[str, list[tuple[Array, ...]]] = {str(measure): [] for measure in measures}
    places = {str(measure): _places(resolve(measure).queries(evaluation), axis) for measure in measures}
    ties: dict[str, list[tuple[float, float, float]]] = {str(measure): [] for measure in measures}
    figures: dict[str, list[float]] = {str(measure): [] for measure in measures}
    for draw in range(IMPUTATIONS):
        completed = evaluation.completed(draw)
        for measure in measures:
            how, key = resolve(measure), str(measure)
            few = draw < (1 if how.drawn and not over else FEW_IMPUTATIONS)
            linear = isinstance(how, LinearMeasure) and not how.drawn
            if over and not few and not isinstance(how, LinearMeasure):
                continue
            parts = _parts(how, completed, over)
            drawn[key].append(tuple(_laid(part, places[key], len(axis)) for part in parts))
            if few and not over and not linear:
                ties[key].append(_tie_shifts(how, completed, parts))
            elif few and over:
                figure = _whole_figure(how, completed, over)
                figures[key] += [] if figure is None else [figure]
    for measure in measures:
        how, key = resolve(measure), str(measure)
        if not over and isinstance(how, LinearMeasure) and not how.drawn:
            # Of what is linear in the labels, their expectation says the same as many draws.
            expected = evaluation.completed(None)
            ties[key].append(_tie_shifts(how, expected, how.parts(expected)))
        run.draws[key] = tuple(np.stack(part) for part in zip(*drawn[key], strict=True))
        run.parts[key] = tuple(_mean_over_draws(part) for part in run.draws[key])
        run.values[key] = how.per_query(run.parts[key])
        run.undefined[key] = len(evaluation.queries) - int((~np.isnan(run.parts[key])).any(axis=0).sum())
        run.ties[key] = None, None
        if figures[key]:
            run.means[key] = float(np.mean(figures[key]))
        if ties[key]:
            # What ties do to the figure, added to its estimate: the draws are too few for the figure itself.
            middle, low, high = _mean_over_draws(np.array(ties[key])).tolist()
            run.tie_shifts[key] = middle, low, high


def _tie_shifts(how: RunMeasure, run: Evaluation, parts: tuple[Array, ...]) -> tuple[float, float, float]:
    """By how much the expectation, the smallest and the largest value over the orders of ties exceed a run's figure."""
    figure = how.figure(parts)
    ties = how.ties(run)
    low, high = ties.range or (np.nan, np.nan)
    return (np.nan if ties.mean is None else ties.mean) - figure, low - figure, high - figure


def _mean_over_draws(values: Array) -> Array:
    """The mean [Q] over draws [M, Q] in which a query has a value; NaN where it has none."""
    defined = ~np.isnan(values)
    number = defined.sum(axis=0)
    total = np.where(defined, values, 0.0).sum(axis=0)
    mean: Array = np.divide(total, number, out=np.full(len(number), np.nan), where=number > 0)
    return mean


def known_labels(evaluation: Evaluation, depth: int) -> KnownLabels | None:
    """The labels of a run's first ``depth`` ranks; None without labels."""
    table = evaluation.group_table
    if table is None or not table.labelled:
        return None
    places, _ = expand(evaluation.lists.offsets[:-1], np.minimum(evaluation.lists.lengths, depth))
    rows = evaluation.document[places]
    found = rows[rows >= 0]
    groups = {group: float(table.weight(group, found).sum()) for group in table.groups}
    return KnownLabels(depth, len(rows), len(found), groups, round(len(found) - sum(groups.values()), 9))


def _profile(evaluation: Evaluation, over: Over | None) -> pl.DataFrame:
    """Mean over queries of the signed magnitude, the neutrality and the groups' weights down to each rank.

    The weights, in columns named ``weight_<group>``, only of labels and of groups without poles.
    """
    lists = evaluation.scored_lists
    depth = min(PROFILE_DEPTH, int(lists.lengths.max(initial=0)))
    ranks = np.arange(1, depth + 1)
    counts = np.minimum(ranks, lists.lengths[:, None])
    columns: dict[str, Any] = {"rank": ranks}
    table = evaluation.group_table
    if table is None:
        return pl.DataFrame(columns)
    kinds = {"neutrality": evaluation.neutrality}
    if table.poles is not None:
        kinds["magnitude"] = evaluation.magnitude(table.usual_kind)
    if table.labelled or table.poles is None:
        kinds |= {f"weight_{group}": evaluation.weight(group) for group in table.groups}
    for name, values in kinds.items():
        if over == "random":
            running = values.means(lists)[:, None] * counts
        else:
            top = means_by_relevance(evaluation, values, depth) if over else values.first(lists, depth)
            running = np.cumsum(top, axis=1)
        columns[name] = np.nanmean(
            np.divide(running, counts, where=counts > 0, out=np.full(running.shape, np.nan)), axis=0
        )
    return pl.DataFrame(columns)
