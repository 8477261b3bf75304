"""Values that come in clusters, such as questions about one passage, which are not independent of each other."""

from __future__ import annotations

import numpy as np

from evenrank.files.types import Array


def cluster_sizes(clusters: Array) -> Array:
    """How many of n values are in each of G clusters [G], from the number of each value's cluster [n], 0 or more."""
    sizes = np.bincount(clusters)
    return sizes[sizes > 0]


def cluster_sums(values: Array, clusters: Array) -> tuple[Array, Array]:
    """Sum and size [G] of each cluster of values [n], from the number of each value's cluster [n], 0 or more."""
    sizes = np.bincount(clusters)
    return np.bincount(clusters, values)[sizes > 0], sizes[sizes > 0]


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
    """One value a cluster [G], of values [n], whose mean is theirs and whose variance is that of their mean.

    x̄ + (total − size · x̄) · G/n: the linear terms of a mean over clusters of unequal sizes. For an interval far from
    0, where totals alone would count the spread of the sizes as one of the values; too narrow where one cluster has
    most of the values.
    """
    mean = values.mean()
    deviations, _ = cluster_sums(values - mean, clusters)
    means: Array = mean + deviations * len(deviations) / len(values)
    return means
