"""The measures of the sampling experiment, query by query, and how two trainings are compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from evenrank.groups import GroupTable, Scoring, score_texts
from evenrank.io import Run, read_qrels, read_run, read_texts
from evenrank.io.tables import IdIndex
from evenrank.io.types import Array
from evenrank.measures import BACKGROUND_DEPTH, Evaluation, parse_measure
from evenrank.measures.nested import Mixed, mixed_test
from evenrank.measures.statistics import MARGIN, bootstrap_means, interval

from .corpora import Part
from .paper_tables import Value

MEASURES = {
    "mrr_10": "RR@10",
    "nfairr_10": "NFaiRR@10",
    "arab_tf_10": "ARaB@10",
    "arab_bool_10": "ARaB(magnitude='bool')@10",
}
HEADINGS = {"mrr_10": "MRR@10", "nfairr_10": "NFaiRR@10", "arab_tf_10": "ARaB tf@10", "arab_bool_10": "ARaB bool@10"}
BIAS = ("arab_tf_10", "arab_bool_10")
"""Signed: nearer 0 is better."""
FIRST, RANDOM, NEUTRAL = "BM25", "random", "neutral-first"
_NEAR_ZERO = 1e-6

Values = dict[str, dict[str, Array]]
"""[system][measure] → the value of each query [Q], NaN where it has none."""


@dataclass(frozen=True, slots=True)
class Lists:
    """What rankings of a query set are measured with: judgements, group table and background."""

    queries: pl.Series
    qrels: pl.DataFrame
    scores: GroupTable
    background: Run

    @classmethod
    def of(cls, part: Part, collection: str, scoring: Scoring) -> Lists:
        """``collection``: where the texts of the part's first-stage documents are."""
        run = read_run(part.run, FIRST)
        texts = read_texts(collection, run.table["doc_id"].unique())
        return cls.with_texts(run, read_qrels(part.qrels), texts, scoring)

    @classmethod
    def with_texts(cls, background: Run, qrels: pl.DataFrame, texts: pl.DataFrame, scoring: Scoring) -> Lists:
        """``texts``: ``doc_id`` and ``text`` of every document."""
        judged = qrels.join(background.queries.to_frame(), on="query_id", how="semi")
        return cls(
            background.queries, judged, GroupTable.of(score_texts(texts, scoring), scoring.describe()), background
        )

    def values(self, runs: Mapping[str, Run]) -> Values:
        """The measures of the first stage, of the runs, and of the two reference rankings of the same candidates."""
        back = Evaluation(self.background, self.scores, self.qrels)
        normaliser = back.as_background(self.background.name, BACKGROUND_DEPTH)
        back.background = normaliser
        found = {FIRST: self._values(back)}
        for name, run in runs.items():
            found[name] = self._values(Evaluation(run, self.scores, self.qrels, background=normaliser))
        found[RANDOM] = self._values(back, random=True)
        found[NEUTRAL] = self._values(back.neutral_first())
        return found

    def _values(self, evaluation: Evaluation, random: bool = False) -> dict[str, Array]:
        found = {}
        for key, name in MEASURES.items():
            measure = parse_measure(name)
            values = evaluation.random_values(measure) if random else evaluation.values(measure)
            places = IdIndex([evaluation.queries_of(measure)]).places(self.queries)
            found[key] = np.where(places >= 0, values[places], np.nan)
        return found


