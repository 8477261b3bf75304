"""From a text to the terms that BM25 counts: words, less stop words, stemmed."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from evenrank.io import EvenrankError
from evenrank.io.errors import shown
from evenrank.io.files import line_blocks

STOP_WORD = -1
UNKNOWN = -2
# Words of two characters or more, as bm25s finds them: "don't" gives "don".
_WORD = r"\b\w\w+\b"
STOP_WORD_LISTS = {
    "english": "STOPWORDS_EN",
    **{
        language: f"STOPWORDS_{language.upper()}"
        for language in (
            "danish", "dutch", "french", "german", "italian", "norwegian", "portuguese", "russian", "spanish",
            "swedish", "turkish",
        )
    },
}  # fmt: skip
"""Languages with a list of stop words, and what bm25s calls it; each has a Snowball stemmer of the same name."""


class Analyzer:
    """Turns texts into term numbers and remembers the terms that it has met.

    ``stopwords``: a language of STOP_WORD_LISTS (``"english"``: the 33 words of Lucene; else bm25s's lists), a file
    with a word a line, None, or the words themselves. ``stemmer``: the name of a Snowball stemmer (``"english"`` is
    Porter 2, ``"porter"`` the original), or None. Raises EvenrankError for another.
    """

    def __init__(self, stopwords: str | Sequence[str] | None = "english", stemmer: str | None = "english") -> None:
        self._stopwords = _stopword_set(stopwords)
        named = stopwords if isinstance(stopwords, str) else "given"
        stops = f"stop words {named} ({len(self._stopwords)})" if self._stopwords else "no stop words"
        self.description = f"{stops}, {f'stemmer {stemmer}' if stemmer else 'no stemmer'}"
        self._stem = _stem_words(stemmer)
        self._terms: dict[str, int] = {}
        self._words: dict[str, int] = {}

    @property
    def size(self) -> int:
        """How many different terms were met."""
        return len(self._terms)

    @property
    def places(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The place of each term, by its number, among the sorted terms [terms]."""
        terms = pl.Series(list(self._terms), dtype=pl.String)
        return terms.rank("ordinal").to_numpy().astype(np.int64)

    def terms(self, texts: pl.Series, *, grow: bool) -> pl.DataFrame:
        """The terms of each text in its order: ``text`` (row of ``texts``) and ``term`` (number), both int32.

        With ``grow`` a new term gets the next number and stop words are left out. Without, nothing is learned, and stop
        words and terms never met stay in as STOP_WORD and UNKNOWN, so that a caller can tell why a text gives nothing.
        """
        words = texts.str.to_lowercase().str.extract_all(_WORD).alias("word").to_frame()
        words = words.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("text")).explode("word")
        different = words["word"].unique(maintain_order=True)
        numbers = pl.Series("term", self._numbers(different.to_list(), grow), dtype=pl.Int32)
        table = words.join(
            pl.DataFrame([different, numbers]), on="word", how="left", maintain_order="left", validate="m:1"
        )
        return table.filter(pl.col("term") != STOP_WORD if grow else True).select("text", "term")

    def _numbers(self, words: list[str], grow: bool) -> list[int]:
        """The number of each of ``words``, which are all different."""
        fresh = [word for word in words if word not in self._words]
        for word, stem in zip(fresh, self._stem(fresh), strict=True):
            if word in self._stopwords:
                self._words[word] = STOP_WORD
            elif grow:
                self._words[word] = self._terms.setdefault(stem, len(self._terms))
            elif stem in self._terms:
                self._words[word] = self._terms[stem]
        # A word that is still missing is one of a query, and none of the collection's.
        return [self._words.get(word, UNKNOWN) for word in words]


def _stopword_set(stopwords: str | Sequence[str] | None) -> frozenset[str]:
    if stopwords is None:
        return frozenset()
    if isinstance(stopwords, str):
        return named_stop_words(stopwords)
    return frozenset(word.lower() for word in stopwords)


def named_stop_words(source: str, *more: str) -> frozenset[str]:
    """The stop words of a language of STOP_WORD_LISTS, or of a file with a word a line, in lower case.

    Raises EvenrankError, which says what there is (``more`` too), where there is neither; InputError for a file that
    cannot be read.
    """
    if source in STOP_WORD_LISTS:
        from bm25s import stopwords

        return frozenset(getattr(stopwords, STOP_WORD_LISTS[source]))
    if not os.path.exists(source):
        names = ", ".join((*more, *STOP_WORD_LISTS))
        raise EvenrankError(f"`stopwords`: no such file and no list {shown(source)} (there are {names} and none)")
    lines = (line for block in line_blocks(source) for line in block.data.decode().split("\n"))
    return frozenset(line.strip().lower() for line in lines if line.strip())


def _stem_words(stemmer: str | None) -> Callable[[list[str]], list[str]]:
    """A function that gives the stem of each of its words."""
    if stemmer is None:
        return lambda words: words
    import Stemmer

    if stemmer not in Stemmer.algorithms():
        raise EvenrankError(
            f"`stemmer`: expected one of {', '.join(Stemmer.algorithms())} or none, found {shown(stemmer)}"
        )
    stem_words: Callable[[list[str]], list[str]] = Stemmer.Stemmer(stemmer).stemWords
    return stem_words
