"""Interpolation of runs, with weights tuned for a measure.

score = Σ_r w_r · scaled score of run r, the weights summing to 1 [Gerritse & de Vries]; for two runs
λ · first + (1 − λ) · second. Coordinate ascent: Metzler and Croft 2007, "Linear feature-based models for information
retrieval".
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import numpy as np
import polars as pl
from ir_measures import Measure
from numpy.typing import NDArray

from evenrank import options as opt
from evenrank.files import EvenrankError, Run, arg, as_qrels, as_runs
from evenrank.files.arguments import checked
from evenrank.files.json_values import LEFT_OUT, named
from evenrank.measures import Evaluation, is_bias, parse_measure
from evenrank.results.finding import phrases
from evenrank.results.page import Page
from evenrank.results.result import Result
from evenrank.results.table import Column, Table, digits

Array = NDArray[np.float64]
Weights = tuple[float, ...]
_STEPS = 100
"""Weights are hundredths."""
_COARSE, _FINE = 10, 5
"""Hundredths between the values that a line search tries first, and how far around the best it then tries all."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The documents of several runs with their scores in each.

    ``table``: ``query_id``, ``doc_id``, those of the first run first. ``scaled`` [rows, runs]: each run's scores,
    scaled to 0 … 1 over its list of the query; 0 where the run lacks the document, 0.5 where all of a list's scores are
    equal.
    """

    table: pl.DataFrame
    scaled: Array
    names: tuple[str, ...]

    @classmethod
    def of(cls, runs: object) -> Candidates:
        """Of ``runs`` as :func:`interpolate` takes them. Raises EvenrankError for fewer than two."""
        runs = as_runs(runs)
        names = tuple(run.name for run in runs)
        if len(runs) < 2:
            raise EvenrankError(f"fusion: expected two runs or more, found {len(runs)}")
        tables = [min_max(run).rename({"scaled": f"{i}"}) for i, run in enumerate(runs)]
        keys = ["query_id", "doc_id"]
        pairs = pl.concat([table.select(keys) for table in tables]).unique(keys, maintain_order=True)
        for table in tables:
            pairs = pairs.join(table, on=keys, how="left", maintain_order="left")
        scaled = pairs.select(pl.col(f"{i}").fill_null(0.0) for i in range(len(runs))).to_numpy()
        return cls(pairs.select(keys), np.ascontiguousarray(scaled), names)

    def fused(self, weights: Sequence[float] | Array, name: str = "fused") -> Run:
        """The run of weighted sums. ``weights`` [runs], or [rows, runs] for weights per query."""
        score = (self.scaled * np.asarray(weights, dtype=np.float64)).sum(axis=1)
        return Run.from_table(self.table.with_columns(pl.Series("score", score)), name)


def min_max(run: Run) -> pl.DataFrame:
    """``query_id``, ``doc_id``, ``scaled``: (score − min) / (max − min) over the query's list; a constant list: 0.5."""
    score = pl.col("score")
    low, high = score.min().over("query_id"), score.max().over("query_id")
    # Halved first, so that no difference of two finite scores is infinite.
    scaled = pl.when(high > low).then((score / 2 - low / 2) / (high / 2 - low / 2)).otherwise(0.5)
    return run.table.select("query_id", "doc_id", scaled.alias("scaled"))


@checked
def interpolate(runs: Mapping[str, object] | Sequence[object], *, weights: Sequence[float], name: str = "fused") -> Run:
    """Fuses runs with ``weights`` [runs], which are scaled to sum to 1.

    ``runs``: by name or as a list, each a path, a :class:`Run`, a dict, a frame or records.

    Raises EvenrankError for weights that are negative, not finite or all 0, or if their number is not that of the runs.
    """
    check_weights(weights, len(runs))
    # Divided by the largest first, because a sum of large weights can be infinite.
    shares = [weight / max(weights) for weight in weights]
    return Candidates.of(runs).fused([share / sum(shares) for share in shares], name)


def check_weights(weights: Sequence[float], runs: int) -> None:
    """Raises EvenrankError as :func:`interpolate` does; ``runs``: their number."""
    if len(weights) != runs:
        raise EvenrankError(f"{arg.weights}: expected one for each of the {runs} runs, found {len(weights)}")
    if not all(math.isfinite(weight) and weight >= 0 for weight in weights) or not any(weights):
        raise EvenrankError(f"{arg.weights}: expected numbers from 0, not all 0, found {', '.join(map(str, weights))}")


@dataclass(frozen=True, slots=True)
class Fold:
    """A fold: the best ``weights`` [runs] on the other folds, with the measure there and on this fold."""

    weights: Weights
    queries: int
    train: float
    test: float


