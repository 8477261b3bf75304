"""Least squares over pairs that share queries and passages, against leaving each out in a loop."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenrank.probes.two_way_clusters import clustered
from evenrank.stats.compare import compare_estimate
from evenrank.stats.estimate import confidence_interval


def slow_variance(values, columns, weights, units):
    """Σ (estimate without a unit − estimate)²."""
    whole = weights @ np.linalg.lstsq(columns, values, rcond=None)[0]
    names = sorted(set(units))
    total = 0.0
    for name in names:
        kept = np.array([unit != name for unit in units])
        total += (weights @ np.linalg.lstsq(columns[kept], values[kept], rcond=None)[0] - whole) ** 2
    return total


@given(st.integers(0, 10**6))
def test_the_error_is_the_largest_of_three(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 40))
    first, second = rng.integers(0, 6, n), rng.integers(0, 9, n)
    columns = np.stack([np.ones(n), rng.standard_normal(n)], axis=1)
    values, weights = rng.standard_normal(n) + 0.5 * rng.standard_normal(6)[first], np.array([1.0, 0.3])
    found = clustered(values, first, second, columns).mean(weights)
    pairs = list(zip(first, second, strict=True))
    by_first, by_second, both = (slow_variance(values, columns, weights, list(u)) for u in (first, second, pairs))
    assert found.se**2 == pytest.approx(max(by_first, by_second, by_first + by_second - both), rel=1e-6)
    assert found.value == pytest.approx(weights @ np.linalg.lstsq(columns, values, rcond=None)[0])

    def worth(units):
        sizes = np.unique(units, return_counts=True)[1]
        return max(sizes.sum() ** 2 / (sizes**2).sum() - 1, 1)

    wanted = worth(second) if found.se**2 <= by_second * (1 + 1e-9) else min(worth(first), worth(second))
    assert found.df == pytest.approx(wanted)


def test_each_value_of_its_own_is_the_t_test():
    values, own = np.random.default_rng(3).standard_normal(40), np.arange(40)
    found = clustered(values, own, own).mean(np.ones(1))
    # G/(G − 1) for caution.
    assert (found.se, found.df) == pytest.approx((stats.sem(values) * (40 / 39) ** 0.5, 39))
    # The skewness that Hall's transformation takes out.
    apart = values - values.mean()
    skew = (1 + 6 / 40) * (apart**3).mean() / (apart**2).mean() ** 1.5 / np.sqrt(40)
    assert found.skewness == pytest.approx(skew)
    assert compare_estimate(found, 40, "pairs").ci95 == confidence_interval(found)


def test_two_samples_are_welchs_test():
    rng = np.random.default_rng(4)
    values, own = rng.standard_normal(40) * np.repeat([1, 3], 20), np.arange(40)
    part = np.repeat([0, 1], 20)
    columns = np.stack([part == 0, part == 1], axis=1).astype(float)
    found = clustered(values, own, own, columns, part=part).mean(np.array([1.0, -1.0]))
    welch = stats.ttest_ind(values[:20], values[20:], equal_var=False)
    assert found.value / found.se == pytest.approx(welch.statistic * (19 / 20) ** 0.5)
    assert found.df == pytest.approx(welch.df)


def test_values_that_do_not_differ_leave_no_error():
    own = np.arange(7)
    found = clustered(np.full(7, 0.1), own, own).mean(np.ones(1))
    assert (found.se, found.df) == (0.0, 6.0)
    assert compare_estimate(found, 7, "pairs").reason == "every value is the same"
    # Every query and every passage sums to 0, and no pair is 0.
    apart = clustered(np.array([1.0, -1, -1, 1]), np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])).mean(np.ones(1))
    assert apart.se > 0


def test_columns_that_are_lost_with_a_unit():
    """Where a unit alone has a column, the rest is fitted without it."""
    columns = np.array([[1.0, 0], [1, 0], [1, 0], [1, 1]])
    found = clustered(np.array([1.0, 2, 3, 9]), np.arange(4), np.arange(4), columns)
    assert found.coefficients == pytest.approx([2, 7])
    assert np.isfinite(found.mean(np.array([1.0, 0])).se)
