"""The searches of :mod:`.reorder_balance`: exact, by what is placed so far, else along a beam; compiled, without the
interpreter lock."""

# The compiler infers the types; those of the arguments are in the docstrings.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank._jit import compiled

from ._balancing_beam import SAME, along_a_beam

_LARGEST = np.iinfo(np.int64).max


# parameters: a compiled loop takes plain arrays.
@compiled(nogil=True)
def balance(offsets, scores, whole, falling, limit, discount, work, width, places, exact, exceeding):
    """Writes the new order of each list, whether it is the best, and how many of its prefixes exceed the limit.

    ``offsets`` [Q + 1]; ``scores`` [N], falling in each list; ``whole`` [N]: signed magnitudes as int64, whose sums do
    not overflow; ``falling`` [N]: the numbers of each list's documents, from 0, by falling magnitude; ``limit`` [Q]
    int64; ``discount`` [longest list]. Lists with at most ``work`` steps are searched exactly, others along a beam of
    ``width``. Fills ``places`` [N], ``exact`` [Q] and ``exceeding`` [Q].
    """
    for query in range(len(limit)):
        first, last = offsets[query], offsets[query + 1]
        size = last - first
        order = np.arange(size)
        exact[query] = True
        if _exceeding(whole[first:last], order, limit[query]) > 0:
            values, value_of = _distinct(whole[first:last], falling[first:last])
            starts, queue = _queues(value_of, len(values))
            steps = np.int64(len(values))
            for v in range(len(values)):
                steps *= starts[v + 1] - starts[v] + 1
                if steps > work:
                    break
            if steps <= work:
                order = _searched(scores[first:last], values, starts, queue, limit[query], discount)
            else:
                order, known = along_a_beam(
                    scores[first:last],
                    whole[first:last],
                    falling[first:last],
                    value_of,
                    len(values),
                    limit[query],
                    discount,
                    width,
                )
                exact[query] = known
        exceeding[query] = _exceeding(whole[first:last], order, limit[query])
        for k in range(size):
            places[first + k] = first + order[k]


@compiled(nogil=True)
def _exceeding(whole, order, limit):
    """How many prefixes have a sum beyond ± ``limit``."""
    total, count = np.int64(0), 0
    for i in order:
        total += whole[i]
        # Each magnitude is off by half a unit at most.
        count += abs(total) > limit + len(whole)
    return count


@compiled(nogil=True)
def _distinct(whole, falling):
    """The distinct magnitudes [D], falling, and the number of each document's magnitude among them [n]."""
    values, value_of, found = np.empty(len(whole), np.int64), np.empty(len(whole), np.int64), 0
    for i in falling:
        if found == 0 or whole[i] != values[found - 1]:
            values[found] = whole[i]
            found += 1
        value_of[i] = found - 1
    return values[:found], value_of


@compiled(nogil=True)
def _queues(value_of, count):
    """The documents by magnitude, in the run's order: those of value v are ``queue[starts[v] : starts[v + 1]]``."""
    starts = np.zeros(count + 1, np.int64)
    for v in value_of:
        starts[v + 1] += 1
    starts = np.cumsum(starts)
    queue, filled = np.empty(len(value_of), np.int64), starts[:-1].copy()
    for i in range(len(value_of)):
        queue[filled[value_of[i]]] = i
        filled[value_of[i]] += 1
    return starts, queue


@compiled(nogil=True)
def _searched(scores, values, starts, queue, limit, discount):
    """The best order. Documents of one magnitude come in the run's order, so what matters of a beginning is how many
    it has of each magnitude; from the whole list backwards, the best continuation of every such beginning."""
    kinds, size = len(values), len(queue)
    near = size * size
    stride = np.ones(kinds + 1, np.int64)
    for v in range(kinds):
        stride[v + 1] = stride[v] * (starts[v + 1] - starts[v] + 1)
    states = stride[kinds]
    excess, utility, choice = np.empty(states, np.int64), np.empty(states), np.zeros(states, np.uint8)
    # The next document of each magnitude; the number of documents where there is none.
    place, following = starts[1:].copy(), np.full(kinds, size)
    rank, total = size, (values * (starts[1:] - starts[:-1])).sum()
    for state in range(states - 1, -1, -1):
        best, best_excess, best_utility, best_document = 0, _LARGEST, 0.0, size
        for v in range(kinds):
            document = following[v]
            if document < size:
                after = state + stride[v]
                more = excess[after] - best_excess
                if more <= near:
                    gained = utility[after] + discount[rank] * scores[document]
                    gain = gained - best_utility
                    if more < -near or gain > SAME or (gain >= -SAME and document < best_document):
                        best, best_excess, best_utility, best_document = v, excess[after], gained, document
        if rank == size:
            best_excess = 0
        choice[state], utility[state] = best, best_utility
        excess[state] = best_excess + max(np.int64(0), abs(total) - limit)
        # One less of the first magnitude that has any, and all of those before it.
        for v in range(kinds):
            if place[v] > starts[v]:
                place[v] -= 1
                following[v] = queue[place[v]]
                rank -= 1
                total -= values[v]
                break
            place[v], following[v] = starts[v + 1], size
            rank += starts[v + 1] - starts[v]
            total += (starts[v + 1] - starts[v]) * values[v]
    order, placed, state = np.empty(len(queue), np.int64), np.zeros(kinds, np.int64), 0
    for k in range(len(queue)):
        v = choice[state]
        order[k] = queue[starts[v] + placed[v]]
        placed[v] += 1
        state += stride[v]
    return order
