"""Variants that depend on a query: on its answer, or on its words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl

from evenrank.probes.sentences import content_words, first_answers, locate, sentences_of
from evenrank.probes.variants import variants

TEXTS = {
    "a": "Tea is old. It came from China. We like it.",
    "b": "One sentence on Ghent alone.",
    "c": "Ghent is here. So is Bruges.",
    "d": "Nobody asks about this one. Or this other one, which is longer than that.",
}
QUERIES = {"q1": "where is tea from", "q2": "what is Ghent", "q3": "who is it"}
SPANS = [
    ("q1", "a", 41, 42),
    ("q1", "a", 25, 30),
    ("q2", "c", 0, 5),
    ("q2", "b", 16, 21),
]
ANSWERS = pl.DataFrame(SPANS, ["query_id", "doc_id", "answer_start", "answer_end"], orient="row")
RUN = {"q1": {"a": 3.0, "c": 2.0, "d": 1.0}, "q3": {"a": 1.0}}


def rows(kind: str, **more: object) -> list[tuple[object, ...]]:
    table = variants(TEXTS, kind=kind, **more).table  # type: ignore[arg-type]
    assert table is not None
    assert table.columns == ["query_id", "doc_id", "text", "edits"]
    return table.rows()


def test_answers_by_hand() -> None:
    expected = {
        "brief": ["It came from China.", "Ghent is here.", TEXTS["b"]],
        "early": ["It came from China. Tea is old. We like it.", TEXTS["c"], TEXTS["b"]],
        "late": ["Tea is old. We like it. It came from China.", "So is Bruges. Ghent is here.", TEXTS["b"]],
        "foil": ["Tea is old. We like it.", "So is Bruges.", TEXTS["b"]],
    }
    edits = {"brief": [2, 1, 0], "early": [1, 0, 0], "late": [1, 1, 0], "foil": [1, 1, 0]}
    for kind, texts in expected.items():
        pairs = [("q1", "a"), ("q2", "c"), ("q2", "b")]
        found = [(*pair, text, count) for pair, text, count in zip(pairs, texts, edits[kind], strict=True)]
        assert rows(kind, answers=ANSWERS) == found


def test_a_foil_that_still_has_the_answer_is_counted() -> None:
    spans = {"query_id": ["q"], "doc_id": ["a"], "answer_start": [0], "answer_end": [5]}
    given = {"a": "Ghent is old. We like ghent."}
    foil, brief = (variants(given, kind=kind, answers=pl.DataFrame(spans)) for kind in ("foil", "brief"))
    assert foil.notes == ("Foils in which the answer's words are left, in another sentence: 1 of 1.",)
    assert brief.notes == ()


def test_placebos_of_answers_by_hand() -> None:
    early, late, foil = (rows("placebo", of=kind, answers=ANSWERS) for kind in ("early", "late", "foil"))
    # The sentences before and after the answer's are equally long; the one that is there already is not moved.
    assert early[0] == ("q1", "a", "We like it. Tea is old. It came from China.", 1)
    assert late[0] == ("q1", "a", "It came from China. We like it. Tea is old.", 1)
    # For the four words of the answer's sentence, three of another, or now and then six of both.
    drawn = {rows("placebo", of="foil", answers=ANSWERS, seed=seed)[0][2:] for seed in range(30)}
    assert foil[0][2:] in drawn
    one, two = ["It came from China. We like it.", "Tea is old. It came from China."], "It came from China."
    assert drawn == {*((text, 1) for text in one), (two, 2)}
    assert early[1] == ("q2", "c", "So is Bruges. Ghent is here.", 1)
    assert late[1] == ("q2", "c", TEXTS["c"], 0)
    assert foil[1:] == [("q2", "c", "Ghent is here.", 1), ("q2", "b", TEXTS["b"], 0)]
    notes = [variants(TEXTS, kind="placebo", of=kind, answers=ANSWERS).notes for kind in ("early", "foil")]
    assert notes[0] == ("Without a placebo, for lack of another sentence: 1 of 3 pairs.",)
    assert notes[1] == ("Without a placebo, for lack of sentences as long as the answer's: 1 of 3 pairs.",)


def test_repeated_words_and_their_placebo() -> None:
    found = rows("repeated", queries=QUERIES, run=RUN)
    placebo = rows("placebo", of="repeated", queries=QUERIES, run=RUN)
    assert [row[:2] for row in found] == [("q1", "a"), ("q1", "c"), ("q1", "d"), ("q3", "a")]
    for (_, doc, text, edits), (_, _, other, other_edits) in zip(found[:3], placebo[:3], strict=True):
        sentences, others = sentences_of(str(text)), sentences_of(str(other))
        place = sentences.index("Tea.")
        assert [*sentences[:place], *sentences[place + 1 :]] == sentences_of(TEXTS[str(doc)])
        # The placebo: another passage's word, in the same place.
        [word] = content_words(others[place])
        assert [*others[:place], *others[place + 1 :]] == sentences_of(TEXTS[str(doc)])
        elsewhere = " ".join(one for name, one in TEXTS.items() if name != doc)
        assert word != "tea"
        assert word in content_words(elsewhere)
        assert edits == other_edits == 1
    # A query of stop words alone has nothing to repeat.
    assert found[3] == placebo[3] == ("q3", "a", TEXTS["a"], 0)
    places = {rows("repeated", queries=QUERIES, run=RUN, seed=seed)[0][2] for seed in range(20)}
    assert len(places) == 4
    assert [row[1] for row in rows("repeated", queries=QUERIES, run=RUN, depth=1)] == ["a", "a"]
    assert rows("repeated", queries=QUERIES, qrels={"q1": {"a": 1, "c": 0}}) == found[:2]


def test_files_hold_the_same_pairs(tmp_path: Path, evenrank: Callable[..., object]) -> None:
    (tmp_path / "c.tsv").write_text("".join(f"{doc}\t{text}\n" for doc, text in TEXTS.items()))
    questions = [
        ("a", "q1", "China", 20),
        ("b", "q2", "Ghent", 16),
        ("b", "q3", "Paris", 0),
    ]
    paragraphs = [
        {
            "doc_id": doc,
            "context": TEXTS[doc],
            "qas": [{"id": query, "question": "?", "answers": [{"text": answer, "answer_start": start}]}],
        }
        for doc, query, answer, start in questions
    ]
    (tmp_path / "a.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    files = {"answers": tmp_path / "a.json"}
    made = variants(tmp_path / "c.tsv", kind="early", **files)  # type: ignore[arg-type]
    assert made.table is not None
    assert made.table.rows() == [rows("early", answers=ANSWERS)[0], ("q2", "b", TEXTS["b"], 0)]
    for form in ("jsonl", "parquet"):
        done = variants(tmp_path / "c.tsv", kind="early", out=tmp_path / f"v.{form}", **files)  # type: ignore[arg-type]
        assert done == made
        path = tmp_path / f"v.{form}"
        assert (pl.read_parquet(path) if form == "parquet" else pl.read_ndjson(path)).equals(made.table)
        manifest = json.loads((tmp_path / f"v.{form}.manifest.json").read_text())
        assert (manifest["kind"], manifest["pairs"], manifest["documents"], manifest["changed"]) == (
            "early",
            True,
            2,
            1,
        )
        assert [file["role"] for file in manifest["provenance"]["files"]] == ["collection", "answers"]
    moved, absent = made.notes
    assert "moved to the nearest match of their text: 1 of 3." in moved
    assert re.search(r"left out: 1 of 3: 'Paris'", absent)


def test_the_first_answer_of_each_pair() -> None:
    spans = ANSWERS.with_columns(answer=pl.Series(["i", "China", "Ghent", "Ghent"]))
    first = first_answers(spans)
    assert first.rows() == [("q1", "a", 25, 30, "China"), ("q2", "c", 0, 5, "Ghent"), ("q2", "b", 16, 21, "Ghent")]
    assert first_answers(ANSWERS, ["query_id"]).rows() == [("q1", "a", 25, 30, None), ("q2", "b", 16, 21, None)]
    texts = pl.DataFrame({"doc_id": list(TEXTS), "text": list(TEXTS.values())})
    table, alignment = locate(first, texts, "the collection")
    assert table.drop("text").row(0) == ("q1", "a", 25, 30)
    assert (alignment.read, alignment.realigned) == (3, 0)


def test_pairs_of_public_questions(shared_data: Path) -> None:
    """Whatever is moved or removed, the answer's sentence is where it should be."""
    from evenrank.files.squad import answer_table
    from evenrank.files.squad_collection import squad_collection

    made = squad_collection([str(shared_data / "xquad" / "xquad.en.json")], shares=(1, 0, 0))
    answers = answer_table(made.squad).gather_every(5)
    texts = dict(made.collection.select("doc_id", "text").iter_rows())
    tables = {
        kind: variants(made.collection, kind=kind, answers=answers).table for kind in ("brief", "early", "late", "foil")
    }
    assert {table.height for table in tables.values() if table is not None} == {238}
    columns = [table["text"] for table in tables.values() if table is not None]
    for doc, brief, early, late, foil in zip(tables["foil"]["doc_id"], *columns, strict=True):  # type: ignore[index]
        text = " ".join(texts[doc].split())
        if brief == texts[doc]:
            assert early == late == foil == texts[doc]
            continue
        brief, early, late, foil = (" ".join(one.split()) for one in (brief, early, late, foil))
        assert early in (f"{brief} {foil}", text)
        assert late in (f"{foil} {brief}", text)
        assert sorted(text.split()) == sorted([*brief.split(), *foil.split()])
