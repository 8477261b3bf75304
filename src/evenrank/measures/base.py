"""What every measure can do; measures that are weighted sums over ranks, and absolute values of signed ones.

Also their values on the candidates by falling grade, which are what an ideal ranker would show. Few documents are
graded, so most of such a list is one block whose order nobody knows: in expectation each of its ranks has the mean of
the block. The sorted lists themselves are made only for measures that are not linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import polars as pl
from ir_measures import Measure
from ir_measures.measures import ParamInfo
from ir_measures.measures.base import Agg

from evenrank.files.errors import EvenrankError
from evenrank.files.types import EQUAL, Array
from evenrank.groups.table import MAGNITUDES, GroupTable
from evenrank.stats.clusters import ZERO
from evenrank.stats.sampling import FOLDS, Estimates, LabelSample, difference_estimates

from .joined import TIE_DRAWS, JoinedRun
from .ranked_lists import Column, count_within, expand, number_within


def means_by_relevance(run: JoinedRun, column: Column, depth: int) -> Array:
    """The expected value [Q, depth] at the first ranks of each list by falling grade; 0 where a list is shorter.

    ``column``: the values of the documents that bias measures look at. A document without a positive grade has grade 0.
    """
    lists = run.scored_lists
    place, query, grade = _graded(run)
    order = np.lexsort((-grade, query))
    place, query, grade = place[order], query[order], grade[order]
    left = lists.lengths - np.bincount(query, minlength=len(lists.lengths))
    others = column.means(lists) * lists.lengths - np.bincount(query, column[place], minlength=len(lists.lengths))
    rest = np.divide(others, left, out=np.zeros(len(left)), where=left > 0)
    top = np.where(np.arange(depth) < lists.lengths[:, None], rest[:, None], 0.0)
    if not len(place):
        return top
    rank = number_within(query)
    block = np.cumsum(number_within(query, grade) == 0) - 1
    mean = np.bincount(block, column[place])[block] / count_within(query, grade)
    inside = rank < depth
    top[query[inside], rank[inside]] = mean[inside]
    return top


def _graded(run: JoinedRun) -> tuple[Array, Array, Array]:
    """Place, list and grade of the documents with a positive grade, among those that bias measures look at."""
    place, grade = run.graded_rows["row"].cast(pl.Int64).to_numpy(), run.graded_rows["relevance"].to_numpy()
    if run.kept is not None:
        new = np.searchsorted(run.kept, place)
        known = np.searchsorted(run.kept, place, side="right") > new
        place, grade = new[known], grade[known]
    return place, run.scored_lists.query_of(place), grade


def relevance_first(run: JoinedRun) -> JoinedRun:
    """The same candidates by falling grade, those of equal grade tied."""
    if run.by_relevance is None:
        of_place = np.zeros(len(run.lists.scores))
        of_place[run.graded_rows["row"].to_numpy()] = run.graded_rows["relevance"].to_numpy()
        order = run.lists.falling(np.unique(of_place, return_inverse=True)[1].astype(np.int32))
        run.by_relevance = run.in_order(order, of_place[order])
    return run.by_relevance


Better = Literal["higher", "nearer zero"]
Over = Literal["random", "relevance"]
"""What an expectation is over: random orders of the candidates, or orders by falling grade."""
Construct = Literal["lean", "neutrality", "exposure", "other"]
"""What a measure of bias measures, which decides the words for a difference; "other": it has no words of its own."""

CUTOFF = ParamInfo(dtype=int, required=True, desc="ranking cutoff")
MAGNITUDE = ParamInfo(dtype=str, choices=list(MAGNITUDES), default="tf", desc="group magnitude")
POLES = ParamInfo(dtype=str, default=None, desc="groups to compare, 'A,B', positive first; B may be 'rest'")


@dataclass(frozen=True, slots=True)
class TieFigures:
    """Mean and range of a run's figure over the orders of tied documents.

    ``expected`` [Q]: each query's expectation over the orders of tied documents (None for a figure without one);
    ``mean``: the figure's expectation; ``range``: its smallest and largest value. None if undefined or unknown.
    """

    expected: Array | None
    mean: float | None
    range: tuple[float, float] | None


def tie_figures(expected: Array, low: Array, high: Array, *, given: Array | None = None) -> TieFigures:
    """Mean and range of a mean over the orders of ties, from each query's expectation and extremes [Q].

    ``given`` [Q]: the values in the run's order, where a query can have one in some orders only. All figures are then
    of the queries that have one there, as the run's mean is, and the range holds it.
    """
    if given is not None:
        # Where the value is NaN, the ends become so too.
        expected, low, high = (
            np.where(np.isnan(given), np.nan, expected),
            np.minimum(low, given),
            np.maximum(high, given),
        )
    mean, least, most = (mean_of(ends) for ends in (expected, low, high))
    if mean is None or least is None or most is None:
        return TieFigures(expected, mean, None)
    # A mean of equal values is no other value.
    return TieFigures(expected, min(max(mean, least), most), (least, most))


class RunMeasure:
    """How a measure is computed from a :class:`JoinedRun`.

    A run's figure is made of *parts*: one array of values per query, or several (ΔA-PRF has one for each pole).
    :meth:`combine` takes the parts' means to the figure, and so does it with their bootstrap means.

    ``better``: which change is an improvement; ``construct``: what a measure of bias measures; ``whole_run``: a figure
    of the run as a whole rather than a mean over queries; ``signed``: the sign of a value says towards which pole;
    ``drawn``: what ties do to it is drawn rather than computed; ``undirected``: neither a larger nor a smaller value is
    better by itself; ``least`` and ``most``: no value is beyond, ``reach``: none is larger but for documents that the
    background lacks; ``meaning``: one sentence for readers of a report.
    """

    better: Better = "higher"
    construct: Construct = "other"
    whole_run = False
    signed = False
    needs_qrels = False
    needs_background = False
    part_count = 1
    drawn = False
    undirected = False
    least, most = -np.inf, np.inf
    reach: float | None = None
    meaning = ""

    def queries(self, run: JoinedRun) -> pl.Series:
        """The ids [Q] of the queries that the values belong to."""
        return run.queries

    def values(self, run: JoinedRun) -> Array:
        """The value [Q] of each query; NaN is undefined."""
        raise NotImplementedError

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The expectation [Q] of each query's value over the orders of its tied documents.

        ``random``: over random orders of all its candidates.
        """
        raise NotImplementedError

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The smallest and the largest value [Q] of each query over the orders of its tied documents."""
        raise NotImplementedError

    def label_bounds(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, Array] | None:
        """The least and the largest value [Q], all at once, over every way to label the unknown; None if not known."""
        return None

    def bounds_of_figure(self, ends: tuple[float, float]) -> tuple[float, float]:
        """The figure's bounds from those of the mean of the values."""
        return ends

    def interval(self, run: JoinedRun) -> tuple[float, float] | None:
        """The figure's 95% interval, where it is not that of the mean of the values."""
        return None

    def looked_at(self, run: JoinedRun) -> Array | None:
        """The places of the documents that the values depend on; None: all of them."""
        cutoff = self.params.get("cutoff") if isinstance(self, Measure) else None
        if cutoff is None:
            return None
        places, _ = expand(run.lists.offsets[:-1], np.minimum(run.lists.lengths, cutoff))
        return places

    def parts(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, ...]:
        """The arrays [Q] that the figure is made of; ``random``: their expectation over random orders."""
        return (self.expected(run, random=True) if random else self.values(run),)

    def per_query(self, parts: Sequence[Array]) -> Array:
        """Each query's value [Q] from the parts."""
        return parts[0]

    def combine(self, means: Sequence[Array]) -> Array:
        """The run's figure from the means of its parts, or figures [...] from as many means [...]."""
        return self.per_query(means)

    def figure(self, parts: Sequence[Array]) -> float:
        """The run's figure; NaN if a part has no value."""
        means = map(mean_of, parts)
        return float(self.combine([np.asarray(np.nan if mean is None else mean) for mean in means]))

    def by_relevance(self, run: JoinedRun) -> Array:
        """The expectation [Q] of each query's value with its candidates by falling grade, equal grades in any order."""
        return self.expected(relevance_first(run))

    def parts_by_relevance(self, run: JoinedRun) -> tuple[Array, ...]:
        """The arrays [Q] that the figure is made of, in the expectation of :meth:`by_relevance`."""
        return (self.by_relevance(run),)

    def figure_over(self, run: JoinedRun, over: Over) -> float | None:
        """The figure's expectation over these orders; None if it is that of the expected parts."""
        return None

    def label_bounds_by_relevance(self, run: JoinedRun) -> tuple[Array, Array] | None:
        """As :meth:`label_bounds`, with the candidates by falling grade."""
        return None

    def ties(self, run: JoinedRun) -> TieFigures:
        """What ties do to the run's figure."""
        return tie_figures(self.expected(run), *self.bounds(run))


