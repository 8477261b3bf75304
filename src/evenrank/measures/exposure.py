"""How much of a ranking's exposure each group has (Share, Exposure, ExposureGap)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.groups.table import GroupTable
from evenrank.io.types import Array

from .base import CUTOFF, POLES, Better
from .exposure_base import DISCOUNT, GAMMA, ExposureMeasure, group_number
from .exposure_orders import TieOrders, expected_exposures, exposures, first_weights, group_columns, unknown_first
from .joined import JoinedRun
from .lazy import Column
from .linear import LinearMeasure
from .rank_bias import rab_weights

GROUP = ParamInfo(dtype=str, required=True, desc="group whose share is measured")
_ROUNDS = 100
_SAME = 1e-12


def exposure_shares(exposure: Array) -> Array:
    """Exposures [Q, G] of the groups over their sum; NaN for a query where no group has any.

    >>> exposure_shares(np.array([[1.5, 0.5], [0.0, 0.0]])).tolist()
    [[0.75, 0.25], [nan, nan]]
    """
    total = exposure.sum(axis=1, keepdims=True)
    shares: Array = np.divide(exposure, total, out=np.full(exposure.shape, np.nan), where=total > 0)
    return shares


class _Share(LinearMeasure):
    """
    The mean weight of a group in the first ``cutoff`` documents: its share of them, where each document is of one
    group [GEY19, D of the first k]. A document of no group counts with weight 0, so the groups' shares need not sum
    to 1.

    No value is better by itself: compare the groups, or with the reference ``random``, the share among the candidates.

    When it misleads: it does not see the order within the cutoff: a group that is always at ranks 6 to 10 has the same
    share as one at ranks 1 to 5 (Exposure tells them apart). With many documents of no group, all groups' shares are
    small, and a small share is no sign of bias.

    Worked example: three documents, the first and the third of the group, to depth 2: (1 + 0) / 2.

    >>> import numpy as np
    >>> from evenrank.measures.rank_bias import rab
    >>> rab(np.array([[1.0, 0.0, 1.0]]), np.array([3]), 2).tolist()
    [0.5]
    """

    __name__ = NAME = "Share"
    undirected = True
    least, most = 0.0, 1.0
    PRETTY_NAME = "Share of the First Documents"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {"cutoff": CUTOFF, "group": GROUP}
    better: Better = "higher"
    meaning = "The share of the first documents that are of the group."

    def weights(self, lengths: Array, depth: int) -> Array:
        """The weight [Q, depth] of each rank: 1 / min(depth, n)."""
        return rab_weights(lengths, depth)

    def documents(self, table: GroupTable, rows: Array) -> Array:
        """The group's weight [N] in each of the ``rows``."""
        return table.weight(table.groups[group_number(table, self["group"])], rows)

    def column(self, run: JoinedRun) -> Column:
        """The group's weights in a run's documents."""
        return group_columns(run)[group_number(run.required_table, self["group"])]

    def label_range(self, table: GroupTable) -> tuple[float, float]:
        """From no weight of the group to all."""
        return 0.0, 1.0


class _RatioMeasure(ExposureMeasure):
    """A sum over groups of coefficient × exposure, over the exposure of all groups."""

    def coefficients(self, table: GroupTable) -> Array:
        """The coefficient [G] of each group's exposure, from −1 to 1."""
        raise NotImplementedError

    def of_lists(self, run: JoinedRun, weights: Array, queries: Array) -> Array:
        """The value [A] of lists from their groups' weights [G, A, k]."""
        return self._ratio(run, exposures(weights, self.discounts(run)))

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The expectation [Q] over the orders of tied documents that have a value (``random``: over random orders).

        Exact where tied documents have the same sum of weights, else the mean over 200 draws.
        """
        columns, discounts = group_columns(run), self.discounts(run)
        expected = self._ratio(run, expected_exposures(run.scored_lists, columns, discounts, random=random))
        orders = self.orders(run, random=random)
        varying = orders.varying
        if varying.any():
            chosen = np.zeros(len(expected), dtype=bool)
            chosen[orders.queries[varying]] = True
            if not varying.all():
                orders = self.orders(run, random=random, chosen=chosen)
            expected[chosen] = self.over_draws(run, random=random, orders=orders)[0][chosen]
        return expected

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The smallest and the largest value [Q] over the orders of tied documents that have one, exactly."""
        orders = self.orders(run)
        coefficients, discounts = self.coefficients(run.required_table), self.discounts(run)
        low, high = self.values(run), self.values(run)
        low[orders.queries] = -_largest_ratio(orders, -coefficients, discounts)
        high[orders.queries] = _largest_ratio(orders, coefficients, discounts)
        return low, high

    def label_bounds(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, Array] | None:
        """The value [Q] with all unknown documents in the group that lowers it most, and in the one that raises it.

        None of a random order: its expectation has no closed form.
        """
        if random:
            return None
        table, discounts = run.required_table, self.discounts(run)
        found = exposures(first_weights(run, len(discounts)), discounts)
        unknown = np.einsum("qk,k->q", unknown_first(run, len(discounts)), discounts)
        coefficients = self.coefficients(table)
        low, high = found.copy(), found.copy()
        low[:, coefficients.argmin()] += unknown
        high[:, coefficients.argmax()] += unknown
        return self._ratio(run, low), self._ratio(run, high)

    def _ratio(self, run: JoinedRun, exposure: Array) -> Array:
        ratio: Array = np.einsum("qg,g->q", exposure_shares(exposure), self.coefficients(run.required_table))
        return ratio


