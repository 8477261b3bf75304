"""BM25, the first stage: from a collection and queries to a run.

Scores are Lucene's form of BM25 (Kamphuis et al., ECIR 2020, "Which BM25 do you mean?"), equal to those of bm25s:
score(q, d) = Σ_t∈q ln(1 + (N − df_t + 0.5) / (df_t + 0.5)) · tf / (tf + k1 (1 − b + b |d| / avg|d|)),
where a term that is repeated in the query counts each time. |d| is the number of terms after analysis.

A kept index is built in bounded memory, mapped when it is opened, and searched as the one in memory. Its files beside
those of the postings: the sorted terms as texts, with their numbers in ``numbers`` int32; ids and stop words as texts.
For RM3: ``forward-starts`` int64 [documents + 1], ``forward-terms`` and ``forward-tf`` int32.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank import options as opt
from evenrank.files import EvenrankError, InputError, Run, as_batches
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted
from evenrank.files.progress import progress
from evenrank.files.wording import counted
from evenrank.models.scorers import Rows, Scorer, Scores, TextPairs

from .analysis import STOP_WORD, Analyzer, words_digest
from .expansion import RM3, Forward, Ints, relevance_model
from .index_folder import (
    FirstStage,
    HowToSearch,
    IndexWriter,
    Manifest,
    begin_digest,
    naming_damage,
    refuse_model,
    save_array,
)
from .mapped import Texts, turns, write_documents, write_texts
from .postings import (
    Batch,
    Documents,
    Floats,
    Gathered,
    Postings,
    Starts,
    found_rows,
    new_array,
    new_postings,
    run_table,
    starts_of,
)


class Counts(Gathered):
    """How often each term is in each document. ``file``: keeps them there, otherwise in memory; a context manager."""

    def __init__(self, file: Path | None = None) -> None:
        super().__init__(file)
        self._lengths: list[NDArray[np.int32]] = []
        self.documents = 0

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
        term, document = (once >> 32).astype(np.int32), (once & 0xFFFFFFFF).astype(np.int32) + np.int32(first)
        self.gather(Batch(term, document, tf))

    @property
    def average_length(self) -> float:
        """The terms of a document on average; 1 where no document has one."""
        return float(np.concatenate(self._lengths).mean()) or 1.0

    def scored(self, writer: IndexWriter | None, terms: int, k1: float, b: float) -> tuple[Floats, Ints, Starts]:
        """The scores and the documents of the postings by term, in the files of an index or in memory, and where those
        of each of ``terms`` begin."""
        starts = self.starts(terms)
        frequency = np.diff(starts)
        idf = np.log1p((self.documents - frequency + 0.5) / (frequency + 0.5))
        length = np.concatenate(self._lengths)
        norm = k1 * (1 - b + b * length / self.average_length)
        scores, documents = new_postings(writer, starts)
        self.by_term(starts, scores, documents)
        for first in range(0, len(scores), _BLOCK):
            own = slice(first, first + _BLOCK)
            tf = scores[own].astype(np.float64)
            term = np.searchsorted(starts, np.arange(first, first + len(tf)), side="right") - 1
            scores[own] = idf[term] * tf / (tf + norm[documents[own]])
        return scores, documents, starts

    def forward(self, writer: IndexWriter | None, postings: int) -> Forward:
        """The terms of each document, in the files of an index or in memory."""
        sizes = np.zeros(self.documents, np.int64)
        terms, tf = (new_array(writer, f"forward-{name}.npy", np.int32, postings) for name in ("terms", "tf"))
        end = 0
        for batch in self.batches():
            order = np.argsort(batch.document, kind="stable")
            own = slice(end, end := end + len(order))
            terms[own], tf[own] = batch.term[order], batch.values[order]
            sizes += np.bincount(batch.document, minlength=self.documents)
        starts = starts_of(sizes)
        if writer is not None:
            save_array(writer.file("forward-starts.npy"), starts)
        return Forward(starts, terms, tf)


_BLOCK = 1 << 22
"""Postings scored at once."""
_HEAVIEST = 1e9
# As in the kernel, whose module imports the compiler.
_LIGHTEST = 1e-20
"""The range of the weights of a query's words, in which sums of scores stay finite in float32."""


