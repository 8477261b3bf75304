"""Questions with answer spans in SQuAD's JSON form."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import polars as pl

from .errors import InputError, shown
from .files import open_binary, read_bytes

_SCHEMA = {
    "query_id": pl.String,
    "doc_id": pl.String,
    "answer": pl.String,
    "answer_start": pl.Int64,
    "answer_end": pl.Int64,
}


def read_answers(path: str | os.PathLike[str]) -> pl.DataFrame:
    """The answers of a SQuAD file: ``query_id``, ``doc_id``, ``answer``, ``answer_start``, ``answer_end``.

    One row an answer; characters of the passage, counted from 0, the end excluded. A question's ``id`` is its query id,
    a paragraph's number in the file its document id, unless they carry ``query_id`` and ``doc_id`` of their own.
    Unanswerable questions have no row. Raises InputError for what is not SQuAD, and for an answer that does not stand
    where its span says.
    """
    return answer_table(load_squad(path), path)


def answer_table(data: dict[str, Any], path: str | os.PathLike[str]) -> pl.DataFrame:
    """The answers of SQuAD's JSON values as :func:`read_answers` gives them; ``path`` is for messages."""
    rows = list(_rows(data))
    for number, (query, _, answer, start, end, context) in enumerate(rows):
        if not 0 <= start <= end <= len(context):
            place = f"outside the passage, at {shown(start)}"
            raise InputError(path, f"answer {number + 1}, question {query}: {shown(answer)} stands {place}")
        if context[start:end] != answer:
            found = shown(context[start:end])
            raise InputError(path, f"answer {number + 1}, question {query}: expected {shown(answer)}, found {found}")
    return pl.DataFrame([row[:5] for row in rows], _SCHEMA, orient="row")


def load_squad(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A SQuAD file as JSON values, its form checked. Raises InputError for what is not SQuAD."""
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
    try:
        for _, paragraph in paragraphs(data):
            _expect(paragraph["context"], str)
            for question in paragraph["qas"]:
                _expect(question.get("query_id", question.get("id")), str | int)
                for answer in question["answers"]:
                    _expect(answer["text"], str)
                    _expect(answer["answer_start"], int)
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(path, f"expected SQuAD's form (data, paragraphs, context, qas, answers): {error}") from None
    return data  # type: ignore[no-any-return]


def _expect(value: object, kind: Any) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"found {shown(str(value))}")


def paragraphs(data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every paragraph with its document id: its own ``doc_id``, else its number in the file."""
    number = 0
    for article in data["data"]:
        for paragraph in article["paragraphs"]:
            yield str(paragraph.get("doc_id", number)), paragraph
            number += 1


def _rows(data: dict[str, Any]) -> Iterator[tuple[str, str, str, int, int, str]]:
    for doc_id, paragraph in paragraphs(data):
        context = paragraph["context"]
        for question in paragraph["qas"]:
            query_id = str(question.get("query_id", question.get("id")))
            for answer in question["answers"]:
                text, start = answer["text"], int(answer["answer_start"])
                yield query_id, doc_id, text, start, start + len(text), context
