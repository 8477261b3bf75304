"""Sentences, and those of an answer: cases by hand, and against a slow, obvious version."""

from __future__ import annotations

import re

import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.files.sentences import sentence_spans, sentence_starts
from evenrank.probes.sentence_moves import sentence_moves
from evenrank.probes.sentences import first_answers, holding, locate

TEXT = "Tea is old.  It came from\nChina. We like it. Do you?"
ANSWER = (26, 31)
WORDS = ["a", "The", "naïve", "end.", "Mr.", "J.", '"Yes."', "日本", "why?", "(so!)", "e.g.", "X", "\u200b", ".", ")"]
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
    # In lower case, with marks that stand alone.
    lower = "it ends . u.s . aid came ! why ?"
    assert [lower[start:end] for start, end in sentence_spans(lower)] == ["it ends .", "u.s . aid came !", "why ?"]
    assert len(sentence_spans("It ends . then Mr . X came .")) == 1
    assert len(sentence_spans('He came ( late ) . She said " no " . So ?')) == 3
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


# --- sentences moved within passages --------------------------------------------------------------------------------


def sentences_of(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


def answers_of(texts: dict[str, tuple[str, str]]) -> pl.DataFrame:
    """A query's passage and the answer in it."""
    rows = [(q, f"d{q}", text, text.index(a), text.index(a) + len(a)) for q, (text, a) in texts.items()]
    return pl.DataFrame(rows, ["query_id", "doc_id", "text", "answer_start", "answer_end"], orient="row")


def test_versions_of_passages() -> None:
    text = "Tea is old now. It came from China. We like it. Some do not at all."
    table = answers_of({"q": (text, "China"), "r": ("It is one. Not two.", "one"), "s": (text, "now. It came")})
    found = sentence_moves(table, 4)
    # The second has one other sentence; the third answer lies in two, beside which there are two.
    assert found.rows.tolist() == [0, 2]
    texts = found.texts["text"].to_list()

    def versions(row: int, side: str) -> list[str]:
        return [texts[n] if n >= 0 else text for n in getattr(found, side)[row] if n != -2]

    own, *others = "It came from China.", "Tea is old now.", "We like it.", "Some do not at all."
    places = [" ".join([*others[:place], own, *others[place:]]) for place in range(4)]
    assert versions(0, "answer") == places
    control = versions(0, "control")
    # First another one before the answer, which stays second; then nothing; then the two behind it in the other order.
    assert control[0].split(". ")[0] in ("We like it", "Some do not at all")
    assert control[1] == text
    assert control[2] == control[3] == "Tea is old now. It came from China. Some do not at all. We like it."
    for one, stop in zip(versions(0, "answer"), found.ends[0], strict=True):
        assert one[:stop].endswith("China")
    together = versions(1, "answer")
    assert together == [text, "We like it. Tea is old now. It came from China. Some do not at all.",
                   "We like it. Some do not at all. Tea is old now. It came from China."]  # fmt: skip
    assert all(one[:stop].endswith("now. It came") for one, stop in zip(together, found.ends[1, :3], strict=True))
    assert all(one.startswith("Tea is old now. It came from China.") for one in versions(1, "control"))


@given(st.lists(st.integers(1, 6), min_size=3, max_size=9), st.data())
def test_the_control_leaves_the_answer_where_it_is(lengths: list[int], data: st.DataObject) -> None:
    """Another sentence stands at each place, the rest in order; on the answer's side where there is one to move."""
    sentences = [" ".join([f"S{s}", *["word"] * (length - 1)]) + "." for s, length in enumerate(lengths)]
    own = data.draw(st.integers(0, len(lengths) - 1))
    text = " ".join(sentences)
    found = sentence_moves(answers_of({"q": (text, f"S{own}")}), len(lengths))
    for place, number in enumerate(found.control[0].tolist()):
        assert (number == -1) == (place == own) == (found.answer[0, place] == -1)
        if number == -1:
            continue
        moved_text = found.texts["text"][number]
        order = [int(sentence.split()[0].strip(".")[1:]) for sentence in sentences_of(moved_text)]
        control = order[place]
        assert order[own] == own
        assert control not in (own, place)
        rest = [n for n in order if n not in (own, control)]
        assert rest == sorted(rest)
        beside = [n for n in range(len(lengths)) if n not in (own, place) and (n < own) == (place < own)]
        pool = beside or [n for n in range(len(lengths)) if n not in (own, place)]
        assert control in pool
        far = {n: abs(lengths[n] - lengths[own]) for n in pool}
        assert far[control] == min(far.values())
        if beside:
            # As many words before the answer as there were.
            assert moved_text.split().index(sentences[own].split()[0]) == text.split().index(sentences[own].split()[0])
