"""What the verdict is of."""

from __future__ import annotations

import numpy as np
import pytest

from evenrank.probes.effects import Changes
from evenrank.probes.variant_figures import Means

QUERY, PASSAGE = np.array([0, 0, 1, 1, 2, 2]), np.arange(6)
OWN = np.array([1.0, 2.0, 3.0, 6.0, 4.0, np.nan])
SOME = np.array([0.5, np.nan, np.nan, 1.5, np.nan, np.nan])


def test_the_difference_is_that_of_the_means() -> None:
    found = Means.of(Changes(QUERY, PASSAGE, OWN, SOME), None)
    assert found.placebo is not None
    assert (found.effect.mean, found.placebo.mean, found.finding.mean) == pytest.approx((3.2, 1.0, 2.2))
    assert (found.effect.n, found.placebo.n, found.finding.n) == (5, 2, 5)
    assert (found.beyond_placebo, found.swap) == (True, None)


def test_without_any_placebo_it_is_the_effect() -> None:
    for changes in (Changes(QUERY, PASSAGE, OWN), Changes(QUERY, PASSAGE, OWN, np.full(6, np.nan))):
        found = Means.of(changes, None)
        assert (found.finding.mean, found.beyond_placebo) == (found.effect.mean, False)


def test_a_swap_weighs_its_directions_alike() -> None:
    signs = np.array([1.0, 1.0, 1.0, -1.0, np.nan, 1.0])
    found = Means.of(Changes(QUERY, PASSAGE, OWN), signs)
    assert found.effect.mean == pytest.approx((2 - 6) / 2)
    assert found.swap is not None
    assert (found.swap.direction, found.swap.passages) == ((2.0, 6.0), (3, 1))
