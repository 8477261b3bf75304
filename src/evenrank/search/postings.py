"""Postings: the documents that have a term, each with a score; gathered, kept in files, searched.

BM25's words and the terms that a sparse model weighs are the same here: a document's score is the sum, over the terms
of the query, of the term's weight in the query times the score of its posting.

The files of an index (numbers are little endian): ``scores`` float32 and ``documents`` int32 [postings], those of term
t from ``starts``[t] on, int64 [terms + 1]; ``turn`` and ``by-turn`` int32 [documents], the order of ties.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from evenrank.files import EvenrankError, InputError

from .expansion import Ints
from .index_folder import IndexWriter, Manifest
from .mapped import Mapped, read_turns, write_array

T = TypeVar("T")
Floats = NDArray[np.float32]
Starts = NDArray[np.int64]
BLOCK = 1 << 24
"""Postings put in the order of terms at once where they are written to a file: 128 MB."""
_CHUNK, _CELLS = 256, 1 << 23
"""Queries searched at once, and the cells of their results (64 MB)."""
_AT_ONCE = 1 << 22
"""Mapped postings that a thread reads before it gives their memory back: 32 MB."""
_ROOM = 1 << 28
"""Bytes that the sums of scores of all threads take in a search of mapped postings, which bound the threads."""


class _Batch(NamedTuple):
    """The postings of a batch: distinct ``terms``, rising, with the end of the postings of each."""

    terms: Ints
    ends: Starts
    read: Callable[[int, int], tuple[Ints, Floats]]
    """The documents and the values of the postings from one to another."""


class Gathered:
    """Postings that come in batches of documents, and are then given in the order of terms; a context manager.

    ``file``: keeps them there, otherwise in memory.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._open = ExitStack()
        self._stream: IO[bytes] | None = None
        if file is not None:
            self._stream = self._open.enter_context(file.open("w+b"))
        self._batches: list[_Batch] = []

    def __enter__(self) -> Gathered:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def gather(self, term: Ints, document: Ints, values: NDArray[np.generic]) -> None:
        """Adds a batch [postings], sorted by term and then document, whose documents follow those of all before.

        ``values``: scores, or what they are computed from; of any type of numbers, kept as they are.
        """
        ends = np.append(np.flatnonzero(np.diff(term)) + 1, len(term)) if len(term) else np.empty(0, np.int64)
        self._batches.append(_Batch(term[ends - 1], ends, self._kept(document, values)))

    def _kept(self, document: Ints, values: NDArray[np.generic]) -> Callable[[int, int], tuple[Ints, Floats]]:
        if self._stream is None:
            return lambda start, end: (document[start:end], values[start:end].astype(np.float32))
        stream, at, size, kind = self._stream, self._stream.tell(), len(values), values.dtype
        stream.write(np.ascontiguousarray(document, np.int32).data)
        stream.write(np.ascontiguousarray(values).data)

        def read(start: int, end: int) -> tuple[Ints, Floats]:
            stream.seek(at + 4 * start)
            documents = np.frombuffer(stream.read(4 * (end - start)), np.int32)
            stream.seek(at + 4 * size + kind.itemsize * start)
            return documents, np.frombuffer(stream.read(kind.itemsize * (end - start)), kind).astype(np.float32)

        return read

    def starts(self, terms: int) -> Starts:
        """Where the postings of each of ``terms`` begin among all [terms + 1], the end of the last included."""
        frequency = np.zeros(terms, np.int64)
        for batch in self._batches:
            frequency[batch.terms] += np.diff(batch.ends, prepend=0)
        return starts_of(frequency)

    def by_term(self, starts: Starts, most: int = BLOCK) -> Iterator[tuple[int, int, Floats, Ints]]:
        """The values and the documents of the terms from one to another: all, in blocks of about ``most`` postings."""
        from evenrank.files.compiled import unwritable

        from ._searching import scatter

        free = starts[:-1].copy()
        first = 0
        while first < len(free):
            # At least one term.
            last = max(first + 1, int(np.searchsorted(starts, starts[first] + most, side="right")) - 1)
            size = int(starts[last] - starts[first])
            data, indices = np.empty(size, np.float32), np.empty(size, np.int32)
            for batch in self._batches:
                low, high = np.searchsorted(batch.terms, [first, last])
                if low < high:
                    start = int(batch.ends[low - 1]) if low else 0
                    documents, values = unwritable(*batch.read(start, int(batch.ends[high - 1])))
                    ends = batch.ends[low:high] - start
                    scatter(batch.terms[low:high], ends, documents, values, free, starts[first], data, indices)
            yield first, last, data, indices
            first = last


