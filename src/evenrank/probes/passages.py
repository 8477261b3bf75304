"""The passages of a scan, counted: the words of each, BM25 over them as the control, and which are alike.

Words as they are written, in lower case: no stemmer and no list of stop words, so that the control is in the core and
is of no language. Terms in more than a tenth of the passages are skipped.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from evenrank.files import as_batches
from evenrank.files.types import Array
from evenrank.search.analysis import Analyzer

from .known_items import RARE, KnownItems, has_query, known_items

K1, B = 0.9, 0.4
ALIKE = 0.9
"""Passages that share so many of the words of either stand for each other."""
PART = "#"
"""Before it in the id of a passage stands the document or file that it is a part of."""
_QUERIES, _TERMS = 128, 4_000_000
"""Queries that are searched for at once, and terms of pairs of passages that are compared."""


@dataclass(frozen=True)
class Passages:
    """The ids and the texts of N passages, and how often each of V terms is in each (``words`` [N, V], sparse)."""

    ids: pl.Series
    texts: pl.Series
    analyzer: Analyzer
    words: Any

    @classmethod
    def of(cls, given: object) -> Passages:
        """Those of a collection."""
        table = pl.concat(list(as_batches(given)))
        return cls.counted(table["doc_id"], table["text"])

    @classmethod
    def counted(cls, ids: pl.Series, texts: pl.Series) -> Passages:
        """Those with these ids and texts."""
        from scipy.sparse import csr_array

        analyzer = Analyzer(None, None)
        terms = analyzer.terms(texts, grow=True).drop_nulls()
        entries = np.ones(terms.height, np.float32), (terms["text"].to_numpy(), terms["term"].to_numpy())
        words = csr_array(entries, shape=(len(ids), analyzer.size))
        words.sum_duplicates()
        return cls(ids, texts, analyzer, words)

    @property
    def numbers(self) -> pl.DataFrame:
        """``doc_id`` and ``number`` of each."""
        return pl.DataFrame({"doc_id": self.ids, "number": np.arange(len(self.ids))})

    @cached_property
    def lengths(self) -> Array:
        """How many words white space separates in each [N]."""
        return self.texts.str.count_matches(r"\S+").to_numpy().astype(np.int64)

    @cached_property
    def frequencies(self) -> Array:
        """In how many passages each term is [V]."""
        counts: Array = np.bincount(self.words.indices, minlength=self.analyzer.size)
        return counts

    @cached_property
    def files(self) -> pl.Series:
        """The document or file that each is a part of."""
        return self.ids.str.split(PART).list.first()

    def by_file(self) -> Passages:
        """Whole documents in place of their parts."""
        table = pl.DataFrame({"file": self.files, "text": self.texts})
        files = table.group_by("file", maintain_order=True).agg(pl.col("text").str.join("\n"))
        return Passages.counted(files["file"].rename("doc_id"), files["text"])

    def items(self, sample: int, seed: int) -> KnownItems:
        """The queries of so many passages, drawn."""
        rows = np.arange(len(self.ids))
        if sample < len(rows):
            rows = np.sort(np.random.default_rng(seed).choice(len(rows), sample, replace=False))
        texts = pl.DataFrame({"doc_id": self.ids.gather(rows), "text": self.texts.gather(rows)})
        return known_items(texts, self.analyzer, self.frequencies, len(self.ids), seed=seed)

    def have_query(self, numbers: Array) -> Array:
        """Whether passages [n] have a sentence that can be asked for [n]."""
        return np.array([has_query(text) for text in self.texts.gather(numbers)], np.bool_)

    @cached_property
    def _weights(self) -> Any:
        """The BM25 score of each term in each passage [V, N], in Lucene's form, without terms that are not rare."""
        documents = len(self.ids)
        weights = self.words.copy()
        lengths = weights.sum(axis=1)
        norm = K1 * (1 - B + B * lengths / max(1.0, lengths.mean()))
        idf = np.log1p((documents - self.frequencies + 0.5) / (self.frequencies + 0.5))
        idf[self.frequencies > max(1, RARE * documents)] = 0
        of_row = np.repeat(np.arange(documents), np.diff(weights.indptr))
        weights.data = (idf[weights.indices] * weights.data / (weights.data + norm[of_row])).astype(np.float32)
        weights.eliminate_zeros()
        return weights.T.tocsr()

    def search(self, queries: pl.Series, k: int) -> Array:
        """The numbers of the first ``k`` passages of each query [Q, k] by BM25, −1 behind the last that has a term."""
        from scipy.sparse import csr_array

        terms = self.analyzer.terms(queries, grow=False).filter(pl.col("term") >= 0)
        entries = np.ones(terms.height, np.float32), (terms["text"].to_numpy(), terms["term"].to_numpy())
        query_terms = csr_array(entries, shape=(len(queries), self.analyzer.size))
        numbers = np.full((len(queries), k), -1, np.int64)
        for start in range(0, len(queries), _QUERIES):
            scores = (query_terms[start : start + _QUERIES] @ self._weights).tocsr()
            for row, (first, last) in enumerate(zip(scores.indptr, scores.indptr[1:], strict=False), start):
                own, documents = scores.data[first:last], scores.indices[first:last]
                if len(own) > k:
                    top = own >= np.partition(own, -k)[-k]
                    own, documents = own[top], documents[top]
                order = np.lexsort((documents, -own))[:k]
                numbers[row, : len(order)] = documents[order]
        return numbers

    def alike(self, some: Array, others: Array) -> Array:
        """Whether passages ``some`` [n] and ``others`` [n] share nine tenths of the distinct words of either."""
        sizes = np.diff(self.words.indptr)
        matches = np.zeros(len(some), np.bool_)
        # Most differ too much in length; long passages a few at a time.
        close = np.flatnonzero(
            np.minimum(sizes[some], sizes[others]) >= ALIKE * np.maximum(1, np.maximum(sizes[some], sizes[others]))
        )
        part = np.cumsum(sizes[some[close]] + sizes[others[close]]) // _TERMS
        for rows in np.split(close, np.flatnonzero(np.diff(part)) + 1):
            common = self._present[some[rows]].multiply(self._present[others[rows]]).sum(axis=1)
            matches[rows] = common >= ALIKE * np.maximum(sizes[some[rows]], sizes[others[rows]])
        return matches

    @cached_property
    def _present(self) -> Any:
        present = self.words.copy()
        present.data[:] = 1
        return present
