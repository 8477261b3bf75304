"""The counts of two groups in each document as one small number, from which all that follows from them is looked up."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from evenrank.io.types import Array

from .formulas import Magnitude, magnitude_of_count

_MOST_PAIRS = (1 << 16) - 1


@dataclass(frozen=True, slots=True)
class CountPairs:
    """``codes`` [D] uint16: first count times ``width``, plus the second count; ``size``: how many there can be."""

    codes: Array
    width: int
    size: int

    @classmethod
    def of(cls, first: Array, second: Array) -> CountPairs | None:
        """Those of two columns of counts [D]; None if there can be more pairs than codes, or counts are not whole."""
        if first.dtype.kind not in "iu" or second.dtype.kind not in "iu" or not len(first):
            return None
        height, width = int(first.max()) + 1, int(second.max()) + 1
        if height * width > _MOST_PAIRS or min(first.min(), second.min()) < 0:
            return None
        codes = first.astype(np.uint16)
        codes *= np.uint16(width)
        codes += second.astype(np.uint16)
        return cls(codes, width, height * width)

    def signed_magnitudes(self, kind: Magnitude) -> Array:
        """The first count's magnitude less the second's, for each code."""
        return _signed_magnitudes(kind, self.size, self.width)


@functools.lru_cache(maxsize=16)
def _signed_magnitudes(kind: Magnitude, size: int, width: int) -> Array:
    # Once for all pieces in which documents are looked up.
    first, second = np.divmod(np.arange(size), width)
    difference: Array = magnitude_of_count(first, kind) - magnitude_of_count(second, kind)
    difference.flags.writeable = False
    return difference
