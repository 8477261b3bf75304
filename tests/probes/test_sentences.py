"""Edits of sentences: cases by hand, and properties against slow, obvious versions."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evenrank.files.sentences import sentence_spans, sentence_starts
from evenrank.probes.sentences import (
    control_moved,
    control_without,
    holding,
    inserted,
    moved,
    only,
    padded,
    places,
    sentences_of,
    without,
)

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
    assert sentences_of(TEXT) == ["Tea is old.", "It came from\nChina.", "We like it.", "Do you?"]
    assert sentence_spans(" \n") == []
    assert sentence_spans(" one") == [(1, 4)]


def test_an_answer_in_several_sentences_and_in_none() -> None:
    spans = sentence_spans(TEXT)
    assert holding(spans, *ANSWER) == (1, 1)
    # From "old" to "It"; from the white space before "It".
    assert holding(spans, 7, 15) == (0, 1)
    assert holding(spans, 11, 15) == (1, 1)
    with pytest.raises(ValueError, match="in no sentence"):
        holding(spans, 11, 13)


def test_moves_by_hand() -> None:
    assert places(TEXT, *ANSWER) == (1, 3)
    assert moved(TEXT, *ANSWER, 0) == "It came from\nChina. Tea is old. We like it. Do you?"
    assert moved(TEXT, *ANSWER, 1) is TEXT
    assert moved(TEXT, *ANSWER, 3) == "Tea is old. We like it. Do you? It came from\nChina."
    # "old. It": the first two sentences are one unit among two others.
    assert places(TEXT, 7, 15) == (0, 2)
    assert moved(TEXT, 7, 15, 1) == "We like it. Tea is old. It came from\nChina. Do you?"


def test_controls_by_hand() -> None:
    # The answer's sentence has 4 words, the others have 3, 3 and 2: half of the draws remove 3, the others 3 + 2.
    assert control_without(TEXT, *ANSWER, 0) == "It came from\nChina. We like it."
    assert control_without(TEXT, *ANSWER, 1) == "It came from\nChina. We like it. Do you?"
    assert control_without(TEXT, *ANSWER, 2) == "Tea is old. It came from\nChina."
    assert control_without(TEXT, *ANSWER, 3) == "Tea is old. It came from\nChina. Do you?"
    # As many words; and none as few.
    assert control_without("One two. Six ten. Four.", 0, 3, 5) == "One two. Four."
    assert control_without("One. Two three. Four five.", 0, 3, 0) is None
    # "Tea is old." is first already, so "We like it." is moved there, whatever the draw.
    assert control_moved(TEXT, *ANSWER, 0, 0) == "We like it. Tea is old. It came from\nChina. Do you?"
    assert control_moved(TEXT, *ANSWER, 0, 1) == control_moved(TEXT, *ANSWER, 0, 0)
    assert control_moved(TEXT, *ANSWER, 3, 1) == "Tea is old. It came from\nChina. Do you? We like it."
    # Nothing else to move first, or at all.
    assert control_moved("One two. Three.", 9, 14, 0, 0) is None
    assert control_moved("One two.", 0, 3, 0, 0) is None
    assert control_without("One two.", 0, 3, 0) is None


def test_brief_foil_and_repeated_by_hand() -> None:
    assert only(TEXT, *ANSWER) == "It came from\nChina."
    assert without(TEXT, *ANSWER) == "Tea is old. We like it. Do you?"
    assert (only("One two.", 0, 3), without("One two.", 0, 3)) == ("One two.", "One two.")
    assert only(TEXT, 0, len(TEXT)) == without(TEXT, 0, len(TEXT)) == TEXT
    assert inserted("Aa bb. Cc dd.", "Xx yy.", 0) == "Xx yy. Aa bb. Cc dd."
    assert inserted("Aa bb. Cc dd.", "Xx yy.", 1) == "Aa bb. Xx yy. Cc dd."
    assert inserted("Aa bb. Cc dd.", "Xx yy.", 2) == "Aa bb. Cc dd. Xx yy."


def test_padding_by_hand() -> None:
    asked = []

    def choose(words: int) -> str | None:
        asked.append(words)
        return {2: "Xx yy.", 3: "Xx yy.", 4: "Pp qq rr ss tt."}.get(words)

    # Two words lack after the first sentence; three more after the second, of which two are given, and then one: for
    # one word nothing is found.
    assert padded("Aa bb. Cc dd ee.", choose) == ("Aa bb. Xx yy. Cc dd ee. Xx yy.", 2)
    assert asked == [2, 3, 1]
    # A sentence of five words for four: one too many, so the next lacks one less.
    asked.clear()
    assert padded("Aa bb cc dd. Ee ff gg hh.", choose) == ("Aa bb cc dd. Pp qq rr ss tt. Ee ff gg hh. Xx yy.", 2)
    assert asked == [4, 3, 1]
    # Twice as long as what lacks: no nearer to the double.
    assert padded("One.", lambda _: "Two words.") == ("One.", 0)
    assert padded("One. Two.", lambda _: None) == ("One. Two.", 0)
    assert padded(" ", lambda _: "X.") == (" ", 0)


@given(texts)
def test_sentences_are_those_of_rotation(text: str) -> None:
    assert [sentence.split() for sentence in sentences_of(text)] == slow_sentences(text)
    spans = sentence_spans(text)
    assert all(text[start:end] == text[start:end].strip() for start, end in spans)


@given(answered(), st.data())
def test_moves_keep_all_words_and_the_order_of_the_others(case: tuple[str, int, int], data: st.DataObject) -> None:
    text, start, end = case
    held = slow_held(text, start, end)
    sentences = slow_sentences(text)
    assert holding(sentence_spans(text), start, end) == (held[0], held[-1])
    others = [words for number, words in enumerate(sentences) if number not in held]
    place = data.draw(st.integers(0, len(others)))
    expected = [*others[:place], *(sentences[number] for number in held), *others[place:]]
    found = moved(text, start, end, place)
    assert found.split() == [word for words in expected for word in words]
    assert (found == text) == ((expected == sentences and " ".join(text.split()) == text) or found is text)
    assert places(text, start, end) == (held[0], len(others))
    assert (moved(text, start, end, held[0])) is text


@given(answered(), st.data())
def test_a_control_moves_one_of_the_nearest_others(case: tuple[str, int, int], data: st.DataObject) -> None:
    text, start, end = case
    held = slow_held(text, start, end)
    sentences = slow_sentences(text)
    answer = [word for number in held for word in sentences[number]]
    units = [*sentences[: held[0]], answer, *sentences[held[-1] + 1 :]]
    place = data.draw(st.integers(0, len(units) - 1))
    draw = data.draw(st.integers(0, 5))
    candidates = [n for n in range(len(units)) if n not in (held[0], place)]
    near = min((abs(len(units[n]) - len(answer)) for n in candidates), default=0)
    results = []
    for n in candidates:
        if abs(len(units[n]) - len(answer)) == near:
            rest = units[:n] + units[n + 1 :]
            results.append([word for unit in [*rest[:place], units[n], *rest[place:]] for word in unit])
    found = control_moved(text, start, end, place, draw)
    if found is None:
        assert results == []
        return
    assert found.split() == results[draw % len(results)]
    # The order of the answer among the rest is kept.
    assert sorted(found.split()) == sorted(text.split())


@given(answered())
def test_foil_and_brief_are_the_whole(case: tuple[str, int, int]) -> None:
    text, start, end = case
    held = slow_held(text, start, end)
    sentences = slow_sentences(text)
    rest, kept = without(text, start, end), only(text, start, end)
    if len(held) == len(sentences):
        assert rest is text
        assert kept is text
        return
    assert kept.split() == [word for number in held for word in sentences[number]]
    assert rest.split() == [word for number, words in enumerate(sentences) if number not in held for word in words]


@given(answered())
def test_the_control_of_a_foil_removes_as_many_words_on_average(case: tuple[str, int, int]) -> None:
    text, start, end = case
    held = slow_held(text, start, end)
    sentences = slow_sentences(text)
    wanted = sum(len(sentences[number]) for number in held)
    others = [number for number in range(len(sentences)) if number not in held]
    results: dict[tuple[str, ...], int] = {}
    for gone in itertools.chain(itertools.combinations(others, 1), itertools.combinations(others, 2)):
        left = tuple(word for number, words in enumerate(sentences) if number not in gone for word in words)
        results[left] = sum(len(sentences[number]) for number in gone)
    sums = sorted(results.values())
    shorter, longer = ([n for n in sums if n <= wanted], [n for n in sums if n >= wanted])
    if not shorter or not longer:
        assert control_without(text, start, end, 7) is None
        return
    draws = max(longer[0] - shorter[-1], 1)
    found = [control_without(text, start, end, draw) for draw in range(draws)]
    removed = [results[tuple(one.split())] for one in found if one is not None]
    assert set(removed) <= {shorter[-1], longer[0]}
    assert sum(removed) == wanted * draws


@given(texts, st.integers(0, 9))
def test_an_inserted_sentence_is_the_only_change(text: str, place: int) -> None:
    sentences = slow_sentences(text)
    place = min(place, len(sentences))
    found = inserted(text, "New one.", place).split()
    expected = [*sentences[:place], ["New", "one."], *sentences[place:]]
    assert found == [word for words in expected for word in words]


POOL = [" ".join(["W", *["w"] * (size - 2), "ww."][-size:]) for size in range(1, 15)]


@given(st.lists(st.integers(1, 14), min_size=1, max_size=12), st.integers(-2, 2))
def test_padding_doubles_the_length_and_keeps_relative_places(lengths: list[int], off: int) -> None:
    own = [" ".join(["O", *["o"] * (size - 2), "oo."][-size:]) for size in lengths]
    text = " ".join(own)
    assume(sentences_of(text) == own)
    found, added = padded(text, lambda words: POOL[min(max(words + off, 1), len(POOL)) - 1])
    words, before = found.split(), text.split()
    assert [word for word in words if word.lower().startswith("o")] == before
    assert len(sentences_of(found)) <= len(own) + added
    # The length so far is double, but for less than the longest of the sentences: so are the places.
    assert abs(len(words) - 2 * len(before)) <= max(lengths)
    places_now = [number for number, word in enumerate(words) if word.lower().startswith("o")]
    for number, now in enumerate(places_now):
        assert abs(now / len(words) - number / len(before)) <= 2 * max(lengths) / len(words)
