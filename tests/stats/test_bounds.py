"""Whether a figure keeps to a bound, and how many queries show it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenrank.stats.bounds import limit_absolute, margin_absolute, no_loss, outcome
from evenrank.stats.compare import AbsoluteMeans, absolute_means, p_size_greater, p_size_less
from evenrank.stats.estimate import MeanEstimate, mean_estimate, p_greater
from evenrank.stats.planning import chance_to_hold, queries_to_decide, queries_to_hold
from slow_stats import hall_tests

FINITE = st.floats(-3, 3).map(lambda value: round(value, 3))
rng = np.random.default_rng(7)


def slow_holds(z: list[float], loss: float) -> bool:
    z = [*z, -loss]
    mean = math.fsum(z) / len(z)
    s = math.sqrt(math.fsum((x - mean) ** 2 for x in z) / (len(z) - 1))
    return mean - float(stats.t.ppf(0.97, len(z) - 1)) * s / math.sqrt(len(z)) > 0


@given(st.integers(20, 400), st.sampled_from([0.02, 0.05, 0.2]), st.integers(0, 10**6))
def test_no_loss_is_shown_as_the_rule_is_written(n: int, margin: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    base = draw.beta(2, 1.5, n)
    new = base * draw.choice([1.0, 0.95, 0.5], n, p=[0.9, 0.05, 0.05])
    test = no_loss(new, base, margin)
    assert test is not None
    assert (test.p_holds() <= 0.05) == slow_holds((new - (1 - margin) * base).tolist(), 1 - margin)
    assert (test.limits()[0] >= -margin) == (test.p_holds() <= 0.05)
    assert test.value == pytest.approx(new.mean() / base.mean() - 1)
    assert test.p_violated() == pytest.approx(violated(new - (1 - margin) * base))


def violated(z: np.ndarray) -> float:
    """Twice the one-sided p of z̄ < 0, below 30 queries also with one value more as far above as the furthest."""
    samples = [z.tolist()]
    if len(z) < 30:
        samples.append([*z.tolist(), z.mean() + np.abs(z - z.mean()).max()])
    tests = [hall_tests(sample, 0.0, 6) for sample in samples]
    return min(1.0, 2 * max(float(stats.t.cdf(t, df)) for *both, df in tests for t in both))


def test_repeated_queries_do_not_show_that_nothing_is_lost() -> None:
    base = rng.beta(2, 1.5, 150)
    once = no_loss(base, base)
    often = no_loss(np.repeat(base, 4), np.repeat(base, 4), clusters=np.repeat(np.arange(150), 4))
    assert once is not None
    assert often is not None
    assert often.p_holds() == pytest.approx(once.p_holds())
    assert (once.design_effect, often.design_effect) == (1.0, pytest.approx(4.0))
    assert no_loss(np.repeat(base, 4), np.repeat(base, 4)).p_holds() < once.p_holds() / 10


def test_few_queries_show_no_loss_and_violate_nothing() -> None:
    base = rng.beta(2, 1, 14)
    assert no_loss(base, base).p_holds() == 1
    assert no_loss(base[:5] / 2, base[:5]).p_violated() is None
    assert no_loss(rng.beta(1, 2, 40) / 4, np.full(40, 0.9)).p_violated() < 0.001
    assert no_loss(np.array([0.1]), np.array([0.4])) is None
    assert no_loss(np.zeros(9), np.zeros(9)) is None
    assert no_loss(base, base, greatest=None) is None


@given(st.integers(20, 300), st.floats(0.0, 0.3), st.integers(0, 10**6))
def test_a_limit_holds_where_both_of_its_sides_do(n: int, lean: float, seed: int) -> None:
    values = np.random.default_rng(seed).normal(lean, 0.2, n)
    test = limit_absolute([values], 0.2, 1.0)
    sides = [slow_holds((0.2 - sign * values).tolist(), 0.8) for sign in (1, -1)]
    assert (test.p_holds() <= 0.05) == all(sides)
    low, high = test.limits()
    assert (high <= 0.2) == all(sides)
    assert low <= test.value <= high
    turned = limit_absolute([-values], 0.2, 1.0)
    assert (turned.value, *turned.limits()) == pytest.approx((test.value, *test.limits()))
    assert turned.p_violated() == pytest.approx(test.p_violated())


def test_a_limit_needs_a_query_that_leans_as_far_as_any_can() -> None:
    values = rng.normal(0.0, 0.2, 400)
    near, far, unknown = (limit_absolute([values], 0.1, greatest) for greatest in (1.0, 60.0, math.inf))
    assert near.p_holds() <= 0.05 < far.p_holds()
    assert unknown.p_holds() == 1.0
    for sign in (1, -1):
        test = limit_absolute([sign * (values + 0.2)], 0.1, 1.0)
        assert outcome(test, test.p_violated()) == "violated"
    # Unknown or not, what lies beyond the limit is shown.
    assert limit_absolute([values + 0.2], 0.1, math.inf).p_violated() < 0.001


def slow_larger(own: np.ndarray, other: np.ndarray, bound: float) -> float:
    """The p of the claim |μ| − |ν| > bound for the estimate's own sign, without the chance of the other one."""
    sign = -1 if own.mean() < 0 else 1
    return max(p_greater(mean_estimate(sign * own - t * other, None, 10.0), bound) for t in (1, -1))


