"""Intervals, tests and corrections."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hst
from scipy import paired_t_test, stats

from evenrank.files.types import holm
from evenrank.stats.bounds import margin_absolute, no_loss
from evenrank.stats.clusters import cluster_means
from evenrank.stats.compare import compare, compare_abs_means, compare_combined, corrected
from evenrank.stats.estimate import Estimate, absolute_estimate, estimate
from evenrank.stats.planning import queries_to_hold
from evenrank.stats.ratios import proportion
from slow_inference import slow_compare

rng = np.random.default_rng(7)
VALUES, BASELINE = rng.random(40), rng.random(40)


def test_the_paired_t_test_is_scipys():
    found = paired_t_test(VALUES, BASELINE)
    assert found.n == 40
    assert found.difference == pytest.approx((VALUES - BASELINE).mean())
    assert found.t_p == pytest.approx(stats.ttest_rel(VALUES, BASELINE).pvalue)


def test_undefined_values_are_left_out_in_pairs():
    values, baseline = VALUES.copy(), BASELINE.copy()
    values[:5], baseline[3:9] = np.nan, np.nan
    found = paired_t_test(values, baseline)
    assert found.n == 31
    assert found.t_p == pytest.approx(stats.ttest_rel(VALUES[9:], BASELINE[9:]).pvalue)


@given(hst.integers(14, 80), hst.integers(2, 60), hst.integers(0, 10**6))
def test_the_paired_t_test_of_values_with_and_without_ties_is_scipys(n: int, sizes: int, seed: int):
    rng = np.random.default_rng(seed)
    values = rng.integers(-sizes, sizes, n) / 7 if seed % 3 else rng.normal(size=n)
    found = paired_t_test(values, np.zeros(n))
    if values.any() and np.ptp(values):
        assert found.t_p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=1e-9, abs=1e-300)


def test_edges_of_the_paired_t_test():
    assert paired_t_test(VALUES, VALUES).t_p == 1.0
    assert paired_t_test(np.array([1.0]), np.array([0.5])).t_p is None
    assert paired_t_test(np.array([np.nan]), np.array([0.5])).difference is None
    assert paired_t_test(np.full(9, 2.0), np.full(9, 1.0)).t_p is None
    # What is left of a difference after rounding is none.
    assert paired_t_test(VALUES + 1e-13, VALUES).t_p == 1.0


def test_holm_hand_worked():
    assert holm([0.01, 0.04, None, 0.03]) == pytest.approx([0.03, 0.06, None, 0.06])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


@given(hst.lists(hst.floats(0, 1), min_size=1, max_size=8))
def test_holm_equals_the_slow_version(values):
    found = holm(values)
    ranked = sorted(range(len(values)), key=lambda i: values[i])
    for place, i in enumerate(ranked):
        expected = max(min(1, (len(values) - j) * values[ranked[j]]) for j in range(place + 1))
        assert found[i] == pytest.approx(expected)


# --- the mean of values differs from 0 -------------------------------------------------------------------------------

few = hst.lists(hst.one_of(hst.just(0.0), hst.floats(-3, 3)), min_size=2, max_size=60)


@given(few)
def test_a_mean_is_compared_with_0_as_the_rule_is_written(values: list[float]) -> None:
    found = compare(np.array(values))
    present = np.array([x for x in values if abs(x) > 1e-12])
    k, n = len(present), len(values)
    assert (found.n, found.mean) == (n, pytest.approx(np.mean(values), abs=1e-12))
    assert (found.p is None) == (k < 15) == (found.reason is not None)
    if k < 2 or np.ptp(present) < 1e-3:
        return
    p, low, high = slow_compare(values)
    if k >= 15:
        assert found.p == pytest.approx(p, rel=1e-6, abs=1e-12)
    assert found.ci95 is not None
    if k == n:
        assert found.ci95 == pytest.approx((low, high), rel=1e-5, abs=1e-6)
    # No narrower than the rule's, and 0 is outside exactly where the test excludes it.
    assert found.ci95[0] <= low * k / n + 1e-6
    assert found.ci95[1] >= high * k / n - 1e-6
    if found.p is not None and abs(found.p - 0.05) > 1e-6:
        assert found.shown == (not found.ci95[0] <= 0 <= found.ci95[1])


def test_zeros_change_the_interval_and_not_the_verdict() -> None:
    values = np.array([-0.1, 0.2, 0.3, 0.4] * 8)
    alone, among = compare(values), compare(np.append(values, np.zeros(68)))
    assert (alone.p, alone.verdict) == (among.p, "shown")
    assert among.mde == pytest.approx(0.32 * alone.mde)


def test_what_cannot_be_told() -> None:
    assert compare(np.zeros(40)).reason == "every value is 0"
    assert compare(np.append(np.zeros(40), 0.1)).reason == "only one of 41 values is not 0"
    assert compare(np.full(5, np.nan)).reason == "no value is defined"
    found = compare(np.append(rng.normal(1, 0.1, 14), np.zeros(6)))
    assert found.reason == "only 14 of 20 queries differ from 0, where 15 are needed"
    assert (found.verdict, found.p, found.ci95 is not None) == ("cannot be told", None, True)


def test_noticeable_is_noticed_in_8_of_10() -> None:
    draws = np.random.default_rng(3)
    samples = draws.normal(0, 1, (400, 100))
    size = np.mean([compare(one).mde for one in samples])
    assert np.mean([compare(one + size).shown for one in samples]) == pytest.approx(0.8, abs=0.05)


def test_clusters_are_one_value_each() -> None:
    values, clusters = np.array([1.0, 3.0, 2.0, 6.0]), np.array([7, 7, 1, 2])
    assert cluster_means(values, clusters).tolist() == [2.0, 6.0, 2.0]
    shared = np.repeat(np.arange(40), 5)
    assert compare(cluster_means(rng.normal(0.5, 1, 40)[shared], shared)).n == 40
    # Ten passages tell nothing, however many questions they have.
    assert compare(cluster_means(np.ones(200) + rng.normal(0, 1, 200), np.repeat(np.arange(10), 20))).p is None


def test_an_estimate_is_of_all_values() -> None:
    found = estimate(np.array([0.0, 0.0, 1.0, 1.0, np.nan]))
    assert (found.mean, found.n) == (0.5, 4)
    assert estimate(np.ones(9)).ci95 is None
    assert estimate(np.array([0.3])).ci95 is None
    assert absolute_estimate(Estimate(-0.2, (-0.5, 0.1), 9)).ci95 == (0.0, 0.5)
    assert absolute_estimate(Estimate(-0.2, (-0.5, -0.1), 9)) == Estimate(0.2, (0.1, 0.5), 9)


def test_corrections_decide_the_verdict() -> None:
    found = corrected([compare(rng.normal(mean, 1, 200)) for mean in (0.5, 0.16, 0.16, 0.0)])
    assert [one.holm_p for one in found] == holm([one.p for one in found])
    assert found[0].verdict == "shown"
    assert all(one.shown == (one.holm_p < 0.05) for one in found)


def test_two_groups_are_compared_by_welch_where_nothing_is_skewed() -> None:
    first, second = np.linspace(0, 1, 40), np.linspace(0, 3, 21)
    found = compare_combined([first, second], [1.0, -1.0])
    test = stats.ttest_ind(first, second, equal_var=False)
    assert (found.mean, found.p) == (pytest.approx(-1.0), pytest.approx(test.pvalue))
    assert found.ci95 == pytest.approx(tuple(test.confidence_interval()))
    assert compare_combined([first, second[:14]], [1.0, -1.0]).verdict == "cannot be told"


def test_sizes_are_compared_whatever_their_signs() -> None:
    base = rng.normal(0.3, 0.3, 200)
    turned = compare_abs_means([-base], [base], [1.0])
    assert (turned.mean, turned.p) == (0.0, 1.0)
    more = compare_abs_means([-2 * base], [base], [1.0])
    assert (more.mean, more.verdict) == (pytest.approx(base.mean()), "shown")
    assert more.ci95 is not None
    assert more.ci95[0] > 0


# --- bounds ----------------------------------------------------------------------------------------------------------


def slow_holds(new: list[float], base: list[float], margin: float, greatest: float) -> bool:
    z = [a - (1 - margin) * b for a, b in zip(new, base, strict=True)] + [-(1 - margin) * greatest]
    mean = math.fsum(z) / len(z)
    s = math.sqrt(math.fsum((x - mean) ** 2 for x in z) / (len(z) - 1))
    return mean - float(stats.t.ppf(0.97, len(z) - 1)) * s / math.sqrt(len(z)) > 0


@given(hst.integers(20, 400), hst.sampled_from([0.02, 0.05, 0.2]), hst.integers(0, 10**6))
def test_no_loss_is_shown_as_the_rule_is_written(n: int, margin: float, seed: int) -> None:
    draw = np.random.default_rng(seed)
    base = draw.beta(2, 1.5, n)
    new = base * draw.choice([1.0, 0.95, 0.5], n, p=[0.9, 0.05, 0.05])
    test = no_loss(new, base, margin)
    assert test is not None
    assert (test.p_holds() <= 0.05) == slow_holds(new.tolist(), base.tolist(), margin, 1.0)
    assert (test.limits()[0] >= -margin) == (test.p_holds() <= 0.05)
    assert test.value == pytest.approx(new.mean() / base.mean() - 1)


def test_equal_runs_need_about_so_many_queries() -> None:
    """verdicts.md: about 100, 165 and 250 for 5, 3 and 2% at a mean of .59."""
    needed = [queries_to_hold(m * 0.59, m * 0.25, 1 - m) for m in (0.05, 0.03, 0.02)]
    assert needed == [96, 161, 243]
    for n, held in ((160, False), (161, True)):
        base = np.full(n, 0.59) + 0.25 * stats.zscore(np.arange(n), ddof=1)
        test = no_loss(base, base, 0.03)
        assert test is not None
        assert (test.p_holds() <= 0.05) == held
    assert queries_to_hold(0.0, 0.1, 1.0) is None


def test_few_queries_show_no_loss_and_break_nothing() -> None:
    base = rng.beta(2, 1, 14)
    assert no_loss(base, base).p_holds() > 0.05
    assert no_loss(base / 2, base).p_violated() is None
    assert no_loss(rng.beta(1, 2, 40) / 4, np.full(40, 0.9)).p_violated() < 0.001
    assert no_loss(np.array([0.1]), np.array([0.4])) is None
    assert no_loss(np.zeros(9), np.zeros(9)) is None


def test_a_limit_needs_both_sides_and_a_query_that_leans_far() -> None:
    values = rng.normal(0.0, 0.2, 400)
    near, far = (margin_absolute([values], None, 0.1, greatest) for greatest in (1.0, 60.0))
    assert near.p_holds() <= 0.05 < far.p_holds()
    low, high = near.limits()
    assert (low, high < 0.1) == (0.0, True)
    assert margin_absolute([values + 0.2], None, 0.1, 1.0).p_violated() < 0.001
    assert margin_absolute([-values - 0.2], None, 0.1, 1.0).p_violated() < 0.001


def test_proportions_are_wilsons() -> None:
    from scipy.stats import binomtest

    for part, n in ((0, 5), (3, 9), (50, 60)):
        found = binomtest(part, n).proportion_ci(method="wilson")
        assert proportion(part, n) == pytest.approx((found.low, found.high))
    assert proportion(0, 0) is None
