"""Arrays and texts in mapped files: opened at once, read where they are needed, checked where they are read."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from evenrank.files import InputError

from .index_folder import IndexWriter, Manifest

Number = TypeVar("Number", bound=np.generic)
Ints = NDArray[np.int32]
_ROWS = 1 << 16
_TURNS = ("turn.bin", "by-turn.bin")


class Mapped(Generic[Number]):
    """A data file of an index as an ``array`` [numbers], read only and little endian.

    Raises InputError for a file that is not whole numbers long, or not ``length`` of them.
    """

    def __init__(self, manifest: Manifest, name: str, dtype: type[Number], length: int | None = None) -> None:
        path, kind = manifest.file(name), np.dtype(dtype).newbyteorder("<")
        try:
            with open(path, "rb") as stream:
                size = os.fstat(stream.fileno()).st_size
                # An empty file cannot be mapped.
                self._map = mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) if size else None
        except OSError as error:
            raise InputError(path, f"cannot be read: {error.strerror}") from None
        if size % kind.itemsize or (length is not None and size != length * kind.itemsize):
            raise InputError(manifest.path, f"the index is damaged: {name} does not fit the other files")
        self.array: NDArray[Number] = np.frombuffer(self._map or b"", kind)

    def release(self, start: int = 0, end: int | None = None) -> None:
        """Gives the memory of what was read back to the system; reading it again maps it again.

        Mapped pages count as a process's memory until then.
        """
        if self._map is None or not hasattr(mmap, "MADV_DONTNEED"):
            return
        size = self.array.itemsize
        first = start * size // mmap.PAGESIZE * mmap.PAGESIZE
        length = (len(self.array) if end is None else end) * size - first
        if length > 0:
            with suppress(OSError):
                self._map.madvise(mmap.MADV_DONTNEED, first, length)


class TextsWriter:
    """Writes texts one batch after the other to ``NAME-offsets.bin`` and ``NAME-text.bin``; a context manager."""

    def __init__(self, writer: IndexWriter, name: str) -> None:
        self._offsets = open(writer.file(f"{name}-offsets.bin"), "wb")  # noqa: SIM115
        self._text = open(writer.file(f"{name}-text.bin"), "wb")  # noqa: SIM115
        self._end = 0
        self._offsets.write(np.zeros(1, "<i8").tobytes())

    def __enter__(self) -> TextsWriter:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._offsets.close()
        finally:
            self._text.close()

    def append(self, texts: pl.Series) -> None:
        """Adds texts (polars strings, without nulls) at the end."""
        import pyarrow as pa

        chunk = texts.to_arrow().cast(pa.large_string())
        for part in chunk.chunks if isinstance(chunk, pa.ChunkedArray) else [chunk]:
            _, offsets, data = part.buffers()
            own = (
                np.frombuffer(offsets, np.int64, len(part) + 1, part.offset * 8) if len(part) else np.zeros(1, np.int64)
            )
            if own[-1] > own[0]:
                self._text.write(memoryview(data)[own[0] : own[-1]])
            self._offsets.write((own[1:] - own[0] + self._end).astype("<i8").tobytes())
            self._end += int(own[-1] - own[0])


class Texts:
    """Texts that were written by :class:`TextsWriter`: document ids, or sorted terms.

    ``texts[rows]``: those of an array of row numbers, as a series. Raises InputError where the files are damaged.
    """

    def __init__(self, manifest: Manifest, name: str, length: int | None = None) -> None:
        self._folder, self._name = manifest.path, name
        self._offsets = Mapped(manifest, f"{name}-offsets.bin", np.int64, None if length is None else length + 1)
        self._text = Mapped(manifest, f"{name}-text.bin", np.uint8)
        ends = self._offsets.array
        if not len(ends) or ends[0] != 0 or ends[-1] != len(self._text.array):
            raise self._damaged()

    def __len__(self) -> int:
        return len(self._offsets.array) - 1

    def __getitem__(self, rows: NDArray[np.integer]) -> pl.Series:
        parts = [self._some(rows[start : start + _ROWS]) for start in range(0, len(rows), _ROWS)]
        return pl.concat(parts) if parts else pl.Series(dtype=pl.String)

    def gather(self, rows: pl.Series, /) -> pl.Series:
        """The same, for row numbers in a series."""
        return self[rows.to_numpy()]

    def bytes_at(self, row: int) -> bytes:
        """One text, as UTF-8."""
        start, end = self._offsets.array[row : row + 2].tolist()
        if not 0 <= start <= end <= len(self._text.array):
            raise self._damaged()
        return self._text.array[start:end].tobytes()

    def _some(self, rows: NDArray[np.integer]) -> pl.Series:
        import pyarrow as pa

        starts, ends = self._offsets.array[rows], self._offsets.array[rows + 1]
        if (starts < 0).any() or (ends < starts).any() or (ends > len(self._text.array)).any():
            raise self._damaged()
        bounds = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(ends - starts, out=bounds[1:])
        place = np.arange(bounds[-1]) + np.repeat(starts - bounds[:-1], ends - starts)
        found = pa.LargeStringArray.from_buffers(len(rows), pa.py_buffer(bounds), pa.py_buffer(self._text.array[place]))
        self._offsets.release()
        self._text.release()
        try:
            found.validate(full=True)
        except pa.ArrowInvalid:
            raise self._damaged() from None
        series = pl.from_arrow(found)
        assert isinstance(series, pl.Series)
        return series

    def _damaged(self) -> InputError:
        return InputError(Path(self._folder), f"the index is damaged: its {self._name} cannot be read")


class DocIds(Texts):
    """The ids of an index's documents: ``ids[rows]`` as a series."""

    def __init__(self, manifest: Manifest) -> None:
        super().__init__(manifest, "ids", manifest.documents)


def ids_writer(writer: IndexWriter) -> TextsWriter:
    """Writes what :class:`DocIds` reads."""
    return TextsWriter(writer, "ids")


def turns(doc_ids: pl.Series) -> tuple[Ints, Ints]:
    """The position of each document by falling id, and the document at each position [documents]: the order of ties."""
    by_turn = doc_ids.arg_sort(descending=True).to_numpy().astype(np.int32)
    turn = np.empty(len(by_turn), np.int32)
    turn[by_turn] = np.arange(len(by_turn), dtype=np.int32)
    return turn, by_turn


def write_turns(writer: IndexWriter, doc_ids: pl.Series) -> None:
    """Writes the order of ties of an index's documents."""
    for name, values in zip(_TURNS, turns(doc_ids), strict=True):
        write_array(writer.file(name), values, np.int32)


def read_turns(manifest: Manifest) -> tuple[Ints, Ints]:
    """What :func:`write_turns` wrote, mapped. Raises InputError if it does not fit."""
    turn, by_turn = (Mapped(manifest, name, np.int32, manifest.documents).array for name in _TURNS)
    return turn, by_turn


def write_array(path: Path, values: NDArray[np.generic], dtype: DTypeLike) -> None:
    """Writes numbers as :class:`Mapped` reads them."""
    # Not tofile, which does not say why a file cannot be written.
    with open(path, "wb") as stream:
        stream.write(np.ascontiguousarray(values, np.dtype(dtype).newbyteorder("<")).data)
