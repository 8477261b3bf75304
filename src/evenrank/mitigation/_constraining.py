"""Lists put in another order by what their prefixes must hold of each group: compiled loops over documents."""

# The compiler infers the types here; the docstrings describe those of the arguments.
# mypy: ignore-errors
# Documents stand in the order of the run: of two, the one with the smaller place is the better.

from __future__ import annotations

import math

import numpy as np

from evenrank._jit import compiled

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

    List q has the m-table ``minimum[starts[table[q]] :]``. Whoever is first in the run comes next, unless the prefix
    needs a protected document.
    """
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        kept, other, have = start, start, 0
        for place in range(start, end):
            while kept < end and not protected[kept]:
                kept += 1
            while other < end and protected[other]:
                other += 1
            needed = minimum[starts[table[q]] + place - start] > have
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
        for place in range(offsets[q], offsets[q + 1]):
            have += protected[order[place]]
            missed += have < minimum[starts[table[q]] + place - offsets[q]]
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
def sorted_order(offsets, group, shares, order):
    """DetConstSort: fills ``order`` [N]; ``group`` [N] from 0 to G − 1, ``shares`` [Q, G] of the minimum.

    A prefix of k documents needs ⌊shares · k⌋ of each group. Document c of a group is due at the first prefix that
    needs c. Documents are taken as they fall due, and moved up past worse ones that do not get too late by it.
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
        _chained(start, start + length, group, first, following)
        count[:] = 1
        for g in range(groups):
            due[g] = _deadline(shares[q, g], 1, length)
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
            due[best] = _deadline(shares[q, best], count[best], length)
            at = rank
            # The one before would come to rank at + 1, counted from 1.
            while at > 0 and due_at[at - 1] > at and order[start + at - 1] > place:
                order[start + at], due_at[at] = order[start + at - 1], due_at[at - 1]
                at -= 1
            order[start + at], due_at[at] = place, deadline


@compiled(nogil=True)
def shares_unmet(offsets, group, shares, order, unmet):
    """Fills ``unmet`` [Q] with the prefixes of ``order`` that have fewer documents of a group than ⌊shares · k⌋."""
    groups = shares.shape[1]
    count = np.empty(groups, np.int64)
    for q in range(len(offsets) - 1):
        count[:] = 0
        missed = 0
        for place in range(offsets[q], offsets[q + 1]):
            count[group[order[place]]] += 1
            length = place - offsets[q] + 1
            for g in range(groups):
                if count[g] < least_of(shares[q, g], length):
                    missed += 1
                    break
        unmet[q] = missed
