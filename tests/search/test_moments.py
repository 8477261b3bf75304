"""Moments added up in blocks: those of all rows at once, whatever the blocks."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenrank.search.embeddings import GroupMeans, Moments, eraser_of, fit_leace


def test_by_hand() -> None:
    """Group 0: (0, 0) and (2, 0), mean (1, 0); group 1: (4, 3); group 2 has no row. All: mean (2, 1)."""
    moments = Moments(3, 2)
    moments.add(np.array([[0.0, 0.0]]), np.array([0]))
    moments.add(np.empty((0, 2)), np.empty(0, np.int64))
    moments.add(np.array([[4.0, 3.0], [2.0, 0.0]]), np.array([1, 0]))
    assert moments.counts.tolist() == [2, 1, 0]
    np.testing.assert_allclose(moments.means, [[1, 0], [4, 3], [0, 0]])
    np.testing.assert_allclose(moments.mean, [2, 1])
    # Deviations (−2, −1), (2, 2), (0, −1).
    np.testing.assert_allclose(moments.covariance, [[8 / 3, 2], [2, 2]])
    # Two thirds of (1, 0) − (2, 1), a third of (4, 3) − (2, 1).
    np.testing.assert_allclose(moments.cross, [[-2 / 3, 2 / 3, 0], [-2 / 3, 2 / 3, 0]], atol=1e-12)
    # (3, 3) apart; the group without a row is left out.
    assert moments.gap() == np.sqrt(18)
    assert moments.gap(1) == 0


@given(st.integers(0, 10_000), st.integers(1, 30), st.sampled_from([0.0, 1e4]))
def test_blocks_do_not_matter(seed: int, block: int, offset: float) -> None:
    rng = np.random.default_rng(seed)
    rows, groups = rng.normal(size=(60, 5)) + offset, rng.integers(0, 3, 60)
    rows[groups == 1] += rng.normal(size=5)
    moments, means = Moments(4, 5), GroupMeans(4, 5)
    for start in range(0, 60, block):
        moments.add(rows[start : start + block], groups[start : start + block])
        means.add(rows[start : start + block], groups[start : start + block])
    centred = rows - rows.mean(axis=0)
    z = np.eye(4)[groups]
    np.testing.assert_allclose(moments.covariance, centred.T @ centred / 60, atol=1e-9)
    np.testing.assert_allclose(moments.cross, centred.T @ (z - z.mean(axis=0)) / 60, atol=1e-8)
    np.testing.assert_allclose(means.means, moments.means)
    for group in range(3):
        np.testing.assert_allclose(moments.means[group], rows[groups == group].mean(axis=0), atol=1e-9)
    whole, added = fit_leace(rows, groups), eraser_of(moments)
    np.testing.assert_allclose(added(rows), whole(rows), atol=1e-8 * max(offset, 1))
