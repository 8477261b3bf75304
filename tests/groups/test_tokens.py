"""Tokens: by hand, and against a slow version."""

from __future__ import annotations

import pytest
from hypothesis import given

from evenrank.groups import tokenize
from slow_groups import TEXTS, lexicon_of, scored, slow_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("  ...  ", ""),
        ('She, said "she!" (SHE)', "she said she she"),
        ("The woman's friend; the women's", "the woman friend the women"),
        ("don't can't o'clock", "don't can't o'clock"),
        ("She'll he'd I'm they're we've it's", "she he i they we it"),
        ("the boys' toys and 'quoted' words'", "the boys toys and quoted words"),
        ("woman’s don’t womanʼs don＇t", "woman don't woman don't"),
        ("rock'n'roll's fo'c's'le", "rock'n'roll fo'c's'le"),
        ("two''words a' 'b", "two words a b"),
        ("ex-wife mother-in-law snake_case a/b c.d", "ex wife mother in law snake case a b c d"),
        ("em—dash en–dash ellipsis…end", "em dash en dash ellipsis end"),
        ("3rd 2024 x² ½", "3rd 2024 x² ½"),
        ("Straße GROẞ ﬁancée ŒUVRE", "strasse gross fiancée œuvre"),
        ("ΣΊΣΥΦΟΣ σίσυφος", "σίσυφοσ σίσυφοσ"),
        ("İstanbul ŉ", "i̇stanbul 'n"),
        ("cafe\u0301 नमस्ते 東京 она́", "cafe\u0301 नमस्ते 東京 она́"),
        ("she\u00a0he\u200bhers\u2028his😀him", "she he hers his him"),
        ("s 's x's 's's", "s s x s"),
        # A variation selector is a mark; private use and an unassigned plane are not.
        ("a\U000e0100b c\U000f0000d e\U00040000f", "a\U000e0100b c d e f"),
    ],
)
def test_words(text: str, tokens: str) -> None:
    assert tokenize(text) == tokens.split() == slow_tokens(text, "word")
    assert scored([text], lexicon_of({"a": "x", "b": "y"}))["tokens"].to_list() == [len(tokens.split())]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
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


@given(TEXTS)
def test_any_words(text: str) -> None:
    assert tokenize(text) == slow_tokens(text, "word")
