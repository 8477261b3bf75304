"""Impact ratios: the rate at which a ranking selects each group, over that of the group that it selects most."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from ir_measures.measures import ParamInfo

from evenrank.files.types import Array
from evenrank.stats.estimate import Interval
from evenrank.stats.ratios import Selection, rate_ratios

from .base import CUTOFF, TieFigures, tie_figures
from .exposure import (
    GROUP,
    ExposureMeasure,
    TieOrders,
    exposures,
    first_weights,
    group_columns,
    rank_discounts,
)
from .joined import TIE_DRAWS, JoinedRun

POOLED = ParamInfo(dtype=bool, default=False, desc="whether the candidates of all queries are taken together")
SELECTION = ParamInfo(
    dtype=str,
    choices=["first", "dcg"],
    default="first",
    desc="what is selected: `first` the first k candidates, `dcg` rank i by its exposure 1/log2(1 + i)",
)


def candidates(run: JoinedRun) -> Array:
    """Number of candidates of each group in a run's lists [Q, G], by the known documents' weights."""
    lists = run.scored_lists
    return np.stack([column.means(lists) * lists.lengths for column in group_columns(run)], axis=1)


def ratios(selected: Array, people: Array) -> Array:
    """The impact ratio of each group in each list [Q, G], from whom it selects and whom it has [Q, G].

    NaN for a group without candidates, and where nobody of any group is selected.

    >>> ratios(np.array([[2.0, 1.0]]), np.array([[4.0, 4.0]])).tolist()
    [[1.0, 0.5]]
    """
    rates = np.divide(selected, people, out=np.full(people.shape, np.nan), where=people > 0)
    most = np.fmax.reduce(rates, axis=1, keepdims=True)
    impact_ratios: Array = np.divide(rates, most, out=np.full(rates.shape, np.nan), where=most > 0)
    return impact_ratios


def selection(run: JoinedRun, discounts: Array, *, counts: bool = True) -> Selection:
    """Whom a run's lists select with these ``discounts`` [k] of their ranks; each document is a person."""
    known = run.scored_documents >= 0
    documents, ranks = run.scored_documents[known], run.scored_lists.places()[known]
    discount = np.append(discounts, 0.0)[np.minimum(ranks, len(discounts))]
    selected, rows = np.bincount(documents, weights=discount), np.bincount(documents)
    present = np.flatnonzero(rows)
    table = run.required_table
    weights = np.stack([table.weight(group, present) for group in table.groups], axis=1)
    lists = exposures(first_weights(run, len(discounts)), discounts), candidates(run)
    return Selection(selected[present, None] * weights, rows[present, None] * weights, rows[present], lists, counts)


def pooled_terms(selection: Selection, group: int) -> Array:
    """Contribution of each query [Q] to the pooled impact ratio, which is their mean; NaN without candidates.

    With the sums S_a of the selected and N_a of the candidates, and m the group with the largest rate, the ratio is
    R = (S_a/N_a)/(S_m/N_m), and the term of a query R · (1 + Q(s_a/S_a − n_a/N_a − s_m/S_m + n_m/N_m)), to first order
    what it adds. (As R/S_a = N_m/(N_a S_m), S_a may be 0.)

    >>> weights, lists = np.repeat(np.tile(np.eye(2), (2, 1)), 4, axis=0), np.repeat([0, 1], 8)
    >>> selected = np.array([1, 1, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 0, 0.0])
    >>> pooled_terms(Selection.of_rows(selected, weights, list_of=lists), 1).tolist()
    [0.5, 1.0]
    """
    selected, candidates = selection.by_list
    total, of_group = selected.sum(axis=0), candidates.sum(axis=0)
    most, known = selection.most_selected, candidates.sum(axis=1) > 0
    if not (of_group[group] > 0 and total[most] > 0):
        return np.full(len(candidates), np.nan)
    per_selected = of_group[most] / of_group[group] / total[most]
    ratio = total[group] * per_selected
    of_most = selected[:, most] / total[most] - candidates[:, most] / of_group[most]
    moved = selected[:, group] * per_selected - ratio * (candidates[:, group] / of_group[group] + of_most)
    terms: Array = np.where(known, ratio + known.sum() * moved, np.nan)
    return terms


