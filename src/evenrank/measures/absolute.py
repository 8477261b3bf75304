"""Figures that are the absolute value of a signed one, over all queries together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evenrank.io.types import Array

from .base import BiasMeasure, TieFigures
from .by_relevance import relevance_first
from .joined import JoinedRun


class AbsoluteFigure(BiasMeasure):
    """The absolute value of the figure of the measure that it is mixed with; queries keep their signed values."""

    whole_run = True
    signed = False
    drawn = True

    def combine(self, means: Sequence[Array]) -> Array:
        """The absolute value of the signed figure."""
        return np.abs(self.per_query(means))

    def ties(self, run: JoinedRun) -> TieFigures:
        """What ties do to the absolute value: its mean over random orders, and its range."""
        signed = super().ties(run)
        if signed.range is None:
            return signed
        mean = float(np.mean(np.abs(self.figure_draws(run))))
        return TieFigures(signed.expected, mean, self.bounds_of_figure(signed.range))

    def bounds_of_figure(self, ends: tuple[float, float]) -> tuple[float, float]:
        """From 0, if the signed figure can have either sign, to the larger absolute value."""
        least, most = sorted(map(abs, ends))
        return (0.0 if ends[0] <= 0 <= ends[1] else least), most

    def figure_by_relevance(self, run: JoinedRun) -> float | None:
        """The mean absolute value over 200 random orders of equally graded candidates."""
        return float(np.mean(np.abs(self.figure_draws(relevance_first(run)))))

    def random_figure(self, run: JoinedRun) -> float:
        """The mean absolute value over 200 random orders of the candidates."""
        return float(np.mean(np.abs(self.figure_draws(run, random=True))))
