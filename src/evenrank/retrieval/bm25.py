"""BM25, the first stage: from a collection and queries to a run.

Scores are Lucene's form of BM25 (Kamphuis et al., ECIR 2020, "Which BM25 do you mean?"), scored by bm25s:
score(q, d) = Σ_t∈q ln(1 + (N − df_t + 0.5) / (df_t + 0.5)) · tf / (tf + k1 (1 − b + b |d| / avg|d|)),
a term that stands twice in the query counting twice. |d| counts the terms left after analysis.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import polars as pl

from evenrank.io import EvenrankError, Run, scan_collection
from evenrank.io.errors import shown
from evenrank.io.progress import progress

from .analysis import STOP_WORD, Analyzer
from .rm3 import RM3, Forward, relevance_model

Backend = Literal["auto", "numpy", "numba"]
_Ints = np.ndarray[Any, np.dtype[np.integer[Any]]]
_Counts = tuple[_Ints, _Ints, _Ints]
_CHUNK = 256
# Compiling takes seconds: it pays from about this many scores (queries × documents).
_WORTH_COMPILING = 1_000_000_000


def retrieve(
    collection: str | os.PathLike[str] | pl.DataFrame | Iterable[pl.DataFrame],
    queries: pl.DataFrame,
    k: int = 1000,
    *,
    k1: float = 0.9,
    b: float = 0.4,
    stopwords: str | Sequence[str] | None = "english",
    stemmer: str | None = "english",
    rm3: RM3 | None = None,
    weighted: bool = False,
    backend: Backend = "auto",
    name: str = "bm25",
    quiet: bool = False,
) -> Run:
    """The first ``k`` documents of each query by BM25, as a run.

    ``collection``: a path that ``scan_collection`` reads, or tables with ``doc_id`` and ``text``. ``queries``: a table
    with ``query_id`` and ``text``. ``rm3``: enrich each query with words of its first documents, and rank again.
    ``weighted``: a query's words carry weights, ``word^0.3`` (without: 1); score = Σ_t weight_t · BM25(t, d).
    Documents without a term of the query are left out, so a list can have fewer than ``k``. Equal scores stand by
    falling document id, at rank ``k`` too, whatever the back end. The run's notes name the settings and count the
    queries that give no row. Raises EvenrankError for a setting or a weight out of range, and where no query gives a
    row; InputError for a collection that cannot be read.
    """
    _check(k, k1, b, backend)
    index = Index.build(collection, Analyzer(stopwords, stemmer), k1=k1, b=b, forward=rm3 is not None, quiet=quiet)
    return index.search(queries, k, rm3=rm3, weighted=weighted, backend=backend, name=name, quiet=quiet)


def _check(k: int, k1: float, b: float, backend: str) -> None:
    if k < 1:
        raise EvenrankError(f"k: expected 1 or more, found {k}")
    if not (math.isfinite(k1) and k1 >= 0):
        raise EvenrankError(f"k1: expected a number from 0, found {k1}")
    if not 0 <= b <= 1:
        raise EvenrankError(f"b: expected a number from 0 to 1, found {b}")
    if backend not in ("auto", "numpy", "numba"):
        raise EvenrankError(f"backend: expected auto, numpy or numba, found {backend}")


@dataclass(frozen=True, slots=True)
class Index:
    """A collection ready to be searched. ``doc_ids`` [documents] (text), in the collection's order."""

    doc_ids: pl.Series
    analyzer: Analyzer
    k1: float
    b: float
    _columns: dict[str, Any]
    """By term, then document: ``data`` (float32) and ``indices`` (int32) [postings], ``indptr`` (int64) [terms + 1]."""
    _turn: np.ndarray[Any, np.dtype[np.int64]]
    """[documents]: each document's place when the ids are sorted, falling."""
    _forward: Forward | None = None
    """The terms of every document, which RM3 needs."""

    @classmethod
    def build(
        cls,
        collection: str | os.PathLike[str] | pl.DataFrame | Iterable[pl.DataFrame],
        analyzer: Analyzer,
        *,
        k1: float = 0.9,
        b: float = 0.4,
        forward: bool = False,
        quiet: bool = False,
    ) -> Index:
        """Reads a collection batch by batch; keeps ids and counts, about 20 bytes for each (document, term).

        ``forward``: keep every document's terms too (8 bytes each), for searches with RM3.
        """
        if isinstance(collection, str | os.PathLike):
            collection = scan_collection(collection)
        batches = [collection] if isinstance(collection, pl.DataFrame) else collection
        ids: list[pl.Series] = []
        counts: list[_Counts] = []
        lengths: list[_Ints] = []
        documents = 0
        with progress("indexing", quiet=quiet) as advance:
            for batch in batches:
                terms = analyzer.terms(batch["text"], grow=True)
                counts.append(_count(terms, documents))
                lengths.append(np.bincount(terms["text"].to_numpy(), minlength=batch.height))
                ids.append(batch["doc_id"])
                documents += batch.height
                advance(batch.height)
        if not documents:
            raise EvenrankError("the collection holds no document")
        doc_ids = pl.concat(ids)
        of_documents = Forward.of(counts, documents) if forward else None
        columns = _columns(counts, analyzer.size, np.concatenate(lengths), k1, b)
        turn = doc_ids.rank("ordinal", descending=True).to_numpy().astype(np.int64)
        return cls(doc_ids, analyzer, k1, b, columns, turn, of_documents)

    def search(
        self,
        queries: pl.DataFrame,
        k: int = 1000,
        *,
        rm3: RM3 | None = None,
        weighted: bool = False,
        backend: Backend = "auto",
        name: str = "bm25",
        quiet: bool = False,
    ) -> Run:
        """The first ``k`` documents of each query; see :func:`retrieve`. ``rm3`` needs an index with ``forward``."""
        words = _weighted_words(queries) if weighted else queries.select("text")
        terms = self.analyzer.terms(words["text"], grow=False)
        if weighted:
            rows = terms["text"]
            terms = terms.with_columns(words["query"].gather(rows).alias("text"), words["weight"].gather(rows))
        empty = queries.height - terms.filter(pl.col("term") != STOP_WORD)["text"].n_unique()
        terms = terms.filter(pl.col("term") >= 0)
        grouped = terms.group_by("text", maintain_order=True).agg(pl.exclude("text"))
        unmatched = queries.height - grouped.height - empty
        what = "BM25 (Lucene's form)" + (" of weighted words" if weighted else "")
        notes = [f"{name}: {what}, k1 {self.k1:g}, b {self.b:g}, {self.analyzer.description}"]
        if rm3 is not None:
            feedback = f"{rm3.fb_docs} documents, {rm3.fb_terms} terms, original weight {rm3.original_weight:g}"
            notes.append(f"{name}: RM3, {feedback}")
        if empty:
            notes.append(f"{name}: {_queries(empty)} no word after the stop words and no documents")
        if unmatched:
            notes.append(f"{name}: {_queries(unmatched)} no word that the collection has and no documents")
        if not grouped.height:
            raise EvenrankError(f"none of the {queries.height} queries has a word that the collection has")
        parts = []
        engine = self._engine(backend, grouped.height)
        with progress("searching", grouped.height, quiet=quiet) as advance:
            for chunk in grouped.iter_slices(_CHUNK):
                deep = k if rm3 is None else rm3.fb_docs
                if weighted:
                    found = self._first_weighted(_long(chunk), deep)
                else:
                    found = self._first(engine, chunk["term"].to_list(), chunk["text"], deep)
                if rm3 is not None:
                    found = self._first_weighted(self._enriched(_long(chunk), found, rm3), k)
                parts.append(found)
                advance(chunk.height)
        found = pl.concat(parts)
        table = pl.DataFrame(
            [
                queries["query_id"].gather(found["query"]),
                self.doc_ids.gather(found["document"]).alias("doc_id"),
                found["score"],
            ]
        )
        return Run.from_table(table, name, notes=tuple(notes))

    def _enriched(self, terms: pl.DataFrame, found: pl.DataFrame, rm3: RM3) -> pl.DataFrame:
        if self._forward is None:
            raise EvenrankError("RM3 needs an index that was built with forward=True")
        own = terms.group_by("query", "term", maintain_order=True).agg(pl.col("weight").sum())
        own = own.with_columns(pl.col("weight") / pl.col("weight").sum().over("query")).sort("query", "term")
        return relevance_model(own, found, self._forward, self.analyzer.places, rm3)

    def _first_weighted(self, terms: pl.DataFrame, k: int) -> pl.DataFrame:
        """``query``, ``document``, ``score``: the first ``k`` of each query in ``query``, ``term``, ``weight``."""
        data, indices, starts = (self._columns[name] for name in ("data", "indices", "indptr"))
        scores = np.empty(len(self.doc_ids), np.float32)
        parts = []
        # The work of a query is a pass over all documents, so the loop over queries costs nothing beside it.
        for (number,), query in terms.group_by("query", maintain_order=True):
            scores[:] = 0
            for term, weight in query.select("term", "weight").iter_rows():
                span = slice(starts[term], starts[term + 1])
                scores[indices[span]] += np.float32(weight) * data[span]
            lowest = np.partition(scores, -k)[-k] if k < len(scores) else np.float32(0)
            documents = np.flatnonzero((scores >= lowest) & (scores > 0))
            best = documents[np.lexsort((self._turn[documents], -scores[documents]))[:k]].astype(np.int32)
            parts.append(
                pl.DataFrame({"query": np.full(len(best), number, np.int32), "document": best, "score": scores[best]})
            )
        return pl.concat(parts)

    def _engine(self, backend: Backend, queries: int) -> Any:
        import bm25s

        if backend == "auto":
            backend = "numba" if queries * len(self.doc_ids) >= _WORTH_COMPILING else "numpy"
        engine = bm25s.BM25(k1=self.k1, b=self.b, method="lucene", backend=backend)
        engine.scores = self._columns
        engine.nonoccurrence_array = None
        # bm25s asks these for the terms it may score.
        engine.vocab_dict = {"": self.analyzer.size}
        engine.unique_token_ids_set = range(self.analyzer.size)
        return engine

    def _first(self, engine: Any, terms: list[list[int]], numbers: pl.Series, k: int) -> pl.DataFrame:
        """``query``, ``document``, ``score``: the first ``k`` of each of the queries ``numbers``."""
        documents = len(self.doc_ids)
        wide = min(k + 1, documents)
        threads = _threads() if engine.backend == "numba" else 0
        selection = "numba" if engine.backend == "numba" else "numpy"
        found, scores = engine.retrieve(
            terms, k=wide, show_progress=False, n_threads=threads, backend_selection=selection
        )
        rows = np.repeat(numbers.to_numpy(), wide)
        table = pl.DataFrame({"query": rows, "document": found.ravel().astype(np.int32), "score": scores.ravel()})
        if wide > k:
            # A tie across rank k: which of the equal documents came back is the back end's choice, so take them all.
            tied = np.flatnonzero((scores[:, k - 1] == scores[:, k]) & (scores[:, k] > 0))
            if len(tied):
                whole = [self._at_least(engine, terms[i], int(numbers[int(i)]), scores[i, k]) for i in tied]
                kept = table.filter(~pl.col("query").is_in(numbers.gather(tied).implode()))
                table = pl.concat([kept, *whole])
        table = table.filter(pl.col("score") > 0)
        turn = pl.Series("turn", self._turn[table["document"].to_numpy()])
        table = table.with_columns(turn).sort(["query", "score", "turn"], descending=[False, True, False])
        return table.filter(pl.int_range(pl.len()).over("query") < k).select("query", "document", "score")

    def _at_least(self, engine: Any, terms: list[int], number: int, lowest: float) -> pl.DataFrame:
        scores = engine.get_scores_from_ids(terms)
        documents = np.flatnonzero(scores >= lowest)
        columns = {"query": np.full(len(documents), number, np.int32), "document": documents.astype(np.int32)}
        return pl.DataFrame({**columns, "score": scores[documents]})


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
    bad = parts.filter(
        pl.col("number").is_not_null() & ~(pl.col("weight").is_finite() & (pl.col("weight") >= 0)).fill_null(False)
    )
    if bad.height:
        query, number = bad["query_id"][0], bad["number"][0]
        raise EvenrankError(f"query {query}: expected a weight from 0 after ^, found {shown(number)}")
    return parts.select("query", "text", pl.col("weight").fill_null(1.0)).filter(pl.col("weight") > 0)


