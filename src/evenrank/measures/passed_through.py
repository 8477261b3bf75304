"""Measures that only ir_measures has: their values come from there, and what ties do to them from many orders."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import ir_measures
import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.io.errors import EvenrankError

from .lists import Array, RankedLists, expand

_MANY_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class PassedThrough:
    """A run as ir_measures is given it: ``table`` in the order of ``lists``, ``qrels``, and the ``judged`` queries."""

    table: pl.DataFrame
    lists: RankedLists
    qrels: pl.DataFrame
    judged: pl.Series
    seed: int

    def values(self, measure: Measure, orders: Iterable[Array] | None = None) -> Array:
        """The measure for each judged query [J]; with ``orders``, scores [N] to rank by instead, its mean over them.

        Raises EvenrankError where ir_measures cannot compute it.
        """
        qrels: dict[str, dict[str, int]] = {}
        for query, doc, relevance in self.qrels.iter_rows():
            qrels.setdefault(query, {})[doc] = relevance
        ids, docs = self.table["query_id"].to_list(), self.table["doc_id"].to_list()
        total, count = np.zeros(len(self.judged)), 0
        for scores in [self.lists.scores] if orders is None else orders:
            run: dict[str, dict[str, float]] = {}
            for query, doc, score in zip(ids, docs, scores.tolist(), strict=True):
                run.setdefault(query, {})[doc] = score
            try:
                found = {value.query_id: value.value for value in ir_measures.iter_calc([measure], qrels, run)}
            except (ValueError, RuntimeError, TypeError, KeyError, AssertionError) as error:
                # Its providers raise whatever they meet in parameters that they do not check.
                raise EvenrankError(f"{measure}: ir_measures cannot compute it here: {error}") from None
            total += [found.get(query, 0.0) for query in self.judged]
            count += 1
        return total / count

    def mean(self, measure: Measure, draws: int, *, random: bool) -> Array:
        """Mean over random orders of ties (of all candidates) [J]; all NaN where that would take too long."""
        lists = self.lists.all_tied() if random else self.lists
        if not lists.tied:
            return self.values(measure)
        if len(lists.scores) > _MANY_ROWS:
            return np.full(len(self.judged), np.nan)
        rng = np.random.default_rng(self.seed)
        return self.values(measure, (_positions(lists, rng.random(len(lists.scores))) for _ in range(draws)))

    def bounds(self, measure: Measure) -> tuple[Array, Array]:
        """The smallest and largest value [J]; NaN with ties: which order is best is not known here."""
        value = np.full(len(self.judged), np.nan) if self.lists.tied else self.values(measure)
        return value, value


def _positions(lists: RankedLists, keys: Array) -> Array:
    """Scores [N] that put tied documents in the order of their keys [N]."""
    order = np.arange(len(keys))
    rows, group = expand(*lists.ties)
    order[rows] = rows[np.lexsort((keys[rows], group))]
    positions = np.empty(len(keys))
    positions[order] = -np.arange(len(keys), dtype=np.float64)
    return positions
