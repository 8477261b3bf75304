"""Means and their intervals, whether they differ from 0 and from each other: the rules as written, and oracles."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evenrank.files.types import holm
from evenrank.stats.clusters import cluster_means, effective_clusters, linearized_means
from evenrank.stats.compare import (
    Comparison,
    compare,
    compare_abs_means,
    compare_combined,
    compare_groups,
    compare_to_random_order,
    corrected,
)
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
    p_two_sided,
)
from evenrank.stats.planning import detectable_distance, power
from evenrank.stats.random_effects import random_effects_test, size_test, unseen_share
from evenrank.stats.signed_rank import signed_rank_p
from slow_stats import jackknife, slow_compare

rng = np.random.default_rng(7)
FINITE = st.floats(-3, 3).map(lambda value: round(value, 3))
SAMPLES = st.lists(FINITE, min_size=3, max_size=12).map(np.array)
MOST = 0.05 + 3 * (0.05 * 0.95 / 600) ** 0.5
"""What at most of 600 tests reject where there is nothing, but for one in a thousand times."""


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
    for claims in ([p_greater(one, 1.0) for one in estimates], [p_greater(-one, -1.0) for one in estimates]):
        assert np.mean(np.array(claims) <= 0.05) <= MOST
    # The t-test alone does: this is what the transformation is for.
    assert np.mean([stats.t.sf((1 - one.value) / one.se, 29) <= 0.05 for one in estimates]) > MOST


def test_power_is_that_of_the_non_central_t() -> None:
    found = MeanEstimate(0.0, 0.01, 999.0, 0.0)
    distance = detectable_distance(found, 0.05)
    assert distance == pytest.approx((1.6464 + 0.8418) * 0.01, rel=1e-3)
    assert power(found, distance, 0.05) == pytest.approx(0.8)
    assert power(found, 0.0, 0.05) == pytest.approx(0.05)


# --- tests ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_that_of_statsmodels(values: list[float]) -> None:
    assert holm(values) == pytest.approx(multipletests(values, method="holm")[1])
    assert holm([0.01, None, 0.04]) == [0.02, None, 0.04]


@given(st.lists(st.one_of(st.just(0.0), st.floats(-3, 3)), min_size=2, max_size=60), st.sampled_from(["keep", "drop"]))
def test_a_mean_is_compared_with_0_as_the_rule_is_written(values: list[float], zeros: Literal["keep", "drop"]) -> None:
    found = compare(np.array(values), zeros=zeros, reach=3.0)
    present = np.array([x for x in values if abs(x) > 1e-12])
    k, n = len(present), len(values)
    least = 6 if zeros == "keep" else 10
    assert (found.n, found.mean) == (n, pytest.approx(np.mean(values), abs=1e-12))
    assert (found.p is None) == (k < least) == (found.reason is not None)
    counted = np.array(values) if zeros == "keep" else present
    if k < 2 or np.ptp(counted) < 1e-3:
        return
    p, low, high = slow_compare(values, zeros)
    share = 1.0 if zeros == "keep" else k / n
    if k >= least:
        assert found.p == pytest.approx(p, rel=1e-6, abs=1e-12)
    assert found.ci95 is not None
    if share == 1:
        assert found.ci95 == pytest.approx((low, high), rel=1e-5, abs=1e-6)
    # No narrower than the rule's, and 0 is outside exactly where the test excludes it.
    assert found.ci95[0] <= low * share + 1e-6
    assert found.ci95[1] >= high * share - 1e-6
    if found.p is not None and abs(found.p - 0.05) > 1e-6:
        assert found.shown == (not found.ci95[0] <= 0 <= found.ci95[1])


def test_paired_runs_beside_the_tests_of_ranx() -> None:
    """What ranx 0.3.21 gives of the same values: Student's test, and Fisher's with 100,000 permutations."""
    i = np.arange(60)
    differences = (37 * i % 101) / 100 - (53 * i + 7) % 101 / 100 * 0.8
    student, fisher = 0.07695464674998274, 0.07873
    mean = mean_estimate(differences)
    assert p_two_sided(replace(mean, skewness=0.0)) == pytest.approx(student, rel=1e-12)
    # With the skewness of the values the p is no smaller than Student's, and near the permutations'.
    found = compare(differences, zeros="keep").p
    assert found is not None
    assert student <= found == pytest.approx(fisher, abs=0.005)


def test_zeros_change_the_interval_and_not_the_verdict_where_they_are_dropped() -> None:
    values = np.array([-0.1, 0.2, 0.3, 0.4] * 8)
    alone, among = compare(values), compare(np.append(values, np.zeros(68)))
    assert (alone.p, alone.verdict) == (among.p, "shown")
    assert among.mde == pytest.approx(0.32 * alone.mde)


FEW = np.append(np.linspace(0.8, 1.2, 9), np.zeros(6))
MANY = np.append(np.linspace(-1, 3, 49), 1.0)
LARGE = np.where(np.arange(50) < 40, 0, np.arange(50))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (compare(np.append(np.zeros(40), 0.1)), "only 1 of 41 queries differ from 0, where 10 are needed"),
        (compare(np.full(5, np.nan)), "no value is defined"),
        (compare(np.full(20, 0.5)), "every value is the same, and how far a value can lie is not known"),
        (compare(FEW), "only 9 of 15 queries differ from 0, where 10 are needed"),
        (
            compare(np.append(FEW[:5], np.zeros(30)), zeros="keep"),
            "the two differ in only 5 of 35 queries, where 6 are needed",
        ),
        (
            compare(MANY, clusters=np.repeat(np.arange(5), 10), zeros="keep"),
            "the queries are worth only 5.0 clusters, where 6 are needed",
        ),
        (compare(MANY, clusters=LARGE), "the queries are worth only 1.6 clusters, where 6 are needed"),
        (compare(np.ones(9), clusters=np.zeros(9, int)), "the queries are worth only 1.0 clusters, where 6 are needed"),
        (compare_to_random_order(MANY, np.zeros(50)), "every order of the candidates has the same figure"),
        (compare_groups(MANY[:14], MANY), "the group has only 14 queries, where 15 are needed"),
        (compare_groups(MANY, MANY[:14]), "there are only 14 other queries, where 15 are needed"),
        (compare_groups(np.ones(20), np.ones(20)), "every value is the same"),
        (
            compare_combined([MANY, np.where(np.arange(50) < 14, MANY, np.nan)], [1.0, -1.0]),
            "a group has only 14 queries, where 15 are needed",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_told(found: Comparison, reason: str) -> None:
    assert (found.reason, found.verdict, found.p) == (reason, "cannot be told", None)


def test_no_difference_and_an_interval_of_few() -> None:
    assert compare(np.zeros(40)).reason == "every value is 0"
    assert compare(FEW).ci95 is not None


def test_equal_values_are_judged_with_one_at_the_far_end() -> None:
    # 20 values of .5 and one of −1: t = (.5 · 20 − 1)/(.5 + 1) = 6 with 20 degrees of freedom.
    found = compare(np.full(20, 0.5), reach=1.0)
    assert found.p == pytest.approx(2 * stats.t.sf(6.0, 20))
    assert found.p == pytest.approx(stats.ttest_1samp([0.5] * 20 + [-1.0], 0).pvalue)
    assert compare(np.full(20, -0.5), reach=1.0).p == found.p
    # One value of −1 outweighs twenty of .05.
    assert compare(np.full(20, 0.05), reach=1.0).p == pytest.approx(1.0)


def test_the_smallest_detectable_difference_is_missed_in_a_fifth_at_least() -> None:
    draws = np.random.default_rng(3)
    samples = draws.normal(0, 1, (400, 100))
    size = np.mean([compare(one).mde for one in samples])
    assert np.mean([compare(one + size).shown for one in samples]) == pytest.approx(0.8, abs=0.05)
    # X = (t(.975; 99) + t(.8; 99)) s/√n.
    one = compare(samples[0])
    assert one.mde == pytest.approx((1.984217 + 0.845276) * samples[0].std(ddof=1) / 10, rel=1e-5)


def test_corrections_decide_the_verdict() -> None:
    found = corrected([compare(rng.normal(mean, 1, 200)) for mean in (0.5, 0.16, 0.16, 0.0)])
    assert [one.holm_p for one in found] == holm([one.p for one in found])
    assert found[0].verdict == "shown"
    assert all(one.shown == (one.holm_p < 0.05) for one in found)


# --- clusters of queries ----------------------------------------------------------------------------------------------


def test_repeated_queries_are_no_new_evidence() -> None:
    values = np.random.default_rng(0).normal(0.3, 1, 40)
    once = compare(values, zeros="keep")
    five = compare(np.repeat(values, 5), zeros="keep", clusters=np.repeat(np.arange(40), 5))
    assert (five.p, five.ci95) == (pytest.approx(once.p), pytest.approx(once.ci95))
    assert compare(np.repeat(values, 5), zeros="keep").p < once.p / 10


def test_clusters_are_one_value_each() -> None:
    values, clusters = np.array([1.0, 3.0, 2.0, 6.0]), np.array([7, 7, 1, 2])
    assert cluster_means(values, clusters).tolist() == [2.0, 6.0, 2.0]


# --- what an order adds -----------------------------------------------------------------------------------------------


def test_rare_members_need_more_than_a_t_test() -> None:
    # In 12 of 200 queries one document of a rare group stands first: rare, large and alike.
    values = np.append(np.full(12, 1.0) + rng.normal(0, 0.01, 12), np.zeros(188))
    assert compare(values).p < 1e-6
    found = compare_to_random_order(values, np.append(np.full(12, 20.0), np.zeros(188)))
    assert found.p == pytest.approx(2 * stats.norm.sf(values.sum() / math.sqrt(240)))
    assert found.verdict == "no difference shown"
    assert found.ci95[0] < 0 < found.ci95[1]


def test_the_same_order_in_a_cluster_counts_once() -> None:
    values, variances = np.repeat(np.tile([0.1, 0.3], 10), 2), np.full(40, 0.25)
    clusters = np.repeat(np.arange(20), 2)
    found = compare_to_random_order(values, variances, clusters=clusters)
    # Σ over 20 clusters of (.5 + .5)².
    assert found.p == pytest.approx(2 * stats.norm.sf(8 / math.sqrt(20)))


# --- groups of queries ------------------------------------------------------------------------------------------------


def test_two_groups_are_compared_by_welch_and_student() -> None:
    inside, others = rng.normal(0, 1, 20), rng.normal(0.8, 3, 90)
    found = compare_groups(inside, others)
    tests = [stats.ttest_ind(inside, others, equal_var=equal) for equal in (False, True)]
    assert found.p == pytest.approx(max(test.pvalue for test in tests))
    ends = [test.confidence_interval() for test in tests]
    assert found.ci95 == pytest.approx((min(e.low for e in ends), max(e.high for e in ends)))


def test_repeated_queries_make_no_groups_differ() -> None:
    values = rng.normal(0, 1, 60)
    first = np.arange(60) < 20
    inside, others = np.where(first, values, np.nan), np.where(first, np.nan, values)
    once = compare_groups(inside, others)
    twice = compare_groups(np.tile(inside, 2), np.tile(others, 2), clusters=np.tile(np.arange(60), 2))
    assert twice.p == pytest.approx(once.p)


def test_parts_are_compared_by_welch_where_nothing_is_skewed() -> None:
    first, second = np.linspace(0, 1, 40), np.linspace(0, 3, 40)
    second[21:] = np.nan
    found = compare_combined([first, second], [1.0, -1.0])
    test = stats.ttest_ind(first, second[:21], equal_var=False)
    assert found.mean == pytest.approx(first.mean() - second[:21].mean())
    assert found.p == pytest.approx(test.pvalue)
    assert found.ci95 == pytest.approx(tuple(test.confidence_interval()))


def test_sizes_are_compared_whatever_their_signs() -> None:
    base = rng.normal(0.3, 0.3, 200)
    turned = compare_abs_means([-base], [base], [1.0])
    assert (turned.mean, turned.p) == (0.0, 1.0)
    more = compare_abs_means([-2 * base], [base], [1.0])
    assert (more.mean, more.verdict) == (pytest.approx(base.mean()), "shown")
    assert more.ci95 is not None
    assert more.ci95[0] > 0


def test_the_signed_ranks_of_six_differences_by_hand() -> None:
    """Ranks 1 to 6, of which the negative ones are 1 and 2: W = 3, reached or passed by 5 of 64 signs on each side."""
    assert signed_rank_p(np.array([-0.1, -0.2, 0.3, 0.4, 0.5, 0.6, np.nan])) == pytest.approx(10 / 64)
    assert signed_rank_p(np.zeros(4)) == 1.0


# --- trainings --------------------------------------------------------------------------------------------------------


def test_few_trainings_are_these_trainings() -> None:
    rng = np.random.default_rng(3)
    table = rng.normal(0.1, 1, (3, 40))
    found, of_means = random_effects_test(list(table), same_queries=True), compare(table.mean(axis=0), zeros="keep")
    assert (found.mean, found.p, found.interval()) == (pytest.approx(of_means.mean), of_means.p, of_means.ci95)
    assert (found.seeds, found.queries, found.n, unseen_share(found.seeds)) == (3, 40, 40, None)
    alone = random_effects_test([table[0]])
    assert alone.p == compare(table[0], zeros="keep").p


def test_trainings_with_queries_of_their_own_are_a_mean_of_means() -> None:
    # Means 1 and 4; each with s² = 2 over 2 queries: V = (1 + 1)/4.
    found = random_effects_test([np.array([0.0, 2.0]), np.array([3.0, 5.0])])
    assert (found.mean, found.queries) == (2.5, 4)
    assert found.estimate.se == pytest.approx(np.sqrt(0.5))


def test_five_trainings_are_trainings_like_these() -> None:
    # Seeds' means 1 to 5, s² = 2.5; queries' means 2, 3, 4, s² = 1: V = 2.5/5 + 1/3 with 4 degrees of freedom.
    table = np.arange(1.0, 6.0)[:, None] + np.array([-1.0, 0.0, 1.0])
    found = random_effects_test(list(table), same_queries=True)
    assert found.estimate.se == pytest.approx(np.sqrt(2.5 / 5 + 1 / 3))
    assert found.p == pytest.approx(2 * stats.t.sf(3 / found.estimate.se, 4))
    assert unseen_share(found.seeds) == pytest.approx(1 - 0.05**0.2)
    own = random_effects_test([row[:2] for row in table])
    assert own.p == pytest.approx(stats.ttest_1samp([row[:2].mean() for row in table], 0).pvalue)


def test_undefined_values_and_no_values() -> None:
    assert random_effects_test([]).p is None
    assert random_effects_test([np.array([np.nan])]).mean is None
    assert random_effects_test([np.array([1.0])]).p is None
    found = random_effects_test([np.array([1.0, np.nan, 3.0]), np.array([2.0])])
    assert (found.mean, found.queries, found.p) == (2.0, 3, None)
    assert random_effects_test([np.zeros(9), np.zeros(9)], same_queries=True).p == 1.0
    lacking = np.array([[1.0, 2.0, np.nan], [3.0, 4.0, 5.0]])
    # Without the query that one training lacks; its mean is that of the interval.
    found = random_effects_test(list(lacking), same_queries=True)
    assert (found.mean, found.queries) == (2.5, 2)
    assert found.estimate.se == mean_estimate(np.array([2.0, 3.0])).se


@pytest.mark.parametrize("same_queries", [False, True])
def test_level_under_no_effect(same_queries: bool) -> None:
    """Seeds differ by a fifth of what queries do; without an effect at most 5% of the tests reject."""
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(1000):
        table = rng.normal(0, 1, (5, 40)) + rng.normal(0, 0.2, (5, 1))
        if same_queries:
            table += rng.normal(0, 1, 40)
        p = random_effects_test(list(table), same_queries=same_queries).p
        assert p is not None
        rejected += p < 0.05
    assert rejected / 1000 <= 0.065


def test_sizes_by_hand_and_by_every_resample() -> None:
    """|−3| − |1| of four pairs; the bounds of the sums and differences over all 4⁴ resamples, widened as for a mean."""
    a, b = np.array([-1.0, -2.0, -4.0, -5.0]), np.array([2.0, 1.0, 1.0, 0.0])
    found = size_test([a], [b])
    assert (found.mean, found.seeds, found.queries, found.limit) == (2.0, 1, 4, "queries")
    drawn = np.array(list(itertools.product(range(4), repeat=4)))
    wide = np.sqrt(4 / 3) * stats.t.ppf(0.975, 3) / stats.norm.ppf(0.975)
    means = [one.mean() + wide * (one[drawn].mean(axis=1) - one.mean()) for one in (a, b)]
    low = min(np.quantile(-means[0] + sign * means[1], 0.025) for sign in (1, -1))
    assert found.interval()[0] == pytest.approx(low, abs=0.25)
    assert size_test([b], [a]).mean == -2.0
    assert size_test([b], [a], 0.5).mean == -0.5
    assert size_test([a], [np.full(4, 3.0)]).mean == 0.0
    assert size_test([np.full(4, np.nan)], [b]).mean is None
    assert size_test([a[:1]], [b[:1]]).interval() is None
    # A training without values is left out.
    both = size_test([a, np.full(4, np.nan)], [b, b], same_queries=True)
    assert (both.mean, both.seeds, both.queries) == (2.0, 1, 4)


def test_sizes_over_seeds_are_as_wide_as_the_trainings_are_apart() -> None:
    """Queries alike: five seeds' means −1 ± and 0: the interval of the mean is Student's with four degrees."""
    means = np.array([-1.2, -1.1, -1.0, -0.9, -0.8])
    found = size_test([np.full(50, one) for one in means], [np.zeros(50)] * 5, same_queries=True)
    half = stats.t.ppf(0.975, 4) * means.std(ddof=1) / np.sqrt(5)
    assert (found.mean, found.limit) == (pytest.approx(1.0), "seeds")
    assert found.interval() == pytest.approx((1 - half, 1 + half), abs=0.03)
    assert found.interval(0.9)[0] > found.interval()[0]
    # A lean that the seeds' own signs do not share is near none.
    signs = size_test([np.full(50, one) for one in (-1.0, 1.0, -1.0, 1.0, 0.1)], [np.zeros(50)] * 5, same_queries=True)
    assert signs.interval()[0] < 0 < signs.p