def _largest_ratio(orders: TieOrders, coefficients: Array, discounts: Array) -> Array:
    """The largest value [A] of Σ coefficient × exposure / Σ exposure over the orders of tied documents.

    Dinkelbach's method: some order is above λ if the largest Σ discount × (part − λ × total) is above 0, and with
    discounts that never grow, sorting each tie block by part − λ × total finds it. NaN if no order has a value.
    """
    part, total = coefficients @ orders.tied, orders.tied.sum(axis=0)
    weights = orders.falling(total)
    best = np.full(len(orders.queries), np.nan)
    for _ in range(_ROUNDS):
        found = exposures(weights, discounts)
        above, below = found @ coefficients, found.sum(axis=1)
        ratio = np.divide(above, below, out=np.full(len(best), np.nan), where=below > 0)
        better = ~(ratio <= best + _SAME) & ~np.isnan(ratio)
        if not better.any():
            break
        best[better] = ratio[better]
        weights = orders.falling(part - np.nan_to_num(best)[orders.list_of] * total)
    return best


class _Exposure(_RatioMeasure):
    """
    A group's share of the exposure that all groups have in the first ``cutoff`` ranks [SJ18, §4.1]: e_a / Σ_b e_b,
    e_a = Σ_{i ≤ cutoff} δ_i w_a(d_i), where w_a(d) is the group's weight in a document and δ_i the exposure of rank i,
    1/log2(1 + i) unless ``discount`` says otherwise. Over all groups instead of per document of a group (our reading):
    the shares sum to 1. A document of no group, or that the labels lack, has exposure and gives it to no group.

    No value is better by itself: compare with the reference ``random``, or with the share that the group should have.
    Undefined where no document within the cutoff is of any group. Over ties, the mean over the orders that have a value
    (exact if tied documents have equal sums of weights, else 200 draws); the range is exact.

    When it misleads: it is relative to the documents that have a group. One document of the group among nine neutral
    ones gives it all the exposure. Discounts are models of attention, not measured attention, and 1/log2(1 + i) falls
    slowly: rank 10 has 29% of the exposure of rank 1.

    Worked example: three documents of the groups m, f, m. e_m = 1 + 1/2, e_f = 1/log2(3) = 0.6309, so f has
    0.6309 / 2.1309.

    >>> import numpy as np
    >>> from evenrank.measures.exposure import exposure_shares
    >>> from evenrank.measures.exposure_base import rank_discounts
    >>> f, m = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0])
    >>> exposure_shares(np.array([[f @ rank_discounts(3), m @ rank_discounts(3)]])).round(4).tolist()
    [[0.2961, 0.7039]]
    """

    __name__ = NAME = "Exposure"
    undirected = True
    least, most = 0.0, 1.0
    PRETTY_NAME = "Share of Exposure"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {
        "cutoff": CUTOFF,
        "group": GROUP,
        "discount": DISCOUNT,
        "gamma": GAMMA,
    }
    better: Better = "higher"
    meaning = "The group's share of the exposure that all groups have, the very first ranks weighing most."

    def coefficients(self, table: GroupTable) -> Array:
        """1 for the group, 0 for the others [G]."""
        only: Array = np.eye(len(table.groups))[group_number(table, self["group"])]
        return only


class _ExposureGap(_RatioMeasure):
    """
    The first pole's share of exposure minus the second's: (e_m − e_f) / Σ_b e_b, with the exposures e of Exposure
    [SJ18, §4.1, whose demographic parity asks for equal ones]. Signed: positive if the first pole has more; with a
    second pole ``rest``, the mean of the other groups' shares is subtracted. From −1 to 1; 0 is balance. Opposite
    queries cancel in the mean.

    Undefined where no document within the cutoff is of any group. Over ties as Exposure.

    When it misleads: balance is no target where the candidates are not balanced: compare with the reference ``random``
    and with AWRF, which takes a target. It does not know relevance. A list of neutral documents with one of the first
    pole has the value 1.

    Worked example: three documents of the groups m, f, m: (1.5 − 0.6309) / 2.1309.

    >>> import numpy as np
    >>> from evenrank.measures.exposure import exposure_shares
    >>> from evenrank.measures.exposure_base import rank_discounts
    >>> f, m = np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 1.0])
    >>> shares = exposure_shares(np.array([[m @ rank_discounts(3), f @ rank_discounts(3)]]))
    >>> (shares[:, 0] - shares[:, 1]).round(4).tolist()
    [0.4078]
    """

    __name__ = NAME = "ExposureGap"
    least, most = -1.0, 1.0
    PRETTY_NAME = "Gap in Exposure"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {
        "cutoff": CUTOFF,
        "discount": DISCOUNT,
        "gamma": GAMMA,
        "poles": POLES,
    }
    signed = True
    meaning = "Which group has more of the exposure, the very first ranks weighing most; 0 is balance."

    def coefficients(self, table: GroupTable) -> Array:
        """1 for the first pole, −1 for the second, shared among its groups [G]."""
        first, others = table.sides_of(self.poles)
        return np.array([(group == first) - (group in others) / len(others) for group in table.groups])


Share, Exposure, ExposureGap = _Share(), _Exposure(), _ExposureGap()
MEASURES = (Share, Exposure, ExposureGap)
