"""BM25's index on disk: built in bounded memory, mapped when it is opened, searched as the one in memory.

Files (numbers are little endian): ``scores`` float32 and ``documents`` int32 [postings], ``starts`` int64 [terms + 1];
``turn`` and ``by-turn`` int32 [documents]; the sorted terms as texts, with their numbers in ``numbers`` int32; ids and
stop words as texts. For RM3: ``forward-starts`` int64 [documents + 1], ``forward-terms`` and ``forward-tf`` int32.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from importlib.metadata import version
from typing import IO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.io import EvenrankError, InputError, Run
from evenrank.io.ranges import check_ranges

from .analysis import Analyzer, words_digest
from .bm25 import Counts, Frugal, Index, Postings, counted_batches, starts_of, turns
from .index_folder import Encoding, IndexWriter, Manifest, begin_digest, changed_collection, check_files, refuse_model
from .mapped import DocIds, Mapped, Texts, TextsWriter, ids_writer, write_array
from .rm3 import RM3, Forward, Ints

_AT_ONCE = 1 << 22
"""Postings that a thread maps before it gives their memory back: 32 MB."""
_ROOM = 1 << 28
"""Bytes that the sums of scores of all threads take, which bound the threads."""
_LIBRARIES = ("numpy", "polars", "PyStemmer")


def build(
    collection: object,
    out: str | os.PathLike[str],
    *,
    k1: float = 0.9,
    b: float = 0.4,
    stopwords: str | Collection[str] | None = "english",
    stemmer: str | None = "english",
    forward: bool = False,
    quiet: bool = False,
) -> Manifest:
    """Builds BM25's index of a collection in the folder ``out``; see :func:`evenrank.build_index`.

    Memory: the ids, eight bytes per document thrice, and some hundred MB. Disk: 8 bytes per (document, term), of RM3
    8 more; 6 more while it is built.
    """
    check_ranges(k1=k1, b=b)
    analyzer = Analyzer(stopwords, stemmer)
    settings = {
        "k1": float(k1),
        "b": float(b),
        "stopwords": analyzer.stopwords_name if analyzer.stopwords else None,
        "stopwords_sha256": words_digest(analyzer.stopwords),
        "stemmer": stemmer,
        "analysis": analyzer.description,
        "rm3": forward,
    }
    with IndexWriter(out, "bm25", settings) as writer, ExitStack() as files:
        digest = begin_digest(collection)
        parts = files.enter_context(_ForwardFiles(writer)) if forward else None
        counts = files.enter_context(Counts(writer.file("counts.part"), parts.add if parts else None))
        kept: list[pl.Series] = []
        with ids_writer(writer) as ids:
            for batch in counted_batches(collection, analyzer, counts, quiet=quiet):
                ids.append(batch["doc_id"])
                kept.append(batch["doc_id"])
        turn, by_turn = turns(pl.concat(kept))
        kept.clear()
        write_array(writer.file("turn.bin"), turn, np.int32)
        write_array(writer.file("by-turn.bin"), by_turn, np.int32)
        del turn, by_turn
        _write_words(writer, analyzer)
        starts = starts_of(counts.frequency(analyzer.size))
        write_array(writer.file("starts.bin"), starts, np.int64)
        with open(writer.file("scores.bin"), "wb") as scores, open(writer.file("documents.bin"), "wb") as documents:
            for data, indices in counts.scored(starts, k1, b):
                scores.write(data.data)
                documents.write(indices.data)
        # Closed before the manifest lists them.
        files.close()
        versions = {name: version(name) for name in _LIBRARIES}
        return writer.finish(counts.documents, digest(), versions=versions)


class _ForwardFiles:
    """Writes each document's terms, batch by batch; a context manager."""

    def __init__(self, writer: IndexWriter) -> None:
        self._files: list[IO[bytes]] = []
        with ExitStack() as opened:
            for name in ("starts", "terms", "tf"):
                path = writer.file(f"forward-{name}.bin")
                self._files.append(opened.enter_context(open(path, "wb")))
            self._opened = opened.pop_all()
        self._files[0].write(np.zeros(1, np.int64).data)
        self._end = 0

    def __enter__(self) -> _ForwardFiles:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def add(self, sizes: Ints, terms: Ints, tf: Ints) -> None:
        """Adds the next documents; see :class:`Counts`."""
        ends = starts_of(sizes)[1:] + self._end
        self._end += len(terms)
        starts, words, frequencies = self._files
        starts.write(ends.data)
        words.write(terms.astype(np.int32).data)
        frequencies.write(tf.astype(np.int32).data)


def _write_words(writer: IndexWriter, analyzer: Analyzer) -> None:
    terms = pl.Series(list(analyzer.known), dtype=pl.String)
    order = terms.arg_sort()
    with TextsWriter(writer, "terms") as words:
        words.append(terms.gather(order))
    write_array(writer.file("numbers.bin"), order.to_numpy(), np.int32)
    with TextsWriter(writer, "stopwords") as words:
        words.append(pl.Series(sorted(analyzer.stopwords), dtype=pl.String))


