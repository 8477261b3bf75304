"""Words of texts, and their numbers: 0 for padding, 1 for a word without a vector, then the words with one."""

from __future__ import annotations

import functools
import itertools
import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor

from evenrank.embeddings import Vectors, train_vectors
from evenrank.io import InputError, scan_collection, write_text

# 0 is padding.
UNKNOWN, FIRST = 1, 2

# ASCII letters in lower case, digits and apostrophes as they are, everything else a space.
_ASCII = bytes(
    ord(chr(code).lower()) if code < 128 and (chr(code).isalnum() or chr(code) == "'") else 32 for code in range(256)
)
_INNER = re.compile(rb"[a-z0-9]+(?:'[a-z0-9]+)*")
_CLITIC = re.compile(rb"'(?:s|d|m|ll|re|ve)$", re.MULTILINE)
_APOSTROPHES = "'\u2019\u02bc\uff07"
# What makes most English texts other than ASCII; a separator each, but the first.
_TYPESET = (("\u2019", "'"), *((mark, " ") for mark in "\u2018\u201c\u201d\u2013\u2014\u2026\xa0"))
_STRAIGHT = {ord(character): "'" for character in _APOSTROPHES}


@functools.cache
def _any_word(size: int) -> re.Pattern[str]:
    """The ``word`` tokens of ``groups.tokens`` as an expression over the code points below ``size``.

    Runs of letters, marks and digits, joined by apostrophes. Takes 0.1 s to make.
    """
    runs: list[list[int]] = []
    for code in range(size):
        # The combining variation selectors apart, groups.tokens knows no word character above.
        known = code < 0x32400 or 0xE0100 <= code < 0xE01F0
        if known and unicodedata.category(chr(code))[0] in "LMN" and chr(code) not in _APOSTROPHES:
            if runs and runs[-1][1] == code - 1:
                runs[-1][1] = code
            else:
                runs.append([code, code])
    word = "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in runs) + "]+"
    return re.compile(f"{word}(?:[{_APOSTROPHES}]{word})*")


def _inner(piece: bytes) -> list[bytes]:
    """The words of a piece of ASCII without spaces that has apostrophes."""
    return [_CLITIC.sub(b"", word) for word in _INNER.findall(piece)]


def words_utf8(text: str) -> list[bytes]:
    """The words of a text: what ``evenrank.groups.tokenize`` gives, in UTF-8, about ten times as fast."""
    if not text.isascii():
        for mark, plain in _TYPESET:
            text = text.replace(mark, plain)
    if text.isascii():
        pieces = text.encode().translate(_ASCII).split()
        if "'" not in text:
            return pieces
        return [word for piece in pieces for word in (_inner(piece) if b"'" in piece else (piece,))]
    # The expression finds a character of the basic plane in a table; those above are tried range by range.
    in_table = len(text.encode("utf-16-le", "surrogatepass")) == 2 * len(text)
    size = 0x10000 if in_table else sys.maxunicode + 1
    # One a line, so that folding and clitics take one step each for all.
    lines = "\n".join(_any_word(size).findall(text)).casefold().translate(_STRAIGHT)
    return _CLITIC.sub(b"", lines.encode()).split()


def words(text: str) -> list[str]:
    """The lower-cased words of a text.

    >>> words("She, the woman's friend, don't!")
    ['she', 'the', 'woman', 'friend', "don't"]
    """
    return [word.decode() for word in words_utf8(text)]


def collection_words(collection: str | os.PathLike[str] | pl.DataFrame, *, min_count: int = 1) -> list[str]:
    """The words that stand ``min_count`` times or more in a collection (a path, or a table with ``text``), sorted.

    What ``read_vectors(…, keep=…)`` should keep: a table of 1.9 million vectors has no use for words never met.
    """
    counts: dict[bytes, int] = {}
    batches = [collection] if isinstance(collection, pl.DataFrame) else scan_collection(collection, unique=False)
    for batch in batches:
        for text in batch["text"]:
            for word in words_utf8(text):
                counts[word] = counts.get(word, 0) + 1
    return sorted(word.decode() for word, count in counts.items() if count >= min_count)


def collection_vectors(
    collection: str | os.PathLike[str] | pl.DataFrame, *, dimensions: int = 300, min_count: int = 5, seed: int = 0
) -> Vectors:
    """``train_vectors`` over the words that the rankers see."""
    return train_vectors(collection, words, dimensions=dimensions, min_count=min_count, seed=seed)


class Vocabulary:
    """Words, all different and lower-cased, and their numbers from 2 on.

    A word that no text can hold (with a space, a hyphen, …) is never met, and is allowed.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._ids = {word.encode(): number for number, word in enumerate(words, FIRST)}

    def __len__(self) -> int:
        """How many numbers there are, the two special ones among them."""
        return len(self._ids) + FIRST

    def __iter__(self) -> Iterator[str]:
        return (word.decode() for word in self._ids)

    @classmethod
    def of_vectors(cls, vectors: Vectors) -> tuple[Vocabulary, list[int]]:
        """The words of ``vectors`` as texts hold them, and the row of each.

        Lower-cased: of "paris" and "Paris" the vector of the first counts, whichever stands before the other. Entries
        that are not one word ("new_york", ",") are left out.
        """
        rows: dict[str, int] = {}
        cased: dict[str, int] = {}
        for row, entry in enumerate(vectors.words):
            found = words_utf8(entry)
            if len(found) == 1:
                word = found[0].decode()
                if word == entry:
                    rows[word] = row
                elif word == entry.casefold():
                    cased.setdefault(word, row)
        rows |= {word: row for word, row in cased.items() if word not in rows}
        return cls(rows), list(rows.values())

    def numbers(self, text: str) -> list[int]:
        """The number of each word of a text."""
        find = self._ids.get
        return [find(word, UNKNOWN) for word in words_utf8(text)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes one word a line."""
        write_text(Path(path), "".join(f"{word}\n" for word in self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """What :meth:`save` wrote. Raises InputError where the file is missing or damaged, or a word stands twice."""
        try:
            entries = Path(path).read_bytes().decode().split("\n")
        except (OSError, ValueError) as error:
            raise InputError(path, f"the vocabulary cannot be read ({error})") from None
        vocabulary = cls(entries[:-1])
        if entries[-1] or len(vocabulary) != len(entries) - 1 + FIRST:
            raise InputError(path, "the vocabulary is damaged: a word stands twice or the last line has no end")
        return vocabulary


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """Numbers [N, L] int64, L the longest row (1 at least), 0 where a row has ended."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    ids = np.zeros((len(rows), max(1, int(lengths.max(initial=0)))), np.int64)
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(lengths.sum()))
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = flat
    return torch.from_numpy(ids)
