"""Ranked lists of many queries as flat arrays, and what ties make of them."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class RankedLists:
    """The ranked lists of Q queries, N documents in all, laid end to end in rank order.

    ``offsets`` [Q + 1]: where each list starts; ``scores`` [N]: falling within each list. Equal neighbours are tied.
    """

    offsets: Array
    scores: Array

    @functools.cached_property
    def lengths(self) -> Array:
        """Documents per list [Q]."""
        return np.diff(self.offsets)

    @functools.cached_property
    def query(self) -> Array:
        """The list [N] of each document, counted from 0."""
        return np.repeat(np.arange(len(self.lengths), dtype=np.int32), self.lengths)

    @functools.cached_property
    def tie_starts(self) -> Array:
        """First document [T] of each group of tied documents; a document that is not tied is a group of one."""
        starts = np.ones(len(self.scores), dtype=bool)
        starts[1:] = self.scores[1:] != self.scores[:-1]
        starts[self.offsets[:-1][self.lengths > 0]] = True
        return np.flatnonzero(starts)

    @functools.cached_property
    def tie_sizes(self) -> Array:
        """Documents [T] in each tie group."""
        return np.diff(np.append(self.tie_starts, len(self.scores)))

    @functools.cached_property
    def tie_before(self) -> Array:
        """Documents [T] of the same list that stand before each tie group."""
        return self.tie_starts - self.offsets[:-1][self.query[self.tie_starts]]

    @functools.cached_property
    def tied(self) -> bool:
        """Whether any two documents are tied."""
        return len(self.tie_starts) < len(self.scores)

    def tie_group(self, rows: Array) -> Array:
        """The tie group of documents given by their place in the flat arrays."""
        return np.searchsorted(self.tie_starts, rows, side="right") - 1

    def top(self, values: Array, depth: int) -> Array:
        """The ``values`` [N] of the first ``depth`` documents of each list, [Q, depth], 0 where a list is shorter."""
        places = np.arange(depth)
        inside = places < self.lengths[:, None]
        if not len(values):
            return np.zeros(inside.shape)
        return np.where(inside, values[np.minimum(self.offsets[:-1, None] + places, len(values) - 1)], 0.0)

    def tie_share(self, depth: int) -> float:
        """Share of the documents in the first ``depth`` ranks that are tied with another of their list."""
        size = np.repeat(self.tie_sizes, self.tie_sizes)
        rank = np.arange(len(self.scores)) - self.offsets[:-1][self.query]
        top = rank < depth
        return float((size[top] > 1).mean()) if top.any() else 0.0

    def all_tied(self) -> RankedLists:
        """The same lists with all documents tied: a uniformly random order is one order of this tie."""
        return RankedLists(self.offsets, np.zeros(len(self.scores)))

    # --- expectation and extremes of a measure that adds up value × non-increasing weight of the rank ---------------

    def tie_average(self, values: Array) -> Array:
        """``values`` [N] averaged within each tie group.

        A measure that is linear in the values has, on these, its exact expectation over all orders of tied documents.
        """
        means = np.add.reduceat(values, self.tie_starts) / self.tie_sizes if len(values) else values
        return np.repeat(means, self.tie_sizes)

    def tie_sorted(self, values: Array, depth: int, *, largest_first: bool) -> Array:
        """``values`` [N] sorted within each tie group that reaches into the first ``depth`` ranks.

        With weights that never grow with the rank, falling order gives a linear measure's largest value over all
        orders of tied documents, and rising order its smallest.
        """
        groups = np.flatnonzero((self.tie_sizes > 1) & (self.tie_before < depth))
        rows, group = expand(self.tie_starts[groups], self.tie_sizes[groups])
        keys = -values[rows] if largest_first else values[rows]
        result = values.copy()
        result[rows] = values[rows[np.lexsort((keys, group))]]
        return result

    def tie_draw(self, values: Array, depth: int, rng: np.random.Generator) -> Array:
        """The first ``depth`` values [Q, depth] of each list in one random order of its tied documents."""
        groups = np.flatnonzero((self.tie_sizes > 1) & (self.tie_before < depth))
        wanted = np.minimum(self.tie_sizes[groups], depth - self.tie_before[groups])
        top = self.top(values, depth)
        picks = sample_places(self.tie_sizes[groups], int(wanted.max(initial=0)), rng)
        lane, column = np.nonzero(np.arange(picks.shape[1]) < wanted[:, None])
        query = self.query[self.tie_starts[groups]]
        top[query[lane], self.tie_before[groups][lane] + column] = values[
            self.tie_starts[groups][lane] + picks[lane, column]
        ]
        return top


def expand(starts: Array, sizes: Array) -> tuple[Array, Array]:
    """The rows of ranges laid end to end, with the number of the range of each."""
    group = np.repeat(np.arange(len(sizes)), sizes)
    return np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(len(group)), group


def sample_places(sizes: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` distinct places [G, count] out of each of ``sizes`` [G], in random order; what exceeds a size is void."""
    if not count or not len(sizes):
        return np.zeros((len(sizes), count), dtype=np.int64)
    picks = np.zeros((len(sizes), count), dtype=np.int64)
    # Small groups: sort random keys. Large ones: draw until no place comes twice, which is likely at once.
    small = sizes < 4 * count * count
    width = int(sizes[small].max(initial=count))
    for chunk in np.array_split(np.flatnonzero(small), max(1, small.sum() * width // 4_000_000)):
        keys = rng.random((len(chunk), max(width, count)))
        keys[np.arange(keys.shape[1]) >= sizes[chunk, None]] = 2
        picks[chunk] = np.argsort(keys, axis=1)[:, :count]
    again = np.flatnonzero(~small)
    while len(again):
        draw = rng.integers(0, sizes[again, None], (len(again), count))
        picks[again] = draw
        ordered = np.sort(draw, axis=1)
        again = again[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
    return picks
