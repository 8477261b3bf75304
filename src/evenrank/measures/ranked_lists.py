"""The ranked lists of many queries as flat arrays, with their ties."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from evenrank.io.types import Array

_CACHED = 1 << 18
"""How many documents are looked at at once: what is computed of them stays in the processor's cache."""


class Values(Protocol):
    """A value of each document of ranked lists [N]: an array, or something that is indexed like one."""

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Array | slice, /) -> Array: ...


class Pieces:
    """An array [N] that is held in several: the column of a long run's table, which is not copied."""

    def __init__(self, pieces: Sequence[Array]) -> None:
        self._pieces = pieces
        self._ends = np.cumsum([len(piece) for piece in pieces])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, rows: Array | slice, /) -> Array:
        if isinstance(rows, slice):
            start, stop, _ = rows.indices(len(self))
            begins = self._ends - [len(piece) for piece in self._pieces]
            both = zip(self._pieces, begins.tolist(), strict=True)
            return np.concatenate([piece[max(0, start - begin) : max(0, stop - begin)] for piece, begin in both])
        piece = np.searchsorted(self._ends, rows, side="right")
        found = np.empty(rows.shape, dtype=self._pieces[0].dtype)
        for number in np.flatnonzero(np.bincount(piece.ravel(), minlength=1)).tolist():
            here, own = piece == number, self._pieces[number]
            found[here] = own[rows[here] - (self._ends[number] - len(own))]
        return found


@dataclass(frozen=True)
class RankedLists:
    """The ranked lists of Q queries, N documents in all, laid end to end in rank order.

    ``offsets`` [Q + 1]: where each list starts; ``scores`` [N]: falling within each list. Equal neighbours are tied.
    """

    offsets: Array
    scores: Array | Pieces

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
        starting = np.zeros(len(self.scores) + 1, dtype=bool)
        starting[self.offsets] = True
        parts = []
        for start in range(0, len(self.scores), _CACHED):
            scores = self.scores[start : start + _CACHED + 1]
            same = scores[1:] == scores[:-1]
            same &= ~starting[start + 1 : start + len(scores)]
            parts.append(np.flatnonzero(same) + start)
        above = np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
        new = np.flatnonzero(np.diff(above, prepend=-2) > 1)
        return above[new], np.diff(np.append(new, len(above))) + 1

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
        total, lists = np.zeros(len(self.lengths)), np.flatnonzero(self.lengths)
        if not len(lists):
            return total
        starts = self.offsets[lists]
        cuts = np.flatnonzero(np.diff(starts // _CACHED, prepend=-1))
        for first, last in itertools.pairwise([*cuts.tolist(), len(lists)]):
            begin, end = int(starts[first]), int(self.offsets[lists[last - 1] + 1])
            of_lists = np.asarray(values[begin:end], dtype=np.float64)
            if lists[last - 1] == len(self.lengths) - 1:
                # The last list's numbers have always been summed with a 0 behind them, which may decide the last bit.
                of_lists = np.append(of_lists, 0.0)
            total[lists[first:last]] = np.add.reduceat(of_lists, starts[first:last] - begin)
        return total

    def places(self) -> Array:
        """The place [N] (int16 or int32, from 0) of each document in its list."""
        kind = np.int16 if int(self.lengths.max(initial=0)) < 1 << 15 else np.int32
        steps = np.ones(int(self.offsets[-1]), dtype=kind)
        filled = np.flatnonzero(self.lengths)
        steps[self.offsets[filled[1:]]] = 1 - self.lengths[filled[:-1]]
        steps[:1] = 0
        places: Array = np.cumsum(steps, dtype=kind, out=steps)
        return places

    def falling(self, code: Array) -> Array:
        """The order [N] (int32) that sorts each list by falling ``code`` [N] (integers from 0); stable."""
        largest = int(code.max(initial=0))
        bits = int(self.lengths.max(initial=1)).bit_length()
        # Code and place in one number, short rows of small numbers: a tenth of the time of sorting all by several keys.
        kind = np.int32 if bits + largest.bit_length() < 32 else np.int64
        order = np.empty(len(code), dtype=np.int32)
        for lists in self._alike():
            starts, lengths = self.offsets[lists, None], self.lengths[lists, None]
            places = np.arange(int(lengths.max()), dtype=kind)
            rows = starts + places
            inside = None if lengths.min() == len(places) else places < lengths
            if inside is not None:
                np.minimum(rows, len(code) - 1, out=rows)
            key = largest - code[rows].astype(kind)
            key <<= bits
            key |= places
            if inside is not None:
                key[~inside] = np.iinfo(kind).max
            key.sort(axis=1)
            key &= (1 << bits) - 1
            if inside is None:
                order[rows] = starts + key
            else:
                order[rows[inside]] = (starts + key)[inside]
        return order

    def _alike(self) -> list[Array]:
        """The numbers of the lists that are not empty in pieces of like lengths, none twice as long as another."""
        lists = np.argsort(self.lengths, kind="stable")
        lists = lists[np.searchsorted(self.lengths[lists], 1) :]
        if not len(lists):
            return []
        lengths = self.lengths[lists]
        # As many as the processor's cache holds.
        piece, doubling = np.cumsum(lengths) // _CACHED, np.frexp(lengths)[1]
        return np.split(lists, np.flatnonzero((np.diff(piece) > 0) | (np.diff(doubling) > 0)) + 1)

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


def gathered(values: Array, rows: Array) -> Array:
    """``values[rows]`` of many rows, in pieces: numpy first makes wide numbers of narrow ones."""
    found = np.empty(len(rows), dtype=values.dtype)
    for start in range(0, len(rows), _CACHED):
        found[start : start + _CACHED] = values[rows[start : start + _CACHED]]
    return found


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
