"""The orders of :mod:`.reorderings`: lists sorted, constrained by their prefixes, and the tables of FA*IR.

Lists are made longer by one document at a time, all at once. Documents stand in the order of the run: of two, the one
with the smaller place is the better.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from evenrank.files.types import Array
from evenrank.stats.shares import binomial_quantiles

_ROUNDING = 1e-9
"""A share of a number of documents this close to a whole number is one: 0.29 · 100 is 28.999999999999996."""
_NARROWEST = 1e-16
"""The width of the interval for α at which fairsearchcore stops."""


def falling(offsets: Array, values: Array) -> Array:
    """The places [N] (int64) of the documents of each list by falling ``values`` [N]; stable."""
    order = np.empty(len(values), np.int64)
    for start, end in pairwise(offsets.tolist()):
        order[start:end] = np.argsort(-values[start:end], kind="stable") + start
    return order


def fair_order(offsets: Array, protected: Array, minimum: Array, starts: Array, table: Array) -> Array:
    """FA*IR: the places [N] of the documents, those with ``protected`` [N] and the others merged.

    List q has the m-table ``minimum[starts[table[q]] : starts[table[q] + 1]]``, of its first ranks. Whoever is first in
    the run comes next, unless the prefix needs a protected document.
    """
    lengths, ends, size = np.diff(offsets), offsets[1:], len(protected)
    next_kept, next_other = _following(protected), _following(~protected)
    protected_row, other = next_kept[offsets[:-1]], next_other[offsets[:-1]]
    have = np.zeros(len(lengths), np.int64)
    promised = np.diff(starts)[table]
    order = np.empty(size, np.int64)
    for rank in range(int(lengths.max(initial=0))):
        own = np.flatnonzero(lengths > rank)
        at = np.minimum(starts[table[own]] + rank, len(minimum) - 1)
        needed = (rank < promised[own]) & (minimum[at] > have[own])
        first, second = protected_row[own], other[own]
        takes = (first < ends[own]) & ((second >= ends[own]) | needed | (first < second))
        order[offsets[own] + rank] = np.where(takes, first, second)
        have[own] += takes
        protected_row[own] = np.where(takes, next_kept[np.minimum(first + 1, size)], first)
        other[own] = np.where(takes, second, next_other[np.minimum(second + 1, size)])
    return order


def _following(chosen: Array) -> Array:
    """The first chosen document at each place or after it [N + 1]; N: none."""
    size = len(chosen)
    places = np.append(np.where(chosen, np.arange(size), size), size)
    following: Array = np.minimum.accumulate(places[::-1])[::-1]
    return following


def fair_unmet(offsets: Array, protected: Array, minimum: Array, starts: Array, table: Array, order: Array) -> Array:
    """In each list [Q], the prefixes of ``order`` that have fewer protected documents than the m-table asks."""
    list_of, rank = _ranks(offsets)
    promised = rank < np.diff(starts)[table][list_of]
    list_of, rank = list_of[promised], rank[promised]
    missed = _had(offsets, protected[order])[promised] < minimum[starts[table[list_of]] + rank]
    return np.bincount(list_of[missed], minlength=len(offsets) - 1)


def _ranks(offsets: Array) -> tuple[Array, Array]:
    """The list of each place [N], and its rank in it from 0 [N]."""
    list_of = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return list_of, np.arange(len(list_of)) - offsets[list_of]


def _had(offsets: Array, chosen: Array) -> Array:
    """How many documents of its list are ``chosen`` [N] up to each place [N]."""
    total = np.append(0, np.cumsum(chosen))
    in_list: Array = total[1:] - np.repeat(total[offsets[:-1]], np.diff(offsets))
    return in_list


def _least_of(share: Array, length: Array) -> Array:
    """⌊share · length⌋."""
    least: Array = np.floor(share * length + _ROUNDING)
    return least


def _deadlines(share: Array, count: Array, length: Array) -> Array:
    """The shortest prefix that needs ``count`` documents; ``length`` + 1 if no prefix of the list does."""
    never = _least_of(share, length) < count
    with np.errstate(divide="ignore", over="ignore"):
        prefix = np.clip(count / share, 1, np.maximum(length, 1)).astype(np.int64)
    while (late := ~never & (prefix > 1) & (_least_of(share, prefix - 1) >= count)).any():
        prefix = prefix - late
    while (early := ~never & (_least_of(share, prefix) < count)).any():
        prefix = prefix + early
    return np.where(never, length + 1, prefix)


def sorted_order(offsets: Array, group: Array, shares: Array, top: int) -> Array:
    """DetConstSort: the places [N] of the documents; ``group`` [N] from 0 to G − 1, ``shares`` [Q, G] of the minimum.

    A prefix of k documents, up to ``top``, needs ⌊shares · k⌋ of each group. Document c of a group is due at the first
    prefix that needs c. Documents are taken as they fall due, and moved up past worse ones that do not get too late by
    it.
    """
    lengths, size = np.diff(offsets), len(group)
    promised, longest = np.minimum(lengths, top), int(lengths.max(initial=0))
    first, following = _chains(_ranks(offsets)[0], group, shares.shape)
    count = np.ones(shares.shape, np.int64)
    due = _deadlines(shares, count, promised[:, None])
    order, due_at = np.empty((2, len(lengths), longest), np.int64)
    for rank in range(longest):
        own = np.flatnonzero(lengths > rank)
        # Of the documents that are due first, the best.
        next_due = np.where(first[own] < size, due[own], np.iinfo(np.int64).max)
        best = np.where(next_due == next_due.min(axis=1, keepdims=True), first[own], size).argmin(axis=1)
        place, deadline = first[own, best], due[own, best]
        first[own, best] = following[place]
        count[own, best] += 1
        due[own, best] = _deadlines(shares[own, best], count[own, best], promised[own])
        at, moving = np.full(len(own), rank), np.arange(len(own))
        while True:
            moving = moving[at[moving] > 0]
            row, before = own[moving], at[moving] - 1
            # The one before would come to rank before + 2, counted from 1.
            moves = (due_at[row, before] > before + 1) & (order[row, before] > place[moving])
            moving, row, before = moving[moves], row[moves], before[moves]
            if not len(moving):
                break
            order[row, before + 1], due_at[row, before + 1] = order[row, before], due_at[row, before]
            at[moving] = before
        order[own, at], due_at[own, at] = place, deadline
    return order[np.arange(longest) < lengths[:, None]]


def _chains(list_of: Array, group: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Each group's first document in each list [Q, G], and the one of its list and group after each [N]; N: none."""
    size = len(group)
    of = list_of * shape[1] + group
    rows = np.argsort(of, kind="stable")
    begins = np.diff(of[rows], prepend=-1) > 0
    first, following = np.full(shape, size), np.full(size, size)
    first.reshape(-1)[of[rows[begins]]] = rows[begins]
    following[rows[:-1][~begins[1:]]] = rows[1:][~begins[1:]]
    return first, following


