"""The neutralising loop: rows of a matrix made orthogonal to a subspace and of length 1, compiled, without the
interpreter lock."""

# The compiler infers the types; those of the arguments are in the docstrings.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank.files.compiled import compiled

# Sums may be reordered, so that they can be vectorised; nothing else may change.
_SUMS = {"reassoc", "contract", "nsz"}
# Below this share of a row's squared length, the rest is rounding of float32.
NOTHING_LEFT = 1e-12


@compiled(nogil=True, fastmath=_SUMS)
def neutralise(source, target, basis, neutral):
    """Writes rows [V, D] float32 of ``source`` into ``target`` (may be the same), scaled to length 1; those flagged in
    ``neutral`` [V] without their component in the span of ``basis`` [k, D] float64, orthonormal. Computed in float64.
    Zero rows stay zero; rows within the span become zero. Returns the number of the latter."""
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
            # Repeated if much was removed: rounding is then large relative to the rest.
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
