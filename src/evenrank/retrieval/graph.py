"""Approximate search: a navigable graph over the index's own vectors.

Malkov & Yashunin 2020, "Efficient and robust approximate nearest neighbor search using hierarchical navigable small
world graphs" (HNSW), as faiss has it. The graph is kept as plain numbers, which are checked before faiss gets them:
nothing that faiss reads or writes itself.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenrank.engines.progress import progress
from evenrank.io import InputError
from evenrank.io.errors import require

from .exact_search import Floats, Halves, Ints
from .index_folder import IndexWriter, Manifest
from .mapped import Mapped, write_array

if TYPE_CHECKING:
    import faiss

LINKS, EXPANSION = 32, 200
"""Links of a vector (twice as many on the ground floor), and candidates for them while the graph is built."""
LEAST_BREADTH = 400
"""The fewest candidates of a search; twice the results if that is more."""
_BLOCK = 4096


def require_graph() -> None:
    """Raises MissingExtraError if the library for approximate search is not installed."""
    require("approximate search", "ann", "faiss")


def build_graph(writer: IndexWriter, vectors: Halves, *, quiet: bool = False) -> None:
    """Builds the graph of ``vectors`` [N, d] and writes it: ``graph-levels.bin``, ``-links.bin``, ``-entry.bin``.

    In one thread, so that the same vectors give the same graph.
    """
    with _threads(1) as faiss:
        index = _empty(faiss, vectors.shape[1])
        index.hnsw.efConstruction = EXPANSION
        with progress("linking", len(vectors), quiet=quiet) as advance:
            for start in range(0, len(vectors), _BLOCK):
                part = vectors[start : start + _BLOCK].astype(np.float32)
                index.add(part)
                advance(len(part))
        graph = index.hnsw
        write_array(writer.file("graph-levels.bin"), faiss.vector_to_array(graph.levels), np.int32)
        write_array(writer.file("graph-links.bin"), faiss.vector_to_array(graph.neighbors), np.int32)
        write_array(writer.file("graph-entry.bin"), np.array([graph.entry_point, graph.max_level]), np.int32)


class Graph:
    """The graph of an index, opened: its files are checked, and the vectors read into memory (2 bytes a number).

    Raises InputError for an index without a graph and for a damaged one; MissingExtraError without the extra [ann].
    """

    def __init__(self, manifest: Manifest, vectors: Halves) -> None:
        require_graph()
        import faiss

        if "graph-links.bin" not in manifest.files:
            raise InputError(manifest.path, "the index has no graph: build it with `approximate`, or search exactly")
        count, width = vectors.shape
        levels = Mapped(manifest, "graph-levels.bin", np.int32, count).array
        links = Mapped(manifest, "graph-links.bin", np.int32).array
        entry = Mapped(manifest, "graph-entry.bin", np.int32, 2).array
        index = _empty(faiss, width)
        starts = _checked(manifest, index, levels, links, entry)
        codes = faiss.downcast_index(index.storage)
        faiss.copy_array_to_vector(np.ascontiguousarray(vectors, "<f2").view(np.uint8).ravel(), codes.codes)
        codes.ntotal = index.ntotal = count
        codes.is_trained = index.is_trained = True
        faiss.copy_array_to_vector(np.ascontiguousarray(levels, np.int32), index.hnsw.levels)
        faiss.copy_array_to_vector(starts, index.hnsw.offsets)
        faiss.copy_array_to_vector(np.ascontiguousarray(links, np.int32), index.hnsw.neighbors)
        index.hnsw.entry_point, index.hnsw.max_level = map(int, entry)
        self._index = index

    def search(self, turn: Ints, queries: Floats, k: int) -> tuple[Ints, Floats]:
        """As :func:`evenrank.retrieval.exact_search.search_exact`, but not all of the first k may be found.

        A document that was not found is −1; these come last.
        """
        k = min(k, int(self._index.ntotal))
        self._index.hnsw.efSearch = max(LEAST_BREADTH, 2 * k)
        with _threads(os.cpu_count() or 1):
            scores, found = self._index.search(np.ascontiguousarray(queries, np.float32), k)
        scores = np.where(found < 0, -np.inf, scores).astype(np.float32)
        order = np.lexsort((np.where(found < 0, len(turn), turn[found]), -scores), axis=1)
        documents: Ints = np.take_along_axis(found, order, 1).astype(np.int32)
        return documents, np.take_along_axis(scores, order, 1)


def recall(exact: Ints, found: Ints) -> float:
    """The mean share of a query's ``exact`` documents [Q, k] that are among those ``found`` [Q, ≥ 1]."""
    shares = [np.isin(one, other).mean() for one, other in zip(exact, found, strict=True)]
    return float(np.mean(shares))


def _empty(faiss: ModuleType, width: int) -> faiss.IndexHNSWSQ:
    index = faiss.IndexHNSWSQ(width, faiss.ScalarQuantizer.QT_fp16, LINKS, faiss.METRIC_INNER_PRODUCT)
    index.is_trained = True
    return index


def _checked(
    manifest: Manifest, index: faiss.IndexHNSWSQ, levels: Ints, links: Ints, entry: Ints
) -> NDArray[np.uint64]:
    """Where the links of each vector begin [N + 1]. Raises InputError for numbers that lead out of the graph."""
    count = len(levels)
    most = index.hnsw.cum_nneighbor_per_level.size() - 1
    ends = np.array([index.hnsw.cum_nneighbor_per_level.at(level) for level in range(most + 1)], np.uint64)
    place, top = map(int, entry)
    sound = int(levels.min()) >= 1 and int(levels.max()) <= most
    if sound:
        starts = np.zeros(count + 1, np.uint64)
        np.cumsum(ends[levels], out=starts[1:])
        sound = int(starts[-1]) == len(links) and int(links.min()) >= -1 and int(links.max()) < count
        sound = sound and 0 <= place < count and top == int(levels.max()) - 1 and int(levels[place]) - 1 == top
        sound = sound and _on_their_levels(levels, links, starts, ends)
    if not sound:
        raise InputError(manifest.path, "the index is damaged: its graph cannot be used")
    return starts


def _on_their_levels(levels: Ints, links: Ints, starts: NDArray[np.uint64], ends: NDArray[np.uint64]) -> bool:
    """Whether the links above the ground floor lead to vectors that are there on that floor."""
    for level in range(1, int(levels.max())):
        rows = np.flatnonzero(levels > level)
        span = np.arange(int(ends[level]), int(ends[level + 1]), dtype=np.int64)
        found = links[starts[rows].astype(np.int64)[:, None] + span]
        if (levels[found[found >= 0]] <= level).any():
            return False
    return True


@contextmanager
def _threads(count: int) -> Iterator[ModuleType]:
    """faiss with this number of threads inside."""
    import faiss

    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(count)
    try:
        yield faiss
    finally:
        faiss.omp_set_num_threads(before)
