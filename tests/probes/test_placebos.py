"""Placebos of changes of wording: by hand, what is never touched, and that they depend on seed and id alone."""

from __future__ import annotations

from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files.tokens import tokenize
from evenrank.groups import Scoring, gendered_spans, load_lexicon, score_texts
from evenrank.probes.placebos import Names, placebo_of_words

GENDER = load_lexicon("gender-en")
FORMS = ("synonym", "name", "spacing", "any")


def made(text: str, edits: int, form: str, names: Names | None = None, seed: int = 0, doc_id: str = "d") -> str:
    table = pl.DataFrame({"doc_id": [doc_id], "text": [text]})
    found = placebo_of_words(table, np.array([edits]), GENDER, form, seed, names)
    assert table["text"][0] == text
    return str(found.texts[0])


def every(text: str, form: str = "synonym", names: Names | None = None) -> str:
    return made(text, 99, form, names)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Although it's big, they often moved.", "Though it's large, they frequently moved."),
        # phrases first, in which other words are left
        ("as well as it can", "along with it could"),
        ("each other, each year", "one another, every year"),
        ("how many people, many people", "how many people, numerous people"),
        ("all but one, but not in the end", "all but one, yet not in the end"),
        # a capital at the beginning of a sentence; elsewhere it is a name
        ("But why? But so. (But no)", "Yet why? Yet so. (Yet no)"),
        ("The Big Easy, Many Glacier, BUT, I AM", "The Big Easy, Many Glacier, BUT, I AM"),
        # no part of another word, and words apart by one space
        ("well-whole, whole/part, big's, do  not", "well-whole, whole/part, big's, do  not"),
        # articles
        ("a whole day, an entire day, the whole day", "a whole day, an entire day, the entire day"),
        # group words
        ("She was not in the queen's", "She wasn't within the queen's"),
    ],
)
def test_synonyms(text: str, expected: str) -> None:
    assert every(text) == expected


PARIS = "They saw Paris and London, where Paris lies. Berlin too, Rome, the king and King Lear."
ROME = "In Rome and London one is in Athens; a Berlin Zoo and a zoo and a zoo"
TEXTS = pl.DataFrame({"text": [PARIS, ROME]})


def test_names_are_counted() -> None:
    """Berlin stands first in a sentence once; Zoo and King are not more often written so; They, In begin sentences."""
    names = Names.counted([TEXTS[:1], TEXTS[1:]])
    assert names.count == {"Paris": 2, "London": 2, "Rome": 2, "Lear": 1, "Athens": 1, "Berlin": 1}
    # A name becomes one used as often, or nearly: of the nearest any.
    names = Names.of({"Paris": 2, "London": 2, "Rome": 2, "King": 1, "Berlin": 4})
    assert {names.like("Berlin", draw, frozenset()) for draw in range(9)} == {"Paris", "London", "Rome"}


COUNTS = st.dictionaries(st.sampled_from("ABCDEFGHIJ"), st.integers(1, 6), min_size=1)


@given(COUNTS, st.integers(0, 20), st.frozensets(st.sampled_from("abcdefghij")))
def test_like_as_the_slow_version(count: dict[str, int], draw: int, without: frozenset[str]) -> None:
    word = min(count)
    allowed = [other for other in count if other != word and other.lower() not in without]
    found = Names.of(count).like(word, draw, without)
    nearest = min((abs(count[other] - count[word]) for other in allowed), default=0)
    assert found in ([other for other in allowed if abs(count[other] - count[word]) == nearest] or [None])


def test_names_by_hand() -> None:
    names = Names.of({"Paris": 2, "London": 2, "King": 2, "Queen": 2, "Rome": 9})
    # Not at the beginning of a sentence, no group word, and never a group word instead; the same one throughout.
    text = "Paris! He saw Paris, King Lear and Paris's roofs (Paris), McParis."
    assert every(text, "name", names) == "Paris! He saw London, King Lear and London's roofs (Paris), McParis."
    assert every("She saw Milan", "name", names) == "She saw Milan"
    # Paris and London are there already: the nearest other one, and for the second none is left.
    assert every("near Paris and London", "name", names) in ("near Rome and London", "near Paris and Rome")


