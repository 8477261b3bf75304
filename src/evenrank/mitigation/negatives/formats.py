"""Query groups as the tables that are written: by id, or with texts taken from the collection."""

from __future__ import annotations

import itertools
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from evenrank.io import EvenrankError
from evenrank.io.streams import TableWriter
from evenrank.io.tables import IdIndex, text_bytes

from .documents import PathLike, texts_of
from .groups import Groups
from .sampling import Array

_TEXTS = 1 << 15


def group_table(groups: Groups, sign: Array | None) -> Any:
    """The format ``groups`` as a table (pyarrow); ``sign``: the bias label of each document of the collection [D]."""
    import pyarrow as pa

    lists = {"doc_id": _arrow(groups.doc_id), "label": pa.array(groups.label, pa.int32())}
    if sign is not None:
        lists["group"] = pa.array(sign[groups.place], pa.int8())
    starts = pa.array(groups.starts, pa.int32())
    columns = {name: pa.ListArray.from_arrays(starts, values) for name, values in lists.items()}
    return pa.table({"query_id": _arrow(groups.query_id), **columns})


def _arrow(texts: pl.Series) -> Any:
    import pyarrow as pa

    return texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


def write_texts(
    groups: list[Groups],
    writer: TableWriter,
    format: str,
    n: int,
    index: IdIndex,
    collection: PathLike | pl.DataFrame,
    queries: pl.DataFrame,
    folder: Path,
) -> None:
    """The formats that hold texts: what is wanted of the collection goes to a file first, to be taken from there."""
    import pyarrow as pa

    known = IdIndex([queries["query_id"].cast(pl.String)])
    query_texts = queries["text"]
    with _TextFile(folder) as texts:
        texts.fill([chunk.place for chunk in groups], index, collection)
        for chunk in groups:
            asked = query_texts.gather(known.places(chunk.query_id))
            # Parts of whole queries with some ten thousand texts.
            cuts = np.unique(np.searchsorted(chunk.starts, np.arange(0, chunk.starts[-1] + _TEXTS, _TEXTS)))
            cuts = cuts.clip(max=len(chunk.query_id))
            for start, end in itertools.pairwise(np.unique(np.append(0, cuts)).tolist()):
                first, last = chunk.starts[start], chunk.starts[end]
                starts, place = chunk.starts[start : end + 1] - first, chunk.place[first:last]
                label, query = chunk.label[first:last], _arrow(asked[start:end])
                if format == "labeled-list":
                    offsets = pa.array(starts, pa.int32())
                    docs = pa.ListArray.from_arrays(offsets, texts.take(place))
                    labels = pa.ListArray.from_arrays(offsets, pa.array(label, pa.int32()))
                    writer.write(pa.table({"query": query, "docs": docs, "labels": labels}))
                elif format == "labeled-pair":
                    of_query = np.repeat(np.arange(end - start), np.diff(starts))
                    relevant = pa.array((label >= 1).astype(np.float32), pa.float32())
                    columns = {"query": query.take(pa.array(of_query)), "passage": texts.take(place), "label": relevant}
                    writer.write(pa.table(columns))
                else:
                    writer.write(_tuples(query, starts, chunk.positives[start:end], place, n, texts))


def _tuples(query: Any, starts: Array, positives: Array, place: Array, n: int, texts: _TextFile) -> Any:
    import pyarrow as pa

    enough = np.flatnonzero(np.diff(starts) - positives == n)
    of_query = np.repeat(enough, positives[enough])
    begins = np.cumsum(positives[enough]) - positives[enough]
    nth = np.arange(len(of_query)) - np.repeat(begins, positives[enough])
    columns = {"anchor": query.take(pa.array(of_query)), "positive": texts.take(place[starts[of_query] + nth])}
    first = starts[of_query] + positives[of_query]
    for number in range(n):
        columns[f"negative_{number + 1}"] = texts.take(place[first + number])
    return pa.table(columns)


class _TextFile:
    """Texts of some documents in a file without a name, which the system may keep in memory or not."""

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed on leaving
        self._slot = np.zeros(0, np.int32)
        self._texts: Any = None

    def __enter__(self) -> _TextFile:
        return self

    def __exit__(self, *error: object) -> None:
        self._texts = None
        self._file.close()

    def fill(self, places: list[Array], index: IdIndex, collection: PathLike | pl.DataFrame) -> None:
        """Writes the texts of the documents at ``places`` of the index. Raises EvenrankError where some are lacking."""
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

    def take(self, places: Array) -> Any:
        """The texts of the documents at ``places``, as a pyarrow column."""
        import pyarrow as pa

        return self._texts.take(pa.array(self._slot[places])).cast(pa.string())
