"""Neutrality: by hand, and against a slow version."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.groups import neutrality
from slow_groups import slow_neutrality


@pytest.mark.parametrize(
    ("counts", "shares", "threshold", "expected"),
    [
        ([1, 0], [0.5, 0.5], 1, 1),
        ([2, 0], [0.5, 0.5], 1, 0),
        ([3, 1], [0.5, 0.5], 1, 0.5),
        ([1, 2], [0.5, 0.5], 1, 2 / 3),
        # The threshold.
        ([1, 0], [0.5, 0.5], 0, 0),
        ([0, 0], [0.5, 0.5], 0, 1),
        ([2, 0], [0.5, 0.5], 1.5, 0),
        # Unequal shares: 1 − Σ|c/n − J| / (2 · 0.7).
        ([7, 3], [0.7, 0.3], 1, 1),
        ([9, 0], [0.7, 0.3], 1, 1 - 0.6 / 1.4),
        ([1, 1], [0.7, 0.3], 1, 1 - 0.4 / 1.4),
        ([0, 2], [1.0, 0.0], 1, 0),
        # Three groups: 1 − Σ|c/n − J| / (2 · 2/3), then / (2 · 0.8).
        ([2, 1, 0], [1 / 3, 1 / 3, 1 / 3], 1, 0.5),
        ([0, 9, 0], [0.5, 0.3, 0.2], 1, 1 - 1.4 / 1.6),
        ([5, 3, 2], [0.5, 0.3, 0.2], 1, 1),
    ],
)
def test_neutrality_by_hand(counts: list[int], shares: list[float], threshold: float, expected: float) -> None:
    assert neutrality(np.array([counts]), shares, threshold).tolist() == pytest.approx([expected], abs=1e-12)
    assert slow_neutrality(counts, tuple(shares), threshold) == pytest.approx(expected, abs=1e-12)


@given(
    st.integers(2, 4).flatmap(
        lambda groups: st.tuples(
            st.lists(st.lists(st.integers(0, 9), min_size=groups, max_size=groups), min_size=1, max_size=8),
            st.lists(st.integers(1, 9), min_size=groups, max_size=groups),
        )
    ),
    st.sampled_from([0, 1, 3]),
)
def test_any_neutrality(data: tuple[list[list[int]], list[int]], threshold: float) -> None:
    counts, parts = data
    shares = tuple(part / sum(parts) for part in parts)
    found = neutrality(np.array(counts), shares, threshold)
    assert found.tolist() == pytest.approx([slow_neutrality(row, shares, threshold) for row in counts], abs=1e-12)
    assert found.min() >= 0
    assert found.max() <= 1
    # A text of the rarest group alone is the least neutral there is.
    alone = np.zeros((1, len(shares)), dtype=int)
    alone[0, int(np.argmin(shares))] = 5
    assert neutrality(alone, shares, threshold).tolist() == pytest.approx([0], abs=1e-12)


def test_two_equal_shares_give_the_published_form() -> None:
    counts = np.array([[f, m] for f in range(8) for m in range(8) if f + m > 1])
    share = counts / counts.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(neutrality(counts, [0.5, 0.5]), 1 - np.abs(share - 0.5).sum(axis=1), rtol=0, atol=1e-15)
