"""What the measures of exposure share: the exposure of ranks, and values of lists over orders of tied documents."""

from __future__ import annotations

from typing import ClassVar, Literal

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.groups.table import GroupTable
from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.types import Array

from .base import CUTOFF, BiasMeasure, TieFigures, mean_of
from .exposure_orders import TieOrders, first_weights, group_columns
from .joined import JoinedRun

Discount = Literal["log", "trec", "rbp"]

DISCOUNT = ParamInfo(
    dtype=str,
    choices=["log", "trec", "rbp"],
    default="log",
    desc="exposure of rank i: `log` 1/log2(1 + i), `trec` 1/log2(max(i, 2)), `rbp` gamma^(i − 1)",
)
GAMMA = ParamInfo(dtype=(int, float), default=0.8, desc="patience of `discount='rbp'`, above 0 and up to 1")


def rank_discounts(depth: int, kind: Discount = "log", gamma: float = 0.8, *, start: int = 1) -> Array:
    """The exposure [depth] of each rank from ``start`` on.

    ``log``: 1/log2(1 + i) [SJ18]; ``trec``: 1/log2(max(i, 2)) [TREC22]; ``rbp``: gamma^(i − 1).

    >>> [rank_discounts(3, kind).round(4).tolist() for kind in ("log", "trec", "rbp")]
    [[1.0, 0.6309, 0.5], [1.0, 1.0, 0.6309], [1.0, 0.8, 0.64]]
    """
    ranks = np.arange(start, start + depth, dtype=np.float64)
    if kind == "rbp":
        powers: Array = gamma ** (ranks - 1)
        return powers
    return 1 / np.log2(np.maximum(ranks, 2) if kind == "trec" else 1 + ranks)


def group_number(table: GroupTable, group: str) -> int:
    """The number of a group. Raises EvenrankError for one that the group table lacks."""
    if group not in table.groups:
        raise EvenrankError(f"no group {quoted(group)} in the group table, which has {', '.join(table.groups)}")
    return table.groups.index(group)


class ExposureMeasure(BiasMeasure):
    """A measure of the groups' exposure in the first ranks, computed from the weights of each list's first documents.

    A subclass says what the value of given weights is (:meth:`of_lists`); over the orders of tied documents, and over
    random orders, it is then drawn 200 times.
    """

    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {"cutoff": CUTOFF, "discount": DISCOUNT, "gamma": GAMMA}

    def __init__(self, **params: object) -> None:
        super().__init__(**params)
        self.needs_qrels = self.params.get("target") == "relevant" or bool(self.params.get("relevant"))
        self.needs_background = self.params.get("target") == "candidates"

    def validate_params(self) -> None:
        """Raises AssertionError for parameters that are unknown or impossible."""
        super().validate_params()
        gamma = self.params.get("gamma", 1)
        assert 0 < gamma <= 1, f"invalid param gamma={gamma!r}"

    def of_lists(self, run: JoinedRun, weights: Array, queries: Array) -> Array:
        """The value [A] of lists, given their groups' weights [G, A, k] and the numbers [A] of their queries."""
        raise NotImplementedError

    def depth(self, run: JoinedRun) -> int:
        """The cutoff, or the length of the longest list if that is smaller."""
        cutoff: int = self["cutoff"]
        return max(1, min(cutoff, int(run.scored_lists.lengths.max(initial=1))))

    def discounts(self, run: JoinedRun) -> Array:
        """The exposure [k] of each rank that a list can fill."""
        return rank_discounts(self.depth(run), self["discount"], self["gamma"])

    def values(self, run: JoinedRun) -> Array:
        """The value [Q] of each query; NaN is undefined."""
        return self.of_lists(run, first_weights(run, self.depth(run)), np.arange(len(run.queries)))

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The mean [Q] over 200 random orders of tied documents (``random``: of all candidates)."""
        return self.over_draws(run, random=random)[0]

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The smallest and the largest value [Q] in 200 random orders of tied documents."""
        return self.over_draws(run)[1:]

    def over_draws(
        self, run: JoinedRun, *, random: bool = False, orders: TieOrders | None = None
    ) -> tuple[Array, Array, Array]:
        """Mean, smallest and largest value [Q] in 200 random orders; the value itself of a query without ties.

        An order without a value counts for nothing. ``orders``: those to draw from, if they are at hand.
        """
        orders = orders or self.orders(run, random=random)
        mean = self.values(run)
        low, high = mean.copy(), mean.copy()
        found = orders.over_draws(lambda weights: self.of_lists(run, weights, orders.queries), run.seed)
        mean[orders.queries], low[orders.queries], high[orders.queries] = found
        return mean, low, high

    def orders(self, run: JoinedRun, *, random: bool = False, chosen: Array | None = None) -> TieOrders:
        """The orders of tied documents (``random``: of all candidates), of the ``chosen`` [Q] queries if not of all."""
        lists = run.scored_lists.all_tied() if random else run.scored_lists
        return TieOrders(lists, group_columns(run), self.depth(run), chosen)

    def drawn_ties(self, run: JoinedRun, expected: Array | None = None) -> TieFigures:
        """What ties do to the figure, from one set of draws. ``expected`` [Q]: the expectation, if it is known."""
        mean, *bounds = self.over_draws(run)
        mean = mean if expected is None else expected
        low, high = map(mean_of, bounds)
        if low is None or high is None:
            return TieFigures(mean, mean_of(mean), None)
        return TieFigures(mean, mean_of(mean), (low, high), drawn=run.scored_lists.tied)
