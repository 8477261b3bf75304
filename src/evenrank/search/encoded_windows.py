"""Encoding a collection in windows: each is encoded once, here or on a cluster, whatever is interrupted.

The texts of each window are kept beside the index while it is built, so that a window can be encoded anywhere. A
window is complete when its mark is there and its rows have the digest in it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix

from evenrank.files import EvenrankError, InputError, atomic_path, write_text
from evenrank.files.arguments import LARGEST
from evenrank.files.progress import progress
from evenrank.files.ray import Cluster, on_ray
from evenrank.files.reading import reading_parquet
from evenrank.models.text_encoders import Encoded, StoredEncoder, TextEncoder

from .index_folder import IndexWriter, are_facts, is_truncation
from .mapped import ids_writer

BATCHES = 64
"""Batches in a window: texts are sorted by length within it, and an interruption loses no more than one."""
LARGEST_HALF = 65504.0
"""The largest number of float16."""
_PLAN = "windows.json"

Facts = dict[str, object]


class RowFiles(Protocol):
    """Where the rows of a window are kept."""

    def store(self, folder: Path, number: int, start: int, rows: Encoded) -> str:
        """Writes the rows of a window, the first of which is row ``start`` of all, and returns their digest."""

    def digest(self, folder: Path, number: int, start: int, size: int, mark: Facts) -> str | None:
        """The digest of the ``size`` rows that are there; None if there are none."""


def write_windows(batches: Iterable[pl.DataFrame], writer: IndexWriter, size: int, *, quiet: bool = False) -> list[int]:
    """Writes the documents' ids and the texts of each window of ``size`` documents; returns the sizes of the windows.

    After an interruption, reads only what a completed call wrote. Raises EvenrankError for an empty collection.
    """
    plan = writer.file(_PLAN)
    if plan.is_file():
        return _planned(writer.folder, size)
    sizes: list[int] = []
    with progress("reading", quiet=quiet) as advance, ids_writer(writer) as ids:
        for window in _of_size(batches, size):
            ids.append(window["doc_id"])
            with atomic_path(_texts(writer.folder, len(sizes))) as part:
                window.select("text").write_parquet(part)
            sizes.append(window.height)
            advance(window.height)
    if not sizes:
        raise EvenrankError("the collection has no document")
    write_text(plan, json.dumps(sizes))
    return sizes


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


def _read_json(path: Path) -> object:
    """A JSON file of an unfinished index; None if there is none."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError):
        raise damaged(path.parent) from None


def _planned(folder: Path, size: int) -> list[int]:
    sizes = _read_json(folder / _PLAN)
    if not isinstance(sizes, list) or not sizes or not all(type(one) is int and 1 <= one <= size for one in sizes):
        raise damaged(folder)
    if any(one != size for one in sizes[:-1]):
        raise damaged(folder)
    return sizes


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
    """The windows of an index to encode, in this process or in those of a cluster, to which it is sent."""

    encoder: StoredEncoder | TextEncoder
    folder: Path
    sizes: list[int]
    files: RowFiles
    batch_size: int

    def __call__(self) -> Callable[[int], dict[str, object]]:
        """What a worker does: from the number of a window to how many rows it wrote."""
        encoder = self.encoder
        if isinstance(encoder, StoredEncoder):
            encoder = encoder.load(self.batch_size)
        return partial(self._encode, encoder)

    def run(self, cluster: Cluster | None, *, quiet: bool = False) -> Facts:
        """Encodes the windows that are missing; returns the facts of the model, and what it has ``truncated``."""
        missing = [number for number in range(len(self.sizes)) if not self._complete(number)]
        total = sum(self.sizes)
        kept = total - sum(self.sizes[number] for number in missing)
        with progress("encoding", total, quiet=quiet) as advance:
            advance(kept)
            for number, _ in self._work(missing, cluster) if missing else ():
                advance(self.sizes[number])
        marks = [self._mark(number) for number in range(len(self.sizes))]
        if any(mark is None or mark["width"] != self.width() for mark in marks):
            raise damaged(self.folder)
        facts = _known(marks[0])["facts"]
        assert isinstance(facts, dict)
        return {**facts, "truncated": _total([_known(mark)["truncated"] for mark in marks])}

    def _work(self, numbers: list[int], cluster: Cluster | None) -> Iterator[tuple[int, object]]:
        if cluster is not None:
            yield from on_ray(numbers, self, cluster, keep=True)
            return
        work = self()
        yield from ((number, work(number)) for number in numbers)

    def _encode(self, encoder: TextEncoder, number: int) -> dict[str, object]:
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
        digest = self.files.store(self.folder, number, start, rows)
        cut = None
        if before is not None and encoder.truncated is not None:
            cut = asdict(encoder.truncated - before)
        mark = {"sha256": digest, "width": rows.shape[1], "facts": encoder.facts(), "truncated": cut}
        write_text(self._mark_path(number), json.dumps(mark))
        # Only now, as its rows need it no longer.
        _texts(self.folder, number).unlink(missing_ok=True)
        return {"rows": len(texts)}

    def width(self) -> int:
        """The numbers of a vector, or the terms that can have a weight."""
        width = _known(self._mark(0))["width"]
        assert isinstance(width, int)
        return width

    def _complete(self, number: int) -> bool:
        mark = self._mark(number)
        start, size = number * self.sizes[0], self.sizes[number]
        if mark is not None and self.files.digest(self.folder, number, start, size, mark) == mark["sha256"]:
            return True
        if not _texts(self.folder, number).is_file():
            raise damaged(self.folder)
        return False

    def _mark(self, number: int) -> Facts | None:
        """What is known of a complete window; None if it is not complete. Raises EvenrankError for a damaged mark."""
        found = _read_json(self._mark_path(number))
        if found is None:
            return None
        sound = isinstance(found, dict) and isinstance(found.get("sha256"), str) and are_facts(found.get("facts"))
        if not isinstance(found, dict) or not sound or not is_truncation(found.get("truncated", "")):
            raise damaged(self.folder)
        width = found.get("width")
        if type(width) is not int or not 1 <= width <= LARGEST:
            raise damaged(self.folder)
        return found

    def _mark_path(self, number: int) -> Path:
        return self.folder / f"done-{number:06d}.json"


