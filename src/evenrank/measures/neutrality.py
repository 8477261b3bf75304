"""Fairness of exposure to neutral documents (FaiRR, NFaiRR)."""

from __future__ import annotations

import numpy as np

from evenrank.files.errors import EvenrankError
from evenrank.files.types import Array
from evenrank.groups.table import GroupTable

from .base import Better, Construct, LinearMeasure
from .joined import Background, JoinedRun, ideal_order
from .ranked_lists import Column


def discount_weights(lengths: Array, cutoff: int) -> Array:
    """The weight [Q, cutoff] of each rank in FaiRR@cutoff: 1 / log2(1 + i) for the ranks a list fills."""
    return np.where(np.arange(cutoff) < lengths[:, None], 1 / np.log2(np.arange(2, cutoff + 2)), 0.0)


def fairr(neutrality: Array, lengths: Array, cutoff: int) -> Array:
    """FaiRR@cutoff [Q] of neutralities [Q, ≥ cutoff] in rank order [RKS21, eq. 2]; NaN for an empty list.

    >>> fairr(np.array([[1.0, 0.0, 0.5]]), np.array([3]), 3).tolist()  # 1/1 + 0.5/2
    [1.25]
    """
    # Whatever the order of the given array in memory, each row is summed in the same way.
    fairness = np.multiply(discount_weights(lengths, cutoff), neutrality[:, :cutoff], order="C").sum(axis=1)
    return np.where(lengths > 0, fairness, np.nan)


def ideal_fairr(background: Array, lengths: Array, cutoff: int) -> Array:
    """IFaiRR@cutoff [Q]: FaiRR of the background documents' neutralities [Q, D] sorted by descending neutrality.

    ``lengths`` [Q] says how many of the D columns are documents [RKS21, eq. 3].
    """
    ordered = ideal_order(background, lengths, cutoff)
    return fairr(ordered, lengths, ordered.shape[1])


def nfairr(fairness: Array, ideal: Array) -> Array:
    """NFaiRR [Q] = FaiRR / IFaiRR; undefined (NaN) where IFaiRR is 0 or missing [RKS21, eq. 4].

    >>> nfairr(np.array([1.25, 0.0]), np.array([1.5, 0.0])).round(4).tolist()
    [0.8333, nan]
    """
    normalised: Array = np.divide(fairness, ideal, out=np.full(len(fairness), np.nan), where=ideal > 0)
    return normalised


class NeutralityMeasure(LinearMeasure):
    """A measure of the neutrality of the first documents."""

    construct: Construct = "neutrality"
    better: Better = "higher"
    least = 0.0

    def weights(self, lengths: Array, depth: int) -> Array:
        """The weight [Q, depth] of each rank."""
        return discount_weights(lengths, depth)

    def column(self, run: JoinedRun) -> Column:
        """The documents' neutralities."""
        return run.neutrality

    def documents(self, table: GroupTable, rows: Array) -> Array:
        """The neutrality [N] of each of the rows."""
        values: Array = table.table["neutrality"].to_numpy()[rows]
        return values

    def label_range(self, table: GroupTable) -> tuple[float, float] | None:
        """From 0, a document of the group with the smallest target alone, to 1, a neutral one."""
        return 0.0, 1.0


class _FaiRR(NeutralityMeasure):
    """
    Fairness of exposure to neutral documents: Σ_{i ≤ cutoff} neutrality(d_i)/log2(1 + i) [RKS21, eq. 2].

    Its size depends on the query's candidates; NFaiRR can be compared.

    When it misleads: a document without any group word is as neutral as one that speaks of all groups equally, and so
    is one with no more group words than the threshold (1). A ranking of irrelevant neutral documents has the best
    value.

    Worked example: neutralities 1, 0 and 1/2: 1/log2(2) + 0 + (1/2)/log2(4) = 1 + 0 + 1/4.

    >>> import numpy as np
    >>> from evenrank.measures.neutrality import fairr
    >>> fairr(np.array([[1.0, 0.0, 0.5]]), np.array([3]), 3).tolist()
    [1.25]
    """

    __name__ = NAME = "FaiRR"
    PRETTY_NAME = "Fairness of Retrieval Results"
    meaning = "How neutral the first ranks are, the very first weighing most."


class _NFaiRR(NeutralityMeasure):
    """
    FaiRR divided by the FaiRR of the background documents, sorted by descending neutrality [RKS21, eq. 4]. 1 is the
    most neutral ranking of the background. It is undefined where the background has no neutral document, and can exceed
    1 where a run contains documents from outside the background.

    When it misleads: its size depends on the background, so values from two papers with different backgrounds cannot be
    compared. The reference ``neutral-first`` has 1.0 and may be useless as a ranking. Neutral wording is not fairness:
    of two ideal neutral lists, one may still be about men only.

    Worked example: neutralities 1, 0 and 1/2 in the run's order, the same three documents as background. FaiRR is 5/4;
    the best order, 1, 1/2, 0, has 1 + (1/2)/log2(3) = 1.3155.

    >>> import numpy as np
    >>> from evenrank.measures.neutrality import fairr, ideal_fairr, nfairr
    >>> three, length = np.array([[1.0, 0.0, 0.5]]), np.array([3])
    >>> nfairr(fairr(three, length, 3), ideal_fairr(three, length, 3)).round(4).tolist()
    [0.9502]
    """

    __name__ = NAME = "NFaiRR"
    PRETTY_NAME = "Normalised Fairness of Retrieval Results"
    needs_background = True
    reach = 1.0
    meaning = "How neutral the first ranks are, relative to the most neutral order of the same candidates."

    def scale(self, run: JoinedRun) -> Array:
        """1 / IFaiRR [Q] of each query. Raises EvenrankError without a background, or if it lacks a query."""
        if run.background is None:
            raise EvenrankError("NFaiRR needs a background run")
        return nfairr(super().scale(run), self._ideal(run.background)[run.background.rows(run.queries)])

    def label_range(self, table: GroupTable) -> None:
        """None: the unknown documents are in its normaliser as well."""

    def _ideal(self, background: Background) -> Array:
        """IFaiRR of each of the background's queries."""
        ordered = background.most_neutral(self["cutoff"])
        return fairr(ordered, background.lengths, min(self["cutoff"], ordered.shape[1]))


FaiRR, NFaiRR = _FaiRR(), _NFaiRR()
MEASURES = (FaiRR, NFaiRR)
