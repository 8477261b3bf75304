"""The values of a ranking on every measure, before any statistics: by query, and what ties do to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files.types import Array
from evenrank.measures import (
    BiasMeasure,
    Evaluation,
    Lacking,
    LinearMeasure,
    RunMeasure,
    greatest_value,
    is_bias,
    is_linear,
    linear_form,
    not_estimable,
    resolve,
)
from evenrank.measures.base import Over, mean_of
from evenrank.measures.joined import JoinedRun
from evenrank.measures.ranked_lists import expand
from evenrank.results.table import Interval
from evenrank.stats.estimate import confidence_interval, finite_population_mean
from evenrank.stats.sampling import LabelSample
from evenrank.stats.values import QueryValues

from .data import NEUTRAL_FIRST, FromLabels, Known, KnownLabels, Unjudged

SHOWN_DEPTH = 10
PARTLY = "documents without a label could change it"
ONLY_KNOWN = "the figures are of the labelled documents alone"
"""Why nothing can be told of a figure that depends on documents without a label; where these are left out."""
UNCHECKED = "the judge is not checked"
"""Why nothing can be told of effectiveness by a judge alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureValues:
    """A ranking's values on a measure, on the audit's axis of queries.

    Attributes:
        parts: The arrays [Q] that the figure is made of: one, or one for each pole.
        by_query: The value of each query.
        over_ties: Each query's expectation over the orders of tied documents; None where that is not known.
        undefined: Number of queries that should have a value but do not.
        tie_mean: Expectation of the figure over the orders of tied documents; ``tie_range``: the smallest and largest.
        expected: A figure that is no mean of the values: the expectation of an absolute value over random orders.
        interval: The figure's interval, where it is not that of the mean of the values.
        greatest: The largest size that a query's value can have; None where that is not known.
        order_variances: Of a weighted sum over ranks, the variance [Q] of each query's value over random orders.
        known: With labels, how many of the rows that the measure looks at are known; ``known_queries``: in how many
            queries it looks at a labelled document.
        bounds: The smallest and largest figure over every way to label the unknown, where that is exact.
        undecidable_reason: Why nothing can be told of a figure that documents without a label could change; None of
            others.
        from_labels: Of a figure that is estimated from labels that were drawn, what they make of it.
    """

    measure: Measure
    parts: tuple[Array, ...]
    by_query: QueryValues
    over_ties: QueryValues | None = None
    undefined: int = 0
    tie_mean: float | None = None
    tie_range: Interval | None = None
    expected: float | None = None
    interval: Interval | None = None
    greatest: float | None = None
    order_variances: Array | None = None
    known: Known | None = None
    known_queries: int | None = None
    bounds: Interval | None = None
    undecidable_reason: str | None = None
    from_labels: FromLabels | None = None

    @property
    def how(self) -> RunMeasure:
        """How the measure is computed."""
        return resolve(self.measure)

    @property
    def reach(self) -> float | None:
        """The farthest from 0 that a query's value can be; None where that is not known."""
        return self.greatest if self.greatest is not None and np.isfinite(self.greatest) else None

    @property
    def figure(self) -> float:
        """The figure of the parts; NaN if one has no value."""
        means = [self.by_query.mean] if len(self.parts) == 1 else map(mean_of, self.parts)
        return float(self.how.combine([np.asarray(np.nan if mean is None else mean) for mean in means]))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunValues:
    """A ranking's values on all measures of an audit.

    Attributes:
        queries: Number of the ranking's queries.
        measures: Its values by the measure's text.
        tie_share: Share of the documents in the first 10 ranks that are tied.
        lengths: How many documents each query [Q] has; NaN where the ranking lacks it.
        absent: Number of judged queries that the ranking lacks.
        unjudged: How many of its first documents, as many as the first measure of effectiveness looks at, have no
            judgement; None without qrels and of references.
        lacking: The documents without text; not said again of a reference ranking.
        labels: The labels of its first 10 ranks; None without labels.
    """

    name: str
    queries: int
    measures: dict[str, MeasureValues]
    tie_share: float
    lengths: Array = field(repr=False)
    absent: int = 0
    unjudged: Unjudged | None = None
    lacking: Lacking | None = None
    labels: KnownLabels | None = None

    def __getitem__(self, measure: Measure) -> MeasureValues:
        return self.measures[str(measure)]

    @property
    def has(self) -> Array:
        """Which queries [Q] it has."""
        has: Array = ~np.isnan(self.lengths)
        return has


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
    measures: Sequence[Measure],
    axis: pl.Series,
    *,
    over: Over | None = None,
    lacking: Lacking | None = None,
    clusters: Array | None = None,
) -> RunValues:
    """A run's values on all measures; with ``over``, their expectation over orders of its candidates.

    ``clusters`` [Q]: the queries' clusters.
    """
    absent = 0
    if evaluation.qrels is not None:
        absent = int((~evaluation.judged.is_in(evaluation.queries.implode())).sum())
    return RunValues(
        name=name,
        queries=len(evaluation.queries),
        measures={
            str(measure): _measure(evaluation, measure, axis, clusters, over, ideal=name == NEUTRAL_FIRST)
            for measure in measures
        },
        tie_share=0.0 if over else evaluation.scored_lists.tie_share(SHOWN_DEPTH),
        lengths=place_values(evaluation.lists.lengths, evaluation.queries, axis),
        absent=absent,
        unjudged=None if over else unjudged_documents(evaluation, _reach(measures)),
        lacking=lacking,
        labels=known_labels(evaluation) if not over else None,
    )


