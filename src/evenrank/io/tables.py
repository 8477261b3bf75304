"""Parses blocks of lines into tables; errors have the line number."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .errors import InputError, quoted
from .files import BOM, Block
from .types import Array

Picked = TypeVar("Picked", pl.DataFrame, pl.Series)
_PIECE = 1 << 17
_NUMBERS = (pl.Float64, pl.Int64)


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a line, in order: name and type. A field whose name starts with ``_`` is checked and dropped.

    ``lenient``: fields that become null, instead of an error, if their value is not of their type.
    """

    what: str
    fields: dict[str, type[pl.DataType]]
    lenient: tuple[str, ...] = ()

    @property
    def kept(self) -> list[str]:
        """The fields that become columns."""
        return [name for name in self.fields if not name.startswith("_")]

    def expected(self) -> str:
        """The fields, for a message."""
        return f"expected {len(self.fields)} fields ({', '.join(name.lstrip('_') for name in self.fields)})"


def parse_block(path: str | os.PathLike[str], block: Block, layout: Layout) -> pl.DataFrame:
    """A block of lines, separated by spaces, tabs or both, as a table with a ``line`` column.

    Files with exactly one space or one tab between fields are parsed by polars; all others by a slower parser that
    returns the same table, or raises InputError with the line number.
    """
    table = _parse_regular(block, layout)
    if table is None:
        table = _parse_any(path, block, layout)
    return table


def _parse_regular(block: Block, layout: Layout) -> pl.DataFrame | None:
    head = block.data[: block.data.find(b"\n")]
    separator, other = ("\t", b" ") if b"\t" in head else (" ", b"\t")
    if head.count(separator.encode()) != len(layout.fields) - 1 or other in block.data or csv_drops(block.data):
        return None
    table = _read_csv(block, layout.fields, separator)
    if table is None and layout.lenient:
        loose = {name: pl.String if name in layout.lenient else kind for name, kind in layout.fields.items()}
        table = _read_csv(block, loose, separator)
    # A null is an empty field (two separators in a row) or a short line.
    if table is None or table.height != block.lines or any(table.null_count().row(0)):
        return None
    table = table.with_columns(pl.col(name).cast(layout.fields[name], strict=False) for name in layout.lenient)
    floats = [pl.col(name).is_finite().all() for name, kind in layout.fields.items() if kind is pl.Float64]
    if floats and not all(table.select(pl.all_horizontal(floats)).row(0)):
        return None
    return table.select(
        *layout.kept, pl.int_range(block.first_line, block.first_line + table.height, dtype=pl.UInt32).alias("line")
    )


def csv_drops(data: bytes) -> bool:
    """Whether polars' CSV reader would drop some bytes: a carriage return at a field's end, or a byte-order mark."""
    return b"\r" in data or data.startswith(BOM)


def _read_csv(block: Block, schema: Mapping[str, type[pl.DataType]], separator: str) -> pl.DataFrame | None:
    try:
        return pl.read_csv(block.data, has_header=False, separator=separator, quote_char=None, schema=schema)
    except pl.exceptions.PolarsError:
        return None


def lines_of(block: Block) -> pl.DataFrame:
    """The block's lines that are not blank, as ``line`` (number) and ``content``."""
    content = pl.Series("content", [block.data[:-1].decode()]).str.split("\n").explode()
    numbered = pl.DataFrame({"content": content}).with_row_index("line", offset=block.first_line)
    return numbered.filter(pl.col("content").str.strip_chars() != "")


def _parse_any(path: str | os.PathLike[str], block: Block, layout: Layout) -> pl.DataFrame:
    lines = lines_of(block)
    pattern = r"^[ \t]*" + r"[ \t]+".join(f"(?<f{i}>[^ \t]+)" for i in range(len(layout.fields))) + r"[ \t]*$"
    parsed = lines.with_columns(pl.col("content").str.extract_groups(pattern).alias("g")).unnest("g")
    bad = parsed.filter(pl.col("f0").is_null())
    if bad.height:
        line, content = bad.row(0)[:2]
        count = len(re.split(r"[ \t]+", content.strip(" \t")))
        raise InputError(path, f"{layout.expected()} of {layout.what}, found {count}: {quoted(content)}", line=line)
    columns: list[pl.Expr] = []
    for i, (name, kind) in enumerate(layout.fields.items()):
        column = pl.col(f"f{i}")
        if name in layout.lenient:
            column = column.cast(kind, strict=False)
        elif kind in _NUMBERS:
            number = column.cast(kind, strict=False)
            wrong = number.is_null() if kind is pl.Int64 else ~number.is_finite().fill_null(False)
            bad = parsed.filter(wrong)
            if bad.height:
                noun = "a whole number" if kind is pl.Int64 else "a finite number"
                found = quoted(bad[f"f{i}"][0])
                raise InputError(path, f"expected {noun} as {name.lstrip('_')}, found {found}", line=bad["line"][0])
            column = number
        columns.append(column.alias(name))
    return parsed.select(*columns, pl.col("line").cast(pl.UInt32)).select(*layout.kept, "line")


