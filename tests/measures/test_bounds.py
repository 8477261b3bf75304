"""The tests behind bounds: hand-worked cases, slow versions, how often they are wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenrank.stats.bounds import margin_absolute
from evenrank.stats.compare import AbsoluteMeans, absolute_means, p_size_greater, p_size_less
from evenrank.stats.estimate import MeanEstimate, ci_lower, ci_upper, combined_estimate, p_greater
from evenrank.stats.planning import detectable_distance, power, queries_to_decide

FINITE = st.floats(-3, 3).map(lambda value: round(value, 3))
SAMPLES = st.lists(FINITE, min_size=3, max_size=12).map(np.array)


def test_a_worked_mean() -> None:
    # 1, 2, 3: mean 2, spread 1, error 1/√3, no skewness: the limits are 2 ± 2.92/√3.
    found = combined_estimate([np.array([1.0, 2.0, 3.0])])
    assert found == MeanEstimate(2.0, pytest.approx(3**-0.5), pytest.approx(2.0), pytest.approx(0.0))
    assert ci_lower(found, 0.05) == pytest.approx(2 - 2.919986 / 3**0.5)
    assert ci_upper(found, 0.05) == pytest.approx(2 + 2.919986 / 3**0.5)
    # (1.645 + 0.842)² · error² / distance².
    assert queries_to_decide(0.5, found.error, 0.05) == pytest.approx((1.644854 + 0.841621) ** 2 / 3 / 0.25, rel=1e-5)
    assert queries_to_decide(0.0, found.error, 0.05) is None


def test_a_worked_skewness() -> None:
    # 0, 0, 3: mean 1, error 1, third moment 2, plain variance 2: κ = (1 + 6/3) · 2/2^1.5 / √3 = √1.5. For T = 1,
    # g = 1 + κ/3 + κ²/27 + κ/6 is above T, and for −κ it is 1 − κ/3 + κ²/27 − κ/6, below it. The larger p counts.
    found = combined_estimate([np.array([0.0, 0.0, 3.0])])
    assert (found.error, found.skew) == (pytest.approx(1.0), pytest.approx(1.5**0.5))
    assert p_greater(found, 0.0) == pytest.approx(stats.t.sf(1.0, 2))
    assert p_greater(-found, -2.0) == pytest.approx(stats.t.sf(1 + 1.5 / 27 - 1.5**0.5 / 2, 2))


@given(SAMPLES, SAMPLES, FINITE)
def test_a_difference_of_means_is_welchs_test(first: np.ndarray, second: np.ndarray, bound: float) -> None:
    if first.std() < 1e-6 or second.std() < 1e-6:
        return
    found = combined_estimate([first, second], [1.0, -1.0])
    welch = stats.ttest_ind(first - bound, second, equal_var=False, alternative="greater")
    assert (found.mean - bound) / found.error == pytest.approx(welch.statistic)
    assert found.freedom == pytest.approx(welch.df)
    # Never clearer than the t-test.
    assert p_greater(found, bound) >= welch.pvalue - 1e-9


@given(SAMPLES, st.sampled_from([0.05, 0.01]))
def test_limits_are_where_the_test_turns(sample: np.ndarray, alpha: float) -> None:
    found = combined_estimate([sample])
    if found.error == 0:
        assert ci_lower(found, alpha) == ci_upper(found, alpha) == found.mean
        return
    assert p_greater(found, ci_lower(found, alpha)) == pytest.approx(alpha, rel=1e-6)
    assert p_greater(-found, -ci_upper(found, alpha)) == pytest.approx(alpha, rel=1e-6)
    assert ci_lower(found, alpha) < found.mean < ci_upper(found, alpha)


def slow_larger(own: np.ndarray, other: np.ndarray, bound: float) -> float:
    """The p of the claim |μ| − |ν| > bound for the estimate's own sign, without the chance of the other one."""
    sign = -1 if own.mean() < 0 else 1
    return max(p_greater(combined_estimate([sign * own - t * other]), bound) for t in (1, -1))


@given(st.lists(st.tuples(FINITE, FINITE), min_size=4, max_size=10), FINITE)
def test_sizes_are_the_intersection_of_their_signs(pairs: list[tuple[float, float]], bound: float) -> None:
    own, other = np.array(pairs).T
    found = absolute_means([own], [other], [1.0])
    slow = slow_larger(own, other, bound)
    assert slow - 1e-9 <= p_size_greater(found, bound) <= min(1.0, 2 * slow) + 1e-9
    assert found.value == pytest.approx(abs(own.mean()) - abs(other.mean()))
    swapped = absolute_means([other], [own], [1.0])
    assert p_size_less(found, bound, reached=False) == pytest.approx(p_size_greater(swapped, -bound), abs=1e-9)


