"""Lists sorted by a value: a compiled merge sort of each."""

# The compiler infers the types here; the docstrings describe those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank._jit import compiled
from evenrank.io.types import Array

_SHORT = 16


def falling(offsets: Array, values: Array) -> Array:
    """The places [N] (int64) of the documents of each list by falling ``values`` [N]; stable."""
    order = np.empty(len(values), np.int64)
    _sorted_falling(offsets, values, order)
    return order


@compiled(nogil=True)
def _sorted_falling(offsets, values, order):
    """Fills ``order`` [N] with the places of each list's documents by falling ``values`` [N]; stable.

    Short stretches are sorted by insertion, which takes one pass where few documents move, and then merged.
    """
    longest = 0
    for q in range(len(offsets) - 1):
        longest = max(longest, offsets[q + 1] - offsets[q])
    spare = np.empty(longest, np.int64)
    for q in range(len(offsets) - 1):
        start, end = offsets[q], offsets[q + 1]
        for low in range(start, end, _SHORT):
            for place in range(low, min(low + _SHORT, end)):
                value, at = values[place], place
                while at > low and values[order[at - 1]] < value:
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = place
        width = _SHORT
        while width < end - start:
            for low in range(start, end - width, 2 * width):
                _merged(values, order, spare, low, low + width, min(low + 2 * width, end))
            width *= 2


@compiled(nogil=True)
def _merged(values, order, spare, low, middle, high):
    """Merges two sorted stretches of ``order``; of equal documents, those of the first one come first."""
    if not values[order[middle - 1]] < values[order[middle]]:
        return
    count = middle - low
    spare[:count] = order[low:middle]
    first, second, place = 0, middle, low
    while first < count:
        if second < high and values[spare[first]] < values[order[second]]:
            order[place] = order[second]
            second += 1
        else:
            order[place] = spare[first]
            first += 1
        place += 1
