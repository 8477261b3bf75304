"""Relevance judgements."""

from __future__ import annotations

import os

import polars as pl

from . import irds
from .arguments import checked
from .convert import qrels_table
from .errors import InputError, quoted
from .files import line_blocks
from .tables import Layout, first_repeat, parse_block

_LAYOUT = Layout(
    "TREC qrels", {"query_id": pl.String, "_iteration": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
)


@checked
def read_qrels(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Reads TREC qrels (space or tab separated, plain or gzip, or ``irds:NAME``).

    Returns a table with ``query_id``, ``doc_id`` and ``relevance`` (int), one row per judgement; a repeated judgement
    counts once. Raises InputError, with the line number, for a line without four fields, a grade that is not a whole
    number, and a document judged twice for a query with different grades.
    """
    if irds.is_identifier(path):
        return irds.qrels(os.fspath(path))
    table = pl.concat([parse_block(path, block, _LAYOUT) for block in line_blocks(path)])
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


def as_qrels(given: object, what: str = "`qrels`") -> pl.DataFrame:
    """Judgements from a path, ``irds:NAME``, ``{query: {document: grade}}``, a frame or records such as Qrel.

    Raises EvenrankError, which begins with ``what``, for anything else; InputError for a file that is not qrels.
    """
    return read_qrels(given) if isinstance(given, str | os.PathLike) else qrels_table(given, what)
