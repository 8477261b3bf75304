"""Effectiveness, equal to what ir_measures gives, from the judged documents alone.

A run's documents without a positive grade add nothing to any of these measures, so only the *hits* (documents of the
run with a positive grade) are looked at. Where documents are tied, the expectation over their orders has a closed
form for each measure here [McSherry & Najork, ECIR 2008]; that of ERR is our own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenrank.io.errors import EvenrankError

from .lists import Array, RankedLists


@dataclass(frozen=True)
class Hits:
    """The documents with a positive grade that Q judged queries' lists hold, by query and rank.

    ``query``, ``rank`` (from 1), ``grade`` [H]; ``before`` [H]: documents ahead of the hit's tie group; ``size`` [H]:
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
        """The hits in the best (or worst) order of tied documents: high grades first (or last) in each tie group."""
        order = np.lexsort((-self.grade if best else self.grade, self.before, self.query))
        query, grade = self.query[order], self.grade[order]
        before, size = self.before[order], self.size[order]
        number = _number_within(query, before)
        count = _count_within(query, before)
        rank = before + number + 1 if best else before + size - count + number + 1
        return replace(self, query=query, grade=grade, rank=rank, before=rank - 1, size=np.ones_like(rank))

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


def _starts_within(*keys: Array) -> Array:
    new = np.ones(len(keys[0]), dtype=bool)
    new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return np.flatnonzero(new)


def _number_within(*keys: Array) -> Array:
    """The number of each entry among neighbours with equal keys, from 0."""
    starts = _starts_within(*keys)
    number: Array = np.arange(len(keys[0])) - np.repeat(starts, np.diff(np.append(starts, len(keys[0]))))
    return number


def _count_within(*keys: Array) -> Array:
    """How many neighbours with equal keys each entry has, itself included."""
    starts = _starts_within(*keys)
    sizes = np.diff(np.append(starts, len(keys[0])))
    return np.repeat(sizes, sizes)


def _ratio(numerator: Array, denominator: Array) -> Array:
    """0 where the denominator is 0, as trec_eval has it for a query without a relevant document."""
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)


def precision(hits: Hits, cutoff: int) -> Array:
    """P@cutoff [Q]: relevant documents among the first ``cutoff`` ranks / cutoff."""
    return hits.sum(np.ones(len(hits.rank)), hits.rank <= cutoff) / cutoff


def recall(hits: Hits, cutoff: int) -> Array:
    """R@cutoff [Q]: relevant documents among the first ``cutoff`` ranks / relevant documents judged."""
    return _ratio(hits.sum(np.ones(len(hits.rank)), hits.rank <= cutoff), hits.relevant)


def success(hits: Hits, cutoff: int) -> Array:
    """Success@cutoff [Q]: 1 where a relevant document stands among the first ``cutoff`` ranks."""
    return (precision(hits, cutoff) > 0).astype(np.float64)


def reciprocal_rank(hits: Hits, cutoff: int | None = None) -> Array:
    """RR@cutoff [Q]: 1 / rank of the first relevant document, 0 where none stands in the first ``cutoff`` ranks."""
    value = np.zeros(hits.queries)
    chosen = hits.rank <= (cutoff or np.inf)
    np.maximum.at(value, hits.query[chosen], 1 / hits.rank[chosen])
    return value


def average_precision(hits: Hits, cutoff: int | None = None) -> Array:
    """AP@cutoff [Q]: mean over the relevant documents judged of the precision at each one's rank, 0 if not reached."""
    order = np.lexsort((hits.rank, hits.query))
    query, rank = hits.query[order], hits.rank[order]
    share = (_number_within(query) + 1) / rank
    chosen = rank <= (cutoff or np.inf)
    return _ratio(np.bincount(query[chosen], weights=share[chosen], minlength=hits.queries), hits.relevant)


def ndcg(hits: Hits, cutoff: int | None = None) -> Array:
    """nDCG@cutoff [Q] with gain = grade and discount log2(1 + rank), as trec_eval."""
    return _ratio(_dcg(hits.queries, hits.query, hits.rank, hits.grade, cutoff), _ideal_dcg(hits, cutoff))


def _ideal_dcg(hits: Hits, cutoff: int | None) -> Array:
    rank = _number_within(hits.ideal_query) + 1 if len(hits.ideal_query) else hits.ideal_query
    return _dcg(hits.queries, hits.ideal_query, rank, hits.ideal_grade, cutoff)