class _ImpactRatio(ExposureMeasure):
    """
    A group's selection rate divided by the highest selection rate of any group [UGESP78, four-fifths rule]. All
    documents of a query's list are candidates, and the first ``cutoff`` are selected; with ``discount='dcg'`` each rank
    counts by its exposure. 1: no group has a higher rate.

    ``pooled=True`` takes the rates over the sums of all queries, as the tables of the law do; each document is a
    person, and a group is compared with only if it has 10 people and 2% of the candidates. The values of the queries
    are then contributions whose mean is the ratio. The interval is that of `evenrank.stats.ratios.rate_ratios`.

    When it misleads: unpooled, each query compares with the group that came out ahead there. In short lists that is
    often chance, so the mean is below 1 even if nobody is treated worse; pool the queries. If rates are small, one
    person changes the ratio a lot. It ignores qualification, and any bias in how the candidates were found. Pooled over
    queries with different rates, a group can have a lower ratio than in any of them.

    Worked example: of four women two are among the first three, of four men one: the men's ratio is (1/4)/(2/4).

    >>> import numpy as np
    >>> from evenrank.measures.impact import ratios
    >>> ratios(np.array([[2.0, 1.0]]), np.array([[4.0, 4.0]])).tolist()
    [[1.0, 0.5]]
    """

    __name__ = NAME = "ImpactRatio"
    PRETTY_NAME = "Impact Ratio"
    SUPPORTED_PARAMS: ClassVar[dict[str, ParamInfo]] = {
        "cutoff": CUTOFF,
        "group": GROUP,
        "pooled": POOLED,
        "discount": SELECTION,
    }
    better = "higher"
    meaning = "The rate at which the group is selected, over that of the group that is selected most."

    def __init__(self, **params: object) -> None:
        super().__init__(**params)
        # What a query has in a pooled ratio has no bounds.
        self.least, self.most = (-np.inf, np.inf) if self.params.get("pooled") else (0.0, 1.0)

    def discounts(self, run: JoinedRun) -> Array:
        """How far each rank [k] is selected."""
        depth = self.depth(run)
        return rank_discounts(depth) if self["discount"] == "dcg" else np.ones(depth)

    def selection(self, run: JoinedRun) -> Selection:
        """Whom the run's lists select, or their exposure."""
        return selection(run, self.discounts(run), counts=self["discount"] == "first")

    def of_lists(self, run: JoinedRun, weights: Array, queries: Array) -> Array:
        """The group's ratio [A] in each list."""
        ratio: Array = ratios(exposures(weights, self.discounts(run)), candidates(run)[queries])[:, self._group(run)]
        return ratio

    def values(self, run: JoinedRun) -> Array:
        """The value [Q] of each query; NaN is undefined."""
        if not self["pooled"]:
            return super().values(run)
        return pooled_terms(self.selection(run), self._group(run))

    def over_draws(
        self, run: JoinedRun, *, random: bool = False, orders: TieOrders | None = None
    ) -> tuple[Array, Array, Array]:
        """Mean, smallest and largest value [Q]; pooled, those of the orders with the smallest and the largest ratio."""
        orders = orders or self.orders(run, random=random)
        if not self["pooled"]:
            return super().over_draws(run, random=random, orders=orders)
        selection, discounts = self.selection(run), self.discounts(run)
        rng, draws = np.random.default_rng(run.seed), [self.values(run)]
        if len(orders.queries):
            draws = [] if random else draws
            for _ in range(TIE_DRAWS):
                selection.by_list[0][orders.queries] = exposures(orders.drawn(rng), discounts)
                draws.append(pooled_terms(selection, self._group(run)))
        defined = [draw for draw in draws if not np.isnan(draw).all()]
        if not defined:
            return draws[0], draws[0], draws[0]
        by_ratio = sorted(defined, key=np.nanmean)
        mean: Array = np.mean(defined, axis=0)
        return mean, by_ratio[0], by_ratio[-1]

    def ties(self, run: JoinedRun) -> TieFigures:
        """What ties do to the run's figure."""
        if not self["pooled"]:
            return super().ties(run)
        undefined = np.where(np.isnan(self.values(run)), np.nan, 0.0)
        expected, low, high = (order + undefined for order in self.over_orders(run))
        return tie_figures(expected, low, high)

    def interval(self, run: JoinedRun) -> Interval | None:
        """The interval of a pooled ratio."""
        if not self["pooled"]:
            return None
        return rate_ratios(self.selection(run))[self._group(run)].ci95

    def looked_at(self, run: JoinedRun) -> Array | None:
        """All candidates."""
        return None

    def label_bounds(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, Array] | None:
        """The value [Q], or 0 and 1 where a candidate has no label; pooled, 0 and 1."""
        if random or not self["pooled"]:
            return super().label_bounds(run, random=random)
        if not (run.document < 0).any():
            return self.values(run), self.values(run)
        return np.zeros(len(run.queries)), np.ones(len(run.queries))

    def _group(self, run: JoinedRun) -> int:
        return run.required_table.number_of(self["group"])


ImpactRatio = _ImpactRatio()


MEASURES = (ImpactRatio,)
