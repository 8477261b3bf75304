"""Rank bias: which group the documents at the top are about (RaB, ARaB, AbsARaB, |ARaB|)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.files.types import Array
from evenrank.groups.table import REST, GroupTable, Magnitude

from .base import CUTOFF, MAGNITUDE, POLES, AbsoluteFigure, Construct, LinearMeasure
from .joined import JoinedRun
from .ranked_lists import Column


def rab_weights(lengths: Array, cutoff: int) -> Array:
    """The weight [Q, cutoff] of each rank in RaB@cutoff: 1 / min(cutoff, n) for the ranks a list of n fills.

    RaB(q)@t = mean of the signed magnitude over the first min(t, n) documents [RS20, eq. 4].
    """
    depth = np.minimum(lengths, cutoff)[:, None]
    return np.where(np.arange(cutoff) < depth, 1 / np.maximum(depth, 1), 0.0)


def arab_weights(lengths: Array, cutoff: int) -> Array:
    """The weight [Q, cutoff] of each rank in ARaB@cutoff: with K = min(cutoff, n), (1/K) Σ_{t=i..K} 1/t for rank i ≤ K.

    ARaB(q)@k = mean of RaB(q)@t over t = 1 … min(k, n) [RS20, eq. 5].
    """
    depth = np.minimum(lengths, cutoff)
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, cutoff + 1))))
    weights = (harmonic[depth][:, None] - harmonic[:-1]) / np.maximum(depth, 1)[:, None]
    return np.where(np.arange(cutoff) < depth[:, None], weights, 0.0)


def rab(magnitudes: Array, lengths: Array, cutoff: int) -> Array:
    """RaB@cutoff [Q] of signed magnitudes [Q, ≥ cutoff] in rank order; NaN for an empty list.

    >>> rab(np.array([[1.0, 0.0, -1.0]]), np.array([3]), 2).tolist()
    [0.5]
    """
    return _weighted(rab_weights(lengths, cutoff), magnitudes, lengths)


def arab(magnitudes: Array, lengths: Array, cutoff: int) -> Array:
    """ARaB@cutoff [Q] of signed magnitudes [Q, ≥ cutoff] in rank order; NaN for an empty list.

    >>> arab(np.array([[1.0, 0.0, -1.0]]), np.array([3]), 3).round(4).tolist()  # (1 + 1/2 + 0) / 3
    [0.5]
    """
    return _weighted(arab_weights(lengths, cutoff), magnitudes, lengths)


def _weighted(weights: Array, values: Array, lengths: Array) -> Array:
    return np.where(lengths > 0, (weights * values[:, : weights.shape[1]]).sum(axis=1), np.nan)


class RankBiasMeasure(LinearMeasure):
    """A measure of the signed magnitudes of the first documents."""

    construct: Construct = "lean"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {"cutoff": CUTOFF, "magnitude": MAGNITUDE, "poles": POLES}

    def kind(self, table: GroupTable) -> Magnitude:
        """The magnitude that is asked for, or the usual one of the table."""
        magnitude: Magnitude | None = self.params.get("magnitude")
        return magnitude or table.usual_kind

    def column(self, run: JoinedRun) -> Column:
        """The documents' signed magnitudes."""
        return run.magnitude(self.kind(run.required_table), self.poles)

    def documents(self, table: GroupTable, rows: Array) -> Array:
        """The signed magnitude [N] of each of the rows."""
        return table.signed_magnitude(self.kind(table), self.poles, rows)

    def label_range(self, table: GroupTable) -> tuple[float, float] | None:
        """From −1, a document of the second pole alone, to 1, one of the first alone."""
        poles = self.poles or table.poles
        if poles is None:
            return None
        others = len(table.groups) - 1
        # Of the mean over all others, one whole label is a part; only `bool` can count several at once.
        several = poles[1] == REST and self.kind(table) != "bool"
        return (-1 / others if several else -1.0), 1.0


class _RaB(RankBiasMeasure):
    """
    Rank bias: the mean signed magnitude (first pole minus second) of the first ``cutoff`` documents.

    RaB(q)@t = (1/min(t, n)) Σ_{i ≤ t} mag(d_i) [RS20, eq. 4]. Positive: the top speaks more of the first pole.
    Queries that lean in opposite directions cancel in the mean.

    When it misleads: a mean near 0 can hide one query far on one side and another far on the other; ``AbsARaB@k`` shows
    both. It moves with how long texts are and how often they name a group, so figures of two collections, or of two
    magnitudes, cannot be compared. A passage that quotes a sexist remark in order to refute it counts like the remark.

    Worked example: three documents with signed magnitudes 1, 0 and −1, to depth 2: (1 + 0) / 2.

    >>> import numpy as np
    >>> from evenrank.measures.rank_bias import rab
    >>> rab(np.array([[1.0, 0.0, -1.0]]), np.array([3]), 2).tolist()
    [0.5]
    """

    __name__ = NAME = "RaB"
    PRETTY_NAME = "Rank Bias"
    signed = True
    meaning = "Which group's words are more frequent in the first ranks; 0 is balance."

    def weights(self, lengths: Array, depth: int) -> Array:
        """The weight [Q, depth] of each rank."""
        return rab_weights(lengths, depth)


