"""Figures over buckets of answer places: hand-worked, against slow versions, and their tests."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.io import EvenrankError
from evenrank.position import resampling
from evenrank.position.buckets import bucket_means, by_bucket, null_indexes, quantile_starts, slope_of
from evenrank.position.resampling import lowest_to_highest, p_of


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


def test_the_null_is_the_mean_over_signs() -> None:
    # Values 1, .5 in one bucket each, mean .75: with the signs ++ and −− the departures ±.25 stay apart (index .5),
    # with +− and −+ they are alike (index 0). The null is 1/4, p 1/2.
    found = by_bucket(np.array([1.0, 0.5]), np.array([0.1, 0.6]), (0.0, 0.5), 1.0)
    assert found.index == 0.5
    assert found.null == pytest.approx(0.25, abs=0.02)
    assert found.p == pytest.approx(0.5, abs=0.04)


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
    assert together.slope_p == one.slope_p
    assert np.ptp(apart.ci95[0]) == pytest.approx(np.ptp(one.ci95[0]) / 2, rel=0.1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6))
def test_slopes_against_slow_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values, places, words = rng.random(12), rng.random(12), rng.integers(50, 200, 12).astype(float)
    passages = np.repeat(np.arange(4), 3)
    beside = np.stack([words, np.log(words)])
    design = np.column_stack([np.ones(12), *beside, places])
    fitted = np.linalg.lstsq(design, values, rcond=None)[0]
    slope, ends, p = slope_of(values, places, passages, beside=beside, seed=seed)
    assert slope == pytest.approx(fitted[3], abs=1e-6)
    assert ends is not None
    assert p is not None
    # The interval is around the slope, and leaves out 0 where p < .05.
    assert sum(ends) / 2 == pytest.approx(slope)
    assert (ends[0] > 0 or ends[1] < 0) == (p < 0.05)
    # The standard error is the cluster-robust one: the interval is a multiple of it, whatever the scale.
    again = slope_of(3 * values + 1, places, passages, beside=beside, seed=seed)
    assert again[1] == pytest.approx((3 * ends[0], 3 * ends[1]))
    assert again[2] == p


def test_the_length_of_passages_is_partialled_out() -> None:
    # Effectiveness falls with the length alone, and answers in long passages stand late: no slope at equal length.
    rng = np.random.default_rng(0)
    words = rng.integers(50, 300, 200)
    places = np.clip(words / 300 + rng.normal(0, 0.1, 200), 0, 0.999)
    values = 1 - words / 400 + rng.normal(0, 0.02, 200)
    found = by_bucket(values, places, (0.0, 0.5), 1.0, lengths=words)
    assert found.slope < -0.3
    assert found.slope_p is not None
    assert found.slope_p < 0.001
    assert abs(found.length_slope) < 0.05
    assert found.length_slope_p is not None
    assert found.length_slope_p > 0.05
    assert found.to_dict()["length_slope"] == found.length_slope
    # Lengths that leave nothing of the places, or no lengths.
    alike = slope_of(values, places, np.arange(200), beside=places[None])
    assert (math.isnan(alike[0]), alike[1:]) == (True, (None, None))
    assert by_bucket(values, places, (0.0, 0.5), 1.0).to_dict()["length_slope"] is None


def rejected(runs: int, passages: int, sizes: str, *, clustered: bool = True) -> np.ndarray:
    """How often index, slope and slope at equal length are significant, if passages differ in effectiveness, length and
    where their answers stand, and the place itself does nothing."""
    starts, found = np.arange(5) / 5, []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        drawn = {"unequal": rng.integers(1, 6, passages), "skewed": np.minimum(rng.geometric(0.2, passages), 25)}
        of = np.repeat(np.arange(passages), drawn[sizes])
        places = np.clip(rng.random(passages)[of] + rng.normal(0, 0.15, len(of)), 0, 0.999)
        effects = rng.normal(0, 0.35, passages)[of] + rng.normal(0, 0.25, len(of))
        values = np.clip(0.5 + effects, 0, 1)
        words = np.exp(rng.normal(4.7, 0.4, passages))[of].round()
        bucket = np.searchsorted(starts, places, side="right") - 1
        units = of if clustered else np.arange(len(of))
        own = float(lowest_to_highest(bucket_means(values, bucket, 5)[None])[0])
        beside = np.stack([words, np.log(words)])
        p = (
            p_of(null_indexes(values, bucket, 5, units, seed), own),
            slope_of(values, places, units, seed=seed)[2],
            slope_of(values, places, units, beside=beside, seed=seed)[2],
        )
        found.append([one is not None and one < 0.05 for one in p])
    return np.mean(found, axis=0)


@pytest.mark.parametrize("clustered", [True, False])
def test_under_no_effect_one_in_twenty_is_significant(monkeypatch: pytest.MonkeyPatch, clustered: bool) -> None:
    # With queries as units, what passages share is taken for an effect.
    monkeypatch.setattr(resampling, "PERMUTATIONS", 199)
    rates = rejected(400, 24, "unequal", clustered=clustered)
    assert all((rates >= 0.03) & (rates <= 0.07)) if clustered else all(rates > 0.1), rates


@pytest.mark.slow
@pytest.mark.parametrize("passages", [24, 60])
@pytest.mark.parametrize("sizes", ["unequal", "skewed"])
def test_under_no_effect_in_other_shapes(monkeypatch: pytest.MonkeyPatch, passages: int, sizes: str) -> None:
    monkeypatch.setattr(resampling, "PERMUTATIONS", 499)
    rates = rejected(1000, passages, sizes)
    assert all((rates >= 0.03) & (rates <= 0.07)), rates


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
