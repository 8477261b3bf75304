"""Intervals, tests and corrections."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from evenrank.measures.inference import (
    bootstrap_means,
    holm,
    interval,
    non_inferior,
    paired_tests,
    permuted_group_p,
    permuted_runs_p,
)

rng = np.random.default_rng(7)
VALUES, BASELINE = rng.random(40), rng.random(40)


@given(st.lists(st.integers(-1000, 1000).filter(bool), min_size=2, max_size=50, unique_by=abs))
def test_few_queries_without_ties_are_tested_as_scipy_does(differences: list[int]) -> None:
    values = np.array(differences) / 7
    assert paired_tests(values, np.zeros(len(values))).wilcoxon_p == float(stats.wilcoxon(values).pvalue)


def test_paired_tests_are_scipys():
    found = paired_tests(VALUES, BASELINE)
    assert found.n == 40
    assert found.difference == pytest.approx((VALUES - BASELINE).mean())
    assert found.t_p == pytest.approx(stats.ttest_rel(VALUES, BASELINE).pvalue)
    assert found.wilcoxon_p == pytest.approx(stats.wilcoxon(VALUES, BASELINE).pvalue)


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=9).filter(any))
@settings(max_examples=50)
def test_few_queries_with_ties_are_tested_as_scipy_does(differences):
    values = np.array(differences) / 3
    found = paired_tests(values, np.zeros(len(values)))
    assert found.wilcoxon_p == pytest.approx(stats.wilcoxon(values).pvalue, rel=1e-12)


@pytest.mark.parametrize("n", [12, 13, 14])
def test_as_many_queries_as_all_signs_are_tried_for(n):
    values = np.array([0, 1, 1, -2, 3, 5, 5, -6, 7, 8, 9, -9, 10, 11][:n]) / 7
    assert paired_tests(values, np.zeros(n)).wilcoxon_p == pytest.approx(stats.wilcoxon(values).pvalue, rel=1e-12)


def test_undefined_values_are_left_out_in_pairs():
    values, baseline = VALUES.copy(), BASELINE.copy()
    values[:5], baseline[3:9] = np.nan, np.nan
    found = paired_tests(values, baseline)
    assert found.n == 31
    assert found.t_p == pytest.approx(stats.ttest_rel(VALUES[9:], BASELINE[9:]).pvalue)


@given(st.integers(14, 80), st.integers(2, 60), st.integers(0, 10**6))
def test_many_queries_with_and_without_ties_are_scipys(n: int, sizes: int, seed: int):
    rng = np.random.default_rng(seed)
    values = rng.integers(-sizes, sizes, n) / 7 if seed % 3 else rng.normal(size=n)
    found = paired_tests(values, np.zeros(n))
    if values.any() and np.ptp(values):
        assert found.t_p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=1e-9, abs=1e-300)
        assert found.wilcoxon_p == pytest.approx(stats.wilcoxon(values).pvalue, rel=1e-9, abs=1e-300)


def test_edges_of_paired_tests():
    assert paired_tests(VALUES, VALUES).t_p == paired_tests(VALUES, VALUES).wilcoxon_p == 1.0
    assert paired_tests(np.array([1.0]), np.array([0.5])).t_p is None
    assert paired_tests(np.array([np.nan]), np.array([0.5])).difference is None
    assert paired_tests(np.full(9, 2.0), np.full(9, 1.0)).t_p is None
    # What is left of a difference after rounding is none.
    assert paired_tests(VALUES + 1e-13, VALUES).t_p == 1.0


def test_holm_hand_worked():
    assert holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_equals_the_slow_version(values):
    found = holm(values)
    ranked = sorted(range(len(values)), key=lambda i: values[i])
    for place, i in enumerate(ranked):
        expected = max(min(1, (len(values) - j) * values[ranked[j]]) for j in range(place + 1))
        assert found[i] == pytest.approx(expected)


def test_bootstrap_is_seeded_paired_and_near_the_normal_interval():
    stacked = np.stack([VALUES, VALUES + 1], axis=1)
    draws = bootstrap_means(stacked, seed=3)
    assert draws.shape == (2000, 2)
    np.testing.assert_array_equal(draws, bootstrap_means(stacked, seed=3))
    np.testing.assert_allclose(draws[:, 1] - draws[:, 0], 1)
    low, high = interval(draws[:, 0])
    error = VALUES.std() / np.sqrt(40)
    assert low == pytest.approx(VALUES.mean() - 1.96 * error, abs=0.25 * error)
    assert high == pytest.approx(VALUES.mean() + 1.96 * error, abs=0.25 * error)


def test_bootstrap_leaves_undefined_values_out():
    values = np.array([[1.0], [np.nan], [1.0]])
    draws = bootstrap_means(values, seed=0)
    defined = draws[~np.isnan(draws)]
    assert (defined == 1).all()
    # All three draws undefined: (1/3)^3 of the time.
    assert np.isnan(draws).mean() == pytest.approx(1 / 27, abs=0.02)
    assert interval(np.array([np.nan])) is None


def test_non_inferiority():
    baseline = np.full(50, 0.5) + rng.normal(0, 0.01, 50)
    assert non_inferior(baseline - 0.01, baseline, seed=0) is True
    assert non_inferior(baseline - 0.04, baseline, seed=0) is False
    # Too few and too noisy to show anything: not shown.
    assert non_inferior(np.array([0.1, 0.9]), np.array([0.6, 0.4]), seed=0) is False
    assert non_inferior(np.array([np.nan]), np.array([0.4]), seed=0) is None
    assert non_inferior(np.array([0.1]), np.array([0.0]), seed=0) is None


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_group_permutation_equals_all_permutations(seed):
    values = np.random.default_rng(seed).random(7)
    observed = abs(values[:3].mean() - values[3:].mean())
    extreme = [
        abs(values[list(first)].mean() - np.delete(values, list(first)).mean()) >= observed - 1e-12
        for first in itertools.combinations(range(7), 3)
    ]
    assert permuted_group_p(values[:3], values[3:], seed) == pytest.approx(np.mean(extreme), abs=0.03)
    assert permuted_group_p(values[:0], values, seed) is None


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_run_permutation_equals_all_swaps(seed):
    draw = np.random.default_rng(seed)
    a, b = draw.normal(size=6), draw.normal(size=6)
    observed = abs(abs(a.mean()) - abs(b.mean()))
    extreme = []
    for swap in itertools.product([False, True], repeat=6):
        first, second = np.where(swap, b, a), np.where(swap, a, b)
        extreme.append(abs(abs(first.mean()) - abs(second.mean())) >= observed - 1e-12)
    assert permuted_runs_p(a, b, seed) == pytest.approx(np.mean(extreme), abs=0.03)
    assert permuted_runs_p(a[:1], b[:1], seed) is None
