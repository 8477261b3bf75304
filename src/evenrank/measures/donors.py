"""The known documents that unknown ones take their labels from, in sets, and their weights in a draw."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from evenrank.io.types import Array

_MOST_WEIGHED = 200_000
_LARGE = 200.0
_PRIOR = 2.0


@functools.cache
def _power_table() -> tuple[Array, Array]:
    """Sizes n of sets and the power c for which E^c, with E exponential, has the variance n/(n − 3) for mean 1."""
    powers = np.linspace(1.0, 2.0, 201)
    spread = np.array([math.gamma(1 + 2 * c) / math.gamma(1 + c) ** 2 - 1 for c in powers.tolist()])
    sizes = np.geomspace(4.0, _LARGE, 200)
    return sizes, np.interp(sizes / (sizes - 3), spread, powers)


@dataclass(frozen=True, slots=True)
class Places:
    """Places of the lists [...] that are looked at.

    ``label`` [...]: the number of each known document's label; ``unknown``: the others by stratum, each with where they
    are among the flattened places, their set, and their hash.
    """

    label: Array
    unknown: list[tuple[int, Array, Array, Array]]


@dataclass(frozen=True)
class Donors:
    """The known documents of one stratum, in sets: number 0 of all queries, others of one rank or of one query.

    ``set_of`` [Q]: a query's own set, 0 without one; ``set_at`` [R]: that of each of the stratum's ranks, 0 without
    one; ``unknown`` [Q]: how many of the query's documents are unknown here.
    ``starts`` [S + 1]: where each set's labels start in ``label`` [E], a number of a label, rising within a set.
    ``document`` [M]: the group table's row of every donor, ``entry`` [M]: its place in ``label``, ``nearness`` [M]: how
    much it counts.
    """

    set_of: Array
    set_at: Array
    unknown: Array
    starts: Array
    label: Array
    document: Array
    entry: Array
    nearness: Array

    def set_for(self, query: Array, rank: Array) -> Array:
        """The set [N] that documents of these queries [N] and ranks [N], from 0 within the stratum, draw from."""
        own = self.set_of[query]
        return np.where(own > 0, own, self.set_at[rank])

    @functools.cached_property
    def of_set(self) -> Array:
        """The set [M] of each donor."""
        return np.repeat(np.arange(len(self.starts) - 1), np.diff(self.starts))[self.entry]

    @functools.cached_property
    def pooled(self) -> Array:
        """The share [S] of each query's draws that comes from all queries, as if two documents more were its own."""
        size = np.bincount(self.of_set, minlength=len(self.starts) - 1)
        own = np.arange(len(size)) > int(self.set_at.max(initial=0))
        return np.where(own, _PRIOR / (size + _PRIOR), 0.0)

    @functools.cached_property
    def powers(self) -> Array | None:
        """The power [M] of each donor's weight with which small sets vary as samples of their size; None without any.

        The variance of a set's mean should be s²/(n − 2), that of the jackknife, which gamma weights of shape (n − 3)/n
        give.
        """
        if self.sizes.min(initial=np.inf) > _LARGE:
            return None
        powers: Array = np.interp(self.sizes, *_power_table())[self.of_set]
        return powers

    @functools.cached_property
    def sizes(self) -> Array:
        """The number [S] of each set's documents, each counted by how much it weighs: (Σ c)² / Σ c²."""
        most = int(self.document.max(initial=0)) + 1
        pairs, pair = np.unique(self.of_set * most + self.document, return_inverse=True)
        counts, count = np.bincount(pair, self.nearness), len(self.starts) - 1
        total = np.bincount(pairs // most, counts, minlength=count)
        squares = np.bincount(pairs // most, counts**2, minlength=count)
        sizes: Array = np.divide(total**2, squares, out=np.ones(count), where=total > 0)
        return sizes

    @property
    def weighed(self) -> bool:
        """Whether draws weigh the donors anew; so many do not vary."""
        return len(self.document) <= _MOST_WEIGHED

    def shares(self, weights: Array | None) -> Array:
        """Each label's share [E] of its set, donors weighted by ``weights`` [D] of the group table's rows."""
        own = self.nearness
        if weights is not None:
            drawn = weights[self.document]
            own = own * (drawn if self.powers is None else drawn**self.powers)
        total = np.bincount(self.entry, own, minlength=len(self.label)).astype(np.float64)
        shares: Array = total / np.repeat(np.add.reduceat(total, self.starts[:-1]), np.diff(self.starts))
        return shares
