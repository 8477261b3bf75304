"""Least squares whose rows share units of two kinds, such as queries and passages: two-way clustered errors.

[CGM11] Cameron, Gelbach & Miller (2011). Robust inference with multiway clustering. JBES 29(2).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from evenrank.files.types import EQUAL, Array
from evenrank.stats.clusters import effective_clusters
from evenrank.stats.estimate import MeanEstimate


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """What leaving out each cluster [G] does to the coefficients [K], as a jackknife.

    Attributes:
        shifts: Coefficients without the cluster less those of all rows [G, K].
        sizes: The rows of each cluster that count [G]; ``part``: the independent sample that it is of [G].
    """

    shifts: Array
    sizes: Array
    part: Array

    def parts(self, weights: Array) -> Iterator[tuple[Array, float]]:
        """The shifts of Σ weight × coefficient in each part, and its effective number of clusters."""
        shifts = self.shifts @ weights
        for part in np.unique(self.part):
            inside = self.part == part
            sizes = self.sizes[inside]
            yield shifts[inside], effective_clusters(sizes) if sizes.any() else 0.0

    def variance(self, weights: Array) -> float:
        """Σ shift²: G/(G − 1) times the usual one, without which 20 skewed values say too much (.062 for .05)."""
        return sum(float(s @ s) for s, _ in self.parts(weights))

    def df(self, weights: Array) -> float:
        """Welch and Satterthwaite's, from effective numbers of clusters; 1 or more."""
        own = [(float(s @ s), max(number - 1, 1.0)) for s, number in self.parts(weights)]
        squares = sum(variance**2 / df for variance, df in own)
        return max(sum(variance for variance, _ in own) ** 2 / squares, 1.0) if squares else 1.0

    def skewness(self, weights: Array) -> float:
        """The skewness of the estimate, with its factor 1 + 6/G for few clusters."""
        parts = list(self.parts(weights))
        third = sum((1 + 6 / max(number, 1.0)) * float((s**3).sum()) for s, number in parts)
        plain = sum(float(s @ s) for s, _ in parts)
        return -third / plain**1.5 if plain else 0.0


@dataclass(frozen=True, slots=True)
class Clustered:
    """Coefficients of least squares whose rows share units of two kinds, such as queries and passages.

    Attributes:
        coefficients: Of all rows [K].
        first, second, both: What leaving out each unit of a kind does, and each pair of units.
    """

    coefficients: Array
    first: _LeftOut
    second: _LeftOut
    both: _LeftOut

    def mean(self, weights: Array, value: float | None = None) -> MeanEstimate:
        """Σ weight [K] × coefficient, or the ``value`` of which the ``weights`` are the derivatives (delta method).

        Its variance is the largest of that by the first units, that by the second, and V₁ + V₂ − V₁₂ [Cameron, Gelbach
        & Miller, JBES 2011, eq. 2.8]. Degrees of freedom are those of the second units where their variance is the
        largest, else the fewer of the two.
        """
        value = float(self.coefficients @ weights) if value is None else value
        first, second, both = (side.variance(weights) for side in (self.first, self.second, self.both))
        variance = max(first, second, first + second - both)
        if variance <= EQUAL**2:
            # Sums that are all 0 do not show values that are all equal; what is below EQUAL is rounding.
            variance = both if both > EQUAL**2 else 0.0
        if not variance:
            return MeanEstimate(value, 0.0, float(min(len(self.first.sizes), len(self.second.sizes)) - 1))
        df = self.second.df(weights)
        if variance > second:
            df = min(df, self.first.df(weights))
        side = self.first if first > second else self.second
        return MeanEstimate(value, math.sqrt(variance), df, side.skewness(weights))