def _dcg(queries: int, query: Array, rank: Array, grade: Array, cutoff: int | None) -> Array:
    gain = np.where(rank <= (cutoff or np.inf), grade / np.log2(rank + 1.0), 0.0)
    return np.bincount(query, weights=gain, minlength=queries)


def expected_reciprocal_rank(hits: Hits, cutoff: int) -> Array:
    """ERR@cutoff [Q] for grades 0 to 4, stopping probability (2^grade − 1)/16, as gdeval."""
    order = np.lexsort((hits.rank, hits.query))
    query, rank, stop = hits.query[order], hits.rank[order], _stopping(hits.grade[order])
    chosen = rank <= cutoff
    value = _survival(query, stop) * stop / rank
    return np.bincount(query[chosen], weights=value[chosen], minlength=hits.queries)


def _stopping(grade: Array) -> Array:
    if grade.max(initial=0) > 4:
        raise EvenrankError(f"ERR takes grades from 0 to 4; the qrels hold {grade.max()}")
    return (2.0**grade - 1) / 16


def _survival(query: Array, stop: Array) -> Array:
    """The chance [H] of not having stopped before each hit: the product of 1 − stop over the query's earlier hits."""
    # A cumulative sum of logs over everything, minus its value where the query starts.
    logs = np.concatenate(([0.0], np.cumsum(np.log1p(-stop))))
    starts = np.arange(len(query)) - _number_within(query) if len(query) else np.zeros(0, dtype=np.int64)
    chance: Array = np.exp(logs[:-1] - logs[starts])
    return chance


# --- expectations over the orders of tied documents ------------------------------------------------------------------


@dataclass(frozen=True)
class _Groups:
    """The tie groups [G] that hold hits: query, documents before, size, hits within and hits before."""

    query: Array
    before: Array
    size: Array
    hits: Array
    hits_before: Array
    first: Array


def _groups(hits: Hits) -> _Groups:
    starts = _starts_within(hits.query, hits.before) if len(hits.query) else np.zeros(0, dtype=np.int64)
    count = np.diff(np.append(starts, len(hits.query)))
    earlier = _number_within(hits.query)[starts] if len(starts) else starts
    return _Groups(hits.query[starts], hits.before[starts], hits.size[starts], count, earlier, starts)


def _reach(before: Array, size: Array, cutoff: int | None) -> Array:
    """How many documents of each tie group stand within the cutoff."""
    return size if cutoff is None else np.clip(cutoff - before, 0, size)


def expected_precision(hits: Hits, cutoff: int) -> Array:
    """Expectation of :func:`precision` over the orders of tied documents."""
    return hits.sum(_reach(hits.before, hits.size, cutoff) / hits.size) / cutoff


def expected_recall(hits: Hits, cutoff: int) -> Array:
    """Expectation of :func:`recall` over the orders of tied documents."""
    return _ratio(hits.sum(_reach(hits.before, hits.size, cutoff) / hits.size), hits.relevant)


def expected_ndcg(hits: Hits, cutoff: int | None = None) -> Array:
    """Expectation of :func:`ndcg` over the orders of tied documents."""
    deepest = int((hits.before + hits.size).max(initial=0))
    discounts = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(2, deepest + 2)))))
    reach = _reach(hits.before, hits.size, cutoff)
    gain = hits.grade * (discounts[hits.before + reach] - discounts[hits.before]) / hits.size
    return _ratio(hits.sum(gain), _ideal_dcg(hits, cutoff))


def expected_success(hits: Hits, cutoff: int) -> Array:
    """Expectation of :func:`success` over the orders of tied documents."""
    groups = _groups(hits)
    first = groups.hits_before == 0
    size, count = groups.size[first], groups.hits[first]
    value = np.zeros(hits.queries)
    value[groups.query[first]] = 1 - _chance_of_none(size, count, _reach(groups.before[first], size, cutoff))
    return value


def _chance_of_none(size: Array, count: Array, drawn: Array) -> Array:
    """The chance that ``drawn`` of ``size`` documents hold none of ``count`` marked ones."""
    rest = size - drawn
    possible = rest >= count
    safe = np.where(possible, rest, count)
    return np.where(possible, np.exp(_ln_choose(safe, count) - _ln_choose(size, count)), 0.0)


