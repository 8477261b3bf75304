"""Queries, judgements and answers of position sensitivity, and the answers' positions in the collection's texts."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.datasets.squad_collection import squad_collection
from evenrank.io import EvenrankError, Run, as_collection, as_qrels, as_queries, read_texts
from evenrank.io.errors import quoted
from evenrank.io.squad import AnswerAlignment, answer_table, load_squad
from evenrank.io.wording import are, counted

_WORD = re.compile(r"\S+")

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

    One row per query, in the order of the queries: ``query_id``, ``doc_id``, ``text``, ``answer_start``,
    ``answer_end`` (characters), ``word``, ``last`` (first and last word of the answer, from 0), ``words`` of the
    passage, ``relative`` = word / words, ``last_end`` (end of the last word). Answers that are not in the collection's
    text are left out. Raises EvenrankError if no answer is left or a passage is missing.
    """
    first = _first_answers(sources)
    table, alignment = _located(first, sources)
    notes = (*sources.notes, *(f"In the collection: {note}" for note in alignment.notes()))
    return table, replace(sources, notes=notes)


def _first_answers(sources: Sources) -> pl.DataFrame:
    """The first answer of each query in a relevant passage: ``query_id``, ``doc_id``, ``answer_start``,
    ``answer_end``, ``answer`` (null if unknown), in the order of the queries."""
    relevant = sources.qrels.filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
    found = sources.spans.join(relevant, on=["query_id", "doc_id"], how="semi", maintain_order="left")
    found = found.sort("query_id", "doc_id", "answer_start", "answer_end", maintain_order=True)
    found = found.unique("query_id", keep="first", maintain_order=True)
    kept = sources.queries.select("query_id").join(found, on="query_id", how="inner", maintain_order="left")
    if not kept.height:
        raise EvenrankError("no query has an answer in a relevant passage")
    names = ["query_id", "doc_id", "answer_start", "answer_end"]
    return kept.select(
        *names, pl.col("answer") if "answer" in kept.columns else pl.lit(None, pl.String).alias("answer")
    )


def _located(first: pl.DataFrame, sources: Sources) -> tuple[pl.DataFrame, AnswerAlignment]:
    """The rows of :func:`locate_answers`, and how the answers were aligned."""
    table = first.join(sources.texts(first["doc_id"]), on="doc_id", how="left", maintain_order="left")
    _check_present(table, sources.collection)
    rows, alignment = [], AnswerAlignment()
    for query, doc, start, end, wanted, text in table.iter_rows():
        if wanted is not None and (start < 0 or text[start:end].split() != wanted.split()):
            span = alignment.align(query, doc, text, wanted, start)
            if span is None:
                continue
            start, end = span
        else:
            alignment.read += 1
        answer = text[start:end] if start >= 0 else ""
        if not answer.strip():
            raise EvenrankError(f"query {quoted(query)}: the answer's span is not in the passage {quoted(doc)}")
        # White space at an answer's ends belongs to none of its words.
        start, end = start + len(answer) - len(answer.lstrip()), start + len(answer.rstrip())
        ends = [match.end() for match in _WORD.finditer(text)]
        word = int(np.searchsorted(ends, start, side="right"))
        last = int(np.searchsorted(ends, end, side="left"))
        rows.append((query, doc, text, start, end, word, last, len(ends), word / len(ends), ends[last]))
    if not rows:
        raise EvenrankError(f"no answer was found in its passage ({table.height} searched)")
    columns = [
        "query_id",
        "doc_id",
        "text",
        "answer_start",
        "answer_end",
        "word",
        "last",
        "words",
        "relative",
        "last_end",
    ]
    return pl.DataFrame(rows, columns, orient="row"), alignment


def _check_present(table: pl.DataFrame, collection: Collection) -> None:
    absent = table.filter(pl.col("text").is_null())["doc_id"].unique(maintain_order=True)
    if len(absent):
        where = "the collection" + ("" if isinstance(collection, pl.DataFrame) else f" {os.fspath(collection)}")
        listed = ", ".join(map(quoted, absent[:5])) + (", …" if len(absent) > 5 else "")
        raise EvenrankError(
            f"{counted(len(absent), 'passage')} with answers {are(len(absent))} not in {where}: {listed}"
        )


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
