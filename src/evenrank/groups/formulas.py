"""Formulas of one document: its magnitude of a group, its side, its neutrality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from evenrank.io.types import Array

Magnitude = Literal["count", "bool", "tf", "tf_words", "tf_literal"]
_ROUNDING = 1e-12
MAGNITUDES: tuple[Magnitude, ...] = ("count", "bool", "tf", "tf_words", "tf_literal")


def magnitude_of_count(count: Array, kind: Magnitude) -> Array:
    """The magnitude of a group's count [D] for the kinds that need nothing else: count, bool, tf.

    ``tf`` is ln(1 + count), one log of the group's total [RS20].
    """
    if kind == "count":
        return count.astype(np.float64)
    if kind == "bool":
        return (count > 0).astype(np.float64)
    if kind == "tf":
        return np.log1p(count, dtype=np.float64)
    raise ValueError(f"{kind} cannot be computed from counts")


def sides(magnitude: Array) -> Array:
    """The side [D] int8 of documents by their signed magnitude: +1 above 1e-9, −1 below −1e-9, else 0 [IBBR §2.2]."""
    side: Array = (magnitude > 1e-9).astype(np.int8) - (magnitude < -1e-9).astype(np.int8)
    return side


def neutrality(count: Array, shares: Sequence[float], threshold: float = 1) -> Array:
    """Neutrality in [0, 1] of documents with ``count`` [N, G] tokens of each group [RKS21, eq. 1].

    1 if the total c is at most ``threshold``, else 1 − Σ_a |c_a/c − J_a| / (2(1 − min J)); for two groups with
    equal shares J that is the published form 1 − Σ_a |c_a/c − J_a|.

    >>> neutrality(np.array([[1, 0], [2, 0], [3, 1], [2, 2]]), [0.5, 0.5]).tolist()
    [1.0, 0.0, 0.5, 1.0]
    """
    total = _row_sums(count)
    values = np.ones(len(count))
    # Most documents of a collection have no words of any group.
    rows = np.flatnonzero(~(total <= threshold))
    # In the order of before, which sums depend on.
    count, total = (count.T[:, rows].T if count.flags.f_contiguous else count[rows]), total[rows]
    target = np.asarray(shares, dtype=np.float64)
    # Weights of labels may sum to less than 1.
    share = count / np.where(total > 0, total, 1)[:, None]
    distance = _row_sums(np.abs(share - target)) / (2 * (1 - target.min()))
    # Rounding must not make a document of one group alone anything but 0: a ratio to 1e-16 would be beyond all bounds.
    values[rows] = np.where(1 - distance < _ROUNDING, 0.0, np.minimum(1 - distance, 1.0))
    return values


def _row_sums(values: Array) -> Array:
    two = values.shape[1] == 2
    # The same numbers, of the same type, faster than by ``sum``, which has a start to make in each row.
    sums: Array = np.add(*values.T, dtype=values[:0].sum(axis=1).dtype) if two else values.sum(axis=1)
    return sums
