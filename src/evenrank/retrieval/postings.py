"""From the terms of documents, batch by batch, to scored postings by term: in memory, or through a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .rm3 import Forward, Ints

_BLOCK = 1 << 24
"""Postings scored at once where they are written to a file: 128 MB."""


class Postings(NamedTuple):
    """Scores ``data`` and documents ``indices`` [postings], sorted by term; those of term t from ``indptr``[t] on."""

    data: NDArray[np.float32]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]


class _Batch(NamedTuple):
    """The postings of a batch: distinct ``terms``, rising, with the end of the postings of each."""

    terms: Ints
    ends: Ints
    read: Callable[[int, int], tuple[Ints, Ints]]
    """The documents and the term frequencies of the postings from one to another."""


class Counts:
    """How often each term is in each document. ``file``: keeps them there, otherwise in memory; a context manager.

    ``forward``: what is given, for each batch, the number of terms of each document, and terms and frequencies by
    document.
    """

    def __init__(self, file: Path | None = None, forward: Callable[[Ints, Ints, Ints], None] | None = None) -> None:
        self._open = ExitStack()
        self._stream: IO[bytes] | None = None
        if file is not None:
            self._stream = self._open.enter_context(file.open("w+b"))
        self._forward = forward
        self._batches: list[_Batch] = []
        self._lengths: list[NDArray[np.int32]] = []
        self.documents = 0

    def __enter__(self) -> Counts:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def add(self, terms: pl.DataFrame, documents: int) -> None:
        """Adds the next ``documents``: ``text`` (row among them) and ``term``, a row for each occurrence."""
        text, first = terms["text"].to_numpy(), self.documents
        self._lengths.append(np.bincount(text, minlength=documents).astype(np.int32))
        self.documents += documents
        # One sort of packed numbers: many times faster than grouping by two columns.
        packed = np.sort((terms["term"].to_numpy().astype(np.int64) << 32) | text)
        starts = np.flatnonzero(np.diff(packed, prepend=-1))
        tf = np.diff(starts, append=len(packed)).astype(np.int32)
        once = packed[starts]
        term, document = (once >> 32).astype(np.int32), (once & 0xFFFFFFFF).astype(np.int32)
        del packed, starts, once
        if self._forward is not None:
            order = np.argsort(document, kind="stable")
            self._forward(np.bincount(document, minlength=documents), term[order], tf[order])
        ends = np.append(np.flatnonzero(np.diff(term)) + 1, len(term)) if len(term) else np.empty(0, np.int64)
        document += np.int32(first)
        self._batches.append(_Batch(term[ends - 1], ends, self._kept(document, tf)))

    def _kept(self, document: Ints, tf: Ints) -> Callable[[int, int], tuple[Ints, Ints]]:
        if len(tf) and tf.max() < 1 << 16:
            tf = tf.astype(np.uint16)
        if self._stream is None:
            return lambda start, end: (document[start:end], tf[start:end].astype(np.int32))
        stream, at, size, kind = self._stream, self._stream.tell(), len(tf), tf.dtype
        stream.write(document.data)
        stream.write(tf.data)

        def read(start: int, end: int) -> tuple[Ints, Ints]:
            stream.seek(at + 4 * start)
            documents = np.frombuffer(stream.read(4 * (end - start)), np.int32)
            stream.seek(at + 4 * size + kind.itemsize * start)
            frequencies = np.frombuffer(stream.read(kind.itemsize * (end - start)), kind)
            return documents, frequencies.astype(np.int32)

        return read

    def frequency(self, terms: int) -> NDArray[np.int64]:
        """The number of documents of each of ``terms``."""
        frequency = np.zeros(terms, np.int64)
        for batch in self._batches:
            frequency[batch.terms] += np.diff(batch.ends, prepend=0)
        return frequency

    def scored(
        self, indptr: NDArray[np.int64], k1: float, b: float, most: int = _BLOCK
    ) -> Iterator[tuple[NDArray[np.float32], NDArray[np.int32]]]:
        """The scores and the documents of the postings, by term: whole terms, in blocks of about ``most`` postings.

        ``indptr`` [terms + 1]: the sums of :meth:`frequency`, from 0.
        """
        from evenrank._jit import unwritable

        from ._indexing import scatter

        frequency = np.diff(indptr)
        idf = np.log1p((self.documents - frequency + 0.5) / (frequency + 0.5))
        length = np.concatenate(self._lengths)
        norm = k1 * (1 - b + b * length / (length.mean() or 1.0))
        free = indptr[:-1].copy()
        first = 0
        while first < len(frequency):
            # At least one term.
            last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + most, side="right")) - 1)
            size = int(indptr[last] - indptr[first])
            data, indices = np.empty(size, np.float32), np.empty(size, np.int32)
            for batch in self._batches:
                low, high = np.searchsorted(batch.terms, [first, last])
                if low < high:
                    start = int(batch.ends[low - 1]) if low else 0
                    documents, tf = unwritable(*batch.read(start, int(batch.ends[high - 1])))
                    ends = batch.ends[low:high] - start
                    scatter(batch.terms[low:high], ends, documents, tf, idf, norm, free, indptr[first], data, indices)
            yield data, indices
            first = last

    def postings(self, terms: int, k1: float, b: float) -> Postings:
        """All of them, in memory."""
        indptr = starts_of(self.frequency(terms))
        blocks = list(self.scored(indptr, k1, b, most=int(indptr[-1])))
        data, indices = blocks[0] if blocks else (np.empty(0, np.float32), np.empty(0, np.int32))
        return Postings(data, indices, indptr)


class ForwardParts:
    """The terms of each document, batch by batch, in memory."""

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Ints, Ints]] = []

    def add(self, sizes: Ints, terms: Ints, tf: Ints) -> None:
        """Adds the next documents; see :class:`Counts`."""
        self._parts.append((sizes, terms, tf))

    def whole(self) -> Forward:
        """All of them."""
        sizes, terms, tf = (np.concatenate([part[i] for part in self._parts]) for i in range(3))
        return Forward(starts_of(sizes), terms, tf)


def starts_of(sizes: Ints) -> NDArray[np.int64]:
    """Where each of several parts begins [parts + 1], the end of the last included."""
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts
