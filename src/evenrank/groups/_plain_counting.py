"""The counting loop in plain Python, for texts so few that the compiled one takes longer to load than to count."""

from __future__ import annotations

import math

import numpy as np
import polars as pl

from evenrank.files import provenance
from evenrank.files.tokens import Tokens, tokenize
from evenrank.files.types import Array

from .lexicon import Lexicon, entries_by_first, find_entries

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


def count_entries(
    texts: pl.Series, lexicon: Lexicon, tokens: Tokens, by_entry: bool
) -> tuple[Array, Array, Array, Array, Array]:
    """What the compiled :func:`evenrank.groups._counting.count_entries` returns, to the last bit."""
    # What the compiled loop loads.
    provenance.spared.update(("numba", "pyarrow", "scipy"))
    entries, groups = entries_by_first(lexicon, tokens), range(len(lexicon.groups))
    total, count, tf_words, tf_literal = [], [], [], []
    triples: list[tuple[int, int, int]] = []
    for row, text in enumerate(texts.to_list()):
        words = tokenize(text or "", tokens)
        total.append(len(words))
        # In the order in which they are met: sums of logarithms depend on it.
        seen: dict[tuple[int, int], int] = {}
        for _, _, number, group in find_entries(words, entries):
            seen[number, group] = seen.get((number, group), 0) + 1
        counts, logs, literal = [0 for _ in groups], [0.0 for _ in groups], [0.0 for _ in groups]
        for (number, group), times in seen.items():
            counts[group] += times
            logs[group] += math.log(1.0 + times)
            literal[group] += math.log(times)
            if by_entry:
                triples.append((row, number, times))
        count.append(counts)
        tf_words.append(logs)
        tf_literal.append(literal)
    shape = len(total), len(groups)
    return (
        np.array(total, np.int32),
        np.array(count, np.int32).reshape(shape),
        np.array(tf_words, np.float64).reshape(shape),
        np.array(tf_literal, np.float64).reshape(shape),
        np.array(triples, np.int32).reshape(-1, 3),
    )
