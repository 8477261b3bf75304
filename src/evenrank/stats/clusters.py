"""Values that come in clusters, such as questions about one passage, which are not independent of each other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from evenrank.files.types import Array

ZERO = 1e-12
"""A value of this size is 0 but for rounding."""


@dataclass(frozen=True, slots=True)
class ClusterSums:
    """Values by cluster: all that their mean, its standard error and its tests depend on.

    Attributes:
        sizes: The number of values of each cluster [G]; 1 where each value is its own.
        totals: Their sum [G].
        nonzero: How many of them are not 0 [G].
        least, most: The smallest and the largest of these; NaN where there is none.
    """

    sizes: Array
    totals: Array
    nonzero: Array
    least: float
    most: float

    @classmethod
    def of(cls, values: Array, clusters: Array | None = None) -> ClusterSums:
        """The sums of values [n] by the number of each one's cluster [n]; None: each is its own. NaN is left out.

        >>> ClusterSums.of(np.array([1.0, 0.0, 3.0, 6.0]), np.array([0, 0, 1, 1])).totals.tolist()
        [1.0, 9.0]
        """
        known = ~np.isnan(values)
        own = values[known]
        nonzero, ones = np.abs(own) > ZERO, np.ones(len(own))
        ends = (own[nonzero].min(), own[nonzero].max()) if nonzero.any() else (np.nan, np.nan)
        sums = cls(ones, own, ones * nonzero, *map(float, ends))
        return sums if clusters is None else sums.merged(clusters[known])

    def merged(self, clusters: Array) -> ClusterSums:
        """The sums of clusters of these clusters, each in that of its number [G], 0 or more."""
        sizes, totals, nonzero = (np.bincount(clusters, of) for of in (self.sizes, self.totals, self.nonzero))
        there = sizes > 0
        return replace(self, sizes=sizes[there], totals=totals[there], nonzero=nonzero[there])

    @property
    def n(self) -> int:
        """Number of values."""
        return int(self.sizes.sum())

    @property
    def mean(self) -> float:
        """The mean of one or more values."""
        return float(self.totals.sum()) / self.n

    @property
    def clustered(self) -> bool:
        """Whether values share a cluster."""
        return len(self.sizes) < self.n

    def reach(self, value: float) -> float:
        """How far the furthest of the values is from ``value``."""
        ends = [self.least, self.most, *([0.0] if self.nonzero.sum() < self.n else [])]
        return float(np.nanmax(np.abs(np.array(ends) - value)))

    def without_zeros(self) -> ClusterSums:
        """The sums of the values that are not 0."""
        left = self.nonzero > 0
        return replace(self, sizes=self.nonzero[left], totals=self.totals[left], nonzero=self.nonzero[left])

    def with_value(self, value: float) -> ClusterSums:
        """The sums with a cluster more of equal values, of the usual size Σn_c²/n."""
        size = max(1, round(float(self.sizes @ self.sizes) / self.n))
        return ClusterSums(
            np.append(self.sizes, size),
            np.append(self.totals, size * value),
            np.append(self.nonzero, size),
            min(self.least, value),
            max(self.most, value),
        )


def cluster_sizes(clusters: Array) -> Array:
    """How many of n values are in each of G clusters [G], from the number of each value's cluster [n], 0 or more."""
    sizes = np.bincount(clusters)
    return sizes[sizes > 0]


def effective_clusters(sizes: Array) -> float:
    """The number of clusters of equal size that clusters of ``sizes`` [G] are worth: n²/Σn_c².

    >>> effective_clusters(np.array([2, 2, 2])), effective_clusters(np.array([4, 1, 1]))
    (3.0, 2.0)
    """
    return float(sizes.sum() ** 2 / (sizes.astype(np.float64) ** 2).sum())


def cluster_means(values: Array, clusters: Array) -> Array:
    """The mean of each cluster [G, …] of values [n, …], in the order of the clusters' names: each counts as one."""
    _, index, sizes = np.unique(clusters, return_inverse=True, return_counts=True)
    order = np.argsort(index, kind="stable")
    starts = np.cumsum(sizes) - sizes
    shape = (-1, *[1] * (values.ndim - 1))
    means: Array = np.add.reduceat(values[order], starts, axis=0) / sizes.reshape(shape)
    return means


def linearized_means(values: Array, clusters: Array) -> Array:
    """Linearised cluster values [G] of values [n]: same mean, and the variance of that mean.

    x̄ + (total − size · x̄) · G/n: the linear terms of a mean over clusters of unequal sizes. For an interval far from
    0, where totals alone would count the spread of the sizes as one of the values; too narrow where one cluster has
    most of the values.
    """
    mean = values.mean()
    deviations = ClusterSums.of(values - mean, clusters).totals
    means: Array = mean + deviations * len(deviations) / len(values)
    return means
