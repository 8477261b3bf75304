"""Means, standard errors and intervals."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenrank.stats.clusters import effective_clusters, linearized_means
from evenrank.stats.estimate import (
    Estimate,
    MeanEstimate,
    absolute_estimate,
    ci_lower,
    ci_upper,
    combined_estimate,
    estimate,
    mean_estimate,
    p_greater,
)
from evenrank.stats.planning import detectable_distance, power
from slow_stats import jackknife

FINITE = st.floats(-3, 3).map(lambda value: round(value, 3))
SAMPLES = st.lists(FINITE, min_size=3, max_size=12).map(np.array)


def test_a_worked_mean() -> None:
    # 1, 2, 3: mean 2, spread 1, error 1/√3, no skewness: the limits are 2 ± 2.92/√3.
    found = mean_estimate(np.array([1.0, 2.0, 3.0]))
    assert found == MeanEstimate(2.0, pytest.approx(3**-0.5), pytest.approx(2.0), pytest.approx(0.0))
    assert ci_lower(found, 0.05) == pytest.approx(2 - 2.919986 / 3**0.5)
    assert ci_upper(found, 0.05) == pytest.approx(2 + 2.919986 / 3**0.5)


def test_a_worked_skewness() -> None:
    # 0, 0, 3: mean 1, error 1, third moment 2, plain variance 2: κ = (1 + 6/3) · 2/2^1.5 / √3 = √1.5. For T = 1,
    # Hall's t = 1 + κ/3 + κ²/27 + κ/6 is above T, and for −κ it is 1 − κ/3 + κ²/27 − κ/6, below it.
    found = mean_estimate(np.array([0.0, 0.0, 3.0]))
    assert (found.se, found.skewness) == (pytest.approx(1.0), pytest.approx(1.5**0.5))
    assert p_greater(found, 0.0) == pytest.approx(stats.t.sf(1.0, 2))
    assert p_greater(-found, -2.0) == pytest.approx(stats.t.sf(1 + 1.5 / 27 - 1.5**0.5 / 2, 2))
    assert mean_estimate(np.array([0.0, 0.0, 3.0]), None, 10.0).skewness == pytest.approx(13 / 9 * 1.5**0.5)


@given(SAMPLES, SAMPLES, FINITE)
def test_a_difference_of_means_is_welchs_test(first: np.ndarray, second: np.ndarray, bound: float) -> None:
    if first.std() < 1e-6 or second.std() < 1e-6:
        return
    found = combined_estimate([first, second], [1.0, -1.0])
    welch = stats.ttest_ind(first - bound, second, equal_var=False, alternative="greater")
    assert (found.value - bound) / found.se == pytest.approx(welch.statistic)
    assert found.df == pytest.approx(welch.df)
    # Never clearer than the t-test.
    assert p_greater(found, bound) >= welch.pvalue - 1e-9


@given(st.lists(st.tuples(FINITE, st.integers(0, 5)), min_size=4, max_size=20))
def test_clusters_are_left_out_one_by_one(pairs: list[tuple[float, int]]) -> None:
    values, clusters = np.array([x for x, _ in pairs]), np.array([c for _, c in pairs])
    if len(set(clusters.tolist())) < 2:
        return
    variance, df = jackknife(values.tolist(), clusters.tolist())
    found = mean_estimate(values, clusters)
    if variance > 1e-12:
        assert found.se**2 == pytest.approx(variance)
        assert found.df == pytest.approx(df)
    assert effective_clusters(np.unique(clusters, return_counts=True)[1]) == pytest.approx(df + 1)


def test_equal_clusters_have_the_cluster_robust_error_of_statsmodels() -> None:
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(30), 4)
    values = rng.normal(0, 1, 30)[clusters] + rng.normal(0, 1, 120)
    fit = sm.OLS(values, np.ones(120)).fit(cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": False})
    # statsmodels' is CR0, Σ e_c²/n²; leaving out one of G equal clusters makes G/(G − 1) times as much of it.
    assert mean_estimate(values, clusters).se ** 2 == pytest.approx(float(fit.bse[0]) ** 2 * 30 / 29)
    whole = mean_estimate(linearized_means(values, clusters))
    assert (whole.value, whole.se) == (pytest.approx(values.mean()), pytest.approx(mean_estimate(values, clusters).se))


@given(SAMPLES, st.sampled_from([0.05, 0.01]))
def test_limits_are_where_the_test_turns(sample: np.ndarray, alpha: float) -> None:
    found = mean_estimate(sample)
    if found.se == 0:
        assert ci_lower(found, alpha) == ci_upper(found, alpha) == found.value
        return
    assert p_greater(found, ci_lower(found, alpha)) == pytest.approx(alpha, rel=1e-6)
    assert p_greater(-found, -ci_upper(found, alpha)) == pytest.approx(alpha, rel=1e-6)
    assert ci_lower(found, alpha) < found.value < ci_upper(found, alpha)


def test_an_estimate_is_of_all_values() -> None:
    found = estimate(np.array([0.0, 0.0, 1.0, 1.0, np.nan]))
    assert (found.mean, found.n) == (0.5, 4)
    assert estimate(np.ones(9)).ci95 is None
    assert estimate(np.array([0.3])).ci95 is None
    assert estimate(np.array([0.3, 0.4]), clusters=np.zeros(2, int)).ci95 is None
    assert absolute_estimate(Estimate(-0.2, (-0.5, 0.1), 9)).ci95 == (0.0, 0.5)
    assert absolute_estimate(Estimate(-0.2, (-0.5, -0.1), 9)) == Estimate(0.2, (0.1, 0.5), 9)


def test_skewed_values_are_not_claimed_too_often() -> None:
    rng = np.random.default_rng(0)
    estimates = [mean_estimate(rng.exponential(1.0, 30)) for _ in range(600)]
    most = 0.05 + 3 * (0.05 * 0.95 / 600) ** 0.5
    for claims in ([p_greater(one, 1.0) for one in estimates], [p_greater(-one, -1.0) for one in estimates]):
        assert np.mean(np.array(claims) <= 0.05) <= most
    # The t-test alone does: this is what the transformation is for.
    assert np.mean([stats.t.sf((1 - one.value) / one.se, 29) <= 0.05 for one in estimates]) > most


def test_power_is_that_of_the_non_central_t() -> None:
    found = MeanEstimate(0.0, 0.01, 999.0, 0.0)
    distance = detectable_distance(found, 0.05)
    assert distance == pytest.approx((1.6464 + 0.8418) * 0.01, rel=1e-3)
    assert power(found, distance, 0.05) == pytest.approx(0.8)
    assert power(found, 0.0, 0.05) == pytest.approx(0.05)
