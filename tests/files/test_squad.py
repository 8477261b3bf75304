"""Answer spans in SQuAD's form, and answers found in passages as a regular expression finds them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from evenrank.files.errors import InputError
from evenrank.files.squad import load_squad, locate_answer, match_answers


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


def test_answers_off_by_a_space_are_realigned_counted_and_told(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    # As COVID-QA has them: thousands of words, no title, answers one off, some that are nowhere.
    late = LONG.index("Sentence 1400 of")
    texts: list[tuple[str, int | None]] = [
        *[("Sentence 1400", late), ("Sentence 1400", late - 1), (" Sentence 1400 of", late), ("Sentence 3 of", None)],
        *((f"nowhere {i}", 5) for i in range(7)),
    ]
    answers = [{"text": text} if start is None else {"text": text, "answer_start": start} for text, start in texts]
    qas = [{"id": i, "question": "?", "answers": [one]} for i, one in enumerate(answers)]
    data = {"data": [{"paragraphs": [{"document_id": 630, "context": LONG, "qas": qas}]}]}
    (tmp_path / "a.json").write_text(json.dumps(data), encoding="utf-8")
    found = load_squad(tmp_path / "a.json")
    third = LONG.index("Sentence 3 of")
    assert found.answers().rows() == [
        ("0", "0", "Sentence 1400", late, late + 13),
        ("1", "0", "Sentence 1400", late, late + 13),
        ("2", "0", " Sentence 1400 of", late - 1, late + 16),
        ("3", "0", "Sentence 3 of", third, third + 13),
    ]
    counts = {"read": 11, "realigned": 2, "without_place": 1, "left_out": 7}
    assert found.alignment.to_dict() | counts == found.alignment.to_dict()
    assert len(found.alignment.to_dict()["first_left_out"]) == 5
    assert (found.alignment.notes(), found.alignment.to_dict()["first_left_out"][0]) == snapshot
    assert load_squad(tmp_path / "a.json").alignment.notes() == found.alignment.notes()


@pytest.mark.parametrize(
    ("text", "start", "answer", "rows"),
    [
        ("A bee.", 2, "bee", [(2, 5)]),
        # Outside their passage.
        ("Rome x", -4, "me", [(2, 4)]),
        ("Rome x", 10**30, "", []),
        ("Rome x", 7, "", []),
    ],
)
def test_places(tmp_path: Path, text: str, start: int, answer: str, rows: list[tuple[int, int]]) -> None:
    question = {"id": "q", "answers": [{"text": answer, "answer_start": start}], "plausible_answers": None}
    (tmp_path / "a.json").write_text(squad({"context": text, "qas": [question]}))
    found = load_squad(tmp_path / "a.json")
    assert found.answers().select("answer_start", "answer_end").rows() == rows
    # What stands where it should is not noted.
    assert bool(found.alignment.notes()) == (start != 2)


# --- answers found in passages ---------------------------------------------------------------------------------------


def passages(*texts: str) -> pl.DataFrame:
    columns = {"doc_id": [str(i) for i in range(len(texts))], "text": list(texts)}
    return pl.DataFrame(columns, {"doc_id": pl.String, "text": pl.String})


def wanted(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), ["query_id", "doc_id", "answer"], orient="row")


def test_matches_by_hand() -> None:
    texts = passages("The bee, a Bee and beehives. Bee", "Straße, STRASSE", "aa aa aa", "cost $5 or 5")
    asked = [("q2", "1", "straße"), ("q1", "0", " bee "), ("q1", "0", "wasp"), ("q1", "0", ""), ("q3", "2", "aa aa")]
    found, unmatched = match_answers(wanted(*asked, ("q4", "3", "$5"), ("q4", "9", "5"), ("q1", "0", " bee ")), texts)
    assert found.rows() == [
        ("q2", "1", "Straße", 0, 6),
        ("q1", "0", "bee", 4, 7),
        ("q1", "0", "Bee", 11, 14),
        ("q1", "0", "Bee", 29, 32),
        ("q3", "2", "aa aa", 0, 5),
        ("q3", "2", "aa aa", 3, 8),
        ("q4", "3", "$5", 5, 7),
    ]
    assert unmatched.rows() == [("q1", "0", "wasp"), ("q1", "0", ""), ("q4", "9", "5")]


@given(st.text("aB1_ .é", max_size=16), st.text("aB1_ .é", max_size=3))
def test_matches_as_a_regular_expression_finds_them(text: str, answer: str) -> None:
    found, unmatched = match_answers(wanted(("q", "0", answer)), passages(text))
    needle = answer.strip()
    expected = []
    for start in range(len(text)) if needle else []:
        end = start + len(needle)
        left = needle[0:1] if re.match(r"\w", needle) else ""
        right = needle[-1:] if re.match(r"\w", needle[-1]) else ""
        cut = (left and re.match(r"\w", text[max(start - 1, 0) : start])) or (right and re.match(r"\w", text[end:]))
        if text[start:end].casefold() == needle.casefold() and not cut:
            expected.append((start, end))
    assert [row[3:] for row in found.rows()] == expected
    assert unmatched.height == (not expected)
