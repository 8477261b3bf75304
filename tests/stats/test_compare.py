"""Whether a mean differs from 0, and two groups from each other: the rules as they are written, and their oracles."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as hst
from scipy import stats
from statsmodels.stats.multitest import multipletests

from evenrank.files.types import holm
from evenrank.stats.clusters import cluster_means
from evenrank.stats.compare import (
    compare,
    compare_abs_means,
    compare_combined,
    compare_groups,
    compare_to_random_order,
    corrected,
)
from evenrank.stats.estimate import mean_estimate, p_two_sided
from evenrank.stats.signed_rank import signed_rank_p
from slow_stats import slow_compare

rng = np.random.default_rng(7)


@given(hst.lists(hst.floats(0, 1), min_size=1, max_size=8))
def test_holm_is_that_of_statsmodels(values: list[float]) -> None:
    assert holm(values) == pytest.approx(multipletests(values, method="holm")[1])
    assert holm([0.01, None, 0.04]) == [0.02, None, 0.04]


@given(
    hst.lists(hst.one_of(hst.just(0.0), hst.floats(-3, 3)), min_size=2, max_size=60), hst.sampled_from(["keep", "drop"])
)
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


def test_symmetric_values_are_students_t_test() -> None:
    values = np.concatenate([rng.normal(0, 1, 50)] * 2)
    values = np.concatenate([values, -values]) + 0.1
    assert compare(values, zeros="keep").p == pytest.approx(stats.ttest_1samp(values, 0).pvalue, rel=1e-6)


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


def test_what_cannot_be_told() -> None:
    assert compare(np.zeros(40)).reason == "every value is 0"
    assert compare(np.append(np.zeros(40), 0.1)).reason == "only 1 of 41 queries differ from 0, where 10 are needed"
    assert compare(np.full(5, np.nan)).reason == "no value is defined"
    values = np.append(rng.normal(1, 0.1, 9), np.zeros(6))
    found = compare(values)
    assert found.reason == "only 9 of 15 queries differ from 0, where 10 are needed"
    assert (found.verdict, found.p, found.ci95 is not None) == ("cannot be told", None, True)
    few = compare(np.append(values[:5], np.zeros(30)), zeros="keep")
    assert few.reason == "the two differ in only 5 of 35 queries, where 6 are needed"


def test_equal_values_are_judged_with_one_at_the_far_end() -> None:
    # 20 values of .5 and one of −1: t = (.5 · 20 − 1)/(.5 + 1) = 6 with 20 degrees of freedom.
    found = compare(np.full(20, 0.5), reach=1.0)
    assert found.p == pytest.approx(2 * stats.t.sf(6.0, 20))
    assert found.p == pytest.approx(stats.ttest_1samp([0.5] * 20 + [-1.0], 0).pvalue)
    assert compare(np.full(20, -0.5), reach=1.0).p == found.p
    assert compare(np.full(20, 0.5)).reason == "every value is the same, and how far a value can lie is not known"
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


def test_few_clusters_cannot_be_told() -> None:
    values = rng.normal(1, 1, 50)
    assert "clusters" in (compare(values, clusters=np.repeat(np.arange(5), 10), zeros="keep").reason or "")
    one_large = np.where(np.arange(50) < 40, 0, np.arange(50))
    assert compare(values, clusters=one_large).reason == "the queries are worth only 1.6 clusters, where 6 are needed"
    assert compare(np.ones(9), clusters=np.zeros(9, int)).p is None


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


def test_orders_that_cannot_differ_tell_nothing() -> None:
    found = compare_to_random_order(rng.normal(0.1, 0.1, 40), np.zeros(40))
    assert found.reason == "every order of the candidates has the same figure"


@given(hst.lists(hst.sampled_from([0.0, 0.0, 1.0, 0.5]), min_size=3, max_size=6), hst.integers(1, 4))
def test_the_variance_of_a_permutation_is_exact(groups: list[float], cutoff: int) -> None:
    n = len(groups)
    w = np.array([1.0 / rank if rank <= cutoff else 0.0 for rank in range(1, n + 1)])
    g = np.array(groups)
    v = ((w**2).sum() - w.sum() ** 2 / n) * ((g - g.mean()) ** 2).sum() / (n - 1)
    every = [float(w @ g[list(order)]) for order in itertools.permutations(range(n))]
    assert v == pytest.approx(np.var(every), abs=1e-12)


# --- groups of queries ------------------------------------------------------------------------------------------------


def test_two_groups_are_compared_by_welch_and_student() -> None:
    inside, others = rng.normal(0, 1, 20), rng.normal(0.8, 3, 90)
    found = compare_groups(inside, others)
    tests = [stats.ttest_ind(inside, others, equal_var=equal) for equal in (False, True)]
    assert found.p == pytest.approx(max(test.pvalue for test in tests))
    ends = [test.confidence_interval() for test in tests]
    assert found.ci95 == pytest.approx((min(e.low for e in ends), max(e.high for e in ends)))
    assert compare_groups(inside[:14], others).reason == "the group has only 14 queries, where 15 are needed"
    assert compare_groups(others, inside[:14]).reason == "there are only 14 other queries, where 15 are needed"
    assert compare_groups(np.ones(20), np.ones(20)).reason == "every value is the same"


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
    second[14:] = np.nan
    assert compare_combined([first, second], [1.0, -1.0]).verdict == "cannot be told"


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
