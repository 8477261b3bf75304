"""Answer spans in SQuAD's form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evenrank.files.errors import InputError
from evenrank.files.squad import load_squad, locate_answer
from evenrank.files.synthetic import SyntheticConfig, generate


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
    assert load_squad(tmp_path / "a.json").answers().rows() == [
        ("q1", "0", "bee", 2, 5),
        ("q1", "0", "A bee", 0, 5),
        ("3", "x7", "Zürich", 0, 6),
    ]


def test_the_built_in_collections_answers(tmp_path: Path) -> None:
    made = generate(SyntheticConfig(passages=200))
    made.write(tmp_path)
    found = load_squad(tmp_path / "answers.json").answers()
    expected = made.answers.select(found.columns)
    assert sorted(found.rows()) == sorted(expected.rows())


def test_public_questions(shared_data: Path) -> None:
    found = load_squad(shared_data / "xquad" / "xquad.en.json").answers()
    assert found["query_id"].n_unique() == 1190
    assert found["doc_id"].n_unique() == 240


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "invalid JSON"),
        ('{"data": [{"paragraphs": [{"qas": []}]}]}', "expected SQuAD's form"),
        ("[]", "expected SQuAD's form"),
        (squad({"context": "A bee.", "qas": [{"id": "q", "answers": [{"text": "bee", "answer_start": "2"}]}]}), "'2'"),
        (squad({"context": "A bee.", "qas": [{"id": "q", "answers": [], "plausible_answers": 7}]}), "SQuAD's form"),
        (squad({"context": "A bee.", "qas": [{"id": "q", "answers": [], "plausible_answers": [7]}]}), "SQuAD's form"),
    ],
)
def test_what_is_not_squad(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "a.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError) as error:
        load_squad(tmp_path / "a.json").answers()
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("context", "text", "start", "found"),
    [
        # In its place, which may cut a word, hold white space at its ends, and have a nearer whole word beside it.
        ("bees a bee", "bee", 0, (0, 3)),
        ("a bee ", " bee ", 1, (1, 6)),
        # Off by a space, before and after; the nearest of several.
        ("a bee, a bee, a bee", "bee", 8, (9, 12)),
        ("a bee, a bee, a bee", "bee", 10, (9, 12)),
        ("a bee, a bee, a bee", "bee", 999, (16, 19)),
        ("a bee, a bee, a bee", "bee", -7, (2, 5)),
        # As near on both sides: the first. Overlapping places count.
        ("bee . bee", "bee", 3, (0, 3)),
        ("x aa aa aa", "aa aa", 4, (5, 10)),
        # A whole word before a nearer part of one; a part where there is nothing else.
        ("the man said he", "he", 3, (13, 15)),
        ("Normans", "Norman", 1, (0, 6)),
        # White space at the ends or within, where the text as it is stands nowhere.
        ("a  bee\nflew", " bee flew ", 1, (3, 11)),
        ("a bee", "bee\n", 1, (2, 5)),
        # Nowhere; nothing.
        ("a bee", "wasp", 2, None),
        ("a bee", "", 2, None),
        ("a bee", " ", 1, None),
        # Without a place: where it first stands.
        ("a bee, a bee", "bee", None, (2, 5)),
        ("a (bee) flew", "(bee)", 9, (2, 7)),
    ],
)
def test_an_answer_is_put_in_its_place(
    context: str, text: str, start: int | None, found: tuple[int, int] | None
) -> None:
    assert locate_answer(context, text, start) == found


LONG = "".join(f"Sentence {i} of a long paper. " for i in range(1500))


def test_answers_off_by_a_space_are_realigned_counted_and_told(tmp_path: Path) -> None:
    # As COVID-QA has them: thousands of words, no title, answers one off, some that are nowhere.
    def answer(text: str, start: int | None) -> dict:
        return {"text": text} if start is None else {"text": text, "answer_start": start}

    late = LONG.index("Sentence 1400 of")
    answers = [
        answer("Sentence 1400", late),
        answer("Sentence 1400", late - 1),
        answer(" Sentence 1400 of", late),
        answer("Sentence 3 of", None),
        *(answer(f"nowhere {i}", 5) for i in range(7)),
    ]
    qas = [{"id": i, "question": "?", "answers": [one]} for i, one in enumerate(answers)]
    data = {"data": [{"paragraphs": [{"document_id": 630, "context": LONG, "qas": qas}]}]}
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    found = load_squad(tmp_path / "a.json")
    assert found.answers().rows() == [
        ("0", "0", "Sentence 1400", late, late + 13),
        ("1", "0", "Sentence 1400", late, late + 13),
        ("2", "0", " Sentence 1400 of", late - 1, late + 16),
        ("3", "0", "Sentence 3 of", LONG.index("Sentence 3 of"), LONG.index("Sentence 3 of") + 13),
    ]
    assert found.alignment.notes() == (
        "Answers not at the position stated in the file, moved to the nearest match of their text: 2 of 11.",
        "Answers without a position in the file, placed at the first match of their text: 1 of 11.",
        "Answers whose text is not in their passage, left out: 7 of 11: 'nowhere 0' (question 4), 'nowhere 1'"
        " (question 5), 'nowhere 2' (question 6), 'nowhere 3' (question 7), 'nowhere 4' (question 8), ….",
    )
    told = found.alignment.to_dict()
    assert {name: told[name] for name in ("read", "realigned", "without_place", "left_out")} == {
        "read": 11, "realigned": 2, "without_place": 1, "left_out": 7,
    }  # fmt: skip
    assert told["first_left_out"][0] == {"query_id": "4", "doc_id": "0", "answer": "nowhere 0"}
    assert len(told["first_left_out"]) == 5
    assert load_squad(tmp_path / "a.json").alignment.notes() == found.alignment.notes()


def test_what_stands_where_it_should_is_not_noted(tmp_path: Path) -> None:
    question = {"id": "q", "answers": [{"text": "bee", "answer_start": 2}], "plausible_answers": None}
    (tmp_path / "a.json").write_text(squad({"context": "A bee.", "qas": [question]}), encoding="utf-8")
    assert load_squad(tmp_path / "a.json").alignment.notes() == ()


@pytest.mark.parametrize(("start", "answer", "rows"), [(-4, "me", [(2, 4)]), (10**30, "", []), (7, "", [])])
def test_answers_outside_their_passage(tmp_path: Path, start: int, answer: str, rows: list[tuple[int, int]]) -> None:
    question = {"id": "q", "answers": [{"text": answer, "answer_start": start}]}
    data = {"data": [{"paragraphs": [{"context": "Rome x", "qas": [question]}]}]}
    (tmp_path / "squad").write_text(json.dumps(data))
    assert load_squad(tmp_path / "squad").answers().select("answer_start", "answer_end").rows() == rows
