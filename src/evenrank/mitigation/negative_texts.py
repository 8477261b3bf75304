"""The texts that negatives are written with, kept on disk until they are needed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evenrank.io import EvenrankError
from evenrank.io.tables import IdIndex, text_bytes
from evenrank.io.types import Array

from .negative_documents import PathLike, texts_of

if TYPE_CHECKING:
    import pyarrow as pa


class TextFile:
    """Texts of some documents in an unnamed file, which the system may cache in memory."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed on leaving
        self._slot = np.zeros(0, np.int32)
        self._texts: pa.Array | None = None

    def __enter__(self) -> TextFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._texts = None
        self._file.close()

    def fill(self, places: list[Array], index: IdIndex, collection: PathLike | pl.DataFrame) -> None:
        """Writes the texts of the documents at ``places`` of the index. Raises EvenrankError if some are missing."""
        import mmap

        import pyarrow as pa

        wanted = np.zeros(max((int(part.max()) for part in places if len(part)), default=-1) + 1, dtype=bool)
        for part in places:
            wanted[part] = True
        self._slot = np.full(len(wanted), -1, np.int32)
        lengths, count = [np.zeros(1, np.int64)], 0
        for batch in texts_of(collection):
            place = index.places(batch["doc_id"])
            chosen = np.flatnonzero((place >= 0) & (place < len(wanted)))
            chosen = chosen[wanted[place[chosen]]]
            data, begins = text_bytes(batch["text"].gather(chosen))
            self._file.write(data[begins[0] : begins[-1]].tobytes())
            self._slot[place[chosen]] = np.arange(count, count + len(chosen))
            count += len(chosen)
            lengths.append(np.diff(begins))
        lacking = int((wanted & (self._slot < 0)).sum())
        if lacking:
            source = "the collection" if isinstance(collection, pl.DataFrame) else os.fspath(collection)
            raise EvenrankError(f"{lacking} of the scored documents are not in {source}")
        self._file.flush()
        offsets = np.cumsum(np.concatenate(lengths))
        stored = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) if offsets[-1] else b""
        self._texts = pa.LargeStringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(stored))

    def take(self, places: Array) -> pa.Array:
        """The texts of the documents at ``places``, as a pyarrow column."""
        import pyarrow as pa

        assert self._texts is not None
        return self._texts.take(pa.array(self._slot[places])).cast(pa.string())
