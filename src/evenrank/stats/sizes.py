"""Which of two means is the larger without its sign, by draws of both: the resampled means of a bootstrap."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from evenrank.files.types import Array

from .estimate import Interval


class ResampledSizes:
    """|a| − |b| of two means, from ``draws`` [D, 2] of both together.

    |a| > |b| is a statement about a + b and a − b: both are above 0, or −a − b and −a + b are. So it is said where both
    lower bounds of one of these pairs are above 0 (an intersection–union test), and holds near 0 too, where the
    bootstrap of an absolute value does not.
    """

    def __init__(self, draws: Array) -> None:
        self.draws = draws

    @cached_property
    def _contrasts(self) -> Array:
        """[2, 2, 2, D]: whether a or b is the larger, by its sign: the sum and the difference."""
        a, b = self.draws.T
        pairs = ((a, b), (b, a))
        return np.array([[[sign * one + other, sign * one - other] for sign in (1, -1)] for one, other in pairs])

    def interval(self, level: float) -> Interval:
        """The two-sided interval of |a| − |b|."""
        low = np.quantile(self._contrasts, (1 - level) / 2, axis=-1).min(axis=-1).max(axis=-1)
        return float(low[0]), float(-low[1])

    @property
    def p(self) -> float:
        """The two-sided p of |a| = |b|."""
        return min(1.0, 2 * float((self._contrasts <= 0).mean(axis=-1).max(axis=-1).min()))
