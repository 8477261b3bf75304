"""What each pair of a list shows of a variant: changes of its score, in standard deviations, and their means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .effects import Effect, Floats, Ints, difference, effect


@dataclass(frozen=True, slots=True)
class PairValues:
    """The change Δ of each pair's score [N] by a variant and by its placebo; NaN where not compared.

    ``placebo``: of the compared pairs that it changes; None without a placebo.
    """

    effect: Floats
    placebo: Floats | None = None

    @classmethod
    def of(
        cls, scores: Floats, deviation: Floats, variant: Floats, placebo: Floats | None, signs: Floats | None
    ) -> PairValues:
        """Δ = (score of the variant − score) / standard deviation of the query's original scores.

        ``scores``, ``deviation`` (of each pair's query), ``variant``, ``placebo``, ``signs``, all [N]: the scores of
        what a version does not change are NaN; ``signs`` (+1, −1, or NaN to leave a pair out) orient both changes.

        >>> found = PairValues.of(*map(np.array, ([1.0, 3.0], [2.0, 2.0], [2.0, 4.0], [1.5, np.nan], [1.0, -1.0])))
        >>> found.effect.tolist(), found.placebo.tolist()
        ([0.5, -0.5], [0.25, nan])
        """
        oriented = np.ones(len(scores)) if signs is None else signs
        own = oriented * (variant - scores) / deviation
        if placebo is None:
            return cls(own)
        other = oriented * (placebo - scores) / deviation
        return cls(own, np.where(np.isnan(own), np.nan, other))


@dataclass(frozen=True, slots=True)
class Means:
    """The mean effect of a variant, that of its placebo, and the difference of the two.

    ``placebo``: None without one; ``difference``: None where the placebo changes no compared pair.
    """

    effect: Effect
    placebo: Effect | None
    difference: Effect | None

    @classmethod
    def of(cls, values: PairValues, query: Ints, passage: Ints) -> Means:
        """Over all pairs."""
        own, other = values.effect, values.placebo
        mean = effect(own, query, passage)
        if other is None:
            return cls(mean, None, None)
        beyond = None if np.isnan(other).all() else difference(own, other, query, passage)
        return cls(mean, effect(other, query, passage), beyond)

    @property
    def verdict(self) -> Effect:
        """What the verdict speaks of: the difference from the placebo if that changes any pair, else the effect."""
        return self.effect if self.difference is None else self.difference

    @property
    def beyond_placebo(self) -> bool:
        """Whether the verdict is beyond a placebo."""
        return self.difference is not None

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "effect": self.effect.to_dict(),
            "placebo": None if self.placebo is None else self.placebo.to_dict(),
            "difference": None if self.difference is None else self.difference.to_dict(),
        }
