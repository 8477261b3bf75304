"""BM25, the first stage: from a collection and queries to a run.

Scores are Lucene's form of BM25 (Kamphuis et al., ECIR 2020, "Which BM25 do you mean?"), equal to those of bm25s:
score(q, d) = Σ_t∈q ln(1 + (N − df_t + 0.5) / (df_t + 0.5)) · tf / (tf + k1 (1 − b + b |d| / avg|d|)),
where a term that is repeated in the query counts each time. |d| is the number of terms after analysis.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Protocol, cast

import numpy as np
import polars as pl

from evenrank.engines.progress import progress
from evenrank.io import EvenrankError, Run, as_batches, as_queries
from evenrank.io.errors import quoted
from evenrank.io.folders import is_index
from evenrank.io.ranges import check_ranges
from evenrank.io.wording import counted

from .analysis import STOP_WORD, Analyzer
from .encoding import Encoding, refuse_model
from .postings import Counts, ForwardParts, Postings, starts_of
from .rm3 import RM3, Forward, Ints, relevance_model

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
    k1: float | None = None,
    b: float | None = None,
    stopwords: str | Sequence[str] | None = "default",
    stemmer: str | None = "default",
    rm3: RM3 | None = None,
    weighted: bool = False,
    name: str | None = None,
    quiet: bool = False,
    model: object = None,
    encoding: Encoding | None = None,
) -> Run:
    """The first ``k`` documents of each query, as a run: by BM25, or by an index of any kind.

    ``collection``: a path, ``{document: text}``, a frame of polars or pandas with ``doc_id`` and ``text``, records, or
    an iterable of polars frames; or an index, open (:func:`evenrank.open_index`) or by its folder. ``queries``: a path,
    ``{query: text}``, a frame with ``query_id`` and ``text``, or records. ``k1`` (None: 0.9), ``b`` (None: 0.4),
    ``stopwords``, ``stemmer`` (default: English): as for :class:`Analyzer`; an index has its own. ``rm3``: expand each
    query with words of its first documents, and search again. ``weighted``: words of queries carry weights,
    ``word^0.3`` (default 1); score = Σ_t weight_t · BM25(t, d). ``name``: of the run (default ``bm25``). For
    an index of a model's vectors, ``model``: where the model is now, if not where it was; ``encoding``: how queries are
    encoded.

    Documents without a term of the query are left out, so a list can have fewer than ``k``. Ties are broken by
    descending document id, also at rank ``k``. The run's notes list the settings and count the queries without results.

    Raises EvenrankError for a setting or a weight out of range, for a setting that is not the index's, and if no query
    has a result; InputError for a collection that cannot be read and an index that is unfinished or damaged.
    """
    from .indexes import FirstStage, check_settings, open_index

    check_ranges(k=k, k1=k1, b=b)
    if is_index(collection):
        collection = open_index(cast("str | os.PathLike[str]", collection))
    if isinstance(collection, FirstStage):
        check_settings(collection.manifest, k1=k1, b=b, stopwords=stopwords, stemmer=stemmer)
        settings = {"name": name, "quiet": quiet, "model": model, "encoding": encoding}
        return collection.search(queries, k, rm3=rm3, weighted=weighted, **settings)  # type: ignore[arg-type]
    refuse_model(model, encoding)
    analyzer = Analyzer(
        "english" if stopwords == "default" else stopwords, "english" if stemmer == "default" else stemmer
    )
    k1, b = 0.9 if k1 is None else k1, 0.4 if b is None else b
    index = Index.build(collection, analyzer, k1=k1, b=b, forward=rm3 is not None, quiet=quiet)
    return index.search(queries, k, rm3=rm3, weighted=weighted, name=name or "bm25", quiet=quiet)


class Documents(Protocol):
    """The ids of documents: a series, or those of an index on disk."""

    def __len__(self) -> int: ...

    def gather(self, rows: pl.Series, /) -> pl.Series:
        """The ids of ``rows``."""


@dataclass(frozen=True, slots=True)
class Frugal:
    """How an index whose arrays are mapped is searched in little memory: at most ``postings`` at once per thread, and
    ``threads``; ``release(terms)`` gives back the memory of the postings of terms that were read."""

    postings: int
    threads: int
    release: Callable[[Ints], None]


@dataclass(frozen=True, slots=True)
class Index:
    """An inverted index. ``doc_ids`` [documents] (text), in the collection's order."""

    doc_ids: Documents
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
    _frugal: Frugal | None = None

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
        """Indexes a collection batch by batch, in about 15 bytes per (document, term).

        ``forward``: also keep each document's terms (8 bytes each), for searches with RM3. Raises EvenrankError for an
        empty collection.
        """
        check_ranges(k1=k1, b=b)
        parts = ForwardParts()
        with Counts(forward=parts.add if forward else None) as counts:
            batches = counted_batches(collection, analyzer, counts, quiet=quiet)
            doc_ids = pl.concat([batch["doc_id"] for batch in batches])
            postings = counts.postings(analyzer.size, k1, b)
        turn, by_turn = turns(doc_ids)
        return cls(doc_ids, analyzer, k1, b, postings, turn, by_turn, parts.whole() if forward else None)

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
        threads = os.cpu_count() or 1 if self._frugal is None else self._frugal.threads
        with progress("searching", grouped.height, quiet=quiet) as advance, ThreadPoolExecutor(threads) as pool:
            size = min(_CHUNK, -(-grouped.height // threads))
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
        return Run(name, table, tuple(notes), card=self._card(k, rm3, weighted))

    def _card(self, k: int, rm3: RM3 | None, weighted: bool) -> dict[str, object]:
        """What made a run; see :mod:`evenrank.io.run_cards`."""
        settings = {"k1": self.k1, "b": self.b, "analysis": self.analyzer.description, "weighted": weighted}
        search = {"depth": k, "rm3": None if rm3 is None else asdict(rm3)}
        return {"stage": "retrieve", "index": {"kind": "bm25", "settings": settings}, **search}

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
        from evenrank._jit import unwritable

        from . import _searching as _kernel

        size = len(self.doc_ids)
        wide = min(k, size)
        documents = np.empty((queries.height, wide), np.int32)
        scores = np.empty((queries.height, wide), np.float32)
        count = np.zeros(queries.height, np.int64)
        terms = queries["term"].explode().to_numpy()
        weights = queries["weight"].explode().to_numpy().astype(np.float32)
        starts = starts_of(queries["term"].list.len().to_numpy())
        total, seen = np.full(size, _kernel.UNSEEN, np.float32), np.empty(size, np.int32)
        for first, last in self._pieces(terms, starts):
            count[first:last] = _kernel.search(
                *unwritable(*self._postings, self._turn, self._by_turn, terms),
                weights,
                starts[first : last + 1],
                wide,
                documents[first:last],
                scores[first:last],
                total,
                seen,
            )
            if self._frugal is not None:
                self._frugal.release(terms[starts[first] : starts[last]])
        if (count < 0).any():
            raise EvenrankError("the index is damaged: a posting leads to a document that is not in it")
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

    def _pieces(self, terms: Ints, starts: Ints) -> Iterator[tuple[int, int]]:
        """The queries that are searched at once: all, or as many as :class:`Frugal` allows, and at least one."""
        if self._frugal is None:
            yield 0, len(starts) - 1
            return
        indptr = self._postings.indptr
        begin, end = indptr[terms], indptr[terms + 1]
        if (begin < 0).any() or (end < begin).any() or (end > len(self._postings.indices)).any():
            raise EvenrankError("the index is damaged: the postings of a term are not in it")
        reached = starts_of(end - begin)[starts]
        first = 0
        while first < len(starts) - 1:
            limit = reached[first] + self._frugal.postings
            last = max(first + 1, int(np.searchsorted(reached, limit, side="right")) - 1)
            yield first, last
            first = last


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


def turns(doc_ids: pl.Series) -> tuple[Ints, Ints]:
    """The position of each document by falling id, and the document at each position [documents], both int32."""
    by_turn = doc_ids.arg_sort(descending=True).to_numpy().astype(np.int32)
    turn = np.empty(len(by_turn), np.int32)
    turn[by_turn] = np.arange(len(by_turn), dtype=np.int32)
    return turn, by_turn


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