def _reach(measures: Sequence[Measure]) -> int:
    """The cutoff of the first measure of effectiveness that has one, else 10."""
    cutoffs = (measure.params.get("cutoff") for measure in measures if not is_bias(measure))
    return next((cutoff for cutoff in cutoffs if cutoff is not None), SHOWN_DEPTH)


def unjudged_documents(evaluation: Evaluation, depth: int) -> Unjudged | None:
    """How many of the first ``depth`` documents of the judged queries have no judgement; None without qrels."""
    qrels = evaluation.qrels
    if qrels is None:
        return None
    first = evaluation.first(depth).filter(pl.col("query_id").is_in(qrels["query_id"].unique().implode()))
    unjudged = first.join(qrels, on=["query_id", "doc_id"], how="anti")
    return Unjudged(depth, first.height, unjudged.height)


def _measure(
    evaluation: JoinedRun,
    measure: Measure,
    axis: pl.Series,
    clusters: Array | None,
    over: Over | None,
    *,
    ideal: bool,
) -> MeasureValues:
    """A run's values on a measure; ``ideal``: it is the neutral-first order."""
    how = resolve(measure)
    labels = _Labels()
    sample: LabelSample | None = None
    over_ties_sample: LabelSample | None = None
    of_pairs = None if is_bias(measure) else evaluation.drawn_pairs
    if of_pairs is not None:
        form = linear_form(measure)
        if form is None:
            raise not_estimable(measure)
        evaluation, how = of_pairs, form
    if isinstance(how, BiasMeasure) and evaluation.group_table is not None and evaluation.group_table.labelled:
        labels = _labels(evaluation, how, over, ideal=ideal)
        # Of no labelled document there is no figure: neither 0 nor 1.
        if labels.known is None or labels.known.rows == 0 or _is_unknown(evaluation, how, over):
            return _undefined(evaluation, measure, how, len(axis), clusters, labels)
        sample, over_ties_sample = _samples(evaluation, how, over, axis)
    queries = how.queries(evaluation)
    own = _parts(how, evaluation, over)
    parts = tuple(place_values(part, queries, axis) for part in own)
    if of_pairs is not None:
        # A run that lacks a query shows nothing relevant for it.
        lacks = ~axis.is_in(queries.implode()).to_numpy()
        parts = tuple(np.where(lacks, 0.0, part) for part in parts)
    values = QueryValues(how.per_query(parts), clusters, sample)
    tie_mean, tie_range, expected = None, None, None
    greatest, variances = greatest_value(measure), None
    if not over:
        of_ties = how.ties(evaluation)
        # The range of estimates is not that of the figure.
        tie_mean, tie_range = of_ties.mean, None if sample is not None else of_ties.range
        if of_ties.expected is not None:
            placed = place_values(of_ties.expected, queries, axis)
            expected = QueryValues(placed, clusters, over_ties_sample or sample)
        if isinstance(how, LinearMeasure):
            greatest = how.greatest(evaluation) if greatest is None else greatest
            if is_linear(measure) and sample is None:
                variances = place_values(how.order_variance(evaluation), queries, axis)
    return MeasureValues(
        measure=measure,
        parts=parts,
        by_query=values,
        over_ties=expected,
        undefined=int(np.isnan(own).all(axis=0).sum()),
        tie_mean=tie_mean,
        tie_range=tie_range,
        expected=how.figure_over(evaluation, over) if over else None,
        interval=None if over else how.interval(evaluation),
        greatest=greatest,
        order_variances=variances,
        known=labels.known,
        known_queries=labels.known_queries,
        bounds=labels.bounds,
        undecidable_reason=labels.undecidable_reason(sample is not None),
        from_labels=None if sample is None else _from_labels(sample, values.values, evaluation, how, over),
    )


def _undefined(
    evaluation: JoinedRun, measure: Measure, how: RunMeasure, queries: int, clusters: Array | None, labels: _Labels
) -> MeasureValues:
    """A measure of which only bounds are known. Raises EvenrankError for one that the labels have no values for."""
    if isinstance(how, LinearMeasure):
        how.documents(evaluation.required_table, np.zeros(0, dtype=np.int64))
    nothing = np.full(queries, np.nan)
    return MeasureValues(
        measure=measure,
        parts=(nothing,) * how.part_count,
        by_query=QueryValues(nothing, clusters),
        greatest=greatest_value(measure),
        known=labels.known,
        known_queries=labels.known_queries,
        bounds=labels.bounds,
        undecidable_reason=labels.undecidable_reason(False),
    )


