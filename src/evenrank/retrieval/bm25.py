"""BM25, the first stage: from a collection and queries to a run.

Scores are Lucene's form of BM25 (Kamphuis et al., ECIR 2020, "Which BM25 do you mean?"), equal to those of bm25s:
score(q, d) = Σ_t∈q ln(1 + (N − df_t + 0.5) / (df_t + 0.5)) · tf / (tf + k1 (1 − b + b |d| / avg|d|)),
where a term that is repeated in the query counts each time. |d| is the number of terms after analysis.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.engines.progress import progress
from evenrank.io import EvenrankError, Run, as_batches, as_queries
from evenrank.io.errors import quoted
from evenrank.io.ranges import check_ranges
from evenrank.io.wording import counted

from .analysis import STOP_WORD, Analyzer
from .rm3 import RM3, Forward, Ints, relevance_model

_Counts = tuple[Ints, Ints, Ints]
_CHUNK, _CELLS = 256, 1 << 23
"""Queries searched at once, and the cells of their results (64 MB)."""
_HEAVIEST = 1e9
# As in the kernel, whose module imports the compiler.
_LIGHTEST = 1e-20
"""The range of the weights of a query's words, in which sums of scores stay finite in float32."""


# parameters: those of the command.
def retrieve(
    collection: object,
    queries: object,
    k: int = 1000,
    *,
    k1: float = 0.9,
    b: float = 0.4,
    stopwords: str | Sequence[str] | None = "english",
    stemmer: str | None = "english",
    rm3: RM3 | None = None,
    weighted: bool = False,
    name: str = "bm25",
    quiet: bool = False,
) -> Run:
    """The first ``k`` documents of each query by BM25, as a run.

    ``collection``: a path, ``{document: text}``, a frame of polars or pandas with ``doc_id`` and ``text``, records, or
    an iterable of polars frames. ``queries``: a path, ``{query: text}``, a frame with ``query_id`` and ``text``, or
    records. ``stopwords``, ``stemmer``: as for :class:`Analyzer`. ``rm3``: expand each query with words of its first
    documents, and search again. ``weighted``: words of queries carry weights, ``word^0.3`` (default 1);
    score = Σ_t weight_t · BM25(t, d).

    Documents without a term of the query are left out, so a list can have fewer than ``k``. Ties are broken by
    descending document id, also at rank ``k``. The run's notes list the settings and count the queries without results.

    Raises EvenrankError for a setting or a weight out of range and if no query has a result; InputError for a
    collection that cannot be read.
    """
    check_ranges(k=k, k1=k1, b=b)
    index = Index.build(collection, Analyzer(stopwords, stemmer), k1=k1, b=b, forward=rm3 is not None, quiet=quiet)
    return index.search(queries, k, rm3=rm3, weighted=weighted, name=name, quiet=quiet)


