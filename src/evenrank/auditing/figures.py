"""One run's values on every measure, before any statistics: per query, and what ties do to the figure."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files.types import Array
from evenrank.measures import (
    Evaluation,
    Lacking,
    LinearMeasure,
    RunMeasure,
    greatest_value,
    is_bias,
    is_linear,
    resolve,
)
from evenrank.measures.base import mean_of, means_by_relevance
from evenrank.measures.joined import JoinedRun
from evenrank.measures.ranked_lists import expand
from evenrank.results.table import Interval
from evenrank.stats.sampling import LabelSample

from .data import NEUTRAL_FIRST, Known, KnownLabels

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
    known: dict[str, Known] = field(default_factory=dict)
    """Per measure of labels, how many of the rows that it looks at are known, and how many it looks at."""
    known_queries: dict[str, int] = field(default_factory=dict)
    """Per measure of labels, in how many queries with a value it looks at a document that has one."""
    greatest: dict[str, float] = field(default_factory=dict)
    """Per measure without known bounds, the largest size that a query's value can have with any document."""
    order_variances: dict[str, Array] = field(default_factory=dict)
    """Per measure that is a weighted sum over ranks, the variance of each query's value over random orders."""
    clusters: Array | None = None
    """The cluster of each query of the axis, as whole numbers; None where none share one."""
    bounds: dict[str, Interval] = field(default_factory=dict)
    """Per measure the smallest and largest figure over every way to label the unknown, where that is exact."""
    samples: dict[str, tuple[LabelSample, LabelSample | None]] = field(default_factory=dict)
    """Per measure that is estimated from labels that were drawn, what its values owe to them, and what their
    expectations over the orders of tied documents do; on the axis."""
    guessed: bool = False
    """Whether there is a guess beside labels that were drawn."""

    intervals: dict[str, Interval] = field(default_factory=dict)
    """Per measure the interval of the figure, where it is not that of the mean of the values."""
    only_known: bool = False
    """Whether documents without a label are left out, so that figures are of the others alone."""
    of_labelled: set[str] = field(default_factory=set)
    """Measures that are of the labelled part of the background, be all documents known that they look at."""

    def partly_known(self, key: str) -> bool:
        """Whether a measure depends on documents without a label: its figure is of the known ones alone."""
        known, rows = self.known.get(key, (0, 0))
        return (known < rows and key not in self.samples) or key in self.of_labelled


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


def place_values(values: Array, queries: pl.Series, axis: pl.Series) -> Array:
    """The values [Q] of ``queries`` on the axis; NaN for its other queries."""
    laid = np.full(len(axis), np.nan)
    laid[_places(queries, axis)] = values
    return laid


def measure_run(
    evaluation: Evaluation,
    name: str,
    measures: list[Measure],
    axis: pl.Series,
    *,
    over: Over | None = None,
    lacking: Lacking | None = None,
    profiled: bool = True,
    clusters: Array | None = None,
) -> Measured:
    """A run's values on all measures; with ``over``, their expectation over orders of its candidates.

    ``profiled``: whether to look at the documents down to each rank as well; ``clusters`` [Q]: the queries' clusters.
    """
    absent = 0
    if evaluation.qrels is not None:
        absent = int((~evaluation.judged.is_in(evaluation.queries.implode())).sum())
    measured = Measured(
        name,
        len(evaluation.queries),
        0.0 if over else evaluation.scored_lists.tie_share(SHOWN_DEPTH),
        _profile(evaluation, over) if profiled else pl.DataFrame(),
        lengths=place_values(evaluation.lists.lengths, evaluation.queries, axis),
        absent=absent,
        lacking=lacking,
        labels=known_labels(evaluation, SHOWN_DEPTH) if not over else None,
        only_known=evaluation.missing == "skip",
        guessed=evaluation.guessed,
        clusters=clusters,
    )
    labelled = evaluation.group_table is not None and evaluation.group_table.labelled
    for measure in measures:
        if is_bias(measure) and labelled:
            _note_labels(measured, evaluation, measure, over)
            if name == NEUTRAL_FIRST and evaluation.background is not None and evaluation.background.lacks_labels:
                measured.of_labelled.add(str(measure))
            # Of no labelled document there is no figure: neither 0 nor 1.
            if _is_unknown(evaluation, measure, over) or measured.known[str(measure)][0] == 0:
                _undefined(measured, evaluation, measure, len(axis))
                continue
            _note_samples(measured, evaluation, measure, over, axis)
        _measure(measured, evaluation, measure, axis, over)
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
    if isinstance(how, LinearMeasure):
        if greatest_value(measure) is None and (greatest := how.greatest(evaluation)) is not None:
            run.greatest[key] = greatest
        if is_linear(measure) and key not in run.samples:
            run.order_variances[key] = place_values(how.order_variance(evaluation), queries, axis)
    if (ends := how.interval(evaluation)) is not None:
        run.intervals[key] = ends
    of_ties = how.ties(evaluation)
    # The range of estimates is not that of the figure.
    run.ties[key] = of_ties.mean, None if key in run.samples else of_ties.range
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
    if evaluation.missing != "bounds":
        return False
    how, background = resolve(measure), evaluation.background
    if isinstance(how, LinearMeasure) and how.estimated(evaluation):
        # Every document that it looks at has to be one that could have been drawn.
        sample = evaluation.required_table.sample
        if over is not None and (sample is None or sample.trusted):
            return True
        rows = np.asarray(evaluation.could_be_drawn.rows[:])
        return bool((rows[_places_of(how, evaluation, over, ties=True)] < 0).any())
    if not _known_rows(how, evaluation, over, ties=True).all():
        return True
    # Not of the candidates that a target is taken from: those without a label have no share in it.
    return type(how).needs_background and background is not None and background.lacks_labels