@given(st.lists(st.tuples(FINITE, FINITE), min_size=4, max_size=10), FINITE)
def test_sizes_are_the_intersection_of_their_signs(pairs: list[tuple[float, float]], bound: float) -> None:
    own, other = np.array(pairs).T
    found = absolute_means([own], [other], [1.0])
    slow = slow_larger(own, other, bound)
    assert slow - 1e-9 <= p_size_greater(found, bound) <= min(1.0, 2 * slow) + 1e-9
    assert found.value == pytest.approx(abs(own.mean()) - abs(other.mean()))
    swapped = absolute_means([other], [own], [1.0])
    assert p_size_less(found, bound, inclusive=False) == pytest.approx(p_size_greater(swapped, -bound), abs=1e-9)


def test_a_size_beside_none_is_the_two_sided_test() -> None:
    values = np.array([0.1, -0.2, 0.4, 0.3, 0.2, -0.3, 0.5, 0.2])
    mean = mean_estimate(values)
    plain = MeanEstimate(mean.value, mean.se, mean.df)
    symmetric = AbsoluteMeans(plain, MeanEstimate(0.0, 0.0, 1.0), plain, plain)
    assert p_size_greater(symmetric, 0.0) == pytest.approx(stats.ttest_1samp(values, 0).pvalue)
    within = max(stats.ttest_1samp(values, b, alternative=a).pvalue for b, a in ((0.4, "less"), (-0.4, "greater")))
    assert p_size_less(symmetric, 0.4) == pytest.approx(within)


def test_the_limits_of_a_difference_of_sizes_are_where_its_tests_turn() -> None:
    own, other = np.random.default_rng(3).normal([[-0.3], [0.1]], 1, (2, 60))
    test = margin_absolute([own], [other], 0.5, 3.0)
    low, high = test.limits(0.05)
    assert low < test.value < high
    assert p_size_greater(test.means, low) == pytest.approx(0.025, abs=1e-6)
    assert p_size_less(test.held, high) == pytest.approx(0.03, abs=1e-6)
    # The query that leans as far as any does to the side of the mean, and the other run not at all.
    assert test.held.own.value == pytest.approx((60 * own.mean() - 3.0) / 61)
    assert test.held.other.value == pytest.approx(60 * other.mean() / 61)


@pytest.mark.parametrize(
    ("own", "other", "bound"), [(0.0, 0.0, 0.0), (0.2, 0.2, 0.0), (0.2, 0.0, 0.2), (-0.3, 0.1, 0.2), (0.1, -0.3, -0.2)]
)
def test_sizes_on_the_bound_are_not_claimed_too_often(own: float, other: float, bound: float) -> None:
    draws = np.random.default_rng(1)
    found = []
    for _ in range(600):
        shared = draws.normal(0, 0.7, 50)
        values = own + shared + draws.normal(0, 0.7, 50), other - shared + draws.normal(0, 0.2, 50)
        found.append(absolute_means([values[0]], [values[1]], [1.0]))
    most = 0.05 + 3 * (0.05 * 0.95 / 600) ** 0.5
    for claims in ([p_size_greater(one, bound) for one in found], [p_size_less(one, bound) for one in found]):
        assert np.mean(np.array(claims) <= 0.05) <= most


