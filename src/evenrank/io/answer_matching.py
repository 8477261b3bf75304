"""Matches of answer texts in passages, for answers that come without a position."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import polars as pl

from . import irds
from .errors import EvenrankError

if TYPE_CHECKING:
    from .squad import SquadAnswer, SquadArticle, SquadData, SquadQuestion

ANSWER_SCHEMA = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "answer": pl.String,
    "answer_start": pl.Int64,
    "answer_end": pl.Int64,
}


def match_answers(answers: pl.DataFrame, passages: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Every match of an answer in its passage.

    ``answers``: ``query_id``, ``doc_id``, ``answer``; ``passages``: ``doc_id``, ``text``. Answers match whole words,
    ignoring case and white space at their ends; overlapping matches count too. Returns the matches, with the columns of
    :func:`evenrank.io.squad.read_answers` (``answer`` as written in the passage), and the rows of ``answers`` without a
    match: the answer is empty, it does not occur, or its passage is missing.
    """
    wanted = answers.select("query_id", "doc_id", "answer").unique(maintain_order=True)
    given = wanted.with_row_index("row").join(passages, on="doc_id", how="left", maintain_order="left")
    found: list[tuple[str, str, str, int, int]] = []
    unmatched: list[int] = []
    last: tuple[str | None, str] = (None, "")
    for row, query_id, doc_id, answer, text in given.sort("doc_id", "row").iter_rows():
        if last[0] != doc_id:
            last = (doc_id, _folded(text or ""))
        needle = _folded(answer.strip())
        places = list(find_words(needle, last[1])) if needle else []
        found += [(query_id, doc_id, text[p : p + len(needle)], p, p + len(needle)) for p in places]
        if not places:
            unmatched.append(row)
    matches = pl.DataFrame(found, ANSWER_SCHEMA, orient="row")
    order = wanted.select("query_id", "doc_id").unique(maintain_order=True).with_row_index("at")
    matches = matches.join(order, on=["query_id", "doc_id"], how="left", maintain_order="left")
    return matches.sort("at", "answer_start", "answer_end").drop("at"), wanted[sorted(unmatched)]


def _folded(text: str) -> str:
    """Lower case, one character for each character, so that positions are unchanged."""
    if text.isascii():
        return text.lower()
    return "".join(lower if len(lower := character.casefold()) == 1 else character for character in text)


def find_words(needle: str, text: str) -> Iterator[int]:
    """The positions of ``needle`` in ``text`` at which it splits no word."""
    place = text.find(needle)
    while place >= 0:
        if not splits_word(text, place, place + len(needle)):
            yield place
        place = text.find(needle, place + 1)


def splits_word(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] begins or ends within a word (of letters, digits and underscores)."""
    begins = start == 0 or not (_in_word(text[start]) and _in_word(text[start - 1]))
    return not (begins and (end == len(text) or not (_in_word(text[end - 1]) and _in_word(text[end]))))


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def read_question_answers(identifier: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The answers of an ir_datasets data set, paired with the passages judged relevant.

    For data sets whose queries have answers, such as ``irds:msmarco-qna/dev`` (which ir_datasets builds from MS MARCO's
    passages and documents: a download of tens of gigabytes). Returns ``query_id``, ``doc_id``, ``answer`` of each pair
    and the passages (``doc_id``, ``text``). Raises EvenrankError for a data set without answers.
    """
    rows = [(query.query_id, answer) for query in irds.queries(identifier) for answer in _answers(identifier, query)]
    answers = pl.DataFrame(rows, {"query_id": pl.String, "answer": pl.String}, orient="row")
    relevant = irds.qrels(identifier).filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
    pairs = relevant.join(answers, on="query_id", how="inner", maintain_order="left")
    if not pairs.height:
        raise EvenrankError(f"{identifier}: no query has both an answer and a relevant passage")
    return pairs, irds.texts(identifier, pairs["doc_id"])


def irds_as_squad(identifier: str) -> tuple[SquadData, int]:
    """The same in SQuAD's form, with one article per relevant passage; and the number of answers without a match."""
    answers, passages = read_question_answers(identifier)
    matches, unmatched = match_answers(answers, passages)
    texts = dict(pl.concat(list(irds.batches(identifier, "query_id"))).iter_rows())
    found: dict[str, dict[str, list[SquadAnswer]]] = {doc_id: {} for doc_id in passages["doc_id"]}
    for query_id, doc_id, answer, start, _ in matches.iter_rows():
        found[doc_id].setdefault(query_id, []).append({"text": answer, "answer_start": start})
    data: list[SquadArticle] = []
    for doc_id, text in passages.iter_rows():
        qas: list[SquadQuestion] = [
            {"id": f"{query_id}_{doc_id}", "query_id": query_id, "question": texts[query_id], "answers": spans}
            for query_id, spans in found[doc_id].items()
        ]
        data.append({"title": doc_id, "paragraphs": [{"doc_id": doc_id, "context": text, "qas": qas}]})
    return {"data": data}, unmatched.height


class _Query(Protocol):
    """A query of ir_datasets with answers."""

    answers: Sequence[object]


def _answers(identifier: str | os.PathLike[str], query: _Query) -> list[str]:
    if getattr(query, "answers", None) is None:
        raise EvenrankError(f"{identifier}: the queries of this data set have no answers")
    return [str(answer) for answer in query.answers]
