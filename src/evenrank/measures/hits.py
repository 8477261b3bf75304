"""The graded documents in ranked lists, which are all that effectiveness depends on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenrank.io.types import Array

from .ranked_lists import RankedLists


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


def find_hits(
    lists: RankedLists, rows: Array, query: Array, grade: Array, ideal_query: Array, ideal_grade: Array, queries: int
) -> Hits:
    """Hits from the places ``rows`` [H] of graded documents in the lists, with judged-query numbers and grades."""
    order = np.lexsort((rows, query))
    rows, query, grade = rows[order], query[order], grade[order]
    start, size = lists.tie_of(rows)
    first = lists.offsets[lists.query_of(rows)]
    ideal = np.lexsort((-ideal_grade, ideal_query))
    return Hits(
        queries,
        query,
        rows - first + 1,
        grade,
        start - first,
        size,
        ideal_query[ideal],
        ideal_grade[ideal],
    )


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
