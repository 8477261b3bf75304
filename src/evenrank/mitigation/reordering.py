"""A fairer order of ranked lists, without training: what every method is given and gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from evenrank.io.types import Array


@dataclass(frozen=True, slots=True)
class GroupedLists:
    """The first documents of Q ranked lists, N in all, laid end to end in rank order, with what they say of groups.

    Attributes:
        offsets: Where each list starts, and the end [Q + 1] (int64).
        scores: Relevance from 0 to 1, falling within each list [N] (float64): the run's scores, min–max scaled over
            the whole list of the query.
        signed: The signed magnitude of each document [N] (float64): above 0 towards the first pole, below 0 towards
            the second; 0 where no poles are known.
        neutrality: From 0 to 1 [N] (float64).
        group: The number of each document's group [N] (int64), that with the largest weight; −1 for none or several.
        groups: The names of the groups [G].
        targets: The share of each group that a fair list has, and last that of documents without a group
            [Q, G + 1] (float64); the rows sum to 1.
    """

    offsets: Array
    scores: Array
    signed: Array
    neutrality: Array
    group: Array
    groups: tuple[str, ...]
    targets: Array

    @property
    def lengths(self) -> Array:
        """Documents per list [Q]."""
        return np.diff(self.offsets)


class Reordering(Protocol):
    """A method that puts the documents of lists into another order.

    ``name``: as users write it; ``source``: where it was published.
    """

    name: ClassVar[str]
    source: ClassVar[str]

    def order(self, lists: GroupedLists, strength: float) -> Array:
        """The places [N] (int64) in ``lists`` of the documents in their new order, list by list.

        ``strength``: from 0, which leaves every list as it is, to 1, as far as the method goes. The same input gives
        the same order; documents that the method has no reason to part stay in the order of the run.
        """
        ...
