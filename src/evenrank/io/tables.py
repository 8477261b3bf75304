"""Blocks of lines parsed into tables, with the line of the first mistake when there is one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import polars as pl

from .errors import InputError, shown
from .files import Block

_NUMBERS = (pl.Float64, pl.Int64)


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a line, in order: name and type. A name that starts with ``_`` is checked and dropped."""

    what: str
    fields: dict[str, type[pl.DataType]]

    @property
    def kept(self) -> list[str]:
        return [name for name in self.fields if not name.startswith("_")]

    def expected(self) -> str:
        return f"expected {len(self.fields)} fields ({', '.join(name.lstrip('_') for name in self.fields)})"


def parse_block(path: str | os.PathLike[str], block: Block, layout: Layout) -> pl.DataFrame:
    """A block of white-space-separated lines (spaces, tabs, or both) as a table with a ``line`` column.

    The usual file, one space or one tab between fields, takes a fast way; any other line takes a slower one that
    gives the same table or says what is wrong with which line.
    """
    table = _parse_regular(block, layout)
    if table is None:
        table = _parse_any(path, block, layout)
    return table


def _parse_regular(block: Block, layout: Layout) -> pl.DataFrame | None:
    head = block.data[: block.data.find(b"\n")]
    separator, other = ("\t", b" ") if b"\t" in head else (" ", b"\t")
    if head.count(separator.encode()) != len(layout.fields) - 1 or other in block.data:
        return None
    try:
        table = pl.read_csv(block.data, has_header=False, separator=separator, quote_char=None, schema=layout.fields)
    except pl.exceptions.PolarsError:
        return None
    if table.height != block.lines or any(table.null_count().row(0)):
        return None
    floats = [pl.col(name).is_finite().all() for name, kind in layout.fields.items() if kind is pl.Float64]
    if floats and not all(table.select(pl.all_horizontal(floats)).row(0)):
        return None
    return table.select(
        *layout.kept, pl.int_range(block.first_line, block.first_line + table.height, dtype=pl.UInt32).alias("line")
    )


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
        raise InputError(path, f"{layout.expected()} of {layout.what}, found {count}: {shown(content)}", line=line)
    columns: list[pl.Expr] = []
    for i, (name, kind) in enumerate(layout.fields.items()):
        column = pl.col(f"f{i}")
        if kind in _NUMBERS:
            number = column.cast(kind, strict=False)
            wrong = number.is_null() if kind is pl.Int64 else ~number.is_finite().fill_null(False)
            bad = parsed.filter(wrong)
            if bad.height:
                noun = "a whole number" if kind is pl.Int64 else "a finite number"
                found = shown(bad[f"f{i}"][0])
                raise InputError(path, f"expected {noun} as {name.lstrip('_')}, found {found}", line=bad["line"][0])
            column = number
        columns.append(column.alias(name))
    return parsed.select(*columns, pl.col("line").cast(pl.UInt32)).select(*layout.kept, "line")


def first_repeat(table: pl.DataFrame, keys: list[str]) -> tuple[int, int] | None:
    """The row numbers of the first repeated combination of ``keys`` (text columns): (earlier, repeating), or None.

    Hashes first: exact comparison is only done for the rows whose hashes meet.
    """
    hashes = table.select(pl.sum_horizontal(*[pl.col(key).hash(seed) for seed, key in enumerate(keys)]))
    number = hashes.to_series().to_numpy()
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


class IdSet:
    """A set of ids held as sorted hashes: quick to ask about many at once, at the price of a rare false yes."""

    def __init__(self, ids: Iterable[pl.Series]) -> None:
        hashes = np.concatenate([part.hash().to_numpy() for part in ids])
        # Sorted by hand: np.unique is ten times slower here.
        hashes.sort()
        self._hashes = hashes[np.diff(hashes, prepend=~hashes[:1]) != 0]

    def among(self, ids: pl.Series) -> pl.Series:
        """Whether each of ``ids`` is in the set (an id that is not is let through once in about 10^12)."""
        if not len(self._hashes):
            return pl.repeat(False, len(ids), eager=True)
        hashes = ids.hash().to_numpy()
        place = np.searchsorted(self._hashes, hashes)
        return pl.Series(self._hashes[np.minimum(place, len(self._hashes) - 1)] == hashes)
