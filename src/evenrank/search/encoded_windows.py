"""Encoding a collection in windows: each is encoded once, whatever is interrupted.

The texts of each window are kept beside the index while it is built. The windows are the parts of the index's work.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from evenrank.files import EvenrankError, InputError, atomic_path
from evenrank.files.progress import progress
from evenrank.files.reading import reading_parquet
from evenrank.files.work import Report, Work
from evenrank.models.scorers import truncated_between, truncated_in_all
from evenrank.models.text_encoders import Encoded, TextEncoder

from .index_folder import IndexWriter
from .mapped import ids_writer

BATCHES = 64
"""Batches in a window: texts are sorted by length within it, and an interruption loses no more than one."""
LARGEST_HALF = 65504.0
"""The largest number of float16."""

Facts = dict[str, Any]


class RowFiles(Protocol):
    """Where the rows of a window are kept."""

    def store(self, folder: Path, number: int, start: int, rows: Encoded) -> Facts:
        """Writes the rows of a window, the first of which is row ``start`` of all; returns what tells that they are
        there, as JSON values."""

    def file(self, number: int) -> str | None:
        """The name of a window's own file; None if all share one."""

    def are_there(self, folder: Path, stored: Facts) -> bool:
        """Whether the rows are there for which :meth:`store` returned this."""


def write_windows(batches: Iterable[pl.DataFrame], writer: IndexWriter, size: int, *, quiet: bool = False) -> list[int]:
    """Writes the documents' ids and the texts of each window of ``size`` documents; returns the sizes of the windows.

    Where a window is encoded already, all this is there. Raises EvenrankError for an empty collection.
    """
    done = writer.work.done
    total = next(iter(done.values()))["documents"] if done else 0
    if not total:
        with progress("reading", quiet=quiet) as advance, ids_writer(writer) as ids:
            for number, window in enumerate(_of_size(batches, size)):
                ids.append(window["doc_id"])
                with atomic_path(_texts(writer.folder, number)) as part:
                    window.select("text").write_parquet(part)
                total += window.height
                advance(window.height)
    if not total:
        raise EvenrankError("the collection has no document")
    return [min(size, total - start) for start in range(0, total, size)]


def damaged(folder: Path) -> EvenrankError:
    """The error for an unfinished index whose files are not what was written."""
    return EvenrankError(f"{folder}: the beginning of the index is damaged: remove it, and start again")