@dataclass(frozen=True, slots=True, repr=False)
class Tuned(Result):
    """A cross-validated fusion: each query is ranked with the weights chosen on the other folds.

    ``value``: the measure's mean over all judged queries; ``alone`` [runs]: that of each run on its own.
    """

    also: ClassVar = ("weights",)
    run: Run = field(metadata=LEFT_OUT)
    names: tuple[str, ...] = field(metadata=named("runs"))
    measure: str
    folds: tuple[Fold, ...]
    value: float
    alone: tuple[float, ...]

    @property
    def mean(self) -> Weights:
        """Mean weights over the folds [runs]."""
        return tuple(np.mean([fold.weights for fold in self.folds], axis=0).tolist())

    @property
    def deviation(self) -> Weights:
        """Their standard deviation over the folds (n − 1) [runs]."""
        return tuple(np.std([fold.weights for fold in self.folds], axis=0, ddof=1).tolist())

    @property
    def weights(self) -> dict[str, Weights]:
        """Both."""
        return {"mean": self.mean, "deviation": self.deviation}

    def page(self) -> Page:
        """The weights as a page."""
        columns = (Column("run"), Column("alone", digits(4)), Column("weight", digits(3)), Column("sd", digits(3)))
        rows = list(zip(self.names, self.alone, self.mean, self.deviation, strict=True))
        notes = ("Alone: the measure of the run on its own. Weight, sd: mean and standard deviation over the folds.",)
        facts = (("folds", f"{len(self.folds)}"), (f"mean {self.measure}", f"{self.value:.4f}"))
        values = {"measure": self.measure, "value": self.value, "best": max(self.alone)}
        finding = phrases("fuse").finding("tuned", self.measure, "shown", None, "answer", **values)
        return Page(
            "fuse",
            "Fused runs",
            (finding,),
            Table("Weights", columns, rows),
            facts=facts,
            source="Weights by cross-validation",
            notes=notes,
            provenance=self.provenance,
        )


class _Objective:
    """A measure of each judged query as a function of the weights in hundredths, cached by point."""

    def __init__(self, candidates: Candidates, qrels: pl.DataFrame, measure: Measure) -> None:
        if len(candidates.names) == 2 and isinstance(cutoff := measure.params.get("cutoff"), int):
            candidates = reachable(candidates, cutoff)
        self.candidates, self.qrels, self.measure = candidates, qrels, measure
        self.judged = Evaluation(candidates.fused(np.ones(len(candidates.names))), qrels=qrels).judged.sort()
        self._values: dict[tuple[int, ...], Array] = {}

    def values(self, point: tuple[int, ...]) -> Array:
        """[judged queries], in their sorted order."""
        if point not in self._values:
            evaluation = Evaluation(self.candidates.fused(np.array(point) / _STEPS), qrels=self.qrels)
            order = evaluation.queries_of(self.measure).arg_sort().to_numpy()
            self._values[point] = evaluation.values(self.measure)[order]
        return self._values[point]

    def mean(self, point: tuple[int, ...], chosen: NDArray[np.bool_]) -> float:
        """The mean over the chosen queries; undefined values are left out."""
        values = self.values(point)[chosen]
        values = values[~np.isnan(values)]
        return float(values.mean()) if len(values) else -math.inf


def reachable(candidates: Candidates, depth: int) -> Candidates:
    """The candidates of two runs that some weights put among the first ``depth`` of their query.

    Where ``depth`` others score at least as high in both runs, and not the same in both, no weights do, except by the
    order of ties where one run alone counts. A tenth of the documents or fewer are left.
    """
    first, second = candidates.scaled.T
    query = candidates.table["query_id"].rank("dense").to_numpy()
    keep = np.zeros(len(query), dtype=bool)
    best: list[float] = []
    bar, previous = -math.inf, (-1, math.nan, math.nan)
    order = np.lexsort((-second, -first, query))
    rows = zip(query[order].tolist(), first[order].tolist(), second[order].tolist(), strict=True)
    for row, current in zip(order.tolist(), rows, strict=True):
        if current[0] != previous[0]:
            best = []
        if current != previous:
            bar = best[0] if len(best) == depth else -math.inf
        previous, score = current, current[2]
        keep[row] = score > bar
        if len(best) < depth:
            heapq.heappush(best, score)
        elif score > best[0]:
            heapq.heapreplace(best, score)
    ends = [candidates.fused(weights).table.filter(pl.col("rank") <= depth) for weights in ((1.0, 0.0), (0.0, 1.0))]
    alone = pl.concat(ends).select("query_id", "doc_id", pl.lit(True).alias("kept")).unique()
    joined = candidates.table.join(alone, on=["query_id", "doc_id"], how="left", maintain_order="left")
    keep |= joined["kept"].fill_null(False).to_numpy()
    return Candidates(candidates.table.filter(keep), candidates.scaled[keep], candidates.names)