class Postings(NamedTuple):
    """Scores ``data`` and documents ``indices`` [postings], sorted by term; those of term t from ``indptr``[t] on."""

    data: NDArray[np.float32]
    indices: NDArray[np.int32]
    indptr: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Index:
    """An inverted index. ``doc_ids`` [documents] (text), in the collection's order."""

    doc_ids: pl.Series
    analyzer: Analyzer
    k1: float
    b: float
    _postings: Postings
    _turn: Ints
    """[documents]: the position of each document when ids are sorted in descending order."""
    _by_turn: Ints
    """[documents]: the document at each position."""
    _forward: Forward | None = None
    """The terms of each document, which RM3 needs."""

    @classmethod
    def build(
        cls,
        collection: object,
        analyzer: Analyzer,
        *,
        k1: float = 0.9,
        b: float = 0.4,
        forward: bool = False,
        quiet: bool = False,
    ) -> Index:
        """Indexes a collection batch by batch, in about 20 bytes per (document, term).

        ``forward``: also keep each document's terms (8 bytes each), for searches with RM3. Raises EvenrankError for an
        empty collection.
        """
        check_ranges(k1=k1, b=b)
        ids: list[pl.Series] = []
        counts: list[_Counts] = []
        lengths: list[Ints] = []
        documents = 0
        with progress("indexing", quiet=quiet) as advance:
            for batch in as_batches(collection):
                terms = analyzer.terms(batch["text"], grow=True)
                counts.append(_count(terms, documents))
                lengths.append(np.bincount(terms["text"].to_numpy(), minlength=batch.height))
                ids.append(batch["doc_id"])
                documents += batch.height
                advance(batch.height)
        if not documents:
            raise EvenrankError("the collection has no document")
        doc_ids = pl.concat(ids)
        document_terms = Forward.from_counts(counts, documents) if forward else None
        postings = _scored_postings(counts, analyzer.size, np.concatenate(lengths), k1, b)
        by_turn = doc_ids.arg_sort(descending=True).to_numpy().astype(np.int32)
        turn = np.empty(documents, np.int32)
        turn[by_turn] = np.arange(documents, dtype=np.int32)
        return cls(doc_ids, analyzer, k1, b, postings, turn, by_turn, document_terms)

    def search(
        self,
        queries: object,
        k: int = 1000,
        *,
        rm3: RM3 | None = None,
        weighted: bool = False,
        name: str = "bm25",
        quiet: bool = False,
    ) -> Run:
        """The first ``k`` documents of each query; see :func:`retrieve`. ``rm3`` needs an index with ``forward``."""
        check_ranges(k=k)
        queries = as_queries(queries)
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
        with progress("searching", grouped.height, quiet=quiet) as advance, ThreadPoolExecutor(os.cpu_count()) as pool:
            size = min(_CHUNK, -(-grouped.height // (os.cpu_count() or 1)))
            size = max(1, min(size, _CELLS // min(k, len(self.doc_ids))))
            waiting = [pool.submit(self._search_part, part, k, rm3) for part in grouped.iter_slices(size)]
            parts = []
            for future in waiting:
                parts.append(future.result())
                advance(size)
        found = pl.concat(parts)
        table = pl.DataFrame(
            [
                queries["query_id"].gather(found["query"]).cast(pl.String),
                self.doc_ids.gather(found["document"]).alias("doc_id"),
                found["score"].cast(pl.Float64),
                found["rank"],
            ]
        )
        # Rows are already grouped by query and ranked, without repeated documents.
        return Run(name, table, tuple(notes))

    def _search_part(self, queries: pl.DataFrame, k: int, rm3: RM3 | None) -> pl.DataFrame:
        if rm3 is None:
            return self._first(queries, k)
        expanded = self._expanded(queries.explode("term", "weight"), self._first(queries, rm3.fb_docs), rm3)
        grouped = expanded.group_by("query", maintain_order=True).agg("term", "weight")
        return self._first(grouped.rename({"query": "text"}), k)

    def _expanded(self, terms: pl.DataFrame, found: pl.DataFrame, rm3: RM3) -> pl.DataFrame:
        if self._forward is None:
            raise EvenrankError("RM3 needs an index built with forward=True")
        own = terms.rename({"text": "query"}).group_by("query", "term", maintain_order=True).agg(pl.col("weight").sum())
        own = own.with_columns(pl.col("weight") / pl.col("weight").sum().over("query")).sort("query", "term")
        return relevance_model(own, found, self._forward, self.analyzer.alphabetical, rm3)

    def _first(self, queries: pl.DataFrame, k: int) -> pl.DataFrame:
        """``query``, ``document``, ``score``, ``rank``: the first ``k`` of each of ``queries``, which has ``text`` (the
        query's number), ``term`` and ``weight`` (lists)."""
        from . import _searching as _kernel

        wide = min(k, len(self.doc_ids))
        documents = np.empty((queries.height, wide), np.int32)
        scores = np.empty((queries.height, wide), np.float32)
        lengths = queries["term"].list.len().to_numpy()
        count = _kernel.search(
            *self._postings,
            self._turn,
            self._by_turn,
            queries["term"].explode().to_numpy(),
            queries["weight"].explode().to_numpy().astype(np.float32),
            np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
            wide,
            documents,
            scores,
        )
        rank = np.broadcast_to(np.arange(1, wide + 1, dtype=np.uint32), documents.shape)
        present = rank <= count[:, None]
        if not np.isfinite(scores[present]).all():
            raise EvenrankError("the scores of a query are not finite: the weights of its words are too large")
        return pl.DataFrame(
            {
                "query": np.repeat(queries["text"].to_numpy(), count),
                "document": documents[present],
                "score": scores[present],
                "rank": rank[present],
            }
        )


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


def _count(terms: pl.DataFrame, first: int) -> _Counts:
    """Term, document and tf, sorted by term, then document; ``first``: the number of the document in row 0."""
    # One sort of packed numbers: many times faster than grouping by two columns.
    packed = np.sort((terms["term"].to_numpy().astype(np.int64) << 32) | terms["text"].to_numpy())
    starts = np.flatnonzero(np.diff(packed, prepend=-1))
    tf = np.diff(starts, append=len(packed)).astype(np.int32)
    once = packed[starts]
    return (once >> 32).astype(np.int32), (once & 0xFFFFFFFF).astype(np.int32) + np.int32(first), tf


def _scored_postings(counts: list[_Counts], terms: int, length: Ints, k1: float, b: float) -> Postings:
    """The score of every (term, document), by term. Empties ``counts`` to save memory; ``length`` [documents]."""
    documents = len(length)
    frequency = np.zeros(terms, np.int64)
    for term, _, _ in counts:
        frequency += np.bincount(term, minlength=terms)
    idf = np.log1p((documents - frequency + 0.5) / (frequency + 0.5))
    norm = k1 * (1 - b + b * length / (length.mean() or 1.0))
    indptr = np.zeros(terms + 1, np.int64)
    np.cumsum(frequency, out=indptr[1:])
    data = np.empty(indptr[-1], np.float32)
    indices = np.empty(indptr[-1], np.int32)
    free = indptr[:-1].copy()
    counts.reverse()
    while counts:
        term, document, tf = counts.pop()
        size = np.bincount(term, minlength=terms)
        # Batches are in document order, each sorted by term: a term's documents follow those of earlier batches.
        place = free[term] + np.arange(len(term)) - (np.cumsum(size) - size)[term]
        data[place] = idf[term] * tf / (tf + norm[document])
        indices[place] = document
        free += size
    return Postings(data, indices, indptr)
