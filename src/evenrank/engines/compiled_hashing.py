"""The functions of :mod:`evenrank.engines.hashing` on uint64 values, inlined into compiled loops."""

# The compiler infers the types here; those of the arguments are in the docstrings.
# mypy: ignore-errors

from __future__ import annotations

import numpy as np

from evenrank._jit import compiled

from .hashing import FNV_OFFSET, FNV_PRIME

OFFSET = np.uint64(FNV_OFFSET)
PRIME = np.uint64(FNV_PRIME)


@compiled(forceinline=True, _nrt=False)
def mixed(value):
    """``mix`` of a value uint64."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


@compiled(forceinline=True, _nrt=False)
def hashed(data, start, end, value):
    """``fnv`` of the bytes ``data`` uint8 from ``start`` to ``end``, from the start ``value`` uint64."""
    for place in range(start, end):
        value = (value ^ np.uint64(data[place])) * PRIME
    return value
