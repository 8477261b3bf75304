"""A run in chunks of whole queries, in bounded memory however large the file is."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import numpy as np
import polars as pl

from .errors import EvenrankError, InputError, quoted, readable
from .files import line_blocks
from .runs import RUN_LAYOUT, Run, is_long
from .tables import first_repeat, parse_block
from .types import Array

_PART = 1 << 19


def spell_starts(query: pl.Series) -> Array:
    """The start of each stretch of equal values, and the total length at the end [Q + 1]."""
    number = query.rle_id().to_numpy().astype(np.int64)
    return np.append(np.flatnonzero(np.diff(number, prepend=-1)), len(query))


def run_chunks(run: str | os.PathLike[str] | Run | pl.DataFrame) -> tuple[Iterator[pl.DataFrame], str]:
    """The table of a run (see :class:`Run`) in chunks of whole queries, and the run's name.

    A file is read lazily; the lines of each query must be contiguous. Raises InputError, with the line number, if they
    are not, for a malformed line, and for a document that appears twice for a query.
    """
    if isinstance(run, str | os.PathLike):
        return _ranked_chunks(run), readable(os.path.basename(os.fspath(run)))
    if isinstance(run, pl.DataFrame):
        run = Run.from_table(run)
    starts = spell_starts(run.table["query_id"])
    cuts = starts[np.unique(np.searchsorted(starts, np.arange(0, run.table.height, _PART)))]
    pairs = itertools.pairwise([*cuts.tolist(), run.table.height])
    table = run.table
    return (table[start:end] for start, end in pairs if end > start), run.name


def _ranked_chunks(path: str | os.PathLike[str]) -> Iterator[pl.DataFrame]:
    done = 0
    if is_long(path):
        from .long_runs import IrregularError, ranked_parts

        seen: set[str] = set()
        try:
            for part in ranked_parts(path, by_score=True):
                queries = part.queries.to_list()
                known = len(seen)
                seen.update(queries)
                if len(seen) < known + len(queries):
                    raise IrregularError
                yield part.table
                done += part.table.height
            return
        except IrregularError:
            # Read again in the general way, which knows every form and error, past the queries that were yielded.
            pass
    for chunk in _any_chunks(path):
        if done < chunk.height:
            yield chunk[done:]
        done = max(0, done - chunk.height)


def _any_chunks(path: str | os.PathLike[str]) -> Iterator[pl.DataFrame]:
    seen: dict[str, int] = {}
    for chunk in _whole_queries(path):
        starts = spell_starts(chunk["query_id"])[:-1]
        first = chunk.select("query_id", "line")[starts]
        met = seen.keys() & set(first["query_id"])
        again = first.filter(~pl.col("query_id").is_first_distinct() | pl.col("query_id").is_in(list(met)))
        if again.height:
            query, line = again.row(0)
            earlier = seen.get(query) or first.filter(pl.col("query_id") == query)["line"][0]
            message = f"the lines of the query {quoted(query)} are not contiguous (first in line {earlier})"
            raise InputError(path, f"{message}: sort the run by query, for example with sort -s -k1,1", line=line)
        seen.update(first.iter_rows())
        try:
            table = Run.from_table(chunk.drop("line")).table
        except EvenrankError:
            repeat = first_repeat(chunk, ["query_id", "doc_id"])
            if repeat is None:
                raise
            before, row = (chunk.row(number, named=True) for number in repeat)
            message = f"the document {quoted(row['doc_id'])} appears twice for the query {quoted(row['query_id'])}"
            raise InputError(path, f"{message} (first in line {before['line']})", line=row["line"]) from None
        yield table


def _whole_queries(path: str | os.PathLike[str]) -> Iterator[pl.DataFrame]:
    """The rows of a run file, about a block at a time, split where the query changes."""
    rest: list[pl.DataFrame] = []
    for block in line_blocks(path):
        table = parse_block(path, block, RUN_LAYOUT)
        if not table.height:
            continue
        others = np.flatnonzero((table["query_id"] != table["query_id"][-1]).to_numpy())
        cut = int(others[-1]) + 1 if len(others) else 0
        if cut:
            yield pl.concat([*rest, table[:cut]])
            rest = []
        elif rest and rest[-1]["query_id"][-1] != table["query_id"][0]:
            yield pl.concat(rest)
            rest = []
        rest.append(table[cut:])
    if not rest:
        raise InputError(path, "the file has no lines")
    yield pl.concat(rest)