def _ln_choose(n: Array, k: Array) -> Array:
    # A table of ln n! does for lists of documents, and spares importing scipy.
    factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, int(np.max(n, initial=0)) + 1)))))
    result: Array = factorial[n] - factorial[k] - factorial[n - k]
    return result


def expected_rr(hits: Hits, cutoff: int | None = None) -> Array:
    """Expectation of :func:`reciprocal_rank` over the orders of tied documents."""
    groups = _groups(hits)
    first = groups.hits_before == 0
    query, before, size, count = (x[first] for x in (groups.query, groups.before, groups.size, groups.hits))
    reach = np.minimum(_reach(before, size, cutoff), size - count + 1)
    group = np.repeat(np.arange(len(reach)), reach)
    place = np.arange(len(group)) - np.repeat(np.cumsum(reach) - reach, reach)
    # The first hit stands at a place if none does before it and one of the rest does at it.
    none_before = _chance_of_none(size[group], count[group], place)
    none_until = _chance_of_none(size[group], count[group], place + 1)
    value = (none_before - none_until) / (before[group] + place + 1)
    return np.bincount(query[group], weights=value, minlength=hits.queries)


def expected_ap(hits: Hits, cutoff: int | None = None) -> Array:
    """Expectation of :func:`average_precision` over the orders of tied documents."""
    groups = _groups(hits)
    reach = _reach(groups.before, groups.size, cutoff)
    deepest = int((groups.before + groups.size).max(initial=0))
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, deepest + 1))))
    # Σ over places i = 1 … reach of (c + 1 + (i − 1)(r − 1)/(g − 1)) / (s + i)
    inverse = harmonic[groups.before + reach] - harmonic[groups.before]
    slope = (groups.hits - 1) / np.maximum(groups.size - 1, 1)
    total = (groups.hits_before + 1) * inverse + slope * (reach - (groups.before + 1) * inverse)
    share = groups.hits / groups.size * total
    return _ratio(np.bincount(groups.query, weights=share, minlength=hits.queries), hits.relevant)


def expected_err(hits: Hits, cutoff: int) -> Array:
    """Expectation of :func:`expected_reciprocal_rank` over the orders of tied documents.

    With f(i) the expected product of 1 − stop over i documents drawn from a tie group, its place i adds
    (f(i − 1) − f(i)) / rank, times the chance of getting to the group.
    """
    groups = _groups(hits)
    cutoff = min(cutoff, int((hits.before + hits.size).max(initial=1)))
    stop = _stopping(hits.grade)
    reached = _survival(hits.query, stop)[groups.first] if len(groups.first) else groups.first.astype(float)
    most = int(groups.hits.max(initial=0))
    # polynomial[u]: sum over u-subsets of a group's hits of the product of 1 − stop, by the usual recurrence.
    padded = np.zeros((len(groups.first), most))
    lane = np.repeat(np.arange(len(groups.first)), groups.hits)
    padded[lane, _number_within(hits.query, hits.before) if len(lane) else lane] = 1 - stop
    polynomial = np.zeros((len(groups.first), most + 1))
    polynomial[:, 0] = 1
    for hit in range(most):
        polynomial[:, 1:] += polynomial[:, :-1] * padded[:, hit, None]
    places = np.arange(cutoff + 1)
    drawn = np.minimum(places, _reach(groups.before, groups.size, cutoff)[:, None])
    survive = np.zeros(drawn.shape)
    size, count = groups.size[:, None], groups.hits[:, None]
    for u in range(most + 1):
        possible = (u <= count) & (u <= drawn) & (drawn - u <= size - count)
        d, c, s = np.where(possible, drawn, u), np.where(possible, count, u), np.where(possible, size, 2 * u)
        # Hypergeometric chance of u hits among the drawn, over the number of u-subsets.
        ln = _ln_choose(s - c, d - u) - _ln_choose(s, d)
        survive += np.where(possible, np.exp(ln) * polynomial[:, [min(u, most)]], 0.0)
    gain = ((survive[:, :-1] - survive[:, 1:]) / (groups.before[:, None] + places[1:])).sum(axis=1)
    return np.bincount(groups.query, weights=reached * gain, minlength=hits.queries)
