"""The words of texts as numbers, as the rankers over word vectors read them."""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor

from evenrank.files import InputError, as_collection, scan_collection, write_text
from evenrank.files.tokens import tokenize

from .vectors import Vectors, read_vectors, train_vectors

# 0 is padding.
UNKNOWN, FIRST = 1, 2


def collection_words(collection: str | os.PathLike[str] | pl.DataFrame, *, min_count: int = 1) -> list[str]:
    """The words with at least ``min_count`` occurrences in a collection (a path, or a table with ``text``), sorted.

    For ``read_vectors(…, keep=…)``, which then skips the vectors of all other words.
    """
    counts: Counter[str] = Counter()
    batches = [collection] if isinstance(collection, pl.DataFrame) else scan_collection(collection, unique=False)
    for batch in batches:
        for text in batch["text"]:
            counts.update(tokenize(text))
    return sorted(word for word, count in counts.items() if count >= min_count)


def collection_vectors(collection: object, *, dimensions: int = 300, min_count: int = 5, seed: int = 0) -> Vectors:
    """``train_vectors`` over the words as the rankers tokenise them.

    ``collection``: a path, ``{id: text}``, a frame or records. Raises EvenrankError for anything else.
    """
    return train_vectors(as_collection(collection), dimensions=dimensions, min_count=min_count, seed=seed)


def file_vectors(path: str | os.PathLike[str], *texts: str | os.PathLike[str] | pl.DataFrame) -> Vectors:
    """The vectors in a file of the words of some collections; a public file has millions of others."""
    return read_vectors(path, keep=set().union(*map(collection_words, texts)))


class Vocabulary:
    """Distinct lower-cased words and their numbers, from 2.

    Entries that are no words of texts (with a space, a hyphen, …) are allowed, but never found.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self._ids = {word: number for number, word in enumerate(words, FIRST)}

    def __len__(self) -> int:
        """The number of words plus the two special numbers."""
        return len(self._ids) + FIRST

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    @classmethod
    def of_vectors(cls, vectors: Vectors) -> tuple[Vocabulary, list[int]]:
        """The words of ``vectors`` as they are tokenised in texts, and the row of each.

        Lower-cased: "paris" takes precedence over "Paris", whatever their order. Entries that are not one word
        ("new_york", ",") are left out.
        """
        rows: dict[str, int] = {}
        cased: dict[str, int] = {}
        for row, entry in enumerate(vectors.words):
            tokens = tokenize(entry)
            if len(tokens) == 1:
                word = tokens[0]
                if word == entry:
                    rows[word] = row
                elif word == entry.casefold():
                    cased.setdefault(word, row)
        rows |= {word: row for word, row in cased.items() if word not in rows}
        return cls(rows), list(rows.values())

    def numbers(self, text: str) -> list[int]:
        """The number of each word of a text."""
        find = self._ids.get
        return [find(word, UNKNOWN) for word in tokenize(text)]

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