def _parts(how: RunMeasure, run: JoinedRun, over: Over | None) -> tuple[Array, ...]:
    """The arrays that a figure is made of."""
    return how.parts_by_relevance(run) if over == "relevance" else how.parts(run, random=over == "random")


# --- labels ----------------------------------------------------------------------------------------------------------


class _Labels(NamedTuple):
    """What is known of the labels that a measure looks at.

    ``only_known``: documents without a label are left out; ``of_labelled``: the figure is of the labelled part of the
    background, be all documents known that it looks at.
    """

    known: Known | None = None
    known_queries: int | None = None
    bounds: Interval | None = None
    only_known: bool = False
    of_labelled: bool = False

    def undecidable_reason(self, estimated: bool) -> str | None:
        """Why nothing can be told, if documents without a label could change the figure and it is not ``estimated``."""
        known, rows = self.known or (0, 0)
        if not self.of_labelled and (known == rows or estimated):
            return None
        return ONLY_KNOWN if self.only_known else PARTLY


def _labels(evaluation: JoinedRun, how: RunMeasure, over: Over | None, *, ideal: bool) -> _Labels:
    """How many of the rows that a measure looks at are known, and its bounds."""
    known = _known_rows(how, evaluation, over)
    background = evaluation.background
    lacks = background is not None and background.lacks_labels
    ends: Interval | None = None
    # Of whole lists, they take a while: not where they would be the figure itself, or beside estimates.
    sampled = evaluation.required_table.sample is not None
    if evaluation.missing == "bounds" and not (over and (known.all() or sampled)):
        if over == "relevance":
            bounds = how.label_bounds_by_relevance(evaluation)
        else:
            bounds = how.label_bounds(evaluation, random=over == "random")
        low, high = (None, None) if bounds is None else map(mean_of, bounds)
        ends = None if low is None or high is None else how.bounds_of_figure((low, high))
    return _Labels(
        Known(int(known.sum()), len(known)),
        _known_queries(how, evaluation, over),
        ends,
        evaluation.missing == "skip",
        lacks and (ideal or type(how).needs_background),
    )


def _samples(
    evaluation: JoinedRun, how: RunMeasure, over: Over | None, axis: pl.Series
) -> tuple[LabelSample | None, LabelSample | None]:
    """What values that are estimated owe to labels that were drawn, and what their expectations over ties do."""
    if not isinstance(how, LinearMeasure) or not how.estimated(evaluation):
        return None, None
    places = _places(evaluation.queries, axis)

    def placed(part: LabelSample) -> LabelSample:
        return replace(part, query=places[part.query])

    own = placed(how.design_term(evaluation, over=over))
    return own, None if over else placed(how.design_term(evaluation, tied=True))


def _from_labels(
    sample: LabelSample, values: Array, evaluation: JoinedRun, how: RunMeasure, over: Over | None
) -> FromLabels:
    """What drawn labels make of a figure, what they would without the guess, and what the guess says without them."""
    labels, ends = len(np.unique(sample.document)), _these_queries(sample, values)
    alone = None if over else evaluation.without_guess()
    if alone is None or not isinstance(how, LinearMeasure):
        return FromLabels(labels, ends)
    without = _these_queries(how.design_term(alone), how.values(alone))
    return FromLabels(labels, ends, mean_of(how.guess_values(evaluation)), without)


def _these_queries(sample: LabelSample, values: Array) -> Interval | None:
    """The interval of a mean for these queries alone; None where nothing is left to chance."""
    mean = finite_population_mean(sample, values)
    return confidence_interval(mean) if mean.se else None


def _is_unknown(evaluation: JoinedRun, how: RunMeasure, over: Over | None) -> bool:
    """Whether a measure depends on documents without a label, which are neither left out nor counted as neutral."""
    if evaluation.missing != "bounds":
        return False
    background = evaluation.background
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


def known_labels(evaluation: Evaluation) -> KnownLabels | None:
    """The labels of a run's first ranks; None without labels."""
    table = evaluation.group_table
    if table is None or not table.labelled:
        return None
    places, _ = expand(evaluation.lists.offsets[:-1], np.minimum(evaluation.lists.lengths, SHOWN_DEPTH))
    rows = evaluation.document[places]
    labelled = rows[rows >= 0]
    groups = {group: float(table.weight(group, labelled).sum()) for group in table.groups}
    return KnownLabels(SHOWN_DEPTH, len(rows), len(labelled), groups, round(len(labelled) - sum(groups.values()), 9))