class Index(FirstStage):
    """BM25's inverted index, in memory or in a folder. ``doc_ids`` [documents] (text), in the collection's order.

    ``forward``: the terms of each document, which RM3 needs.
    """

    def __init__(
        self,
        doc_ids: Documents,
        analyzer: Analyzer,
        k1: float,
        b: float,
        postings: Postings,
        forward: Forward | None = None,
        manifest: Manifest | None = None,
    ) -> None:
        super().__init__(manifest)
        self.doc_ids, self.analyzer, self.k1, self.b = doc_ids, analyzer, k1, b
        self._postings, self._forward = postings, forward

    @classmethod
    @checked
    def build(
        cls,
        collection: object,
        analyzer: Analyzer,
        *,
        k1: Annotated[float, opt.K1] = 0.9,
        b: Annotated[float, opt.SHARE] = 0.4,
        forward: bool = False,
        quiet: bool = False,
    ) -> Index:
        """Indexes a collection batch by batch, in about 15 bytes per (document, term).

        ``forward``: also keep each document's terms (8 bytes each), for searches with RM3. Raises EvenrankError for an
        empty collection.
        """
        with Counts() as counts:
            batches = counted_batches(collection, analyzer, counts, quiet=quiet)
            doc_ids = pl.concat([batch["doc_id"] for batch in batches])
            scores, documents, starts = counts.scored(None, analyzer.size, k1, b)
            words = counts.forward(None, len(scores)) if forward else None
        return cls(doc_ids, analyzer, k1, b, Postings(scores, documents, starts, *turns(doc_ids)), words)

    @classmethod
    def open(cls, manifest: Manifest) -> Index:
        """That of a folder, its files mapped."""
        settings = manifest.settings
        numbers = all(isinstance(settings.get(name), float) for name in ("k1", "b"))
        if not numbers or not {"stopwords", "stopwords_sha256", "stemmer"} <= settings.keys():
            raise InputError(manifest.path, "the index is damaged: index.json has no valid 'settings'")
        terms, ids = _Terms(manifest), Texts(manifest, "ids", manifest.documents)
        with naming_damage(manifest):
            stopwords = Texts(manifest, "stopwords").all().to_list()
        analyzer = Analyzer(stopwords, settings["stemmer"], terms=terms, name=settings["stopwords"] or "none")
        postings, forward = Postings.open(manifest, len(terms)), _forward(manifest, manifest.documents)
        return cls(ids, analyzer, settings["k1"], settings["b"], postings, forward, manifest)

    def _search(self, queries: pl.DataFrame, k: int, how: HowToSearch) -> Run:
        refuse_model(how.model, how.encoding)
        name, rm3, weighted, manifest = how.name or "bm25", how.rm3, how.weighted, self.manifest
        if rm3 is not None and self._forward is None:
            index = "the index" if manifest is None else f"the index {manifest.path}"
            raise EvenrankError(f"{arg.rm3}: {index} does not keep each passage's words; build it again with {arg.rm3}")
        words = _weighted_words(queries) if weighted else queries.select("text")
        terms = self.analyzer.terms(words["text"], grow=False)
        if weighted:
            rows = terms["text"]
            terms = terms.with_columns(words["query"].gather(rows).alias("text"), words["weight"].gather(rows))
        empty = queries.height - terms.filter(pl.col("term") != STOP_WORD)["text"].n_unique()
        terms = terms.filter(pl.col("term") >= 0)
        grouped = terms.group_by("text", maintain_order=True).agg(pl.exclude("text"))
        unmatched = queries.height - grouped.height - empty
        method = "BM25 (Lucene's form)" + (" of weighted words" if weighted else "")
        notes = [f"{name}: {method}, k1 {self.k1:g}, b {self.b:g}, {self.analyzer.description}"]
        if rm3 is not None:
            feedback = f"{rm3.fb_docs} documents, {rm3.fb_terms} terms, original weight {rm3.original_weight:g}"
            notes.append(f"{name}: RM3, {feedback}")
        if empty:
            notes.append(f"{name}: {_queries(empty)} no word left after stop words and no documents")
        if unmatched:
            notes.append(f"{name}: {_queries(unmatched)} no word of the collection and no documents")
        if not grouped.height:
            raise EvenrankError(f"none of the {queries.height} queries has a word of the collection")
        if not weighted:
            grouped = grouped.with_columns(pl.col("term").list.eval(pl.lit(1.0)).alias("weight"))

        def search_some(own: slice) -> tuple[int, pl.DataFrame]:
            some = grouped[own]
            return some.height, self._search_part(some, k, rm3)

        parts = []
        with progress("searching", grouped.height, quiet=how.quiet) as advance:
            for size, part in self._postings.in_threads(grouped.height, k, search_some):
                parts.append(part)
                advance(size)
        if manifest is not None and (old := manifest.versions.get("PyStemmer")) != (now := version("PyStemmer")):
            notes.append(f"{name}: the index was made with PyStemmer {old} (now {now}), which can stem otherwise")
        table = run_table(pl.concat(parts), queries["query_id"], self.doc_ids)
        settings = {"k1": self.k1, "b": self.b, "analysis": self.analyzer.description, "weighted": weighted}
        card = {"stage": "retrieve", "index": {"kind": "bm25", "settings": settings}, "depth": k}
        return Run(name, table, tuple(notes), card={**card, "rm3": None if rm3 is None else asdict(rm3)})

    def _search_part(self, queries: pl.DataFrame, k: int, rm3: RM3 | None) -> pl.DataFrame:
        if rm3 is None:
            return self._first(queries, k)
        expanded = self._expanded(queries.explode("term", "weight"), self._first(queries, rm3.fb_docs), rm3)
        grouped = expanded.group_by("query", maintain_order=True).agg("term", "weight")
        return self._first(grouped.rename({"query": "text"}), k)

    def _expanded(self, terms: pl.DataFrame, found: pl.DataFrame, rm3: RM3) -> pl.DataFrame:
        assert self._forward is not None
        own = terms.rename({"text": "query"}).group_by("query", "term", maintain_order=True).agg(pl.col("weight").sum())
        own = own.with_columns(pl.col("weight") / pl.col("weight").sum().over("query")).sort("query", "term")
        return relevance_model(own, found, self._forward, self.analyzer.alphabetical, rm3)

    def _first(self, queries: pl.DataFrame, k: int) -> pl.DataFrame:
        """``query``, ``document``, ``score``, ``rank``: the first ``k`` of each of ``queries``, which has ``text`` (the
        query's number), ``term`` and ``weight`` (lists)."""
        terms = queries["term"].explode().to_numpy()
        weights = queries["weight"].explode().to_numpy().astype(np.float32)
        starts = starts_of(queries["term"].list.len().to_numpy())
        rows = found_rows(*self._postings.search(terms, weights, starts, k), large="the weights of its words")
        return rows.with_columns(queries["text"].gather(rows["query"]).alias("query"))


