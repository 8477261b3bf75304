"""Neutral: documents by relevance and neutrality together. Our design.

Greedy: at rank i, the next document is the one that adds most to Σ δ_i ((1 − λ) s + λ n), with relevance s from 0 to 1,
neutrality n, δ_i = 1/log2(1 + i) and λ = the strength. All that are left share the same δ_i, so the greedy order is by
falling (1 − λ) s + λ n; and since δ falls, no order has a larger sum (rearrangement inequality): it is a sort, and the
best order. λ = 0 is the run; λ = 1 is neutral-first: by falling neutrality, equal documents in the run's order. In
between, no order has both more discounted relevance, by the run's own scores, and more FaiRR
[RKS21].

When it misleads: neutral is not balanced. Documents about either group move down alike, also in a list that has as many
of one as of the other, and where the question is about a group, its answers do. Relevance is the run's own score,
min–max scaled over the list: an outlier at its top makes all others nearly equal, and a small λ reorders them.

Worked example: relevance 1, .8, 0 and neutrality 0, 1, .5. At λ = .5 the sums are .5, .9 and .25.

>>> import numpy as np
>>> from evenrank.mitigation.reordering import GroupedLists
>>> lists = GroupedLists(
...     offsets=np.array([0, 3]), scores=np.array([1, 0.8, 0]), signed=np.array([2.0, 0, -1]),
...     neutrality=np.array([0, 1, 0.5]), group=np.array([0, -1, 1]), groups=("female", "male"),
...     targets=np.array([[0.5, 0.5, 0]]),
... )
>>> [Neutral().order(lists, strength).tolist() for strength in (0, 0.5, 1)]
[[0, 1, 2], [1, 0, 2], [1, 2, 0]]
"""

from __future__ import annotations

from typing import ClassVar

from evenrank.io.ranges import check_ranges
from evenrank.io.types import Array

from ._sorting import falling
from .reordering import GroupedLists


class Neutral:
    """By falling (1 − strength) × relevance + strength × neutrality; equal ones in the run's order."""

    name: ClassVar[str] = "neutral"
    source: ClassVar[str] = "our design"

    def order(self, lists: GroupedLists, strength: float) -> Array:
        """The places [N] of the documents in their new order, list by list."""
        check_ranges(strength=strength)
        value = (1 - strength) * lists.scores + strength * lists.neutrality
        return falling(lists.offsets, value)
