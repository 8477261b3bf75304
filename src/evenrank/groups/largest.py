"""The one group that a document is of: that with the largest weight."""

from __future__ import annotations

import numpy as np

from evenrank.io.types import Array

from .table import GroupTable

NO_GROUP = -1
"""Of no group, or of several with the same weight."""


def largest_groups(table: GroupTable, rows: Array | slice = slice(None)) -> Array:
    """The number of the group of each document of ``rows`` [N] int64, that with the largest weight; ``NO_GROUP``
    for none or several.

    Weights are those of :meth:`GroupTable.weight`: a document with no more group words than the threshold has none.
    Those that differ by rounding alone are the same.
    """
    weights = np.stack([table.weight(group, rows) for group in table.groups])
    largest = weights.max(axis=0)
    single = (weights >= largest - 1e-9).sum(axis=0) == 1
    found: Array = np.where(single & (largest > 0), weights.argmax(axis=0), NO_GROUP)
    return found
