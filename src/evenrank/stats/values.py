"""The values of queries together with what ties their errors to each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from evenrank.files.types import Array

from .bounds import MARGIN, MeanBound, no_loss
from .clusters import ClusterSums
from .compare import Comparison, Zeros, compare, compare_to_random_order
from .estimate import Estimate, defined, estimate
from .sampling import LabelSample


@dataclass(frozen=True, slots=True)
class QueryValues:
    """A value for each query, with what makes the errors of their mean depend on each other.

    Attributes:
        values: Array [Q]; NaN where a query has no value.
        clusters: The cluster [Q] of each query, as whole numbers; None where queries are independent.
        label_sample: What the values owe to labels that were drawn; None of others.
        sums: The sums by cluster, where single values are not known; ``values`` are then the means of groups of them.
        beyond: Of such values, their differences from the expectation over random orders, which cannot be made of the
            sums of both: :meth:`minus` returns them, as sums are compared with nothing else.
    """

    values: Array = field(repr=False)
    clusters: Array | None = field(default=None, repr=False)
    label_sample: LabelSample | None = field(default=None, repr=False)
    sums: ClusterSums | None = field(default=None, repr=False)
    beyond: QueryValues | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """Number of queries with a value."""
        return len(defined(self.values)) if self.sums is None else self.sums.n

    @property
    def _sample(self) -> Array | ClusterSums:
        return self.values if self.sums is None else self.sums

    @property
    def mean(self) -> float | None:
        """The mean over the queries with a value; None without one."""
        if self.sums is not None:
            return self.sums.mean
        return float(np.nanmean(self.values)) if self.n else None

    def minus(self, other: QueryValues) -> QueryValues:
        """The differences, where both have a value."""
        if self.beyond is not None:
            return self.beyond
        own, others = self.label_sample, other.label_sample
        sample = own if own is None or others is None else own.plus(others, -1.0)
        return replace(self, values=self.values - other.values, label_sample=sample)

    def on(self, queries: Array) -> QueryValues:
        """The same with values on the ``queries`` [Q] alone that are True."""
        return self if queries.all() else replace(self, values=np.where(queries, self.values, np.nan))

    def equals(self, other: QueryValues) -> bool:
        """Whether all values are the same."""
        return bool(np.array_equal(self.values, other.values, equal_nan=True))

    def estimate(self) -> Estimate:
        """The mean with its 95% interval (:func:`evenrank.stats.estimate.estimate`)."""
        return estimate(self._sample, clusters=self.clusters, sample=self.label_sample)

    def compare(self, zeros: Zeros = "drop", reach: float | None = None) -> Comparison:
        """Whether the mean differs from 0 (:func:`evenrank.stats.compare.compare`)."""
        return compare(self._sample, zeros=zeros, clusters=self.clusters, sample=self.label_sample, reach=reach)

    def compare_to_random_order(self, variances: Array, reach: float | None = None) -> Comparison:
        """Whether orders add something (:func:`evenrank.stats.compare.compare_to_random_order`)."""
        return compare_to_random_order(
            self._sample, variances, clusters=self.clusters, sample=self.label_sample, reach=reach
        )

    def no_loss(self, baseline: QueryValues, greatest: float | None, margin: float = MARGIN) -> MeanBound | None:
        """Whether no more than a share of the baseline's mean is lost (:func:`evenrank.stats.bounds.no_loss`)."""
        return no_loss(self.values, baseline.values, greatest=greatest, margin=margin, clusters=self.clusters)
