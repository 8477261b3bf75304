"""The pairs that a probe compares: each query with the passages of its list, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.io import EvenrankError, Run
from evenrank.io.wording import counted
from evenrank.rankers.pairs import TextPairs

from .effects import Floats, Ints

_EQUAL = 1e-9
"""Scores of a query that differ by no more than this share of the largest do not vary."""


@dataclass(frozen=True, slots=True)
class ProbedList:
    """N pairs of a query and a passage of its list.

    ``table`` [N]: ``query_id``, ``doc_id``; ``pairs``: the same pairs with their texts, of which each query and each
    passage has one. ``name``: of the run, or of the judgements. ``sampled_from``: the queries of the list of which
    those of a sample were drawn; None for all of them.
    """

    name: str
    table: pl.DataFrame
    pairs: TextPairs
    qrels: pl.DataFrame | None
    sampled_from: int | None = None

    @classmethod
    def of(
        cls,
        run: Run | None,
        qrels: pl.DataFrame | None,
        depth: int,
        collection: object,
        queries: object,
        sample: int | None = None,
        seed: int = 0,
    ) -> ProbedList:
        """The first ``depth`` passages of each query of ``run``, or without one the judged passages; of a ``sample``
        of so many of the queries, drawn with ``seed``.

        Raises EvenrankError if there is neither, and for queries and passages without a text.
        """
        from evenrank.io import as_collection, as_queries

        if run is not None:
            name, described = run.name, run.described
            rows = run.table.filter(pl.col("rank") <= depth).select("query_id", "doc_id")
        elif qrels is not None:
            name = described = "the judgements"
            rows = _together(qrels.select("query_id", "doc_id"))
        else:
            raise EvenrankError("expected a `run` or `qrels`, whose passages are probed")
        asked, every = as_queries(queries), rows["query_id"].unique(maintain_order=True)
        if not every.is_in(asked["query_id"].implode()).any():
            swapped = "are they of another list, or `queries` and `collection` exchanged?"
            raise EvenrankError(f"{described}: none of its {counted(len(every), 'query')} has a text: {swapped}")
        sampled_from = None
        if sample is not None and sample < len(every):
            drawn = every.gather(np.sort(np.random.default_rng(seed).choice(len(every), sample, replace=False)))
            rows, sampled_from = rows.filter(pl.col("query_id").is_in(drawn.implode())), len(every)
        pairs = TextPairs.of_run(described, rows, as_collection(collection), asked)
        return cls(name, rows, pairs, qrels, sampled_from)

    @property
    def size(self) -> int:
        """The number of pairs."""
        return self.table.height

    @property
    def query(self) -> Ints:
        """The query of each pair [N], numbered from 0."""
        return self.pairs.query

    @property
    def passage(self) -> Ints:
        """The passage of each pair [N], numbered from 0."""
        return self.pairs.document

    @property
    def texts(self) -> pl.Series:
        """The text of each pair's passage [N]."""
        return self.pairs.documents.gather(self.pairs.document)

    def passages(self) -> pl.DataFrame:
        """The distinct passages: ``doc_id``, ``text``, in the order of their numbers."""
        ids = self.table["doc_id"].unique(maintain_order=True)
        return pl.DataFrame({"doc_id": ids, "text": self.pairs.documents})

    def asked(self) -> pl.DataFrame:
        """The distinct queries: ``query_id``, ``text``, in the order of their numbers."""
        ids = self.table["query_id"].unique(maintain_order=True)
        return pl.DataFrame({"query_id": ids, "text": self.pairs.queries})

    def ranked(self, scores: Floats, name: str) -> Run:
        """The list ranked by ``scores`` [N]."""
        return Run.from_table(self.table.with_columns(pl.Series("score", scores)), name)


def _together(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows of each query one after the other, queries in order of first appearance."""
    order = rows.select("query_id").unique(maintain_order=True).with_row_index("number")
    return rows.join(order, on="query_id", maintain_order="left").sort("number", maintain_order=True).drop("number")


def spread(scores: Floats, query: Ints) -> Floats:
    """The standard deviation (ddof 0) of the scores [N] of each query [Q]; NaN where they do not vary."""
    number = int(query.max()) + 1
    count = np.bincount(query, minlength=number)
    mean = np.bincount(query, scores, number) / count
    deviation: Floats = np.sqrt(np.bincount(query, (scores - mean[query]) ** 2, number) / count)
    least, most, largest = (np.full(number, start) for start in (np.inf, -np.inf, 0.0))
    np.minimum.at(least, query, scores)
    np.maximum.at(most, query, scores)
    np.maximum.at(largest, query, np.abs(scores))
    return np.where(most - least > _EQUAL * largest, deviation, np.nan)
