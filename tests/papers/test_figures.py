"""The figures of a study: a value per query, and one test for every comparison."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenrank.papers.figures import Figures, influence, ratio_values
from evenrank.stats import random_effects_test

VALUES = st.lists(st.one_of(st.floats(0, 1), st.just(float("nan"))), min_size=2, max_size=30)


@given(VALUES, VALUES)
def test_the_mean_of_the_influences_is_the_difference_of_means(first: list[float], second: list[float]) -> None:
    size = min(len(first), len(second))
    a, b = np.array(first[:size]), np.array(second[:size])
    found = influence(a, b)
    if np.isnan(a).all() or np.isnan(b).all():
        assert np.isnan(found).all()
    else:
        assert found.mean() == pytest.approx(np.nanmean(a) - np.nanmean(b), abs=1e-12)


def test_the_error_of_influences_is_that_of_two_samples() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(0.5, 0.1, 400), rng.normal(0.3, 0.2, 200)
    whole = influence(np.r_[a, np.full(200, np.nan)], np.r_[np.full(400, np.nan), b])
    error = whole.std(ddof=1) / np.sqrt(len(whole))
    assert error == pytest.approx(np.sqrt(a.var() / 400 + b.var() / 200), rel=0.02)


def test_the_error_of_a_ratio_is_that_of_a_jackknife() -> None:
    rng = np.random.default_rng(0)
    b = rng.normal(0.5, 0.1, 300)
    a = 0.4 * b + rng.normal(0.1, 0.05, 300)
    found = ratio_values(a, b)
    left_out = (a.sum() - a) / (b.sum() - b)
    assert found.mean() == pytest.approx(a.sum() / b.sum())
    assert found.std() / np.sqrt(299) == pytest.approx(np.sqrt(299) * left_out.std(), rel=0.01)


def figures(same: bool, **systems: list[list[float]]) -> Figures:
    found = Figures(same)
    for name, seeds in systems.items():
        for seed, values in enumerate(seeds):
            found.add("MRR", name, seed, [f"q{place}" for place in range(len(values))], np.array(values))
    return found


def test_a_comparison_is_paired_within_the_query() -> None:
    one, other = [[0.1, 0.5, 0.9, 0.4], [0.2, 0.6, 0.7, 0.4]], [[0.0, 0.5, 0.5, 0.1], [0.1, 0.2, 0.6, 0.3]]
    found = figures(True, a=one, b=other)
    expected = random_effects_test(
        [np.array(a) - 0.9 * np.array(b) + 0.05 for a, b in zip(one, other, strict=True)], same_queries=True
    )
    test = found.test("MRR", {"a": 1.0, "b": -0.9}, 0.05)
    assert (test.mean, test.interval()) == (pytest.approx(expected.mean), pytest.approx(expected.interval()))
    apart = random_effects_test(
        [np.array(a) - np.array(b) for a, b in zip(one, other, strict=True)], same_queries=False
    )
    found = figures(False, a=one, b=other)
    assert found.test("MRR", {"a": 1.0, "b": -1.0}).interval() == pytest.approx(apart.interval())


def test_a_query_that_one_seed_lacks_is_left_out() -> None:
    found = Figures(True)
    for name, value in (("a", 0.4), ("b", 0.1)):
        found.add("MRR", name, 0, ["q1", "q2"], np.array([2 * value, value + 0.1]))
        found.add("MRR", name, 1, ["q2", "q3"], np.array([value + 0.3, 3 * value]))
    test = found.test("MRR", {"a": 1.0, "b": -1.0})
    assert (test.mean, test.queries) == (pytest.approx(0.3), 1)


def test_sizes_have_the_sign_of_their_systems_mean() -> None:
    found = figures(True, a=[[-0.3, -0.1, -0.2]], b=[[0.3, 0.5, 0.1]])
    assert found.test("MRR", {"a": 1.0, "b": -1.0}, size=True).mean == pytest.approx(0.2 - 0.3)
    assert found.test("MRR", {"a": 1.0, "b": -1.0}).mean == pytest.approx(-0.5)
    row = found.row("|MRR|", "a")
    assert row is not None
    assert row.mean == pytest.approx(0.2)


def test_systems_without_a_common_query_are_compared_by_welch() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(0.6, 0.1, 40), rng.normal(0.5, 0.3, 25)
    found = Figures(True)
    found.add("cosine", "biased", 0, [f"b{one}" for one in range(40)], a, "analogies")
    found.add("cosine", "appropriate", 0, [f"a{one}" for one in range(25)], b, "analogies")
    test = found.test("cosine", {"biased": 1.0, "appropriate": -1.0})
    expected = stats.ttest_ind(a, b, equal_var=False)
    assert test.mean == pytest.approx(a.mean() - b.mean())
    assert test.estimate is not None
    assert test.estimate.se == pytest.approx((a.mean() - b.mean()) / expected.statistic)
    assert test.estimate.df == pytest.approx(expected.df)
    assert found.as_estimate(test, "cosine").unit == "analogies"
    # Five trainings, .1 apart: V_seeds of their differences, s² = .025, over 5, with 4 degrees of freedom.
    for seed in range(1, 5):
        found.add("cosine", "biased", seed, [f"b{one}" for one in range(40)], a + 0.1 * seed, "analogies")
        found.add("cosine", "appropriate", seed, [f"a{one}" for one in range(25)], b, "analogies")
    of_five = found.test("cosine", {"biased": 1.0, "appropriate": -1.0}).estimate
    assert (of_five.value, of_five.df) == (pytest.approx(a.mean() - b.mean() + 0.2), 4)
    assert of_five.se == pytest.approx(np.hypot(test.estimate.se, (0.025 / 5) ** 0.5))
