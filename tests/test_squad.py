"""Answer spans in SQuAD's form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenrank.io.errors import InputError
from evenrank.io.squad import read_answers
from evenrank.synthetic import Planted, generate


def squad(*paragraphs: dict) -> str:
    return json.dumps({"version": "v2.0", "data": [{"title": "t", "paragraphs": list(paragraphs)}]})


def test_questions_and_paragraphs_get_their_ids(tmp_path: Path) -> None:
    first = {"context": "A bee flew home.", "qas": [
        {"id": "q1", "question": "Who flew?", "answers": [
            {"text": "bee", "answer_start": 2}, {"text": "A bee", "answer_start": 0}]},
        {"id": "q2", "question": "Why?", "answers": [], "is_impossible": True},
    ]}  # fmt: skip
    second = {"doc_id": "x7", "context": "Zürich it was.", "qas": [
        {"id": "q3", "query_id": "3", "question": "Where?", "answers": [{"text": "Zürich", "answer_start": 0}]},
    ]}  # fmt: skip
    (tmp_path / "a.json").write_text(squad(first, second), encoding="utf-8")
    assert read_answers(tmp_path / "a.json").rows() == [
        ("q1", "0", "bee", 2, 5),
        ("q1", "0", "A bee", 0, 5),
        ("3", "x7", "Zürich", 0, 6),
    ]


def test_the_built_in_collections_answers(tmp_path: Path) -> None:
    made = generate(Planted(passages=200))
    made.write(tmp_path)
    found = read_answers(tmp_path / "answers.json")
    expected = made.answers.select(found.columns)
    assert sorted(found.rows()) == sorted(expected.rows())


def test_public_questions(shared_data: Path) -> None:
    found = read_answers(shared_data / "xquad" / "xquad.en.json")
    assert found["query_id"].n_unique() == 1190
    assert found["doc_id"].n_unique() == 240


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "no valid JSON"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', "expected SQuAD's form"),
        ("[]", "expected SQuAD's form"),
        (
            squad({"context": "A bee.", "qas": [{"id": "q", "answers": [{"text": "bee", "answer_start": 1}]}]}),
            "answer 1, question q: expected 'bee', found ' be'",
        ),
    ],
)
def test_what_is_not_squad(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as error:
        read_answers(tmp_path / "a.json")
    assert message in str(error.value)