def counted_batches(
    collection: object, analyzer: Analyzer, counts: Counts, *, quiet: bool = False
) -> Iterator[pl.DataFrame]:
    """The batches of a collection, each once its terms are in ``counts``. Raises EvenrankError if there is none."""
    with progress("indexing", quiet=quiet) as advance:
        for batch in as_batches(collection):
            counts.add(analyzer.terms(batch["text"], grow=True), batch.height)
            yield batch
            advance(batch.height)
    if not counts.documents:
        raise EvenrankError("the collection has no document")


def _weighted_words(queries: pl.DataFrame) -> pl.DataFrame:
    """``query`` (row of ``queries``), ``text`` (a word), ``weight``: of texts like ``nurse^0.3 ward``."""
    words = queries.select(
        pl.int_range(pl.len(), dtype=pl.Int32).alias("query"),
        pl.col("query_id"),
        pl.col("text").str.extract_all(r"\S+").alias("text"),
    ).explode("text", empty_as_null=False)
    parts = words.with_columns(pl.col("text").str.extract(r"\^([^^]*)$").alias("number"))
    parts = parts.with_columns(
        pl.col("text").str.replace(r"\^[^^]*$", ""),
        pl.col("number").cast(pl.Float64, strict=False).alias("weight"),
    )
    bad = parts.filter(pl.col("number").is_not_null() & ~pl.col("weight").is_between(0, _HEAVIEST).fill_null(False))
    if bad.height:
        query, number = bad["query_id"][0], bad["number"][0]
        raise EvenrankError(
            f"query {query}: expected a weight from 0 to {_HEAVIEST:.0f} after ^, found {quoted(number)}"
        )
    # Words below the least weight that the search takes are left out.
    return parts.select("query", "text", pl.col("weight").fill_null(1.0)).filter(pl.col("weight") >= _LIGHTEST)


