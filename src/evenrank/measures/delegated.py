"""Measures that only ir_measures has: their values come from there, their expectation over ties from many orders."""

from __future__ import annotations

from collections.abc import Iterable

import ir_measures
import numpy as np

from evenrank.io.errors import EvenrankError
from evenrank.io.types import Array

from .base import TIE_DRAWS
from .joined import JoinedRun
from .ranked_lists import RankedLists, expand
from .utility import UtilityMeasure, decided

_MANY_ROWS = 100_000


class DelegatedMeasure(UtilityMeasure):
    """A measure whose values [J] ir_measures computes."""

    def values(self, run: JoinedRun) -> Array:
        """The value [J] of each query. Raises EvenrankError if ir_measures cannot compute it."""
        return decided(run, self._mean_value(run, [run.lists.scores[:]]))

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The mean [J] over 200 random orders of ties (of all candidates); all NaN if that would take too long."""
        lists = run.lists.all_tied() if random else run.lists
        if not lists.tied:
            value = self._mean_value(run, [run.lists.scores[:]])
        elif len(lists.scores) > _MANY_ROWS:
            value = np.full(len(run.judged), np.nan)
        else:
            rng = np.random.default_rng(run.seed)
            orders = (_positions(lists, rng.random(len(lists.scores))) for _ in range(TIE_DRAWS))
            value = self._mean_value(run, orders)
        return decided(run, value)

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The smallest and largest value [J]; NaN with ties, since it is not known here which order is best."""
        tied = run.lists.tied
        value = np.full(len(run.judged), np.nan) if tied else self._mean_value(run, [run.lists.scores[:]])
        return decided(run, value), decided(run, value)

    def _mean_value(self, run: JoinedRun, orders: Iterable[Array]) -> Array:
        """The mean [J] over orders, each given by the scores [N] to rank by. A query without a value counts 0."""
        qrels: dict[str, dict[str, int]] = {}
        for query, doc, relevance in run.judgements.iter_rows():
            qrels.setdefault(query, {})[doc] = relevance
        table = run.run.table if run.rows is None else run.run.table[run.rows]
        ids, docs = table["query_id"].to_list(), table["doc_id"].to_list()
        total, count = np.zeros(len(run.judged)), 0
        for scores in orders:
            ranked: dict[str, dict[str, float]] = {}
            for query, doc, score in zip(ids, docs, scores.astype(np.float64).tolist(), strict=True):
                ranked.setdefault(query, {})[doc] = score
            try:
                found = {value.query_id: value.value for value in ir_measures.iter_calc([self.measure], qrels, ranked)}
            except (ValueError, RuntimeError, TypeError, KeyError, AssertionError) as error:
                # Its providers raise all kinds of errors for parameters that they do not check.
                raise EvenrankError(f"{self.measure}: ir_measures cannot compute it here: {error}") from None
            total += [found.get(query, 0.0) for query in run.judged]
            count += 1
        return total / count


def _positions(lists: RankedLists, keys: Array) -> Array:
    """Scores [N] that put tied documents in the order of their keys [N]."""
    order = np.arange(len(keys))
    rows, block = expand(*lists.ties)
    order[rows] = rows[np.lexsort((keys[rows], block))]
    positions = np.empty(len(keys))
    positions[order] = -np.arange(len(keys), dtype=np.float64)
    return positions
