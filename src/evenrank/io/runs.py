"""TREC runs: the one unit of ranking."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from .errors import EvenrankError, InputError, shown
from .files import atomic_path, line_blocks
from .tables import Layout, first_repeat, parse_block

Order = Literal["score", "file"]

_LAYOUT = Layout(
    "a TREC run",
    {"query_id": pl.String, "_Q0": pl.String, "doc_id": pl.String, "rank": pl.String, "score": pl.Float64, "_tag": pl.String},
)
_COLUMNS = ["query_id", "doc_id", "score"]


@dataclass(frozen=True, slots=True)
class Run:
    """A ranking of documents for each of a set of queries.

    ``table`` has one row per ranked document: ``query_id`` and ``doc_id`` (text), ``score`` (float), ``rank`` (from 1).
    The rows of a query stand together, in rank order; queries stand in the order in which the source names them.
    """

    name: str
    table: pl.DataFrame
    notes: tuple[str, ...] = field(default=())

    @property
    def queries(self) -> pl.Series:
        """The query ids, one each, in the run's order."""
        return self.table["query_id"].filter(self.table["rank"] == 1)

    @classmethod
    def from_table(
        cls, table: pl.DataFrame, name: str = "run", *, order: Order = "score", notes: tuple[str, ...] = ()
    ) -> Run:
        """A run from a table with ``query_id``, ``doc_id`` and ``score``, in any row order.

        ``order="score"`` ranks by falling score, ties by falling document id, as trec_eval does;
        ``order="file"`` ranks by row order and sets the score to minus the position.
        Raises EvenrankError for a missing column, a repeated document or a score that is not finite.
        """
        missing = [column for column in _COLUMNS if column not in table.columns]
        if missing:
            raise EvenrankError(f"run {name}: the table has no column {', '.join(missing)}")
        table = table.select(
            pl.col("query_id", "doc_id").cast(pl.String), pl.col("score").cast(pl.Float64)
        )
        if not table.height:
            raise EvenrankError(f"run {name}: the run is empty")
        if any(table.null_count().row(0)) or not table["score"].is_finite().all():
            raise EvenrankError(f"run {name}: an id is missing or a score is not a finite number")
        repeat = first_repeat(table, ["query_id", "doc_id"])
        if repeat is not None:
            query, doc, _ = table.row(repeat[1])
            raise EvenrankError(f"run {name}: the document {shown(doc)} stands twice for the query {shown(query)}")
        return cls(name, _ranked(table, order), notes)


def read_run(path: str | os.PathLike[str], name: str | None = None, *, order: Order = "score") -> Run:
    """Reads a TREC run (space or tab separated, plain or gzip) into a ranked table.

    Raises InputError, with the line, for a line that has not six fields, a score that is not a finite number, and a
    document that stands twice for a query.
    """
    table = pl.concat([parse_block(path, block, _LAYOUT) for block in line_blocks(path)])
    if not table.height:
        raise InputError(path, "the file has no line")
    repeat = first_repeat(table, ["query_id", "doc_id"])
    if repeat is not None:
        earlier, again = (table.row(row, named=True) for row in repeat)
        raise InputError(
            path,
            f"the document {shown(again['doc_id'])} stands twice for the query {shown(again['query_id'])}"
            f" (first in line {earlier['line']})",
            line=again["line"],
        )
    name = os.path.basename(os.fspath(path)) if name is None else name
    notes: tuple[str, ...] = ()
    contradictions = _rank_contradictions(table)
    if contradictions:
        used = "scores" if order == "score" else "order of the file"
        notes = (f"{name}: the rank column contradicts the scores of {contradictions} rows; the {used} decided",)
    return Run(name, _ranked(table.select(_COLUMNS), order), notes)


def write_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Writes a run in TREC form, whole or not at all. Scores keep their full precision."""
    table = run.table.select(
        "query_id", pl.lit("Q0").alias("Q0"), "doc_id", "rank", "score", pl.lit(run.name.replace(" ", "_")).alias("tag")
    )
    with atomic_path(path) as part:
        table.write_csv(part, include_header=False, separator=" ", quote_style="never")


def _ranked(table: pl.DataFrame, order: Order) -> pl.DataFrame:
    """``table`` with the rows of each query together and in order, and a ``rank`` column."""
    query = pl.col("query_id")
    # Queries keep the order of their first row, so a file in order is never sorted.
    table = table.with_columns(_query_number(table).alias("number"))
    if order == "score":
        same = pl.col("number") == pl.col("number").shift(1)
        score, doc = pl.col("score"), pl.col("doc_id")
        ordered = table.select(
            (
                (pl.col("number") >= pl.col("number").shift(1))
                & (~same | (score < score.shift(1)) | ((score == score.shift(1)) & (doc < doc.shift(1))))
            )
            .fill_null(True)
            .all()
        ).item()
        if not ordered:
            table = table.sort(["number", "score", "doc_id"], descending=[False, True, True])
    elif not table["number"].is_sorted():
        table = table.sort("number", maintain_order=True)
    starts = pl.col("number") != pl.col("number").shift(1, fill_value=-1)
    row = pl.int_range(pl.len(), dtype=pl.Int64)
    rank = (row - pl.when(starts).then(row).forward_fill() + 1).cast(pl.UInt32).alias("rank")
    score = pl.col("score") if order == "score" else (-rank.cast(pl.Float64)).alias("score")
    return table.select(query, pl.col("doc_id"), score, rank)


def _query_number(table: pl.DataFrame) -> pl.Series:
    """The number of each row's query, counted from 0 in order of first appearance."""
    changes = table.select((pl.col("query_id") != pl.col("query_id").shift(1)).fill_null(True))["query_id"]
    spells = table["query_id"].filter(changes)
    spell = changes.cast(pl.Int64).cum_sum() - 1
    if spells.n_unique() == len(spells):
        return spell
    first = spells.to_frame("query_id").with_columns(
        pl.int_range(pl.len(), dtype=pl.Int64).min().over("query_id").alias("number")
    )
    return first["number"].gather(spell)


def _rank_contradictions(table: pl.DataFrame) -> int:
    """Rows whose rank is larger than the row before although their score is larger too (same query), or the reverse."""
    rank = pl.col("rank").cast(pl.Int64, strict=False)
    same = pl.col("query_id") == pl.col("query_id").shift(1)
    by_rank, by_score = rank - rank.shift(1), pl.col("score") - pl.col("score").shift(1)
    wrong = same & (((by_rank > 0) & (by_score > 0)) | ((by_rank < 0) & (by_score < 0)))
    return int(table.select(wrong.sum()).item() or 0)
