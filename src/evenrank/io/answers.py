"""Answers found in passages: where their text stands, for answers that come without a place."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

import polars as pl

from . import irds
from .errors import EvenrankError

ANSWERS = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "answer": pl.String,
    "answer_start": pl.Int64,
    "answer_end": pl.Int64,
}


def match_answers(answers: pl.DataFrame, passages: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Every place where an answer stands in its passage.

    ``answers``: ``query_id``, ``doc_id``, ``answer``; ``passages``: ``doc_id``, ``text``. An answer matches without
    regard to case, as it is written otherwise (white space at its ends aside), where it begins and ends no word's
    inside; every match counts, overlapping ones too. Returns the matches, as
    :func:`evenrank.io.squad.read_answers` has them (``answer`` as the passage writes it), and the rows of ``answers``
    without one, whether the answer is empty, stands nowhere, or its passage is not there.
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
        places = list(occurrences(needle, last[1])) if needle else []
        found += [(query_id, doc_id, text[p : p + len(needle)], p, p + len(needle)) for p in places]
        if not places:
            unmatched.append(row)
    matches = pl.DataFrame(found, ANSWERS, orient="row")
    order = wanted.select("query_id", "doc_id").unique(maintain_order=True).with_row_index("at")
    matches = matches.join(order, on=["query_id", "doc_id"], how="left", maintain_order="left")
    return matches.sort("at", "answer_start", "answer_end").drop("at"), wanted[sorted(unmatched)]


def _folded(text: str) -> str:
    """Lower case, a character for each character, so that places stay."""
    if text.isascii():
        return text.lower()
    return "".join(lower if len(lower := character.casefold()) == 1 else character for character in text)


def occurrences(needle: str, text: str) -> Iterator[int]:
    """Where ``needle`` stands in ``text`` without cutting a word at either end."""
    place = text.find(needle)
    while place >= 0:
        if not cuts_word(text, place, place + len(needle)):
            yield place
        place = text.find(needle, place + 1)


def cuts_word(text: str, start: int, end: int) -> bool:
    """Whether text[start:end] begins or ends inside a word (of letters, digits and underscores)."""
    begins = start == 0 or not (_in_word(text[start]) and _in_word(text[start - 1]))
    return not (begins and (end == len(text) or not (_in_word(text[end - 1]) and _in_word(text[end]))))


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def read_question_answers(identifier: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The answers of an ir_datasets data set whose queries carry some, to be matched in the passages judged relevant.

    ``irds:msmarco-qna/dev`` is one (ir_datasets makes it of MS MARCO's passages and documents, which it fetches first:
    tens of gigabytes). Returns ``query_id``, ``doc_id``, ``answer`` of each pair, and these passages
    (``doc_id``, ``text``). Raises EvenrankError for a data set without answers.
    """
    rows = [(query.query_id, answer) for query in irds.queries(identifier) for answer in _answers(identifier, query)]
    answers = pl.DataFrame(rows, {"query_id": pl.String, "answer": pl.String}, orient="row")
    relevant = irds.qrels(identifier).filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
    pairs = relevant.join(answers, on="query_id", how="inner", maintain_order="left")
    if not pairs.height:
        raise EvenrankError(f"{identifier}: no query has both an answer and a relevant passage")
    return pairs, irds.texts(identifier, pairs["doc_id"])


def matched_squad(identifier: str) -> tuple[dict[str, Any], int]:
    """The same in SQuAD's form, every relevant passage an article of its own; and how many answers match nowhere."""
    answers, passages = read_question_answers(identifier)
    matches, unmatched = match_answers(answers, passages)
    texts = dict(pl.concat(list(irds.batches(identifier, "query_id"))).iter_rows())
    found: dict[str, dict[str, list[dict[str, Any]]]] = {doc_id: {} for doc_id in passages["doc_id"]}
    for query_id, doc_id, answer, start, _ in matches.iter_rows():
        found[doc_id].setdefault(query_id, []).append({"text": answer, "answer_start": start})
    data = []
    for doc_id, text in passages.iter_rows():
        qas = [
            {"id": f"{query_id}_{doc_id}", "query_id": query_id, "question": texts[query_id], "answers": places}
            for query_id, places in found[doc_id].items()
        ]
        data.append({"title": doc_id, "paragraphs": [{"doc_id": doc_id, "context": text, "qas": qas}]})
    return {"data": data}, unmatched.height


def _answers(identifier: str | os.PathLike[str], query: Any) -> Iterable[str]:
    answers = getattr(query, "answers", None)
    if answers is None:
        raise EvenrankError(f"{identifier}: the queries of this data set carry no answers")
    return [str(answer) for answer in answers]
