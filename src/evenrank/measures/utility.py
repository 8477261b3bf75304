"""Effectiveness, equal to what ir_measures computes, from the judged documents alone.

Tied documents are in the run's order for all measures; ir_measures takes RR with a cutoff from MS MARCO's program,
which puts them the other way round.

Documents without a positive grade add nothing to these measures, so only the *hits* (documents of the run with a
positive grade) are looked at. The expectations over orders of tied documents are closed forms
[McSherry & Najork, ECIR 2008]; that of ERR is our own.

[JK02] Järvelin & Kekäläinen (2002). Cumulated gain-based evaluation of IR techniques. ACM TOIS 20(4).
[MZ08] Moffat & Zobel (2008). Rank-biased precision for measurement of retrieval effectiveness. ACM TOIS 27(1).
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files.errors import EvenrankError
from evenrank.files.types import Array
from evenrank.groups.table import GroupTable
from evenrank.options import LARGEST

from .base import LinearMeasure, RunMeasure
from .joined import JoinedRun
from .ranked_lists import Hits, TieBlocks, chance_of_none, ln_choose, number_within, reach


class UtilityMeasure(RunMeasure):
    """How one of ir_measures' measures is computed here.

    Its values are over the judged queries [J]: those that the run lacks count 0, those whose order is undefined NaN.
    """

    needs_qrels = True

    def __init__(self, measure: Measure) -> None:
        self.measure = measure
        self.cutoff: int | None = measure.params.get("cutoff")

    @property
    def required_cutoff(self) -> int:
        """The cutoff of a measure that needs one."""
        assert self.cutoff is not None
        return self.cutoff

    def queries(self, run: JoinedRun) -> pl.Series:
        """The judged queries [J]."""
        return run.judged


def decided(run: JoinedRun, values: Array) -> Array:
    """Values [J] of utility, NaN for the queries whose order is undefined."""
    if run.undecided is None or not run.undecided.any():
        return values
    unknown = run.queries.filter(pl.Series(run.undecided))
    return np.where(run.judged.is_in(unknown.implode()).to_numpy(), np.nan, values)


class HitMeasure(UtilityMeasure):
    """A measure of the hits alone: a subclass has its value and its expectation over ties.

    ``graded``: grades count, rather than being relevant (at least ``rel``); ``own_parameters``: what it has beside
    ``cutoff`` and ``rel``.
    """

    NAME: ClassVar[str]
    own_parameters: ClassVar[tuple[str, ...]] = ()
    graded = False
    needs_cutoff = False

    @classmethod
    def covers(cls, measure: Measure) -> bool:
        """Whether the parameters of ir_measures' measure are computed here."""
        params = {name: value for name, value in measure.params.items() if name not in cls.own_parameters}
        cutoff = params.pop("cutoff", None)
        relevance = 1 if cls.graded else params.pop("rel", 1)
        return not params and relevance >= 1 and not (cls.needs_cutoff and cutoff is None)

    def value(self, hits: Hits) -> Array:
        """The value [J] with the hits at their ranks."""
        raise NotImplementedError

    def expectation(self, hits: Hits) -> Array:
        """The expectation [J] over the orders of tied documents."""
        raise NotImplementedError

    def _chosen(self, hits: Hits) -> Hits:
        return hits if self.graded else hits.at_least(self.measure.params.get("rel", 1))

    def values(self, run: JoinedRun) -> Array:
        """The value [J] of each query, in the run's order of tied documents."""
        return decided(run, self.value(self._chosen(run.hits)))

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The exact expectation [J] of each query's value over the orders of tied documents, or random orders."""
        return decided(run, self.expectation(self._chosen(run.all_tied_hits if random else run.hits)))

    def by_relevance(self, run: JoinedRun) -> Array:
        """The exact expectation [J] with the candidates by falling grade: the best that they allow."""
        return decided(run, self.expectation(self._chosen(run.hits.by_relevance())))

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The smallest and the largest value [J] of each query over the orders of its tied documents."""
        low, high = (decided(run, self.value(self._chosen(run.hits.ties_broken(best=best)))) for best in (False, True))
        return low, high


def _ratio(numerator: Array, denominator: Array) -> Array:
    """0 where the denominator is 0, as trec_eval has it for a query without a relevant document."""
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)


class SumOverRanks(HitMeasure):
    """A measure that is a sum over ranks of each document's gain, so that drawn judgements can estimate it.

    A subclass has the discounts of ranks, which :attr:`total` divides, and the gain of a grade, from 0 to 1.
    """

    total: float

    def discounts(self, depth: int) -> Array:
        """The discount [depth] of each rank; 0 below the cutoff."""
        raise NotImplementedError

    def gain(self, grade: Array) -> Array:
        """The gain [n] of documents with these grades [n]."""
        relevant: Array = (grade >= self.measure.params.get("rel", 1)).astype(np.float64)
        return relevant

    def weights(self, depth: int) -> Array:
        """The weight [depth] of each rank."""
        weights: Array = self.discounts(depth) / self.total
        return weights

    def value(self, hits: Hits) -> Array:
        """The value [J] with the hits at their ranks."""
        discounts = self.discounts(int(hits.rank.max(initial=0)))
        return hits.sum(self.gain(hits.grade) * discounts[hits.rank - 1]) / self.total

    def expectation(self, hits: Hits) -> Array:
        """The expectation [J] over the orders of tied documents."""
        sums = np.cumsum(np.append(0.0, self.discounts(int((hits.before + hits.size).max(initial=0)))))
        mean = (sums[hits.before + hits.size] - sums[hits.before]) / hits.size
        return hits.sum(self.gain(hits.grade) * mean) / self.total


class GradeSum(LinearMeasure):
    """A sum over ranks of gains, of pairs as documents: their grades are the groups of a group table."""

    better = "higher"
    least, most = 0.0, 1.0

    def __init__(self, how: SumOverRanks) -> None:
        measure = how.measure
        self.__name__ = measure.__name__
        self.SUPPORTED_PARAMS = measure.SUPPORTED_PARAMS  # type: ignore[misc]
        super().__init__(**{"cutoff": LARGEST, **measure.params})
        self.how = how

    def weights(self, lengths: Array, depth: int) -> Array:
        """The weight [Q, depth] of each rank; 0 below the end of a list."""
        return np.where(np.arange(depth) < lengths[:, None], self.how.weights(depth), 0.0)

    def documents(self, table: GroupTable, rows: Array) -> Array:
        """The gain [N] of each of the ``rows`` [N]."""
        gains = self.how.gain(np.array([int(grade) for grade in table.groups]))
        counts = (table.table[f"count_{grade}"].to_numpy()[rows] for grade in table.groups)
        total: Array = sum((gain * count for gain, count in zip(gains, counts, strict=True)), np.zeros(len(rows)))
        return total

    def label_range(self, table: GroupTable) -> tuple[float, float]:
        """From no gain to that of the highest grade."""
        return 0.0, 1.0


class _Precision(SumOverRanks):
    """P@k: relevant documents in the first k ranks / k."""

    NAME = "P"
    needs_cutoff = True
    meaning = "The share of passages within the cutoff that are relevant."

    def __init__(self, measure: Measure) -> None:
        super().__init__(measure)
        self.total = self.required_cutoff

    def discounts(self, depth: int) -> Array:
        """1 within the cutoff [depth]."""
        return (np.arange(depth) < self.required_cutoff).astype(np.float64)


class RankBiasedPrecision(SumOverRanks):
    """RBP(rel=t,p=p)[@k]: the sum over ranks of (1 − p)p^(rank − 1) where the grade is at least t [MZ08].

    It is the expected share of relevant documents that a reader sees who goes on to the next rank with probability p,
    by default .8. Without ``rel`` it is left to ir_measures.

    When it misleads: where no document below some rank is judged, the ranks below count as not relevant: p^k of the
    weight is below rank k (.8^10 = .11). A p that is far from how long people read ranks systems for other readers.

    Worked example: grades 2, 0, 1 with t = 1 and p = .5 give .5 · (1 + 0 + .25) = .625, with t = 2 they give .5.

    >>> import evenrank
    >>> run, qrels = {"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"a": 2, "c": 1}}
    >>> evenrank.audit(run, qrels=qrels, measures="RBP(rel=1,p=0.5)")["run", "RBP(rel=1,p=0.5)"].mean
    0.625
    """

    NAME = "RBP"
    own_parameters = ("p",)
    total = 1.0
    meaning = "The expected share of relevant passages for a reader who stops after each one with a fixed chance."

    @classmethod
    def covers(cls, measure: Measure) -> bool:
        """Whether the grade that is relevant is named, and readers stop."""
        return super().covers(measure) and "rel" in measure.params and 0 < measure["p"] < 1

    def discounts(self, depth: int) -> Array:
        """(1 − p)p^(rank − 1) [depth], 0 below a cutoff."""
        stays = float(self.measure["p"])
        return np.where(np.arange(depth) < (self.cutoff or np.inf), (1 - stays) * stays ** np.arange(depth), 0.0)


class ScaledDCG(SumOverRanks):
    """SDCG(max_rel=G)@k: Σ min(grade, G)/G · 1/log₂(1 + rank) over the first k ranks / Σ 1/log₂(1 + rank).

    It is nDCG [JK02] with another ideal: k documents of the highest grade G, whether the collection has them or not.
    So it needs no judgement of documents that no run found, and is a sum over ranks.

    When it misleads: 1 is out of reach where fewer than k documents have the highest grade, and how far differs by
    query: compare runs on the same queries, not collections. A G above the highest grade that is ever given makes
    every figure small.

    Worked example: grades 3, 0, 1 with G = 3 give (1 + 0 + 1/3 · 1/2) / (1 + .6309 + .5) = .547.

    >>> import evenrank
    >>> run, qrels = {"q": {"a": 3, "b": 2, "c": 1}}, {"q": {"a": 3, "c": 1}}
    >>> round(evenrank.audit(run, qrels=qrels, measures="SDCG(max_rel=3)@3")["run", "SDCG(max_rel=3)@3"].mean, 3)
    0.547
    """

    NAME = "SDCG"
    graded = True
    needs_cutoff = True
    own_parameters = ("max_rel",)
    meaning = "How high relevant passages rank, higher grades counting more; 1 is the highest grade at every rank."

    def __init__(self, measure: Measure) -> None:
        super().__init__(measure)
        self.total = float(self.discounts(self.required_cutoff).sum())

    @classmethod
    def covers(cls, measure: Measure) -> bool:
        """Whether the highest grade is above 0."""
        return super().covers(measure) and measure["max_rel"] > 0

    def discounts(self, depth: int) -> Array:
        """1/log₂(1 + rank) [depth], 0 below the cutoff."""
        rank = np.arange(1, depth + 1)
        return np.where(rank <= self.required_cutoff, 1 / np.log2(1.0 + rank), 0.0)

    def gain(self, grade: Array) -> Array:
        """The grade's share [n] of the highest, from 0 to 1."""
        highest = self.measure["max_rel"]
        share: Array = np.clip(grade, 0, highest) / highest
        return share


class _Recall(HitMeasure):
    """R@k: relevant documents in the first k ranks / relevant documents judged."""

    NAME = "R"
    needs_cutoff = True
    meaning = "The share of all relevant passages that are ranked within the cutoff."

    def value(self, hits: Hits) -> Array:
        """The value [J] with the hits at their ranks."""
        cutoff = self.required_cutoff
        return _ratio(hits.sum(np.ones(len(hits.rank)), hits.rank <= cutoff), hits.relevant)

    def expectation(self, hits: Hits) -> Array:
        """The expectation [J] over the orders of tied documents."""
        cutoff = self.required_cutoff
        return _ratio(hits.sum(reach(hits.before, hits.size, cutoff) / hits.size), hits.relevant)


class _Success(HitMeasure):
    """Success@k: 1 if a relevant document is in the first k ranks, else 0."""

    NAME = "Success"
    needs_cutoff = True
    meaning = "1 if a relevant passage is within the cutoff, otherwise 0."

    def value(self, hits: Hits) -> Array:
        """The value [J] with the hits at their ranks."""
        cutoff = self.required_cutoff
        return (hits.sum(np.ones(len(hits.rank)), hits.rank <= cutoff) > 0).astype(np.float64)

    def expectation(self, hits: Hits) -> Array:
        """The expectation [J] over the orders of tied documents."""
        cutoff = self.required_cutoff
        blocks = TieBlocks.of(hits)
        first = blocks.hits_before == 0
        size, count = blocks.size[first], blocks.hits[first]
        value = np.zeros(hits.queries)
        value[blocks.query[first]] = 1 - chance_of_none(size, count, reach(blocks.before[first], size, cutoff))
        return value


class _ReciprocalRank(HitMeasure):
    """RR[@k]: 1 / rank of the first relevant document, 0 if the first k ranks have none."""

    NAME = "RR"
    meaning = "The reciprocal of the rank of the first relevant passage."

    def value(self, hits: Hits) -> Array:
        """The value [J] with the hits at their ranks."""
        value = np.zeros(hits.queries)
        chosen = hits.rank <= (self.cutoff or np.inf)
        np.maximum.at(value, hits.query[chosen], 1 / hits.rank[chosen])
        return value

    def expectation(self, hits: Hits) -> Array:
        """The expectation [J] over the orders of tied documents."""
        blocks = TieBlocks.of(hits)
        first = blocks.hits_before == 0
        query, before, size, count = (x[first] for x in (blocks.query, blocks.before, blocks.size, blocks.hits))
        inside = np.minimum(reach(before, size, self.cutoff), size - count + 1)
        block = np.repeat(np.arange(len(inside)), inside)
        place = np.arange(len(block)) - np.repeat(np.cumsum(inside) - inside, inside)
        # The first hit is at a place if none is before it and one of the rest is at it.
        none_before = chance_of_none(size[block], count[block], place)
        none_until = chance_of_none(size[block], count[block], place + 1)
        value = (none_before - none_until) / (before[block] + place + 1)
        return np.bincount(query[block], weights=value, minlength=hits.queries)


class _AveragePrecision(HitMeasure):
    """AP[@k]: the mean over the relevant documents judged of the precision at its rank, 0 if not reached."""

    NAME = "AP"
    meaning = "The mean of the precision at the rank of each relevant passage."

    def value(self, hits: Hits) -> Array:
        """The value [J] with the hits at their ranks."""
        order = np.lexsort((hits.rank, hits.query))
        query, rank = hits.query[order], hits.rank[order]
        share = (number_within(query) + 1) / rank
        chosen = rank <= (self.cutoff or np.inf)
        return _ratio(np.bincount(query[chosen], weights=share[chosen], minlength=hits.queries), hits.relevant)

    def expectation(self, hits: Hits) -> Array:
        """The expectation [J] over the orders of tied documents."""
        blocks = TieBlocks.of(hits)
        inside = reach(blocks.before, blocks.size, self.cutoff)
        deepest = int((blocks.before + blocks.size).max(initial=0))
        harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, deepest + 1))))
        # Σ over places i = 1 … reach of (c + 1 + (i − 1)(r − 1)/(g − 1)) / (s + i)
        inverse = harmonic[blocks.before + inside] - harmonic[blocks.before]
        slope = (blocks.hits - 1) / np.maximum(blocks.size - 1, 1)
        total = (blocks.hits_before + 1) * inverse + slope * (inside - (blocks.before + 1) * inverse)
        share = blocks.hits / blocks.size * total
        return _ratio(np.bincount(blocks.query, weights=share, minlength=hits.queries), hits.relevant)