def shares_unmet(offsets: Array, group: Array, shares: Array, top: int, order: Array) -> Array:
    """In each list [Q], the prefixes of ``order``, up to ``top``, with fewer of a group than ⌊shares · k⌋."""
    list_of, rank = _ranks(offsets)
    missed = np.zeros(len(group), np.bool_)
    for number in range(shares.shape[1]):
        missed |= _had(offsets, group[order] == number) < _least_of(shares[list_of, number], rank + 1)
    return np.bincount(list_of[missed & (rank < top)], minlength=len(offsets) - 1)


def _failing(p: float, table: Array) -> float:
    """The probability that a list of independent draws with ``p`` falls below ``table`` before its last place.

    fairsearchcore leaves out the last place.
    """
    places = len(table) - 1
    most = int(table[places - 1]) if places > 0 else 0
    if most <= 0:
        return 0.0
    chance = np.zeros(most + 2)
    chance[0] = 1
    low = 0
    for place in range(places):
        # Whoever has as many as will ever be needed has them for good.
        high = min(most, place + 1)
        if high == most:
            chance[most] += p * chance[most - 1]
            high -= 1
        chance[low + 1 : high + 1] = (1 - p) * chance[low + 1 : high + 1] + p * chance[low:high]
        chance[low] *= 1 - p
        if table[place] > low:
            chance[low] = 0
            low = int(table[place])
        if low == most:
            break
    passed = float(np.cumsum(chance[low : most + 1])[-1])
    return 0.0 if passed == 0 else 1 - passed


@dataclass(frozen=True, slots=True)
class MTable:
    """The protected documents that a fair list has at least.

    Attributes:
        minimum: In the first 1, 2, … k documents [k] (int64).
        alpha: The corrected significance α_c.
        fail_probability: That of a list of independent draws to fall below the minimum before its last document.
    """

    minimum: Array
    alpha: float
    fail_probability: float

    @property
    def total(self) -> int:
        """The sum of the table, which never falls as α grows: equal sums are equal tables."""
        return int(self.minimum.sum())


def adjusted_table(share: float, size: int, alpha: float) -> MTable:
    """The m-table of a proportion for lists of ``size``, with α corrected.

    The steps are those of fairsearchcore's bisection, which ends between two tables that differ by one document.
    """
    p = min(max(share, 0.0), 1.0)

    def table_at(value: float) -> MTable:
        minimum = binomial_quantiles(value, np.arange(1, size + 1), p)
        return MTable(minimum, value, _failing(p, minimum))

    low, high = table_at(0.0), table_at(alpha)
    middle = table_at(alpha / 2)
    while low.total < high.total and middle.fail_probability != alpha:
        low, high = (middle, high) if middle.fail_probability < alpha else (low, middle)
        middle = table_at((low.alpha + high.alpha) / 2)
        nearer = min(low, high, key=lambda end: abs(end.fail_probability - alpha))
        if high.total - low.total == 1 or high.alpha - low.alpha <= _NARROWEST:
            return nearer
        between = high.total - middle.total == 1 and middle.total - low.total == 1
        if between and abs(middle.fail_probability - alpha) > abs(nearer.fail_probability - alpha):
            return nearer
    return middle
