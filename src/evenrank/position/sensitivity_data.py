"""Queries, judgements and answers of position sensitivity, and the answers' positions in the collection's texts."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.datasets.squad_collection import squad_collection
from evenrank.io import EvenrankError, Run, as_collection, as_qrels, as_queries, read_texts
from evenrank.io.squad import answer_table, load_squad
from evenrank.probes.located_answers import first_answers, locate

Collection = str | os.PathLike[str] | pl.DataFrame


@dataclass(frozen=True, slots=True)
class Sources:
    """What is measured on: queries (``query_id``, ``text``), judgements, answer spans, the collection, and notes."""

    queries: pl.DataFrame
    qrels: pl.DataFrame
    spans: pl.DataFrame
    collection: Collection
    notes: tuple[str, ...]

    def texts(self, ids: pl.Series) -> pl.DataFrame:
        """The passages ``ids`` of the collection: ``doc_id``, ``text``."""
        if isinstance(self.collection, pl.DataFrame):
            return self.collection.filter(pl.col("doc_id").is_in(ids.implode()))
        return read_texts(self.collection, ids.unique())

    def restricted_to(self, table: pl.DataFrame) -> Sources:
        """The same for the queries of ``table`` only."""
        return replace(
            self,
            queries=self.queries.join(table, on="query_id", how="semi", maintain_order="left"),
            qrels=self.qrels.join(table, on="query_id", how="semi", maintain_order="left"),
        )


def read_sources(
    squad: str | os.PathLike[str] | None,
    collection: object,
    queries: object,
    qrels: object,
    answers: str | os.PathLike[str] | pl.DataFrame | None,
) -> Sources:
    """The sources, from one SQuAD file or from one source each. Raises EvenrankError if some are missing."""
    others = {"collection": collection, "queries": queries, "qrels": qrels, "answers": answers}
    if squad is not None:
        if any(one is not None for one in others.values()):
            raise EvenrankError("`squad` replaces `collection`, `queries`, `qrels` and `answers`: use it alone")
        # With one split no question is left out.
        made = squad_collection([squad], shares=(1, 0, 0))
        asked = made.queries.select("query_id", "text")
        return Sources(asked, made.qrels, answer_table(made.squad), made.collection, made.notes)
    lacking = [f"`{name}`" for name, one in others.items() if one is None]
    if lacking or answers is None:
        raise EvenrankError(f"expected `squad`, or also {', '.join(lacking)}")
    asked, judged, texts = as_queries(queries), as_qrels(qrels), as_collection(collection)
    if isinstance(answers, pl.DataFrame):
        return Sources(asked, judged, answers, texts, ())
    found = load_squad(answers)
    notes = tuple(f"{found.path}: {note}" for note in found.alignment.notes())
    return Sources(asked, judged, found.answers(), texts, notes)


def locate_answers(sources: Sources) -> tuple[pl.DataFrame, Sources]:
    """The first answer of each query in a relevant passage and its position there; and the sources with more notes.

    One row per query, in the order of the queries, with the columns of
    :func:`evenrank.probes.located_answers.locate`. Answers that are not in the collection's text are left out. Raises
    EvenrankError if no answer is left or a passage is missing.
    """
    relevant = sources.qrels.filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
    spans = sources.spans.join(relevant, on=["query_id", "doc_id"], how="semi", maintain_order="left")
    found = first_answers(spans, ["query_id"])
    first = sources.queries.select("query_id").join(found, on="query_id", how="inner", maintain_order="left")
    if not first.height:
        raise EvenrankError("no query has an answer in a relevant passage")
    where = "" if isinstance(sources.collection, pl.DataFrame) else f" {os.fspath(sources.collection)}"
    table, alignment = locate(first, sources.texts(first["doc_id"]), f"the collection{where}")
    notes = (*sources.notes, *(f"In the collection: {note}" for note in alignment.notes()))
    return table, replace(sources, notes=notes)


def with_rivals(table: pl.DataFrame, candidates: Run, judged: pl.DataFrame, depth: int) -> pl.DataFrame:
    """The rows whose queries have candidates other than their relevant passages, which else would always be first."""
    relevant = judged.filter(pl.col("relevance") >= 1)
    rivals = candidates.table.filter(pl.col("rank") <= depth).join(relevant, on=["query_id", "doc_id"], how="anti")
    found = table.join(rivals, on="query_id", how="semi", maintain_order="left")
    if not found.height:
        raise EvenrankError(
            f"run {candidates.name}: no query with an answer has a candidate other than its own passages"
        )
    return found


def passage_ids(table: pl.DataFrame) -> NDArray[np.int64]:
    """The number of each row's passage [rows]: queries of one passage are not independent."""
    return table["doc_id"].rank("dense").to_numpy().astype(np.int64) - 1
