"""Measures that are weighted sums over ranks of a value of each document."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.groups.table import GroupTable
from evenrank.io.types import Array

from .base import CUTOFF, TIE_DRAWS, BiasMeasure
from .by_relevance import means_by_relevance
from .joined import JoinedRun
from .lazy import Column


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

    def _terms(self, run: JoinedRun) -> tuple[Array, Array, Column]:
        """Weights [Q or 1, k] of the ranks, factor [Q] of each query, values [N'] of the documents."""
        lengths = run.scored_lists.lengths
        # No weight beyond the longest list is needed; ARaB's do not change by the cut.
        depth = max(1, min(self["cutoff"], int(lengths.max(initial=1))))
        # If all lists reach the cutoff, their weights are the same.
        same = int(lengths.min(initial=depth)) >= depth
        return self.weights(lengths[:1] if same else lengths, depth), self.scale(run), self.column(run)

    def values(self, run: JoinedRun) -> Array:
        """The value [Q] of each query; NaN is undefined."""
        weights, scale, column = self._terms(run)
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

    def of_mean(self, run: JoinedRun, mean: float) -> Array:
        """The value [Q] of each query if every document had this one: of random documents in lists as long."""
        weights, scale, _ = self._terms(run)
        value: Array = weights.sum(axis=1) * mean * scale
        return value

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
        weights, scale, _ = self._terms(run)
        low, high = (_sums(weights, means_by_relevance(run, end, weights.shape[1])) * scale for end in ends)
        return low, high

    def label_bounds(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, Array] | None:
        """Bounds [Q] with all unknown documents at one end, and at the other."""
        ends = self._at_ends(run)
        if ends is None:
            return None
        weights, scale, _ = self._terms(run)
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
        weights, scale, _ = self._terms(run)
        defined = ~np.isnan(scale)
        # An average over the queries that have a value, as the run's figure is.
        weights = weights * np.where(defined, scale, 0.0)[:, None] / max(1, int(defined.sum()))
        return run.spread(weights, random=random)


def _sums(weights: Array, values: Array) -> Array:
    """Σ over ranks of weight × value: [Q] from weights [Q, k] or [1, k] and values [Q, k]."""
    # One way for both: sums that differ in the last bit would look like differences between runs.
    sums: Array = np.einsum("qk,qk->q", np.broadcast_to(weights, values.shape), values)
    return sums
