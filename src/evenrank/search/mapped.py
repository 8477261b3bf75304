"""Texts and the order of ties of an index, in mapped arrays: read, and checked, where they are needed."""

from __future__ import annotations

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.files.tables import text_bytes

from .index_folder import IndexWriter, Manifest, save_array

Ints = NDArray[np.int32]


def write_texts(writer: IndexWriter, name: str, texts: pl.Series) -> None:
    """Writes texts, document ids or sorted terms, as :class:`Texts` reads them."""
    data, starts = text_bytes(texts)
    save_array(writer.file(f"{name}.npy"), data[starts[0] : starts[-1]])
    save_array(writer.file(f"{name}-starts.npy"), starts - starts[0])


class Texts:
    """Texts that :func:`write_texts` wrote, mapped; ``texts.gather(rows)``: those of some rows, as a series.

    Raises InputError for files that do not fit the index, ValueError for texts that are not in them.
    """

    def __init__(self, manifest: Manifest, name: str, length: int | None = None) -> None:
        self._data = manifest.array(f"{name}.npy", np.uint8)
        self._starts = manifest.array(f"{name}-starts.npy", np.int64, None if length is None else length + 1)

    def __len__(self) -> int:
        return len(self._starts) - 1

    def __getitem__(self, row: int) -> str:
        start, end = self._starts[row : row + 2].tolist()
        if not 0 <= start <= end <= len(self._data):
            raise ValueError("a text is not in the file")
        return bytes(self._data[start:end]).decode()

    def gather(self, rows: pl.Series, /) -> pl.Series:
        """The texts of row numbers."""
        import pyarrow as pa

        row = rows.to_numpy()
        starts, ends = self._starts[row], self._starts[row + 1]
        if (starts < 0).any() or (ends < starts).any() or (ends > len(self._data)).any():
            raise ValueError("a text is not in the file")
        bounds = np.zeros(len(row) + 1, np.int64)
        np.cumsum(ends - starts, out=bounds[1:])
        place = np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], ends - starts)
        array = pa.LargeStringArray.from_buffers(len(row), pa.py_buffer(bounds), pa.py_buffer(self._data[place]))
        array.validate(full=True)
        series = pl.from_arrow(array)
        assert isinstance(series, pl.Series)
        return series

    def all(self) -> pl.Series:
        """All of them."""
        return self.gather(pl.int_range(len(self), eager=True))


def turns(doc_ids: pl.Series) -> tuple[Ints, Ints]:
    """The position of each document by falling id, and the document at each position [documents]: the order of ties."""
    by_turn = doc_ids.arg_sort(descending=True).to_numpy().astype(np.int32)
    turn = np.empty(len(by_turn), np.int32)
    turn[by_turn] = np.arange(len(by_turn), dtype=np.int32)
    return turn, by_turn


def write_documents(writer: IndexWriter, doc_ids: pl.Series) -> None:
    """Writes the ids of an index's documents, and their order of ties."""
    write_texts(writer, "ids", doc_ids)
    turn, by_turn = turns(doc_ids)
    save_array(writer.file("turn.npy"), turn)
    save_array(writer.file("by-turn.npy"), by_turn)


def read_turns(manifest: Manifest) -> tuple[Ints, Ints]:
    """The order of ties that :func:`write_documents` wrote, mapped. Raises InputError if it does not fit."""
    names = ("turn.npy", "by-turn.npy")
    turn, by_turn = (manifest.array(name, np.int32, manifest.documents) for name in names)
    return turn, by_turn