class FigureOfParts(Agg):  # type: ignore[misc]
    """Collects a measure's values in ir_measures: undefined ones are skipped, where ir_measures would count 0."""

    def __init__(self, measure: RunMeasure) -> None:
        self.measure = measure
        self.parts: dict[int, list[float]] = {}

    def add(self, value: float) -> None:
        """Takes a query's value (see :class:`PartValue`); NaN is undefined."""
        part = value.part if isinstance(value, PartValue) else 0
        if not np.isnan(value):
            self.parts.setdefault(part, []).append(float(value))

    def result(self) -> float:
        """The run's figure; NaN if a part has no value."""
        return self.measure.figure([np.array(self.parts.get(part, [])) for part in range(self.measure.part_count)])


class PartValue(float):
    """A query's value in one of several parts of a figure."""

    part: int

    def __new__(cls, value: float, part: int) -> PartValue:
        self = super().__new__(cls, value)
        self.part = part
        return self


class BiasMeasure(Measure, RunMeasure):  # type: ignore[misc]
    """A measure of how a ranking treats groups, computed from a group table.

    A subclass writes :meth:`values` and says which change is ``better``; all else follows. What ties and the reference
    rankings make of it is drawn in 200 random orders; with ``least`` and ``most``, what unknown labels could is
    bounded. It names itself (``__name__``, ``NAME``, ``PRETTY_NAME``; ``SPELLED`` in letters alone if the name has
    others) and its parameters (``SUPPORTED_PARAMS``); its docstring is its page in the documentation.
    """

    DEFAULT = float("nan")
    SPELLED: str | None = None
    better: Better = "nearer zero"

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The mean [Q] over 200 random orders of tied documents (``random``: of all candidates)."""
        return self.over_orders(run, random=random)[0]

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The smallest and the largest value [Q] in the run's order and 200 random ones of tied documents."""
        return self.over_orders(run)[1:]

    def over_orders(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, Array, Array]:
        """Mean, smallest and largest value [Q] in 200 random orders, and in the run's own one unless ``random``.

        The mean is of the orders that have a value.
        """
        key = (self, random)
        if key not in run.over_orders:
            drawn = np.stack([self.values(order) for order in run.orders(random=random)])
            ends = drawn if random else np.vstack([drawn, self.values(run)])
            defined = ~np.isnan(drawn)
            count = np.maximum(defined.sum(axis=0), 1)
            mean = np.where(defined.any(axis=0), np.where(defined, drawn, 0.0).sum(axis=0) / count, np.nan)
            low, high = np.fmin.reduce(ends), np.fmax.reduce(ends)
            # A mean of equal values is no other value.
            run.over_orders[key] = np.where(np.isnan(mean), low, np.clip(mean, low, high)), low, high
        return run.over_orders[key]

    def figure_draws(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The figure, before any absolute value, in each of 200 random orders of tied documents (or all candidates)."""
        orders = (self.parts(order) for order in run.orders(random=random))
        return np.array([self.per_query([np.asarray(np.nanmean(part)) for part in parts]) for parts in orders])

    def label_bounds(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, Array] | None:
        """The value [Q], or ``least`` and ``most`` where a document that it looks at has no label."""
        alone = self.part_count == 1 and not (self.whole_run or self.needs_background)
        if random or not alone or not np.isfinite([self.least, self.most]).all():
            return None
        places = self.looked_at(run)
        places = np.arange(len(run.document)) if places is None else places
        open_ended = np.zeros(len(run.queries), dtype=bool)
        open_ended[run.lists.query_of(places[run.document[places] < 0])] = True
        values = self.values(run)
        return np.where(open_ended, self.least, values), np.where(open_ended, self.most, values)

    def aggregator(self) -> FigureOfParts:
        """Collects per-query values in ir_measures."""
        return FigureOfParts(self)

    def ties(self, run: JoinedRun) -> TieFigures:
        """What ties do to the run's figure, of the queries that have a value in the run's order."""
        return tie_figures(self.expected(run), *self.bounds(run), given=self.values(run))

    @property
    def poles(self) -> tuple[str, str] | None:
        """The poles that the parameter ``poles`` names; None means those of the group table."""
        text = self["poles"]
        if text is None:
            return None
        first, _, second = (part.strip() for part in text.partition(","))
        return first, second


def mean_of(values: Array) -> float | None:
    """The mean of the values [Q] that are defined; None if none is."""
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else None


class AbsoluteFigure(BiasMeasure):
    """The absolute value of the figure of the measure that it is mixed with; queries keep their signed values."""

    whole_run = True
    signed = False
    drawn = True

    def combine(self, means: Sequence[Array]) -> Array:
        """The absolute value of the signed figure."""
        return np.abs(self.per_query(means))

    def ties(self, run: JoinedRun) -> TieFigures:
        """Mean and range of the absolute value over the orders of tied documents."""
        signed = super().ties(run)
        if signed.range is None:
            return signed
        least, most = self.bounds_of_figure(signed.range)
        mean = float(np.mean(np.abs(self.figure_draws(run))))
        return TieFigures(signed.expected, min(max(mean, least), most), (least, most))

    def bounds_of_figure(self, ends: tuple[float, float]) -> tuple[float, float]:
        """From 0, if the signed figure can have either sign, to the larger absolute value."""
        least, most = sorted(map(abs, ends))
        return (0.0 if ends[0] <= 0 <= ends[1] else least), most

    def figure_over(self, run: JoinedRun, over: Over) -> float | None:
        """The mean absolute value over 200 random orders of the candidates, or of those of equal grade."""
        ordered, random = (run, True) if over == "random" else (relevance_first(run), False)
        return float(np.mean(np.abs(self.figure_draws(ordered, random=random))))


class LinearMeasure(BiasMeasure):
    """A measure that is a weighted sum over ranks of a value of each document; most built-in measures are one.

    A subclass provides :meth:`weights` and :meth:`documents`; ties, the reference rankings, intervals and tests follow
    from them. :func:`evenrank.measures.add_measure` makes it known by name.
    ``unknown``: the value of a document that the group table lacks (``missing="neutral"``).
    """

    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {"cutoff": CUTOFF}
    unknown = 0.0

    def weights(self, lengths: Array, depth: int) -> Array:
        """The weight [Q, depth] of each rank, for lists of ``lengths`` [Q]; 0 if a list has no such rank.

        Weights may not grow with the rank. ``depth``: the cutoff, or the length of the longest list if that is smaller.
        """
        raise NotImplementedError

    def documents(self, table: GroupTable, rows: Array) -> Array:
        """The value [N] of each of the ``rows`` [N] of a group table, which are asked for in parts."""
        raise NotImplementedError

    def column(self, run: JoinedRun) -> Column:
        """The documents' values in a run, computed only where they are needed."""
        return run.column(self, lambda rows: self.documents(run.required_table, rows), self.unknown)

    def scale(self, run: JoinedRun) -> Array:
        """A factor [Q] of each query's sum; NaN for an empty list."""
        return np.where(run.scored_lists.lengths > 0, 1.0, np.nan)

    def _weights(self, run: JoinedRun) -> Array:
        """The weights [Q or 1, k] of the ranks."""
        lengths = run.scored_lists.lengths
        # No weight beyond the longest list is needed; ARaB's do not change by the cut.
        depth = max(1, min(self["cutoff"], int(lengths.max(initial=1))))
        # If all lists reach the cutoff, their weights are the same.
        same = int(lengths.min(initial=depth)) >= depth
        weights = self.weights(lengths[:1] if same else lengths, depth)
        # The range over the orders of tied documents relies on it.
        if (np.diff(weights, axis=1) > EQUAL).any():
            raise EvenrankError(f"{self}: weights may not grow with the rank; write `values` of a BiasMeasure instead")
        return weights

    def _terms(self, run: JoinedRun) -> tuple[Array, Array, Column]:
        """Weights [Q or 1, k] of the ranks, factor [Q] of each query, values [N'] of the documents."""
        if not self.estimated(run):
            return self._weights(run), self.scale(run), self.column(run)
        values = self._estimates(run).values
        column = run.column((self, "estimated"), lambda rows: values[rows], np.nan, run.could_be_drawn)
        return self._weights(run), self.scale(run), column

    def estimated(self, run: JoinedRun) -> bool:
        """Whether values are estimated from labels that were drawn, where a sum over ranks of the labels' values is."""
        table = run.group_table
        plain = not (self.drawn or self.needs_background)
        return table is not None and table.sample is not None and plain and self.label_range(table) is not None

    def _estimates(self, run: JoinedRun) -> Estimates:
        if self not in run.estimates:
            table, sample = run.required_table, run.required_table.sample
            assert sample is not None
            rows, fold = sample.rows, (sample.documents.hash(seed=1) % FOLDS).to_numpy()
            label = self.documents(table, sample.labelled[rows])
            guess, chance = sample.guesses(self.documents), sample.probability[rows]
            run.estimates[self] = difference_estimates(guess, fold, rows, label, chance)
        return run.estimates[self]

    def place_weights(self, run: JoinedRun, places: Array, *, tied: bool = False) -> tuple[Array, Array]:
        """The query and the weight [n] of documents, given by their places in the lists, in a query's value.

        ``tied``: the mean weight of the ranks that a document may have, as in the expectation over the orders of ties.
        """
        lists, weights = run.scored_lists, self._weights(run)
        scale = np.nan_to_num(self.scale(run))
        query = lists.query_of(places)
        start, size = lists.tie_of(places) if tied else (places, np.ones_like(places))
        first, depth = start - lists.offsets[query], weights.shape[1]
        sums = np.cumsum(np.pad(weights, ((0, 0), (1, 0))), axis=1)
        row = query if len(sums) > 1 else np.zeros_like(query)
        total = sums[row, np.minimum(first + size, depth)] - sums[row, np.minimum(first, depth)]
        return query, total / size * scale[query]

    def design_term(self, run: JoinedRun, *, tied: bool = False, over: Over | None = None) -> LabelSample:
        """Sampling error of the values from sampled labels; ``tied``: of their expectations over the orders of ties.

        ``over``: of those over random orders, or by falling grade.
        """
        if over == "relevance":
            return self.design_term(relevance_first(run), tied=True)
        if over == "random":
            places = np.arange(len(run.scored_lists.scores))
            return self.design_term(run.in_order(places, np.zeros(len(places))), tied=True)
        sample = run.required_table.sample
        assert sample is not None
        number = np.full(len(sample.documents) + 1, -1)
        number[sample.rows] = np.arange(len(sample.rows))
        # The last, of documents that could not be drawn.
        drawn = number[np.asarray(run.could_be_drawn.rows[:])]
        places = np.flatnonzero(drawn >= 0)
        query, weight = self.place_weights(run, places, tied=tied)
        seen = weight != 0
        estimates, chance = self._estimates(run), sample.probability[sample.rows]
        return LabelSample(query[seen], drawn[places[seen]], weight[seen], estimates.residual, chance)

    def guess_values(self, run: JoinedRun) -> Array:
        """The value [Q] of each query by the guess alone, where labels were drawn."""
        weights, scale, guess = self._weights(run), self.scale(run), self._estimates(run).guess
        column = run.column((self, "guess"), lambda rows: guess[rows], np.nan, run.could_be_drawn)
        return _sums(weights, column.first(run.scored_lists, weights.shape[1])) * scale

    def values(self, run: JoinedRun) -> Array:
        """The value [Q] of each query; NaN is undefined.

        Raises EvenrankError where labels were drawn, but not for a document that it looks at.
        """
        weights, scale, column = self._terms(run)
        if (
            self.estimated(run)
            and (run.could_be_drawn.first(run.lists, weights.shape[1])[_inside(run, weights)] < 0).any()
        ):
            raise EvenrankError(f"{self} looks at documents that could not be drawn when the labels were")
        return _sums(weights, column.first(run.scored_lists, weights.shape[1])) * scale

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The exact expectation [Q] of each query's value over the orders of tied documents, or random orders."""
        weights, scale, column = self._terms(run)
        lists = run.scored_lists
        if random:
            # The expectation at every rank is the mean of the list.
            averaged: Array = weights.sum(axis=1) * column.means(lists) * scale
            return averaged
        return _sums(weights, lists.tie_average(column, weights.shape[1])) * scale

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The smallest and the largest value [Q] of each query over the orders of its tied documents."""
        weights, scale, column = self._terms(run)
        low, high = (
            _sums(weights, run.scored_lists.tie_sorted(column, weights.shape[1], largest_first=largest)) * scale
            for largest in (False, True)
        )
        return low, high

    def by_relevance(self, run: JoinedRun) -> Array:
        """The exact expectation [Q] by falling grade: of few graded documents' values and the mean of the others."""
        if self.drawn:
            return super().by_relevance(run)
        weights, scale, column = self._terms(run)
        return _sums(weights, means_by_relevance(run, column, weights.shape[1])) * scale

    def greatest(self, run: JoinedRun) -> float | None:
        """The largest size that a query's value can have with documents of the collection.

        None where that is not known: the documents of the run alone do not bound what another query finds.
        """
        extreme = run.required_table.extreme_documents()
        if extreme is None:
            return None
        weights, scale = self._weights(run), self.scale(run)
        of_ranks = float(np.nanmax(np.abs(weights).sum(axis=1) * scale, initial=0.0))
        sizes = np.abs(self.documents(extreme, np.arange(extreme.table.height)))
        return float(np.nanmax(sizes, initial=abs(self.unknown))) * of_ranks

    def order_variance(self, run: JoinedRun) -> Array:
        """The variance [Q] of each query's value over random orders of its N candidates; NaN for an empty list.

        v = [Σw² − (Σw)²/N] · Σ(g − ḡ)²/(N − 1), with w the weights of the ranks, 0 below the cutoff, and g the
        documents' values: the variance of a permutation statistic.
        """
        weights, scale, column = self._terms(run)
        lists = run.scored_lists
        n = lists.lengths.astype(np.float64)
        table = run.required_table
        squares = run.column((self, "squares"), lambda rows: self.documents(table, rows) ** 2, self.unknown**2)
        mean_squares, rank_squares = squares.means(lists), (weights**2).sum(axis=1)
        of_documents = mean_squares - column.means(lists) ** 2
        of_ranks = rank_squares - weights.sum(axis=1) ** 2 / np.maximum(n, 1)
        # What is left of equal values, or of equal weights, is rounding, whose root would not be.
        varies = (of_documents > ZERO * mean_squares) & (of_ranks > ZERO * rank_squares)
        variance: Array = np.where(varies, of_ranks * of_documents * n / np.maximum(n - 1, 1), 0.0) * scale**2
        return variance

    def label_range(self, table: GroupTable) -> tuple[float, float] | None:
        """The smallest and the largest value of a document over all labels; None if the bounds are not known."""
        return None

    def _at_ends(self, run: JoinedRun) -> tuple[Column, Column] | None:
        """The values of the documents with all unknown ones at one end, and at the other."""
        ends, known, table = self.label_range(run.required_table), run.scored_rows, run.required_table
        if ends is None:
            return None
        low, high = (Column(lambda rows: self.documents(table, rows), known, end) for end in ends)
        return low, high

    def label_bounds_by_relevance(self, run: JoinedRun) -> tuple[Array, Array] | None:
        """As :meth:`label_bounds`, with the candidates by falling grade."""
        ends = None if self.drawn else self._at_ends(run)
        if ends is None:
            return None
        weights, scale = self._weights(run), self.scale(run)
        low, high = (_sums(weights, means_by_relevance(run, end, weights.shape[1])) * scale for end in ends)
        return low, high

    def label_bounds(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, Array] | None:
        """Bounds [Q] with all unknown documents at one end, and at the other."""
        ends = self._at_ends(run)
        if ends is None:
            return None
        weights, scale = self._weights(run), self.scale(run)
        low, high = ends
        if random:
            total, lists = weights.sum(axis=1) * scale, run.scored_lists
            return total * low.means(lists), total * high.means(lists)
        first, last = (column.first(run.scored_lists, weights.shape[1]) for column in (low, high))
        return _sums(weights, first) * scale, _sums(weights, last) * scale

    def draws(self, run: JoinedRun, *, random: bool = False) -> list[Array]:
        """Weighted sums [Q] in each of 200 random orders of tied documents (``random``: of all candidates)."""
        weights, scale, column = self._terms(run)
        lists = run.scored_lists.all_tied() if random else run.scored_lists
        rng = np.random.default_rng(run.seed)
        count = TIE_DRAWS if lists.tied else 1
        return [_sums(weights, lists.tie_draw(column, weights.shape[1], rng)) * scale for _ in range(count)]

    def figure_draws(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The mean over queries in each of 200 random orders of tied documents (``random``: of all candidates)."""
        return np.array([np.nanmean(draw) for draw in self.draws(run, random=random)])

    def document_weights(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The weight of each document [D] of the group table: Σ weight × value is the figure, if all are known.

        ``random``: in the expectation over random orders of the same candidates.
        """
        weights, scale = self._weights(run), self.scale(run)
        defined = ~np.isnan(scale)
        # An average over the queries that have a value, as the run's figure is.
        weights = weights * np.where(defined, scale, 0.0)[:, None] / max(1, int(defined.sum()))
        return run.spread(weights, random=random)


def _inside(run: JoinedRun, weights: Array) -> Array:
    """Which of the first ranks [Q, k] lists have, and a measure gives a weight."""
    here: Array = (np.arange(weights.shape[1]) < run.lists.lengths[:, None]) & (weights > 0)
    return here


def _sums(weights: Array, values: Array) -> Array:
    """Σ over ranks of weight × value: [Q] from weights [Q, k] or [1, k] and values [Q, k]."""
    # One way for both: sums that differ in the last bit would look like differences between runs.
    sums: Array = np.einsum("qk,qk->q", np.broadcast_to(weights, values.shape), values)
    return sums
