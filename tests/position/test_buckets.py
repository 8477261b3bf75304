"""Figures over buckets of answer places: hand-worked, against slow versions, and their tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.io import EvenrankError
from evenrank.position import resampling
from evenrank.position.buckets import bucket_index, bucket_means, by_bucket, null_distribution, quantile_starts
from evenrank.position.curves import position_curve
from evenrank.position.resampling import shuffled, slopes, weighted_slopes


def test_by_hand() -> None:
    # Buckets [0, .5) and [.5, 1): means (1 + .5)/2 = .75 and .25; index 1 − 1/3. Places 0, .2, .5, .9; values 1, .5, 0,
    # .5: slope = Σ(x − .4)(y − .5) / Σ(x − .4)² = (−.2 + 0 − .05 + 0) / (.16 + .04 + .01 + .25) = −.25/.46.
    values, places = np.array([1, 0.5, 0, 0.5, np.nan]), np.array([0, 0.2, 0.5, 0.9, 0.1])
    found = by_bucket(values, places, (0.0, 0.5), 1.0)
    assert found.n.tolist() == [2, 2]
    assert found.means.tolist() == [0.75, 0.25]
    assert found.index == pytest.approx(2 / 3)
    assert found.slope == pytest.approx(-0.25 / 0.46)
    # A half-open bucket: .5 is in the second one. An empty bucket has no mean and no part in the index.
    empty = by_bucket(values, places, (0.0, 0.5, 2.0))
    assert math.isnan(empty.means[2])
    assert empty.ci95[2] is None
    assert empty.index == pytest.approx(2 / 3)
    assert empty.to_dict()["buckets"][2] == {"from": 2.0, "to": None, "queries": 0, "mean": None, "ci95": None}


def test_the_null_is_the_mean_over_shuffles() -> None:
    # Values 1, 0 in one bucket each: whatever the order, the index is 1; the null says so, and p is 1.
    found = by_bucket(np.array([1.0, 0.0]), np.array([0.1, 0.6]), (0.0, 0.5), 1.0)
    assert (found.index, found.null, found.p) == (1.0, 1.0, 1.0)
    # Values 1, 1, 0, 0 in pairs: of the 3 ways to pair them up 1 has index 1, 2 have index 0: null 1/3.
    found = by_bucket(np.array([1.0, 1, 0, 0]), np.array([0.1, 0.2, 0.6, 0.7]), (0.0, 0.5), 1.0)
    assert found.index == 1
    assert found.null == pytest.approx(1 / 3, abs=0.04)
    assert found.p == pytest.approx(1 / 3, abs=0.04)


def test_noise_is_told_from_an_effect() -> None:
    rng = np.random.default_rng(1)
    places = rng.random(300)
    noise = by_bucket(rng.random(300), places, (0.0, 0.2, 0.4, 0.6, 0.8), 1.0)
    assert noise.p is not None
    assert noise.slope_p is not None
    assert noise.p > 0.05
    assert noise.slope_p > 0.05
    effect = by_bucket(0.2 * rng.random(300) + 0.5 * (1 - places), places, (0.0, 0.2, 0.4, 0.6, 0.8), 1.0)
    assert effect.p is not None
    assert effect.p < 0.001
    assert effect.slope_ci95 is not None
    assert effect.slope_ci95[0] < -0.5 < effect.slope_ci95[1]
    assert effect.index_ci95 is not None
    assert effect.index_ci95[0] > noise.null


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), min_size=1, max_size=12))
def test_buckets_against_the_slow_version(pairs: list[tuple[float, int]]) -> None:
    values, places = np.array([v for v, _ in pairs]), np.array([p for _, p in pairs])
    found = by_bucket(values, places, (0, 3, 6))
    means = []
    for b, (low, high) in enumerate([(0, 3), (3, 6), (6, 99)]):
        inside = [v for v, p in pairs if low <= p < high]
        assert found.n[b] == len(inside)
        if inside:
            means.append(sum(inside) / len(inside))
            assert found.means[b] == pytest.approx(means[-1])
    if len(means) == 1:
        assert math.isnan(found.index)
    elif max(means) > 1e-6:
        assert found.index == pytest.approx(1 - min(means) / max(means))
    if len(set(places)) > 1:
        assert found.slope == pytest.approx(np.polyfit(places, values, 1)[0], abs=1e-6)
    else:
        assert math.isnan(found.slope)


def test_places_outside_the_buckets() -> None:
    with pytest.raises(EvenrankError, match=r"places: expected 0\.0 to below 1\.0, found 1\.0"):
        by_bucket(np.array([1.0]), np.array([1.0]), (0.0,), 1.0)
    with pytest.raises(EvenrankError, match="no query has both"):
        by_bucket(np.array([np.nan]), np.array([0.5]), (0.0,), 1.0)


def test_a_position_curve() -> None:
    # Slopes over 0, .5, 1: −1 and 1, mean 0; the undefined query is left out.
    values = np.array([[1.0, 0.5, 0.0], [0.0, 0.5, 1.0], [np.nan, 1.0, 1.0]])
    found = position_curve(values, np.array([0, 0.5, 1]))
    assert (found.n, found.means.tolist(), found.slope) == (2, [0.5, 0.5, 0.5], 0.0)
    assert found.slope_ci95 == (-1.0, 1.0)
    assert position_curve(values[2:], np.array([0, 0.5, 1])).n == 0


def test_queries_of_one_passage_are_drawn_together() -> None:
    # Four copies of each query: drawn apart, intervals are those of four times the queries; together, those of one.
    rng = np.random.default_rng(3)
    values, places = rng.random(40), rng.random(40)
    four, clusters = (np.repeat(values, 4), np.repeat(places, 4)), np.repeat(np.arange(40), 4)
    one = by_bucket(values, places, (0.0, 0.5), 1.0)
    apart = by_bucket(*four, (0.0, 0.5), 1.0)
    together = by_bucket(*four, (0.0, 0.5), 1.0, clusters=clusters)
    assert np.array(together.ci95) == pytest.approx(np.array(one.ci95))
    assert together.slope_ci95 == pytest.approx(one.slope_ci95)
    assert np.ptp(apart.ci95[0]) == pytest.approx(np.ptp(one.ci95[0]) / 2, rel=0.1)
    moved = np.repeat(values[:, None] * [1, 2], 4, axis=0)
    ends = [
        position_curve(m, np.array([0.0, 1.0]), clusters=c).slope_ci95
        for m, c in ((moved[::4], None), (moved, clusters))
    ]
    assert ends[0] == pytest.approx(ends[1])


def testweighted_slopes_are_those_of_the_drawn_queries() -> None:
    rng = np.random.default_rng(5)
    values, places, weights = rng.random(9), rng.random(9), rng.integers(0, 3, (7, 9)).astype(float)
    found = weighted_slopes(values, places, weights)
    for row, slope in zip(weights.astype(int), found, strict=True):
        assert slope == pytest.approx(np.polyfit(np.repeat(places, row), np.repeat(values, row), 1)[0])
    assert np.isnan(weighted_slopes(values, np.full(9, 0.3), weights)).all()


@pytest.mark.parametrize("clustered", [True, False])
def test_under_no_effect_one_in_twenty_is_significant(monkeypatch: pytest.MonkeyPatch, clustered: bool) -> None:
    # Passages differ in their effectiveness and in where their answers stand; the place itself does nothing. Shuffles
    # of queries (each its own passage) take what passages share for an effect.
    monkeypatch.setattr(resampling, "PERMUTATIONS", 99)
    starts, found = np.arange(5) / 5, []
    for seed in range(400):
        rng = np.random.default_rng(seed)
        passages = np.repeat(np.arange(24), rng.integers(1, 6, 24))
        places = np.clip(rng.random(24)[passages] + rng.normal(0, 0.15, len(passages)), 0, 0.999)
        values = np.clip(0.5 + rng.normal(0, 0.35, 24)[passages] + rng.normal(0, 0.25, len(passages)), 0, 1)
        bucket = np.searchsorted(starts, places, side="right") - 1
        units = passages if clustered else np.arange(len(passages))
        index, slope = null_distribution(values, places, bucket, 5, units, seed)
        own = bucket_index(bucket_means(values[None], bucket[None], 5))[0]
        steep = abs(slopes(values[None], places[None])[0])
        found.append([(index >= own).sum() < 5, (abs(slope) >= steep).sum() < 5])
    rates = np.mean(found, axis=0)
    assert all((rates >= 0.03) & (rates <= 0.07) if clustered else rates > 0.1), rates


def test_interval_and_p_have_the_passage_as_their_unit() -> None:
    # Eight passages of twelve questions each, all of whose values and places are about the same: over 96 questions the
    # slope would be beyond doubt, over eight passages it is not.
    rng = np.random.default_rng(0)
    passages = np.repeat(np.arange(8), 12)
    places = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])[passages] + rng.uniform(0, 0.05, 96)
    values = np.array([0.9, 0.3, 0.8, 0.6, 0.7, 0.2, 0.6, 0.4])[passages]
    apart = by_bucket(values, places, (0.0, 0.5), 1.0)
    together = by_bucket(values, places, (0.0, 0.5), 1.0, clusters=passages)
    assert (apart.units, together.units, together.to_dict()["unit"]) == (96, 8, "passage")
    assert apart.slope_p is not None
    assert apart.slope_p < 0.01
    assert together.slope_p is not None
    assert together.slope_p > 0.05
    assert together.p is not None
    assert together.p > 0.05
    assert together.slope_ci95 is not None
    assert together.slope_ci95[0] < 0 < together.slope_ci95[1]
    # One passage is no sample of passages.
    one = by_bucket(values, places, (0.0, 0.5), 1.0, clusters=np.full(96, 7))
    assert (one.p, one.slope_p, one.slope_ci95, one.index_ci95, one.ci95) == (None, None, None, None, (None, None))


def test_shuffles_keep_the_queries_of_a_passage_together() -> None:
    clusters = np.array([2, 0, 1, 0, 2, 1, 0, 2, 1])
    for row in shuffled(clusters, 50, np.random.default_rng(0)):
        # Passages of one size: a permutation that gives each passage the values of one other.
        assert sorted(row) == list(range(9))
        assert all(len({int(clusters[i]) for i in row[clusters == c]}) == 1 for c in range(3))
    # Of two and one: the passage of two takes the one value twice, or its own.
    for row in shuffled(np.array([0, 0, 1]), 50, np.random.default_rng(0)):
        assert row.tolist() in ([0, 1, 2], [1, 0, 2], [2, 2, 0], [2, 2, 1])


def test_word_buckets_hold_about_as_many_answers_each() -> None:
    # As in COVID-QA: most answers thousands of words down.
    places = np.concatenate([np.arange(0, 200, 20), np.arange(200, 7200, 100)])
    starts = quantile_starts(places)
    assert len(starts) == 8
    assert np.bincount(np.searchsorted(starts, places, side="right") - 1).tolist() == [9, 10, 10, 10, 10, 10, 10, 11]
    # Equal places stay in one bucket; none is empty; few answers make two.
    assert quantile_starts(np.array([0] * 60 + [5] * 20 + [9] * 20)) == (0.0, 5.0, 9.0)
    assert quantile_starts(np.full(50, 7)) == (0.0,)
    assert quantile_starts(np.zeros(50)) == (0.0,)
    assert quantile_starts(np.array([3, 1, 2, 4])) == (0.0, 2.0)


def test_the_p_of_a_curve() -> None:
    # Two passages with slopes 1 and 1 have as much in half of the sign changes; one passage has no p.
    places = np.array([0.0, 1.0])
    found = position_curve(np.array([[0.0, 1.0], [0.0, 1.0]]), places)
    assert found.slope_p == pytest.approx(0.5, abs=0.05)
    rng = np.random.default_rng(0)
    found = position_curve(np.column_stack([np.zeros(40), rng.normal(1, 1, 40)]), places)
    assert found.slope_p is not None
    assert found.slope_p < 0.001
    alone = position_curve(np.array([[0.0, 1.0], [0.0, 0.5]]), places, clusters=np.zeros(2, int))
    assert (alone.slope, alone.slope_p, alone.slope_ci95, alone.spread_p) == (0.75, None, None, None)


def test_a_curve_that_falls_and_rises_has_a_spread() -> None:
    # .5, 0, .5 in each of 12 passages: no slope, but of the three places the lowest is always the second. As many
    # shuffles as have the lowest at one place in all passages give as much: next to none.
    rng = np.random.default_rng(1)
    places = np.array([0, 0.5, 1])
    found = position_curve(np.array([0.5, 0.0, 0.5]) + rng.normal(0, 0.01, (12, 3)), places)
    assert found.slope_p is not None
    assert found.spread_p is not None
    assert (found.spread, found.slope_p > 0.05, found.spread_p < 0.001) == (pytest.approx(0.5, abs=0.02), True, True)
    # Four questions of each of three passages, alike within them: shuffled together they show less than apart.
    few = np.repeat(rng.normal(0, 1, (3, 3)), 4, axis=0)
    together, apart = position_curve(few, places, clusters=np.repeat(np.arange(3), 4)), position_curve(few, places)
    assert together.spread_p is not None
    assert apart.spread_p is not None
    assert together.spread_p > 0.1 > apart.spread_p
