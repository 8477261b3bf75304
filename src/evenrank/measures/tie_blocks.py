"""Blocks of tied documents that contain hits, for expectations over the orders of tied documents."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.io.types import Array

from .hits import Hits, number_within, starts_within


@dataclass(frozen=True)
class TieBlocks:
    """The tie blocks [B] that contain hits: query, documents before, size, hits within and hits before.

    ``first`` [B]: the place of each block's first hit among the hits.
    """

    query: Array
    before: Array
    size: Array
    hits: Array
    hits_before: Array
    first: Array

    @classmethod
    def of(cls, hits: Hits) -> TieBlocks:
        """The blocks of hits sorted by query and rank."""
        starts = starts_within(hits.query, hits.before) if len(hits.query) else np.zeros(0, dtype=np.int64)
        count = np.diff(np.append(starts, len(hits.query)))
        earlier = number_within(hits.query)[starts] if len(starts) else starts
        return cls(hits.query[starts], hits.before[starts], hits.size[starts], count, earlier, starts)


def reach(before: Array, size: Array, cutoff: int | None) -> Array:
    """How many documents of each tie block are within the cutoff."""
    return size if cutoff is None else np.clip(cutoff - before, 0, size)


def chance_of_none(size: Array, count: Array, drawn: Array) -> Array:
    """The chance that ``drawn`` of ``size`` documents include none of ``count`` marked ones."""
    rest = size - drawn
    possible = rest >= count
    safe = np.where(possible, rest, count)
    return np.where(possible, np.exp(ln_choose(safe, count) - ln_choose(size, count)), 0.0)


def ln_choose(n: Array, k: Array) -> Array:
    """ln of the binomial coefficient n over k."""
    # A table of ln n! is enough for lists of documents, and spares importing scipy.
    factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, int(np.max(n, initial=0)) + 1)))))
    result: Array = factorial[n] - factorial[k] - factorial[n - k]
    return result