class _ARaB(RankBiasMeasure):
    """
    Average rank bias: the mean of RaB@t over t = 1 … cutoff, so the top ranks weigh most [RS20, eq. 5].

    Queries that lean in opposite directions cancel in the mean, but not in that of AbsARaB.

    When it misleads: where RaB does. It depends mostly on the first ranks: with cutoff 10 the first document alone has
    29% of the weight, so a tie or a single odd passage at the top changes it much. It ignores relevance: if the
    relevant documents speak of one group, even an ideal ranking leans towards it.

    Worked example: signed magnitudes 1, 0 and −1, to depth 3. RaB@1 = 1, RaB@2 = 1/2, RaB@3 = 0; their mean is 1/2.

    >>> import numpy as np
    >>> from evenrank.measures.rank_bias import arab
    >>> arab(np.array([[1.0, 0.0, -1.0]]), np.array([3]), 3).round(4).tolist()
    [0.5]
    """

    __name__ = NAME = "ARaB"
    PRETTY_NAME = "Average Rank Bias"
    signed = True
    meaning = "Which group's words are more frequent in the first ranks, the very first weighing most; 0 is balance."

    def weights(self, lengths: Array, depth: int) -> Array:
        """The weight [Q, depth] of each rank."""
        return arab_weights(lengths, depth)


class _AbsARaB(_ARaB):
    """
    Mean over queries of the absolute value of ARaB [RS20, eq. 5]: bias in either direction counts.

    When it misleads: noise alone makes it more than 0, the more the fewer gendered documents a list holds, so it is
    never 0 in practice. Compare it with the reference ``random`` of the same candidates, not with 0.

    Over ties, the mean of 200 drawn orders. The upper end of the range is exact, and so is the lower one unless the
    ties of a query can turn the sign of its ARaB: there it is the nearest to 0 of these orders.

    Worked example: one query with ARaB 1/2, one with −1/2: the mean ARaB is 0, AbsARaB is 1/2.

    >>> import numpy as np
    >>> from evenrank.measures.rank_bias import arab
    >>> both = arab(np.array([[1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]]), np.array([3, 3]), 3)
    >>> float(both.mean()), round(float(abs(both).mean()), 4)
    (0.0, 0.5)
    """

    __name__ = NAME = "AbsARaB"
    PRETTY_NAME = "Mean of Absolute Average Rank Bias"
    signed = False
    drawn = True
    meaning = "How far the first ranks of a query lean, to either group."

    def values(self, run: JoinedRun) -> Array:
        """|ARaB| [Q] of each query."""
        return np.abs(super().values(run))

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The mean [Q] of |ARaB| over 200 random orders of tied documents (``random``: of all candidates)."""
        expected: Array = np.mean([np.abs(draw) for draw in self.draws(run, random=random)], axis=0)
        return expected

    def label_range(self, table: GroupTable) -> None:
        """None: which documents queries share decides whether each of them can reach its own end."""

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The smallest and the largest |ARaB| [Q] over the orders of tied documents.

        Exact, but for the smallest one where ARaB can have either sign: the nearest to 0 of 200 random orders.
        """
        low, high = super().bounds(run)
        least, most = np.minimum(np.abs(low), np.abs(high)), np.maximum(np.abs(low), np.abs(high))
        either = (low < 0) & (high > 0)
        if either.any():
            # Which order comes nearest to 0 is a problem of partition: 0 itself may be out of reach.
            nearest = np.min(np.abs(self.draws(run)), axis=0)
            least = np.where(either, np.minimum(least, nearest), least)
        return least, most


class _AbsoluteMeanARaB(AbsoluteFigure, _ARaB):
    """
    Absolute value of a run's mean ARaB [RS20, eq. 5], written ``|ARaB|@k``.

    When it misleads: it hides which side a run leans to, so two runs with equal values can lean to opposite sides. It
    is a figure of the whole run: no query has one, and opposite queries cancel before the absolute value is taken.

    Worked example: queries with ARaB 1/2 and −1/2 give |0| = 0, though neither list is balanced.

    >>> import numpy as np
    >>> from evenrank.measures.rank_bias import arab
    >>> abs(float(arab(np.array([[1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]]), np.array([3, 3]), 3).mean()))
    0.0
    """

    __name__ = NAME = "|ARaB|"
    SPELLED = "AbsoluteMeanARaB"
    PRETTY_NAME = "Absolute Mean of Average Rank Bias"
    meaning = "How far the first ranks lean to either group, over all queries together."


RaB, ARaB, AbsARaB, AbsoluteMeanARaB = _RaB(), _ARaB(), _AbsARaB(), _AbsoluteMeanARaB()
MEASURES = (RaB, ARaB, AbsARaB, AbsoluteMeanARaB)
