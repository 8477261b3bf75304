"""
FA*IR: every prefix of a list has at least as many documents of one group, the protected one, as chance would give it
[Zehlike et al. 2017]. A prefix of k documents of which each were protected with probability p, independently of the
others, has X ~ Binomial(k, p) of them. It is fair if it has at least m(k), the least number with P(X ≤ m(k)) ≥ α_c
[Zehlike et al. 2017, section 3, ranked group fairness]. A list is tested at each of its prefixes; α_c is the corrected
significance, with which a list drawn like this fails at some prefix with probability α. The table m(1), m(2), … is that
of the authors' package fairsearchcore, whose bisection ends at a table that fails with a probability next to α, and
leaves the last prefix out of it.

The algorithm is a merge [section 4]: protected and other documents keep the run's order among themselves; at each
rank comes whichever stands first in the run, unless the prefix would have fewer than m(k) protected documents: then the
next protected one, as long as there are any. No other list that meets the table has more relevance in any of its
prefixes, hence none a higher Σ score/log2(1 + rank).

Here, p is strength × the query's target share of the protected group. α is 0.1. A list of n documents gets the table
of n.

When it misleads: the table tolerates what chance can do: with p = 0.5 and α = 0.1, the first 5 of 100 documents may
lack the protected group. For shares without that allowance take DetConstSort. Only one group is protected; a target for
another one is not seen. The corrected table can ask one document less at a larger p, where bisection ends on the other
side of α. Where a list has too few protected documents, they all stand at the top and the table is not met
(:meth:`Fair.unmet` counts the prefixes); where it has no others, nothing changes.

Worked example: the table of 8 documents at p = 0.5 asks for one protected document from the fourth on, and two from the
seventh. Of a list that ends with its three protected documents, the first of them comes fourth.

>>> import numpy as np
>>> from evenrank.mitigation.reorder_fair import Fair, m_table
>>> from evenrank.mitigation.reordering import GroupedLists
>>> round(m_table(20, 0.25).alpha, 6), round(m_table(20, 0.25).fail_probability, 5)
(0.078125, 0.10515)
>>> m_table(8, 0.5).minimum.tolist()
[0, 0, 0, 1, 1, 1, 2, 2]
>>> lists = GroupedLists(
...     offsets=np.array([0, 8]), scores=np.linspace(1, 0, 8), signed=np.zeros(8), neutrality=np.zeros(8),
...     group=np.array([0, 0, 0, 0, 0, 1, 1, 1]), groups=("m", "f"), targets=np.array([[0.5, 0.5, 0]]),
... )
>>> Fair(protected=1).order(lists, strength=1).tolist()
[0, 1, 2, 5, 3, 4, 6, 7]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from evenrank.io.errors import EvenrankError
from evenrank.io.ranges import check_ranges
from evenrank.io.types import Array

from ._constraining import fair_order, fair_unmet
from ._fair_tables import fill_tables
from .reordering import GroupedLists


@dataclass(frozen=True, slots=True)
class MTable:
    """The protected documents that a fair list has at least.

    Attributes:
        minimum: In the first 1, 2, … k documents [k] (int64).
        alpha: The corrected significance α_c.
        fail_probability: That of a list of independent draws to fall below the minimum before its last document.
    """

    minimum: Array
    alpha: float
    fail_probability: float


def m_table(k: int, p: float, alpha: float = 0.1) -> MTable:
    """The table of FA*IR for lists of ``k`` documents and a proportion ``p`` [Zehlike et al. 2017, section 4].

    Equal to that of fairsearchcore's ``Fair(k, p, alpha).create_adjusted_mtable()``. Raises EvenrankError for settings
    out of range (p from 0 to 1, α from 0.001 to 0.5).
    """
    check_ranges(k=k, share=p, alpha=alpha)
    minimum, alphas, failing = _tables(np.array([0, k]), np.array([float(p)]), alpha)
    return MTable(minimum, float(alphas[0]), float(failing[0]))


class Fair:
    """FA*IR for the group numbered ``protected``, tested at significance ``alpha``.

    Raises EvenrankError for a number below 0, and α out of range.
    """

    name: ClassVar[str] = "fair"
    source: ClassVar[str] = "Zehlike et al. 2017"

    def __init__(self, protected: int, alpha: float = 0.1) -> None:
        check_ranges(alpha=alpha)
        if protected < 0:
            raise EvenrankError(f"`protected`: expected the number of a group, found {protected}")
        self.protected = protected
        self.alpha = alpha

    def order(self, lists: GroupedLists, strength: float) -> Array:
        """The places [N] of the documents in their new order, list by list; p = strength × target share."""
        order = np.arange(len(lists.group))
        fair_order(lists.offsets, lists.group == self.protected, *self._required(lists, strength), order)
        return order

    def unmet(self, lists: GroupedLists, order: Array, strength: float) -> Array:
        """In each list [Q], the prefixes of a new order that have fewer protected documents than required (int64)."""
        unmet = np.zeros(len(lists.lengths), np.int64)
        required = self._required(lists, strength)
        fair_unmet(lists.offsets, lists.group == self.protected, *required, order, unmet)
        return unmet

    def _required(self, lists: GroupedLists, strength: float) -> tuple[Array, Array, Array]:
        """Tables end to end, where each starts [U + 1], and which is that of each list [Q]."""
        check_ranges(strength=strength)
        if self.protected >= len(lists.groups):
            raise EvenrankError(f"`protected`: expected 0 to {len(lists.groups) - 1}, found {self.protected}")
        shares = np.clip(strength * lists.targets[:, self.protected], 0, 1)
        asked, table = np.unique(np.column_stack([lists.lengths, shares]), axis=0, return_inverse=True)
        starts = np.concatenate([[0], np.cumsum(asked[:, 0])]).astype(np.int64)
        return _tables(starts, np.ascontiguousarray(asked[:, 1]), self.alpha)[0], starts, table.reshape(-1)


def _tables(starts: Array, shares: Array, alpha: float) -> tuple[Array, Array, Array]:
    """The tables of U proportions end to end, corrected α [U] and probabilities of failing [U]."""
    minimum = np.zeros(starts[-1], np.int64)
    alphas, failing = np.zeros(len(shares)), np.zeros(len(shares))
    fill_tables(shares, starts, float(alpha), minimum, alphas, failing)
    return minimum, alphas, failing