def read_part(path: Path, columns: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """The Parquet file of a window. Raises EvenrankError for one without these ``columns``, or with nulls in them."""
    try:
        with reading_parquet(path):
            table = pl.read_parquet(path.read_bytes())
    except InputError:
        raise damaged(path.parent) from None
    if dict(table.schema) != dict(columns) or sum(table.null_count().row(0)):
        raise damaged(path.parent)
    return table


def _of_size(batches: Iterable[pl.DataFrame], size: int) -> Iterator[pl.DataFrame]:
    """The same documents in frames of ``size``; the last may be shorter."""
    waiting: list[pl.DataFrame] = []
    height = 0
    for batch in batches:
        waiting.append(batch.select("doc_id", "text"))
        height += batch.height
        if height >= size:
            whole = pl.concat(waiting)
            end = height - height % size
            yield from whole[:end].iter_slices(size)
            waiting, height = [whole[end:]], height - end
    if height:
        yield pl.concat(waiting)


@dataclass(frozen=True, slots=True)
class EncodingJob:
    """The windows of an index to encode."""

    encoder: TextEncoder
    folder: Path
    sizes: list[int]
    files: RowFiles

    def run(self, work: Work, *, quiet: bool = False) -> Facts:
        """Encodes the windows that are missing; returns the facts of the model, and what it has ``truncated``."""
        missing, total = self._missing(work), sum(self.sizes)
        with progress("encoding", total, quiet=quiet) as advance:
            advance(total - sum(self.sizes[number] for number in missing))
            for number in missing:
                work.keep(number, {"documents": total, **self._encode(number)}, self.files.file(number))
                # Only now, as its rows need it no longer.
                _texts(self.folder, number).unlink(missing_ok=True)
                advance(self.sizes[number])
        reports = list(work.done.values())
        if len({report["width"] for report in reports}) > 1:
            raise damaged(self.folder)
        truncated = truncated_in_all([report["truncated"] for report in reports])
        return {**reports[0]["facts"], "truncated": None if truncated is None else asdict(truncated)}

    def _missing(self, work: Work) -> list[int]:
        """The windows to encode. Raises EvenrankError if the texts of one are gone."""
        whole = [n for n, report in work.done.items() if self.files.are_there(self.folder, report["stored"])]
        missing = sorted({*range(len(self.sizes))}.difference(whole))
        if not all(_texts(self.folder, number).is_file() for number in missing):
            raise damaged(self.folder)
        return missing

    def _encode(self, number: int) -> Report:
        """Writes the rows of a window, by its number; returns what is known of them."""
        encoder = self.encoder
        texts = read_part(_texts(self.folder, number), {"text": pl.String()})["text"]
        if len(texts) != self.sizes[number]:
            raise damaged(self.folder)
        # The same text would not always get the same vector: that depends on its batch, in the last digits.
        distinct, before = texts.unique(maintain_order=True), encoder.truncated
        rows = encoder.documents(distinct.to_list())
        start = number * self.sizes[0]
        if len(distinct) < len(texts):
            place = distinct.to_frame().with_row_index("row")
            rows = rows[texts.to_frame().join(place, on="text", how="left", maintain_order="left")["row"].to_numpy()]
        _check(rows, encoder.name, start)
        stored = self.files.store(self.folder, number, start, rows)
        cut = truncated_between(before, encoder.truncated)
        return {"stored": stored, "width": rows.shape[1], "facts": encoder.facts(), "truncated": cut}


def _texts(folder: Path, number: int) -> Path:
    return folder / f"texts-{number:06d}.part"


def _check(rows: Encoded, name: str, start: int) -> None:
    """Raises EvenrankError for rows that are not finite, or do not fit in float16."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    largest = float(np.abs(values).max(initial=0.0))
    if largest <= LARGEST_HALF:
        return
    if np.isfinite(largest):
        raise EvenrankError(
            f"{name}: a vector has the number {largest:.6g}, and float16, in which they are kept, ends at 65504"
        )
    bad = np.flatnonzero(~np.isfinite(rows).all(1)) if isinstance(rows, np.ndarray) else csr_matrix(rows).tocoo().row
    first = int(bad[0] if isinstance(rows, np.ndarray) else bad[~np.isfinite(values)][0])
    raise EvenrankError(f"{name}: the vector of document {start + first + 1} is not finite")


class DenseRows:
    """Vectors as float16, row by row, in ``vectors.bin``."""

    def store(self, folder: Path, number: int, start: int, rows: Encoded) -> Facts:
        """See :class:`RowFiles`."""
        data = np.ascontiguousarray(rows, "<f2").tobytes()
        at = start * rows.shape[1] * 2
        with open(folder / "vectors.bin", "r+b") as stream:
            stream.seek(at)
            stream.write(data)
        return {"at": at, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    def file(self, number: int) -> str | None:
        """See :class:`RowFiles`."""
        return None

    def are_there(self, folder: Path, stored: Facts) -> bool:
        """See :class:`RowFiles`."""
        with open(folder / "vectors.bin", "rb") as stream:
            stream.seek(stored["at"])
            return bool(hashlib.sha256(stream.read(stored["bytes"])).hexdigest() == stored["sha256"])


class SparseRows:
    """Weights of terms, each window in a file, by row and term: ``row``, ``term``, ``weight``."""

    def store(self, folder: Path, number: int, start: int, rows: Encoded) -> Facts:
        """See :class:`RowFiles`."""
        entries = csr_matrix(rows).tocoo()
        table = pl.DataFrame(
            {
                "row": entries.row.astype(np.int32) + np.int32(start),
                "term": entries.col.astype(np.int32),
                "weight": entries.data,
            }
        )
        with atomic_path(folder / self.file(number)) as part:
            table.write_parquet(part)
        return {}

    def file(self, number: int) -> str:
        """See :class:`RowFiles`."""
        return f"weights-{number:06d}.part"

    def are_there(self, folder: Path, stored: Facts) -> bool:
        """See :class:`RowFiles`; the file's size was compared."""
        return True

    def read(self, folder: Path, number: int, terms: int) -> pl.DataFrame:
        """The weights of a window, as :meth:`store` wrote them. Raises EvenrankError if they cannot be read."""
        columns = {"row": pl.Int32(), "term": pl.Int32(), "weight": pl.Float32()}
        table = read_part(folder / self.file(number), columns)
        if not table["term"].is_between(0, terms - 1).all():
            raise damaged(folder)
        return table
