"""Questions with answer spans in SQuAD's JSON form."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

from .answers import ANSWERS, cuts_word
from .errors import InputError, shown
from .files import open_binary, read_bytes

_LISTED = 5
"""So many answers without a place are named."""


@dataclass(slots=True)
class Placed:
    """How the places of answers were found: ``read`` answers in all, of which ``moved`` stood elsewhere than the file
    says, ``unplaced`` came without a place and ``left_out`` (question, passage, answer) stand nowhere in theirs."""

    read: int = 0
    moved: int = 0
    unplaced: int = 0
    left_out: list[tuple[str, str, str]] = field(default_factory=list)

    def notes(self) -> tuple[str, ...]:
        """What was done to the places, in words; nothing where every answer stands where the file says."""
        of = f"of {self.read:,}"
        notes = []
        if self.moved:
            found = "Answers that do not stand where the file says, taken at the nearest place of their text"
            notes.append(f"{found}: {self.moved:,} {of}.")
        if self.unplaced:
            found = "Answers that the file gives no place, taken where their text first stands"
            notes.append(f"{found}: {self.unplaced:,} {of}.")
        if self.left_out:
            found = "Answers whose text stands nowhere in their passage, left out"
            notes.append(f"{found}: {len(self.left_out):,} {of}: {named_answers(self.left_out)}.")
        return tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values; of the answers left out the first five."""
        first = [dict(zip(("query_id", "doc_id", "answer"), row, strict=True)) for row in self.left_out[:_LISTED]]
        counts = {"read": self.read, "realigned": self.moved, "without_place": self.unplaced}
        return {**counts, "left_out": len(self.left_out), "first_left_out": first}

    def place(self, query_id: str, doc_id: str, context: str, text: str, start: int | None) -> tuple[int, int] | None:
        """Where an answer stands in its passage, see :func:`place_of`; counted."""
        self.read += 1
        span = place_of(context, text, start)
        if span is None:
            self.left_out.append((query_id, doc_id, text))
        elif start is None:
            self.unplaced += 1
        else:
            self.moved += span != (start, start + len(text))
        return span


def named_answers(rows: Sequence[tuple[str, str, str]]) -> str:
    """The first five of some answers (question, passage, answer) in words."""
    named = [f"{shown(answer)} (question {shown(query)[1:-1]})" for query, _, answer in rows[:_LISTED]]
    return ", ".join([*named, *(["…"] if len(rows) > _LISTED else [])])


@dataclass(frozen=True, slots=True)
class Squad:
    """A SQuAD file: its JSON values, every answer in its place, and what was done so that it is."""

    path: str
    data: dict[str, Any]
    placed: Placed

    def answers(self) -> pl.DataFrame:
        """The answers as :func:`read_answers` gives them."""
        return answer_table(self.data)

    def passages(self) -> pl.DataFrame:
        """The passages, ``doc_id`` and ``text``. Raises InputError for an id with two texts."""
        texts: dict[str, str] = {}
        for doc_id, paragraph in paragraphs(self.data):
            if texts.setdefault(doc_id, paragraph["context"]) != paragraph["context"]:
                raise InputError(self.path, f"two paragraphs have the document id {shown(doc_id)} and different texts")
        schema = {"doc_id": pl.String, "text": pl.String}
        return pl.DataFrame({"doc_id": list(texts), "text": list(texts.values())}, schema)


def read_answers(path: str | os.PathLike[str]) -> pl.DataFrame:
    """The answers of a SQuAD file: ``query_id``, ``doc_id``, ``answer``, ``answer_start``, ``answer_end``.

    One row an answer; characters of the passage, counted from 0, the end excluded. A question's ``id`` is its query id,
    a paragraph's number in the file its document id, unless they carry ``query_id`` and ``doc_id`` of their own.
    Unanswerable questions have no row; nor has an answer whose text stands nowhere in its passage (see
    :func:`load_squad`, which says how many). Raises InputError for what is not SQuAD.
    """
    return load_squad(path).answers()