# --- planning ---------------------------------------------------------------------------------------------------------


def test_identical_runs_need_about_so_many_queries() -> None:
    """About 100, 165 and 250 for 5, 3 and 2% at a mean of .59 (chance .5: exactly where the test turns)."""
    needed = [queries_to_hold(m * 0.59, m * 0.25, 1 - m, chance=0.5) for m in (0.05, 0.03, 0.02)]
    assert needed == [96, 161, 243]
    for n, holds in ((160, False), (161, True)):
        base = np.full(n, 0.59) + 0.25 * stats.zscore(np.arange(n), ddof=1)
        test = no_loss(base, base, 0.03)
        assert test is not None
        assert (test.p_holds() <= 0.05) == holds
    assert queries_to_hold(0.0, 0.1, 1.0) is None


def test_equally_good_runs_hold_at_the_planned_number_in_four_of_five_samples() -> None:
    draws = np.random.default_rng(5)

    def sample(n: int) -> tuple[np.ndarray, np.ndarray]:
        base = draws.beta(2, 1.5, n)
        return base + draws.normal(0, 0.15, n), base

    new, base = sample(200)
    z = new - base - (new - base).mean() + 0.05 * base
    n = queries_to_hold(0.05 * base.mean(), float(z.std(ddof=1)), 0.95)
    assert n is not None
    assert np.mean([no_loss(*sample(n)).p_holds() <= 0.05 for _ in range(400)]) == pytest.approx(0.82, abs=0.1)
    assert queries_to_hold(0.05 * base.mean(), float(z.std(ddof=1)), 0.95, design_effect=2.5) == math.ceil(2.5 * n)


def test_how_many_queries_decide_by_the_normal_formula() -> None:
    # n((1.645 + .842) · .1/.05)² = 24.7 n.
    assert queries_to_decide(0.05, 0.1, 100, 0.05) == math.ceil(100 * (2 * (1.644854 + 0.841621)) ** 2)
    assert queries_to_decide(5.0, 0.1, 100, 0.05) == 101
    assert queries_to_decide(0.0, 0.1, 100, 0.05) is None


@pytest.mark.parametrize(("n", "chance"), [(60, 0.02), (103, 0.13), (210, 0.61)])
def test_the_chance_that_equally_good_runs_pass_is_theirs(n: int, chance: float) -> None:
    draw = np.random.default_rng(n)
    passed = 0
    for _ in range(1000):
        base = draw.uniform(0, 1, n)
        new = base + draw.normal(0, 0.12, n)
        test = no_loss(new, base, 0.05)
        passed += test is not None and test.p_holds() <= 0.05
    sd = math.sqrt(0.12**2 + 0.05**2 / 12)
    expected = chance_to_hold(n, 0.025, sd, 0.95)
    assert expected == pytest.approx(chance, abs=0.03)
    assert passed / 1000 == pytest.approx(expected, abs=0.04)


@given(st.floats(0.01, 0.2), st.floats(0.05, 0.6), st.floats(0.2, 0.9), st.sampled_from([1.0, 2.5]))
def test_the_number_of_queries_has_the_chance_that_it_was_asked_for(
    mean: float, sd: float, chance: float, effect: float
) -> None:
    n = queries_to_hold(mean, sd, 1.0, chance=chance, design_effect=effect)
    assert n is not None
    assert chance_to_hold(n, mean, sd, 1.0, design_effect=effect) >= chance - 1e-9
    fewer = math.floor(n / effect) - 1
    assert fewer < 15 or chance_to_hold(round(fewer * effect - 0.5), mean, sd, 1.0, design_effect=effect) < chance
