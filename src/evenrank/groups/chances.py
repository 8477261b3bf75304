"""Random numbers that belong to a document: the same wherever it is looked at."""

from __future__ import annotations

import numpy as np

from evenrank.engines.hashing import GOLDEN, MASK, mix, mix_array
from evenrank.io.types import Array

_UNIT = 2.0**-53


def chances(hashes: Array, *key: int) -> Array:
    """A number in (0, 1) for each of the ids' hashes [N] uint64, uniform and independent over the integers ``key``."""
    salt = 0
    for number in key:
        salt = mix((salt + number + 1) * GOLDEN & MASK)
    mixed = mix_array(hashes ^ np.uint64(salt))
    numbers: Array = ((mixed >> np.uint64(11)).astype(np.float64) + 0.5) * _UNIT
    return numbers