def answer_table(data: dict[str, Any]) -> pl.DataFrame:
    """The answers of SQuAD's JSON values as :func:`read_answers` gives them; each stands where it says."""
    rows = [
        (question_id(question), doc_id, answer["text"], answer["answer_start"])
        for doc_id, paragraph in paragraphs(data)
        for question in paragraph["qas"]
        for answer in question["answers"]
    ]
    return pl.DataFrame([(*row, row[3] + len(row[2])) for row in rows], ANSWERS, orient="row")


def load_squad(path: str | os.PathLike[str]) -> Squad:
    """A SQuAD file, read once, its form checked and its answers put in their places.

    An answer that does not stand at its ``answer_start``, or has none, is taken at the nearest place of its text
    (:func:`place_of`); one whose text stands nowhere in its passage is left out. Raises InputError for what is not
    SQuAD.
    """
    with open_binary(path) as stream:
        content = read_bytes(path, stream, -1)
    try:
        data = json.loads(content.decode(json.detect_encoding(content)))
        if b"\\u" in content:
            json.dumps(data, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise InputError(path, "expected Unicode, found half a surrogate pair") from None
    except (ValueError, RecursionError) as error:
        raise InputError(path, f"no valid JSON ({error})") from None
    placed, plausible = Placed(), Placed()
    try:
        for doc_id, paragraph in paragraphs(data):
            _expect(paragraph["context"], str)
            for question in paragraph["qas"]:
                _expect(question.get("query_id", question.get("id")), str | int)
                question["answers"] = _in_place(question, doc_id, paragraph["context"], question["answers"], placed)
                # What SQuAD 2.0 has beside a question without an answer: none to count.
                if question.get("plausible_answers") is not None:
                    found = question["plausible_answers"]
                    question["plausible_answers"] = _in_place(question, doc_id, paragraph["context"], found, plausible)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(path, f"expected SQuAD's form (data, paragraphs, context, qas, answers): {error}") from None
    return Squad(os.fspath(path), data, placed)


def _in_place(
    question: dict[str, Any], doc_id: str, context: str, answers: list[dict[str, Any]], placed: Placed
) -> list[dict[str, Any]]:
    kept = []
    for answer in answers:
        text, start = answer["text"], answer.get("answer_start")
        _expect(text, str)
        _expect(start, int | None)
        span = placed.place(question_id(question), doc_id, context, text, start)
        if span is not None:
            kept.append({**answer, "text": context[span[0] : span[1]], "answer_start": span[0]})
    return kept


def place_of(context: str, text: str, start: int | None) -> tuple[int, int] | None:
    """Where ``text`` stands in ``context`` (characters, end excluded): at ``start``, else at the nearest other place.

    Its text as it is comes first, then with any white space where it has some and none at its ends; in either, places
    that cut no word come before those that do. Without a ``start`` the first place is the nearest. None for a text of
    white space alone, and for one that stands nowhere.
    """
    if not text.strip():
        return None
    if start is not None and start >= 0 and context[start : start + len(text)] == text:
        return start, start + len(text)
    # Looked ahead, so that overlapping places count too.
    exact = [(found.start(), found.start() + len(text)) for found in re.finditer(f"(?={re.escape(text)})", context)]
    spaced = exact or [found.span() for found in re.finditer(r"\s+".join(map(re.escape, text.split())), context)]
    whole = [span for span in spaced if not cuts_word(context, *span)]
    return min(whole or spaced, key=lambda span: (abs(span[0] - (start or 0)), span[0]), default=None)


def _expect(value: object, kind: Any) -> None:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"found {shown(str(value))}")


def question_id(question: dict[str, Any]) -> str:
    """A question's ``query_id`` if it has one, else its ``id``."""
    return str(question.get("query_id", question.get("id")))


def paragraphs(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every paragraph with its document id: its own ``doc_id``, else its number in the file."""
    number = 0
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            yield str(paragraph.get("doc_id", number)), paragraph
            number += 1
