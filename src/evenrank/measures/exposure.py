"""How much exposure each group has, and how far that is from what it should have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Literal

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.files.types import Array
from evenrank.groups.table import GroupTable

from .base import CUTOFF, POLES, Better, BiasMeasure, Construct, LinearMeasure
from .joined import TIE_DRAWS, JoinedRun
from .rank_bias import rab_weights
from .ranked_lists import Column, RankedLists, expand
from .targets import TARGETS

_SAME = 1e-12


def group_columns(run: JoinedRun) -> list[Column]:
    """The weight of each of the G groups in a run's documents; 0 for a document that the group table lacks."""
    return [run.weight(group) for group in run.required_table.groups]


def first_weights(run: JoinedRun, depth: int) -> Array:
    """The weight [G, Q, depth] of each group in the first documents of each list; 0 past its end."""
    return np.stack([column.first(run.scored_lists, depth) for column in group_columns(run)])


def exposures(weights: Array, discounts: Array) -> Array:
    """Each group's exposure [Q, G]: Σ over ranks of discount [k] × weight [G, Q, k]."""
    summed: Array = np.stack([np.einsum("qk,k->q", of_group, discounts) for of_group in weights], axis=1)
    return summed


def expected_exposures(lists: RankedLists, columns: Sequence[Column], discounts: Array, *, random: bool) -> Array:
    """The expectation [Q, G] of :func:`exposures` over the orders of tied documents; ``random``: over random orders.

    ``columns``: the weights of each of G groups in the documents of the lists.
    """
    depth = len(discounts)
    if not random:
        return exposures(np.stack([lists.tie_average(column, depth) for column in columns]), discounts)
    total = np.concatenate(([0.0], np.cumsum(discounts)))[np.minimum(lists.lengths, depth)]
    return np.stack([total * column.means(lists) for column in columns], axis=1)


class TieOrders:
    """The group weights of the first documents of lists, in any order of their tied documents.

    Only of the A lists where ties reach into the first ``depth`` ranks; ``queries`` [A]: their numbers. R documents are
    in these tie blocks; ``tied`` [G, R]: their weights; ``list_of`` [R]: their list, from 0 to A − 1.
    ``chosen`` [Q]: the lists to look at, if not all.
    """

    def __init__(self, lists: RankedLists, columns: Sequence[Column], depth: int, chosen: Array | None = None) -> None:
        starts, sizes, reach, query = lists.ties_within(depth)
        # Blocks that reach furthest come first, so that those with a k-th place within the depth are neighbours.
        order = np.argsort(-reach, kind="stable")
        order = order if chosen is None else order[chosen[query[order]]]
        starts, self._sizes, self._reach, query = (of_block[order] for of_block in (starts, sizes, reach, query))
        self.queries, local = np.unique(query, return_inverse=True)
        rows, self._block = expand(starts, self._sizes)
        self.tied = np.stack([column[rows] for column in columns])
        self.list_of = local[self._block]
        self._start = np.cumsum(self._sizes) - self._sizes
        self._top = np.stack([column.first(lists, depth)[self.queries] for column in columns])
        within, block = expand(np.zeros(len(order), dtype=np.int64), self._reach)
        self._place = local[block] * depth + (starts - lists.offsets[query])[block] + within
        self._slot = self._start[block] + within
        self._state = np.arange(len(rows))

    @property
    def varying(self) -> Array:
        """Which of the lists [A] have a tie block whose documents differ in the sum of their groups' weights."""
        totals = self.tied.sum(axis=0)
        varies = np.zeros(len(self.queries), dtype=bool)
        if len(totals):
            spread = np.maximum.reduceat(totals, self._start) - np.minimum.reduceat(totals, self._start)
            varies[self.list_of[self._start[spread > _SAME]]] = True
        return varies

    def falling(self, keys: Array) -> Array:
        """The weights [G, A, depth] with the documents of each tie block by falling ``keys`` [R]."""
        return self._ordered(np.lexsort((-keys, self._block)))

    def drawn(self, rng: np.random.Generator) -> Array:
        """The weights [G, A, depth] in one random order of the tied documents."""
        # A shuffle of the first places alone: from any order of a block, it leaves a random one in them.
        for place in range(int(self._reach.max(initial=0))):
            blocks = int(np.searchsorted(-self._reach, -place, side="left"))
            here = self._start[:blocks] + place
            other = self._start[:blocks] + rng.integers(place, self._sizes[:blocks])
            self._state[here], self._state[other] = self._state[other], self._state[here]
        return self._ordered(self._state)

    def over_draws(self, value: Callable[[Array], Array], seed: int) -> tuple[Array, Array, Array]:
        """Mean, smallest and largest value [A] over 200 random orders; of the orders that have one.

        ``value``: from weights [G, A, depth] to values [A], NaN where there is none.
        """
        rng = np.random.default_rng(seed)
        total, count = np.zeros(len(self.queries)), np.zeros(len(self.queries))
        low, high = np.full((2, len(self.queries)), np.nan)
        for _ in range(TIE_DRAWS if len(self.queries) else 0):
            values = value(self.drawn(rng))
            total += np.nan_to_num(values)
            count += ~np.isnan(values)
            low, high = np.fmin(low, values), np.fmax(high, values)
        # A mean of equal values is no other value.
        mean = np.clip(np.divide(total, count, out=np.full(len(total), np.nan), where=count > 0), low, high)
        return mean, low, high

    def _ordered(self, order: Array) -> Array:
        top, chosen = self._top.copy(), order.take(self._slot)
        for of_group, tied in zip(top, self.tied, strict=True):
            of_group.reshape(-1)[self._place] = tied.take(chosen)
        return top


