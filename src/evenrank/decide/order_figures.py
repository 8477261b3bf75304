"""The figures of orders of the same lists, computed again and again while a strength is sought."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files.runs import Run
from evenrank.files.tables import IdIndex
from evenrank.files.types import Array
from evenrank.measures import Background, Evaluation, RunMeasure, resolve

from .rebalance_lists import Grouping, RunLists, untied


class OrderFigures:
    """Measures of a run, and of the same documents in other orders.

    ``queries`` [Q]: those of the run, in its order, then the ``absent`` ones, judged but not in the run, which count 0
    in effectiveness; all values belong to them, and only their judgements count. ``judged``: how many of the run's have
    any. Ties are in the order that methods start from, and count as decided.
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
        self._background = self._evaluation(run).as_background(run.name)
        self.lists = _looked_at(grouping.lists(run), grouping.depth, measures)

    def _evaluation(self, run: Run) -> Evaluation:
        """The evaluation of a run of these queries' documents."""
        evaluation = Evaluation(
            untied(run),
            self._grouping.table,
            self._qrels,
            missing=self._grouping.missing,
            target=self._grouping.target,
            seed=self._seed,
        )
        evaluation.background = self._background
        return evaluation

    def values(self, run: Run) -> tuple[Array, ...]:
        """The values [Q] of each measure; NaN where a query has none."""
        evaluation = self._evaluation(run)
        return tuple(self._laid(resolve(measure), evaluation) for measure in self.measures)

    def figures(self, run: Run) -> tuple[float, ...]:
        """The figure of each measure; NaN where no query has a value."""
        return tuple(
            resolve(measure).figure([values]) for measure, values in zip(self.measures, self.values(run), strict=True)
        )

    def _laid(self, measure: RunMeasure, evaluation: Evaluation) -> Array:
        queries = measure.queries(evaluation)
        laid = np.full(len(self.queries), np.nan)
        places = IdIndex([self.queries]).places(queries)
        # A place of −1 would be the last query's.
        assert (places >= 0).all(), "the evaluation has other queries than the run"
        laid[places] = measure.values(evaluation)
        return laid


def _looked_at(lists: RunLists, depth: int, measures: Sequence[Measure]) -> RunLists:
    """The lists without the rows that are neither put into another order nor looked at by a measure."""
    cutoffs = [measure.params.get("cutoff") for measure in measures]
    if not all(isinstance(cutoff, int) for cutoff in cutoffs):
        return lists
    return lists.cut(max(depth, *(cutoff for cutoff in cutoffs if isinstance(cutoff, int))))
