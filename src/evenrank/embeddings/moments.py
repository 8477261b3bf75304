"""Means of groups and the covariance of all rows, added up in blocks: what LEACE is fitted from."""

from __future__ import annotations

import numpy as np

from evenrank.io.types import Array

from ._rows import Doubles, Integers

BLOCK = 4096
"""Rows in float64 at once."""


class GroupMeans:
    """The number of rows of each of G groups, ``counts`` [G], and their ``means`` [G, D], in float64."""

    def __init__(self, groups: int, dimensions: int) -> None:
        self.counts: Integers = np.zeros(groups, np.int64)
        self.means: Doubles = np.zeros((groups, dimensions))

    def add(self, rows: Array, groups: Integers) -> None:
        """Adds a block of rows [N, D] of these groups [N], from 0 to G − 1."""
        found = np.asarray(rows, dtype=np.float64)
        for group in np.unique(groups).tolist():
            own = found[groups == group]
            self.counts[group] += len(own)
            self.means[group] += (own.mean(axis=0) - self.means[group]) * (len(own) / self.counts[group])

    @property
    def mean(self) -> Doubles:
        """The mean of all rows [D]."""
        found: Doubles = self.counts @ self.means / self.counts.sum()
        return found

    def gap(self, groups: int | None = None) -> float:
        """The largest distance between the means of two of the first ``groups`` (None: all) with rows; 0 of one."""
        means = self.means[:groups][self.counts[:groups] > 0]
        return max((float(np.linalg.norm(a - b)) for a in means for b in means), default=0.0)


class Moments(GroupMeans):
    """The same, with the covariance of all rows.

    Blocks are merged as in Chan, Golub & LeVeque 1983, "Algorithms for computing the sample variance", eq. 2.1: sums
    of squares about the means, so that no digits are lost where the mean is large.
    """

    def __init__(self, groups: int, dimensions: int) -> None:
        super().__init__(groups, dimensions)
        self._scatter: Doubles = np.zeros((dimensions, dimensions))

    def add(self, rows: Array, groups: Integers) -> None:
        """See :meth:`GroupMeans.add`."""
        found = np.asarray(rows, dtype=np.float64)
        if not len(found):
            return
        before, own = int(self.counts.sum()), found.mean(axis=0)
        centred = found - own
        self._scatter += centred.T @ centred
        if before:
            apart = own - self.mean
            self._scatter += np.outer(apart, apart) * (before * len(found) / (before + len(found)))
        super().add(found, groups)

    @property
    def covariance(self) -> Doubles:
        """The covariance of all rows [D, D], divided by their number."""
        found: Doubles = self._scatter / self.counts.sum()
        return found

    @property
    def cross(self) -> Doubles:
        """The covariance of the rows with one column per group, 1 for its own rows, else 0 [D, G]."""
        shares = self.counts / self.counts.sum()
        found: Doubles = (shares[:, None] * (self.means - self.mean)).T
        return found
