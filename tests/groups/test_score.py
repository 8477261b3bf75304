"""Counting and magnitudes: by hand, and against a slow version."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.files import EvenrankError, scan_collection
from evenrank.groups import (
    GroupTable,
    Lexicon,
    Magnitude,
    Scoring,
    Tokens,
    gendered_spans,
    load_lexicon,
    score_in_memory,
    score_texts,
    scoring_of,
    tokenize,
)
from slow_groups import APOSTROPHES, GAPS, PIECES, TEXTS, lexicon_of, scored, slow_neutrality, slow_tokens, slow_words


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
            place += len(longest)
        else:
            place += 1
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


# --- counts and magnitudes -------------------------------------------------------------------------------------------


def test_counts_by_hand() -> None:
    lexicon = lexicon_of({"she": "f", "her": "f", "woman": "f", "he": "m", "his": "m"}, poles=("m", "f"))
    table = scored(
        [
            "She, said \"she\"; her woman's hat — he didn't.",
            "he HE he he",
            "Her sheep. The hero. There.",
            "",
        ],
        lexicon,
    )
    assert table.columns == [
        "doc_id",
        "tokens",
        *[f"count_{group}" for group in "fm"],
        *[f"magnitude_{kind}_{group}" for kind in ("count", "bool", "tf", "tf_words", "tf_literal") for group in "fm"],
        "neutrality",
    ]
    assert table["tokens"].to_list() == [8, 4, 5, 0]
    assert table["count_f"].to_list() == table["magnitude_count_f"].to_list() == [4, 0, 1, 0]
    assert table["count_m"].to_list() == [1, 4, 0, 0]
    assert table["magnitude_bool_f"].to_list() == [1, 0, 1, 0]
    assert table["magnitude_bool_m"].to_list() == [1, 1, 0, 0]
    # she twice, her once, woman once.
    assert table["magnitude_tf_f"].to_list() == pytest.approx([math.log(5), 0, math.log(2), 0], abs=1e-15)
    assert table["magnitude_tf_words_f"].to_list() == pytest.approx(
        [math.log(3) + 2 * math.log(2), 0, math.log(2), 0], abs=1e-15
    )
    assert table["magnitude_tf_literal_f"].to_list() == pytest.approx([math.log(2), 0, 0, 0], abs=1e-15)
    assert table["magnitude_tf_literal_m"].to_list() == pytest.approx([0, math.log(4), 0, 0], abs=1e-15)
    # 4 of 5 against a half: 1 − (0.3 + 0.3); one word alone is neutral at the threshold 1.
    assert table["neutrality"].to_list() == pytest.approx([0.4, 0, 1, 1])


@pytest.mark.parametrize("apostrophe", APOSTROPHES)
def test_what_may_follow_an_apostrophe(apostrophe: str) -> None:
    lexicon = lexicon_of({"she": "f", "rock'n'roll": "m", "o'donnell": "m"})

    def counts(*texts: str) -> list[int]:
        return (
            scored([text.replace("'", apostrophe) for text in texts], lexicon)
            .select(pl.sum_horizontal("count_f", "count_m").alias("n"))["n"]
            .to_list()
        )

    assert counts("she's", "she'd", "she'm", "she'll", "she're", "she've", "SHE'LL", "she'ſ", "she'") == [1] * 9
    assert counts("she't", "she'n", "she'ss", "she'l", "she'es", "she'lle", "she'er", "she'vet", "she'9") == [0] * 9
    assert counts("she's's", "she'x's", "x's'she", "shes") == [0] * 4
    assert counts("Rock'n'Roll", "rock'n'roll's", "rock'n", "rock'n's'roll") == [1, 1, 0, 0]
    # ß folds to two letters.
    assert counts("o'donnell", "o'donnell'd", "o'donnell'ß", "o'donnell'ﬁ") == [1, 1, 0, 0]


def test_whitespace_counts_by_hand() -> None:
    lexicon = lexicon_of({"she": "f", "woman": "f", "ma'am": "f", "he": "m", "best man": "m"})
    table = scored(["She, she she. woman's woman", "ma'am Ma’am HE best man"], lexicon, "whitespace")
    assert table["tokens"].to_list() == [5, 5]
    assert table["count_f"].to_list() == [2, 1]
    # A phrase is no whole token between single spaces.
    assert table["count_m"].to_list() == [0, 1]


def test_the_longest_phrase_first() -> None:
    lexicon = lexicon_of(
        {"man": "m", "best man": "x", "best man ever": "y", "ever after": "z", "after": "w", "no one else": "v"}
    )
    texts = [
        "The best man. Best-man, best man's",
        "best man ever after",
        "best man everywhere",
        "best best man",
        "best of man after",
        "man ever after after all",
        "no one no one else",
    ]
    expected = ["xxx", "yw", "x", "x", "mw", "mzw", "v"]
    table = scored(texts, lexicon)
    for row, text, groups in zip(table.iter_rows(named=True), texts, expected, strict=True):
        assert {group: row[f"count_{group}"] for group in lexicon.groups if row[f"count_{group}"]} == Counter(groups)
        assert [group for _, _, group in slow_matches(text, lexicon, "word")] == list(groups)
        assert [group for _, _, group in gendered_spans(text, lexicon)] == list(groups)


WORDS = {
    "she": "a",
    "woman": "a",
    "ex-wife": "a",
    "ma'am": "a",
    "fiancée": "a",
    "straße": "a",
    "he": "b",
    "he said": "b",
    "he said so": "a",
    "don't": "b",
    "ŉ": "b",
    "İ": "b",
    "ﬁ": "b",
    "Σ": "b",
    "they": "c",
    "said so": "c",
    "she and they": "c",
    "東京": "c",
    "é": "c",
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
def test_any_lexicon(words: dict[str, str], text: str, tokens: Tokens) -> None:
    # One group for each entry: "x's" and "x" are the same.
    unique = {tuple(slow_tokens(word, "word")): word for word in words}
    lexicon = lexicon_of({word: words[word] for word in unique.values()})
    lexicon = Lexicon("test", ("a", "b", "c"), lexicon.words, (1 / 3,) * 3, None)
    row = scored([text], lexicon, tokens).drop("doc_id").row(0, named=True)
    assert row == pytest.approx(slow_score(text, lexicon, tokens, 1), abs=1e-12)


@given(SCORED_TEXTS)
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


def test_spans_by_hand() -> None:
    text = "“Ma’am,” said the ex-wife's man. He SAID so!"
    spans = gendered_spans(text, lexicon_of(WORDS))
    assert [(text[start:end], group) for start, end, group in spans] == [
        ("Ma’am", "a"),
        ("ex-wife", "a"),
        ("He SAID so", "a"),
    ]


def test_a_slice_of_a_table_is_scored_alone() -> None:
    lexicon = lexicon_of({"she": "f", "he": "m"})
    table = pl.DataFrame({"doc_id": list("abcdef"), "text": ["she", "he he", "ä she", "", "he she", "she she she"]})
    whole = score_texts(table, Scoring(lexicon))
    for start in range(6):
        for length in range(1, 7 - start):
            assert score_texts(table[start : start + length], Scoring(lexicon)).equals(whole[start : start + length])
    assert score_texts(pl.concat([table[:2], table[2:]], rechunk=False), Scoring(lexicon)).equals(whole)
    assert score_texts(table[:0], Scoring(lexicon)).schema == whole.schema


def test_in_memory_is_the_same_as_by_table() -> None:
    lexicon = load_lexicon()
    texts = pl.DataFrame({"doc_id": ["b", "a"], "text": ["She and he.", "The woman and her wife"]})
    result = score_in_memory(texts, Scoring(lexicon))
    assert isinstance(result, GroupTable)
    assert result.table.equals(score_texts(texts, Scoring(lexicon)))
    assert (result.groups, result.shares, result.poles) == (("f", "m"), (0.5, 0.5), ("m", "f"))
    assert result.signed_magnitude("count").tolist() == [0, -3]
    with pytest.raises(EvenrankError, match=r"^`texts`: expected at least one row, found none$"):
        score_in_memory(texts[:0], Scoring(lexicon))


def test_the_magnitude_against_the_rest() -> None:
    lexicon = lexicon_of({"x": "a", "y": "b", "z": "c"}, poles=("a", "rest"))
    texts = pl.DataFrame({"doc_id": ["1", "2"], "text": ["x x x y y z", "y"]})
    scores = score_in_memory(texts, Scoring(lexicon))
    assert scores.signed_magnitude("count").tolist() == [1.5, -0.5]
    assert scores.signed_magnitude("count", ("c", "b")).tolist() == [-1, -1]
    assert scores.signed_magnitude("bool", ("b", "rest")).tolist() == [0, 1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tokens": "words"}, "`tokens`: expected word or whitespace, found 'words'"),
        (
            {"magnitudes": ("tf", "idf")},
            "`magnitudes`: expected some of count, bool, tf, tf_words, tf_literal, found ('tf', 'idf')",
        ),
        ({"threshold": -1}, "`threshold`: expected a number from 0, found -1"),
        ({"threshold": math.nan}, "`threshold`: expected a number from 0, found nan"),
    ],
)
def test_settings_that_do_not_exist(options: dict[str, object], message: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        Scoring(load_lexicon(), **options)  # type: ignore[arg-type]
    assert str(caught.value) == message


# --- real texts ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", ["word", "whitespace"])
def test_real_texts(shared_data: Path, tokens: Tokens) -> None:
    lexicon = load_lexicon(shared_data / "lexicons" / "gender_representative.csv")
    documents = pl.concat(list(scan_collection(shared_data / "grepbiasir" / "collection.clean.tsv")))
    table = scored(documents["text"].to_list(), lexicon, tokens)
    groups = {word.lower(): group for word, group in lexicon.words}
    assert len(groups) == 326
    assert all(word.isalpha() for word in groups)
    for text, row in zip(documents["text"], table.iter_rows(named=True), strict=True):
        found = text.lower().split(" ") if tokens == "whitespace" else slow_tokens(text, "word")
        words = Counter(token for token in found if token in groups)
        assert row["tokens"] == sum(map(bool, found))
        for group in "fm":
            own = {word: n for word, n in words.items() if groups[word] == group}
            assert row[f"count_{group}"] == sum(own.values())
            assert row[f"magnitude_tf_words_{group}"] == pytest.approx(sum(math.log(1 + n) for n in own.values()))
    assert table["count_f"].sum() > 400
    assert table["count_m"].sum() > 400


def test_the_scoring_of_options() -> None:
    """None is the default; a threshold of 0 is not."""
    every: tuple[Magnitude, ...] = ("tf", "bool", "tf_words", "tf_literal")
    assert scoring_of(None) == Scoring(load_lexicon("gender-en"), "word", every, 1)
    lexicon = load_lexicon("gender-en", poles="f,m")
    assert scoring_of(lexicon, None, "whitespace", 0) == Scoring(lexicon, "whitespace", every, 0)
    assert scoring_of("gender-en", "f,m").lexicon == lexicon
    with pytest.raises(EvenrankError, match="no built-in lexicon"):
        scoring_of("")
