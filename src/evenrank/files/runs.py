"""Runs and relevance judgements."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import polars as pl

from evenrank._command import redacted_address

from . import irds
from .arguments import checked
from .convert import QRELS_COLUMNS, RUN_COLUMNS, Frame, PathLike, TextsLike, qrels_table, run_table
from .errors import EvenrankError, InputError, arg, quoted, readable, shown
from .json_values import json_text
from .outputs import atomic_path
from .provenance import read_card
from .reading import files_of
from .tables import Layout, first_repeat, lines_or_columns

if TYPE_CHECKING:
    import pandas

Order = Literal["score", "file"]

RUN_LAYOUT = Layout(
    "a TREC run",
    {
        "query_id": pl.String,
        "_Q0": pl.String,
        "doc_id": pl.String,
        "rank": pl.Int32,
        "score": pl.Float64,
        "_tag": pl.String,
    },
    lenient=("rank",),
)
_COLUMNS = ["query_id", "doc_id", "score"]


@checked
@dataclass(frozen=True, slots=True)
class Run:
    """Ranked documents for a set of queries.

    ``table`` has one row per ranked document: ``query_id`` and ``doc_id`` (text), ``score`` (float), ``rank`` (from 1).
    The rows of a query are contiguous and in rank order; queries are in the order of the source.
    """

    name: str
    table: pl.DataFrame
    notes: tuple[str, ...] = field(default=())
    source: str | None = field(default=None)
    """The file that the run was read from, for messages."""
    card: Mapping[str, object] | None = field(default=None, repr=False)
    """What made the run, as JSON values: see :mod:`evenrank.files.provenance`; None if it is not known."""

    @property
    def described(self) -> str:
        """The run for a message: its name, and its file if that has a different name."""
        return f"run {self.name}" if self.source in (None, self.name) else f"run {self.name} ({self.source})"

    @property
    def queries(self) -> pl.Series:
        """The distinct query ids, in the run's order."""
        return self.table["query_id"].filter(self.table["rank"] == 1)

    def to_dict(self) -> dict[str, dict[str, float]]:
        """The scores as ``{query: {document: score}}``, in rank order."""
        scores: dict[str, dict[str, float]] = {}
        for query, document, score in self.table.select(_COLUMNS).iter_rows():
            scores.setdefault(query, {})[document] = score
        return scores

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas frame. Raises EvenrankError if pandas is not installed."""
        if importlib.util.find_spec("pandas") is None:
            raise EvenrankError("to_pandas needs pandas, which is not installed: pip install pandas")
        return self.table.to_pandas()

    @classmethod
    def from_table(
        cls, table: object, name: str = "run", *, order: Order = "score", notes: tuple[str, ...] = ()
    ) -> Run:
        """A run from any form of :data:`evenrank.files.RunLike` but a path; rows can be in any order.

        ``order="score"`` ranks by descending score, ties by descending document id, as trec_eval does;
        ``order="file"`` ranks by row order and sets each score to minus the rank.
        Raises EvenrankError for a missing column, a repeated document or a score that is not finite.
        """
        return cls._of(table, name, order, f"run {name}", notes)

    @classmethod
    def _of(cls, given: object, name: str, order: Order, what: str, notes: tuple[str, ...] = ()) -> Run:
        table, table_notes = run_table(given, what)
        notes += tuple(f"{name}: {note}" for note in table_notes)
        return cls(name, _ranked(table, order), notes)


RunLike = PathLike | Run | Frame | Mapping[str, Mapping[str, float] | Sequence[str]] | Iterable[object]
"""A run: a file, a :class:`Run`, a frame with ``query_id``, ``doc_id`` and ``score`` (or PyTerrier's names), ``{query:
{document: score}}``, ``{query: documents, best first}`` or records such as ``ir_measures.ScoredDoc``."""
RunsLike = RunLike | Mapping[str, RunLike] | Iterable[RunLike]
"""Runs: one, several by name, or a list of paths and of Runs."""


def as_run(given: object, name: str | None = None, *, order: Order = "score", what: str | None = None) -> Run:
    """A run from any of its forms (:data:`RunLike`), renamed if ``name`` is given.

    Raises EvenrankError, starting with ``what``, for anything else; InputError for a file that is not a run.
    """
    if isinstance(given, Run):
        return given if name is None else replace(given, name=name)
    if isinstance(given, str | os.PathLike):
        return read_run(given, name=name, order=order)
    return Run._of(given, name or "run", order, what or arg.run)


def as_runs(given: object) -> list[Run]:
    """Several runs, as a mapping by name or an iterable, each as :func:`as_run` accepts it."""
    if isinstance(given, Mapping):
        return [as_run(run, name, what=f"run {name}") for name, run in given.items()]
    if not isinstance(given, Iterable):
        raise EvenrankError(f"{arg.runs}: expected runs by name or in a list, found {shown(given)}")
    named = (Run, str, os.PathLike)
    return [
        as_run(run, None if isinstance(run, named) else f"run {number}", what=f"{arg.runs}, number {number}")
        for number, run in enumerate(given, 1)
    ]


@checked
def read_run(
    path: str | os.PathLike[str],
    *,
    name: str | None = None,
    order: Order = "score",
    columns: Mapping[str, str] | None = None,
    queries: TextsLike | None = None,
) -> Run:
    """Reads a run into a ranked table, with its card if it has one.

    By content: TREC (separated by spaces or tabs); CSV, TSV, JSONL or Parquet with columns ``query_id``, ``doc_id`` and
    ``score`` (or PyTerrier's, ranx's or Elasticsearch's names); a JSON object ``{query: {document: score}}``; what
    ``_search`` and ``_msearch`` of Elasticsearch and OpenSearch answer; mteb's predictions; all but Parquet plain, gzip
    or zst. Where there are ranks and no scores, the score is minus the rank.

    Args:
        columns: Other names of columns, of ``query``, ``document``, ``score`` and ``rank``.
        queries: The queries that answers without names of queries answer, in this order; else they are numbered.

    Raises InputError, with the line number, for a line without six fields; for a missing column, a score that is not a
    finite number, and a document that appears twice for a query.
    """
    usual = _reading.get(_Reading())
    table, notes = _read(path, order, columns or usual.columns, usual.queries if queries is None else queries)
    name = readable(os.path.basename(redacted_address(os.fspath(path))) if name is None else name)
    card, problem = read_card(path)
    if problem is not None:
        notes += (problem,)
    return Run(name, table, tuple(f"{name}: {note}" for note in notes), os.fspath(path), card)


class _Reading(NamedTuple):
    """How runs are read that say nothing else: see :func:`read_run`."""

    columns: Mapping[str, str] = {}
    queries: TextsLike | None = None


_reading: ContextVar[_Reading] = ContextVar("reading")


@contextmanager
def reading_runs(columns: str | None, queries: TextsLike | None) -> Iterator[None]:
    """In the block, files of runs are read with these names of columns (``query=…,score=…``) and these queries.

    Raises EvenrankError for a name that no column has.
    """
    pairs = dict(pair.split("=", 1) for pair in (columns or "").split(",") if "=" in pair)
    if columns is not None and len(pairs) < columns.count(",") + 1:
        raise EvenrankError(f"{arg.run_columns}: expected query=NAME,document=NAME,score=NAME, found {quoted(columns)}")
    token = _reading.set(_Reading(pairs, queries))
    try:
        yield
    finally:
        _reading.reset(token)


_ROLES = {"query": "query_id", "document": "doc_id", "score": "score", "rank": "rank"}
"""The columns of a run by what :func:`read_run` calls them."""


def _names(columns: Mapping[str, str]) -> Mapping[str, Sequence[str]]:
    """What the columns of a run may be called, those of ``columns`` first."""
    odd = next((role for role in columns if role not in _ROLES), None)
    if odd is not None:
        raise EvenrankError(f"{arg.run_columns}: expected {', '.join(_ROLES)}, found {quoted(odd)}")
    overrides = {_ROLES[role]: (name,) for role, name in columns.items()}
    return {name: (*overrides.get(name, ()), *usual) for name, usual in RUN_COLUMNS.items()}


def _read(
    path: str | os.PathLike[str], order: Order, columns: Mapping[str, str], queries: TextsLike | None
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The ranked table of any file, and what is said of it."""
    names = _names(columns)
    table, other = lines_or_columns(path, RUN_LAYOUT, names)
    if table is None:
        query_ids = None
        if queries is not None and not isinstance(other, pl.DataFrame):
            from .texts import as_queries

            query_ids = as_queries(queries)["query_id"].to_list()
        with _of_file(path):
            table, notes = run_table(other, _FILE, names, query_ids)
        if isinstance(other, pl.DataFrame) and set(other.columns) == _JUDGED and (table["score"] % 1 == 0).all():
            raise InputError(path, f"expected a run, found BEIR's judgements ({', '.join(other.columns)})")
        return _ranked(table, order), notes
    if not table.height:
        raise InputError(path, "the file has no lines")
    repeat = first_repeat(table, ["query_id", "doc_id"])
    if repeat is not None:
        earlier, again = (table.row(row, named=True) for row in repeat)
        raise InputError(
            path,
            f"the document {quoted(again['doc_id'])} appears twice for the query {quoted(again['query_id'])}"
            f" (first in line {earlier['line']})",
            line=again["line"],
        )
    contradictions = _rank_contradictions(table)
    used = "scores" if order == "score" else "order of the file"
    notes = (f"the rank column contradicts the scores of {contradictions} rows; the {used} decided",)
    return _ranked(table, order), notes if contradictions else ()


_JUDGED = {"query-id", "corpus-id", "score"}
"""The columns of BEIR's judgements, whose grades are whole numbers."""


@checked
def write_run(run: object, out: str | os.PathLike[str]) -> None:
    """Writes a run, atomically and with the full precision of its scores: in TREC format, or by the ending of ``out``
    as Parquet, CSV or JSONL with named columns, or as JSON ``{query: {document: score}}``.

    ``run`` is a :class:`Run` or anything else that :func:`as_run` accepts. Raises InputError for an id that is
    empty or contains white space, which TREC's format does not allow, and EvenrankError for what is not a run.
    """
    run = as_run(run)
    table = run.table
    forms: dict[str, Callable[[Path], object]] = {
        ".parquet": table.write_parquet,
        ".csv": table.write_csv,
        ".jsonl": table.write_ndjson,
        ".json": lambda part: part.write_text(json_text(run.to_dict()) + "\n", encoding="utf-8"),
    }
    write = forms.get(os.path.splitext(os.fspath(out))[1])
    if write is not None:
        with atomic_path(out) as part:
            write(part)
        return
    for column in ("query_id", "doc_id"):
        bad = table[column].filter(table[column].str.contains(r"^$|[ \t\r\n]"))
        if len(bad):
            raise InputError(out, f"cannot be written: {quoted(bad[0])} as {column} is empty or contains white space")
    if table["query_id"].head(1).str.starts_with("\ufeff").any():
        # At the beginning of a file it is no part of the id.
        raise InputError(out, f"cannot be written: {quoted(table['query_id'][0])} begins with a byte order mark")
    tag = readable("_".join(run.name.split())) or "run"
    lines = table.select("query_id", pl.lit("Q0").alias("Q0"), "doc_id", "rank", "score", pl.lit(tag).alias("tag"))
    with atomic_path(out) as part, open(part, "wb") as file:
        lines.write_csv(file, include_header=False, separator=" ", quote_style="never")


def _ranked(table: pl.DataFrame, order: Order) -> pl.DataFrame:
    """``table`` with the rows of each query contiguous and in order, and a ``rank`` column."""
    # A query's number is the place of its first row.
    table = table.with_row_index("row").with_columns(number=pl.col("row").min().over("query_id"))
    number, score = pl.col("number"), pl.col("score")
    if order == "file":
        table = table.sort("number", maintain_order=True)
    else:
        # Most runs are in order, and only tied documents have to be compared by their ids.
        behind = (number < number.shift()) | ((number == number.shift()) & (score > score.shift()))
        if table.select(behind.any()).item():
            table = table.sort("number", "score", descending=[False, True])
        as_above = (number == number.shift()) & (score == score.shift())
        tied = table.drop("row").with_row_index("row").filter(as_above | as_above.shift(-1))
        ordered = tied.sort("number", "score", "doc_id", descending=[False, True, True])
        table = table.with_columns(table["doc_id"].clone().scatter(tied["row"], ordered["doc_id"]))
    table = table.with_columns(rank=pl.int_range(1, pl.len() + 1, dtype=pl.UInt32).over("number"))
    if order == "file":
        table = table.with_columns(score=-pl.col("rank").cast(pl.Float64))
    return table.select("query_id", "doc_id", "score", "rank")


_FILE = "this file"


@contextmanager
def _of_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """In the block, errors of what was read from a file name it."""
    try:
        yield
    except EvenrankError as error:
        raise InputError(path, str(error).removeprefix(f"{_FILE}: ")) from None


def _rank_contradictions(table: pl.DataFrame) -> int:
    """Number of rows whose rank and score, compared with the row above, contradict each other."""
    rank, score, query = pl.col("rank"), pl.col("score"), pl.col("query_id")
    wrong = ((rank > rank.shift()) & (score > score.shift())) | ((rank < rank.shift()) & (score < score.shift()))
    return int(table.select((wrong & (query == query.shift())).sum()).item())


_LAYOUT = Layout(
    "TREC qrels", {"query_id": pl.String, "_iteration": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
)


@checked
def read_qrels(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Reads relevance judgements from a file, a folder of such or ``irds:NAME``.

    By content: TREC (separated by spaces or tabs); CSV, TSV, JSONL or Parquet with columns ``query_id``, ``doc_id`` and
    ``relevance`` (or PyTerrier's or BEIR's names); a JSON object ``{query: {document: grade}}``; all but Parquet plain,
    gzip or zst.

    Returns a table with ``query_id``, ``doc_id`` and ``relevance`` (int), one row per judgement; a repeated judgement
    counts once. Raises InputError, with the line number, for a line without four fields; for a missing column, a grade
    that is not a whole number, and a document judged twice for a query with different grades.
    """
    if irds.is_identifier(path):
        return irds.qrels(os.fspath(path))
    files = files_of(path)
    if files != [os.fspath(path)]:
        parts = pl.concat(map(read_qrels, files))
        with _of_file(path):
            return qrels_table(parts, _FILE)
    table, other = lines_or_columns(path, _LAYOUT, QRELS_COLUMNS)
    if table is None:
        with _of_file(path):
            return qrels_table(other, _FILE)
    table = table.unique(["query_id", "doc_id", "relevance"], keep="first", maintain_order=True)
    if not table.height:
        raise InputError(path, "the file has no lines")
    repeat = first_repeat(table, ["query_id", "doc_id"])
    if repeat is not None:
        again = table.row(repeat[1], named=True)
        raise InputError(
            path,
            f"the document {quoted(again['doc_id'])} is judged twice for the query {quoted(again['query_id'])},"
            " with different grades",
            line=again["line"],
        )
    return table.drop("line")


def as_qrels(given: object, what: str | None = None) -> pl.DataFrame:
    """Judgements from a path, ``irds:NAME``, ``{query: {document: grade}}``, a frame or records such as Qrel.

    Raises EvenrankError, which begins with ``what``, for anything else; InputError for a file that is not qrels.
    """
    return read_qrels(given) if isinstance(given, str | os.PathLike) else qrels_table(given, what or arg.qrels)
