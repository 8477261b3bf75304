"""A batch of documents as the bytes of its texts, for compiled loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from .files import Block
from .tables import text_bytes
from .types import Array


@dataclass(frozen=True, slots=True)
class Pieces:
    """Texts as UTF-8 bytes: ``data[starts[i]:ends[i]]`` (uint8; [N] int64)."""

    data: Array
    starts: Array
    ends: Array

    def first(self) -> str:
        """The first text."""
        return bytes(self.data[self.starts[0] : self.ends[0]]).decode()

    def behind(self, rows: int) -> Pieces:
        """All but the first ``rows``."""
        return Pieces(self.data, self.starts[rows:], self.ends[rows:])


@dataclass(frozen=True, slots=True)
class Passages:
    """Documents: ``ids`` [N], and their texts as they were read: a column, or the bytes that hold them."""

    ids: pl.Series
    texts: pl.Series | Pieces

    @classmethod
    def of(cls, table: pl.DataFrame) -> Passages:
        """Those of a table of an id and a text a row."""
        return cls(*table.get_columns())

    def __len__(self) -> int:
        return len(self.ids)

    def table(self) -> pl.DataFrame:
        """The ids and ``text`` as a table."""
        texts = self.texts if isinstance(self.texts, pl.Series) else _strings("text", self.texts)
        return pl.DataFrame([self.ids, texts])

    def pieces(self) -> Pieces:
        """The texts as bytes."""
        if isinstance(self.texts, Pieces):
            return self.texts
        data, offsets = text_bytes(self.texts)
        return Pieces(data, offsets[:-1], offsets[1:])

    def first(self) -> tuple[str, str]:
        """The first id and text."""
        return self.ids[0], self.texts[0] if isinstance(self.texts, pl.Series) else self.texts.first()

    def behind(self, rows: int) -> Passages:
        """All but the first ``rows``."""
        return Passages(
            self.ids[rows:], self.texts[rows:] if isinstance(self.texts, pl.Series) else self.texts.behind(rows)
        )


def split_lines(block: Block, id_column: str) -> Passages | None:
    """The documents of lines that all have an id, a tab and a text; None if one may have not."""
    from . import _lines

    data = np.frombuffer(block.data, dtype=np.uint8)
    tabs, ends = np.empty(block.lines, dtype=np.int64), np.empty(block.lines, dtype=np.int64)
    found = _lines.first_tabs(data, tabs, ends)
    if found == _lines.NONE:
        return None
    starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1] + 1])
    ids = _strings(id_column, Pieces(data, starts, tabs))
    if found == _lines.ODD and (ids.str.strip_chars() == "").any():
        return None
    return Passages(ids, Pieces(data, tabs + 1, ends))


def _strings(name: str, texts: Pieces) -> pl.Series:
    import pyarrow as pa

    from . import _lines

    offsets = np.zeros(len(texts.starts) + 1, dtype=np.int64)
    out = np.empty(int((texts.ends - texts.starts).sum()), dtype=np.uint8)
    _lines.copy_pieces(texts.data, texts.starts, texts.ends, out, offsets)
    column = pl.from_arrow(pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), pa.py_buffer(out)))
    assert isinstance(column, pl.Series)
    return column.alias(name)
