"""Tokens, counts, magnitudes and neutrality: by hand, and against slow versions."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.groups import (
    Lexicon,
    Magnitude,
    Scoring,
    Tokens,
    gendered_spans,
    load_lexicon,
    neutrality,
    score_in_memory,
    score_texts,
    scoring_of,
    tokenize,
)
from slow_groups import GAPS, PIECES, TEXTS, lexicon_of, scored, slow_neutrality, slow_tokens, slow_words


def slow_matches(text: str, lexicon: Lexicon, tokens: Tokens) -> list[tuple[int, tuple[str, ...], str]]:
    """Place, entry and group of each match: at every token the longest entry, then on behind it."""
    entries = {tuple(slow_tokens(word, tokens)): group for word, group in lexicon.words}
    if tokens == "whitespace":
        entries = {entry: group for entry, group in entries.items() if len(entry) == 1}
    found = slow_tokens(text, tokens)
    matches = []
    place = 0
    while place < len(found):
        here = [entry for entry in entries if tuple(found[place : place + len(entry)]) == entry]
        if here:
            longest = max(here, key=len)
            matches.append((place, longest, entries[longest]))
        place += len(longest) if here else 1
    return matches


def slow_score(text: str, lexicon: Lexicon, tokens: Tokens, threshold: float) -> dict[str, float]:
    """A row of the score table, by the definitions."""
    words = Counter((entry, group) for _, entry, group in slow_matches(text, lexicon, tokens))
    row: dict[str, float] = {"tokens": len(slow_tokens(text, tokens))}
    for group in lexicon.groups:
        occurrences = [n for (_, of_group), n in words.items() if of_group == group]
        count = sum(occurrences)
        row[f"count_{group}"] = row[f"magnitude_count_{group}"] = count
        row[f"magnitude_bool_{group}"] = min(count, 1)
        row[f"magnitude_tf_{group}"] = math.log(1 + count)
        row[f"magnitude_tf_words_{group}"] = sum(math.log(1 + n) for n in occurrences)
        row[f"magnitude_tf_literal_{group}"] = sum(math.log(n) for n in occurrences)
    row["neutrality"] = slow_neutrality([row[f"count_{group}"] for group in lexicon.groups], lexicon.shares, threshold)
    return row


@pytest.mark.parametrize(
    ("kind", "text", "tokens"),
    [
        ("word", "The woman's friend; She'll don't boys' 'quoted'", "the woman friend she don't boys quoted"),
        ("word", "SHE'LL he'd I'm they're we've it's she't", "she he i they we it she't"),
        ("word", "woman’s don’t womanʼs don＇t", "woman don't woman don't"),
        ("word", "rock'n'roll's fo'c's'le two''words s 's x's 's's", "rock'n'roll fo'c's'le two words s s x s"),
        ("word", "ex-wife snake_case c.d em—dash x² ½", "ex wife snake case c d em dash x² ½"),
        ("word", "Straße ﬁancée ΣΊΣΥΦΟΣ σίσυφος İstanbul ŉ", "strasse fiancée σίσυφοσ σίσυφοσ i̇stanbul 'n"),
        ("word", "she\u00a0he\u200bhers\u2028his😀him", "she he hers his him"),
        # A variation selector is a mark; private use and an unassigned plane are not.
        ("word", "a\U000e0100b c\U000f0000d e\U00040000f", "a\U000e0100b c d e f"),
        ("whitespace", "She, said  woman's don’t ex-wife", "she, said woman's don’t ex-wife"),
        ("whitespace", "tab\tstays Straße İ ΟΔΟΣ", "tab\tstays straße i̇ οδοσ"),
    ],
)
def test_words(kind: Tokens, text: str, tokens: str) -> None:
    assert tokenize(text, kind) == tokens.split(" ") == slow_tokens(text, kind)


@given(TEXTS)
def test_any_words(text: str) -> None:
    assert tokenize(text) == slow_tokens(text, "word")


@pytest.mark.parametrize(
    ("counts", "shares", "threshold", "expected"),
    [
        ([1, 0], [0.5, 0.5], 1, 1),
        ([2, 0], [0.5, 0.5], 1, 0),
        ([3, 1], [0.5, 0.5], 1, 0.5),
        # The threshold.
        ([1, 0], [0.5, 0.5], 0, 0),
        # Unequal shares: 1 − Σ|c/n − J| / (2 · 0.7).
        ([9, 0], [0.7, 0.3], 1, 1 - 0.6 / 1.4),
        # Three groups: 1 − Σ|c/n − J| / (2 · 2/3), then / (2 · 0.8).
        ([2, 1, 0], [1 / 3, 1 / 3, 1 / 3], 1, 0.5),
        ([0, 9, 0], [0.5, 0.3, 0.2], 1, 1 - 1.4 / 1.6),
    ],
)
def test_neutrality_by_hand(counts: list[int], shares: list[float], threshold: float, expected: float) -> None:
    assert neutrality(np.array([counts]), shares, threshold).tolist() == pytest.approx([expected], abs=1e-12)
    assert slow_neutrality(counts, tuple(shares), threshold) == pytest.approx(expected, abs=1e-12)


@given(
    st.integers(2, 4).flatmap(
        lambda groups: st.tuples(
            st.lists(st.lists(st.integers(0, 9), min_size=groups, max_size=groups), min_size=1, max_size=8),
            st.lists(st.integers(1, 9), min_size=groups, max_size=groups),
        )
    ),
    st.sampled_from([0, 1, 3]),
)
def test_any_neutrality(data: tuple[list[list[int]], list[int]], threshold: float) -> None:
    counts, parts = data
    shares = tuple(part / sum(parts) for part in parts)
    found = neutrality(np.array(counts), shares, threshold)
    assert found.tolist() == pytest.approx([slow_neutrality(row, shares, threshold) for row in counts], abs=1e-12)
    assert found.min() >= 0
    assert found.max() <= 1
    # A text of the rarest group alone is the least neutral there is.
    alone = np.zeros((1, len(shares)), dtype=int)
    alone[0, int(np.argmin(shares))] = 5
    assert neutrality(alone, shares, threshold).tolist() == pytest.approx([0], abs=1e-12)


def test_two_equal_shares_give_the_published_form() -> None:
    counts = np.array([[f, m] for f in range(8) for m in range(8) if f + m > 1])
    share = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(neutrality(counts, [0.5, 0.5]), 1 - np.abs(share - 0.5).sum(axis=1), rtol=0, atol=1e-15)


def test_counts_by_hand() -> None:
    lexicon = lexicon_of({"she": "f", "her": "f", "woman": "f", "he": "m", "his": "m"}, poles=("m", "f"))
    texts = ["She, said \"she\"; her woman's hat — he didn't.", "he HE he he", "Her sheep. The hero. There.", ""]
    two = math.log(2)
    by_hand = {
        "tokens": [8, 4, 5, 0],
        "count_f": [4, 0, 1, 0],
        "count_m": [1, 4, 0, 0],
        "magnitude_count_f": [4, 0, 1, 0],
        "magnitude_count_m": [1, 4, 0, 0],
        "magnitude_bool_f": [1, 0, 1, 0],
        "magnitude_bool_m": [1, 1, 0, 0],
        # She twice, her once, woman once.
        "magnitude_tf_f": [math.log(5), 0, two, 0],
        "magnitude_tf_m": [two, math.log(5), 0, 0],
        "magnitude_tf_words_f": [math.log(3) + 2 * two, 0, two, 0],
        "magnitude_tf_words_m": [two, math.log(5), 0, 0],
        "magnitude_tf_literal_f": [two, 0, 0, 0],
        "magnitude_tf_literal_m": [0, math.log(4), 0, 0],
        # 4 of 5 against a half: 1 − (0.3 + 0.3); one word alone is neutral at the threshold 1.
        "neutrality": [0.4, 0, 1, 1],
    }
    found = scored(texts, lexicon).to_dict(as_series=False)
    assert [*found] == ["doc_id", *by_hand]
    assert {name: found[name] for name in by_hand} == {
        name: pytest.approx(values, abs=1e-15) for name, values in by_hand.items()
    }


WORDS = {
    **dict.fromkeys(["she", "woman", "ex-wife", "ma'am", "fiancée", "straße", "he said so"], "a"),
    **dict.fromkeys(["he", "he said", "don't", "ŉ", "İ", "ﬁ", "Σ"], "b"),
    **dict.fromkeys(["they", "said so", "she and they", "東京", "é"], "c"),
}
SCORED_TEXTS = st.one_of(
    st.lists(
        st.sampled_from([*WORDS, *map(str.upper, WORDS), "so", "said", "and", *PIECES, *GAPS, *[" "] * 40]), max_size=25
    ).map("".join),
    TEXTS,
)


@given(st.lists(SCORED_TEXTS, max_size=4), st.sampled_from(["word", "whitespace"]), st.sampled_from([0, 1, 2.5]))
@example(["'", "a'", "she's", "he said so he said", "ŉ ʼn 'n", ""], "word", 1)
@example(["she " * 50 + "he"], "whitespace", 0)
def test_any_texts(texts: list[str], tokens: Tokens, threshold: float) -> None:
    lexicon = lexicon_of(WORDS, (0.5, 0.3, 0.2))
    table = scored(texts, lexicon, tokens, threshold)
    assert table["doc_id"].to_list() == [str(i) for i in range(len(texts))]
    for row, text in zip(table.drop("doc_id").iter_rows(named=True), texts, strict=True):
        assert row == pytest.approx(slow_score(text, lexicon, tokens, threshold), abs=1e-12)


ENTRIES = st.lists(st.sampled_from(["x", "y", "z", "é", "x's", "x'y"]), min_size=1, max_size=3).map(" ".join)


@given(
    st.dictionaries(ENTRIES, st.sampled_from("abc"), min_size=1, max_size=8),
    st.lists(st.sampled_from(["x", "y", "z", "É", " ", " ", " ", "'", "-"]), max_size=25).map("".join),
    st.sampled_from(["word", "whitespace"]),
)
@example({"x": "a", "y x": "b", "y x z": "c", "z é": "a", "é": "b"}, "y x. Y-x, y x's y x z é x z É", "word")
def test_any_lexicon(words: dict[str, str], text: str, tokens: Tokens) -> None:
    # One group for each entry: "x's" and "x" are the same.
    unique = {tuple(slow_tokens(word, "word")): word for word in words}
    lexicon = lexicon_of({word: words[word] for word in unique.values()})
    lexicon = Lexicon("test", ("a", "b", "c"), lexicon.words, (1 / 3,) * 3, None)
    row = scored([text], lexicon, tokens).drop("doc_id").row(0, named=True)
    assert row == pytest.approx(slow_score(text, lexicon, tokens, 1), abs=1e-12)


@given(SCORED_TEXTS)
@example("“Ma’am,” said the ex-wife's man. He SAID so!")
def test_spans_are_what_the_kernel_counts(text: str) -> None:
    lexicon = lexicon_of(WORDS)
    spans = gendered_spans(text, lexicon)
    words = slow_words(text)
    expected = [
        (words[place][0], words[place + len(entry) - 1][1], group)
        for place, entry, group in slow_matches(text, lexicon, "word")
    ]
    assert spans == expected
    table = scored([text], lexicon)
    counts = Counter(group for _, _, group in spans)
    assert [table[f"count_{group}"][0] for group in "abc"] == [counts[group] for group in "abc"]
    entries = lexicon.entries("word")
    assert all(entries[tuple(tokenize(text[start:end]))] == group for start, end, group in spans)


def test_a_slice_of_a_table_is_scored_alone() -> None:
    scoring = Scoring(lexicon_of({"she": "f", "he": "m"}))
    table = pl.DataFrame({"doc_id": list("abcdef"), "text": ["she", "he he", "ä she", "", "he she", "she she she"]})
    whole = score_texts(table, scoring)
    for start in range(6):
        for length in range(1, 7 - start):
            assert score_texts(table[start : start + length], scoring).equals(whole[start : start + length])
    assert score_texts(pl.concat([table[:2], table[2:]], rechunk=False), scoring).equals(whole)
    assert score_texts(table[:0], scoring).schema == whole.schema


def test_the_magnitude_against_the_rest() -> None:
    lexicon = lexicon_of({"x": "a", "y": "b", "z": "c"}, poles=("a", "rest"))
    scores = score_in_memory(pl.DataFrame({"doc_id": ["1", "2"], "text": ["x x x y y z", "y"]}), Scoring(lexicon))
    assert scores.signed_magnitude("count").tolist() == [1.5, -0.5]
    assert scores.signed_magnitude("count", ("c", "b")).tolist() == [-1, -1]
    assert scores.signed_magnitude("bool", ("b", "rest")).tolist() == [0, 1]


def test_the_scoring_of_options() -> None:
    """None is the default; a threshold of 0 is not."""
    every: tuple[Magnitude, ...] = ("tf", "bool", "tf_words", "tf_literal")
    assert scoring_of(None) == Scoring(load_lexicon("gender-en"), "word", every, 1)
    lexicon = load_lexicon("gender-en", poles="f,m")
    assert scoring_of("gender-en", "f,m", "whitespace", 0) == Scoring(lexicon, "whitespace", every, 0)
