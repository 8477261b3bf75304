"""Parts of a list: by relevance, by groups in passage and query, and by the columns of a table of the user's."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.groups import Lexicon, Scoring, score_texts
from evenrank.io import EvenrankError
from evenrank.io.columns import Columns, read_columns
from evenrank.io.convert import frame_of, id_column, is_path
from evenrank.io.errors import quoted

from .effects import Flags, Floats, Ints
from .probed_list import ProbedList

_MOST = 20
"""Values of a column: with more it is no division into parts."""


@dataclass(frozen=True, slots=True)
class Part:
    """The pairs ``among`` [N] whose ``column`` has this ``value``."""

    column: str
    value: str
    among: Flags


def by_relevance(listed: ProbedList) -> list[Part]:
    """Relevant (a grade of 1 or more), and the other passages; nothing without judgements."""
    if listed.qrels is None:
        return []
    relevant = (listed.table["relevance"].fill_null(0) >= 1).to_numpy()
    return [Part("relevance", "relevant", relevant), Part("relevance", "not relevant", ~relevant)]


def by_group(magnitude: Floats, first: str, second: str) -> list[Part]:
    """By the side of the signed magnitude [N] of each pair's original passage."""
    return [
        Part("group", first, magnitude > 0),
        Part("group", second, magnitude < 0),
        Part("group", "neither", magnitude == 0),
    ]


def by_query(queries: pl.Series, query: Ints, lexicon: Lexicon) -> list[Part]:
    """Whether the text of each pair's query (``queries`` [Q], ``query`` [N]) has a word of one of the lexicon's groups;
    nothing unless some have and others have not."""
    rows = queries.rename("text").to_frame().with_row_index("doc_id").with_columns(pl.col("doc_id").cast(pl.String))
    found = score_texts(rows, Scoring(lexicon, magnitudes=()))
    counts = found.select(f"count_{group}" for group in lexicon.groups)
    named = counts.select(pl.any_horizontal(pl.all() > 0)).to_series().to_numpy()[query]
    if named.all() or not named.any():
        return []
    return [Part("query", "names a group", named), Part("query", "names none", ~named)]


def by_table(given: object, listed: ProbedList) -> tuple[list[Part], tuple[str, ...]]:
    """By each column of a table with ``query_id``, ``doc_id`` or both, and notes on columns that were left out.

    ``given``: a path (CSV, TSV, JSONL or Parquet with named columns) or a frame. Pairs without a value are in no part.
    Raises EvenrankError without an id column or without another one, for ids that are repeated, and if no id is of the
    list.
    """
    if given is None:
        return [], ()
    columns = _columns(given)
    keys = [key for key in ("query_id", "doc_id") if key in columns.table.columns]
    names = [name for name in columns.table.columns if name not in ("query_id", "doc_id")]
    if not keys or not names:
        has = quoted(", ".join(columns.table.columns), 120)[1:-1]
        raise columns.error(f"expected query_id or doc_id and a column of values, found the columns {has}")
    what = columns.path or columns.what
    table = columns.table.with_columns(id_column(columns.table[key], key, what) for key in keys)
    again = table.select(pl.struct(keys).is_first_distinct()).to_series()
    if not again.all():
        raise columns.error(f"the same {' and '.join(keys)} twice", int((~again).arg_max() or 0))
    if not listed.table.join(table, on=keys, how="semi").height:
        raise columns.error(f"no {' and '.join(keys)} is of the list")
    found, notes = [], []
    laid = listed.table.select(keys).join(table, on=keys, how="left", maintain_order="left")
    for name in names:
        if laid[name].dtype.is_nested():
            raise columns.error(f"expected texts in the column {name}, found {laid[name].dtype}")
        values = laid[name].cast(pl.String, strict=False)
        distinct = values.drop_nulls().unique().sort()
        distinct = distinct.filter(distinct != "")
        if len(distinct) > _MOST:
            notes.append(f"subsets: the column {name} has {len(distinct):,} values and was left out (at most {_MOST})")
            continue
        found += [Part(name, value, (values == value).fill_null(False).to_numpy()) for value in distinct]
    return found, tuple(notes)


def _columns(given: object) -> Columns:
    if is_path(given):
        return read_columns(os.fspath(given))
    table = frame_of(given, "`subsets`")
    if table is None:
        raise EvenrankError(f"`subsets`: expected a path or a table, found {type(given).__name__}")
    return Columns(table, what="`subsets`")


def sample_of_queries(listed: ProbedList, most: int, seed: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The rows of whole queries, drawn with ``seed``, of no more than ``most`` pairs together, but of one at least."""
    sizes = np.bincount(listed.query)
    drawn = np.random.default_rng(seed).permutation(len(sizes))
    fits = np.cumsum(sizes[drawn]) <= most
    fits[0] = True
    return np.flatnonzero(np.isin(listed.query, drawn[fits]))
