"""The ranked lists of many queries as flat arrays, with their ties."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenrank.io.types import Array


class Values(Protocol):
    """A value of each document of ranked lists [N]: an array, or something that is indexed like one."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Array | slice, /) -> Array: ...


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

    def query_of(self, rows: Array) -> Array:
        """The list of documents given by their places ``rows`` in the flat arrays."""
        return np.searchsorted(self.offsets, rows, side="right") - 1

    @functools.cached_property
    def ties(self) -> tuple[Array, Array]:
        """First place [T] and size [T] of each block of two or more tied documents."""
        same = self.scores[1:] == self.scores[:-1]
        inner = self.offsets[1:-1]
        same[inner[(inner > 0) & (inner < len(self.scores))] - 1] = False
        edges = np.flatnonzero(np.diff(same, prepend=False, append=False))
        starts, ends = edges[::2], edges[1::2]
        return starts, ends - starts + 1

    @property
    def tied(self) -> bool:
        """Whether any two documents are tied."""
        return len(self.ties[0]) > 0

    def tie_of(self, rows: Array) -> tuple[Array, Array]:
        """First place and size of the tie block of each of ``rows``; a document that is not tied is a block of one."""
        starts, sizes = self.ties
        if not len(starts):
            return rows, np.ones_like(rows)
        block = np.maximum(np.searchsorted(starts, rows, side="right") - 1, 0)
        inside = (rows >= starts[block]) & (rows < starts[block] + sizes[block])
        return np.where(inside, starts[block], rows), np.where(inside, sizes[block], 1)

    def means(self, values: Values) -> Array:
        """Mean of the values [N] of each list [Q]; 0 for an empty one."""
        return self.totals(values) / np.maximum(self.lengths, 1)

    def totals(self, values: Values) -> Array:
        """Sum of the values [N] of each list [Q]; 0 for an empty one."""
        return np.where(self.lengths > 0, np.add.reduceat(np.append(values[:], 0.0), self.offsets[:-1]), 0.0)

    def places(self) -> Array:
        """The place [N] (int32, from 0) of each document in its list."""
        places = np.arange(int(self.offsets[-1]), dtype=np.int32)
        places -= np.repeat(self.offsets[:-1].astype(np.int32), self.lengths)
        return places

    def falling(self, code: Array) -> Array:
        """The order [N] (int32) that sorts each list by falling ``code`` [N] (integers from 0); stable."""
        longest, largest = int(self.lengths.max(initial=1)), int(code.max(initial=0))
        bits = [max(1, int(size - 1).bit_length()) for size in (len(self.lengths), largest + 1, longest)]
        if sum(bits) > 62:
            query = np.repeat(np.arange(len(self.lengths)), self.lengths)
            return np.lexsort((largest - code, query)).astype(np.int32)
        # List, code and place in one number: sorting numbers takes a fifth of sorting by several keys.
        key = np.repeat(np.arange(len(self.lengths)) << bits[1], self.lengths)
        key |= largest - code
        key <<= bits[2]
        key |= self.places()
        key.sort()
        key &= (1 << bits[2]) - 1
        order = key.astype(np.int32)
        order += np.repeat(self.offsets[:-1].astype(np.int32), self.lengths)
        return order

    def top(self, values: Values, depth: int) -> Array:
        """The ``values`` [N] of the first ``depth`` documents of each list, [Q, depth], 0 where a list is shorter."""
        places = np.arange(depth)
        if int(self.lengths.min(initial=depth)) >= depth:
            return values[self.offsets[:-1, None] + places]
        inside = places < self.lengths[:, None]
        if not len(values):
            return np.zeros(inside.shape)
        return np.where(inside, values[np.minimum(self.offsets[:-1, None] + places, len(values) - 1)], 0.0)

    def tie_share(self, depth: int) -> float:
        """Share of the documents in the first ``depth`` ranks that are tied with another one there."""
        _, _, reach, _ = self.ties_within(depth)
        total = np.minimum(self.lengths, depth).sum()
        return float(reach[reach > 1].sum() / total) if total else 0.0

    def all_tied(self) -> RankedLists:
        """The same lists with all documents tied: a uniformly random order is one order of this tie."""
        return RankedLists(self.offsets, np.zeros(len(self.scores)))

    # --- expectation and extremes of a measure that adds up value × non-increasing weight of the rank ---------------

    def ties_within(self, depth: int) -> tuple[Array, Array, Array, Array]:
        """Start, size, documents within the first ``depth`` ranks, and list of the tie blocks that reach into them."""
        starts, sizes = self.ties
        query = self.query_of(starts)
        before = starts - self.offsets[query]
        chosen = before < depth
        reach = np.minimum(sizes, depth - before)[chosen]
        return starts[chosen], sizes[chosen], reach, query[chosen]

    def tie_average(self, values: Values, depth: int) -> Array:
        """:meth:`top` with each tied document's value replaced by the mean of its tie block.

        A measure that is linear in the values has, on these, its exact expectation over all orders of tied documents.
        """
        starts, sizes, reach, _ = self.ties_within(depth)
        rows, block = expand(starts, sizes)
        means = np.bincount(block, weights=values[rows], minlength=len(starts)) / sizes
        return self._with_ties(values, depth, np.repeat(means, reach))

    def tie_sorted(self, values: Values, depth: int, *, largest_first: bool) -> Array:
        """:meth:`top` with the values sorted within each tie block.

        With weights that never grow with the rank, falling order gives a linear measure's largest value over all
        orders of tied documents, and rising order its smallest.
        """
        starts, sizes, reach, _ = self.ties_within(depth)
        rows, block = expand(starts, sizes)
        keys = -values[rows] if largest_first else values[rows]
        ordered = rows[np.lexsort((keys, block))]
        within = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return self._with_ties(values, depth, values[ordered[within < np.repeat(reach, sizes)]])

    def tie_draw(self, values: Values, depth: int, rng: np.random.Generator) -> Array:
        """:meth:`top` in one random order of the tied documents."""
        starts, sizes, reach, _ = self.ties_within(depth)
        picks = sample_places(sizes, int(reach.max(initial=0)), rng)
        lane, column = np.nonzero(np.arange(picks.shape[1]) < reach[:, None])
        return self._with_ties(values, depth, values[starts[lane] + picks[lane, column]])

    def _with_ties(self, values: Values, depth: int, of_ties: Array) -> Array:
        """:meth:`top` with the tie blocks' places filled from ``of_ties``, block by block."""
        starts, _, reach, query = self.ties_within(depth)
        places, block = expand(starts - self.offsets[query], reach)
        top = self.top(values, depth)
        top[query[block], places] = of_ties
        return top


def expand(starts: Array, sizes: Array) -> tuple[Array, Array]:
    """The rows of ranges laid end to end, with the number of the range of each."""
    block = np.repeat(np.arange(len(sizes)), sizes)
    return np.repeat(starts - np.cumsum(sizes) + sizes, sizes) + np.arange(len(block)), block


def sample_places(sizes: Array, count: int, rng: np.random.Generator) -> Array:
    """``count`` distinct places [G, count] out of each of ``sizes`` [G], in random order; void past a size."""
    if not count or not len(sizes):
        return np.zeros((len(sizes), count), dtype=np.int64)
    picks = np.zeros((len(sizes), count), dtype=np.int64)
    # Small blocks: sort random keys. Large ones: draw until no place is repeated; the first draw usually does.
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
