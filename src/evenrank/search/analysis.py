"""Text analysis for BM25: words without stop words, stemmed."""

from __future__ import annotations

import functools
import hashlib
import os
from collections.abc import Callable, Collection, Mapping
from importlib import resources

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.files import EvenrankError
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted, require
from evenrank.files.reading import line_blocks

LANGUAGES = (
    "english", "danish", "dutch", "french", "german", "italian", "norwegian", "portuguese", "russian", "spanish",
    "swedish", "turkish",
)  # fmt: skip
"""Languages with a stop list (English: Lucene's 33 words, else NLTK's lists) and a Snowball stemmer of that name."""
NLTK = "nltk"
"""The name of NLTK's English list (179 words)."""


@functools.cache
def stop_list(name: str) -> frozenset[str]:
    """The stop words of one of LANGUAGES, or of NLTK's English list."""
    text = (resources.files(__package__) / "stop_lists" / f"{name}.txt").read_text(encoding="utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


@checked
def read_stop_words(source: str, *, nltk: bool = False) -> frozenset[str]:
    """The stop words, in lower case, that ``source`` names: a language, ``none``, or a file with a word per line.

    ``nltk``: accept the name ``nltk``, of NLTK's English list, as well.

    Raises EvenrankError, which names the lists, for anything else; InputError for a file that cannot be read.
    """
    lists = (NLTK, *LANGUAGES) if nltk else LANGUAGES
    if source == "none":
        return frozenset()
    if source in lists:
        return stop_list(source)
    if not os.path.exists(source):
        names = ", ".join(lists)
        raise EvenrankError(
            f"{arg.stopwords}: no such file and no list {quoted(source)} (the lists are {names} and none)"
        )
    lines = (line for block in line_blocks(source) for line in block.data.decode().split("\n"))
    return frozenset(line.strip().lower() for line in lines if line.strip())


STOP_WORD = -1
UNKNOWN = -2
# Words of two characters or more, as in bm25s: "don't" becomes "don".
_WORD = r"\b\w\w+\b"


class Analyzer:
    """Turns texts into term numbers, and remembers the terms that it has seen.

    ``stopwords``: a language (``"english"``: the 33 words of Lucene; else NLTK's lists), a file with a word per line,
    None, or the words themselves. ``stemmer``: the name of a Snowball stemmer (``"english"`` is Porter 2, ``"porter"``
    the original), or None. ``terms``: the numbers of the terms of an index; no others are added. ``name``: that of the
    stop words, if the words themselves are given. Raises EvenrankError for an unknown list or stemmer.
    """

    def __init__(
        self,
        stopwords: str | Collection[str] | None = "english",
        stemmer: str | None = "english",
        *,
        terms: Mapping[str, int] | None = None,
        name: str = "given",
    ) -> None:
        self.stopwords = stop_word_set(stopwords)
        self.stopwords_name = stopwords if isinstance(stopwords, str) else name
        self.stemmer = stemmer
        stops = f"stop words {self.stopwords_name} ({len(self.stopwords)})" if self.stopwords else "no stop words"
        self.description = f"{stops}, {f'stemmer {stemmer}' if stemmer else 'no stemmer'}"
        self._stem = _stem_words(stemmer)
        self._terms: dict[str, int] = {}
        self.known = self._terms if terms is None else terms
        self._words: dict[str, int] = {}

    @property
    def size(self) -> int:
        """The number of distinct terms seen."""
        return len(self.known)

    @property
    def alphabetical(self) -> NDArray[np.int64]:
        """The position of each term [terms], by its number, among the sorted terms, from 1."""
        ready: NDArray[np.int64] | None = getattr(self.known, "alphabetical", None)
        if ready is not None:
            return ready
        return pl.Series(list(self.known), dtype=pl.String).rank("ordinal").to_numpy().astype(np.int64)

    def terms(self, texts: pl.Series, *, grow: bool) -> pl.DataFrame:
        """The terms of each text in their order: ``text`` (row of ``texts``) and ``term`` (number), both int32.

        With ``grow`` a new term gets the next number and stop words are left out. Without it, stop words and unknown
        terms appear as STOP_WORD and UNKNOWN, so that a caller can see why a text has no terms.
        """
        words = texts.str.to_lowercase().str.extract_all(_WORD).alias("word").to_frame()
        words = words.with_columns(pl.int_range(pl.len(), dtype=pl.Int32).alias("text")).explode("word")
        distinct = words["word"].unique(maintain_order=True)
        numbers = pl.Series("term", self._numbers(distinct.to_list(), grow), dtype=pl.Int32)
        table = words.join(
            pl.DataFrame([distinct, numbers]), on="word", how="left", maintain_order="left", validate="m:1"
        )
        return table.filter(pl.col("term") != STOP_WORD if grow else True).select("text", "term")

    def _numbers(self, words: list[str], grow: bool) -> list[int]:
        """The number of each of ``words``, which are distinct."""
        new = [word for word in words if word not in self._words]
        for word, stem in zip(new, self._stem(new), strict=True):
            if word in self.stopwords:
                self._words[word] = STOP_WORD
            elif grow:
                self._words[word] = self._terms.setdefault(stem, len(self._terms))
            elif (number := self.known.get(stem)) is not None:
                self._words[word] = number
        # A word of a query that the collection does not have is still missing.
        return [self._words.get(word, UNKNOWN) for word in words]


def stop_word_set(stopwords: str | Collection[str] | None) -> frozenset[str]:
    """The stop words that :class:`Analyzer` takes, in lower case."""
    if stopwords is None:
        return frozenset()
    if isinstance(stopwords, str):
        return read_stop_words(stopwords)
    return frozenset(word.lower() for word in stopwords)


def words_digest(words: frozenset[str]) -> str:
    """The SHA-256 of a set of words."""
    return hashlib.sha256("\n".join(sorted(words)).encode(errors="surrogatepass")).hexdigest()


def _stem_words(stemmer: str | None) -> Callable[[list[str]], list[str]]:
    """A function that returns the stem of each word."""
    if stemmer is None:
        return lambda words: words
    require(f"the stemmer {stemmer}", "stem", "Stemmer")
    import Stemmer

    if stemmer not in Stemmer.algorithms():
        raise EvenrankError(
            f"{arg.stemmer}: expected one of {', '.join(Stemmer.algorithms())} or none, found {quoted(stemmer)}"
        )
    stem_words: Callable[[list[str]], list[str]] = Stemmer.Stemmer(stemmer).stemWords
    return stem_words
