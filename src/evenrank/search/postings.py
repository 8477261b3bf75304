"""Postings: the documents that have a term, each with a score; gathered, kept in files, searched.

BM25's words and the terms that a sparse model weighs are the same here: a document's score is the sum, over the terms
of the query, of the term's weight in the query times the score of its posting.

The files of an index: ``scores`` float32 and ``documents`` int32 [postings], those of term t from ``starts``[t] on,
int64 [terms + 1]; ``turn`` and ``by-turn`` int32 [documents], the order of ties.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple, Self, TypeVar

import numpy as np
import polars as pl
from numpy.typing import DTypeLike, NDArray

from evenrank.files import EvenrankError, InputError

from .expansion import Ints
from .index_folder import IndexWriter, Manifest, save_array
from .mapped import Texts, read_turns

T = TypeVar("T")
Floats = NDArray[np.float32]
Starts = NDArray[np.int64]
_CHUNK, _CELLS = 256, 1 << 23
"""Queries searched at once, and the cells of their results (64 MB)."""


class Batch(NamedTuple):
    """The postings of a batch of documents, sorted by ``term`` and then ``document``, with their ``values``."""

    term: Ints
    document: Ints
    values: NDArray[np.generic]


class Gathered:
    """Postings that come in batches of documents, and are then given in the order of terms; a context manager.

    ``file``: keeps them there, otherwise in memory.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._stream: IO[bytes] | None = None if file is None else file.open("w+b")
        self._kept: list[Batch | int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()

    def gather(self, batch: Batch) -> None:
        """Adds a batch, whose documents follow those of all before."""
        if self._stream is None:
            self._kept.append(batch)
            return
        self._kept.append(self._stream.tell())
        for array in batch:
            save_array(self._stream, array)

    def batches(self) -> Iterator[Batch]:
        """All of them, in order."""
        for entry in list(self._kept):
            if isinstance(entry, Batch):
                yield entry
            else:
                assert self._stream is not None
                self._stream.seek(entry)
                yield Batch(*(np.load(self._stream) for _ in Batch._fields))

    def starts(self, terms: int) -> Starts:
        """Where the postings of each of ``terms`` begin among all [terms + 1], the end of the last included."""
        frequency = np.zeros(terms, np.int64)
        for batch in self.batches():
            frequency += np.bincount(batch.term, minlength=terms)
        return starts_of(frequency)

    def by_term(self, starts: Starts, values: Floats, documents: Ints) -> None:
        """Fills the values and the documents [postings] of all terms, in the order of terms."""
        free = starts[:-1].copy()
        for batch in self.batches():
            first = np.flatnonzero(np.diff(batch.term, prepend=-1))
            sizes = np.diff(first, append=len(batch.term))
            of_term = batch.term[first]
            place = np.arange(len(batch.term)) + np.repeat(free[of_term] - first, sizes)
            values[place], documents[place] = batch.values, batch.document
            free[of_term] += sizes


def starts_of(sizes: Ints) -> Starts:
    """Where each of several parts begins [parts + 1], the end of the last included."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def new_array(writer: IndexWriter | None, name: str, dtype: DTypeLike, size: int) -> NDArray[Any]:
    """An array to be filled: a file of an index, or in memory."""
    return np.empty(size, dtype) if writer is None else writer.new_array(name, dtype, size)


def new_postings(writer: IndexWriter | None, starts: Starts) -> tuple[Floats, Ints]:
    """Room for the scores and the documents of postings: in the files of an index, with their ``starts``, or memory."""
    if writer is not None:
        save_array(writer.file("starts.npy"), starts)
    size = int(starts[-1])
    return new_array(writer, "scores.npy", np.float32, size), new_array(writer, "documents.npy", np.int32, size)


@dataclass(frozen=True, slots=True)
class Postings:
    """Postings to search: scores ``data`` and documents ``indices`` [postings], those of term t from ``indptr``[t] on.

    ``turn`` [documents]: the position of each document in the order of ties; ``by_turn``: the document at each.
    """

    data: Floats
    indices: Ints
    indptr: Starts
    turn: Ints
    by_turn: Ints

    @classmethod
    def open(cls, manifest: Manifest, terms: int | None = None) -> Postings:
        """Those of an index, mapped; ``terms``: how many there are. Raises InputError for files that do not fit."""
        starts = manifest.array("starts.npy", np.int64, None if terms is None else terms + 1)
        documents = manifest.array("documents.npy", np.int32)
        scores = manifest.array("scores.npy", np.float32, len(documents))
        if not len(starts) or starts[0] != 0 or starts[-1] != len(documents) or (np.diff(starts) < 0).any():
            raise InputError(manifest.path, "the index is damaged: starts.npy does not fit the other files")
        return cls(scores, documents, starts, *read_turns(manifest))

    @property
    def terms(self) -> int:
        """The number of terms."""
        return len(self.indptr) - 1

    def in_threads(self, queries: int, k: int, search: Callable[[slice], T]) -> Iterator[T]:
        """What ``search`` returns for some of the queries at once, in order, on all cores."""
        threads = os.cpu_count() or 1
        size = min(_CHUNK, -(-queries // threads))
        size = max(1, min(size, _CELLS // min(k, len(self.turn))))
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(search, (slice(first, first + size) for first in range(0, queries, size)))

    def search(self, terms: Ints, weights: Floats, starts: Starts, k: int) -> tuple[NDArray[np.int32], Floats, Starts]:
        """The first k' = min(k, N) documents [Q, k'] of each query, their scores [Q, k'], and how many there are [Q].

        ``terms``, ``weights``: those of all queries, query by query from ``starts`` [Q + 1] on. A document without a
        term of the query is left out. Raises IndexError where numbers lead out of the index.
        """
        from evenrank.files.compiled import unwritable

        from ._searching import UNSEEN, search

        size, queries = len(self.turn), len(starts) - 1
        if len(terms) and not 0 <= terms.min() <= terms.max() < self.terms:
            raise IndexError("a term is not in the index")
        wide = min(k, size)
        documents = np.empty((queries, wide), np.int32)
        scores = np.empty((queries, wide), np.float32)
        room = np.full(size, UNSEEN, np.float32), np.empty(size, np.int32)
        arrays = unwritable(self.data, self.indices, self.indptr, self.turn, self.by_turn, terms)
        count = search(*arrays, weights, starts, wide, documents, scores, *room)
        if (count < 0).any():
            raise IndexError("a posting leads to a document that is not in the index")
        return documents, scores, count


Documents = pl.Series | Texts
"""The ids of documents, in memory or those of an index on disk."""


def found_rows(documents: NDArray[np.int32], scores: Floats, count: Starts, large: str) -> pl.DataFrame:
    """``query`` (a row), ``document``, ``score``, ``rank``: the first ``count`` [Q] of each row of the arrays [Q, k].

    Raises EvenrankError for scores that are not finite: what is too ``large``.
    """
    rank = np.broadcast_to(np.arange(1, documents.shape[1] + 1, dtype=np.uint32), documents.shape)
    present = rank <= count[:, None]
    if not np.isfinite(scores[present]).all():
        raise EvenrankError(f"the scores of a query are not finite: {large} are too large")
    query = np.repeat(np.arange(len(count)), count)
    columns = {"document": documents[present], "score": scores[present], "rank": rank[present]}
    return pl.DataFrame({"query": query, **columns})


def run_table(found: pl.DataFrame, query_ids: pl.Series, doc_ids: Documents) -> pl.DataFrame:
    """A run's table of the rows that were found, which are grouped by query and ranked, without repeated documents."""
    return pl.DataFrame(
        [
            query_ids.gather(found["query"]).cast(pl.String).alias("query_id"),
            doc_ids.gather(found["document"]).alias("doc_id"),
            found["score"].cast(pl.Float64),
            found["rank"],
        ]
    )
