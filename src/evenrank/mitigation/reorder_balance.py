"""Balance: documents of either pole in turn. Our design.

A document's signed magnitude [RS20] is above 0 if it is about the first pole, below 0 if about the second. The sum P_k
of the first k documents is to stay within ± ε for every k, ε = (1 − strength) × the largest |P_k| of the list as it was
run. Of all orders, that one is wanted with

1. the least excess Σ_k max(0, |P_k| − ε): 0 if some order stays within ± ε throughout; that of the last prefixes cannot
   be avoided in a list whose sum |P_n| exceeds ε;
2. then, the largest Σ_k s_k / log2(1 + k), with relevance s from 0 to 1;
3. then, nearly, the run's order.

Documents of the same magnitude stay in the run's order, so that only which magnitude comes next is open. Searched
exactly: lists with at most 12 documents, or few distinct magnitudes (100 documents of −1, 0 and 1). Others: along a
beam, rank by rank, of the four best beginnings, each counted with the least excess and loss that its rest still adds;
where those bounds prove that nothing better was dropped, that is exact too. :meth:`Balance.details` says which list is
which, and how many prefixes exceed ε. On 2,000 random lists of up to 9 documents (labels, log-counts and any numbers;
strengths .25, .5, .75 and 1), the beam alone finds the best order of 96.8 % and loses .01 % of the run's discounted
relevance on average, 33 % at most; of all prefixes, .23 % more exceed ε.

When it misleads: a list that leans as a whole cannot be balanced. Its surplus goes to its end, the largest magnitudes
last, however relevant; at strength 1, a list with one pole alone begins with all that is neutral. There every prefix
counts whose sum is not exactly 0, which few lists can meet: next to .9 it costs much and gains little. Balance says
nothing of the first rank, where ε may allow either pole: over many queries it can always be the same one.

Worked example: sums 1, 2, 1 and 0, so ε = 1 at strength .5. A document of the other pole, or neither, has to come
second; the third is the best for it, as there is no neutral one.

>>> import numpy as np
>>> from evenrank.mitigation.reordering import GroupedLists
>>> lists = GroupedLists(
...     offsets=np.array([0, 4]), scores=np.array([1, 0.9, 0.5, 0]), signed=np.array([1.0, 1, -1, -1]),
...     neutrality=np.zeros(4), group=np.array([0, 0, 1, 1]), groups=("female", "male"),
...     targets=np.array([[0.5, 0.5, 0]]),
... )
>>> found = Balance().details(lists, 0.5)
>>> found.places.tolist(), found.epsilon.tolist(), found.exact.tolist(), found.exceeding.tolist()
([0, 2, 1, 3], [1.0], [True], [0])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenrank.engines.streams import in_order
from evenrank.io.ranges import check_ranges
from evenrank.io.types import Array

from . import _balancing
from .reordering import GroupedLists

WORK = 2**17
"""Steps of the exact search of a list."""
WIDTH = 4
"""Beginnings of a list that the other search keeps."""
_PART = 256


@dataclass(frozen=True, slots=True)
class Balanced:
    """New orders of Q lists, and how they were found.

    Attributes:
        places: The places of the documents in their new order, list by list [N] (int64).
        epsilon: How far the sum of signed magnitudes may go, in each list [Q] (float64).
        exact: Whether it is known that no order is better [Q] (bool); else the search may have missed one.
        exceeding: Prefixes whose sum exceeds ε [Q] (int64).
    """

    places: Array
    epsilon: Array
    exact: Array
    exceeding: Array


class Balance:
    """Keeps the sum of signed magnitudes of every prefix within ± ε, at the least loss of discounted relevance.

    ``work``: lists that take at most so many steps are searched exactly; a list of n documents with c_v of its V
    magnitudes takes V · Π (c_v + 1), which is n · 2ⁿ at most. ``width``: how many beginnings of the others are kept.
    """

    name: ClassVar[str] = "balance"
    source: ClassVar[str] = "our design"
    needs_poles: ClassVar[bool] = True

    def __init__(self, *, work: int = WORK, width: int = WIDTH) -> None:
        self.work, self.width = work, width

    def order(self, lists: GroupedLists, strength: float) -> Array:
        """The places [N] of the documents in their new order, list by list."""
        return self.details(lists, strength).places

    def details(self, lists: GroupedLists, strength: float) -> Balanced:
        """The new orders, which of them are known to be the best, and the prefixes that exceed ε."""
        check_ranges(strength=strength)
        whole, unit, reach = _whole_magnitudes(lists)
        limit = np.floor((1 - strength) * reach).astype(np.int64)
        list_of = np.repeat(np.arange(len(limit)), lists.lengths)
        falling = np.lexsort((-whole, list_of)) - lists.offsets[list_of]
        discount = 1 / np.log2(np.arange(2, 2 + lists.lengths.max(initial=0)))
        places = np.empty(len(lists.scores), np.int64)
        exact, exceeding = np.empty(len(limit), bool), np.empty(len(limit), np.int64)

        def part(queries: slice) -> None:
            offsets = lists.offsets[queries.start : queries.stop + 1]
            _balancing.balance(
                offsets,
                lists.scores,
                whole,
                falling,
                limit[queries],
                discount,
                self.work,
                self.width,
                places,
                exact[queries],
                exceeding[queries],
            )

        parts = [slice(first, min(first + _PART, len(limit))) for first in range(0, len(limit), _PART)]
        for _ in in_order(part, parts):
            pass
        return Balanced(places, (1 - strength) * reach * unit, exact, exceeding)


def _whole_magnitudes(lists: GroupedLists) -> tuple[Array, Array, Array]:
    """Signed magnitudes as whole numbers [N] (int64), whose sums are exact in any order; the unit of each list [Q], 0
    where all are 0; and the largest absolute sum of a prefix of each list [Q]."""
    lengths = lists.lengths
    list_of = np.repeat(np.arange(len(lengths)), lengths)
    largest = np.zeros(len(lengths))
    np.maximum.at(largest, list_of, np.abs(lists.signed))
    # A list's excesses, n² times the largest at most, stay below 2⁶⁰; sums, n times that, are exact as floats as well.
    unit = largest * np.maximum(np.exp2(np.ceil(np.log2(np.maximum(lengths, 1))) - 52), lengths**2 * 2.0**-60)
    scaled = np.divide(lists.signed, unit[list_of], out=np.zeros(len(lists.signed)), where=unit[list_of] > 0)
    whole = np.rint(scaled).astype(np.int64)
    summed = np.concatenate(([0], np.cumsum(whole)))
    reach = np.zeros(len(lengths), np.int64)
    np.maximum.at(reach, list_of, np.abs(summed[1:] - summed[lists.offsets[list_of]]))
    return whole, unit, reach
