"""Judgements of pairs (query, document) that were drawn.

A judgement is a label of a pair. With every pair as a document of its own, and its grade as its group, what estimates
groups from drawn labels estimates effectiveness: the difference estimator of :mod:`evenrank.stats.sampling`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from evenrank.files import EvenrankError, Run, arg, as_qrels
from evenrank.files.convert import columns_of, is_path
from evenrank.files.outputs import ids_from_spreadsheets
from evenrank.files.tables import Columns, IdIndex
from evenrank.groups import GroupTable, as_labels
from evenrank.groups.labels import PROBABILITY, SampleCard

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
    if is_path(qrels) and not (os.path.isfile(qrels) and os.fspath(qrels).endswith(".csv")):
        return None
    columns = columns_of(qrels, arg.qrels)
    if columns is None or not {PROBABILITY, GRADE, "query_id", "doc_id"} <= {*columns.table.columns}:
        return None
    return columns


def _of_pairs(columns: Columns) -> Columns:
    """A sample of pairs as one of documents, with grades as texts."""
    table = columns.table
    texts = table[GRADE].cast(pl.String).str.strip_chars()
    texts = texts.set(texts == "", None)
    number = texts.cast(pl.Float64, strict=False)
    bad = texts.is_not_null() & (number.is_null() | (number != number.round()))
    if bad.any():
        row = int(bad.arg_max() or 0)
        raise columns.error(f"expected a whole number in the column {GRADE}, found {texts[row]}", row)
    ids = (ids_from_spreadsheets(table[name].cast(pl.String)) for name in ("query_id", "doc_id"))
    grades = number.cast(pl.Int64).cast(pl.String).alias(GRADE)
    return replace(columns, table=pl.DataFrame([pair_ids(*ids), grades, table[PROBABILITY]]))