Discount = Literal["log", "trec", "rbp"]

DISCOUNT = ParamInfo(
    dtype=str,
    choices=["log", "trec", "rbp"],
    default="log",
    desc="exposure of rank i: `log` 1/log2(1 + i), `trec` 1/log2(max(i, 2)), `rbp` gamma^(i − 1)",
)
GAMMA = ParamInfo(dtype=(int, float), default=0.8, desc="patience of `discount='rbp'`, above 0 and up to 1")


def rank_discounts(depth: int, kind: Discount = "log", gamma: float = 0.8) -> Array:
    """The exposure [depth] of each rank.

    ``log``: 1/log2(1 + i) [SJ18]; ``trec``: 1/log2(max(i, 2)) [TREC22]; ``rbp``: gamma^(i − 1).

    >>> [rank_discounts(3, kind).round(4).tolist() for kind in ("log", "trec", "rbp")]
    [[1.0, 0.6309, 0.5], [1.0, 1.0, 0.6309], [1.0, 0.8, 0.64]]
    """
    ranks = np.arange(1, depth + 1, dtype=np.float64)
    if kind == "rbp":
        powers: Array = gamma ** (ranks - 1)
        return powers
    return 1 / np.log2(np.maximum(ranks, 2) if kind == "trec" else 1 + ranks)


class ExposureMeasure(BiasMeasure):
    """A measure of the groups' exposure in the first ranks, computed from the weights of each list's first documents.

    A subclass says what the value of given weights is (:meth:`of_lists`); over the orders of tied documents, and over
    random orders, it is then drawn 200 times.
    """

    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {"cutoff": CUTOFF, "discount": DISCOUNT, "gamma": GAMMA}

    def __init__(self, **params: object) -> None:
        super().__init__(**params)
        self.needs_qrels = self.params.get("target") == "relevant"
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

    def over_orders(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, Array, Array]:
        """Mean, smallest and largest value [Q] in 200 random orders, of the first ranks alone."""
        key = (self, random)
        if key not in run.over_orders:
            run.over_orders[key] = self.over_draws(run, random=random)
        return run.over_orders[key]

    def over_draws(
        self, run: JoinedRun, *, random: bool = False, orders: TieOrders | None = None
    ) -> tuple[Array, Array, Array]:
        """Mean, smallest and largest value [Q] in 200 random orders; the value itself of a query without ties.

        The ends are those of the run's own order too (not of ``random`` orders of all candidates).

        An order without a value counts for nothing. ``orders``: those to draw from, if they are at hand.
        """
        orders = orders or self.orders(run, random=random)
        mean = self.values(run)
        low, high = mean.copy(), mean.copy()
        draws = orders.over_draws(lambda weights: self.of_lists(run, weights, orders.queries), run.seed)
        if not random:
            # The run's own order is one of them too, and may be the only one with a value.
            own = mean[orders.queries]
            draws = np.where(np.isnan(draws[0]), own, draws[0]), np.fmin(draws[1], own), np.fmax(draws[2], own)
        mean[orders.queries], low[orders.queries], high[orders.queries] = draws
        return mean, low, high

    def orders(self, run: JoinedRun, *, random: bool = False, chosen: Array | None = None) -> TieOrders:
        """The orders of tied documents (``random``: of all candidates), of the ``chosen`` [Q] queries if not of all."""
        lists = run.scored_lists.all_tied() if random else run.scored_lists
        return TieOrders(lists, group_columns(run), self.depth(run), chosen)


