"""Encoding a collection in windows: each is encoded once, whatever is interrupted.

The rows of each window are kept beside the index while it is built: windows are the parts of the index's work. After an
interruption the collection is read again, and what is missing is encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import polars as pl
from scipy.sparse import csr_matrix, load_npz, save_npz

from evenrank.files import EvenrankError, atomic_path
from evenrank.files.progress import progress
from evenrank.files.work import Report
from evenrank.models.scorers import truncated_between, truncated_in_all
from evenrank.models.text_encoders import Encoded, TextEncoder

from .index_folder import IndexWriter, save_array
from .mapped import write_documents

BATCHES = 64
"""Batches in a window: texts are sorted by length within it, and an interruption loses no more than one."""
LARGEST_HALF = 65504.0
"""The largest number of float16."""

Facts = dict[str, Any]


def encode_windows(
    batches: Iterable[pl.DataFrame],
    encoder: TextEncoder,
    writer: IndexWriter,
    size: int,
    *,
    total: int | None = None,
    quiet: bool = False,
) -> tuple[Facts, list[int]]:
    """Encodes the windows of ``size`` documents that are missing, and writes the ids of all documents.

    ``total``: the number of documents, for the progress. Returns the facts of the model, with what it has
    ``truncated``, and the sizes of the windows. Raises EvenrankError for an empty collection.
    """
    ids, work = [], writer.work
    with progress("encoding", total, quiet=quiet) as advance:
        for number, window in enumerate(_of_size(batches, size)):
            # A copy: a long id may keep the text beside it in memory.
            ids.append(pl.Series("doc_id", window["doc_id"].to_list(), pl.String))
            if number not in work.done:
                report = _encode(encoder, window["text"], writer.file(_rows(number)), number * size)
                work.keep(number, report, _rows(number))
            advance(window.height)
    if not ids:
        raise EvenrankError("the collection has no document")
    write_documents(writer, pl.concat(ids))
    truncated = truncated_in_all([report["truncated"] for report in work.done.values()])
    facts = {**work.done[0]["facts"], "truncated": None if truncated is None else asdict(truncated)}
    return facts, [len(part) for part in ids]


def _of_size(batches: Iterable[pl.DataFrame], size: int) -> Iterator[pl.DataFrame]:
    """The same documents in frames of ``size``; the last may be shorter."""
    waiting: list[pl.DataFrame] = []
    height = 0
    for batch in batches:
        waiting.append(batch.select("doc_id", "text"))
        height += batch.height
        if height >= size:
            documents = pl.concat(waiting)
            end = height - height % size
            yield from documents[:end].iter_slices(size)
            waiting, height = [documents[end:]], height - end
    if height:
        yield pl.concat(waiting)


def _encode(encoder: TextEncoder, texts: pl.Series, out: Path, first: int) -> Report:
    """Writes the rows of a window, whose first document is the number ``first``; returns what is known of them."""
    # The same text would not always get the same vector: that depends on its batch, in the last digits.
    distinct, before = texts.unique(maintain_order=True), encoder.truncated
    rows = encoder.documents(distinct.to_list())
    if len(distinct) < len(texts):
        place = distinct.to_frame().with_row_index("row")
        rows = rows[texts.to_frame().join(place, on="text", how="left", maintain_order="left")["row"].to_numpy()]
    check_rows(rows, encoder.name, lambda row: f"document {first + row + 1}")
    with atomic_path(out) as part, part.open("wb") as stream:
        if isinstance(rows, np.ndarray):
            save_array(stream, rows.astype(np.float16))
        else:
            save_npz(stream, csr_matrix(rows))
    cut = truncated_between(before, encoder.truncated)
    return {"width": rows.shape[1], "facts": encoder.facts(), "truncated": cut}


def read_rows(folder: Path, number: int) -> Encoded:
    """The rows of a window, as they were encoded. Raises EvenrankError if they cannot be read."""
    try:
        stored = np.load(folder / _rows(number), allow_pickle=False)
        rows = stored if isinstance(stored, np.ndarray) else load_npz(folder / _rows(number))
    except (OSError, ValueError, EOFError, KeyError, SyntaxError, BadZipFile):
        raise EvenrankError(f"{folder}: the beginning of the index is damaged: remove it, and start again") from None
    return rows


def _rows(number: int) -> str:
    return f"rows-{number:06d}.part"


def check_rows(rows: Encoded, name: str, text: Callable[[int], str]) -> None:
    """Raises EvenrankError for rows that are not finite, or do not fit in float16; ``text``: what a row is of."""
    values = rows if isinstance(rows, np.ndarray) else rows.data
    if not np.abs(values).max(initial=0.0) <= LARGEST_HALF:
        table = csr_matrix(rows).tocoo()
        first = int(table.row[~(np.abs(table.data) <= LARGEST_HALF)].min())
        raise EvenrankError(
            f"{name}: the vector of {text(first)} has numbers that are not finite or beyond {LARGEST_HALF:.0f}, where"
            " float16 ends"
        )
