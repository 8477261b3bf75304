"""A judge's grades against people's, of pairs that were drawn: how far they agree, and where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files import Run
from evenrank.files.json_values import INLINE
from evenrank.files.types import Array
from evenrank.groups import GroupTable
from evenrank.stats.compare import Comparison, compare_groups, corrected
from evenrank.stats.estimate import Estimate, t_quantile

from .judgements import DrawnJudgements, split_pairs

By = Literal["rank", "ranker", "length", "group"]
Stratum = tuple[By, str, Array]


@dataclass(frozen=True, slots=True)
class JudgeStratum:
    """A judge's excess of relevant grades in one stratum of pairs, compared with the others.

    Attributes:
        by: What tells these pairs from the others; ``stratum``: which pairs they are.
        excess: The judge's excess among them.
        test: That excess less the excess among the others, with Holm's correction over all strata.
    """

    by: By
    stratum: str
    excess: float
    test: Comparison = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """A judge's grades against people's, of the pairs that could be drawn, estimated from those that were.

    Attributes:
        relevant_from: The least grade that is relevant.
        excess: The share of pairs that the judge calls relevant, less the share that people do.
        agree: The share of pairs of which both say the same.
        kappa: Cohen's kappa, agreement beyond chance.
        strata: Whether the excess differs between pairs by rank, length, ranker and group.
    """

    relevant_from: int
    excess: Estimate
    agree: Estimate
    kappa: Estimate
    strata: tuple[JudgeStratum, ...]


def check_judge(
    judgements: DrawnJudgements, measures: Sequence[Measure], runs: Sequence[Run], groups: GroupTable | None
) -> JudgeCheck | None:
    """The judge's error, estimated from the sampled judgements; None without a judge."""
    sample = judgements.table.sample
    if sample is None or sample.guess is None or sample.guessed is None:
        return None
    relevant = next((int(measure.params["rel"]) for measure in measures if "rel" in measure.params), 1)
    rows = sample.rows[sample.guessed[sample.rows] >= 0]
    if not len(rows):
        return None
    people = _relevant(judgements.table, sample.labelled[rows], relevant)
    judge = _relevant(sample.guess, sample.guessed[rows], relevant)
    weight = 1 / sample.probability[rows]
    pairs = split_pairs(sample.documents.gather(rows).to_frame("doc_id"))
    depth = max((int(measure.params["cutoff"]) for measure in measures if "cutoff" in measure.params), default=None)
    strata = judge_strata(judge.astype(float) - people, weight, _strata(pairs, runs, depth, groups))
    return JudgeCheck(relevant, *agreement(judge, people, weight), strata)


def _strata(
    pairs: pl.DataFrame, runs: Sequence[Run], depth: int | None, groups: GroupTable | None
) -> Iterator[Stratum]:
    """Strata of ``pairs`` [n]: what tells pairs apart, the name of some of them, and which [n] these are.

    ``depth``: how far down the measures look.
    """
    ids = ["query_id", "doc_id"]
    ranks = {run.name: pairs.join(run.table, on=ids, how="left", maintain_order="left")["rank"] for run in runs}
    if depth is not None:
        ranks = {name: rank.set(rank > depth, None) for name, rank in ranks.items()}
    best = pl.DataFrame(ranks).min_horizontal()
    middle = _median(best)
    yield "rank", f"ranks 1 to {middle}", (best <= middle).fill_null(False).to_numpy()
    yield from (("ranker", name, rank.is_not_null().to_numpy()) for name, rank in ranks.items())
    if groups is None or groups.sample is not None:
        return
    known = pairs.join(groups.table, on="doc_id", how="left", maintain_order="left")
    if "tokens" in known.columns:
        middle = _median(known["tokens"])
        yield "length", f"more than {middle} words", (known["tokens"] > middle).fill_null(False).to_numpy()
    for group in groups.groups:
        yield "group", group, (known[f"count_{group}"] > 0).fill_null(False).to_numpy()


def _median(numbers: pl.Series) -> int:
    """The median of those that are known, as a whole number; 0 without any."""
    known = numbers.drop_nulls().to_numpy()
    return int(np.median(known)) if len(known) else 0


def judge_strata(excess: Array, weight: Array, strata: Iterable[Stratum]) -> tuple[JudgeStratum, ...]:
    """Whether the mean excess [k] differs between the judgements of a stratum and the others, for each of ``strata``.

    With weights 1/π: the tests are those of two groups of the values x̄ + w(x − x̄)/w̄, whose mean is the weighted one
    and whose variance is that of a ratio of two sums. A stratum of all the judgements, or of none, is left out.
    """
    named, tests = [], []
    for by, name, inside in strata:
        if not 0 < inside.sum() < len(excess):
            continue
        values, means = np.full((2, len(excess)), np.nan), []
        for row, own in zip(values, (inside, ~inside), strict=True):
            means.append(float(np.average(excess[own], weights=weight[own])))
            row[own] = means[-1] + weight[own] / weight[own].mean() * (excess[own] - means[-1])
        named.append((by, name, means[0]))
        tests.append(compare_groups(*values, unit="judgements"))
    return tuple(JudgeStratum(*of, test) for of, test in zip(named, corrected(tests), strict=True))


def _relevant(table: GroupTable, rows: Array, least: int) -> Array:
    """Whether the grade of each of the ``rows`` [n] is at least ``least``."""
    grades = [group for group in table.groups if int(group) >= least]
    relevant: Array = np.any([table.table[f"count_{grade}"].to_numpy()[rows] > 0 for grade in grades], axis=0)
    return relevant


def agreement(judge: Array, people: Array, weight: Array) -> tuple[Estimate, Estimate, Estimate]:
    """Excess, agreement and kappa of two binary ratings [k] with weights 1/π, with intervals by the jackknife.

    V = (k − 1)/k · Σ(θ₋ᵢ − θ̄)², with as many degrees of freedom as labels of equal weight would have. Worked example:
    of four alike pairs the judge calls three relevant and people two of these: excess 1/4, agreement 3/4, kappa 1/2.

    >>> ratings = np.array([True, True, True, False]), np.array([True, True, False, False])
    >>> [estimate.mean for estimate in agreement(*ratings, np.ones(4))]
    [0.25, 0.75, 0.5]
    """
    cells = np.stack([judge & people, judge & ~people, ~judge & people, ~judge & ~people], axis=1) * weight[:, None]
    values, k = np.array(_statistics(cells.sum(axis=0))), len(weight)
    without = np.array(_statistics(cells.sum(axis=0) - cells))
    se = np.sqrt((k - 1) / k * ((without - without.mean(axis=1, keepdims=True)) ** 2).sum(axis=1))
    half = t_quantile(max(2.0, float(weight.sum() ** 2 / (weight**2).sum()) - 1), 0.975) * se
    excess, agree, kappa = (
        Estimate(value, (value - width, value + width) if width > 0 else None, k, "judgements")
        for value, width in zip(values.tolist(), half.tolist(), strict=True)
    )
    return excess, agree, kappa


def _statistics(cells: Array) -> tuple[Array, Array, Array]:
    """Excess, agreement and kappa from weights [..., 4]: both relevant, the judge alone, people alone, neither."""
    both, judge, people, neither = np.moveaxis(cells / cells.sum(axis=-1, keepdims=True), -1, 0)
    agree = both + neither
    chance = (both + judge) * (both + people) + (neither + judge) * (neither + people)
    kappa = np.divide(agree - chance, 1 - chance, out=np.zeros_like(agree), where=chance < 1)
    return judge - people, agree, kappa
