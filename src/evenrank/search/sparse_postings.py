"""Weights of vocabulary terms, from encoded windows to postings by term that the kernel of BM25 searches."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.files import EvenrankError, InputError

from .encoded_windows import SparseRows
from .exact_search import Floats, Ints
from .index_folder import IndexWriter, Manifest
from .mapped import Mapped, write_array

_AT_ONCE = 256
"""Queries searched at once."""
_ROOM = 1 << 28
"""Bytes that the sums of scores of all threads take, which bound the threads."""


def write_postings(writer: IndexWriter, windows: list[int], terms: int, name: str) -> None:
    """Writes ``impacts-data.bin``, ``-documents.bin`` and ``-starts.bin`` from the files of all ``windows``,
    given by their numbers of documents.

    Raises EvenrankError for a negative weight, which names the model, and for a damaged file.
    """

    def read(number: int) -> pl.DataFrame:
        return SparseRows().read(writer.folder, number, terms)

    sizes = np.zeros(terms, np.int64)
    for number in range(len(windows)):
        table = read(number)
        if (table["weight"] < 0).any():
            raise EvenrankError(f"{name}: expected weights of terms from 0, found a negative one")
        sizes += np.bincount(table["term"].to_numpy(), minlength=terms)
    starts = np.zeros(terms + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    write_array(writer.file("impacts-starts.bin"), starts, np.int64)
    total = int(starts[-1])
    if not total:
        raise EvenrankError(f"{name}: no document has a term with a weight")
    data = np.memmap(writer.file("impacts-data.bin"), "<f4", "w+", shape=total)
    documents = np.memmap(writer.file("impacts-documents.bin"), "<i4", "w+", shape=total)
    free = starts[:-1].copy()
    for number in range(len(windows)):
        table = read(number).sort("term", "row")
        term = table["term"].to_numpy()
        size = np.bincount(term, minlength=terms)
        # Windows are in document order: a term's documents follow those of earlier windows.
        place = free[term] + np.arange(len(term)) - (np.cumsum(size) - size)[term]
        data[place] = table["weight"].to_numpy()
        documents[place] = table["row"].to_numpy()
        free += size
    data.flush()
    documents.flush()


class Impacts:
    """The postings of an index, mapped. Raises InputError for numbers that lead out of them."""

    def __init__(self, manifest: Manifest) -> None:
        self.starts = Mapped(manifest, "impacts-starts.bin", np.int64).array
        self.data = Mapped(manifest, "impacts-data.bin", np.float32).array
        self.documents = Mapped(manifest, "impacts-documents.bin", np.int32, len(self.data)).array
        self.terms = len(self.starts) - 1
        whole = self.terms >= 1 and self.starts[0] == 0 and self.starts[-1] == len(self.data)
        if not whole or (np.diff(self.starts) < 0).any():
            raise _damaged(manifest.path)
        self._folder = manifest.path

    def search(
        self,
        turn: Ints,
        by_turn: Ints,
        terms: Ints,
        weights: Floats,
        starts: NDArray[np.int64],
        k: int,
    ) -> tuple[Ints, Floats, NDArray[np.int64]]:
        """The first k documents of each query, their scores, and how many there are [Q].

        ``terms``, ``weights``: those of all queries; ``starts`` [Q + 1]: where those of each begin.
        """
        count, wide = len(starts) - 1, min(k, len(turn))
        documents = np.empty((count, wide), np.int32)
        scores = np.empty((count, wide), np.float32)
        found = np.zeros(count, np.int64)

        def part(first: int) -> None:
            from evenrank.files.compiled import unwritable

            from . import _searching as _kernel

            own = slice(first, first + step)
            room = np.full(len(turn), _kernel.UNSEEN, np.float32), np.empty(len(turn), np.int32)
            given = unwritable(self.data, self.documents, self.starts, turn, by_turn, terms)
            order = (weights, starts[first : first + step + 1], wide)
            found[own] = _kernel.search(*given, *order, documents[own], scores[own], *room)

        workers = max(1, min(os.cpu_count() or 1, _ROOM // (8 * len(turn))))
        step = max(1, min(_AT_ONCE, -(-count // workers)))
        with ThreadPoolExecutor(workers) as pool:
            for _ in pool.map(part, range(0, count, step)):
                pass
        if (found < 0).any():
            raise _damaged(self._folder)
        return documents, scores, found


def _damaged(folder: Path) -> InputError:
    return InputError(folder, "the index is damaged: its postings cannot be used")
