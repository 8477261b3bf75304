"""FNV-1a and the finaliser of SplitMix64, in plain Python and for whole columns: the same numbers either way.

All numbers are 64 bits wide and unsigned. Compiled loops hash with the constants.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import polars as pl

from .types import Array

Number = TypeVar("Number", int, Array)

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


def fnv_of_texts(texts: pl.Series, start: int = FNV_OFFSET) -> Array:
    """:func:`fnv` of the UTF-8 bytes of each text [N] uint64."""
    lengths = texts.str.len_bytes().to_numpy().astype(np.int64)
    data = np.frombuffer("".join(texts.to_list()).encode(), np.uint8)
    begins = np.cumsum(lengths) - lengths
    hashes = np.full(len(texts), start, np.uint64)
    for place in range(int(lengths.max(initial=0))):
        longer = np.flatnonzero(lengths > place)
        hashes[longer] = (hashes[longer] ^ data[begins[longer] + place]) * np.uint64(FNV_PRIME)
    return hashes


def mix(value: Number) -> Number:
    """The finaliser of SplitMix64 [Steele et al. 2014]: every bit of the value moves every bit of the result.

    ``value``: a number, or an array of numbers uint64.
    """
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & MASK
    mixed: Number = value ^ (value >> 31)
    return mixed
