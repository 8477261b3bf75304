"""Differences over trainings: of these trainings, or of trainings like these."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import stats

from evenrank.stats.compare import compare
from evenrank.stats.estimate import mean_estimate
from evenrank.stats.random_effects import random_effects_test, size_test, unseen_share


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
