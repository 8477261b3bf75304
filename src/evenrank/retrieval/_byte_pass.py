"""A first pass over rows in 8 bits: which of them can be among the nearest to some points, compiled."""

# The compiler infers the types here; the docstrings list those of the arguments.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank._jit import compiled

from ._byte_products import POINTS, ROWS, multiply

# Sums may be reordered, so that they can be vectorised; nothing else may change.
_SUMS = {"reassoc", "contract", "nsz"}
# Rows with squared lengths beyond these may lose digits in float32, or overflow.
SMALLEST, LARGEST = 1e-20, 1e30
_NO_SIGN = np.int32(0x7FFFFFFF)


@compiled(nogil=True, fastmath=_SUMS)
def _rounded(row, bits, into):
    """Writes a row [D] float32 (``bits``: the same as int32) into ``into`` [D] int8. Returns its squared length (-1: it
    is outside the bounds), the unit of the 8 bits, the squared length of what they leave out, and their sum."""
    most = np.int32(0)
    square = np.float32(0)
    for d in range(len(row)):
        # The bits of numbers above 0 are ordered as the numbers are, and their largest is found faster.
        most = np.int32(max(most, np.int32(bits[d] & _NO_SIGN)))
        square += row[d] * row[d]
    largest = np.int32(most)
    unit = largest.view(np.float32) / np.float32(127)
    if not SMALLEST <= square <= LARGEST:
        return np.float32(0 if largest == 0 else -1), np.float32(0), np.float32(0), np.int32(0)
    per_unit = np.float32(1) / unit
    rest = np.float32(0)
    total = np.int32(0)
    for d in range(len(row)):
        nearest = np.rint(row[d] * per_unit)
        left = row[d] - nearest * unit
        rest += left * left
        into[d] = np.int8(np.int32(nearest))
        total = np.int32(total + np.int32(nearest))
    return square, unit, rest, total


@compiled(nogil=True, fastmath=_SUMS)
def _exact(row, point):
    total = 0.0
    for d in range(len(row)):
        total += np.float64(row[d]) * np.float64(point[d])
    return total


@compiled(nogil=True)
def _entered(best, score):
    """Takes a score into the ``best`` [k], which fall; returns the last of them."""
    place = len(best) - 1
    if score > best[place]:
        while place > 0 and best[place - 1] < score:
            best[place] = best[place - 1]
            place -= 1
        best[place] = score
    return best[len(best) - 1]


@compiled(nogil=True)
def _kept(point, row, upper, count, lowest):
    """Removes what can no longer be among the nearest from the first ``count``; returns how many are left."""
    left = 0
    for i in range(count):
        if upper[i] >= lowest[point[i]]:
            point[left], row[left], upper[left] = point[i], row[i], upper[i]
            left += 1
    return left


# parameters: a compiled loop takes plain arrays.
@compiled(nogil=True)
def _take(matrix, bits, first, many, cosine, slack, bytes_, words, packed, begin, about):
    """Rounds ``many`` rows of ``matrix`` from ``first``, four bytes of each in turn, into ``packed`` [G, ROWS] int32.

    ``begin`` [ROWS] gets what makes up for the 128 that is added to points; ``about`` [4, ROWS] float32 the unit, what
    is left out, the length, and what a product is multiplied by. ``bytes_`` [ROWS, 4 G] int8, ``words``: the same as
    int32. Returns whether a row has a squared length outside the bounds.
    """
    strange = False
    for r in range(many):
        square, unit, rest, total = _rounded(matrix[first + r], bits[first + r], bytes_[r])
        begin[r] = -128 * total
        length = np.sqrt(square)
        scale = np.float32(1) / length if cosine and square > 0 else np.float32(1)
        strange |= square < 0
        about[0, r] = unit * scale
        about[1, r] = np.sqrt(rest) * scale + slack * length * scale
        about[2, r] = length * scale
        about[3, r] = scale
        for g in range(packed.shape[0]):
            packed[g, r] = words[r, g]
    return strange


# parameters: a compiled loop takes plain arrays.
@compiled(nogil=True)
def scan(matrix, bits, start, stop, points, rounded, sizes, lowest, best, found, bytes_, words, cosine, slack):
    """Writes what can be among the nearest into ``found``: point [N], row [N] int64 and its highest score [N] float32.

    Returns how many, or -1: they are too many, or a row has a squared length outside the bounds. ``matrix`` [V, D]
    float32, ``bits``: the same as int32; its rows from ``start`` to ``stop`` are scanned. ``points`` [P, D] float32;
    ``rounded`` [P / POINTS, G, POINTS, 4] uint8: in 8 bits, plus 128. ``sizes`` [P, 3] float32: their unit, their
    length and that of what rounding leaves out. ``lowest`` [P] float32: which score is too low, at first; raised to the
    last of ``best`` [P, k] float32, which fall. ``bytes_``, ``words``: zeros as in :func:`_take`. ``cosine``: rows are
    divided by their lengths. ``slack``: by how much a score of float32 can be off, for row and point of length 1.
    """
    point, row, upper = found
    groups = rounded.shape[1]
    packed, begin = np.zeros((groups, ROWS), np.int32), np.zeros(ROWS, np.int32)
    sums, about = np.empty((POINTS, ROWS), np.int32), np.zeros((4, ROWS), np.float32)
    count = 0
    for first in range(start, stop, ROWS):
        many = min(ROWS, stop - first)
        if _take(matrix, bits, first, many, cosine, slack, bytes_, words, packed, begin, about):
            return -1
        for tile in range(len(rounded)):
            multiply(packed, rounded[tile], groups, begin, sums)
            for own in range(min(POINTS, len(points) - tile * POINTS)):
                p = tile * POINTS + own
                # |x·y - x'·y'| <= |x - x'| |y| + |x'| |y - y'|, with x', y' as rounded.
                unit, near, far, low = (
                    sizes[p, 0],
                    sizes[p, 1] + sizes[p, 2],
                    sizes[p, 2] + slack * sizes[p, 1],
                    lowest[p],
                )
                above = False
                for r in range(ROWS):
                    bound = np.float32(sums[own, r]) * about[0, r] * unit + about[1, r] * near + about[2, r] * far
                    above |= bound >= low
                if not above:
                    continue
                for r in range(many):
                    bound = np.float32(sums[own, r]) * about[0, r] * unit + about[1, r] * near + about[2, r] * far
                    if bound < lowest[p]:
                        continue
                    score = np.float32(_exact(matrix[first + r], points[p]) * about[3, r])
                    off = slack * about[2, r] * sizes[p, 1]
                    if score + off < lowest[p]:
                        continue
                    if count == len(row):
                        count = _kept(point, row, upper, count, lowest)
                        if 2 * count > len(row):
                            return -1
                    point[count], row[count], upper[count] = p, first + r, score + off
                    count += 1
                    lowest[p] = max(lowest[p], _entered(best[p], score - off))
    return _kept(point, row, upper, count, lowest)
