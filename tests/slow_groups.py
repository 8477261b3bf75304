"""Tokens, counts and neutrality the slow, obvious way, and texts to try them on."""

from __future__ import annotations

import re
import unicodedata

import polars as pl
from hypothesis import strategies as st

from evenrank.groups import MAGNITUDES, Lexicon, Scoring, Tokens, score_texts

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
    """The texts' scores, alone and with another text behind them: the last 72 bytes are read in another way."""
    scoring = Scoring(lexicon, tokens, MAGNITUDES, threshold)
    alone, before = (
        score_texts(
            pl.DataFrame(
                {"doc_id": [str(i) for i in range(len(all_texts))], "text": all_texts},
                schema_overrides={"text": pl.String},
            ),
            scoring,
        )
        for all_texts in (texts, [*texts, "x" * 72])
    )
    assert before[: len(texts)].equals(alone)
    return alone


PIECES = ["she", "woman", "s", "ll", "re", "Don", "t", "é", "ß", "ŉ", "ﬁ", "İ", "Σ", "́", "9", "𝔘", "東", "\U000e0100"]
GAPS = [" ", "  ", "'", "’", "ʼ", "''", "-", "_", ".", "\t", "\u00a0", "😀", "—"]
TEXTS = st.one_of(
    # Longer than the 64 bytes that are read at a time.
    st.lists(st.sampled_from(PIECES + GAPS + ["a" * 60]), min_size=20, max_size=70).map("".join),
    st.lists(st.sampled_from(PIECES + GAPS), max_size=15).map("".join),
    st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
)