def _texts(folder: Path, number: int) -> Path:
    return folder / f"texts-{number:06d}.part"


def _known(mark: Facts | None) -> Facts:
    assert mark is not None
    return mark


def _total(cuts: list[object]) -> Facts | None:
    """The sum of what windows truncated; None if that is not known of all."""
    counts = [cut for cut in cuts if isinstance(cut, dict)]
    if len(counts) < len(cuts):
        return None
    return {**counts[0], **{name: sum(int(cut[name]) for cut in counts) for name in ("cut", "of", "lost_end")}}


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

    def store(self, folder: Path, number: int, start: int, rows: Encoded) -> str:
        """See :class:`RowFiles`."""
        data = np.ascontiguousarray(rows, "<f2").tobytes()
        with open(folder / "vectors.bin", "r+b") as stream:
            stream.seek(start * rows.shape[1] * 2)
            stream.write(data)
        return hashlib.sha256(data).hexdigest()

    def digest(self, folder: Path, number: int, start: int, size: int, mark: Facts) -> str | None:
        """See :class:`RowFiles`."""
        width = mark["width"]
        assert isinstance(width, int)
        try:
            with open(folder / "vectors.bin", "rb") as stream:
                if os.fstat(stream.fileno()).st_size < (start + size) * width * 2:
                    return None
                stream.seek(start * width * 2)
                return hashlib.sha256(stream.read(size * width * 2)).hexdigest()
        except OSError:
            return None


class SparseRows:
    """Weights of terms, each window in a file, by row and term: ``row``, ``term``, ``weight``."""

    def store(self, folder: Path, number: int, start: int, rows: Encoded) -> str:
        """See :class:`RowFiles`."""
        entries = csr_matrix(rows).tocoo()
        table = pl.DataFrame(
            {
                "row": entries.row.astype(np.int32) + np.int32(start),
                "term": entries.col.astype(np.int32),
                "weight": entries.data,
            }
        )
        with atomic_path(self.path(folder, number)) as part:
            table.write_parquet(part)
        return self._sha256(folder, number)

    def digest(self, folder: Path, number: int, start: int, size: int, mark: Facts) -> str | None:
        """See :class:`RowFiles`."""
        try:
            return self._sha256(folder, number)
        except OSError:
            return None

    def read(self, folder: Path, number: int, start: int, size: int, terms: int) -> pl.DataFrame:
        """The weights of a window, as :meth:`store` wrote them. Raises EvenrankError if they cannot be."""
        columns = {"row": pl.Int32(), "term": pl.Int32(), "weight": pl.Float32()}
        table = read_part(self.path(folder, number), columns)
        inside = pl.col("row").is_between(start, start + size - 1) & pl.col("term").is_between(0, terms - 1)
        if not table.select((inside & pl.col("weight").is_finite()).all()).item():
            raise damaged(folder)
        return table

    @staticmethod
    def path(folder: Path, number: int) -> Path:
        """The file of a window."""
        return folder / f"weights-{number:06d}.part"

    def _sha256(self, folder: Path, number: int) -> str:
        with open(self.path(folder, number), "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
