"""Encoding a collection in windows: each is encoded once, whatever is interrupted.

The texts of each window, and then its rows, are kept beside the index while it is built. The windows are the parts of
the index's work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix, load_npz, save_npz

from evenrank.files import EvenrankError, InputError, atomic_path
from evenrank.files.progress import progress
from evenrank.files.reading import reading_parquet
from evenrank.files.work import Report, Work
from evenrank.models.scorers import truncated_between, truncated_in_all
from evenrank.models.text_encoders import Encoded, TextEncoder

from .index_folder import IndexWriter, save_array
from .mapped import write_documents

BATCHES = 64
"""Batches in a window: texts are sorted by length within it, and an interruption loses no more than one."""
LARGEST_HALF = 65504.0
"""The largest number of float16."""

Facts = dict[str, Any]


def write_windows(batches: Iterable[pl.DataFrame], writer: IndexWriter, size: int, *, quiet: bool = False) -> list[int]:
    """Writes the documents' ids and the texts of each window of ``size`` documents; returns the sizes of the windows.

    Where a window is encoded already, all this is there. Raises EvenrankError for an empty collection.
    """
    done = writer.work.done
    total = next(iter(done.values()))["documents"] if done else 0
    if not total:
        ids = []
        with progress("reading", quiet=quiet) as advance:
            for number, window in enumerate(_of_size(batches, size)):
                ids.append(window["doc_id"])
                with atomic_path(_texts(writer.folder, number)) as part:
                    window.select("text").write_parquet(part)
                total += window.height
                advance(window.height)
        if total:
            write_documents(writer, pl.concat(ids))
    if not total:
        raise EvenrankError("the collection has no document")
    return [min(size, total - start) for start in range(0, total, size)]


def damaged(folder: Path) -> EvenrankError:
    """The error for an unfinished index whose files are not what was written."""
    return EvenrankError(f"{folder}: the beginning of the index is damaged: remove it, and start again")


def _read_texts(path: Path) -> pl.Series:
    """The texts of a window. Raises EvenrankError if they are not what was written."""
    try:
        with reading_parquet(path):
            table = pl.read_parquet(path.read_bytes())
    except InputError:
        raise damaged(path.parent) from None
    if dict(table.schema) != {"text": pl.String()} or table["text"].null_count():
        raise damaged(path.parent)
    return table["text"]


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

    def run(self, work: Work, *, quiet: bool = False) -> Facts:
        """Encodes the windows that are missing; returns the facts of the model, and what it has ``truncated``."""
        missing, total = self._missing(work), sum(self.sizes)
        with progress("encoding", total, quiet=quiet) as advance:
            advance(total - sum(self.sizes[number] for number in missing))
            for number in missing:
                work.keep(number, {"documents": total, **self._encode(number)}, _rows(number))
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
        missing = sorted({*range(len(self.sizes))}.difference(work.done))
        if not all(_texts(self.folder, number).is_file() for number in missing):
            raise damaged(self.folder)
        return missing

    def _encode(self, number: int) -> Report:
        """Writes the rows of a window, by its number; returns what is known of them."""
        encoder = self.encoder
        texts = _read_texts(_texts(self.folder, number))
        if len(texts) != self.sizes[number]:
            raise damaged(self.folder)
        # The same text would not always get the same vector: that depends on its batch, in the last digits.
        distinct, before = texts.unique(maintain_order=True), encoder.truncated
        rows = encoder.documents(distinct.to_list())
        if len(distinct) < len(texts):
            place = distinct.to_frame().with_row_index("row")
            rows = rows[texts.to_frame().join(place, on="text", how="left", maintain_order="left")["row"].to_numpy()]
        _check(rows, encoder.name, number * self.sizes[0])
        with atomic_path(self.folder / _rows(number)) as part, part.open("wb") as stream:
            if isinstance(rows, np.ndarray):
                save_array(stream, rows.astype(np.float16))
            else:
                save_npz(stream, csr_matrix(rows))
        cut = truncated_between(before, encoder.truncated)
        return {"width": rows.shape[1], "facts": encoder.facts(), "truncated": cut}


def read_rows(folder: Path, number: int, width: int) -> Encoded:
    """The rows of a window, as they were encoded. Raises EvenrankError if they cannot be read."""
    try:
        stored = np.load(folder / _rows(number), allow_pickle=False)
        rows = stored if isinstance(stored, np.ndarray) else load_npz(folder / _rows(number))
    except (OSError, ValueError, EOFError, KeyError, SyntaxError, BadZipFile):
        raise damaged(folder) from None
    if rows.shape[1] != width:
        raise damaged(folder)
    return rows


def _texts(folder: Path, number: int) -> Path:
    return folder / f"texts-{number:06d}.part"


def _rows(number: int) -> str:
    return f"rows-{number:06d}.part"


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
