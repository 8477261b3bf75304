"""Curves over the places of a sentence: contrasts by hand, and their tests against slow ones."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import stdtr

from evenrank.probes.position_curve import (
    Floats,
    Ints,
    PositionCurve,
    contrast_weights,
    place_weights,
    position_curve,
    version_shapes,
)
from evenrank.probes.sentence_moves import SentenceMoves


def test_contrasts_by_hand() -> None:
    # Two queries over 0, .5, 1: first − last 1 and −1, ends − middle 0 and .5 − .2 = .3.
    curve = position_curve(np.array([[1.0, 0.5, 0.0], [0.0, 0.2, 1.0], [np.nan, 1.0, 1.0]]))
    assert (curve.n, curve.means.tolist()) == (2, [0.5, 0.35, 0.5])
    assert curve.first_last.mean == 0
    assert curve.ends_middle.mean == pytest.approx(0.15)
    # Over 0, ⅓, ⅔, 1 the middle is the mean of the two.
    assert contrast_weights(4) @ np.array([3, 3 - 2 / 3, 3 - 4 / 3, 1.0]) == pytest.approx([2, 0, 1, -1])
    assert contrast_weights(2)[1].tolist() == [0, 0]
    assert position_curve(np.zeros((20, 2))).ends_middle.reason == "two places have no middle"
    # The signs: higher at first is positive, and so is higher at the ends.
    for row, expected in (([2.0, 1, 0], (2, 0)), ([1.0, 0, 1], (0, 1))):
        curve = position_curve(np.array([row] * 3))
        assert (curve.first_last.mean, curve.ends_middle.mean) == expected


@given(st.integers(1, 40), st.integers(2, 12))
def test_places_are_the_nearest_versions(others: int, places: int) -> None:
    found = place_weights(others, places)
    for place, row in enumerate(found):
        at = place / (places - 1) * others
        far = np.abs(at - np.arange(others + 1))
        nearest = np.flatnonzero(far < far.min() + 1e-9)
        assert np.flatnonzero(row).tolist() == nearest.tolist()
        assert row[nearest] == pytest.approx(1 / len(nearest))
    # From either end the same.
    assert (found == found[::-1, ::-1]).all()


def test_versions_that_make_places() -> None:
    needed, shape, weights = version_shapes(np.array([8, 2, 8]), 3)
    assert ([one.tolist() for one in needed], shape.tolist()) == ([[0, 1, 2], [0, 4, 8]], [1, 0, 1])
    assert weights.tolist() == [np.eye(3).tolist()] * 2
    # Of 3 others the middle is made of two versions; those that a passage does not have are none of its values.
    needed, shape, weights = version_shapes(np.array([3, 2]), 3)
    assert [one.tolist() for one in needed] == [[0, 1, 2], [0, 1, 2, 3]]
    none = np.empty((2, 0), np.int64)
    moves = SentenceMoves(none, none, none, none, shape, weights, pl.DataFrame())
    assert moves.at_places(np.array([[1.0, 2, 4, 8], [1, 2, 3, np.nan]])).tolist() == [[1, 3, 8], [1, 2, 3]]


def slow(values: Floats, passages: Ints) -> tuple[float, float, float]:
    """The mean of the passages' means, and its two t's, the slow way."""
    of = {p: [v for v, at in zip(values, passages, strict=True) if at == p] for p in set(passages.tolist())}
    one = [sum(found) / len(found) for found in of.values()]
    k, mean = len(one), sum(one) / len(one)
    s = math.sqrt(sum((x - mean) ** 2 for x in one) / (k - 1))
    t = mean * math.sqrt(k) / s
    skew = (1 + 10 / k) * (sum((x - mean) ** 3 for x in one) / k) / (sum((x - mean) ** 2 for x in one) / k) ** 1.5
    a = skew / math.sqrt(k)
    return mean, t, t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6


def test_contrasts_against_slow_ones() -> None:
    """The two contrasts are tested by passage, with Holm's correction over both."""
    rng = np.random.default_rng(4)
    passages = np.repeat(np.arange(40), rng.integers(1, 5, 40))
    rows = rng.normal(np.array([0.5, 0, 0.4]), 1, (len(passages), 3))
    curve = position_curve(rows, clusters=passages)
    p_values = []
    for one, values in ((curve.first_last, rows[:, 0] - rows[:, 2]),
                        (curve.ends[0], rows[:, 0] - rows[:, 1]),
                        (curve.ends[1], rows[:, 2] - rows[:, 1])):  # fmt: skip
        mean, t, hall = slow(values, passages)
        assert (one.mean, one.n, one.unit) == (pytest.approx(mean), 40, "passages")
        expected = 2 * float(stdtr(39, -min(abs(t), abs(hall)))) if t * hall > 0 else 1.0
        assert one.p == pytest.approx(expected)
        p_values.append(expected)
    # Both ends have to differ from the middle.
    assert curve.ends_middle.p == pytest.approx(max(p_values[1:]))
    low, high = sorted([p_values[0], max(p_values[1:])])
    corrected = sorted(one.holm_p for one in (curve.first_last, curve.ends_middle) if one.holm_p is not None)
    # The third is taken for 1.
    assert corrected == pytest.approx([min(1, 2 * low), max(min(1, 2 * low), high)])


def test_queries_of_one_passage_are_one_unit() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(np.array([0, 0, 0.4]), 1, (30, 3))
    single = position_curve(rows)
    together = position_curve(np.repeat(rows, 4, axis=0), clusters=np.repeat(np.arange(30), 4))
    assert np.array(together.ci95) == pytest.approx(np.array(single.ci95))
    # Bands do not count how unequal passages are: of values far from 0, one has most of the queries.
    passages = np.repeat(np.arange(20), [20, *[1] * 19])
    rows = 10 + 0.1 * np.random.default_rng(0).normal(size=(20, 3))[passages]
    assert all(high - low < 0.2 for low, high in position_curve(rows, clusters=passages).ci95)  # type: ignore[misc]


def test_u_shapes_and_lines_are_found() -> None:
    """A ranker of .51, .06, .51 is found by ends − middle, a falling one by first − last."""
    rng = np.random.default_rng(1)
    passages = np.repeat(np.arange(20), rng.integers(1, 6, 20))
    noise = 0.3 * rng.normal(size=(20, 5))[passages] + 0.3 * rng.normal(size=(len(passages), 5))

    def of(shape: list[float]) -> PositionCurve:
        return position_curve(np.array(shape) + noise, clusters=passages)

    hump = of([0.51, 0.3, 0.06, 0.3, 0.51])
    assert (hump.first_last.verdict, hump.ends_middle.verdict) == ("no difference shown", "shown")
    line = of([0.6, 0.45, 0.3, 0.15, 0.0])
    assert (line.first_last.verdict, line.ends_middle.verdict) == ("shown", "no difference shown")
    # A score that never changes is no difference.
    curve = position_curve(np.zeros((20, 3)) + np.array([1e-12, 0, 0]))
    assert (curve.first_last.verdict, curve.first_last.p, curve.first_last.mean) == ("no difference shown", 1.0, 0.0)
    few = position_curve(np.zeros((14, 3)))
    assert (few.first_last.verdict, few.first_last.p) == ("no difference shown", None)
