"""Pairs of a query and a passage, each distinct text kept once, and the windows in which they are scored."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.io import EvenrankError, read_texts
from evenrank.io.errors import quoted

Rows = NDArray[np.int64]
Unit = Literal["pair", "document", "query"]
"""What a window never splits: a pair, all pairs of a document, or all pairs of a query."""


@dataclass(frozen=True, slots=True)
class TextPairs:
    """Pairs to score: ``query`` and ``document`` [pairs] are rows of the texts ``queries`` and ``documents``."""

    query: Rows
    document: Rows
    queries: pl.Series
    documents: pl.Series

    @property
    def size(self) -> int:
        """The number of pairs."""
        return len(self.query)

    @classmethod
    def of_run(
        cls, run: str, table: pl.DataFrame, collection: str | os.PathLike[str] | pl.DataFrame, queries: pl.DataFrame
    ) -> TextPairs:
        """The pairs of a run's ``table``; of a collection on disk only the texts that it needs are kept.

        ``run``: what messages call the run. Raises EvenrankError if a query or a document of the run has no text.
        """
        query_texts = _texts_of(table["query_id"], queries, f"{run}: ", " of its queries have no text")
        place = "the collection"
        if not isinstance(collection, pl.DataFrame):
            place = f"the collection {os.fspath(collection)}"
            collection = read_texts(collection, table["doc_id"])
        document_texts = _texts_of(table["doc_id"], collection, f"{run}: ", f" of its documents are not in {place}")
        rows = _rows_of(table, query_texts), _rows_of(table, document_texts)
        return cls(*rows, query_texts["text"], document_texts["text"])

    @classmethod
    def of_texts(cls, queries: Sequence[str], passages: Sequence[str]) -> TextPairs:
        """The pairs (queries[i], passages[i])."""
        return cls(*_distinct(queries, passages))

    def transformed(self, transform: Callable[[pl.Series], pl.Series]) -> TextPairs:
        """The same pairs with ``transform`` applied to the texts of queries and of documents, each [N]."""
        return TextPairs(self.query, self.document, transform(self.queries), transform(self.documents))

    def texts(self, rows: Rows) -> tuple[list[str], list[str]]:
        """The queries and the passages of some rows."""
        query, document = self.queries.gather(self.query[rows]), self.documents.gather(self.document[rows])
        return query.to_list(), document.to_list()

    def windows(self, unit: Unit, size: int) -> list[Rows]:
        """The rows of each window: ``size`` pairs, all pairs of ``size`` documents, or all pairs of one query."""
        if unit == "pair":
            return np.split(np.arange(self.size), range(size, self.size, size))
        number = self.query if unit == "query" else self.document
        rows = np.argsort(number, kind="stable")
        window = number[rows] if unit == "query" else number[rows] // size
        return np.split(rows, np.flatnonzero(np.diff(window)) + 1)


def _distinct(queries: Sequence[str], passages: Sequence[str]) -> tuple[Rows, Rows, pl.Series, pl.Series]:
    numbers: list[Rows] = []
    texts: list[pl.Series] = []
    for side in (queries, passages):
        rows: dict[str, int] = {}
        numbers.append(np.array([rows.setdefault(text, len(rows)) for text in side], np.int64))
        texts.append(pl.Series(list(rows), dtype=pl.String))
    return numbers[0], numbers[1], texts[0], texts[1]


def _texts_of(ids: pl.Series, texts: pl.DataFrame, before: str, problem: str) -> pl.DataFrame:
    """The distinct ``ids`` in order of first appearance, with their ``text``.

    Raises EvenrankError if some have none, with ``before``, their number, ``problem`` and the first five.
    """
    known = texts.select(ids.name, "text").unique(ids.name, keep="first")
    table = ids.unique(maintain_order=True).to_frame().join(known, on=ids.name, how="left", maintain_order="left")
    missing = table.filter(pl.col("text").is_null())[ids.name]
    if len(missing):
        first = ", ".join(quoted(value) for value in missing.head(5))
        raise EvenrankError(f"{before}{len(missing)}{problem}: {first}{', …' if len(missing) > 5 else ''}")
    return table


def _rows_of(table: pl.DataFrame, texts: pl.DataFrame) -> Rows:
    """The row in ``texts`` of each row of ``table``."""
    name = texts.columns[0]
    numbered = texts.select(name).with_row_index("row")
    rows = table.select(name).join(numbered, on=name, how="left", maintain_order="left")["row"]
    return rows.to_numpy().astype(np.int64)
