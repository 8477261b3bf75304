"""Judgements of pairs (query, document) that were drawn, and the check of a judge's grades by them.

A judgement is a label of a pair. With every pair as a document of its own, and its grade as its group, what estimates
groups from drawn labels estimates effectiveness: the difference estimator of :mod:`evenrank.stats.sampling`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.files import EvenrankError, Run, arg, as_qrels
from evenrank.files.convert import frame_of, is_path
from evenrank.files.outputs import ids_from_spreadsheets
from evenrank.files.tables import Columns, IdIndex, read_columns
from evenrank.files.types import Array
from evenrank.groups import GroupTable, as_labels
from evenrank.groups.labels import PROBABILITY, SampleCard
from evenrank.stats.estimate import Estimate, t_quantile

GRADE = "grade"
"""The column of a sample of pairs that is filled in."""
_BETWEEN = "\t"
"""Between the ids of a pair: no file of runs has it in an id."""
_GRADES = ("0", "1")


def pair_ids(query: pl.Series, document: pl.Series) -> pl.Series:
    """The ids of pairs [n], as the column ``doc_id``."""
    return (query + _BETWEEN + document).alias("doc_id")


def split_pairs(table: pl.DataFrame) -> pl.DataFrame:
    """A table with ``query_id`` and ``doc_id`` in place of pairs' ids."""
    parts = pl.col("doc_id").str.splitn(_BETWEEN, 2)
    query, document = parts.struct.field("field_0"), parts.struct.field("field_1")
    return table.with_columns(query.alias("query_id"), document.alias("doc_id"))


def as_pairs(run: Run) -> Run:
    """The run with pairs as its documents."""
    ids = pair_ids(run.table["query_id"], run.table["doc_id"])
    return replace(run, table=run.table.with_columns(ids))


@dataclass(frozen=True, slots=True)
class DrawnJudgements:
    """Judgements that were drawn: a group table of pairs whose groups are grades, and the measures they were drawn for.

    ``judge``: whether a judge's grades of all pairs are its guess.
    """

    table: GroupTable
    measures: tuple[str, ...]
    judge: bool = False

    @classmethod
    def read(cls, qrels: object, judge: object, runs: Sequence[Run] = ()) -> DrawnJudgements | None:
        """Those of a file or frame with a column ``probability``; None for judgements that were not drawn.

        ``judge``: a judge's grades, as qrels; ``runs``: of a sample without its card, every pair of theirs could have
        been drawn, on trust. Raises EvenrankError for grades that are no whole numbers, and for a
        judge who grades none of the pairs that could be drawn.
        """
        columns = _sample(qrels)
        if columns is None:
            return None
        card = None if columns.path is None else SampleCard.beside(columns.path)
        ids = [as_pairs(run).table["doc_id"] for run in runs] if card is None else None
        table = as_labels(_of_pairs(columns), ids, group_column=GRADE, card=card, more=_GRADES, what=arg.qrels)
        measures = () if card is None else card.measures
        if judge is None or table.sample is None:
            return cls(table, measures)
        graded = as_qrels(judge, arg.judge)
        guess = as_labels(
            graded.select(
                pair_ids(graded["query_id"], graded["doc_id"]), pl.col("relevance").cast(pl.String).alias(GRADE)
            ),
            group_column=GRADE,
            more=_GRADES,
            what=arg.judge,
        )
        rows = IdIndex([guess.table["doc_id"]]).places(table.sample.documents)
        if not (rows >= 0).any():
            raise EvenrankError(f"{arg.judge}: it grades none of the pairs that could be drawn")
        return cls(replace(table, sample=replace(table.sample, guess=guess, guessed=rows)), measures, judge=True)

    @property
    def drawn(self) -> int:
        """Number of judgements."""
        return self.table.table.height if self.table.sample is None else len(self.table.sample.rows)

    @property
    def pairs(self) -> int:
        """Number of pairs that could be drawn."""
        return self.table.table.height if self.table.sample is None else len(self.table.sample.documents)


def _sample(qrels: object) -> Columns | None:
    """The table of a sample of pairs; None for other judgements."""
    if is_path(qrels):
        if not (os.path.isfile(qrels) and os.fspath(qrels).endswith(".csv")):
            return None
        columns = read_columns(qrels)
    else:
        frame = frame_of(qrels, arg.qrels)
        if frame is None:
            return None
        columns = Columns(frame, what=arg.qrels)
    return columns if {PROBABILITY, GRADE, "query_id", "doc_id"} <= {*columns.table.columns} else None


def _of_pairs(columns: Columns) -> Columns:
    """A sample of pairs as one of documents, with grades as texts."""
    table = columns.table
    given = table[GRADE].cast(pl.String).str.strip_chars()
    given = given.set(given == "", None)
    number = given.cast(pl.Float64, strict=False)
    bad = given.is_not_null() & (number.is_null() | (number != number.round()))
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise columns.error(f"expected a whole number in the column {GRADE}, found {given[row]}", row)
    ids = (ids_from_spreadsheets(table[name].cast(pl.String)) for name in ("query_id", "doc_id"))
    grades = number.cast(pl.Int64).cast(pl.String).alias(GRADE)
    return replace(columns, table=pl.DataFrame([pair_ids(*ids), grades, table[PROBABILITY]]))


# --- the judge against people ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """A judge's grades against people's, of the pairs that could be drawn, estimated from those that were.

    Attributes:
        relevant_from: The least grade that is relevant.
        excess: The share of pairs that the judge calls relevant, less the share that people do.
        agree: The share of pairs of which both say the same.
        kappa: Cohen's kappa, agreement beyond chance.
    """

    relevant_from: int
    excess: Estimate
    agree: Estimate
    kappa: Estimate


def check_judge(judgements: DrawnJudgements, measures: Sequence[Measure]) -> JudgeCheck | None:
    """What the drawn judgements say of the judge; None without one."""
    sample = judgements.table.sample
    if sample is None or sample.guess is None or sample.guessed is None:
        return None
    relevant = next((int(one.params["rel"]) for one in measures if "rel" in one.params), 1)
    rows = sample.rows[sample.guessed[sample.rows] >= 0]
    people = _relevant(judgements.table, sample.labelled[rows], relevant)
    judge = _relevant(sample.guess, sample.guessed[rows], relevant)
    return JudgeCheck(relevant, *agreement(judge, people, 1 / sample.probability[rows]))


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
    >>> [one.mean for one in agreement(*ratings, np.ones(4))]
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