@checked
def tune(
    runs: Mapping[str, object] | Sequence[object],
    *,
    qrels: object,
    measure: str = "nDCG@10",
    folds: Annotated[
        int,
        opt.Option(
            "Folds of the cross-validation.", needs=("measure",), range=opt.Range(2), panel="Statistics", rare=True
        ),
    ] = 5,
    restarts: Annotated[
        int,
        opt.Option(
            "Random starts of the coordinate ascent (three or more runs).",
            needs=("measure",),
            range=opt.Range(0, 10_000),
            panel="Statistics",
            rare=True,
        ),
    ] = 5,
    seed: Annotated[
        int,
        opt.Option(
            "Seed of the folds and the random starts.",
            needs=("measure",),
            range=opt.SEED,
            panel="Statistics",
            rare=True,
        ),
    ] = 0,
    name: str = "fused",
) -> Tuned:
    """Fuses runs with weights chosen by k-fold cross-validation over the queries.

    Two runs: the best of λ = 0, 0.01, … 1, the larger of equal ones. More: coordinate ascent over hundredths from equal
    weights, from each run alone and from ``restarts`` random starts. ``measure``: an effectiveness measure in the
    notation of ir_measures. A query's fold depends on the seed and the sorted query ids; queries without judgements are
    ranked too, but do not count. Raises EvenrankError for fewer than two folds, more folds than judged queries, and a
    measure of bias (which a random ranking would win).
    """
    parsed = parse_measure(measure, arg.measure)
    if is_bias(parsed):
        raise EvenrankError(f"{arg.measure}: expected one of effectiveness, found {measure}")
    candidates = Candidates.of(runs)
    objective = _Objective(candidates, as_qrels(qrels), parsed)
    judged = objective.judged
    if folds > len(judged):
        raise EvenrankError(f"{arg.folds}: expected 2 to {len(judged)}, the number of judged queries, found {folds}")
    rng = np.random.default_rng([seed, folds])
    fold_of_judged = rng.permutation(np.arange(len(judged)) % folds)
    others = candidates.table["query_id"].unique().sort()
    others = others.filter(~others.is_in(judged.implode()))
    fold_of_others = rng.permutation(np.arange(len(others)) % folds)
    starts = _starts(len(runs), restarts, rng)
    results, points = [], []
    for fold in range(folds):
        train, test = fold_of_judged != fold, fold_of_judged == fold
        point = _best(objective, train, starts)
        points.append(point)
        weights = tuple(part / _STEPS for part in point)
        results.append(Fold(weights, int(test.sum()), objective.mean(point, train), objective.mean(point, test)))
    number = pl.DataFrame(
        {"query_id": pl.concat([judged, others]), "fold": np.concatenate([fold_of_judged, fold_of_others])}
    )
    fold_of_row = candidates.table.join(number, on="query_id", how="left", maintain_order="left")["fold"].to_numpy()
    run = candidates.fused((np.array(points) / _STEPS)[fold_of_row], name)
    every = np.stack([objective.values(point) for point in points])[fold_of_judged, np.arange(len(judged))]
    alone = _alone(len(runs))
    all_judged = np.ones(len(judged), dtype=bool)
    return Tuned(
        run,
        candidates.names,
        str(parsed),
        tuple(results),
        float(np.nanmean(every)),
        tuple(objective.mean(point, all_judged) for point in alone),
    )


def _starts(runs: int, restarts: int, rng: np.random.Generator) -> list[tuple[int, ...]]:
    equal = _hundredths(np.ones(runs))
    drawn = [_hundredths(weights) for weights in rng.dirichlet(np.ones(runs), restarts)]
    return [equal, *_alone(runs), *drawn]


def _alone(runs: int) -> list[tuple[int, ...]]:
    """The points where one run has all the weight."""
    return [tuple(_STEPS * (i == j) for j in range(runs)) for i in range(runs)]


def _hundredths(weights: Array, total: int = _STEPS) -> tuple[int, ...]:
    """Whole hundredths that sum to ``total``, by largest remainder."""
    exact = weights / weights.sum() * total
    hundredths = np.floor(exact + 1e-9).astype(int)
    for i in np.argsort(-(exact - hundredths), kind="stable")[: total - hundredths.sum()]:
        hundredths[i] += 1
    return tuple(hundredths.tolist())


def _best(objective: _Objective, train: NDArray[np.bool_], starts: list[tuple[int, ...]]) -> tuple[int, ...]:
    if len(starts[0]) == 2:
        grid = [(part, _STEPS - part) for part in range(_STEPS, -1, -1)]
        return max(grid, key=lambda point: objective.mean(point, train))
    ends = [_ascend(objective, train, start) for start in starts]
    return max(ends, key=lambda point: objective.mean(point, train))


def _ascend(objective: _Objective, train: NDArray[np.bool_], point: tuple[int, ...]) -> tuple[int, ...]:
    """Moves one weight at a time, with the others in proportion, until the measure no longer rises."""
    best, improved = objective.mean(point, train), True
    while improved:
        improved = False
        for i in range(len(point)):
            for spread in (range(0, _STEPS + 1, _COARSE), None):
                values = spread if spread is not None else range(point[i] - _FINE, point[i] + _FINE + 1)
                for part in values:
                    moved = _moved(point, i, part)
                    value = objective.mean(moved, train)
                    if value > best + 1e-12:
                        point, best, improved = moved, value, True
    return point


def _moved(point: tuple[int, ...], i: int, part: int) -> tuple[int, ...]:
    part = min(max(part, 0), _STEPS)
    rest = np.array([0.0 if j == i else value for j, value in enumerate(point)])
    if not rest.sum():
        rest = np.array([float(j != i) for j in range(len(point))])
    shared = _hundredths(rest, _STEPS - part)
    return (*shared[:i], part, *shared[i + 1 :])