GROUP = ParamInfo(dtype=str, required=True, desc="group whose share is measured")
_ROUNDS = 100


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
        return table.weight(table.groups[table.number_of(self["group"])], rows)

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
        exposure = exposures(first_weights(run, len(discounts)), discounts)
        unlabelled = run.scored_lists.top((run.scored_documents < 0).astype(np.float64), len(discounts))
        unknown = np.einsum("qk,k->q", unlabelled, discounts)
        coefficients = self.coefficients(table)
        low, high = exposure.copy(), exposure.copy()
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
        exposure = exposures(weights, discounts)
        above, below = exposure @ coefficients, exposure.sum(axis=1)
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
    >>> from evenrank.measures.exposure import rank_discounts
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
        only: Array = np.eye(len(table.groups))[table.number_of(self["group"])]
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
    >>> from evenrank.measures.exposure import rank_discounts
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


TARGET = ParamInfo(
    dtype=str,
    choices=[*TARGETS],
    default=None,
    desc="shares that the groups should have: `uniform`, `candidates`, `relevant` or `file`; by default those that the "
    "run is given, or else `uniform`",
)
_BASE = ParamInfo(dtype=int, choices=[2], default=None, desc="2: logarithm to base 2, for values from 0 to 1")


def divergence(shares: Array, target: Array) -> Array:
    """The Kullback–Leibler divergence [Q] of shares [Q, G] from a target [Q, G], in nats; infinite where it gives 0.

    >>> divergence(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])).round(4).tolist()
    [0.6931, inf]
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(shares == 0, 0.0, shares * np.log(shares / target))
    # A target that is undefined is no target for a group without exposure either.
    summed: Array = np.where(np.isnan(target).any(axis=1), np.nan, terms.sum(axis=1))
    return summed


def awrf(shares: Array, target: Array, base: int | None = None) -> Array:
    """AWRF [Q] of shares of exposure [Q, G]: 1 − their Jensen–Shannon divergence from the target [Q, G] [TREC22].

    ``base``: of the logarithm, by default the natural one.

    >>> awrf(np.array([[0.5, 0.5], [1.0, 0.0]]), np.array([[0.5, 0.5], [0.0, 1.0]])).round(4).tolist()
    [1.0, 0.3069]
    """
    middle = (shares + target) / 2
    distance = (divergence(shares, middle) + divergence(target, middle)) / 2
    return 1 - np.maximum(distance, 0) / (1.0 if base is None else np.log(base))


def ndkl(weights: Array, lengths: Array, target: Array, discounts: Array) -> Array:
    """NDKL [Q] of the groups' weights [G, Q, k] in lists of ``lengths`` [Q], for a target [Q, G] [GEY19, eq. 4].

    The mean over prefixes of the divergence of their shares from the target, weighted by the discount [k] of the last
    rank; over the prefixes with a group. NaN without one, and where the divergence is infinite.

    >>> first = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])  # documents of the groups a, b: ln 2 at rank 1, 0 at rank 2
    >>> discounts = np.array([1.0, 0.6309])
    >>> ndkl(first, np.array([2]), np.array([[0.5, 0.5]]), discounts).round(4).tolist()
    [0.425]
    """
    sums = np.cumsum(weights, axis=2)
    total = sums.sum(axis=0)
    counted = np.where((total > 0) & (np.arange(len(discounts)) < lengths[:, None]), discounts, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = sums / total
        terms = np.where(sums == 0, 0.0, shares * (np.log(shares) - np.log(target.T)[:, :, None]))
    distance = np.where(counted > 0, terms.sum(axis=0), 0.0)
    weight = counted.sum(axis=1)
    value = np.einsum("qk,qk->q", counted, distance)
    value = np.divide(value, weight, out=np.full(len(value), np.nan), where=weight > 0)
    return np.where(np.isfinite(value) & ~np.isnan(target).any(axis=1), value, np.nan)


class _AWRF(ExposureMeasure):
    """
    Attention-weighted rank fairness: 1 − JSD(e ‖ t), the Jensen–Shannon divergence between the groups' shares of
    exposure e, as in Exposure, and a target t [SAP19; RE22; as TREC22 has it]. 1: the shares are those of the target.

    With the natural logarithm, as published, JSD is at most ln 2, so the floor of AWRF is 1 − ln 2 = .307, not 0, and
    figures look better than they are; ``base=2`` gives values from 0 to 1. Undefined where no document within the
    cutoff is of any group, and where the target is. A document that the labels lack keeps its rank and adds nothing.

    Over ties, and for the reference ``random``, the mean of 200 drawn orders, as a single order is what AWRF is about.

    When it misleads: nearness to a target is no better than the target: with ``candidates``, a first stage that finds
    only one group is perfectly fair. Documents of no group are not in it: one of a group among nine neutral ones can
    decide it. Values are near 1: all exposure for one of two groups that should have half each is still 0.784.

    Worked example: documents of the groups m, f, m, target ½, ½. The shares of exposure are 0.7039 and 0.2961; half
    the divergences from the middle, (0.6020, 0.3980), are 0.0113 and 0.0106.

    >>> import numpy as np
    >>> from evenrank.measures.exposure import awrf
    >>> awrf(np.array([[0.7039, 0.2961]]), np.array([[0.5, 0.5]])).round(4).tolist()
    [0.9781]
    """

    construct: Construct = "exposure"
    __name__ = NAME = "AWRF"
    PRETTY_NAME = "Attention-Weighted Rank Fairness"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {
        "cutoff": CUTOFF,
        "discount": DISCOUNT,
        "gamma": GAMMA,
        "target": TARGET,
        "base": _BASE,
    }
    better: Better = "higher"
    least, most = 0.0, 1.0
    meaning = "How near the groups' shares of exposure are to those that they should have."

    def of_lists(self, run: JoinedRun, weights: Array, queries: Array) -> Array:
        """The value [A] of lists from their groups' weights [G, A, k]."""
        shares = exposure_shares(exposures(weights, self.discounts(run)))
        return awrf(shares, run.target_shares(self["target"])[queries], self["base"])


