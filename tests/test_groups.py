"""Tokens, lexicons, the counting kernel, magnitudes and neutrality."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.groups import (
    Lexicon,
    Scoring,
    Tokens,
    builtin_lexicons,
    gendered_spans,
    load_lexicon,
    neutrality,
    score_in_memory,
    score_texts,
    tokenize,
)
from evenrank.io import MAGNITUDES, EvenrankError, InputError, Scores, scan_collection

# --- slow, obvious versions ------------------------------------------------------------------------------------------

APOSTROPHES = "'’ʼ＇"


def slow_words(text: str) -> list[tuple[int, int, str]]:
    """The ``word`` tokens by a regular expression over the kinds of the characters: start, end, folded."""
    kinds = "".join("a" if c in APOSTROPHES else "w" if unicodedata.category(c)[0] in "LMN" else " " for c in text)
    words = []
    for match in re.finditer("w+(?:aw+)*", kinds):
        start, end = match.span()
        last = kinds.rfind("a", start, end)
        if last >= 0 and text[last + 1 : end].casefold() in ("s", "d", "m", "ll", "re", "ve"):
            end = last
        words.append((start, end, re.sub(f"[{APOSTROPHES}]", "'", text[start:end].casefold())))
    return words


def slow_tokens(text: str, tokens: Tokens) -> list[str]:
    if tokens == "whitespace":
        return [token for token in text.lower().replace("ς", "σ").split(" ") if token]
    return [word for _, _, word in slow_words(text)]


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


def slow_neutrality(counts: list[float], shares: tuple[float, ...], threshold: float) -> float:
    total = sum(counts)
    if total <= threshold:
        return 1.0
    away = sum(abs(count / total - share) for count, share in zip(counts, shares, strict=True))
    return 1 - away / (2 * (1 - min(shares)))


def lexicon_of(
    words: dict[str, str], shares: tuple[float, ...] | None = None, poles: tuple[str, str] | None = None
) -> Lexicon:
    groups = tuple(sorted(set(words.values())))
    return Lexicon("test", groups, tuple(words.items()), shares or (1 / len(groups),) * len(groups), poles)


def scored(texts: list[str], lexicon: Lexicon, tokens: Tokens = "word", threshold: float = 1) -> pl.DataFrame:
    table = pl.DataFrame(
        {"doc_id": [str(i) for i in range(len(texts))], "text": texts}, schema_overrides={"text": pl.String}
    )
    return score_texts(table, Scoring(lexicon, tokens, MAGNITUDES, threshold))


# --- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("  ...  ", []),
        ('She, said "she!" (SHE)', ["she", "said", "she", "she"]),
        ("The woman's friend; the women's", ["the", "woman", "friend", "the", "women"]),
        ("don't can't o'clock", ["don't", "can't", "o'clock"]),
        ("She'll he'd I'm they're we've it's", ["she", "he", "i", "they", "we", "it"]),
        ("SHE'LL Woman'S", ["she", "woman"]),
        ("the boys' toys and 'quoted' words'", ["the", "boys", "toys", "and", "quoted", "words"]),
        ("woman’s don’t womanʼs don＇t", ["woman", "don't", "woman", "don't"]),
        ("rock'n'roll's fo'c's'le", ["rock'n'roll", "fo'c's'le"]),
        ("two''words a' 'b", ["two", "words", "a", "b"]),
        (
            "ex-wife mother-in-law snake_case a/b c.d",
            ["ex", "wife", "mother", "in", "law", "snake", "case", "a", "b", "c", "d"],
        ),
        ("em—dash en–dash ellipsis…end", ["em", "dash", "en", "dash", "ellipsis", "end"]),
        ("3rd 2024 x² ½", ["3rd", "2024", "x²", "½"]),
        ("Straße GROẞ ﬁancée ŒUVRE", ["strasse", "gross", "fiancée", "œuvre"]),
        ("ΣΊΣΥΦΟΣ σίσυφος", ["σίσυφοσ", "σίσυφοσ"]),
        ("İstanbul ŉ", ["i̇stanbul", "'n"]),
        ("cafe\u0301 नमस्ते 東京 она́", ["cafe\u0301", "नमस्ते", "東京", "она́"]),
        ("she\u00a0he\u200bhers\u2028his", ["she", "he", "hers", "his"]),
        ("her😀him", ["her", "him"]),
        ("s 's x's 's's", ["s", "s", "x", "s"]),
        # A variation selector is a mark; private use and an unassigned plane are not.
        ("a\U000e0100b c\U000f0000d e\U00040000f", ["a\U000e0100b", "c", "d", "e", "f"]),
    ],
)
def test_words(text: str, tokens: list[str]) -> None:
    assert tokenize(text) == tokens == slow_tokens(text, "word")
    assert scored([text], lexicon_of({"a": "x", "b": "y"}))["tokens"].to_list() == [len(tokens)]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("", []),
        ("   ", []),
        ("She, said  she", ["she,", "said", "she"]),
        ("woman's don’t ex-wife", ["woman's", "don’t", "ex-wife"]),
        ("tab\tand\nnewline stay", ["tab\tand\nnewline", "stay"]),
        ("she\u00a0he", ["she\u00a0he"]),
        ("Straße İ ΟΔΟΣ", ["straße", "i̇", "οδοσ"]),
    ],
)
def test_whitespace_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text, "whitespace") == tokens == slow_tokens(text, "whitespace")
    assert scored([text], lexicon_of({"a": "x", "b": "y"}), "whitespace")["tokens"].to_list() == [len(tokens)]


PIECES = ["she", "woman", "s", "ll", "re", "Don", "t", "é", "ß", "ŉ", "ﬁ", "İ", "Σ", "́", "9", "𝔘", "東", "\U000e0100"]
GAPS = [" ", "  ", "'", "’", "ʼ", "''", "-", "_", ".", "\t", "\u00a0", "😀", "—"]
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES + GAPS), max_size=15).map("".join),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
)


@given(TEXTS)
def test_any_words(text: str) -> None:
    assert tokenize(text) == slow_tokens(text, "word")


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
    assert isinstance(result, Scores)
    assert result.table.equals(score_texts(texts, Scoring(lexicon)))
    assert (result.groups, result.shares, result.poles) == (("f", "m"), (0.5, 0.5), ("m", "f"))
    assert result.signed_magnitude("count").tolist() == [0, -3]
    nothing = score_in_memory(texts[:0], Scoring(lexicon))
    assert nothing.table.schema == result.table.schema


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
            "`magnitudes`: expected some of count, bool, tf, tf_words, tf_literal, found 'idf'",
        ),
        ({"threshold": -1}, "`threshold`: expected a number from 0, found -1"),
        ({"threshold": math.nan}, "`threshold`: expected a number from 0, found nan"),
    ],
)
def test_settings_that_do_not_exist(options: dict[str, object], message: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        Scoring(load_lexicon(), **options)  # type: ignore[arg-type]
    assert str(caught.value) == message


# --- neutrality ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "shares", "threshold", "expected"),
    [
        ([0, 0], [0.5, 0.5], 1, 1),
        ([1, 0], [0.5, 0.5], 1, 1),
        ([2, 0], [0.5, 0.5], 1, 0),
        ([0, 7], [0.5, 0.5], 1, 0),
        ([3, 1], [0.5, 0.5], 1, 0.5),
        ([1, 2], [0.5, 0.5], 1, 2 / 3),
        ([4, 4], [0.5, 0.5], 1, 1),
        # The threshold.
        ([1, 0], [0.5, 0.5], 0, 0),
        ([0, 0], [0.5, 0.5], 0, 1),
        ([2, 0], [0.5, 0.5], 2, 1),
        ([3, 0], [0.5, 0.5], 2, 0),
        ([2, 0], [0.5, 0.5], 1.5, 0),
        # Unequal shares: 1 − Σ|c/n − J| / (2 · 0.7).
        ([7, 3], [0.7, 0.3], 1, 1),
        ([9, 0], [0.7, 0.3], 1, 1 - 0.6 / 1.4),
        ([0, 9], [0.7, 0.3], 1, 0),
        ([1, 1], [0.7, 0.3], 1, 1 - 0.4 / 1.4),
        ([2, 0], [1.0, 0.0], 1, 1),
        ([0, 2], [1.0, 0.0], 1, 0),
        # Three groups: 1 − Σ|c/n − J| / (2 · 2/3), then / (2 · 0.8).
        ([2, 1, 0], [1 / 3, 1 / 3, 1 / 3], 1, 0.5),
        ([5, 0, 0], [1 / 3, 1 / 3, 1 / 3], 1, 0),
        ([1, 1, 1], [1 / 3, 1 / 3, 1 / 3], 1, 1),
        ([9, 0, 0], [0.5, 0.3, 0.2], 1, 1 - 1.0 / 1.6),
        ([0, 9, 0], [0.5, 0.3, 0.2], 1, 1 - 1.4 / 1.6),
        ([0, 0, 9], [0.5, 0.3, 0.2], 1, 0),
        ([5, 3, 2], [0.5, 0.3, 0.2], 1, 1),
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


# --- lexicons --------------------------------------------------------------------------------------------------------


def test_lexicon_of_lines(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("\ufeffWord,Group\r\nshe,f\r\n\r\n Her Majesty , f\nhe,m\nshe,f\nhe, too,m")
    lexicon = load_lexicon(path)
    assert lexicon.name == "words"
    assert lexicon.groups == ("f", "m")
    assert lexicon.shares == (0.5, 0.5)
    assert lexicon.poles == ("m", "f")
    assert lexicon.entries("word") == {
        ("she",): "f",
        ("her", "majesty"): "f",
        ("he",): "m",
        ("he", "too"): "m",
    }
    assert lexicon.entries("whitespace") == {("she",): "f", ("he",): "m"}


TOML = """\
name = "ages"
groups = ["young", "old", "other"]
poles = ["young", "old"]
[shares]
young = 0.5
old = 0.25
other = 0.25
[words]
old = ["old", "grandparent"]
young = ["young", "kid"]
other = ["adult"]
"""


def test_lexicon_of_toml(tmp_path: Path) -> None:
    path = tmp_path / "ages.toml"
    path.write_text(TOML)
    lexicon = load_lexicon(path)
    assert lexicon.name == "ages"
    assert lexicon.groups == ("young", "old", "other")
    assert lexicon.shares == (0.5, 0.25, 0.25)
    assert lexicon.poles == ("young", "old")
    assert lexicon.words[0] == ("young", "young")
    assert lexicon.entries("word")[("grandparent",)] == "old"
    assert load_lexicon(path, poles="other,rest").poles == ("other", "rest")
    path.write_text('[words]\nb = ["x"]\na = ["y"]\nc = []\n')
    plain = load_lexicon(path)
    assert (plain.name, plain.groups, plain.poles) == ("ages", ("a", "b", "c"), None)
    assert plain.shares == (1 / 3, 1 / 3, 1 / 3)


@pytest.mark.parametrize(
    ("poles", "expected"),
    [(None, None), ("a,b", ("a", "b")), (" c , a ", ("c", "a")), ("b,rest", ("b", "rest"))],
)
def test_poles(poles: str | None, expected: tuple[str, str] | None) -> None:
    lexicon = lexicon_of({"x": "a", "y": "b", "z": "c"})
    assert lexicon.with_poles(poles).poles == expected
    assert lexicon.with_poles(poles).words == lexicon.words


@pytest.mark.parametrize("poles", ["a", "a,b,c", "a,a", "a,d", "d,a", "rest,a", "rest,rest", ",", ""])
def test_poles_that_are_none(poles: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        lexicon_of({"x": "a", "y": "b", "z": "c"}).with_poles(poles)
    assert str(caught.value) == f"`poles`: expected two of a, b, c, rest (rest second), found {poles!r}"


@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("she,f\nhe,m\nthey\n", 3, "expected word,group, found 'they'"),
        ("she,f\nhe,\n", 2, "expected word,group, found 'he,'"),
        ("she,f\n,m\n", 2, "expected word,group, found ',m'"),
        ("she,f\n\nhe,m\nShe,m\n", 4, "'She' stands in two groups, f (line 1) and m"),
        ("she,f\nshe's,m\n", 2, '"she\'s" stands in two groups, f (line 1) and m'),
        ("she,f\n...,m\n", 2, "the entry '...' holds no word"),
        ("she,f\nher,f\n", None, "expected at least two groups, found f"),
        ("word,group\n", None, "expected at least two groups, found none"),
        ("she,f\nthey,rest\n", None, "no group may be named 'rest'"),
        ("she,f\nh\udcffe,m\n", 2, "expected UTF-8, found the byte 0xff"),
        ("", None, "the file is empty"),
    ],
)
def test_mistakes_in_lines(tmp_path: Path, content: str, line: int | None, message: str) -> None:
    path = tmp_path / "words.csv"
    path.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError) as caught:
        load_lexicon(path)
    place = str(path) if line is None else f"{path}, line {line}"
    assert str(caught.value).startswith(f"{place}: {message}")


TWO = '[words]\nf = ["she"]\nm = ["he"]\n'


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('[words]\nf = ["she", "x"]\nm = ["X"]\n', "lexicon words: 'X' stands in two groups, f and m"),
        ('[words]\nf = ["she"]\nm = ["-"]\n', "lexicon words: the entry '-' holds no word"),
        ('[words]\nf = ["she"]\n', "expected at least two groups, found f"),
        ('[words]\nf = ["she"]\nrest = ["he"]\n', "no group may be named 'rest'"),
        ("[words]\n", "expected at least two groups, found none"),
        ('name = "x"\n', "expected a table [words] with a list of words for each group"),
        ('[words]\nf = "she"\nm = ["he"]\n', "expected a table [words] with a list of words for each group"),
        ("[words]\nf = [1]\nm = []\n", "expected a table [words] with a list of words for each group"),
        ("words = [\n", "no valid TOML: "),
        (f"colour = 1\n{TWO}", "unknown key 'colour' (allowed: name, groups, poles, shares, words)"),
        (f"[shares]\nf = 0.5\nm = 0.4\n{TWO}", "the target shares must sum to 1, they sum to 0.9"),
        (f"[shares]\nf = -0.5\nm = 1.5\n{TWO}", "the target shares must sum to 1"),
        (f"[shares]\nf = nan\nm = 1.0\n{TWO}", "the target shares must sum to 1, they sum to nan"),
        (f"[shares]\nf = 1{'0' * 400}\nm = 1.0\n{TWO}", "the target shares must sum to 1, one of them is too large"),
        ('[words]\nx = ["she"]\nwords_x = ["he"]\n', "the groups 'words_x' and 'x' cannot stand side by side: both "),
        ('[words]\nx = ["she"]\nliteral_x = ["he"]\n', "the groups 'literal_x' and 'x' cannot stand side by side: "),
        (f"[shares]\nf = 1.0\n{TWO}", "[shares] names f, the groups are f, m"),
        (f"[shares]\nf = 'half'\nm = 0.5\n{TWO}", "expected a table [shares] with a number for each group"),
        (f"shares = 1\n{TWO}", "expected a table [shares] with a number for each group"),
        (f'groups = ["f", "m", "x"]\n{TWO}', "groups names f, m, x, [words] holds f, m"),
        (f'groups = ["f", "f", "m"]\n{TWO}', "groups names f, f, m, [words] holds f, m"),
        (f'groups = "fm"\n{TWO}', "expected a list of texts as groups, found 'fm'"),
        (f"groups = [1, 2]\n{TWO}", "expected a list of texts as groups, found '[1, 2]'"),
        (f'poles = ["m", "x"]\n{TWO}', "`poles`: expected two of f, m, rest (rest second), found 'm,x'"),
        (f'poles = "m,f"\n{TWO}', "expected a list of texts as poles, found 'm,f'"),
        (f"name = 1\n{TWO}", "expected a text as name, found '1'"),
        ("", "the file is empty"),
    ],
)
def test_mistakes_in_toml(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "words.toml"
    path.write_text(content)
    with pytest.raises(InputError) as caught:
        load_lexicon(path)
    assert str(caught.value).startswith(f"{path}: {message}")
    assert "\n" not in str(caught.value)


def test_toml_that_is_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "words.toml"
    path.write_bytes(b'[words]\nf = ["\xe4"]\n')
    with pytest.raises(InputError) as caught:
        load_lexicon(path)
    assert str(caught.value) == f"{path}, line 2: expected UTF-8, found the byte 0xe4"


def test_no_such_lexicon(tmp_path: Path) -> None:
    with pytest.raises(EvenrankError, match=r"no file and no built-in lexicon 'gender-xx' \(built in: .*gender-en"):
        load_lexicon("gender-xx")
    with pytest.raises(InputError, match="Is a directory"):
        load_lexicon(tmp_path)
    (tmp_path / "x.toml").mkdir()
    with pytest.raises(InputError, match="Is a directory"):
        load_lexicon(tmp_path / "x.toml")


def test_a_word_in_two_groups_of_a_lexicon_made_by_hand() -> None:
    lexicon = Lexicon("mine", ("f", "m"), (("she", "f"), ("SHE", "m")), (0.5, 0.5), None)
    with pytest.raises(EvenrankError, match="lexicon mine: 'SHE' stands in two groups, f and m"):
        score_texts(pl.DataFrame({"doc_id": ["1"], "text": ["she"]}), Scoring(lexicon))


@pytest.mark.parametrize("name", builtin_lexicons())
@pytest.mark.parametrize("tokens", ["word", "whitespace"])
def test_built_in_lexicons(name: str, tokens: Tokens) -> None:
    lexicon = load_lexicon(name)
    assert lexicon.name == name
    groups: dict[tuple[str, ...], set[str]] = {}
    for word, group in lexicon.words:
        groups.setdefault(tuple(slow_tokens(word, tokens)), set()).add(group)
    assert [entry for entry, of_entry in groups.items() if len(of_entry) > 1] == []
    assert set(lexicon.entries(tokens).values()) == set(lexicon.groups)
    assert sum(lexicon.shares) == pytest.approx(1)


def test_gender_en() -> None:
    lexicon = load_lexicon()
    assert (lexicon.name, lexicon.groups, lexicon.shares) == ("gender-en", ("f", "m"), (0.5, 0.5))
    assert lexicon.poles == ("m", "f")
    entries = lexicon.entries("word")
    for female, male in [("she", "he"), ("her", "his"), ("woman", "man"), ("mother", "father"), ("wives", "husbands")]:
        assert (entries[(female,)], entries[(male,)]) == ("f", "m")
    texts = ["The woman's friend, she said, is her mother-in-law.", "He is his own man; don't ask him."]
    table = scored(texts, lexicon)
    assert table.select("count_f", "count_m").rows() == [(4, 0), (0, 4)]


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
