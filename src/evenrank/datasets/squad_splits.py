"""Dividing articles or passages among the splits of a collection, by their numbers of questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def _expected(total: int, shares: Sequence[float]) -> Floats:
    """The number of ``total`` questions that each split should have; last, of those left out."""
    return np.array([*shares, max(0.0, 1 - sum(shares))]) * total


def largest_deviation(sizes: list[int], drawn: Sequence[int], shares: Sequence[float]) -> float:
    """The largest difference between a split's number of questions and its share."""
    found = np.bincount(drawn, weights=sizes, minlength=len(shares) + 1)
    return float(np.abs(found - _expected(sum(sizes), shares)).max())


def divide(sizes: list[int], shares: Sequence[float]) -> list[int] | None:
    """The split of each unit, given its number of questions, in the order given; None if a split with a share would
    necessarily be empty."""
    ends = np.cumsum(shares) * sum(sizes)
    middles = np.cumsum(sizes) - np.array(sizes) / 2
    # By the middle of each unit, so that no split is favoured.
    drawn = np.searchsorted(ends, middles, side="right")
    for split in (place for place, share in enumerate(shares) if share > 0):
        number = np.bincount(drawn, minlength=len(shares) + 1)
        if number[split]:
            continue
        # An empty split gets the unit whose move leaves all splits nearest to their shares.
        found = np.bincount(drawn, weights=sizes, minlength=len(shares) + 1) - _expected(sum(sizes), shares)
        size = np.array(sizes)
        change = np.abs(found[drawn] - size) - np.abs(found[drawn])
        change = change + np.abs(found[split] + size) - abs(found[split])
        # The last unit of a split stays, unless it is left out anyway.
        movable = (number[drawn] > 1) | (drawn == len(shares))
        if not movable.any():
            return None
        drawn[len(sizes) - 1 - int(np.argmin(np.where(movable, change, np.inf)[::-1]))] = split
    return [int(place) for place in drawn]
