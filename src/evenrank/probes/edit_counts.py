"""How many places of each text of a variant were changed, where that is known."""

from __future__ import annotations

import os
from contextlib import suppress

import polars as pl

from evenrank.io.columns import is_parquet
from evenrank.io.convert import frame_of, id_column, is_path
from evenrank.io.errors import EvenrankError

from .probed_list import ProbedList

_NAME = "edits"


def edit_counts(table: pl.DataFrame) -> pl.Series:
    """The column ``edits`` of a table; null without one of whole numbers."""
    if _NAME in table.columns and table[_NAME].dtype.is_integer():
        return table[_NAME].cast(pl.Int64)
    return pl.Series(_NAME, [None] * table.height, dtype=pl.Int64)


def edits_by_passage(given: object, listed: ProbedList) -> pl.Series | None:
    """The edits [N] of the passage of each pair, null where unknown; None for a variant that does not say them.

    ``given``: a frame, or a file: Parquet, JSONL, or a TSV with its ``FILE.edits.tsv``.
    """
    table = None
    # Text was read from it already: what cannot be used here are counts that somebody else has written.
    with suppress(OSError, pl.exceptions.PolarsError, EvenrankError):
        table = _of_file(os.fspath(given), listed) if is_path(given) else frame_of(given, "the variant")
    if table is None or not {"doc_id", _NAME} <= set(table.columns):
        return None
    found = pl.DataFrame([id_column(table["doc_id"], "doc_id", "the variant"), edit_counts(table)])
    known = found.unique("doc_id", keep="first")
    edits = listed.table.select("doc_id").join(known, on="doc_id", how="left", maintain_order="left")[_NAME]
    return edits if edits.count() else None


def _of_file(path: str, listed: ProbedList) -> pl.DataFrame | None:
    """The listed passages' ids and edits."""
    beside = f"{path}.edits.tsv"
    schema = {"doc_id": pl.String, _NAME: pl.Int64}
    if os.path.isfile(beside):
        rows = pl.scan_csv(beside, separator="\t", has_header=False, schema=schema, quote_char=None)
    elif not os.path.isfile(path):
        return None
    elif is_parquet(path):
        rows = pl.scan_parquet(path)
    elif path.endswith(".jsonl"):
        rows = pl.scan_ndjson(path, schema=schema)
    else:
        return None
    wanted = listed.table.select("doc_id").unique().lazy()
    return rows.select("doc_id", _NAME).join(wanted, on="doc_id", how="semi").collect()
