"""Probes of groups: folds that keep neighbours together, balanced accuracy, linear and not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.embeddings.group_probes import balanced, deal_folds, draw_rows, neighbourhoods, probe_groups


def test_balanced_accuracy_by_hand() -> None:
    """Three of four of one group, none of two of the other: (3/4 + 0) / 2."""
    found = balanced(np.array([True, True, True, False, False, False]), np.array([0, 0, 0, 0, 1, 1]))
    assert found.accuracy == 3 / 8
    low, high = found.ci95
    # The other group is never right; of the first, one to four of four.
    assert 0 <= low <= 1 / 4
    assert high == 1 / 2


def test_rows_are_drawn_of_each_group() -> None:
    groups = np.array([0, 1, -1, 0, 0, 1, -2, 2])
    drawn = draw_rows(groups, 2)
    assert drawn.tolist() == sorted(drawn.tolist())
    assert np.bincount(groups[drawn]).tolist() == [2, 2, 1]
    assert draw_rows(groups, 9).tolist() == [0, 1, 3, 4, 5, 7]
    assert draw_rows(np.array([-1]), 3).tolist() == []


@given(st.integers(0, 10_000), st.integers(2, 50))
def test_a_row_is_with_the_one_nearest_to_it(seed: int, count: int) -> None:
    rows = np.random.default_rng(seed).normal(size=(count, 3))
    found = neighbourhoods(rows)
    distances = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distances, np.inf)
    # Slowly: numbers are passed on until none changes.
    slow = np.arange(count)
    for _ in range(count):
        for row in range(count):
            near = int(distances[row].argmin())
            slow[row] = slow[near] = min(slow[row], slow[near])
    assert [len({*found[slow == number]}) for number in np.unique(slow)] == [1] * len(np.unique(slow))
    assert found.max() + 1 == len(np.unique(slow))


@given(st.integers(0, 10_000), st.integers(5, 60))
def test_folds(seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    parts, groups = np.arange(count) // 2, rng.integers(0, 2, count)
    folds = deal_folds(parts, groups, seed=seed)
    assert folds.tolist() == deal_folds(parts, groups, seed=seed).tolist()
    assert {*folds.tolist()} <= {*range(5)}
    for part in range(count // 2):
        assert len({*folds[parts == part].tolist()}) == 1


def test_folds_are_even() -> None:
    groups = np.arange(100) % 2
    folds = deal_folds(np.arange(100), groups)
    assert np.bincount(folds).tolist() == [20] * 5
    assert np.bincount(folds[groups == 0]).tolist() == [10] * 5


def test_what_is_linear_and_what_is_not() -> None:
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    linear, crossed = (rows[:, 0] > 0).astype(int), (rows[:, 0] * rows[:, 1] > 0).astype(int)
    folds = deal_folds(np.arange(300), linear)
    found = probe_groups(rows, linear, folds)
    assert found.linear.accuracy > 0.9
    found = probe_groups(rows, crossed, folds)
    # Of a finite sample a line separates a little.
    assert found.linear.accuracy < 0.65
    assert found.rbf.ci95[0] > 0.8
    # Other rows for each fold.
    assert probe_groups([rows] * 5, crossed, folds) == found
    assert probe_groups([rows * 0] * 5, crossed, folds).rbf.accuracy == pytest.approx(0.5, abs=0.1)


def test_a_small_group_counts_as_much() -> None:
    """One row in ten is of the second group, which cannot be told: chance is a half, not nine in ten."""
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(1)
    rows, groups = rng.normal(size=(300, 2)), (np.arange(300) % 10 == 0).astype(int)
    found = probe_groups(rows, groups, deal_folds(np.arange(300), groups))
    assert found.linear.accuracy == pytest.approx(0.5, abs=0.12)
