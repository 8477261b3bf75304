"""The counting loop in plain Python, for texts so few that the compiled one takes longer to load than to count."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import polars as pl

from evenrank.files import provenance
from evenrank.files.tokens import Tokens, tokenize
from evenrank.files.types import Array

from .lexicon import Lexicon

_ROOM = 1 << 23
"""Bytes of text that take about as long to count here as the compiler and its kernel take to load."""


class Room:
    """How much may still be counted here in this process; a little at a time soon adds up to much."""

    left = _ROOM

    @classmethod
    def has(cls, texts: pl.Series) -> bool:
        """Whether there is room for these texts, which then take it."""
        if cls.left < 0:
            return False
        size = int(texts.str.len_bytes().sum())
        if size > cls.left:
            return False
        cls.left -= size
        return True


Entries = dict[str, list[tuple[tuple[str, ...], int, int]]]
"""By its first token, each entry with its number and its group's: longest first."""


@lru_cache(maxsize=8)
def _entries(lexicon: Lexicon, tokens: Tokens) -> Entries:
    by_first: Entries = {}
    for number, (key, group) in enumerate(lexicon.entries(tokens).items()):
        by_first.setdefault(key[0], []).append((key, number, lexicon.groups.index(group)))
    for found in by_first.values():
        found.sort(key=lambda entry: -len(entry[0]))
    return by_first


def count_entries(
    texts: pl.Series, lexicon: Lexicon, tokens: Tokens, by_entry: bool
) -> tuple[Array, Array, Array, Array, Array]:
    """What the compiled :func:`evenrank.groups._counting.count_entries` returns, to the last bit."""
    # What the compiled loop loads.
    provenance.spared.update(("numba", "pyarrow", "scipy"))
    entries, groups = _entries(lexicon, tokens), range(len(lexicon.groups))
    total, count, tf_words, tf_literal = [], [], [], []
    kept: list[tuple[int, int, int]] = []
    for row, text in enumerate(texts.to_list()):
        words = tokenize(text or "", tokens)
        total.append(len(words))
        # In the order in which they are met: sums of logarithms depend on it.
        seen = _matches(words, entries)
        counts, logs, literal = [0 for _ in groups], [0.0 for _ in groups], [0.0 for _ in groups]
        for (number, group), times in seen.items():
            counts[group] += times
            logs[group] += math.log(1.0 + times)
            literal[group] += math.log(times)
            if by_entry:
                kept.append((row, number, times))
        count.append(counts)
        tf_words.append(logs)
        tf_literal.append(literal)
    shape = len(total), len(groups)
    return (
        np.array(total, np.int32),
        np.array(count, np.int32).reshape(shape),
        np.array(tf_words, np.float64).reshape(shape),
        np.array(tf_literal, np.float64).reshape(shape),
        np.array(kept, np.int32).reshape(-1, 3),
    )


def _matches(words: list[str], entries: Entries) -> dict[tuple[int, int], int]:
    """How often each entry, its number and its group's, is met from left to right, without overlap."""
    seen: dict[tuple[int, int], int] = {}
    end = 0
    for place, word in enumerate(words):
        if word not in entries or place < end:
            continue
        for key, number, group in entries[word]:
            if len(key) == 1 or tuple(words[place : place + len(key)]) == key:
                seen[number, group] = seen.get((number, group), 0) + 1
                end = place + len(key)
                break
    return seen
