"""Types of arrays, when numbers count as equal, and Holm's correction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
"""An array whose docstring gives its shape and type."""


EQUAL = 1e-9
"""Values of a query that differ by no more are equal: what is left is rounding."""
NEAR_ZERO = 1e-6
"""A relative change from a mean that is no farther from 0 would be meaningless."""
_AS_DEEP = 0.95
"""Lists with less than this share of the documents of others are shorter lists."""


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down correction over the p-values that exist.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    present = sorted((p, place) for place, p in enumerate(p_values) if p is not None)
    corrected: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for step, (p, place) in enumerate(present):
        largest = max(largest, min(1.0, (len(present) - step) * p))
        corrected[place] = largest
    return corrected


def unequally_deep(own: Array, other: Array, cutoff: int | None) -> bool:
    """Whether one of two runs has less than 95% of the documents of the other within a cutoff (None: in whole lists).

    ``own``, ``other`` [Q]: how many documents each query has; NaN where the run lacks it, and then it does not count.
    """
    both = ~np.isnan(own) & ~np.isnan(other)
    most = np.inf if cutoff is None else cutoff
    totals = np.minimum(own[both], most).sum(), np.minimum(other[both], most).sum()
    return bool(min(totals) < _AS_DEEP * max(totals))
