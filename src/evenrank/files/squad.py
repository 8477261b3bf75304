"""Questions with answer spans in SQuAD's JSON form, and matches of answers that come without a position."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import NotRequired, TypedDict

import polars as pl

from . import irds
from .errors import EvenrankError, InputError, quoted
from .reading import open_binary, read_bytes

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
    :meth:`Squad.answers` (``answer`` as written in the passage), and the rows of ``answers`` without a
    match: the answer is empty, it does not occur, or its passage is missing.
    """
    wanted = answers.select("query_id", "doc_id", "answer").unique(maintain_order=True)
    pairs = wanted.with_row_index("row").join(passages, on="doc_id", how="left", maintain_order="left")
    spans: list[tuple[str, str, str, int, int]] = []
    unmatched: list[int] = []
    last: tuple[str | None, str] = (None, "")
    for row, query_id, doc_id, answer, text in pairs.sort("doc_id", "row").iter_rows():
        if last[0] != doc_id:
            last = (doc_id, _folded(text or ""))
        needle = _folded(answer.strip())
        places = list(find_words(needle, last[1])) if needle else []
        spans += [(query_id, doc_id, text[p : p + len(needle)], p, p + len(needle)) for p in places]
        if not places:
            unmatched.append(row)
    matches = pl.DataFrame(spans, ANSWER_SCHEMA, orient="row")
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
    rows = []
    for query in irds.queries(identifier):
        if getattr(query, "answers", None) is None:
            raise EvenrankError(f"{identifier}: the queries of this data set have no answers")
        rows += [(query.query_id, str(answer)) for answer in query.answers]
    answers = pl.DataFrame(rows, {"query_id": pl.String, "answer": pl.String}, orient="row")
    relevant = irds.qrels(identifier).filter(pl.col("relevance") >= 1).select("query_id", "doc_id")
    pairs = relevant.join(answers, on="query_id", how="inner", maintain_order="left")
    if not pairs.height:
        raise EvenrankError(f"{identifier}: no query has both an answer and a relevant passage")
    return pairs, irds.texts(identifier, pairs["doc_id"])


_LISTED = 5
"""At most this many of the answers that were left out are named."""


class SquadAnswer(TypedDict):
    """An answer; ``answer_start`` counts characters of the passage from 0."""

    text: str
    answer_start: int


class SquadQuestion(TypedDict):
    """A question; ``query_id`` takes precedence over ``id``."""

    answers: list[SquadAnswer]
    id: NotRequired[str | int]
    query_id: NotRequired[str | int]
    question: NotRequired[str]
    is_impossible: NotRequired[bool]
    plausible_answers: NotRequired[list[SquadAnswer] | None]


class SquadParagraph(TypedDict):
    """A passage and its questions."""

    context: str
    qas: list[SquadQuestion]
    doc_id: NotRequired[str | int]


class SquadArticle(TypedDict):
    """An article and its passages."""

    paragraphs: list[SquadParagraph]
    title: NotRequired[str]


class SquadData(TypedDict):
    """The JSON values of a SQuAD file."""

    data: list[SquadArticle]
    version: NotRequired[str]


@dataclass(slots=True)
class AnswerAlignment:
    """How many answers are where their source states, and what happened to the others.

    ``read``: all answers; ``realigned``: those found elsewhere than their source states; ``without_place``: those for
    which it states no position; ``left_out`` (question, passage, answer): those whose text is not in their passage.
    """

    read: int = 0
    realigned: int = 0
    without_place: int = 0
    left_out: list[tuple[str, str, str]] = field(default_factory=list)

    def notes(self) -> tuple[str, ...]:
        """Sentences on the answers that were moved, placed or left out; empty if there are none."""
        of = f"of {self.read:,}"
        notes = []
        if self.realigned:
            phrase = "Answers not at the position stated in the file, moved to the nearest match of their text"
            notes.append(f"{phrase}: {self.realigned:,} {of}.")
        if self.without_place:
            phrase = "Answers without a position in the file, placed at the first match of their text"
            notes.append(f"{phrase}: {self.without_place:,} {of}.")
        if self.left_out:
            phrase = "Answers whose text is not in their passage, left out"
            notes.append(f"{phrase}: {len(self.left_out):,} {of}: {list_answers(self.left_out)}.")
        return tuple(notes)

    def to_dict(self) -> dict[str, object]:
        """As JSON values, with the first five of the answers that were left out."""
        first = [dict(zip(("query_id", "doc_id", "answer"), row, strict=True)) for row in self.left_out[:_LISTED]]
        counts = {"read": self.read, "realigned": self.realigned, "without_place": self.without_place}
        return {**counts, "left_out": len(self.left_out), "first_left_out": first}

    def align(self, query_id: str, doc_id: str, context: str, text: str, start: int | None) -> tuple[int, int] | None:
        """Locates an answer with :func:`locate_answer` and counts it."""
        self.read += 1
        span = locate_answer(context, text, start)
        if span is None:
            self.left_out.append((query_id, doc_id, text))
        elif start is None:
            self.without_place += 1
        else:
            self.realigned += span != (start, start + len(text))
        return span


def list_answers(rows: Sequence[tuple[str, str, str]]) -> str:
    """The first five of some answers (question, passage, answer), for a message."""
    named = [f"{quoted(answer)} (question {quoted(query)[1:-1]})" for query, _, answer in rows[:_LISTED]]
    return ", ".join([*named, *(["…"] if len(rows) > _LISTED else [])])


