"""FNV-1a and the finaliser of SplitMix64, in plain Python and for compiled loops.

All numbers are 64 bits wide and unsigned. Compiled loops hash with the constants; both ways give the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

FNV_OFFSET = 0xCBF29CE484222325
FNV_PRIME = 0x100000001B3
GOLDEN = 0x9E3779B97F4A7C15
"""The step of SplitMix64: 2^64 over the golden ratio."""
MASK = (1 << 64) - 1


def fnv(values: Iterable[int], start: int = FNV_OFFSET) -> int:
    """The 64-bit FNV-1a hash of bytes or of code points, from another start if given.

    >>> hex(fnv(b"a"))
    '0xaf63dc4c8601ec8c'
    """
    for value in values:
        start = ((start ^ value) * FNV_PRIME) & MASK
    return start


def mix(value: int) -> int:
    """The finaliser of SplitMix64 [Steele et al. 2014]: every bit of the value moves every bit of the result."""
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    return value ^ (value >> 31)
