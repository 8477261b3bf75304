"""BM25 as a scorer: of any pair of texts, under the statistics of a collection."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.engines.progress import progress
from evenrank.io import EvenrankError, as_batches
from evenrank.io.ranges import check_ranges
from evenrank.rankers.pairs import Rows, TextPairs
from evenrank.rankers.scorers import Scorer, Scores

from .analysis import STOP_WORD, Analyzer

Ints = NDArray[np.int64]


class BM25Scorer(Scorer):
    """The BM25 scores of pairs, with the number of documents, their average length and the frequencies of a collection.

    ``collection``, ``k1``, ``b``, ``stopwords`` and ``stemmer``: as for :func:`evenrank.retrieve`; a document of the
    collection scores as it does there, or 0 if it shares no term with the query. Any other text, such as a variant of a
    document, is scored under the same statistics: a term that the collection lacks is in none of its documents.

    The collection is read once, batch by batch; only the vocabulary and its frequencies are kept. Raises EvenrankError
    for a setting out of range and an empty collection, InputError for a collection that cannot be read.
    """

    unit = "pair"

    # parameters: those of evenrank.retrieve
    def __init__(
        self,
        collection: object,
        *,
        k1: float = 0.9,
        b: float = 0.4,
        stopwords: str | Sequence[str] | None = "english",
        stemmer: str | None = "english",
        name: str = "bm25",
        quiet: bool = True,
    ) -> None:
        check_ranges(k1=k1, b=b)
        super().__init__(name)
        self.k1, self.b = k1, b
        self.analyzer = Analyzer(stopwords, stemmer)
        self.documents, self.average, self._frequency = _statistics(collection, self.analyzer, quiet)
        self.settings = f"k1 {k1:g}, b {b:g}, {self.analyzer.description}"

    def facts(self) -> dict[str, object]:
        """``kind``, ``model`` (the name), ``k1``, ``b``, ``analysis``, ``documents`` and ``average_length`` (terms)."""
        settings = {"k1": self.k1, "b": self.b, "analysis": self.analyzer.description}
        collection = {"documents": self.documents, "average_length": self.average}
        return {"kind": "bm25", "model": self.name, **settings, **collection}

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        return [len(passage) for passage in passages]

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        # The terms of queries get numbers even if the collection lacks them; of passages, only known terms can score.
        asked = self.analyzer.terms(pairs.queries, grow=True)
        terms = asked["term"].to_numpy().astype(np.int64)
        starts = np.concatenate([[0], np.cumsum(np.bincount(asked["text"].to_numpy(), minlength=len(pairs.queries)))])
        found = self.analyzer.terms(pairs.documents, grow=False).filter(pl.col("term") != STOP_WORD)
        text, term = (found[name].to_numpy().astype(np.int64) for name in ("text", "term"))
        norm = self.k1 * (1 - self.b + self.b * np.bincount(text, minlength=len(pairs.documents)) / self.average)
        known = term >= 0
        keys, tf = np.unique((text[known] << 32) | term[known], return_counts=True)
        # A last key, so that every place that is searched for exists.
        keys, tf = np.append(keys, -1), np.append(tf, 0)
        idf = self._idf()

        def score(rows: Rows) -> Scores:
            sizes = np.diff(starts)[pairs.query[rows]]
            row = np.repeat(np.arange(len(rows)), sizes)
            place = np.arange(len(row)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            wanted = terms[starts[pairs.query[rows]][row] + place]
            document = pairs.document[rows][row]
            key = (document << 32) | wanted
            at = np.searchsorted(keys[:-1], key)
            often = np.where(keys[at] == key, tf[at], 0)
            weights = idf[wanted] * often / np.where(often, often + norm[document], 1)
            return np.bincount(row, weights, minlength=len(rows)).astype(np.float64)

        return score

    def _idf(self) -> NDArray[np.float64]:
        """Of each term [terms] that the analyzer has met."""
        frequency = np.zeros(self.analyzer.size, np.int64)
        frequency[: len(self._frequency)] = self._frequency
        idf: NDArray[np.float64] = np.log1p((self.documents - frequency + 0.5) / (frequency + 0.5))
        return idf


def _statistics(collection: object, analyzer: Analyzer, quiet: bool) -> tuple[int, float, Ints]:
    """The number of documents, their average length in terms, and of each term [terms] the documents that have it."""
    documents = total = 0
    frequency = np.zeros(0, np.int64)
    with progress("reading the collection", quiet=quiet) as advance:
        for batch in as_batches(collection):
            found = analyzer.terms(batch["text"], grow=True)
            documents, total = documents + batch.height, total + found.height
            once = np.unique((found["text"].to_numpy().astype(np.int64) << 32) | found["term"].to_numpy())
            in_batch = np.bincount(once & 0xFFFFFFFF, minlength=analyzer.size)
            in_batch[: len(frequency)] += frequency
            frequency = in_batch
            advance(batch.height)
    if not documents:
        raise EvenrankError("the collection has no document")
    return documents, total / documents or 1.0, frequency