def _queries(count: int) -> str:
    return f"{counted(count, 'query')} {'has' if count == 1 else 'have'}"


class BM25Scorer(Scorer):
    """The BM25 scores of pairs, with the number of documents, their average length and the frequencies of a collection.

    ``collection``, ``k1``, ``b``, ``stopwords`` and ``stemmer``: as for :func:`evenrank.retrieve`; a document of the
    collection scores as it does there, or 0 if it shares no term with the query. Any other text, such as a variant of a
    document, is scored under the same statistics: a term that the collection lacks is in none of its documents.

    The collection is read once, and only the vocabulary and its frequencies are kept. Raises EvenrankError for a
    setting out of range and an empty collection, InputError for a collection that cannot be read.
    """

    unit = "pair"

    @checked
    def __init__(
        self,
        collection: object,
        *,
        k1: Annotated[float, opt.K1] = 0.9,
        b: Annotated[float, opt.SHARE] = 0.4,
        stopwords: str | Collection[str] | None = "english",
        stemmer: str | None = "english",
        name: str = "bm25",
        quiet: bool = True,
    ) -> None:
        super().__init__(name)
        self.k1, self.b = k1, b
        self.analyzer = Analyzer(stopwords, stemmer)
        with Counts() as counts:
            for _ in counted_batches(collection, self.analyzer, counts, quiet=quiet):
                pass
        self.documents, self.average = counts.documents, counts.average_length
        self._frequency = np.diff(counts.starts(self.analyzer.size))
        self.settings = f"k1 {k1:g}, b {b:g}, {self.analyzer.description}"

    def facts(self) -> dict[str, object]:
        """``kind``, ``model`` (the name), ``k1``, ``b``, ``analysis``, ``documents`` and ``average_length`` (terms)."""
        settings = {"k1": self.k1, "b": self.b, "analysis": self.analyzer.description}
        collection = {"documents": self.documents, "average_length": self.average}
        return {"kind": "bm25", "model": self.name, **settings, **collection}

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        return [len(passage) for passage in passages]

    def tokens(self, texts: Sequence[str]) -> list[int]:
        terms = self.analyzer.terms(pl.Series(list(texts), dtype=pl.String), grow=False)
        rows = terms.filter(pl.col("term") != STOP_WORD)["text"].to_numpy()
        counts: list[int] = np.bincount(rows, minlength=len(texts)).tolist()
        return counts

    def each(self, pairs: TextPairs, batch_size: int, windows: Sequence[Rows]) -> Iterator[Scores]:
        # The terms of queries get numbers even if the collection lacks them; of passages, only known terms can score.
        queries = self.analyzer.terms(pairs.queries, grow=True)
        terms = queries["term"].to_numpy().astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(np.bincount(queries["text"].to_numpy(), minlength=len(pairs.queries)))])
        documents = self.analyzer.terms(pairs.documents, grow=False).filter(pl.col("term") != STOP_WORD)
        text, term = (documents[name].to_numpy().astype(np.int64) for name in ("text", "term"))
        norm = self.k1 * (1 - self.b + self.b * np.bincount(text, minlength=len(pairs.documents)) / self.average)
        known = term >= 0
        keys, tf = np.unique((text[known] << 32) | term[known], return_counts=True)
        # A last key, so that every place that is searched for exists.
        keys, tf = np.append(keys, -1), np.append(tf, 0)
        frequency = np.zeros(self.analyzer.size, np.int64)
        frequency[: len(self._frequency)] = self._frequency
        idf = np.log1p((self.documents - frequency + 0.5) / (frequency + 0.5))
        for rows in windows:
            sizes = np.diff(starts)[pairs.query[rows]]
            row = np.repeat(np.arange(len(rows)), sizes)
            place = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            wanted = terms[starts[pairs.query[rows]][row] + place]
            document = pairs.document[rows][row]
            key = (document << 32) | wanted
            at = np.searchsorted(keys[:-1], key)
            often = np.where(keys[at] == key, tf[at], 0)
            weights = idf[wanted] * often / np.where(often, often + norm[document], 1)
            yield np.bincount(row, weights, minlength=len(rows)).astype(np.float64)


