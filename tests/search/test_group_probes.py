"""Probes of groups: folds that keep neighbours together, balanced accuracy, linear and not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr, stdtrit

from evenrank.files.json_values import json_values
from evenrank.search.group_probes import GroupProbe, balanced, deal_folds, draw_rows, neighbourhoods, probe_groups
from evenrank.search.leace import fit_leace


def test_balanced_accuracy_by_hand() -> None:
    """Three of four of one group, none of two of the other: (3/4 + 0) / 2; but of so few rows nothing is told."""
    found = balanced(np.array([True, True, True, False, False, False]), np.array([0, 0, 0, 0, 1, 1]))
    assert (found.accuracy, found.chance, found.n) == (3 / 8, 1 / 2, 6)
    assert (found.verdict, found.why) == ("cannot be told", "a group has only 2 rows, where 15 are needed")


def test_balanced_accuracy_against_a_slow_one() -> None:
    """The mean of the groups' shares, with Welch's t (and Hall's) of the parts of each group."""
    rng = np.random.default_rng(0)
    groups, correct = np.repeat([0, 1], [60, 40]), rng.random(100) < 0.65
    found = balanced(correct, groups)
    shares = [correct[groups == group].astype(float) for group in (0, 1)]
    mean = sum(share.mean() for share in shares) / 2
    errors = [share.var(ddof=1) / len(share) / 4 for share in shares]
    freedom = sum(errors) ** 2 / sum(e**2 / (len(s) - 1) for e, s in zip(errors, shares, strict=True))
    t = (mean - 0.5) / np.sqrt(sum(errors))
    assert found.mean == pytest.approx(mean)
    assert found.p is not None
    # Hall's t is the smaller or the larger by little.
    assert 2 * stdtr(freedom, -t) <= found.p < 3 * stdtr(freedom, -t)
    half = stdtrit(freedom, 0.975) * np.sqrt(sum(errors))
    assert found.ci95 == pytest.approx((mean - half, mean + half), abs=0.01)
    # Rows that are alike are one: four copies of each do not make it surer.
    four = balanced(np.repeat(correct, 4), np.repeat(groups, 4), np.repeat(np.arange(100), 4))
    assert (four.mean, four.p) == (pytest.approx(found.mean), pytest.approx(found.p))


def test_verdicts_of_probes() -> None:
    groups = np.repeat([0, 1], 40)
    right = balanced(np.ones(80, bool), groups)
    assert (right.accuracy, right.verdict) == (1.0, "shown")
    # A probe that is right less often than by chance knows nothing of what is left: its neighbours mislead it.
    wrong = balanced(np.arange(80) % 4 == 0, groups)
    assert (wrong.accuracy, wrong.verdict, wrong.p) == (0.25, "cannot be told", None)
    assert wrong.why is not None
    half = balanced(np.arange(80) % 2 == 0, groups)
    assert (half.accuracy, half.verdict) == (0.5, "no difference shown")
    assert half.noticeable == pytest.approx(0.16, abs=0.02)
    assert json_values(half)["verdict"] == "no difference shown"
    better = GroupProbe(right, wrong)
    assert better.best is right
    assert GroupProbe(wrong, half).best is half


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
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(300, 4))
    linear, crossed = (rows[:, 0] > 0).astype(int), (rows[:, 0] * rows[:, 1] > 0).astype(int)
    folds = deal_folds(np.arange(300), linear)
    found = probe_groups(rows, linear, folds)
    assert found.linear.accuracy > 0.9
    assert found.linear.shown
    found = probe_groups(rows, crossed, folds)
    # Of a finite sample a line separates a little.
    assert found.linear.accuracy < 0.65
    assert found.kernel.shown
    assert found.best is found.kernel
    # Other rows for each fold.
    assert probe_groups([rows] * 5, crossed, folds) == found
    assert not probe_groups([rows * 0] * 5, crossed, folds).best.shown


@pytest.mark.parametrize("form", ["product", "form"])
def test_what_a_linear_eraser_leaves_is_found(form: str) -> None:
    """The group is a quadratic form of what is left once LEACE has made the groups' means equal: .7 or more is found,
    where a linear probe finds nothing."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(800, 12))
    value = (
        rows[:, 0] * rows[:, 1] if form == "product" else rows[:, 0] ** 2 - rows[:, 1] ** 2 + rows[:, 2] * rows[:, 3]
    )
    groups = (value > 0).astype(np.int64)
    rows[:, 5] += groups
    erased = fit_leace(rows, groups)(rows)
    parts = neighbourhoods(erased)
    found = probe_groups(erased, groups, deal_folds(parts, groups), parts)
    assert not found.linear.shown
    assert found.best is found.kernel
    assert found.best.accuracy >= 0.7
    assert found.best.shown


def test_random_groups_are_not_recovered() -> None:
    """Of rows half of which are near copies: said by chance of one in twenty (in full: benchmarks)."""
    said = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        rows = np.repeat(rng.normal(size=(60, 8)), 2, axis=0) + 0.01 * rng.normal(size=(120, 8))
        groups, parts = rng.integers(0, 2, 120), neighbourhoods(rows)
        said += probe_groups(rows, groups, deal_folds(parts, groups), parts).best.shown
    assert said <= 1


def test_a_small_group_counts_as_much() -> None:
    """One row in ten is of the second group, which cannot be told: chance is a half, not nine in ten."""
    rng = np.random.default_rng(1)
    rows, groups = rng.normal(size=(300, 2)), (np.arange(300) % 10 == 0).astype(int)
    found = probe_groups(rows, groups, deal_folds(np.arange(300), groups))
    assert found.linear.accuracy == pytest.approx(0.5, abs=0.15)
    assert not found.best.shown