def first_repeat(table: pl.DataFrame, keys: list[str]) -> tuple[int, int] | None:
    """The rows of the first repeated combination of ``keys`` (text columns), (earlier, repeated), or None.

    Only rows with equal hashes are compared exactly.
    """
    number = np.zeros(table.height, dtype=np.uint64)
    for seed, key in enumerate(keys):
        number += table[key].hash(seed).to_numpy()
    ordered = np.sort(number)
    met = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
    if not len(met):
        return None
    rows = table.select(keys).with_row_index("row").filter(pl.Series(np.isin(number, met)))
    again = rows.filter(~pl.struct(keys).is_first_distinct())
    if not again.height:
        return None
    repeat = again.row(0, named=True)
    earlier = rows.filter(*[pl.col(key) == repeat[key] for key in keys])["row"][0]
    return int(earlier), int(repeat["row"])


def pick(values: Picked, rows: Array) -> Picked:
    """``values[rows]`` of a long table or column, for a few distinct rows.

    Selected by mask and then sorted: selecting by number would make polars first copy all chunks into one.
    """
    wanted = np.zeros(len(values), dtype=bool)
    wanted[rows] = True
    return values.filter(pl.Series(wanted))[np.searchsorted(np.sort(rows), rows)]


def text_bytes(texts: pl.Series) -> tuple[Array, Array]:
    """The UTF-8 bytes [B] of texts [N], and the offsets [N + 1] of each text's start and the last one's end."""
    import pyarrow as pa

    column = texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.large_string())
    _, offsets, data = column.buffers()
    begins = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8), begins


class IdIndex:
    """The positions of ids in a list of ids, looked up by 64-bit hash: millions per second, some twenty bytes per id.

    Among millions of ids, the chance that two have the same hash, and are taken for one, is about one in a million.
    """

    def __init__(self, ids: Iterable[pl.Series]) -> None:
        self._ids = pl.concat([part.rename("id") for part in ids], rechunk=False)
        self._hashes = self._ids.hash().to_numpy()

    @functools.cached_property
    def _slots(self) -> tuple[Array, Array, Array]:
        """A row for the last bits of a hash; the rows whose slot another one has, and their hashes, which rise."""
        size = 1 << min(24, max(10, (4 * len(self._hashes)).bit_length()))
        slots = np.full(size, -1, dtype=np.int32)
        rows = np.arange(len(self._hashes), dtype=np.int32)
        slot = self._hashes & np.uint64(size - 1)
        # One id gets each slot; other ids of that slot, unless they repeat it, are found by binary search.
        slots[slot[::-1]] = rows[::-1]
        others = rows[self._hashes != self._hashes[slots[slot]]]
        others = others[np.argsort(self._hashes[others], kind="stable")]
        return slots, others, self._hashes[others]

    def places(self, ids: pl.Series) -> NDArray[np.int32]:
        """The first position [N] in the list of each of ``ids``, −1 for ids that are not in it."""
        # In pieces: intermediate arrays take several times the memory of the result.
        pieces = [self.hashed_places(ids[start : start + _PIECE].hash()) for start in range(0, len(ids), _PIECE)]
        return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int32)

    def hashed_places(self, hashes: pl.Series) -> NDArray[np.int32]:
        """:meth:`places` of ids by their :meth:`polars.Series.hash`, if several lists are asked about the same ids."""
        wanted = hashes.to_numpy()
        slots, others, other_hashes = self._slots
        place: NDArray[np.int32] = slots[wanted & np.uint64(len(slots) - 1)]
        if not len(self._hashes):
            return place
        rows = np.flatnonzero((place >= 0) & (self._hashes[place] != wanted))
        place[rows] = -1
        if len(others) and len(rows):
            at = np.minimum(np.searchsorted(other_hashes, wanted[rows]), len(others) - 1)
            same = other_hashes[at] == wanted[rows]
            place[rows[same]] = others[at[same]]
        return place

    def among(self, ids: pl.Series) -> pl.Series:
        """Whether each of ``ids`` is in the list."""
        return pl.Series(self.places(ids) >= 0)