class _NDCG(HitMeasure):
    """nDCG[@k] with gain = grade and discount log2(1 + rank), as trec_eval."""

    NAME = "nDCG"
    graded = True
    meaning = "How high relevant passages rank, higher grades counting more; 1 is the best possible order."

    def value(self, hits: Hits) -> Array:
        """The value [J] with the hits at their ranks."""
        return _ratio(_dcg(hits.queries, hits.query, hits.rank, hits.grade, self.cutoff), _ideal_dcg(hits, self.cutoff))

    def expectation(self, hits: Hits) -> Array:
        """The expectation [J] over the orders of tied documents."""
        deepest = int((hits.before + hits.size).max(initial=0))
        discounts = np.concatenate(([0.0], np.cumsum(1 / np.log2(np.arange(2, deepest + 2)))))
        inside = reach(hits.before, hits.size, self.cutoff)
        gain = hits.grade * (discounts[hits.before + inside] - discounts[hits.before]) / hits.size
        return _ratio(hits.sum(gain), _ideal_dcg(hits, self.cutoff))


class _ERR(HitMeasure):
    """ERR@k for grades 0 to 4, stopping probability (2^grade − 1)/16, as gdeval."""

    NAME = "ERR"
    graded = True
    needs_cutoff = True
    meaning = "The expected reciprocal rank at which a reader who stops at a relevant passage stops."

    def value(self, hits: Hits) -> Array:
        """The value [J] with the hits at their ranks."""
        cutoff = self.required_cutoff
        order = np.lexsort((hits.rank, hits.query))
        query, rank, stop = hits.query[order], hits.rank[order], _stopping(hits.grade[order])
        chosen = rank <= cutoff
        value = _survival(query, stop) * stop / rank
        return np.bincount(query[chosen], weights=value[chosen], minlength=hits.queries)

    def expectation(self, hits: Hits) -> Array:
        """The expectation [J] over the orders of tied documents.

        With f(i) the expected product of 1 − stop over i documents drawn from a tie block, its place i adds
        (f(i − 1) − f(i)) / rank, times the chance of reaching the block.
        """
        blocks = TieBlocks.of(hits)
        cutoff = min(self.required_cutoff, int((hits.before + hits.size).max(initial=1)))
        stop = _stopping(hits.grade)
        reached = _survival(hits.query, stop)[blocks.first]
        most = int(blocks.hits.max(initial=0))
        # polynomial[u]: sum over u-subsets of a block's hits of the product of 1 − stop, by the usual recurrence.
        padded = np.zeros((len(blocks.first), most))
        lane = np.repeat(np.arange(len(blocks.first)), blocks.hits)
        padded[lane, number_within(hits.query, hits.before)] = 1 - stop
        polynomial = np.zeros((len(blocks.first), most + 1))
        polynomial[:, 0] = 1
        for hit in range(most):
            polynomial[:, 1:] += polynomial[:, :-1] * padded[:, hit, None]
        places = np.arange(cutoff + 1)
        drawn = np.minimum(places, reach(blocks.before, blocks.size, cutoff)[:, None])
        survive = np.zeros(drawn.shape)
        size, count = blocks.size[:, None], blocks.hits[:, None]
        for u in range(most + 1):
            possible = (u <= count) & (u <= drawn) & (drawn - u <= size - count)
            d, c, s = np.where(possible, drawn, u), np.where(possible, count, u), np.where(possible, size, 2 * u)
            # Hypergeometric chance of u hits among the drawn, over the number of u-subsets.
            ln = ln_choose(s - c, d - u) - ln_choose(s, d)
            survive += np.where(possible, np.exp(ln) * polynomial[:, [min(u, most)]], 0.0)
        gain = ((survive[:, :-1] - survive[:, 1:]) / (blocks.before[:, None] + places[1:])).sum(axis=1)
        return np.bincount(blocks.query, weights=reached * gain, minlength=hits.queries)


