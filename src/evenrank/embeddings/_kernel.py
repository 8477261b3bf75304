"""The neutralising loop: rows of a matrix made orthogonal to a subspace and of length 1, compiled, without the
interpreter lock."""

# The compiler infers the types here; those of the arguments stand in the docstrings.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank.io.jit import compiled

# Sums in any order, so that they can be vectorised; no other liberty.
_SUMS = {"reassoc", "contract", "nsz"}
# What is left of a row is rounding of float32 when its square is below this share of the row's.
NOTHING_LEFT = 1e-12


@compiled(nogil=True, fastmath=_SUMS)
def neutralise(source, target, basis, neutral):
    """Writes rows [V, D] float32 of ``source`` into ``target`` (they may be the same), each of length 1; those marked
    in ``neutral`` [V] without their part in the span of ``basis`` [k, D] float64, orthonormal. Computed in float64.
    A row of 0 stays; one that lies within the span becomes 0. Returns how many did."""
    components, dimensions = basis.shape
    row = np.empty(dimensions, np.float64)
    gone = 0
    for i in range(len(source)):
        before = 0.0
        for d in range(dimensions):
            value = np.float64(source[i, d])
            row[d] = value
            before += value * value
        square = before
        if neutral[i]:
            last = 0.0
            # Again where much went: rounding then is no longer small beside what is left.
            while last < 2 and before > 0:
                for c in range(components):
                    part = 0.0
                    for d in range(dimensions):
                        part += row[d] * basis[c, d]
                    for d in range(dimensions):
                        row[d] -= part * basis[c, d]
                square = 0.0
                for d in range(dimensions):
                    square += row[d] * row[d]
                last += 2 if square > 0.5 * before else 1
            if before > 0 and square <= NOTHING_LEFT * before:
                square = 0.0
                gone += 1
        scale = 1 / np.sqrt(square) if square > 0 else 0.0
        for d in range(dimensions):
            target[i, d] = np.float32(row[d] * scale)
    return gone
