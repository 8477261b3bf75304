"""Figures over buckets of answer places: hand-worked, and against slow versions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import EvenrankError
from evenrank.probes.sensitivity import by_bucket


def test_by_hand() -> None:
    # Buckets [0, .5) and [.5, 1): means (1 + .5)/2 = .75 and .25.
    values, places = np.array([1, 0.5, 0, 0.5, np.nan]), np.array([0, 0.2, 0.5, 0.9, 0.1])
    found = by_bucket(values, places, (0.0, 0.5), 1.0)
    assert found.n.tolist() == [2, 2]
    assert found.means.tolist() == [0.75, 0.25]
    # A half-open bucket: .5 is in the second one. An empty bucket has no mean.
    empty = by_bucket(values, places, (0.0, 0.5, 2.0))
    assert math.isnan(empty.means[2])
    assert empty.ci95[2] is None


@given(st.lists(st.tuples(st.floats(0, 1), st.integers(0, 9)), min_size=1, max_size=12))
def test_buckets_against_the_slow_version(pairs: list[tuple[float, int]]) -> None:
    values, places = np.array([v for v, _ in pairs]), np.array([p for _, p in pairs])
    found = by_bucket(values, places, (0, 3, 6))
    for b, (low, high) in enumerate([(0, 3), (3, 6), (6, 99)]):
        inside = [v for v, p in pairs if low <= p < high]
        assert found.n[b] == len(inside)
        if inside:
            assert found.means[b] == pytest.approx(sum(inside) / len(inside))


def test_places_outside_the_buckets() -> None:
    with pytest.raises(EvenrankError, match=r"places: expected 0\.0 to below 1\.0, found 1\.0"):
        by_bucket(np.array([1.0]), np.array([1.0]), (0.0,), 1.0)
    with pytest.raises(EvenrankError, match="no query has both"):
        by_bucket(np.array([np.nan]), np.array([0.5]), (0.0,), 1.0)


def test_queries_of_one_passage_are_one_unit() -> None:
    # Four copies of each query: apart, intervals are those of four times the queries; together, those of one.
    rng = np.random.default_rng(3)
    values, places = rng.random(120), rng.random(120)
    four, clusters = (np.repeat(values, 4), np.repeat(places, 4)), np.repeat(np.arange(120), 4)
    one = by_bucket(values, places, (0.0, 0.5), 1.0)
    apart = by_bucket(*four, (0.0, 0.5), 1.0)
    together = by_bucket(*four, (0.0, 0.5), 1.0, clusters=clusters)
    assert np.array(together.ci95) == pytest.approx(np.array(one.ci95))
    assert np.ptp(apart.ci95[0]) == pytest.approx(np.ptp(one.ci95[0]) / 2, rel=0.1)


def test_one_passage_is_no_sample_of_passages() -> None:
    one = by_bucket(np.arange(96) / 96, np.arange(96) / 96, (0.0, 0.5), 1.0, clusters=np.full(96, 7))
    assert one.ci95 == (None, None)
