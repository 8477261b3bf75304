"""Answer spans in SQuAD's form: found in passages, and as a collection with the official or drawn splits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from evenrank.files import InputError, read_qrels, read_queries, scan_collection
from evenrank.files.squad import load_squad, locate_answer, match_answers
from evenrank.files.squad_collection import squad_collection


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
        ("{}", "answers): without 'data'"),
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
        ("a bee, a bee, a bee", "bee", 10, (9, 12)),
        ("a bee, a bee, a bee", "bee", -7, (2, 5)),
        # As near on both sides: the first. Overlapping places count.
        ("bee . bee", "bee", 3, (0, 3)),
        ("x aa aa aa", "aa aa", 4, (5, 10)),
        # A whole word before a nearer part of one; a part where there is nothing else.
        ("the man said he", "he", 3, (13, 15)),
        ("Normans", "Norman", 1, (0, 6)),
        # White space at the ends or within, where the text as it is stands nowhere.
        ("a  bee\nflew", " bee flew ", 1, (3, 11)),
        # Nowhere; nothing.
        ("a bee", "wasp", 2, None),
        ("a bee", " ", 1, None),
        # Without a place: where it first stands.
        ("a bee, a bee", "bee", None, (2, 5)),
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


# --- answers found in passages ---------------------------------------------------------------------------------------


def texts_of(*texts: str) -> pl.DataFrame:
    columns = {"doc_id": [str(i) for i in range(len(texts))], "text": list(texts)}
    return pl.DataFrame(columns, {"doc_id": pl.String, "text": pl.String})


def wanted(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(list(rows), ["query_id", "doc_id", "answer"], orient="row")


def test_matches_by_hand() -> None:
    texts = texts_of("The bee, a Bee and beehives. Bee", "Straße, STRASSE", "aa aa aa", "cost $5 or 5")
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
    found, unmatched = match_answers(wanted(("q", "0", answer)), texts_of(text))
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


# --- collections ------------------------------------------------------------------------------------------------------


def ask(number: object, answer: str | None, start: int = 0, **more: Any) -> dict[str, Any]:
    answers = [] if answer is None else [{"text": answer, "answer_start": start}]
    return {"id": f"q{number}", "question": f"What  is {number}?\n", "answers": answers, **more}


def save(path: Path, *articles: list[tuple[str, list[dict[str, Any]]]]) -> Path:
    paragraphs = [[{"context": text, "qas": questions} for text, questions in article] for article in articles]
    data = [{"title": f"article {i}", "paragraphs": of} for i, of in enumerate(paragraphs)]
    path.write_text(json.dumps({"version": "v2.0", "data": data}), encoding="utf-8")
    return path


def many(path: Path, articles: int, questions: int, name: str) -> Path:
    """Articles of one passage with so many questions."""
    of = [(f"{name} {a}", [ask(f"{name}{a}-{q}", name) for q in range(questions)]) for a in range(articles)]
    return save(path, *([one] for one in of))


def passages(path: Path, *articles: list[int]) -> Path:
    """Articles of passages with so many questions."""
    of = [
        [(f"text {a}-{p}", [ask(f"{a}-{p}-{q}", "text") for q in range(n)]) for p, n in enumerate(one)]
        for a, one in enumerate(articles)
    ]
    return save(path, *of)


def counts_in(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "counts.json").read_text(encoding="utf-8")))


def test_by_hand(tmp_path: Path) -> None:
    first = save(
        tmp_path / "train.json",
        [("A\tbee flew\nhome.", [ask(1, "bee flew\nhome", 2), ask(2, None), ask(3, "bee", 2, is_impossible=True)])],
        [("A cat.", [ask(4, "cat", 2)]), ("A\tbee flew\nhome.", [ask(5, "A")])],
    )
    second = save(tmp_path / "dev.json", [("A dog.", [ask(6, "dog", 2)]), ("A cat.", [ask(7, "A")]), ("Rain.", [])])
    made = squad_collection([first, second], validation=0)
    # Numbers over both files; what was met before has its first number.
    assert made.collection.rows() == [("0", "A bee flew home."), ("1", "A cat."), ("3", "A dog."), ("5", "Rain.")]
    splits = {1: "train", 4: "train", 5: "train", 6: "test", 7: "test"}
    assert made.queries.rows() == [(f"q{i}", f"What is {i}?", split) for i, split in splits.items()]
    assert made.qrels.rows() == [("q1", "0", 1), ("q4", "1", 1), ("q5", "0", 1), ("q6", "3", 1), ("q7", "1", 1)]
    assert {name: count for name, count in made.counts.items() if count} == {
        **{"paragraphs": 6, "repeated_paragraphs": 2, "questions": 7, "unanswerable": 2, "documents": 4},
        **{"queries": 5, "articles": 3, "train": 3, "test": 2},
    }
    folder = made.write(tmp_path / "out")
    assert load_squad(folder / "answers.json").answers().rows() == [
        ("q1", "0", "bee flew home", 2, 15),
        ("q4", "1", "cat", 2, 5),
        ("q5", "0", "A", 0, 1),
        ("q6", "3", "dog", 2, 5),
        ("q7", "1", "A", 0, 1),
    ]
    assert pl.concat(list(scan_collection(folder / "collection.tsv"))).equals(made.collection)
    assert read_queries(folder / "queries.train.tsv").height == 3
    assert not (folder / "queries.valid.tsv").exists()
    assert read_qrels(folder / "qrels.txt").sort("query_id").rows() == made.qrels.rows()


def test_the_official_split_draws_validation_by_article(tmp_path: Path) -> None:
    files = [many(tmp_path / "t.json", 10, 7, "t"), many(tmp_path / "d.json", 3, 5, "d")]
    made = squad_collection(files, validation=25, seed=1)
    splits = dict(made.queries.select("query_id", "split").iter_rows())
    assert {query for query, split in splits.items() if split == "test"} == {
        f"qd{a}-{q}" for a in range(3) for q in range(5)
    }
    counts = made.counts
    # 25 = 3 articles and 4 of a fourth's 7 questions; the other 3 are no training questions either.
    assert (counts["valid"], counts["left_out_of_splits"], counts["train"], counts["test"]) == (25, 3, 42, 15)
    article = {split: {q.split("-")[0] for q, found in splits.items() if found == split} for split in splits.values()}
    assert not article["train"] & (article["valid"] | article[None])
    assert squad_collection(files, validation=25, seed=1).queries.equals(made.queries)
    assert not squad_collection(files, validation=25, seed=2).queries.equals(made.queries)


@given(st.integers(4, 12), st.integers(1, 4), st.integers(0, 9))
def test_one_files_articles_stay_whole(place: Path, articles: int, questions: int, seed: int) -> None:
    made = squad_collection([many(place / "a.json", articles, questions, "a")], seed=seed)
    of_article: dict[str, set[str]] = {}
    for query, _, split in made.queries.iter_rows():
        of_article.setdefault(query.split("-")[0], set()).add(split)
    assert all(len(splits) == 1 and None not in splits for splits in of_article.values())
    total = articles * questions
    for split, share in zip(("train", "valid", "test"), (0.7, 0.1, 0.2), strict=True):
        assert abs(made.counts[split] - share * total) <= questions
        assert made.counts[split]
    assert made.notes == ()


A_BEE = [("A bee.", [ask(1, "bee", 2)])]
TWICE = [ask(1, "bee", 2), {**ask(1, "A"), "question": "Who?"}]
NONE = [[("Nothing.", [ask("n", None)])]]
TWO, MORE = ([[(f"{x} {a}", [ask(f"{x}{a}-{q}", x) for q in range(3)])] for a in range(2)] for x in "ab")
ALONE = [[("e", [ask(q, "e") for q in range(5)])]]
VALIDATION = ("--validation", 3)


@pytest.mark.parametrize(
    ("files", "options", "message"),
    [
        ([[[("A bee.", [ask(1, "wasp", 1)])]]], (), "a0.json: no answer was found in its passage"),
        ([[A_BEE]], (), "expected 3 passages with questions or more to divide into 3 splits"),
        ([[[("A bee.", [ask("1 2", "bee", 2)])]]], (), "expected an id without white space, found 'q1 2'"),
        ([[[("A bee.", TWICE)]]], (), "two questions have the id 'q1'"),
        ([NONE], (), "no question has an answer"),
        ([[[("A \ud800.", [ask(1, "A")])]]], (), "half a surrogate pair"),
        ([TWO, TWO], (), "a1.json: the question 'qa0-0' is in two files"),
        ([TWO, MORE], (), "--validation: 5000 of 6 questions for training leave none"),
        ([TWO], ("--shares", "0.9 0.1 0.1"), "--shares: expected three numbers"),
        ([TWO], ("--shares", "a b"), ": expected three numbers, found 'a b'\n"),
        ([TWO, NONE], VALIDATION, "a1.json: no question has an answer, but the last file is the test"),
        ([NONE, TWO], VALIDATION, "a0.json: no question has an answer: nothing to train on"),
        ([ALONE, MORE], VALIDATION, "--validation: drawing 3 of 5 questions by passage leaves none to train"),
    ],
    ids=lambda value: value[:40] if isinstance(value, str) else "",
)
def test_what_is_refused(evenrank: Any, tmp_path: Path, files: Any, options: tuple[object], message: str) -> None:
    paths = [save(tmp_path / f"a{i}.json", *articles) for i, articles in enumerate(files)]
    done = evenrank("data", "squad", *paths, "--out", tmp_path / "out", *options)
    assert done.status == 2
    assert message in done.err
    assert done.err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_two_texts_of_one_id(tmp_path: Path) -> None:
    data = {"data": [{"paragraphs": [{"doc_id": "x", "context": c, "qas": []} for c in "ab"]}]}
    (tmp_path / "c.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(InputError, match="two passages have the document id 'x' and different texts"):
        squad_collection([tmp_path / "c.json"])


def test_few_articles_are_divided_by_passage(evenrank: Any, tmp_path: Path) -> None:
    done = evenrank("data", "squad", passages(tmp_path / "a.json", [2] * 15, [2] * 15), "--out", tmp_path / "out")
    assert done.status == 0
    assert "Too few articles with questions (2) for these splits: divided by passage" in done.err
    counts = counts_in(tmp_path / "out")
    assert [counts[split] for split in ("train", "valid", "test")] == [42, 6, 12]
    assert len(counts["notes"]) == 1
    splits = squad_collection([tmp_path / "a.json"]).queries
    of_passage = splits.group_by(pl.col("query_id").str.head(-2)).agg(pl.col("split").n_unique())
    assert of_passage["split"].to_list() == [1] * 30


def test_no_split_is_empty_of_several_files(tmp_path: Path) -> None:
    one, two = passages(tmp_path / "a.json", [2] * 10), many(tmp_path / "d.json", 1, 5, "d")
    made = squad_collection([one, two], validation=3)
    # One article alone: validation takes three questions of its passages, and their rest is left out.
    assert (made.counts["valid"], made.counts["left_out_of_splits"], made.counts["train"]) == (3, 1, 16)
    assert "divided by passage" in made.notes[0]