def _long(grouped: pl.DataFrame) -> pl.DataFrame:
    """``query``, ``term``, ``weight`` (1 where the words have none): a row a term."""
    terms = grouped.rename({"text": "query"}).explode([name for name in grouped.columns if name != "text"])
    return terms if "weight" in terms.columns else terms.with_columns(pl.lit(1.0).alias("weight"))


def _queries(count: int) -> str:
    return "1 query has" if count == 1 else f"{count} queries have"


def _threads() -> int:
    import numba

    return int(numba.get_num_threads())


def _count(terms: pl.DataFrame, first: int) -> _Counts:
    """Term, document and tf, sorted by term, then document; ``first`` is the number of the document in row 0."""
    # One sort of packed numbers: many times faster than grouping by two columns.
    packed = np.sort((terms["term"].to_numpy().astype(np.int64) << 32) | terms["text"].to_numpy())
    starts = np.flatnonzero(np.diff(packed, prepend=-1))
    tf = np.diff(starts, append=len(packed)).astype(np.int32)
    once = packed[starts]
    return (once >> 32).astype(np.int32), (once & 0xFFFFFFFF).astype(np.int32) + np.int32(first), tf


def _columns(counts: list[_Counts], terms: int, length: _Ints, k1: float, b: float) -> dict[str, Any]:
    """The score of every (term, document), by term. Empties ``counts`` on the way; ``length`` [documents]."""
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
        # Batches come in document order, each sorted by term: a term's documents go behind those of the batch before.
        place = free[term] + np.arange(len(term)) - (np.cumsum(size) - size)[term]
        data[place] = idf[term] * tf / (tf + norm[document])
        indices[place] = document
        free += size
    return {"data": data, "indices": indices, "indptr": indptr, "num_docs": documents}
