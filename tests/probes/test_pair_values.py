"""What the verdict is of."""

from __future__ import annotations

import numpy as np
import pytest

from evenrank.probes.variant_figures import Means, PairValues

QUERY, PASSAGE = np.array([0, 0, 1, 1, 2, 2]), np.arange(6)
OWN = np.array([1.0, 2.0, 3.0, 6.0, 4.0, np.nan])
SOME = np.array([0.5, np.nan, np.nan, 1.5, np.nan, np.nan])


def test_the_difference_is_that_of_the_means() -> None:
    found = Means.of(PairValues(OWN, SOME), QUERY, PASSAGE)
    assert found.placebo is not None
    assert found.difference is not None
    assert (found.effect.mean, found.placebo.mean, found.difference.mean) == pytest.approx((3.2, 1.0, 2.2))
    assert (found.effect.n, found.placebo.n, found.difference.n) == (5, 2, 5)
    assert found.beyond_placebo
    assert found.verdict is found.difference


def test_without_any_placebo_it_is_the_effect() -> None:
    for values in (PairValues(OWN), PairValues(OWN, np.full(6, np.nan))):
        found = Means.of(values, QUERY, PASSAGE)
        assert (found.verdict, found.beyond_placebo, found.difference) == (found.effect, False, None)
