"""Measures that only ir_measures has: their values come from there, and what ties do to them from many orders."""

from __future__ import annotations

from dataclasses import dataclass

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

    def values(self, measure: Measure, scores: Array | None = None) -> Array:
        """The measure for each judged query [J], with other scores [N] where given.

        Raises EvenrankError where ir_measures cannot compute it.
        """
        import ir_measures

        run: dict[str, dict[str, float]] = {}
        ids, docs = self.table["query_id"], self.table["doc_id"]
        given = self.lists.scores if scores is None else scores
        for query, doc, score in zip(ids, docs, given.tolist(), strict=True):
            run.setdefault(query, {})[doc] = score
        qrels: dict[str, dict[str, int]] = {}
        for query, doc, relevance in self.qrels.iter_rows():
            qrels.setdefault(query, {})[doc] = relevance
        try:
            found = {value.query_id: value.value for value in ir_measures.iter_calc([measure], qrels, run)}
        except (ValueError, RuntimeError, TypeError, KeyError, AssertionError) as error:
            # Its providers raise whatever they meet in parameters that they do not check.
            raise EvenrankError(f"{measure}: ir_measures cannot compute it here: {error}") from None
        return np.array([found.get(query, 0.0) for query in self.judged], dtype=np.float64)

    def mean(self, measure: Measure, draws: int, *, random: bool) -> Array:
        """Mean over random orders of ties (of all candidates) [J]; all NaN where that would take too long."""
        lists = self.lists.all_tied() if random else self.lists
        if not lists.tied:
            return self.values(measure)
        if len(lists.scores) > _MANY_ROWS:
            return np.full(len(self.judged), np.nan)
        rng = np.random.default_rng(self.seed)
        total = np.zeros(len(self.judged))
        for _ in range(draws):
            total += self.values(measure, _positions(lists, rng.random(len(lists.scores))))
        return total / draws

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
