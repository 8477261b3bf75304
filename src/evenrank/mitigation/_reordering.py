"""The loops of :mod:`.reorderings`: lists sorted, constrained by their prefixes, and the tables of FA*IR."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from evenrank.files.compiled import compiled
from evenrank.files.types import Array


def falling(offsets: Array, values: Array) -> Array:
    """The places [N] (int64) of the documents of each list by falling ``values`` [N]; stable."""
    order = np.empty(len(values), np.int64)
    for start, end in pairwise(offsets.tolist()):
        order[start:end] = np.argsort(-values[start:end], kind="stable") + start
    return order


# The compiler infers the types here; the docstrings describe those of the arguments.
# mypy: ignore-errors
# Documents stand in the order of the run: of two, the one with the smaller place is the better.


_ROUNDING = 1e-9
"""A share of a number of documents this close to a whole number is one: 0.29 · 100 is 28.999999999999996."""


@compiled(inline="always")
def least_of(share, length):
    """⌊share · length⌋."""
    return math.floor(share * length + _ROUNDING)


@compiled(inline="always")
def _chained(start, end, group, first, following):
    """Chains the documents of a list by group in the run's order.

    ``first`` [G] receives each group's first document, ``following`` [n] the one after each; −1: none.
    """
    first[:] = -1
    for place in range(end - 1, start - 1, -1):
        following[place - start] = first[group[place]]
        first[group[place]] = place


@compiled(nogil=True)
def fair_order(offsets, protected, minimum, starts, table, order):
    """FA*IR: fills ``order`` [N] by merging the documents with ``protected`` [N] and the others.

    List q has the m-table ``minimum[starts[table[q]] : starts[table[q] + 1]]``, of its first ranks. Whoever is first in
    the run comes next, unless the prefix needs a protected document.
    """
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        first, promised = starts[table[q]], starts[table[q] + 1] - starts[table[q]]
        kept, other, have = start, start, 0
        for place in range(start, end):
            while kept < end and not protected[kept]:
                kept += 1
            while other < end and protected[other]:
                other += 1
            needed = place - start < promised and minimum[first + place - start] > have
            if kept < end and (other >= end or needed or kept < other):
                order[place] = kept
                kept += 1
                have += 1
            else:
                order[place] = other
                other += 1


@compiled(nogil=True)
def fair_unmet(offsets, protected, minimum, starts, table, order, unmet):
    """Fills ``unmet`` [Q] with the prefixes of ``order`` that have fewer protected documents than the m-table asks."""
    for q in range(len(offsets) - 1):
        have, missed = 0, 0
        first, promised = starts[table[q]], starts[table[q] + 1] - starts[table[q]]
        for place in range(promised):
            have += protected[order[offsets[q] + place]]
            missed += have < minimum[first + place]
        unmet[q] = missed


@compiled(inline="always")
def _deadline(share, count, length):
    """The shortest prefix that needs ``count`` documents; ``length`` + 1 if no prefix of the list does."""
    if least_of(share, length) < count:
        return length + 1
    prefix = min(max(int(count / share), 1), length)
    while prefix > 1 and least_of(share, prefix - 1) >= count:
        prefix -= 1
    while least_of(share, prefix) < count:
        prefix += 1
    return prefix


@compiled(nogil=True)
def sorted_order(offsets, group, shares, top, order):
    """DetConstSort: fills ``order`` [N]; ``group`` [N] from 0 to G − 1, ``shares`` [Q, G] of the minimum.

    A prefix of k documents, up to ``top``, needs ⌊shares · k⌋ of each group. Document c of a group is due at the first
    prefix that needs c. Documents are taken as they fall due, and moved up past worse ones that do not get too late by
    it.
    """
    longest = 0
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    groups = shares.shape[1]
    following = np.empty(longest, np.int64)
    due_at = np.empty(longest, np.int64)
    due = np.empty(groups, np.int64)
    first = np.empty(groups, np.int64)
    count = np.empty(groups, np.int64)
    for q in range(len(offsets) - 1):
        start, length = offsets[q], offsets[q + 1] - offsets[q]
        promised = min(length, top)
        _chained(start, start + length, group, first, following)
        count[:] = 1
        for g in range(groups):
            due[g] = _deadline(shares[q, g], 1, promised)
        for rank in range(length):
            best = -1
            for g in range(groups):
                if first[g] >= 0 and (
                    best < 0 or due[g] < due[best] or (due[g] == due[best] and first[g] < first[best])
                ):
                    best = g
            place, deadline = first[best], due[best]
            first[best] = following[place - start]
            count[best] += 1
            due[best] = _deadline(shares[q, best], count[best], promised)
            at = rank
            # The one before would come to rank at + 1, counted from 1.
            while at > 0 and due_at[at - 1] > at and order[start + at - 1] > place:
                order[start + at], due_at[at] = order[start + at - 1], due_at[at - 1]
                at -= 1
            order[start + at], due_at[at] = place, deadline


@compiled(nogil=True)
def shares_unmet(offsets, group, shares, top, order, unmet):
    """Fills ``unmet`` [Q] with the prefixes of ``order``, up to ``top``, with fewer of a group than ⌊shares · k⌋."""
    groups = shares.shape[1]
    count = np.empty(groups, np.int64)
    for q in range(len(offsets) - 1):
        count[:] = 0
        missed = 0
        for place in range(offsets[q], min(offsets[q + 1], offsets[q] + top)):
            count[group[order[place]]] += 1
            length = place - offsets[q] + 1
            for g in range(groups):
                if count[g] < least_of(shares[q, g], length):
                    missed += 1
                    break
        unmet[q] = missed


# The compiler infers the types here; the docstrings describe those of the arguments.
# mypy: ignore-errors


_NARROWEST = 1e-16
"""The width of the interval for α at which fairsearchcore stops."""
_NEARLY = 1 - 3.3e-16
"""What scipy, and so fairsearchcore, lets rounding take from a distribution: F(0; 1, 0.9) reaches α = 0.1."""


@compiled(nogil=True)
def _minimum(p, alpha, table):
    """Fills ``table`` [k] with the least m with F(m; n, p) ≥ alpha for n = 1 … k; returns its sum.

    F(m; n + 1) = F(m; n) − p · f(m; n): distribution and probability at the quantile are carried from n to n + 1.
    """
    total, m = 0, 0
    below, at = 1.0, 1.0  # F(m; n, p) and f(m; n, p)
    for n in range(1, len(table) + 1):
        if alpha > 0 and p >= 1:
            m = n
        elif alpha > 0:
            below -= p * at
            at *= (1 - p) * (n / (n - m))
            below = at if m == 0 else below
            if below < alpha * _NEARLY and m < n:
                at *= (n - m) / (m + 1) * (p / (1 - p))
                m += 1
                below = 1.0 if m == n else below + at
        table[n - 1] = m
        total += m
    return total


@compiled(nogil=True)
def _failing(p, table, chance):
    """The probability that a list of independent draws with ``p`` falls below ``table`` before its last place.

    ``chance`` is room for at least max(table) + 1 numbers. fairsearchcore leaves out the last place.
    """
    places = len(table) - 1
    most = table[places - 1] if places > 0 else 0
    if most <= 0:
        return 0.0
    chance[: most + 1] = 0
    chance[0] = 1
    low = 0
    for place in range(places):
        # Whoever has as many as will ever be needed has them for good.
        high = min(most, place + 1)
        if high == most:
            chance[most] += p * chance[most - 1]
            high -= 1
        for count in range(high, low, -1):
            chance[count] = (1 - p) * chance[count] + p * chance[count - 1]
        chance[low] *= 1 - p
        if table[place] > low:
            chance[low] = 0
            low = table[place]
        if low == most:
            break
    passed = 0.0
    for count in range(low, most + 1):
        passed += chance[count]
    return 0.0 if passed == 0 else 1 - passed


def fill_tables(shares: Array, starts: Array, alpha: float, tables: Array, adjusted: Array, failing: Array) -> None:
    """For each p in ``shares`` [U], the m-table in ``tables[starts[u] : starts[u + 1]]`` with α corrected.

    ``adjusted`` and ``failing`` [U] receive the corrected α, and the probability of failing the table by chance. The
    steps are those of fairsearchcore's bisection, which ends between two tables that differ by one document.
    """
    longest = 0
    for u in range(len(shares)):
        longest = max(longest, starts[u + 1] - starts[u])
    chance = np.empty(longest + 2)
    room = np.empty((3, longest), np.int64)
    for u in range(len(shares)):
        k = starts[u + 1] - starts[u]
        p = min(max(shares[u], 0.0), 1.0)
        least, middle, most = room[0, :k], room[1, :k], room[2, :k]
        low, high = 0.0, alpha
        low_sum, high_sum = _minimum(p, low, least), _minimum(p, high, most)
        low_fails, high_fails = _failing(p, least, chance), _failing(p, most, chance)
        between = (low + high) / 2
        sum_ = _minimum(p, between, middle)
        fails = _failing(p, middle, chance)
        chosen = 1
        while low_sum < high_sum and fails != alpha:
            if fails < alpha:
                low, low_sum, low_fails = between, sum_, fails
                least[:] = middle
            else:
                high, high_sum, high_fails = between, sum_, fails
                most[:] = middle
            between = (low + high) / 2
            sum_ = _minimum(p, between, middle)
            # A table never shrinks as α grows: equal sums are equal tables.
            if sum_ == low_sum:
                fails = low_fails
            elif sum_ == high_sum:
                fails = high_fails
            else:
                fails = _failing(p, middle, chance)
            from_low, from_high = abs(low_fails - alpha), abs(high_fails - alpha)
            if high_sum - low_sum == 1 or high - low <= _NARROWEST:
                chosen = 0 if from_low <= from_high else 2
                break
            if high_sum - sum_ == 1 and sum_ - low_sum == 1:
                from_middle = abs(fails - alpha)
                if from_middle > from_low or from_middle > from_high:
                    chosen = 0 if from_low <= from_high else 2
                break
        tables[starts[u] : starts[u + 1]] = room[chosen, :k]
        adjusted[u] = low if chosen == 0 else between if chosen == 1 else high
        failing[u] = low_fails if chosen == 0 else fails if chosen == 1 else high_fails
