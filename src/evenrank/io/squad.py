"""Questions with answer spans in SQuAD's JSON form."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import UnionType
from typing import NotRequired, TypedDict

import polars as pl

from .answer_matching import ANSWER_SCHEMA, splits_word
from .errors import InputError, quoted
from .files import open_binary, read_bytes

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
            found = "Answers not at the position stated in the file, moved to the nearest match of their text"
            notes.append(f"{found}: {self.realigned:,} {of}.")
        if self.without_place:
            found = "Answers without a position in the file, placed at the first match of their text"
            notes.append(f"{found}: {self.without_place:,} {of}.")
        if self.left_out:
            found = "Answers whose text is not in their passage, left out"
            notes.append(f"{found}: {len(self.left_out):,} {of}: {list_answers(self.left_out)}.")
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
        """The answers, as :func:`read_answers` returns them."""
        return answer_table(self.data)

    def passages(self) -> pl.DataFrame:
        """The passages, ``doc_id`` and ``text``. Raises InputError for an id with two texts."""
        texts: dict[str, str] = {}
        for doc_id, paragraph in paragraphs(self.data):
            if texts.setdefault(doc_id, paragraph["context"]) != paragraph["context"]:
                raise InputError(self.path, f"two paragraphs have the document id {quoted(doc_id)} and different texts")
        schema = {"doc_id": pl.String, "text": pl.String}
        return pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())}, schema)


def read_answers(path: str | os.PathLike[str]) -> pl.DataFrame:
    """The answers of a SQuAD file: ``query_id``, ``doc_id``, ``answer``, ``answer_start``, ``answer_end``.

    One row per answer, in characters of the passage, counted from 0, end excluded. The query id is a question's
    ``query_id``, else its ``id``; the document id is a paragraph's ``doc_id``, else its number in the file.
    Unanswerable questions have no row, nor have answers whose text is not in their passage (:func:`load_squad` counts
    them). Raises InputError if the file is not in SQuAD's form.
    """
    return load_squad(path).answers()


def answer_table(data: SquadData) -> pl.DataFrame:
    """The answers of aligned SQuAD data, as :func:`read_answers` returns them."""
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
                found = question.get("plausible_answers")
                if found is not None:
                    question["plausible_answers"] = _aligned(question, doc_id, context, found, plausible)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(path, f"expected SQuAD's form (data, paragraphs, context, qas, answers): {error}") from None
    return Squad(os.fspath(path), data, alignment)


def _aligned(
    question: SquadQuestion, doc_id: str, context: str, answers: list[SquadAnswer], alignment: AnswerAlignment
) -> list[SquadAnswer]:
    kept: list[SquadAnswer] = []
    for answer in answers:
        text, start = answer["text"], answer.get("answer_start")
        _expect(text, str)
        _expect(start, int | None)
        span = alignment.align(question_id(question), doc_id, context, text, start)
        if span is not None:
            kept.append({**answer, "text": context[span[0] : span[1]], "answer_start": span[0]})
    return kept


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
    exact = [(found.start(), found.start() + len(text)) for found in re.finditer(f"(?={re.escape(text)})", context)]
    spaced = exact or [found.span() for found in re.finditer(r"\s+".join(map(re.escape, text.split())), context)]
    whole = [span for span in spaced if not splits_word(context, *span)]
    return min(whole or spaced, key=lambda span: (abs(span[0] - (start or 0)), span[0]), default=None)


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
