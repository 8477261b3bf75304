"""The ranked lists of many queries as flat arrays: their ties, their graded documents, and who wins against whom."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import polars as pl

from evenrank.files.runs import Run
from evenrank.files.tables import IdIndex, pick
from evenrank.files.types import Array


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
        starting = np.zeros(len(self.scores) + 1, dtype=bool)
        starting[self.offsets] = True
        above = np.flatnonzero((self.scores[1:] == self.scores[:-1]) & ~starting[1:-1])
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
        # A 0 behind all, so that a list at the end may be empty.
        totals: Array = np.add.reduceat(np.append(np.asarray(values[:], dtype=np.float64), 0.0), self.offsets[:-1])
        return np.where(self.lengths > 0, totals, 0.0)

    def places(self) -> Array:
        """The place [N] of each document in its list, from 0."""
        places: Array = np.arange(int(self.offsets[-1])) - np.repeat(self.offsets[:-1], self.lengths)
        return places

    def falling(self, code: Array) -> Array:
        """The order [N] that sorts each list by falling ``code`` [N] (integers from 0); stable."""
        of_list = np.arange(len(self.lengths)) * (int(code.max(initial=0)) + 1)
        order: Array = np.argsort(np.repeat(of_list, self.lengths) - code, kind="stable")
        return order

    def top(self, values: Values, depth: int) -> Array:
        """The ``values`` [N] of the first ``depth`` documents of each list, [Q, depth], 0 where a list is shorter."""
        inside = np.arange(depth) < self.lengths[:, None]
        top = np.zeros(inside.shape)
        top[inside] = values[expand(self.offsets[:-1], np.minimum(self.lengths, depth))[0]]
        return top

    def tie_share(self, depth: int) -> float:
        """Share of the documents in the first ``depth`` ranks that are tied with another one there."""
        _, _, reach, _ = self.ties_within(depth)
        total = np.minimum(self.lengths, depth).sum()
        return float(reach[reach > 1].sum() / total) if total else 0.0

    def all_tied(self) -> RankedLists:
        """The same lists with all documents tied: a uniformly random order is one order of this tie."""
        return RankedLists(self.offsets, np.zeros(len(self.scores)))

    def shuffled(self, rng: np.random.Generator) -> Array:
        """An order [N] of the places with the documents of each tie block in random order."""
        starts, sizes = self.ties
        order = np.arange(int(self.offsets[-1]))
        rows, block = expand(starts, sizes)
        order[rows] = rows[np.lexsort((rng.random(len(rows)), block))]
        return order

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


@dataclass(frozen=True)
class Hits:
    """The documents with a positive grade in the lists of Q judged queries, by query and rank.

    ``query``, ``rank`` (from 1), ``grade`` [H]; ``before`` [H]: documents ahead of the hit's tie block; ``size`` [H]:
    documents in it. ``ideal_query``, ``ideal_grade`` [I]: all positive grades of the judgements, falling per query.
    """

    queries: int
    query: Array
    rank: Array
    grade: Array
    before: Array
    size: Array
    ideal_query: Array
    ideal_grade: Array

    def at_least(self, relevance: int) -> Hits:
        """Only the hits and judgements of at least this grade."""
        if relevance <= 1:
            return self
        keep, ideal = self.grade >= relevance, self.ideal_grade >= relevance
        return replace(
            self,
            query=self.query[keep],
            rank=self.rank[keep],
            grade=self.grade[keep],
            before=self.before[keep],
            size=self.size[keep],
            ideal_query=self.ideal_query[ideal],
            ideal_grade=self.ideal_grade[ideal],
        )

    def ties_broken(self, *, best: bool) -> Hits:
        """The hits in the best (or worst) order of tied documents: high grades first (or last) in each block."""
        order = np.lexsort((-self.grade if best else self.grade, self.before, self.query))
        query, grade = self.query[order], self.grade[order]
        before, size = self.before[order], self.size[order]
        number = number_within(query, before)
        count = count_within(query, before)
        rank = before + number + 1 if best else before + size - count + number + 1
        return replace(self, query=query, grade=grade, rank=rank, before=rank - 1, size=np.ones_like(rank))

    def by_relevance(self) -> Hits:
        """The hits with all candidates by falling grade; those of equal grade are tied."""
        order = np.lexsort((-self.grade, self.query))
        query, grade = self.query[order], self.grade[order]
        number = number_within(query)
        before = number - number_within(query, grade)
        return replace(self, query=query, grade=grade, rank=number + 1, before=before, size=count_within(query, grade))

    @property
    def relevant(self) -> Array:
        """Relevant documents judged for each query [Q]."""
        return np.bincount(self.ideal_query, minlength=self.queries)

    def sum(self, values: Array, chosen: Array | None = None) -> Array:
        """Per-query sums [Q] of values [H]."""
        if chosen is not None:
            return np.bincount(self.query[chosen], weights=values[chosen], minlength=self.queries)
        return np.bincount(self.query, weights=values, minlength=self.queries)


def starts_within(*keys: Array) -> Array:
    new = np.ones(len(keys[0]), dtype=bool)
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(new)


def number_within(*keys: Array) -> Array:
    """The number of each entry among neighbours with equal keys, from 0."""
    starts = starts_within(*keys)
    number: Array = np.arange(len(keys[0])) - np.repeat(starts, np.diff(np.append(starts, len(keys[0]))))
    return number


def count_within(*keys: Array) -> Array:
    """How many neighbours with equal keys each entry has, itself included."""
    starts = starts_within(*keys)
    sizes = np.diff(np.append(starts, len(keys[0])))
    return np.repeat(sizes, sizes)


def lists_of(run: Run) -> RankedLists:
    """The ranked lists of a run."""
    starts = np.flatnonzero(run.table["rank"].to_numpy() == 1)
    return RankedLists(np.append(starts, run.table.height), run.table["score"].to_numpy())


def find_rows(table: pl.DataFrame, graded: pl.DataFrame, known: tuple[pl.Series, Array] | None) -> pl.DataFrame:
    """The rows of a run's ``table`` [N] that are ``graded`` (``query_id``, ``doc_id``, …), with their number ``row``.

    ``known``: ids of documents [D], and which of them each row [N] is.
    """
    # Few documents are judged: the join need not see the others.
    judged = IdIndex([graded["doc_id"]])
    among = judged.places(table["doc_id"] if known is None else known[0]) >= 0
    places = np.flatnonzero(among if known is None else among[known[1]])
    rows = pick(table.select("query_id", "doc_id"), places)
    rows = rows.with_columns(pl.Series("row", places, dtype=pl.UInt32))
    return rows.join(graded, on=["query_id", "doc_id"], how="inner").sort("row")


def moved_rows(graded: pl.DataFrame, order: Array) -> pl.DataFrame:
    """Graded rows (``row`` and more) of lists in another ``order`` [N] of their places."""
    wanted = np.zeros(len(order), dtype=bool)
    wanted[graded["row"].to_numpy()] = True
    places = np.flatnonzero(wanted[order])
    moved = pl.DataFrame({"row": order[places].astype(np.uint32), "place": places.astype(np.int32)})
    rows = graded.join(moved, on="row", how="inner")
    return rows.with_columns(pl.col("place").alias("row")).drop("place").sort("row")


def hits_of(lists: RankedLists, judged: pl.Series, judgements: pl.DataFrame, rows: pl.DataFrame) -> Hits:
    """The hits of the ``judged`` queries [J] in the lists, by their graded ``rows`` and all ``judgements``."""
    number = pl.DataFrame({"query_id": judged}).with_row_index("number")
    ideal = judgements.filter(pl.col("relevance") > 0).join(number, on="query_id", how="inner")
    ideal = ideal.sort("number", "relevance", descending=[False, True])
    hits = rows.join(number, on="query_id", how="inner").sort("number", "row")
    place, query = (hits[name].cast(pl.Int64).to_numpy() for name in ("row", "number"))
    start, size = lists.tie_of(place)
    first = lists.offsets[lists.query_of(place)]
    return Hits(
        len(judged),
        query,
        place - first + 1,
        hits["relevance"].to_numpy(),
        start - first,
        size,
        ideal["number"].cast(pl.Int64).to_numpy(),
        ideal["relevance"].to_numpy(),
    )


@dataclass(frozen=True)
class TieBlocks:
    """The tie blocks [B] that contain hits: query, documents before, size, hits within and hits before.

    ``first`` [B]: the place of each block's first hit among the hits.
    """

    query: Array
    before: Array
    size: Array
    hits: Array
    hits_before: Array
    first: Array

    @classmethod
    def of(cls, hits: Hits) -> TieBlocks:
        """The blocks of hits sorted by query and rank."""
        starts = starts_within(hits.query, hits.before)
        count = np.diff(np.append(starts, len(hits.query)))
        earlier = number_within(hits.query)[starts]
        return cls(hits.query[starts], hits.before[starts], hits.size[starts], count, earlier, starts)


def reach(before: Array, size: Array, cutoff: int | None) -> Array:
    """How many documents of each tie block are within the cutoff."""
    return size if cutoff is None else np.clip(cutoff - before, 0, size)


def chance_of_none(size: Array, count: Array, drawn: Array) -> Array:
    """The chance that ``drawn`` of ``size`` documents include none of ``count`` marked ones."""
    rest = size - drawn
    possible = rest >= count
    safe = np.where(possible, rest, count)
    return np.where(possible, np.exp(ln_choose(safe, count) - ln_choose(size, count)), 0.0)


def ln_choose(n: Array, k: Array) -> Array:
    """ln of the binomial coefficient n over k."""
    # A table of ln n! is enough for lists of documents, and spares importing scipy.
    factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, int(np.max(n, initial=0)) + 1)))))
    result: Array = factorial[n] - factorial[k] - factorial[n - k]
    return result


_KEPT_DEPTH = 100


class TableRows:
    """The rows [N] in the group table of the documents of ranked lists, −1 for a document without one.

    ``height``: how many rows the table has.
    """

    def __init__(self, rows: Array | Picked, height: int) -> None:
        self.rows = rows
        self.height = height
        self._first: Array | None = None

    def first(self, lists: RankedLists, depth: int) -> Array:
        """The rows of the first ``depth`` documents of each list [Q, depth], −1 past its end; columns share it."""
        if self._first is None or self._first.shape[1] < depth:
            inside = np.arange(depth) < lists.lengths[:, None]
            self._first = np.full(inside.shape, -1, dtype=np.int32)
            self._first[inside] = self.rows[expand(lists.offsets[:-1], np.minimum(lists.lengths, depth))[0]]
        return self._first[:, :depth]


class Column:
    """A value of each document of ranked lists [N], computed only for the rows asked for.

    ``values``: from rows of the group table to their values; ``missing``: the value of a document without a row.
    """

    def __init__(self, values: Callable[[Array], Array], documents: TableRows, missing: float) -> None:
        self._values = values
        self._documents = documents
        self._missing = missing
        self._first: Array | None = None
        self._means: Array | None = None

    def __len__(self) -> int:
        return len(self._documents.rows)

    def first(self, lists: RankedLists, depth: int) -> Array:
        """The values of the first ``depth`` documents of each list [Q, depth], cached for the next measure."""
        if self._first is None or self._first.shape[1] < depth:
            deepest = max(depth, min(_KEPT_DEPTH, int(lists.lengths.max(initial=1))))
            values = self._of(self._documents.first(lists, deepest))
            short = int(lists.lengths.min(initial=deepest)) < deepest
            self._first = np.where(np.arange(deepest) < lists.lengths[:, None], values, 0.0) if short else values
        return self._first[:, :depth]

    def means(self, lists: RankedLists) -> Array:
        """The mean of each list [Q], cached for the next measure."""
        if self._means is None:
            height = self._documents.height
            if len(self) <= height:
                self._means = lists.means(self)
            else:
                # Most documents are in several lists: each value is computed once. A row of −1 is the last.
                of_table = np.append(self._values(np.arange(height)), self._missing)
                self._means = lists.means(Picked(of_table, self._documents.rows))
        return self._means

    def __getitem__(self, rows: Array | slice) -> Array:
        return self._of(self._documents.rows[rows])

    def _of(self, document: Array) -> Array:
        """The values of documents by their rows in the group table, float64 whatever the table has."""
        # Looked up in several columns, which would each have to make these of narrower numbers.
        rows = document.astype(np.intp).reshape(-1)
        known = rows >= 0
        if known.all():
            return np.asarray(self._values(rows), dtype=np.float64).reshape(document.shape)
        values = np.full(len(rows), self._missing)
        values[known] = self._values(rows[known])
        return values.reshape(document.shape)


class Picked:
    """Values of places [N]: those of a table by the number of the row that each place has."""

    def __init__(self, of_table: Array, rows: Array | Picked) -> None:
        self._of_table = of_table
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Array | slice) -> Array:
        values: Array = self._of_table[self._rows[rows]]
        return values


@dataclass(frozen=True)
class Wins:
    """How often each clicked document wins against its list's documents that are not clicked.

    Each array is [H], one entry a clicked document: ``query``; ``strict``: documents that score lower; ``tied``:
    documents that score the same; ``others``: all of the list that are not clicked; ``score``: its own.
    """

    query: Array
    strict: Array
    tied: Array
    others: Array
    score: Array


def pairwise_wins(lists: RankedLists, clicked: Array) -> Wins:
    """Wins of the clicked documents, given by their places [H] in the lists' flat arrays, in ascending order."""
    query = lists.query_of(clicked)
    first_click = np.searchsorted(clicked, lists.offsets[:-1])
    clicks = np.diff(np.append(first_click, len(clicked)))[query]
    start, size = lists.tie_of(clicked)
    # Clicked documents ahead of each tie block, and within it.
    ahead = np.searchsorted(clicked, start) - first_click[query]
    within = np.searchsorted(clicked, start + size) - first_click[query] - ahead
    below = lists.offsets[query + 1] - start - size - (clicks - ahead - within)
    return Wins(
        query,
        below.astype(np.float64),
        (size - within).astype(np.float64),
        (lists.lengths[query] - clicks).astype(np.float64),
        lists.scores[clicked].astype(np.float64),
    )


