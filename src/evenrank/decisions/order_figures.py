"""Figures of one run in many orders of its first documents, over the same queries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.io.runs import Run
from evenrank.io.tables import IdIndex
from evenrank.io.types import Array
from evenrank.measures import Background, Evaluation, RunMeasure, resolve
from evenrank.measures.base import mean_of

from .rebalance_lists import Grouping, RunLists, untied

Orders = Literal["given", "random", "relevance"]


class OrderFigures:
    """Measures of a run, and of the same documents in other orders.

    ``queries`` [Q]: those of the run, in its order, then the ``absent`` ones, judged but not in the run, which count 0
    in effectiveness; all values belong to them, and only their judgements count. ``judged``: how many of the run's have
    any. Ties are in the order that methods start from, whoever computes a measure.
    ``lists``: the run's lists, without the rows that no measure looks at.
    """

    def __init__(
        self,
        run: Run,
        grouping: Grouping,
        qrels: pl.DataFrame | None,
        measures: Sequence[Measure],
        seed: int = 0,
        absent: pl.Series | None = None,
    ) -> None:
        self.queries = run.queries if absent is None else pl.concat([run.queries, absent])
        self.measures = tuple(measures)
        self._grouping, self._seed = grouping, seed
        self._qrels = None if qrels is None else qrels.filter(pl.col("query_id").is_in(self.queries.implode()))
        self.judged = (
            0 if self._qrels is None else self._qrels["query_id"].n_unique() - (0 if absent is None else len(absent))
        )
        self._background: Background | None = None
        self._background = self.evaluation(run).as_background(run.name)
        self.lists = _looked_at(grouping.lists(run), grouping.depth, measures)

    def evaluation(self, run: Run) -> Evaluation:
        """The evaluation of a run of these queries' documents."""
        made = Evaluation(
            untied(run),
            self._grouping.table,
            self._qrels,
            missing=self._grouping.missing,
            target=self._grouping.target,
            seed=self._seed,
        )
        made.background = self._background
        return made

    def values(self, run: Run) -> tuple[Array, ...]:
        """The values [Q] of each measure; NaN where a query has none."""
        return self.values_of(self.evaluation(run))

    def values_of(self, evaluation: Evaluation, *, how: Orders = "given") -> tuple[Array, ...]:
        """:meth:`values` of an evaluation.

        ``how``: in the order "given"; or in expectation over "random" orders, or by falling grade ("relevance").
        """
        return tuple(self._laid(resolve(measure), evaluation, how) for measure in self.measures)

    def means(self, run: Run) -> tuple[float, ...]:
        """The mean of each measure's values; NaN where no query has one."""
        found = map(mean_of, self.values(run))
        return tuple(np.nan if mean is None else mean for mean in found)

    def _laid(self, measure: RunMeasure, evaluation: Evaluation, how: Orders) -> Array:
        queries = measure.queries(evaluation)
        if how == "relevance":
            found = measure.by_relevance(evaluation)
        else:
            found = measure.values(evaluation) if how == "given" else measure.expected(evaluation, random=True)
        laid = np.full(len(self.queries), np.nan)
        places = IdIndex([self.queries]).places(queries)
        # A place of −1 would be the last query's.
        assert (places >= 0).all(), "the evaluation has other queries than the run"
        laid[places] = found
        return laid


def _looked_at(lists: RunLists, depth: int, measures: Sequence[Measure]) -> RunLists:
    """The lists without the rows that are neither put into another order nor looked at by a measure."""
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    if not all(isinstance(cutoff, int) for cutoff in cutoffs):
        return lists
    return lists.cut(max(depth, *(cutoff for cutoff in cutoffs if isinstance(cutoff, int))))
