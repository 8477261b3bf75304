"""The group weights of the first documents of ranked lists, in the run's order and in others of tied documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from evenrank.groups.table import GroupTable
from evenrank.io.types import Array

from .base import TIE_DRAWS
from .joined import JoinedRun
from .lazy import Column
from .ranked_lists import RankedLists, Values, expand

_SAME = 1e-12


class _Weights:
    """The weights of a group in given rows of a group table; for many rows, those of all its documents are kept."""

    def __init__(self, table: GroupTable, group: str) -> None:
        self._table, self._group = table, group
        self._all: Array | None = None

    def __call__(self, rows: Array) -> Array:
        if self._all is None and rows.size > self._table.table.height:
            self._all = self._table.weight(self._group)
        return self._table.weight(self._group, rows) if self._all is None else self._all[rows]


def group_columns(run: JoinedRun) -> list[Column]:
    """The weight of each of the G groups in a run's documents; 0 for a document that the group table lacks."""
    table = run.required_table
    return [run.column(("weight", group), _Weights(table, group), 0.0) for group in table.groups]


def first_weights(run: JoinedRun, depth: int) -> Array:
    """The weight [G, Q, depth] of each group in the first documents of each list; 0 past its end."""
    return np.stack([column.first(run.scored_lists, depth) for column in group_columns(run)])


def unknown_first(run: JoinedRun, depth: int) -> Array:
    """1 where one of the first documents [Q, depth] is one that the group table lacks, else 0."""
    return run.scored_lists.top((run.scored_documents < 0).astype(np.float64), depth)


def exposures(weights: Array, discounts: Array) -> Array:
    """Each group's exposure [Q, G]: Σ over ranks of discount [k] × weight [G, Q, k]."""
    summed: Array = np.stack([np.einsum("qk,k->q", of_group, discounts) for of_group in weights], axis=1)
    return summed


def expected_exposures(lists: RankedLists, columns: Sequence[Values], discounts: Array, *, random: bool) -> Array:
    """The expectation [Q, G] of :func:`exposures` over the orders of tied documents; ``random``: over random orders.

    ``columns``: the weights of each of G groups in the documents of the lists.
    """
    depth = len(discounts)
    if not random:
        return exposures(np.stack([lists.tie_average(column, depth) for column in columns]), discounts)
    total = np.concatenate(([0.0], np.cumsum(discounts)))[np.minimum(lists.lengths, depth)]
    means = [column.means(lists) if isinstance(column, Column) else lists.means(column) for column in columns]
    return np.stack([total * mean for mean in means], axis=1)


class TieOrders:
    """The group weights of the first documents of lists, in any order of their tied documents.

    Only of the A lists where ties reach into the first ``depth`` ranks; ``queries`` [A]: their numbers. R documents are
    in these tie blocks; ``tied`` [G, R]: their weights; ``list_of`` [R]: their list, from 0 to A − 1.
    ``chosen`` [Q]: the lists to look at, if not all.
    """

    def __init__(self, lists: RankedLists, columns: Sequence[Column], depth: int, chosen: Array | None = None) -> None:
        starts, sizes, reach, query = lists.ties_within(depth)
        # Blocks that reach furthest come first, so that those with a k-th place within the depth are neighbours.
        order = np.argsort(-reach, kind="stable")
        order = order if chosen is None else order[chosen[query[order]]]
        starts, self._sizes, self._reach, query = (of_block[order] for of_block in (starts, sizes, reach, query))
        self.queries, local = np.unique(query, return_inverse=True)
        rows, self._block = expand(starts, self._sizes)
        self.tied = np.stack([column[rows] for column in columns])
        self.list_of = local[self._block]
        self._start = np.cumsum(self._sizes) - self._sizes
        self._top = np.stack([column.first(lists, depth)[self.queries] for column in columns])
        within, block = expand(np.zeros(len(order), dtype=np.int64), self._reach)
        self._place = local[block] * depth + (starts - lists.offsets[query])[block] + within
        self._slot = self._start[block] + within
        self._state = np.arange(len(rows))

    @property
    def varying(self) -> Array:
        """Which of the lists [A] have a tie block whose documents differ in the sum of their groups' weights."""
        totals = self.tied.sum(axis=0)
        varies = np.zeros(len(self.queries), dtype=bool)
        if len(totals):
            spread = np.maximum.reduceat(totals, self._start) - np.minimum.reduceat(totals, self._start)
            varies[self.list_of[self._start[spread > _SAME]]] = True
        return varies

    def falling(self, keys: Array) -> Array:
        """The weights [G, A, depth] with the documents of each tie block by falling ``keys`` [R]."""
        return self._ordered(np.lexsort((-keys, self._block)))

    def drawn(self, rng: np.random.Generator) -> Array:
        """The weights [G, A, depth] in one random order of the tied documents."""
        # A shuffle of the first places alone: from any order of a block, it leaves a random one in them.
        for place in range(int(self._reach.max(initial=0))):
            blocks = int(np.searchsorted(-self._reach, -place, side="left"))
            here = self._start[:blocks] + place
            other = self._start[:blocks] + rng.integers(place, self._sizes[:blocks])
            self._state[here], self._state[other] = self._state[other], self._state[here]
        return self._ordered(self._state)

    def over_draws(self, value: Callable[[Array], Array], seed: int) -> tuple[Array, Array, Array]:
        """Mean, smallest and largest value [A] over 200 random orders; of the orders that have one.

        ``value``: from weights [G, A, depth] to values [A], NaN where there is none.
        """
        rng = np.random.default_rng(seed)
        total, count = np.zeros(len(self.queries)), np.zeros(len(self.queries))
        low, high = np.full((2, len(self.queries)), np.nan)
        for _ in range(TIE_DRAWS if len(self.queries) else 0):
            found = value(self.drawn(rng))
            total += np.nan_to_num(found)
            count += ~np.isnan(found)
            low, high = np.fmin(low, found), np.fmax(high, found)
        # A mean of equal values is no other value.
        mean = np.clip(np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0), low, high)
        return mean, low, high

    def _ordered(self, order: Array) -> Array:
        top, chosen = self._top.copy(), order.take(self._slot)
        for of_group, tied in zip(top, self.tied, strict=True):
            of_group.reshape(-1)[self._place] = tied.take(chosen)
        return top
