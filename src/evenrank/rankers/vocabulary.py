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

from evenrank.embeddings import Vectors, read_vectors, train_vectors
from evenrank.groups.tokens import APOSTROPHES, CLITICS
from evenrank.io import InputError, as_collection, scan_collection, write_text

# 0 is padding.
UNKNOWN, FIRST = 1, 2

# ASCII letters in lower case, digits and apostrophes as they are, everything else a space.
_ASCII = bytes(
    ord(chr(code).lower()) if code < 128 and (chr(code).isalnum() or chr(code) == "'") else 32 for code in range(256)
)
_INNER = re.compile(rb"[a-z0-9]+(?:'[a-z0-9]+)*")
_CLITIC = re.compile(f"'(?:{'|'.join(CLITICS)})$".encode(), re.MULTILINE)
# The usual typographic marks of English texts; all but the first separate words.
_TYPESET = (("\u2019", "'"), *((mark, " ") for mark in "\u2018\u201c\u201d\u2013\u2014\u2026\xa0"))
_STRAIGHT = {ord(character): "'" for character in APOSTROPHES}


@functools.cache
def _any_word(size: int) -> re.Pattern[str]:
    """The ``word`` tokens of ``groups.tokens`` as an expression over the code points below ``size``.

    Runs of letters, marks and digits, joined by apostrophes. Takes 0.1 s to make.
    """
    runs: list[list[int]] = []
    for code in range(size):
        # The combining variation selectors apart, groups.tokens knows no word character above.
        known = code < 0x32400 or 0xE0100 <= code < 0xE01F0
        if known and unicodedata.category(chr(code))[0] in "LMN" and chr(code) not in APOSTROPHES:
            if runs and runs[-1][1] == code - 1:
                runs[-1][1] = code
            else:
                runs.append([code, code])
    word = "[" + "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in runs) + "]+"
    return re.compile(f"{word}(?:[{APOSTROPHES}]{word})*")


def _inner(piece: bytes) -> list[bytes]:
    """The words of a piece of ASCII without spaces that has apostrophes."""
    return [_CLITIC.sub(b"", word) for word in _INNER.findall(piece)]


def words_utf8(text: str) -> list[bytes]:
    """The words of a text as ``evenrank.groups.tokenize`` returns them, in UTF-8, about ten times as fast."""
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
    # One per line, to fold case and strip clitics in one step each.
    lines = "\n".join(_any_word(size).findall(text)).casefold().translate(_STRAIGHT)
    return _CLITIC.sub(b"", lines.encode()).split()


def words(text: str) -> list[str]:
    """The lower-cased words of a text.

    >>> words("She, the woman's friend, don't!")
    ['she', 'the', 'woman', 'friend', "don't"]
    """
    return [word.decode() for word in words_utf8(text)]


def collection_words(collection: str | os.PathLike[str] | pl.DataFrame, *, min_count: int = 1) -> list[str]:
    """The words with at least ``min_count`` occurrences in a collection (a path, or a table with ``text``), sorted.

    For ``read_vectors(…, keep=…)``, which then skips the vectors of all other words.
    """
    counts: dict[bytes, int] = {}
    batches = [collection] if isinstance(collection, pl.DataFrame) else scan_collection(collection, unique=False)
    for batch in batches:
        for text in batch["text"]:
            for word in words_utf8(text):
                counts[word] = counts.get(word, 0) + 1
    return sorted(word.decode() for word, count in counts.items() if count >= min_count)


def collection_vectors(collection: object, *, dimensions: int = 300, min_count: int = 5, seed: int = 0) -> Vectors:
    """``train_vectors`` over the words as the rankers tokenise them.

    ``collection``: a path, ``{id: text}``, a frame or records. Raises EvenrankError for anything else.
    """
    return train_vectors(as_collection(collection), words, dimensions=dimensions, min_count=min_count, seed=seed)


def file_vectors(path: str | os.PathLike[str], *texts: str | os.PathLike[str] | pl.DataFrame) -> Vectors:
    """The vectors in a file of the words of some collections; a public file has millions of others."""
    return read_vectors(path, keep=set().union(*map(collection_words, texts)))


class Vocabulary:
    """Distinct lower-cased words and their numbers, from 2.

    Entries that are no words of texts (with a space, a hyphen, …) are allowed, but never found.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._ids = {word.encode(): number for number, word in enumerate(words, FIRST)}

    def __len__(self) -> int:
        """The number of words plus the two special numbers."""
        return len(self._ids) + FIRST

    def __iter__(self) -> Iterator[str]:
        return (word.decode() for word in self._ids)

    @classmethod
    def of_vectors(cls, vectors: Vectors) -> tuple[Vocabulary, list[int]]:
        """The words of ``vectors`` as they are tokenised in texts, and the row of each.

        Lower-cased: "paris" takes precedence over "Paris", whatever their order. Entries that are not one word
        ("new_york", ",") are left out.
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
        """Writes one word per line."""
        write_text(Path(path), "".join(f"{word}\n" for word in self))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Vocabulary:
        """Reads a file of :meth:`save`. Raises InputError if it is missing or damaged, or repeats a word."""
        try:
            entries = Path(path).read_bytes().decode().split("\n")
        except (OSError, ValueError) as error:
            raise InputError(path, f"the vocabulary cannot be read ({error})") from None
        vocabulary = cls(entries[:-1])
        if entries[-1] or len(vocabulary) != len(entries) - 1 + FIRST:
            raise InputError(path, "the vocabulary is damaged: a word is repeated or the last line is incomplete")
        return vocabulary


def padded(rows: Sequence[Sequence[int]]) -> Tensor:
    """Numbers [N, L] int64, padded with 0 to the longest row L (at least 1)."""
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    ids = np.zeros((len(rows), max(1, int(lengths.max(initial=0)))), np.int64)
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64, int(lengths.sum()))
    ids[np.arange(ids.shape[1]) < lengths[:, None]] = flat
    return torch.from_numpy(ids)