_LIBRARIES = ("numpy", "polars", "PyStemmer")


def build(
    collection: object,
    out: str | os.PathLike[str],
    analyzer: Analyzer,
    *,
    k1: float,
    b: float,
    forward: bool = False,
    quiet: bool = False,
) -> Manifest:
    """Builds BM25's index of a collection in the folder ``out``; see :func:`evenrank.build_index`.

    Memory: the ids, eight bytes per document thrice, and some hundred MB. Disk: 8 bytes per (document, term), of RM3
    8 more; 6 more while it is built.
    """
    settings = {
        "k1": float(k1),
        "b": float(b),
        "stopwords": analyzer.stopwords_name if analyzer.stopwords else None,
        "stopwords_sha256": words_digest(analyzer.stopwords),
        "stemmer": analyzer.stemmer,
        "analysis": analyzer.description,
        "rm3": forward,
    }
    with IndexWriter(out, "bm25", settings) as writer:
        digest = begin_digest(collection)
        with Counts(writer.file("counts.part")) as counts:
            batches = counted_batches(collection, analyzer, counts, quiet=quiet)
            write_documents(writer, pl.concat([batch["doc_id"] for batch in batches]))
            scores, _, _ = counts.scored(writer, analyzer.size, k1, b)
            if forward:
                counts.forward(writer, len(scores))
        terms = pl.Series(list(analyzer.known), dtype=pl.String)
        order = terms.arg_sort()
        write_texts(writer, "terms", terms.gather(order))
        save_array(writer.file("numbers.npy"), order.to_numpy().astype(np.int32))
        write_texts(writer, "stopwords", pl.Series(sorted(analyzer.stopwords), dtype=pl.String))
        versions = {name: version(name) for name in _LIBRARIES}
        return writer.finish(counts.documents, digest(), versions=versions)


class _Terms(Mapping[str, int]):
    """The number of each term of an index, found by halving among the sorted terms."""

    def __init__(self, manifest: Manifest) -> None:
        self._words = Texts(manifest, "terms")
        self._numbers = manifest.array("numbers.npy", np.int32, len(self._words))

    def __len__(self) -> int:
        return len(self._words)

    def __iter__(self) -> Iterator[str]:
        return iter(self._words.gather(pl.Series(np.argsort(self._numbers))))

    def __getitem__(self, term: str) -> int:
        place = bisect_left(self._words, term)
        if place == len(self) or self._words[place] != term:
            raise KeyError(term)
        number = int(self._numbers[place])
        if not 0 <= number < len(self):
            raise ValueError("a term has no valid number")
        return number

    @cached_property
    def alphabetical(self) -> NDArray[np.int64]:
        """The position of each term, by its number, among the sorted terms, from 1."""
        if not np.array_equal(np.sort(self._numbers), np.arange(len(self))):
            raise ValueError("a term has no valid number")
        place = np.empty(len(self), np.int64)
        place[self._numbers] = np.arange(1, len(self) + 1)
        return place


def _forward(manifest: Manifest, documents: int) -> Forward | None:
    if not manifest.settings.get("rm3"):
        return None
    starts = manifest.array("forward-starts.npy", np.int64, documents + 1)
    terms = manifest.array("forward-terms.npy", np.int32)
    return Forward(starts, terms, manifest.array("forward-tf.npy", np.int32, len(terms)))
