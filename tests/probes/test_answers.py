"""Answer positions: by hand, against the obvious way, in a collection, and the command with its page."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError, InputError
from evenrank.probes.answers import answer_positions, load_answer_positions

SPAN = ("query_id", "doc_id", "answer", "answer_start", "answer_end")


def passages(*texts: str) -> pl.DataFrame:
    columns = {"doc_id": [str(i) for i in range(len(texts))], "text": list(texts)}
    return pl.DataFrame(columns, {"doc_id": pl.String, "text": pl.String})


def spans(*rows: tuple[str, str, int, int]) -> pl.DataFrame:
    given_rows = [(query, doc, "", start, end) for query, doc, start, end in rows]
    return pl.DataFrame(given_rows, dict(zip(SPAN, [pl.String] * 3 + [pl.Int64] * 2, strict=True)), orient="row")


def squad(path: Path, *contexts: tuple[str, str, int]) -> Path:
    data = [
        {"context": text, "qas": [{"id": f"q{i}", "question": "?", "answers": [{"text": answer, "answer_start": at}]}]}
        for i, (text, answer, at) in enumerate(contexts)
    ]
    path.write_text(json.dumps({"data": [{"title": "t", "paragraphs": data}]}), encoding="utf-8")
    return path


def test_positions_by_hand() -> None:
    # Words: 0 A, 1 bee, 2 flew, 3 home. "ee" begins within word 1; a span twice is one place.
    texts = passages("A  bee flew\thome.", "one two three four five six seven")
    first = [("q1", "0", 0, 1), ("q1", "0", 4, 6), ("q1", "0", 0, 1)]
    found = answer_positions(spans(*first, ("q2", "0", 12, 16), ("q2", "1", 4, 13), ("q3", "1", 28, 33)), texts)
    assert found.table.select("token", "tokens").rows() == [(0, 4), (1, 4), (3, 4), (1, 7), (6, 7)]
    assert (found.pairs, found.table.height) == (4, 5)
    assert found.mean == pytest.approx((0 + 1 / 4 + 3 / 4 + 1 / 7 + 6 / 7) / 5)
    assert found.mean_token == pytest.approx(11 / 5)
    assert found.first_third == pytest.approx(3 / 5)
    # F jumps to 3/5 at 1/4: the largest distance.
    assert found.ks == pytest.approx(3 / 5 - 1 / 4)
    assert [row["count"] for row in found.relative_histogram(4)] == [2, 1, 0, 2]
    assert [row["count"] for row in found.absolute_histogram(2)] == [3, 1, 0, 1]
    uniform = found.uniform()
    assert uniform["mean"] == pytest.approx((3 * (0 + 1 + 2 + 3) / 16 + 2 * 21 / 49) / 5)
    assert uniform["first_third"] == pytest.approx((3 * 2 / 4 + 2 * 3 / 7) / 5)
    # The mean length counts each passage once: 2 words with one answer in place and 8 with three: (2 + 8) / 2, not
    # (2 + 3 · 8) / 4; a passage without any is none of them. The uniform figures stay those of the answers.
    texts = passages("a b", "a b c d e f g h", "x " * 40)
    found = answer_positions(spans(("q0", "0", 0, 1), *((f"q{i}", "1", 2 * i, 2 * i + 1) for i in (1, 2, 3))), texts)
    assert found.mean_tokens == found.to_dict()["mean_tokens"] == 5
    assert found.uniform()["mean"] == pytest.approx((1 / 4 + 3 * 7 / 16) / 4)


WORDS = st.text("aé. \t\u00a0\u2028\x1c\u200b日\u3000", min_size=1, max_size=25)


@given(st.lists(st.tuples(WORDS, st.integers(0, 24)), min_size=1, max_size=6))
def test_positions_are_those_of_str_split(cases: list[tuple[str, int]]) -> None:
    cases = [(text, at) for text, at in cases if at < len(text) and text[at].strip()]
    rows = [(str(i), str(i), at, at + 1) for i, (_, at) in enumerate(cases)]
    found = answer_positions(spans(*rows), passages(*(text for text, _ in cases)))
    assert found.table.height == len(cases)
    for (text, at), token, tokens in zip(cases, found.table["token"], found.table["tokens"], strict=True):
        words = text.split()
        assert tokens == len(words)
        begins = [match.start() for match in re.finditer(r"[^\s]+", text)]
        assert token == sum(begin <= at for begin in begins) - 1
    if cases:
        position = np.sort(found.position)
        n = len(position)
        slow = max(max(abs((i + 1) / n - x), abs(i / n - x)) for i, x in enumerate(position))
        assert found.ks == pytest.approx(slow)
        assert sum(row["count"] for row in found.relative_histogram()) == n


def test_a_span_outside_its_passage_is_refused() -> None:
    for row in (("q", "0", 2, 9), ("q", "5", 0, 1), ("q", "0", -1, 1), ("q", "0", 1, 1)):
        with pytest.raises(EvenrankError, match="1 answers are outside their passages: question 'q'"):
            answer_positions(spans(row), passages("a b"))


def piped(content: str) -> str:
    """A pipe with a text in it, by the name that ``<(…)`` gives."""
    reading, writing = os.pipe()
    os.write(writing, content.encode())
    os.close(writing)
    return f"/dev/fd/{reading}"


def test_answers_from_a_pipe_are_read_once(evenrank: Callable[..., Any], tmp_path: Path) -> None:
    path = squad(tmp_path / "a.json", ("x is x and x", "x", 5), ("abc b", "b", 1))
    content = path.read_text(encoding="utf-8")
    every = load_answer_positions(path)
    assert sorted(every.table["token"]) == [0, 0, 1, 2, 4]
    # The annotated "b" is inside a word, where no match is looked for.
    assert sorted(load_answer_positions(path, annotated=True).table["token"]) == [0, 2]
    assert load_answer_positions(piped(content)).table.equals(every.table)
    done = evenrank("position", "answers", path, "--collection", piped("0\tx\n"))
    assert done.status == 2
    assert done.err.endswith(": expected a file, found a pipe: it may be read more than once\n")


def test_passages_of_collections(tmp_path: Path) -> None:
    path = squad(tmp_path / "a.json", ("x is here", "x", 0), ("y", "y", 0))
    (tmp_path / "c.tsv").write_text("0\there is x\n7\tnothing\n", encoding="utf-8")
    (tmp_path / "d.tsv").write_text("1\tno\n", encoding="utf-8")
    found = load_answer_positions(path, [tmp_path / "c.tsv", tmp_path / "d.tsv"])
    assert found.table.select("query_id", "token").rows() == [("q0", 2)]
    assert found.unmatched.rows() == [("q1", "1", "y")]
    with pytest.raises(InputError, match="the document '0' is in another collection too"):
        load_answer_positions(path, [tmp_path / "c.tsv", tmp_path / "c.tsv"])
    with pytest.raises(InputError, match=r"no answer was found in its passage \(2 searched\)"):
        load_answer_positions(path, [tmp_path / "d.tsv"])
    with pytest.raises(EvenrankError, match="annotated spans refer to the file's own texts"):
        load_answer_positions(path, [tmp_path / "c.tsv"], annotated=True)