def test_spacing_and_any_form() -> None:
    assert every("a b  c\nd", "spacing") == "a  b  c\nd"
    assert every("the first lady is", "spacing") == "the  first lady  is"
    assert made("a b c d", 2, "spacing").count("  ") == 2
    # Any form takes names where synonyms do not suffice.
    names = Names.of({"Paris": 2, "Rome": 2})
    text = "They often saw Paris."
    assert made(text, 1, "any", names) == "They frequently saw Paris."
    assert made(text, 2, "any", names) == made(text, 9, "any", names) == "They frequently saw Rome."


def test_edits_are_counted() -> None:
    table = pl.DataFrame({"doc_id": ["a", "b", "c"], "text": ["often big", "often big", "none"]})
    found = placebo_of_words(table, np.array([1, 0, 2]), GENDER, "synonym", 0, None)
    assert found.edits.tolist() == [1, 0, 0]
    assert found.texts.to_list()[1:] == ["often big", "none"]
    assert found.texts[0] in ("frequently big", "often large")
    assert (found.left, found.verbs) == (Counter(), 0)
    nothing = placebo_of_words(table, np.zeros(3, dtype=np.int64), GENDER, "synonym", 0, None)
    assert nothing.texts.to_list() == table["text"].to_list()


def test_places_depend_on_the_seed_and_the_id_alone() -> None:
    text = "often big but nearly whole although many were not large and several cannot"
    rows = [(str(number), text, 1 + number % 4) for number in range(40)]
    names = Names.of({"Paris": 1})
    table = pl.DataFrame(rows, ["doc_id", "text", "edits"], orient="row")
    for form in FORMS:
        one, back = (
            placebo_of_words(rows, rows["edits"].to_numpy(), GENDER, form, 7, names).texts.to_list()
            for rows in (table, table.reverse())
        )
        assert one == back[::-1]
    # Each of its eleven words.
    assert len({made(text, 1, "synonym", doc_id=str(number)) for number in range(60)}) == 11
    assert len({made(text, 2, "synonym", seed=seed) for seed in range(30)}) > 10


PIECES = (
    "she,his,first lady,often,Big,but,in the,do not,each other,Paris,King,nearby Rome,a whole,house,can,It is,however"
)
GAPS = (" ", "  ", ". ", ", ", "-", "'s ", "\n")
PARTS = st.lists(st.tuples(st.sampled_from([*PIECES.split(","), "mother-in-law"]), st.sampled_from(GAPS)), max_size=15)


def test_words_of_queries_by_hand() -> None:
    names = Names.of({"Paris": 2, "Rome": 2, "London": 9})
    table = pl.DataFrame({"doc_id": ["d", "e"], "text": ["They often saw big Paris."] * 2})
    asked = {"d": frozenset(tokenize("Rome is often near Paris"))}
    found = placebo_of_words(table, np.array([9, 9]), GENDER, "any", 0, names, asked).texts.to_list()
    assert found == ["They often saw large Paris.", "They frequently saw large Rome."]


@given(PARTS, st.integers(1, 8), st.sampled_from(FORMS), st.integers(0, 3), st.sets(st.sampled_from(PIECES.split(","))))
def test_group_words_and_all_else_are_untouched(
    parts: list[tuple[str, str]], edits: int, form: str, seed: int, asked: set[str]
) -> None:
    of_queries = frozenset(token for query in asked for token in tokenize(query))
    text = "".join(map("".join, parts))
    names = Names.of({"Paris": 3, "Rome": 3, "King": 3, "Lady": 3, "London": 4})
    table = pl.DataFrame({"doc_id": ["d"], "text": [text]})
    found = placebo_of_words(table, np.array([edits]), GENDER, form, seed, names, {"d": of_queries})
    after = str(found.texts[0])
    before, then = ([token for token in tokenize(each) if token in of_queries] for each in (text, after))
    assert before == then
    assert 0 <= found.edits[0] <= edits
    assert (after == text) == (found.edits[0] == 0)
    words = [[each[start:end] for start, end, _ in gendered_spans(each, GENDER)] for each in (text, after)]
    assert words[0] == words[1]
    if form == "spacing":
        assert len(after) == len(text) + found.edits[0]
        assert after.split() == text.split()
    both = pl.DataFrame({"doc_id": ["a", "b"], "text": [text, after]})
    counts = score_texts(both, Scoring(GENDER)).select("count_f", "count_m").rows()
    assert counts[0] == counts[1]