@dataclass
class Figures:
    """One ranker on one query set: the values of each seed."""

    seeds: list[Values] = field(default_factory=list)
    same_queries: bool = False
    """Every seed has the same queries."""

    def arrays(self, system: str, measure: str) -> list[Array]:
        """Of each seed, the value of each query."""
        return [values[system][measure] for values in self.seeds]

    def means(self, system: str, measure: str) -> list[float]:
        """Of each seed."""
        return [_mean(array) for array in self.arrays(system, measure)]

    def mean(self, system: str, measure: str) -> float:
        """Over the seeds."""
        return float(np.mean(self.means(system, measure)))

    def value(self, system: str, measure: str) -> Value:
        """The mean over seeds, whose interval also counts the queries where they are the same in every seed; for a
        single seed its mean over queries."""
        arrays = self.arrays(system, measure)
        if len(arrays) == 1:
            return _over_queries(arrays[0])
        return self._over(arrays) if self.same_queries else Value.over_seeds(self.means(system, measure))

    def values(self, system: str) -> dict[str, Value]:
        """All measures of a system; empty if it was not measured."""
        known = self.seeds and system in self.seeds[0]
        return {measure: self.value(system, measure) for measure in MEASURES} if known else {}

    def test(self, system: str, baseline: str, measure: str) -> Mixed:
        """Paired over queries nested in seeds; with one seed the paired t-test over queries. Signed values."""
        pairs = zip(self.arrays(system, measure), self.arrays(baseline, measure), strict=True)
        return mixed_test([a - b for a, b in pairs], same_queries=self.same_queries)

    def seed_tests(self, system: str, baseline: str, measure: str) -> list[float | None]:
        """p of the paired t-test over the queries of each seed."""
        pairs = zip(self.arrays(system, measure), self.arrays(baseline, measure), strict=True)
        return [mixed_test([a - b]).p for a, b in pairs]

    def difference(self, system: str, baseline: str, measure: str, level: float = 0.95) -> Value:
        """system − baseline of a signed measure, by :meth:`test`."""
        return Value.of_test(self.test(system, baseline, measure), level)

    def nearer(self, system: str, baseline: str, measure: str) -> Value:
        """|mean of system| − |mean of baseline|: over seeds, or for one seed over bootstrap draws of its queries.

        With the same queries in every seed: over both, of the differences of the values with their means' signs, whose
        mean is that figure.
        """
        if len(self.seeds) > 1:
            pairs = [self._pair(system, baseline, measure, seed) for seed in range(len(self.seeds))]
            if self.same_queries:
                return self._over([one[:, 0] - one[:, 1] for one in map(_positive, pairs)])
            means = zip(self.means(system, measure), self.means(baseline, measure), strict=True)
            return Value.over_seeds([abs(a) - abs(b) for a, b in means])
        pair = _known(self._pair(system, baseline, measure))
        draws = np.abs(bootstrap_means(pair, 0))
        mean = abs(_mean(pair[:, 0])) - abs(_mean(pair[:, 1]))
        return Value(mean, len(pair), "queries", interval(draws[:, 0] - draws[:, 1]))

    def change(self, system: str, baseline: str, measure: str) -> Value:
        """100 · (system − baseline) / baseline, the relative change in percent; absolute values where nearer 0 is
        better. Undefined where the baseline is within 1e-6 of 0. Intervals as those of :meth:`nearer`."""
        absolute = measure in BIAS
        if len(self.seeds) > 1:
            pairs = [self._pair(system, baseline, measure, seed) for seed in range(len(self.seeds))]
            if self.same_queries:
                return self._over([_relative_values(_positive(one) if absolute else one) for one in pairs])
            means = zip(self.means(system, measure), self.means(baseline, measure), strict=True)
            return Value.over_seeds([relative(a, b, absolute) for a, b in means])
        pair = _known(self._pair(system, baseline, measure))
        draws = bootstrap_means(pair, 0)
        known = [relative(a, b, absolute) for a, b in draws]
        ends = interval(np.array([np.nan if one is None else one for one in known]))
        return Value(relative(_mean(pair[:, 0]), _mean(pair[:, 1]), absolute), len(pair), "queries", ends)

    def _over(self, arrays: Sequence[Array]) -> Value:
        """The mean of each seed's values of the same queries, by the mixed test."""
        return Value.of_test(mixed_test(arrays, same_queries=True))

    def _pair(self, system: str, baseline: str, measure: str, seed: int = 0) -> Array:
        """[queries, 2], NaN in both where one is."""
        pair: Array = np.stack([self.seeds[seed][name][measure] for name in (system, baseline)], axis=1)
        return np.where(np.isnan(pair).any(axis=1, keepdims=True), np.nan, pair)


def _known(pair: Array) -> Array:
    found: Array = pair[~np.isnan(pair).any(axis=1)]
    return found


def _positive(pair: Array) -> Array:
    """Each column with the sign that makes its mean positive."""
    signs: Array = np.array([-1.0 if _mean(column) < 0 else 1.0 for column in pair.T])
    return pair * signs


def _relative_values(pair: Array) -> Array:
    """Values [queries] whose mean is the relative change of the columns' means, and whose spread is that of the change
    to first order (the delta method); NaN where the change is undefined."""
    first, second = _mean(pair[:, 0]), _mean(pair[:, 1])
    change = relative(first, second)
    if change is None:
        return np.full(len(pair), np.nan)
    return change + 100 * (pair[:, 0] - pair[:, 1] * first / second) / second


def relative(value: float, baseline: float, absolute: bool = False) -> float | None:
    """The change from a baseline in percent, as the paper's columns; ``absolute``: of absolute values."""
    if absolute:
        value, baseline = abs(value), abs(baseline)
    return None if abs(baseline) <= _NEAR_ZERO else 100 * (value - baseline) / baseline


def improvement(value: float, baseline: float) -> float | None:
    """The paper's column beside NFaiRR: by how many percent it rises."""
    return relative(value, baseline)


def reduction(value: float, baseline: float) -> float | None:
    """The paper's column beside ARaB: by how many percent its absolute value falls."""
    found = relative(value, baseline, absolute=True)
    return None if found is None else -found


def minus(value: Value) -> Value:
    """A figure with the other sign."""
    ends = None if value.ci95 is None else (-value.ci95[1], -value.ci95[0])
    return Value(None if value.mean is None else -value.mean, value.n, value.unit, ends)


def margin(figures: Figures, baseline: str) -> float:
    """−5% of the baseline's MRR@10: what a ranker that is not inferior may lose."""
    return -MARGIN * figures.mean(baseline, "mrr_10")


def per_query(figures: Figures, queries: pl.Series, system: str, baseline: str, measure: str) -> pl.DataFrame:
    """``query_id`` and ``difference`` in the first seed, in descending order; undefined ones are left out."""
    first, second = (figures.arrays(name, measure)[0] for name in (system, baseline))
    table = pl.DataFrame({"query_id": queries, "difference": first - second})
    return table.filter(pl.col("difference").is_not_nan()).sort("difference", descending=True, maintain_order=True)


def share_above(differences: Sequence[float] | pl.Series) -> Value:
    """The share of queries whose difference is above 0."""
    return _over_queries(np.asarray([float(one > 0) for one in differences]))


def _mean(values: Array) -> float:
    return float(np.nanmean(values)) if not np.isnan(values).all() else float("nan")


def _over_queries(values: Array) -> Value:
    known = values[~np.isnan(values)]
    if not len(known):
        return Value(None)
    ends = interval(bootstrap_means(known[:, None], 0)[:, 0]) if len(known) > 1 else None
    return Value(float(known.mean()), len(known), "queries", ends)
