"""Long TREC runs: parsed, checked and ranked in compiled loops, a part of whole queries on each core."""

from __future__ import annotations

import mmap
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank._jit import unwritable

from . import _run_lines as _kernel
from .errors import InputError
from .files import BLOCK_BYTES, BOM, line_limit, open_binary
from .threads import in_order
from .types import Array

_WORKERS = 4
"""At most: each holds about 50 MB while it reads a part."""
_LONGEST_QUERY = 1 << 27
"""Bytes: the lines of a query are kept until all are there."""


class IrregularError(Exception):
    """The file is not of regular lines: it has to be read in the general way, which knows every form and error."""


@dataclass(frozen=True, slots=True)
class RankedPart:
    """Whole queries of a run in rank order, as in :class:`evenrank.io.runs.Run`.

    ``starts`` [Q]: the first row of each query. ``contradictions``: rows whose rank contradicts the score.
    """

    table: pl.DataFrame
    starts: Array
    contradictions: int

    @property
    def queries(self) -> pl.Series:
        """The ids [Q] of the queries."""
        return self.table["query_id"].gather(self.starts)


def ranked_parts(path: str | os.PathLike[str], by_score: bool) -> Iterator[RankedPart]:
    """The parts of a run file of regular lines that has each document once among the lines of a query.

    Raises IrregularError for any other file, perhaps after some parts.
    """
    workers = min(_WORKERS, os.cpu_count() or 1)
    try:
        yield from in_order(lambda data: _ranked_part(data, by_score), _query_parts(path), workers)
    except (InputError, OSError, EOFError, zlib.error) as error:
        raise IrregularError from error


def _query_parts(path: str | os.PathLike[str], *, block_bytes: int = BLOCK_BYTES) -> Iterator[Array]:
    """The bytes of a run, split only where the query changes."""
    held = np.zeros(0, dtype=np.uint8)
    first = True
    with open_binary(path) as stream:
        while len(held) < _LONGEST_QUERY:
            # Read in behind the lines that are left of the last part: no byte is copied.
            # In pages that go back to the system when the part is read: a heap would keep some.
            data = np.frombuffer(mmap.mmap(-1, len(held) + block_bytes + 1), dtype=np.uint8)
            data[: len(held)] = held
            size = stream.readinto(memoryview(data)[len(held) : -1])  # type: ignore[attr-defined, arg-type]
            lines = len(held) + size
            if not size:
                if lines and held[-1] != ord("\n"):
                    data[lines] = ord("\n")
                    lines += 1
                while lines > 1 and data[lines - 2] == ord("\n"):
                    lines -= 1  # an empty line at the end
                if not lines:
                    raise IrregularError
                yield data[:lines]
                return
            if first and (data[:3].tobytes() == BOM or not data[:2].all()):
                raise IrregularError
            first = False
            cut = _kernel.last_query(data[:lines])
            if cut:
                yield data[:cut]
            held = data[cut:lines]
    raise IrregularError


def _ranked_part(data: Array, by_score: bool) -> RankedPart:
    # In fewer bytes no line is too long.
    if len(data) > line_limit():
        raise IrregularError
    rows, plain, returns = _kernel.counted(data)
    if not plain or returns:
        content = data.tobytes()
        try:
            content.decode()
        except UnicodeDecodeError:
            raise IrregularError from None
        data = np.frombuffer(content.replace(b"\r\n", b"\n"), dtype=np.uint8)
    queries, docs = np.empty((rows, 2), dtype=np.uint64), np.empty((rows, 2), dtype=np.uint64)
    scores, ranks = np.empty(rows), np.empty(rows, dtype=np.int64)
    text, starts = np.empty(len(data), dtype=np.uint8), np.empty(rows + 1, dtype=np.int64)
    odd_scores, odd_ranks = np.empty((rows, 3), dtype=np.int32), np.empty((rows, 3), dtype=np.int32)
    (data,) = unwritable(data)
    count, used, *odd = _kernel.parse(data, queries, docs, scores, ranks, text, odd_scores, odd_ranks, starts)
    if count < 0:
        raise IrregularError
    if odd[0]:
        _fill_scores(scores, data, odd_scores[: odd[0]])
    if odd[1]:
        whole = _tokens(data, odd_ranks[: odd[1]]).cast(pl.Int32, strict=False).cast(pl.Int64)
        ranks[odd_ranks[: odd[1], 0]] = whole.fill_null(_kernel.UNKNOWN).to_numpy()
    starts[count] = rows
    starts, text = starts[: count + 1].copy(), text[:used].copy()
    if _kernel.repeats(starts, docs, text):
        raise IrregularError
    contradictions = _kernel.contradictions(starts, scores, ranks)
    if by_score:
        _kernel.rank(starts, docs, scores, text)
    rank = np.arange(1, rows + 1, dtype=np.uint32)
    rank -= np.repeat(starts[:-1].astype(np.uint32), np.diff(starts))
    columns = {
        "query_id": _texts(queries, text),
        "doc_id": _texts(docs, text),
        "score": _numbers(scores if by_score else -rank.astype(np.float64)),
        "rank": _numbers(rank),
    }
    return RankedPart(pl.DataFrame(columns), starts[:-1], contradictions)


def _fill_scores(scores: Array, data: Array, tokens: Array) -> None:
    found = _tokens(data, tokens).cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()
    # Zeros of two signs are tied: which one a row then has depends on the rows beside it.
    if not np.isfinite(found).all() or (np.signbit(found) & (found == 0)).any():
        raise IrregularError
    scores[tokens[:, 0]] = found


def _tokens(data: Array, tokens: Array) -> pl.Series:
    return _texts(_kernel.token_views(data, tokens), data)


def _texts(views: Array, text: Array) -> pl.Series:
    """Texts as a column, which keeps the arrays."""
    import pyarrow as pa

    buffers = [None, pa.py_buffer(views), *([pa.py_buffer(text)] if len(text) else [])]
    return pl.Series(pa.Array.from_buffers(pa.string_view(), len(views), buffers))


def _numbers(values: Array) -> pl.Series:
    """Numbers as a column, which keeps the array. ``pyarrow.array`` would import pandas."""
    import pyarrow as pa

    return pl.Series(
        pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])
    )
