"""Sentences, and those of an answer: cases by hand, and against a slow, obvious version."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.files.sentences import sentence_spans, sentence_starts
from evenrank.probes.sentences import first_answers, holding, locate

TEXT = "Tea is old.  It came from\nChina. We like it. Do you?"
ANSWER = (26, 31)
WORDS = ["a", "The", "naïve", "end.", "Mr.", "J.", '"Yes."', "日本", "why?", "(so!)", "e.g.", "X", "\u200b"]
SPACES = [" ", "  ", "\n", "\u00a0", "\u2003", "\x1c"]
texts = st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(SPACES)), max_size=14).map(
    lambda pairs: "".join(word + space for word, space in pairs)
)


@st.composite
def answered(draw: st.DrawFn) -> tuple[str, int, int]:
    """A text and the span of some of its words."""
    text = draw(texts)
    words = [found.span() for found in re.finditer(r"\S+", text)]
    assume(words)
    first = draw(st.integers(0, len(words) - 1))
    last = draw(st.integers(first, len(words) - 1))
    return text, words[first][0], words[last][1]


def slow_sentences(text: str) -> list[list[str]]:
    """The words of each sentence."""
    words = text.split()
    if not words:
        return []
    starts = sentence_starts(words)
    return [words[start:end] for start, end in zip(starts, [*starts[1:], len(words)], strict=True)]


def slow_held(text: str, start: int, end: int) -> list[int]:
    """The sentences that have a word of which a character is in the answer."""
    numbers, word = [], 0
    for number, words in enumerate(slow_sentences(text)):
        for _ in words:
            begin, stop = [found.span() for found in re.finditer(r"\S+", text)][word]
            numbers += [number] * bool(set(range(begin, stop)) & set(range(start, end)))
            word += 1
    return sorted(set(numbers))


def test_sentences_by_hand() -> None:
    assert TEXT[slice(*ANSWER)] == "China"
    assert sentence_spans(TEXT) == [(0, 11), (13, 32), (33, 44), (45, 52)]
    assert sentence_spans(" \n") == []
    assert sentence_spans(" one") == [(1, 4)]
    # An answer in several sentences and in none.
    spans = sentence_spans(TEXT)
    assert holding(spans, *ANSWER) == (1, 1)
    # From "old" to "It"; from the white space before "It".
    assert holding(spans, 7, 15) == (0, 1)
    assert holding(spans, 11, 15) == (1, 1)
    with pytest.raises(ValueError, match="in no sentence"):
        holding(spans, 11, 13)


@given(texts)
def test_sentences_are_those_of_rotation(text: str) -> None:
    spans = sentence_spans(text)
    assert [text[start:end].split() for start, end in spans] == slow_sentences(text)
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)


@given(answered())
def test_the_sentences_of_an_answer(case: tuple[str, int, int]) -> None:
    text, start, end = case
    held = slow_held(text, start, end)
    assert holding(sentence_spans(text), start, end) == (held[0], held[-1])


PASSAGES = {
    "a": "Tea is old. It came from China. We like it.",
    "b": "One sentence on Ghent alone.",
    "c": "Ghent is here. So is Bruges.",
}
SPANS = [
    ("q1", "a", 41, 42, "i"),
    ("q1", "a", 25, 30, "China"),
    ("q2", "c", 0, 5, "Ghent"),
    ("q2", "b", 16, 21, "Ghent"),
]
COLUMNS = ["query_id", "doc_id", "answer_start", "answer_end", "answer"]


def test_the_first_answer_of_each_query() -> None:
    spans = pl.DataFrame(SPANS, COLUMNS, orient="row")
    first = first_answers(spans)
    assert first.rows() == [("q1", "a", 25, 30, "China"), ("q2", "b", 16, 21, "Ghent")]
    assert first_answers(spans.drop("answer")).rows() == [("q1", "a", 25, 30, None), ("q2", "b", 16, 21, None)]
    texts = pl.DataFrame({"doc_id": list(PASSAGES), "text": list(PASSAGES.values())})
    table, alignment = locate(first, texts, "the collection")
    assert table.drop("text").row(0) == ("q1", "a", 25, 30)
    assert (alignment.read, alignment.realigned) == (2, 0)


@pytest.mark.parametrize("end", [0, 99])
def test_a_span_that_is_not_in_the_passage(end: int) -> None:
    spans = first_answers(pl.DataFrame([("q", "a", 0, end)], COLUMNS[:4], orient="row"))
    texts = pl.DataFrame({"doc_id": ["a"], "text": [PASSAGES["a"]]})
    with pytest.raises(EvenrankError, match="query 'q': the answer's span is not in the passage 'a'"):
        locate(spans, texts, "the collection")
