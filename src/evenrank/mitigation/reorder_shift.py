"""
Shift: one number is added to the score of every document of a group, the same in all lists, and the lists are sorted
again: score + strength · offset of the group; documents without a group keep their score. With ``per="magnitude"``, the
number is added per unit of signed magnitude. What a trained mitigation does beyond it is what training is worth.

The offsets point against the lean of tuning lists (:func:`lean_offsets`): each group's is the mean over the lists of
its target share minus its share of the exposure Σ 1/log2(1 + rank) [SJ18, section 3], scaled so that the largest is 1:
the whole range of the scores, which are scaled to 0 to 1 in each list.

The sorted list has the largest Σ (score + strength · offset)/log2(1 + rank) of all orders. So no orders of the lists
with as much Σ offset/log2(1 + rank), summed over the lists, have a higher Σ score/log2(1 + rank): at the least strength
that meets a requirement on the mean exposure, no other method meets what it reaches with less loss.

When it misleads: it is the best for the mean over lists alone; a list with a far better document of the other group is
not changed, and few lists are as their own target says. It shifts what is measured: a group that is found by its words
gains, and so do documents in which a word stands for another thing. Scores are scaled per list: a list of nearly equal
documents is reordered as readily as one with a clear winner.

Worked example: m has 0.7653 of the exposure, f 0.2347, and half each is the target: the offsets are −1 and 1. At
strength 0.2, the document of f has 0.6, the second of m 0.5; at strength 0.5, f comes first.

>>> import numpy as np
>>> from evenrank.mitigation.reorder_shift import Shift, lean_offsets
>>> from evenrank.mitigation.reordering import GroupedLists
>>> lists = GroupedLists(
...     offsets=np.array([0, 3]), scores=np.array([1, 0.7, 0.4]), signed=np.array([1.0, 1, -1]), neutrality=np.zeros(3),
...     group=np.array([0, 0, 1]), groups=("m", "f"), targets=np.array([[0.5, 0.5, 0]]),
... )
>>> lean_offsets(lists).tolist(), lean_offsets(lists, per="magnitude").tolist()
([-1.0, 1.0], [-1.0])
>>> shift = Shift(lean_offsets(lists))
>>> [shift.order(lists, strength).tolist() for strength in (0, 0.2, 0.5)]
[[0, 1, 2], [0, 2, 1], [2, 0, 1]]
"""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np

from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.ranges import check_ranges
from evenrank.io.types import Array

from ._sorting import falling
from .reordering import GroupedLists

Per = Literal["group", "magnitude"]
PER = ("group", "magnitude")


class Shift:
    """Adds strength × an offset to the scores: ``offsets`` [G], one per group, or [1], per unit of signed magnitude.

    Raises EvenrankError for offsets that are not finite numbers, as many as the lists have groups (with
    ``per="magnitude"``: one).
    """

    name: ClassVar[str] = "shift"
    source: ClassVar[str] = "our design"

    def __init__(self, offsets: Array, per: Per = "group") -> None:
        _check_per(per)
        try:
            self.offsets = np.asarray(offsets, dtype=np.float64)
        except (TypeError, ValueError):
            self.offsets = np.array(np.nan)
        if self.offsets.ndim != 1 or not np.isfinite(self.offsets).all():
            raise EvenrankError("`offsets`: expected a number for each group")
        self.per = per

    def order(self, lists: GroupedLists, strength: float) -> Array:
        """The places [N] of the documents in their new order, list by list; equal sums stay in the run's order."""
        check_ranges(strength=strength)
        expected = 1 if self.per == "magnitude" else len(lists.groups)
        if len(self.offsets) != expected:
            raise EvenrankError(f"`offsets`: expected {expected}, found {len(self.offsets)}")
        # The last group, number −1, is that of documents without one.
        per_group = self.per == "group"
        added = np.append(self.offsets, 0.0)[lists.group] if per_group else self.offsets[0] * lists.signed
        return falling(lists.offsets, lists.scores + strength * added)


def lean_offsets(lists: GroupedLists, per: Per = "group") -> Array:
    """The offsets against the lean of lists: [G], the largest of them ± 1; with ``per="magnitude"`` a single one [1].

    A group's offset is in proportion to its target share minus its share of the exposure, in the mean over lists.
    The one per unit of magnitude has the sign against the mean discounted signed magnitude, and moves the document
    with the largest magnitude by 1. All are 0 without a lean, or a list.
    """
    _check_per(per)
    # A list of which nothing is shown says nothing.
    lengths = lists.lengths[lists.lengths > 0]
    list_of = np.repeat(np.arange(len(lengths)), lengths)
    ranks = np.arange(len(lists.scores)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    exposure = 1 / np.log2(2.0 + ranks)
    exposure /= np.bincount(list_of, exposure, len(lengths))[list_of] * max(len(lengths), 1)
    if per == "magnitude":
        largest = np.abs(lists.signed).max(initial=0)
        return np.array([-np.sign(np.round(exposure @ lists.signed, 12)) / (largest or 1)]) + 0.0
    groups = len(lists.groups)
    shares = np.bincount(np.where(lists.group < 0, groups, lists.group), exposure, groups + 1)
    targets = lists.targets[lists.lengths > 0].sum(0) / max(len(lengths), 1)
    missing = np.round(targets - shares, 12)[:groups]
    offsets: Array = missing / (np.abs(missing).max(initial=0) or 1) + 0.0
    return offsets


def _check_per(per: str) -> None:
    if per not in PER:
        raise EvenrankError(f"`per`: expected {' or '.join(PER)}, found {quoted(per)}")
