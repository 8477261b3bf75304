"""Rotation: eq. 7 of the paper, answers that move along, the same bytes for any number of cores."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import InputError
from evenrank.files.squad import load_squad
from evenrank.mitigation.rotation import (
    cut_of,
    draw,
    mixed_seed,
    moved_span,
    rotate_collection,
    rotate_texts,
    rotated,
)

SPACES = [" ", "  ", "\t", "\n", "\u00a0", "\u0085", "\u2003", "\u3000", "\u1680", "\u2028", "\u205f", "\x1c"]
WORDS = ["a", "The", "naïve", "end.", "Mr.", "J.", '"Yes."', "日本", "why?", "(so!)", "e.g.", "“Now.”", "\u200b", "é."]
any_character = st.characters(codec="utf-8")
texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=12).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)


def table(*given_texts: str) -> pl.DataFrame:
    return pl.DataFrame({"doc_id": [str(i) for i in range(len(given_texts))], "text": list(given_texts)})


def test_by_hand() -> None:
    # r = 3: words[2:] + words[:2].
    assert rotated("one  two three\tfour", 2) == "three four one two"
    assert rotated("one two", 0) == "one two"
    assert rotated(" \n", 0) == " \n"
    # "two three" moves from 4 … 13; a cut before "three" splits it; before "two", it comes first.
    text = "one two three four"
    assert moved_span(text, 4, 13, 2) is None
    assert moved_span(text, 4, 13, 1) == (0, 9)
    assert moved_span(text, 4, 13, 3) == (9, 18)
    assert rotated(text, 3)[9:18] == "two three"
    # Within a word, and with white space around it.
    assert moved_span("aa bbb cc", 4, 7, 1) == (1, 3)


@given(
    st.dictionaries(st.text(any_character, max_size=5), texts | st.text(any_character), min_size=1, max_size=6),
    st.integers(0, 2**64 - 1),
    st.sampled_from(["word", "sentence"]),
)
def test_the_way_by_columns_is_the_obvious_way(given_texts: dict[str, str], seed: int, mode: Any) -> None:
    frame = pl.DataFrame({"doc_id": list(given_texts), "text": list(given_texts.values())})
    for (doc_id, text), *found in zip(given_texts.items(), *rotate_texts(frame, seed, mode), strict=True):
        cut = cut_of(text, doc_id, mixed_seed(seed), mode)
        assert found == [rotated(text, cut), cut, len(text.split())]


@given(texts, st.data())
def test_a_span_still_gives_the_answer_unless_it_is_split(text: str, data: st.DataObject) -> None:
    if not text.split():
        return
    start = data.draw(st.integers(0, len(text) - 1))
    end = data.draw(st.integers(start + 1, len(text)))
    cut = data.draw(st.integers(0, len(text.split()) - 1))
    if not text[start:end].strip():
        with pytest.raises(ValueError, match="white space alone"):
            moved_span(text, start, end, cut)
        return
    span = moved_span(text, start, end, cut)
    answer = " ".join(text[start:end].split())
    if span is not None:
        assert rotated(text, cut)[slice(*span)] == answer
    else:
        # The words on both sides of the cut belong to the answer.
        edges = [match.start() for match in re.finditer(r"\S+", text)]
        assert start < edges[cut] < end


def test_every_cut_is_as_likely() -> None:
    # χ² of 20,000 draws over 8 places, 7 degrees of freedom: below 24.3 with probability .999.
    counts = Counter(draw("d7", 8, mixed_seed(seed)) for seed in range(10_000))
    counts.update(draw(str(number), 8, mixed_seed(0)) for number in range(10_000))
    assert sum((counts[i] - 2500) ** 2 / 2500 for i in range(8)) < 24.3


def squad(context: str, answers: list[tuple[str, int]], doc_id: str = "0") -> dict[str, object]:
    found = [{"text": text, "answer_start": start} for text, start in answers]
    question = {"id": "q", "question": "?", "answers": found}
    return {"data": [{"title": "t", "paragraphs": [{"doc_id": doc_id, "context": context, "qas": [question]}]}]}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "c.tsv").write_text("0\tone two three four\nx\t\n7\tlast  one here\n", encoding="utf-8")
    answers = squad("one two three four", [("two", 4), ("one two three four", 0), ("four", 14)])
    (tmp_path / "a.json").write_text(json.dumps(answers), encoding="utf-8")
    return tmp_path


def test_the_command(home: Path, evenrank) -> None:
    seed = next(seed for seed in range(99) if cut_of("one two three four", "0", mixed_seed(seed)) == 2)
    out = home / "r.tsv"
    done = evenrank("rotate", home / "c.tsv", "--out", out, "--answers", home / "a.json", "--seed", seed, "--quiet")
    assert "2 answers moved along, 1 split and left out" in done.err
    lines = [line.split("\t") for line in out.read_text(encoding="utf-8").splitlines()]
    assert lines[0] == ["0", "three four one two"]
    assert lines[1] == ["x", ""]
    assert sorted(lines[2][1].split()) == ["here", "last", "one"]
    manifest = json.loads((home / "r.tsv.manifest.json").read_text(encoding="utf-8"))
    assert manifest["answers_file"] == str(home / "a.json")
    assert (manifest["mode"], manifest["seed"], manifest["documents"], manifest["words"]) == ("word", seed, 3, 7)
    assert (manifest["answers"], manifest["split"], manifest["split_answers"]) == (2, 1, [["q", "0"]])
    moved = load_squad(f"{out}.answers.json").answers()
    assert moved.select("answer", "answer_start", "answer_end").rows() == [("two", 15, 18), ("four", 6, 10)]


@pytest.mark.parametrize("form", ["tsv", "jsonl", "parquet"])
def test_a_file_holds_what_a_table_holds_for_any_cores_and_blocks(
    tmp_path: Path, monkeypatch, block_bytes, form: str
) -> None:
    ids = ["0", "é", "日本", *map(str, range(1, 300))]
    frame = pl.DataFrame({"doc_id": ids, "text": [f"w{i} x  y. Z\u00a0{'q “r” ' * (i % 7)}" for i in range(302)]})
    frame.write_csv(tmp_path / "c.tsv", separator="\t", include_header=False, quote_style="never")
    expected = list(zip(ids, rotate_texts(frame, 5)[0], strict=True))
    for size, cores in ((1 << 24, 1), (700, 4), (2000, 2)):
        block_bytes(size)
        monkeypatch.setattr("os.cpu_count", lambda cores=cores: cores)
        done = rotate_collection(tmp_path / "c.tsv", out=(out := tmp_path / f"r.{form}"), seed=5)
        assert (done.documents, done.answers) == (302, None)
        if form == "tsv":
            assert out.read_text(encoding="utf-8") == "".join(f"{doc}\t{text}\n" for doc, text in expected)
        else:
            assert (pl.read_parquet if form == "parquet" else pl.read_ndjson)(out).rows() == expected


REFUSED = [
    ("--mode line", "expected word or sentence, found 'line'"),
    ("--answers-out x", "--answers-out needs --answers"),
    ("--out r.tsv.gz", "r.tsv.gz: expected a TSV, .jsonl or .parquet to write, found .gz"),
    ("--answers other.json", "the paragraph '0' has another text in the collection"),
    ("--answers absent.json", "1 paragraphs are not in the collection: '9'"),
    ("--answers none.json", "expected SQuAD's form"),
]


@pytest.mark.parametrize(("options", "message"), REFUSED)
def test_refused_and_nothing_written(home: Path, options: str, message: str, monkeypatch, evenrank) -> None:
    monkeypatch.chdir(home)
    for name, content in (
        ("other", squad("one two", [("two", 4)])),
        ("absent", squad("one two", [("two", 4)], "9")),
        ("none", {"data": [{"paragraphs": [{}]}]}),
    ):
        (home / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    before = {*home.iterdir()}
    done = evenrank("rotate", "c.tsv", *(() if "--out " in options else ("--out", "r.tsv")), *options.split())
    assert done.status == 2
    assert message in done.err
    assert {*home.iterdir()} == before


def test_an_id_that_a_tsv_cannot_hold(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"id": "a\\tb", "text": "x y"}\n', encoding="utf-8")
    with pytest.raises(InputError, match=r"r\.tsv: a TSV cannot hold the id 'a\\tb': write \.jsonl or \.parquet"):
        rotate_collection(tmp_path / "c.jsonl", out=tmp_path / "r.tsv")
    assert [path.name for path in tmp_path.iterdir()] == ["c.jsonl"]
    assert rotate_collection(tmp_path / "c.jsonl", out=tmp_path / "r.parquet").documents == 1


@given(st.lists(texts | st.sampled_from(["", " \r\n", "a b " * 40]), min_size=1, max_size=6), st.integers(0, 5))
def test_lines_hold_what_a_table_holds(
    tmp_path_factory: pytest.TempPathFactory, given_texts: list[str], seed: int
) -> None:
    folder = tmp_path_factory.getbasetemp()
    table(*given_texts).write_parquet(folder / "c.parquet")
    rotate_collection(folder / "c.parquet", out=folder / "r.tsv", seed=seed)
    found, _, _ = rotate_texts(table(*given_texts), seed)
    within = [re.sub("[\t\r\n]", " ", text) for text in found]
    lines = [f"{i}\t{text}\n" for i, text in enumerate(within)]
    assert (folder / "r.tsv").read_bytes() == "".join(lines).encode()


def test_answers_without_a_place_or_off_by_a_space_move_along(home: Path, evenrank) -> None:
    def ask(name: str, answer: dict[str, object], **more: object) -> dict[str, object]:
        return {"id": name, "answers": [answer], **more}

    questions = [
        ask("a", {"text": "two"}, plausible_answers=None),
        ask("b", {"text": "four", "answer_start": 13}, plausible_answers=[]),
        ask("c", {"text": "five", "answer_start": 0}),
        {"id": "d", "answers": [], "is_impossible": True, "plausible_answers": [{"text": "three", "answer_start": 8}]},
    ]
    data = {"data": [{"paragraphs": [{"context": "one two three four", "qas": questions}]}]}
    (home / "a.json").write_text(json.dumps(data), encoding="utf-8")
    seed = next(seed for seed in range(99) if cut_of("one two three four", "0", mixed_seed(seed)) == 2)
    files = ("--out", home / "r.tsv", "--answers", home / "a.json")
    said = evenrank("rotate", home / "c.tsv", *files, "--seed", seed, "--quiet").err
    assert "placed at the first match of their text: 1 of 3." in said
    assert "moved to the nearest match of their text: 1 of 3." in said
    assert "left out: 1 of 3: 'five' (question c)." in said
    moved = load_squad(home / "r.tsv.answers.json").answers()
    assert moved.select("query_id", "answer", "answer_start").rows() == [("a", "two", 15), ("b", "four", 6)]
    manifest = json.loads((home / "r.tsv.manifest.json").read_text(encoding="utf-8"))
    assert (manifest["answers"], manifest["split"], manifest["answer_places"]["left_out"]) == (2, 0, 1)
    # A plausible answer moves along and is not counted.
    paragraph = json.loads((home / "r.tsv.answers.json").read_text(encoding="utf-8"))["data"][0]["paragraphs"][0]
    assert paragraph["qas"][3]["plausible_answers"] == [{"text": "three", "answer_start": 0}]