def _ideal_dcg(hits: Hits, cutoff: int | None) -> Array:
    return _dcg(hits.queries, hits.ideal_query, number_within(hits.ideal_query) + 1, hits.ideal_grade, cutoff)


def _dcg(queries: int, query: Array, rank: Array, grade: Array, cutoff: int | None) -> Array:
    gain = np.where(rank <= (cutoff or np.inf), grade / np.log2(rank + 1.0), 0.0)
    return np.bincount(query, weights=gain, minlength=queries)


def _stopping(grade: Array) -> Array:
    if grade.max(initial=0) > 4:
        raise EvenrankError(f"ERR takes grades from 0 to 4; the qrels contain {grade.max()}")
    return (2.0**grade - 1) / 16


def _survival(query: Array, stop: Array) -> Array:
    """The chance [H] of not having stopped before each hit: the product of 1 − stop over the query's earlier hits."""
    # A cumulative sum of logs over everything, minus its value where the query starts.
    logs = np.concatenate(([0.0], np.cumsum(np.log1p(-stop))))
    starts = np.arange(len(query)) - number_within(query)
    chance: Array = np.exp(logs[:-1] - logs[starts])
    return chance


_MEASURES: dict[str, type[HitMeasure]] = {
    kind.NAME: kind
    for kind in (
        _Precision,
        _Recall,
        _Success,
        _ReciprocalRank,
        _AveragePrecision,
        _NDCG,
        _ERR,
        RankBiasedPrecision,
        ScaledDCG,
    )
}


def computed_here(measure: Measure) -> HitMeasure | None:
    """The implementation of an ir_measures measure in evenrank; None if ir_measures computes it."""
    kind = _MEASURES.get(measure.NAME)
    return kind(measure) if kind is not None and kind.covers(measure) else None