def break_ties(wins: Wins, block: Array, rng: np.random.Generator) -> Wins:
    """The wins in one random order of tied documents; ``block`` [H]: each clicked document's tie block, rising."""
    _, block, clicked = np.unique(block, return_inverse=True, return_counts=True)
    size = wins.tied + clicked[block]
    # Distinct random places for the clicked documents of a block; those behind them that are not clicked are beaten.
    place = np.zeros(len(block))
    left = np.arange(len(block))
    while len(left):
        place[left] = np.floor(rng.random(len(left)) * size[left])
        order = np.lexsort((place, block))
        again = np.zeros(len(block), dtype=bool)
        again[order[1:]] = (block[order[1:]] == block[order[:-1]]) & (place[order[1:]] == place[order[:-1]])
        left = np.flatnonzero(again)
    order = np.lexsort((place, block))
    last = np.searchsorted(block, block, side="right") - 1
    clicked_behind = np.empty(len(block))
    clicked_behind[order] = last[order] - np.arange(len(block))
    beaten = size - 1 - place - clicked_behind
    return Wins(wins.query, wins.strict + beaten, np.zeros_like(wins.tied), wins.others, wins.score)


def tied_pair_share(wins: Wins) -> float:
    """Share of all (clicked, not clicked) pairs that are tied; NaN without a pair."""
    pairs = wins.others.sum()
    return float(wins.tied.sum() / pairs) if pairs else float("nan")