@dataclass(frozen=True, slots=True)
class Squad:
    """A SQuAD file: its JSON values with every answer aligned to its passage, and what the alignment changed."""

    path: str
    data: SquadData
    alignment: AnswerAlignment

    def answers(self) -> pl.DataFrame:
        """The answers: ``query_id``, ``doc_id``, ``answer``, ``answer_start``, ``answer_end``.

        One row per answer, in characters of the passage, counted from 0, end excluded. The query id is a question's
        ``query_id``, else its ``id``; the document id is a paragraph's ``doc_id``, else its number in the file.
        Unanswerable questions have no row, nor have answers whose text is not in their passage (:func:`load_squad`
        counts them).
        """
        return answer_table(self.data)

    def passages(self) -> pl.DataFrame:
        """The passages, ``doc_id`` and ``text``. Raises InputError for an id with two texts."""
        texts: dict[str, str] = {}
        for doc_id, paragraph in paragraphs(self.data):
            if texts.setdefault(doc_id, paragraph["context"]) != paragraph["context"]:
                raise InputError(self.path, f"two paragraphs have the document id {quoted(doc_id)} and different texts")
        schema = {"doc_id": pl.String, "text": pl.String}
        return pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())}, schema)


def answer_table(data: SquadData) -> pl.DataFrame:
    """The answers of aligned SQuAD data, as :meth:`Squad.answers` returns them."""
    rows = [
        (question_id(question), doc_id, answer["text"], answer["answer_start"])
        for doc_id, paragraph in paragraphs(data)
        for question in paragraph["qas"]
        for answer in question["answers"]
    ]
    return pl.DataFrame([(*row, row[3] + len(row[2])) for row in rows], ANSWER_SCHEMA, orient="row")


def load_squad(path: str | os.PathLike[str]) -> Squad:
    """Reads a SQuAD file, checks its form and aligns its answers.

    An answer that is not at its ``answer_start``, or has none, is moved to the nearest match of its text
    (:func:`locate_answer`); one whose text is not in its passage is left out. Raises InputError if the file is not in
    SQuAD's form.
    """
    with open_binary(path) as stream:
        content = read_bytes(path, stream, -1)
    try:
        data: SquadData = json.loads(content.decode(json.detect_encoding(content)))
        if b"\\u" in content:
            json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(path, "expected Unicode, found half a surrogate pair") from None
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"invalid JSON ({error})") from None
    alignment, plausible = AnswerAlignment(), AnswerAlignment()
    try:
        for doc_id, paragraph in paragraphs(data):
            context = paragraph["context"]
            _expect(context, str)
            for question in paragraph["qas"]:
                _expect(question.get("query_id", question.get("id")), str | int)
                question["answers"] = _aligned(question, doc_id, context, question["answers"], alignment)
                # SQuAD 2.0 has these for questions without an answer: not counted.
                answers = question.get("plausible_answers")
                if answers is not None:
                    question["plausible_answers"] = _aligned(question, doc_id, context, answers, plausible)
    except (KeyError, TypeError, AttributeError) as error:
        why = f"without {error}" if isinstance(error, KeyError) else str(error)
        raise InputError(path, f"expected SQuAD's form (data, paragraphs, context, qas, answers): {why}") from None
    return Squad(os.fspath(path), data, alignment)


def _aligned(
    question: SquadQuestion, doc_id: str, context: str, answers: list[SquadAnswer], alignment: AnswerAlignment
) -> list[SquadAnswer]:
    aligned_answers: list[SquadAnswer] = []
    for answer in answers:
        text, start = answer["text"], answer.get("answer_start")
        _expect(text, str)
        _expect(start, int | None)
        span = alignment.align(question_id(question), doc_id, context, text, start)
        if span is not None:
            aligned_answers.append({**answer, "text": context[span[0] : span[1]], "answer_start": span[0]})
    return aligned_answers


def locate_answer(context: str, text: str, start: int | None) -> tuple[int, int] | None:
    """The span of ``text`` in ``context`` (characters, end excluded): at ``start``, else the nearest match.

    Exact matches come first, then matches with other white space inside and none at the ends; among either, matches
    that split no word come before those that do. Without a ``start`` the first match is taken. None if the text is
    blank or does not occur.
    """
    if not text.strip():
        return None
    if start is not None and start >= 0 and context[start : start + len(text)] == text:
        return start, start + len(text)
    # A lookahead, so that overlapping matches count too.
    exact = [(match.start(), match.start() + len(text)) for match in re.finditer(f"(?={re.escape(text)})", context)]
    spaced = exact or [match.span() for match in re.finditer(r"\s+".join(map(re.escape, text.split())), context)]
    word_spans = [span for span in spaced if not splits_word(context, *span)]
    return min(word_spans or spaced, key=lambda span: (abs(span[0] - (start or 0)), span[0]), default=None)


def _expect(value: object, kind: type | UnionType) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"found {quoted(str(value))}")


def question_id(question: SquadQuestion) -> str:
    """A question's ``query_id`` if it has one, else its ``id``."""
    return str(question.get("query_id", question.get("id")))


def paragraphs(data: SquadData) -> Iterator[tuple[str, SquadParagraph]]:
    """Every paragraph with its document id: its ``doc_id``, else its number in the file."""
    number = 0
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            yield str(paragraph.get("doc_id", number)), paragraph
            number += 1
