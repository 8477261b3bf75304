"""The mixed view: differences of queries nested in seeds."""

from __future__ import annotations

import numpy as np
import pytest
from evenrank.papers.random_effects import random_effects_test
from gone import joint_freedom
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenrank.stats.compare import compare


def test_by_hand() -> None:
    # Means 1 and 4; within (1 + 1 + 1 + 1) / 2 = 2, between 2 · (1.5² + 1.5²) = 9: component (9 − 2) / 2 = 3.5.
    found = random_effects_test([np.array([0.0, 2.0]), np.array([3.0, 5.0])])
    assert found.mean == 2.5
    assert found.found.error == pytest.approx(np.sqrt(3.5 + 2 / 2 + 3.5 + 2 / 2) / 2)
    assert (found.found.freedom, found.seeds, found.queries) == (1, 2, 4)


@given(st.integers(2, 6), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_balanced_seeds_that_differ_are_the_t_test_over_seeds(seeds: int, queries: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = rng.normal(0.2, 1, (seeds, queries)) + rng.normal(0, 1, (seeds, 1))
    found = random_effects_test(list(table))
    if seeds == 2 and stats.f_oneway(*table).statistic <= 1:
        assert (found.found.freedom, found.limit) == (1, "seeds")
    elif found.found.freedom == seeds - 1:
        test = stats.ttest_1samp(table.mean(1), 0)
        assert found.p == pytest.approx(float(test.pvalue))
        low, high = test.confidence_interval(0.95)
        assert found.interval() == pytest.approx((low, high))
    else:
        # No component between seeds: F ≤ 1 in the analysis of variance.
        assert stats.f_oneway(*table).statistic <= 1
        within = table.var(axis=1, ddof=1).mean()
        assert found.found.error == pytest.approx(np.sqrt(within / table.size))
        assert found.found.freedom == seeds * (queries - 1)


def test_one_seed_is_the_comparison_over_its_queries() -> None:
    values = np.random.default_rng(3).exponential(1, 40) - 0.7
    found, alone = random_effects_test([values]), compare(values)
    assert (found.mean, found.p, found.interval()) == (alone.mean, alone.p, alone.ci95)
    assert random_effects_test([values[:9]]).p is None


def test_degrees_of_freedom_of_a_sum_make_its_interval_as_wide_as_its_parts() -> None:
    parts = [(0.5, 2.0), (1.5, 40.0)]
    half = np.sqrt(0.5 * stats.t.ppf(0.975, 2) ** 2 + 1.5 * stats.t.ppf(0.975, 40) ** 2)
    assert stats.t.ppf(0.975, joint_freedom(parts)) * np.sqrt(2.0) == pytest.approx(half, rel=1e-5)
    assert joint_freedom([(0.0, 3.0), (0.0, 9.0)]) == 3.0


def test_the_same_queries_by_hand() -> None:
    # Seeds' means 1 and 3, queries' means 1, 2 and 3; no error beside them: 2/2 + 1/3.
    found = random_effects_test([np.array([0.0, 1.0, 2.0]), np.array([2.0, 3.0, 4.0])], same_queries=True)
    assert found.found.error == pytest.approx(np.sqrt(1 + 1 / 3))
    assert found.found.freedom == pytest.approx(joint_freedom([(1.0, 1.0), (1 / 3, 2.0)]))
    assert (found.seeds, found.queries, found.limit, found.n) == (2, 3, "seeds", 2)


def test_the_same_queries_are_no_new_evidence() -> None:
    rng = np.random.default_rng(1)
    queries = rng.normal(0.0, 1, 30)
    table = queries + rng.normal(0, 0.01, (5, 30))
    found = random_effects_test(list(table), same_queries=True)
    assert (found.queries, found.limit, found.n) == (30, "queries", 30)
    assert found.p == pytest.approx(float(compare(table.mean(0)).p or 0), abs=0.01)
    assert found.found is not None
    nested = random_effects_test(list(table)).found
    assert nested is not None
    assert found.found.error > 2 * nested.error


def test_a_query_that_a_seed_lacks_makes_the_error_larger() -> None:
    table = np.random.default_rng(2).normal(0, 1, (4, 20))
    whole = random_effects_test(list(table), same_queries=True).found
    table[0, 3] = np.nan
    lacking = random_effects_test(list(table), same_queries=True).found
    assert whole is not None
    assert lacking is not None
    assert lacking.error > whole.error


def test_undefined_values_and_no_values() -> None:
    assert random_effects_test([]).p is None
    assert random_effects_test([np.array([np.nan])]).mean is None
    assert random_effects_test([np.array([1.0])]).p is None
    found = random_effects_test([np.array([1.0, np.nan, 3.0]), np.array([2.0])])
    assert (found.mean, found.queries) == (2.0, 3)
    assert random_effects_test([np.zeros(4), np.zeros(4)]).p == 1.0


@pytest.mark.parametrize("seeds", [2, 5])
@pytest.mark.parametrize("same_queries", [False, True])
def test_level_under_no_effect(seeds: int, same_queries: bool) -> None:
    """Seeds differ by a fifth of what queries do; without an effect about 5% of the tests reject."""
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(1000):
        table = rng.normal(0, 1, (seeds, 40)) + rng.normal(0, 0.2, (seeds, 1))
        if same_queries:
            table += rng.normal(0, 1, 40)
        p = random_effects_test(list(table), same_queries=same_queries).p
        assert p is not None
        rejected += p < 0.05
    assert rejected / 1000 <= 0.065