class _NDKL(ExposureMeasure):
    """
    Normalised discounted KL divergence [GEY19, eq. 4]: Σ_i δ_i KL(D_i ‖ t) / Σ_i δ_i over the ranks i ≤ cutoff of the
    list, D_i the groups' shares of the weight of the first i documents, t a target, δ_i = 1/log2(1 + i) unless
    ``discount`` says otherwise. 0: the target at every rank. In nats.

    Prefixes without a document of a group have no shares and are left out of both sums (our reading). Undefined without
    one that has, and where the target gives 0 to a group that is there: the divergence would be infinite. Over ties and
    for the reference ``random``, the mean of 200 drawn orders; the range is theirs.

    When it misleads: no ranking reaches 0: the first document alone is of one group, ln 2 from equal shares of two. So
    its size depends on the cutoff and on the number of groups; compare with ``random``. It has no upper bound: a target
    that is nearly 0 for a group makes it as large as one likes.

    Worked example: documents of the groups a and b, target ½, ½: ln 2 = 0.6931 at rank 1, 0 at rank 2, where both
    have a half: 0.6931 / (1 + 0.6309).

    >>> import numpy as np
    >>> from evenrank.measures.exposure import rank_discounts
    >>> from evenrank.measures.exposure import ndkl
    >>> weights = np.array([[[1.0, 0.0]], [[0.0, 1.0]]])
    >>> ndkl(weights, np.array([2]), np.array([[0.5, 0.5]]), rank_discounts(2)).round(4).tolist()
    [0.425]
    """

    construct: Construct = "exposure"
    __name__ = NAME = "NDKL"
    PRETTY_NAME = "Normalised Discounted KL Divergence"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {
        "cutoff": CUTOFF,
        "discount": DISCOUNT,
        "gamma": GAMMA,
        "target": TARGET,
    }
    meaning = "How far the groups' shares of the first documents are, at every rank, from those that they should have."

    def of_lists(self, run: JoinedRun, weights: Array, queries: Array) -> Array:
        """The value [A] of lists from their groups' weights [G, A, k]."""
        lengths = run.scored_lists.lengths[queries]
        return ndkl(weights, lengths, run.target_shares(self["target"])[queries], self.discounts(run))


AWRF, NDKL = _AWRF(), _NDKL()


MEASURES = (Share, Exposure, ExposureGap, AWRF, NDKL)