def _note_samples(run: Measured, evaluation: Evaluation, measure: Measure, over: Over | None, axis: pl.Series) -> None:
    """Adds what a measure that is estimated owes to labels that were drawn."""
    how = resolve(measure)
    if not isinstance(how, LinearMeasure) or not how.estimated(evaluation):
        return
    places = _places(evaluation.queries, axis)

    def placed(part: LabelSample) -> LabelSample:
        return replace(part, query=places[part.query])

    if over == "relevance":
        run.samples[str(measure)] = placed(how.design_term_by_relevance(evaluation)), None
    elif over == "random":
        run.samples[str(measure)] = placed(how.design_term_at_random(evaluation)), None
    else:
        parts = how.design_term(evaluation), how.design_term(evaluation, tied=True)
        run.samples[str(measure)] = placed(parts[0]), placed(parts[1])


def _note_labels(run: Measured, evaluation: Evaluation, measure: Measure, over: Over | None) -> None:
    """Adds how many of the rows that a measure looks at are known, and its bounds."""
    how, key = resolve(measure), str(measure)
    known = _known_rows(how, evaluation, over)
    run.known[key] = Known(int(known.sum()), len(known))
    run.known_queries[key] = _known_queries(how, evaluation, over)
    background = evaluation.background
    if type(how).needs_background and background is not None and background.lacks_labels:
        run.of_labelled.add(key)
    # Of whole lists, they take a while: not where they would be the figure itself, or beside estimates.
    sampled = evaluation.required_table.sample is not None
    if evaluation.missing == "bounds" and not (over and (known.all() or sampled)):
        if over == "relevance":
            bounds = how.label_bounds_by_relevance(evaluation)
        else:
            bounds = how.label_bounds(evaluation, random=over == "random")
        ends = None if bounds is None else tuple(map(mean_of, bounds))
        if ends is not None and ends[0] is not None and ends[1] is not None:
            run.bounds[key] = how.bounds_of_figure((ends[0], ends[1]))


def _known_queries(how: RunMeasure, run: JoinedRun, over: Over | None) -> int:
    """In how many queries a measure looks at a document with a label."""
    places = None if over else how.looked_at(run)
    places = np.arange(len(run.document)) if places is None else places
    query = np.searchsorted(run.lists.offsets, places, side="right") - 1
    return len(np.unique(query[run.document[places] >= 0]))


def _known_rows(how: RunMeasure, run: JoinedRun, over: Over | None, *, ties: bool = False) -> Array:
    """Which of the rows that a measure looks at are known; ``ties``: and of those that are tied with them."""
    known: Array = run.document[_places_of(how, run, over, ties=ties)] >= 0
    return known


def _places_of(how: RunMeasure, run: JoinedRun, over: Over | None, *, ties: bool) -> Array | slice:
    """The places of the rows that a measure looks at; ``ties``: and of those that are tied with them."""
    places = None if over else how.looked_at(run)
    if ties and places is not None and run.lists.tied:
        starts, first = np.unique(run.lists.tie_of(places)[0], return_index=True)
        places, _ = expand(starts, run.lists.tie_of(places[first])[1])
    return slice(None) if places is None else places


def _undefined(run: Measured, evaluation: Evaluation, measure: Measure, queries: int) -> None:
    """A measure of which only bounds are known. Raises EvenrankError for one that the labels have no values for."""
    how, key = resolve(measure), str(measure)
    if isinstance(how, LinearMeasure):
        how.documents(evaluation.required_table, np.zeros(0, dtype=np.int64))
    run.parts[key] = (np.full(queries, np.nan),) * how.part_count
    run.values[key], run.undefined[key], run.ties[key] = run.parts[key][0], 0, (None, None)


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
    # Of labels that were drawn, the known ones are no picture of the others.
    if table is None or table.sample is not None:
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
        by_query = np.divide(running, counts, where=counts > 0, out=np.full(running.shape, np.nan))
        columns[name] = np.nanmean(by_query, axis=0)
    return pl.DataFrame(columns)