class _Terms(Mapping[str, int]):
    """The number of each term of an index, found by halving among the sorted terms."""

    def __init__(self, manifest: Manifest) -> None:
        self._words = Texts(manifest, "terms")
        self._numbers = Mapped(manifest, "numbers.bin", np.int32, len(self._words)).array
        self._folder = manifest.path

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[str]:
        return iter(self._words[np.argsort(self._numbers)])

    def __getitem__(self, term: str) -> int:
        wanted = term.encode()
        low, high = 0, len(self)
        while low < high:
            middle = (low + high) // 2
            if self._words.bytes_at(middle) < wanted:
                low = middle + 1
            else:
                high = middle
        if low == len(self) or self._words.bytes_at(low) != wanted:
            raise KeyError(term)
        number = int(self._numbers[low])
        if not 0 <= number < len(self):
            raise InputError(self._folder, "the index is damaged: a term has no valid number")
        return number

    @cached_property
    def alphabetical(self) -> NDArray[np.int64]:
        """The position of each term, by its number, among the sorted terms, from 1."""
        if not np.array_equal(np.sort(self._numbers), np.arange(len(self))):
            raise InputError(self._folder, "the index is damaged: a term has no valid number")
        place = np.empty(len(self), np.int64)
        place[self._numbers] = np.arange(1, len(self) + 1)
        return place


class MappedBM25:
    """BM25's index in a folder, open."""

    def __init__(self, manifest: Manifest, index: Index) -> None:
        self.manifest = manifest
        self._index = index

    @cached_property
    def _changed(self) -> list[str]:
        return changed_collection(self.manifest)

    @classmethod
    def open(cls, manifest: Manifest) -> MappedBM25:
        """Maps the files. Raises InputError if they do not fit each other."""
        count = manifest.documents
        terms = _Terms(manifest)
        starts = Mapped(manifest, "starts.bin", np.int64, len(terms) + 1)
        documents = Mapped(manifest, "documents.bin", np.int32)
        scores = Mapped(manifest, "scores.bin", np.float32, len(documents.array))
        if starts.array[0] != 0 or starts.array[-1] != len(documents.array):
            raise InputError(manifest.path, "the index is damaged: starts.bin does not fit the other files")

        def release(read: Ints) -> None:
            for term in np.unique(read).tolist():
                for file in (documents, scores):
                    file.release(int(starts.array[term]), int(starts.array[term + 1]))

        turn, by_turn = (Mapped(manifest, f"{name}.bin", np.int32, count).array for name in ("turn", "by-turn"))
        index = Index(
            DocIds(manifest),
            _analyzer(manifest, terms),
            _number(manifest, "k1"),
            _number(manifest, "b"),
            Postings(scores.array, documents.array, starts.array),
            turn,
            by_turn,
            _forward(manifest, count),
            Frugal(_AT_ONCE, max(1, min(os.cpu_count() or 1, _ROOM // (8 * count))), release),
        )
        return cls(manifest, index)

    def search(
        self,
        queries: object,
        k: int = 1000,
        *,
        rm3: RM3 | None = None,
        weighted: bool = False,
        name: str | None = None,
        quiet: bool = False,
        model: object = None,
        encoding: Encoding | None = None,
    ) -> Run:
        """The first ``k`` documents of each query, as :meth:`Index.search` of the same collection gives them.

        Raises EvenrankError for ``rm3`` if the index was built without, InputError if it is damaged or was cut since.
        """
        refuse_model(model, encoding)
        if rm3 is not None and not self.manifest.settings.get("rm3"):
            raise EvenrankError(
                f"`rm3`: the index {self.manifest.path} does not keep each passage's words; build it again with `rm3`"
            )
        check_files(self.manifest)
        run = self._index.search(queries, k, rm3=rm3, weighted=weighted, name=name or "bm25", quiet=quiet)
        check_files(self.manifest)
        made, now = self.manifest.versions.get("PyStemmer"), version("PyStemmer")
        notes = run.notes
        if made != now:
            notes += (f"{run.name}: the index was made with PyStemmer {made} (now {now}), which can stem otherwise",)
        notes += tuple(f"{run.name}: {note}" for note in self._changed)
        return replace(run, notes=notes, card={**(run.card or {}), "index": self.manifest.card()})


def _analyzer(manifest: Manifest, terms: _Terms) -> Analyzer:
    words = Texts(manifest, "stopwords")
    name, stemmer = manifest.settings.get("stopwords"), manifest.settings.get("stemmer")
    if not (isinstance(name, str | None) and isinstance(stemmer, str | None)):
        raise InputError(manifest.path, "the index is damaged: index.json has no valid 'stopwords' or 'stemmer'")
    analyzer = Analyzer(words[np.arange(len(words))].to_list(), stemmer, terms=terms, name=name or "none")
    if words_digest(analyzer.stopwords) != manifest.settings.get("stopwords_sha256"):
        raise InputError(manifest.path, "the index is damaged: its stop words differ from what was written")
    return analyzer


def _number(manifest: Manifest, name: str) -> float:
    value = manifest.settings.get(name)
    if type(value) not in (int, float) or not isinstance(value, int | float):
        raise InputError(manifest.path, f"the index is damaged: index.json has no valid {name!r}")
    return float(value)


def _forward(manifest: Manifest, documents: int) -> Forward | None:
    if not manifest.settings.get("rm3"):
        return None
    starts = Mapped(manifest, "forward-starts.bin", np.int64, documents + 1).array
    terms = Mapped(manifest, "forward-terms.bin", np.int32).array
    return Forward(starts, terms, Mapped(manifest, "forward-tf.bin", np.int32, len(terms)).array)