def clustered(
    values: Array,
    first: Array,
    second: Array,
    columns: Array | None = None,
    *,
    instruments: Array | None = None,
    part: Array | None = None,
    counted: Array | None = None,
) -> Clustered:
    """Least squares of values [N] on ``columns`` [N, K] (None: their mean), with what units shared by rows do to it.

    ``first``, ``second`` [N]: the units of a row, as whole numbers from 0: its query and its passage. ``instruments``
    [N, K]: what the coefficients are learnt from (None: the columns), so that Σ instrument × residual is 0 for each.
    ``part`` [N]: of which independent sample a row's second unit is (None: all of one). ``counted`` [N]: the rows that
    make clusters count for the degrees of freedom (None: all). Each unit is left out in turn and the rest fitted anew,
    as unequal clusters make the usual formula reject up to half of all true null hypotheses.

    Worked example: the values of two queries and two passages are 1, 2, 3, 6, their mean 3. Without either query the
    mean is 4.5 or 1.5, so V = 2 · 1.5² = 4.5; without either passage 4 or 2, so V = 2; without a pair 11/3, 10/3, 3 or
    2, so V = 4/9 + 1/9 + 0 + 1 = 14/9. The largest of 4.5, 2 and 4.5 + 2 − 14/9 is 89/18.

    >>> found = clustered(np.array([1.0, 2.0, 3.0, 6.0]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]))
    >>> one = found.mean(np.ones(1))
    >>> one.value, round(18 * one.se**2, 6)
    (3.0, 89.0)
    """
    columns = np.ones((len(values), 1)) if columns is None else columns
    learnt_from = columns if instruments is None else instruments
    moments = learnt_from[:, :, None] * columns[:, None, :], learnt_from * values[:, None]
    sums = [moment.sum(axis=0) for moment in moments]
    coefficients = _solved(*sums)
    alone = np.zeros(len(values), np.int64)
    counted = np.ones(len(values), bool) if counted is None else counted

    def side(units: Array, parts: Array) -> _LeftOut:
        _, index = np.unique(units, return_inverse=True)
        size = int(index.max()) + 1
        own = [_totals(moment, index, size) for moment in moments]
        left = _solved(*(total - of for total, of in zip(sums, own, strict=True)))
        part_of = np.zeros(size, np.int64)
        part_of[index] = parts
        return _LeftOut(left - coefficients, np.bincount(index, counted, size), part_of)

    parts = alone if part is None else part
    by_second, pairs = side(second, parts), first * (int(second.max()) + 1) + second
    number = len(np.unique(pairs))
    both = by_second if number == len(by_second.sizes) else side(pairs, parts)
    # Where every query has passages of its own, one each, the sides are the same.
    by_first = by_second if number == len(np.unique(first)) == len(by_second.sizes) else side(first, alone)
    return Clustered(coefficients, by_first, by_second, both)


def _solved(squares: Array, products: Array) -> Array:
    """The coefficients [..., K] of normal equations [..., K, K] and [..., K]; those of least size where many fit."""
    sizes = np.sqrt(np.abs(np.diagonal(squares, axis1=-2, axis2=-1)))
    scale = np.where(sizes > 0, sizes, 1.0)
    scaled = squares / (scale[..., :, None] * scale[..., None, :])
    regular = np.abs(np.linalg.det(scaled)) > EQUAL
    # Solving is ten times as fast.
    safe = np.where(regular[..., None, None], scaled, np.eye(squares.shape[-1]))
    right = products / scale
    solution = np.linalg.solve(safe, right[..., None])[..., 0]
    if not regular.all():
        least = (np.linalg.pinv(scaled, rcond=EQUAL) @ right[..., None])[..., 0]
        solution = np.where(regular[..., None], solution, least)
    coefficients: Array = solution / scale
    return coefficients


def _totals(values: Array, index: Array, size: int) -> Array:
    """The sums [size, …] of values [N, …] by index [N]."""
    flat = values.reshape(len(values), -1)
    sums = np.stack([np.bincount(index, column, size) for column in flat.T], axis=1)
    return sums.reshape(size, *values.shape[1:])