def test_a_size_alone_is_the_two_sided_test_at_zero_and_two_one_sided_tests_within() -> None:
    values = np.array([0.1, -0.2, 0.4, 0.3, 0.2, -0.3, 0.5, 0.2])
    found = absolute_means([values], None, [1.0])
    plain = MeanEstimate(found.own.mean, found.own.error, found.own.freedom, 0.0)
    symmetric = AbsoluteMeans(plain, found.other, plain, plain)
    assert p_size_greater(symmetric, 0.0) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    within = max(stats.ttest_1samp(values, b, alternative=a).pvalue for b, a in ((0.4, "less"), (-0.4, "greater")))
    assert p_size_less(symmetric, 0.4) == pytest.approx(within)


def test_the_limits_of_a_difference_of_sizes_are_where_its_tests_turn() -> None:
    rng = np.random.default_rng(3)
    test = margin_absolute([rng.normal(-0.3, 1, 60)], [rng.normal(0.1, 1, 60)], 0.5, 3.0)
    low, high = test.limits(0.05)
    assert low < test.value < high
    assert p_size_greater(test.found, low) == pytest.approx(0.025, abs=1e-6)
    assert p_size_less(test.held, high) == pytest.approx(0.03, abs=1e-6)
    # The query that leans as far as any does to the side of the mean, and the other run not at all.
    assert test.held.own.mean == pytest.approx((60 * test.found.own.mean - 3.0) / 61)
    assert test.held.other.mean == pytest.approx(60 * test.found.other.mean / 61)


def wrong(claims: list[float]) -> float:
    return float(np.mean(np.array(claims) <= 0.05))


MOST = 0.05 + 3 * (0.05 * 0.95 / 600) ** 0.5


def test_skewed_values_are_not_claimed_too_often() -> None:
    rng = np.random.default_rng(0)
    estimates = [combined_estimate([rng.exponential(1.0, 30)]) for _ in range(600)]
    assert wrong([p_greater(one, 1.0) for one in estimates]) <= MOST
    assert wrong([p_greater(-one, -1.0) for one in estimates]) <= MOST
    # The t-test alone does: this is what the transformation is for.
    assert np.mean([stats.t.sf((1 - one.mean) / one.error, 29) <= 0.05 for one in estimates]) > MOST


@pytest.mark.parametrize(
    ("own", "other", "bound"), [(0.0, 0.0, 0.0), (0.2, 0.2, 0.0), (0.2, 0.0, 0.2), (-0.3, 0.1, 0.2), (0.1, -0.3, -0.2)]
)
def test_sizes_on_the_bound_are_not_claimed_too_often(own: float, other: float, bound: float) -> None:
    rng = np.random.default_rng(1)
    found = []
    for _ in range(600):
        shared = rng.normal(0, 0.7, 50)
        found.append(
            absolute_means([own + shared + rng.normal(0, 0.7, 50)], [other - shared + rng.normal(0, 0.2, 50)], [1.0])
        )
    assert wrong([p_size_greater(one, bound) for one in found]) <= MOST
    assert wrong([p_size_less(one, bound) for one in found]) <= MOST


def test_power_is_that_of_the_non_central_t() -> None:
    found = MeanEstimate(0.0, 0.01, 999.0, 0.0)
    distance = detectable_distance(found, 0.05)
    assert distance == pytest.approx((1.6464 + 0.8418) * 0.01, rel=1e-3)
    assert power(found, distance, 0.05) == pytest.approx(0.8)
    assert power(found, 0.0, 0.05) == pytest.approx(0.05)


# 0.01 to 0.05 are of the size of the error, where an estimate of the other sign counts in part.
@pytest.mark.parametrize("bound", [0.0, 0.01, 0.02, 0.05, 0.3])
def test_what_an_absolute_value_catches_is_broken_in_8_of_10_samples(bound: float) -> None:
    rng = np.random.default_rng(2)
    own = MeanEstimate(0.0, 0.5 / 117**0.5, 116.0, 0.0)
    drawn = [margin_absolute([rng.normal(0, 0.5, 117)], None, bound, 3.0) for _ in range(600)]
    caught = replace(drawn[0], found=AbsoluteMeans(own, own, own, own)).caught(0.05)
    moved = [margin_absolute([rng.normal(-caught, 0.5, 117)], None, bound, 3.0) for _ in range(600)]
    assert np.mean([one.p_violated() <= 0.05 for one in moved]) == pytest.approx(0.8, abs=3 * (0.16 / 600) ** 0.5)
    assert drawn[0].power(drawn[0].caught(0.05), 0.05) == pytest.approx(0.8)
