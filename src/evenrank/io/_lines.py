"""The fields of the lines of a block, found 64 bytes at a time in compiled loops without the interpreter lock."""

# The compiler infers the types here; those of the arguments are in the docstrings.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank._jit import compiled

from ._masks import WIDTH, copy_bytes, equal_mask, lowest_bit

FOUND, ODD, NONE = 0, 1, -1


# References to arrays are not counted, here and below: it would take longer than the rest.
@compiled(nogil=True, _nrt=False)
def first_tabs(data, tabs, ends):
    """Finds the first tab of each line, and its end.

    ``data`` uint8: lines, each with its line feed; ``tabs``, ``ends`` [N] int64: filled with their places. Returns NONE
    if a line has no tab or nothing before it; ODD if a line begins with a byte that may be white space; else FOUND.
    """
    one = np.uint64(1)
    place, size = np.uint64(0), np.uint64(len(data))
    line, start, result = 0, np.uint64(0), FOUND
    inside = False
    while place < size:
        if size - place >= WIDTH:
            line_feeds = equal_mask(data, place, 10)
            marks = line_feeds | equal_mask(data, place, 9)
        else:
            line_feeds = marks = np.uint64(0)
            for i in range(np.int64(size - place)):
                byte = data[place + np.uint64(i)]
                if byte == 10:
                    line_feeds |= one << np.uint64(i)
                if byte == 10 or byte == 9:
                    marks |= one << np.uint64(i)
        while marks:
            bit = lowest_bit(marks)
            marks &= marks - one
            if (line_feeds >> bit) & one:
                if not inside:
                    return NONE
                ends[line] = place + bit
                inside = False
                start = place + bit + one
                line += 1
            elif not inside:
                tabs[line] = place + bit
                inside = True
                if place + bit == start:
                    return NONE
                if data[start] <= 32 or data[start] >= 128:
                    result = ODD
        place += np.uint64(WIDTH)
    return result


@compiled(nogil=True, _nrt=False)
def copy_pieces(data, starts, ends, out, offsets):
    """Copies ``data[starts[i] : ends[i]]`` one behind the other; ``offsets`` [N + 1] int64: filled with places."""
    at = np.uint64(0)
    for piece in range(len(starts)):
        place, end = np.uint64(starts[piece]), np.uint64(ends[piece])
        copy_bytes(out, at, data, place, end - place)
        at += end - place
        offsets[piece + 1] = at