def starts_of(sizes: Ints) -> Starts:
    """Where each of several parts begins [parts + 1], the end of the last included."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def write_postings(writer: IndexWriter, starts: Starts, blocks: Iterable[tuple[Floats, Ints]]) -> None:
    """Writes ``starts``, and the scores and documents of the postings, block by block."""
    write_array(writer.file("starts.bin"), starts, np.int64)
    with open(writer.file("scores.bin"), "wb") as scores, open(writer.file("documents.bin"), "wb") as documents:
        for data, indices in blocks:
            scores.write(data.data)
            documents.write(indices.data)


@dataclass(frozen=True, slots=True)
class Postings:
    """Postings to search: scores ``data`` and documents ``indices`` [postings], those of term t from ``indptr``[t] on.

    ``turn`` [documents]: the position of each document in the order of ties; ``by_turn``: the document at each.
    ``release(terms)`` gives back the memory of mapped postings that were read; None: they are in memory.
    """

    data: Floats
    indices: Ints
    indptr: Starts
    turn: Ints
    by_turn: Ints
    release: Callable[[Ints], None] | None = None

    @classmethod
    def open(cls, manifest: Manifest, terms: int | None = None) -> Postings:
        """Those of an index, mapped; ``terms``: how many there are. Raises InputError for files that do not fit."""
        starts = Mapped(manifest, "starts.bin", np.int64, None if terms is None else terms + 1)
        documents = Mapped(manifest, "documents.bin", np.int32)
        scores = Mapped(manifest, "scores.bin", np.float32, len(documents.array))
        if not len(starts.array) or starts.array[0] != 0 or starts.array[-1] != len(documents.array):
            raise InputError(manifest.path, "the index is damaged: starts.bin does not fit the other files")

        def release(read: Ints) -> None:
            for term in np.unique(read).tolist():
                for file in (documents, scores):
                    file.release(int(starts.array[term]), int(starts.array[term + 1]))

        return cls(scores.array, documents.array, starts.array, *read_turns(manifest), release)

    @property
    def terms(self) -> int:
        """The number of terms."""
        return len(self.indptr) - 1

    def in_threads(self, queries: int, k: int, search: Callable[[slice], T]) -> Iterator[T]:
        """What ``search`` returns for some of the queries at once, in order, on as many threads as memory allows."""
        threads = os.cpu_count() or 1
        if self.release is not None:
            threads = max(1, min(threads, _ROOM // (8 * len(self.turn))))
        size = min(_CHUNK, -(-queries // threads))
        size = max(1, min(size, _CELLS // min(k, len(self.turn))))
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(search, (slice(first, first + size) for first in range(0, queries, size)))

    def search(self, terms: Ints, weights: Floats, starts: Starts, k: int) -> tuple[NDArray[np.int32], Floats, Starts]:
        """The first k' = min(k, N) documents [Q, k'] of each query, their scores [Q, k'], and how many there are [Q].

        ``terms``, ``weights``: those of all queries, query by query from ``starts`` [Q + 1] on. A document without a
        term of the query is left out. Raises EvenrankError where numbers lead out of the index.
        """
        from evenrank.files.compiled import unwritable

        from ._searching import UNSEEN, search

        size, queries = len(self.turn), len(starts) - 1
        wide = min(k, size)
        documents = np.empty((queries, wide), np.int32)
        scores = np.empty((queries, wide), np.float32)
        count = np.zeros(queries, np.int64)
        room = np.full(size, UNSEEN, np.float32), np.empty(size, np.int32)
        given = unwritable(self.data, self.indices, self.indptr, self.turn, self.by_turn, terms)
        for first, last in self._pieces(terms, starts):
            own = slice(first, last)
            count[own] = search(*given, weights, starts[first : last + 1], wide, documents[own], scores[own], *room)
            if self.release is not None:
                self.release(terms[starts[first] : starts[last]])
        if (count < 0).any():
            raise EvenrankError("the index is damaged: a posting leads to a document that is not in it")
        return documents, scores, count

    def _pieces(self, terms: Ints, starts: Starts) -> Iterator[tuple[int, int]]:
        """The queries that are searched at once: all, or as many as have ``_AT_ONCE`` mapped postings; at least one."""
        if self.release is None:
            yield 0, len(starts) - 1
            return
        begin, end = self.indptr[terms], self.indptr[terms + 1]
        if (begin < 0).any() or (end < begin).any() or (end > len(self.indices)).any():
            raise EvenrankError("the index is damaged: the postings of a term are not in it")
        reached = starts_of(end - begin)[starts]
        first = 0
        while first < len(starts) - 1:
            last = max(first + 1, int(np.searchsorted(reached, reached[first] + _AT_ONCE, side="right")) - 1)
            yield first, last
            first = last
