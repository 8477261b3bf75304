"""Curves over the places of a sentence: contrasts and index by hand, their tests, and rejection under no effect."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.position import curves
from evenrank.position.curves import (
    Floats,
    Ints,
    PositionCurve,
    Versions,
    contrast_weights,
    place_weights,
    position_curve,
    version_shapes,
)


def versions(rows: Floats) -> Versions:
    """A version per place."""
    return Versions(rows, np.zeros(len(rows), np.int64), np.eye(rows.shape[1])[None])


def test_contrasts_by_hand() -> None:
    # Two queries over 0, .5, 1: first − last 1 and −1, ends − middle 0 and .5 − .2 = .3.
    found = position_curve(versions(np.array([[1.0, 0.5, 0.0], [0.0, 0.2, 1.0], [np.nan, 1.0, 1.0]])), level=0.0)
    assert (found.n, found.means.tolist()) == (2, [0.5, 0.35, 0.5])
    assert found.first_last.mean == 0
    assert found.ends_middle.mean == pytest.approx(0.15)
    assert found.index is not None
    assert found.index.value == pytest.approx(1 - 0.35 / 0.5)
    # Over 0, ⅓, ⅔, 1 the middle is the mean of the two.
    assert contrast_weights(4) @ np.array([3, 3 - 2 / 3, 3 - 4 / 3, 1.0]) == pytest.approx([2, 0])
    assert contrast_weights(2)[1].tolist() == [0, 0]
    # The signs: higher at first is positive, and so is higher at the ends.
    early, ends = np.array([[2.0, 1, 0]] * 3), np.array([[1.0, 0, 1]] * 3)
    assert (position_curve(versions(early)).first_last.mean, position_curve(versions(early)).ends_middle.mean) == (2, 0)
    assert (position_curve(versions(ends)).first_last.mean, position_curve(versions(ends)).ends_middle.mean) == (0, 1)


def test_nothing_and_one_passage() -> None:
    none = position_curve(versions(np.full((2, 3), np.nan)), level=0.0)
    nothing = {"mean": None, "ci95": None, "p": None}
    assert (none.n, none.first_last.p, none.to_dict()["first_last"]) == (0, None, nothing)
    alone = position_curve(versions(np.array([[1.0, 2.0], [1.0, 4.0]])), level=0.0, clusters=np.array([3, 3]))
    first_last = alone.first_last
    assert (first_last.mean, first_last.ci95, first_last.p, alone.ci95) == (-2, None, None, (None, None))
    assert alone.index is not None
    assert (alone.index.value, alone.index.p, math.isnan(alone.index.null)) == (pytest.approx(2 / 3), None, True)


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
    made = Versions(np.array([[1.0, 2, 4, 8], [1, 2, 3, np.nan]]), shape, weights)
    assert made.at_places().tolist() == [[1, 3, 8], [1, 2, 3]]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_shuffles_against_slow_ones(seed: int) -> None:
    """Every shuffled ratio is one of those that shuffling the passages' versions can give."""
    rng = np.random.default_rng(seed)
    rows, passages = rng.normal(size=(3, 2)), np.array([0, 0, 1])
    weights = contrast_weights(2)
    possible = set()
    for first in (False, True):
        for second in (False, True):
            turned = np.stack([row[::-1] if (first, second)[p] else row for row, p in zip(rows, passages, strict=True)])
            contrasts = turned @ weights[0]
            sums = np.bincount(passages, contrasts - contrasts.mean())
            possible.add(float(f"{abs(contrasts.mean()) / (np.sqrt(2 * (sums**2).sum()) / 3):.6g}"))
    found = curves._null_ratios(versions(rows), passages, weights, np.random.default_rng(seed))
    assert {float(f"{one:.6g}") for one in found[:, 0]} == possible


def test_intervals_leave_out_0_where_p_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "PERMUTATIONS", 199)
    small = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        passages = np.repeat(np.arange(12), 2)
        found = position_curve(versions(rng.normal(np.array([0, 0, 0.5]), 1, (24, 3))), clusters=passages, seed=seed)
        for one in (found.first_last, found.ends_middle):
            assert one.ci95 is not None
            assert one.p is not None
            assert (one.ci95[0] > 0 or one.ci95[1] < 0) == (one.p < 0.05)
            small += one.p < 0.05
    assert 15 < small < 110


def test_queries_of_one_passage_are_one_unit() -> None:
    rng = np.random.default_rng(3)
    rows = rng.normal(np.array([0, 0, 0.4]), 1, (30, 3))
    one = position_curve(versions(rows))
    four = versions(np.repeat(rows, 4, axis=0))
    together = position_curve(four, clusters=np.repeat(np.arange(30), 4))
    assert together.first_last.p == one.first_last.p
    assert together.first_last.ci95 == pytest.approx(one.first_last.ci95)
    assert np.array(together.ci95) == pytest.approx(np.array(one.ci95))
    apart = position_curve(four)
    assert apart.first_last.ci95 is not None
    assert one.first_last.ci95 is not None
    assert np.ptp(apart.first_last.ci95) == pytest.approx(np.ptp(one.first_last.ci95) / 2, rel=0.1)


def test_u_shapes_and_lines_are_found() -> None:
    """A ranker of .51, .06, .51 is found by ends − middle and index, a falling one by first − last."""
    rng = np.random.default_rng(1)
    passages = np.repeat(np.arange(20), rng.integers(1, 6, 20))
    noise = 0.3 * rng.normal(size=(20, 5))[passages] + 0.3 * rng.normal(size=(len(passages), 5))

    def p_values(shape: list[float]) -> list[float | None]:
        found = position_curve(versions(np.array(shape) + noise), level=0.5, clusters=passages)
        assert found.index is not None
        return [found.first_last.p, found.ends_middle.p, found.index.p]

    first_last, ends_middle, index = p_values([0.51, 0.3, 0.06, 0.3, 0.51])
    assert first_last is not None and ends_middle is not None and index is not None  # noqa: PT018
    assert first_last > 0.05
    assert max(ends_middle, index) < 0.01
    first_last, ends_middle, index = p_values([0.6, 0.45, 0.3, 0.15, 0.0])
    assert first_last is not None and ends_middle is not None and index is not None  # noqa: PT018
    assert max(first_last, index) < 0.01
    assert ends_middle > 0.05


def null_ranker(seed: int, passages: int, kind: str, *, varies: bool) -> tuple[Versions, Ints]:
    """Values of a ranker that prefers no place: they vary by passage, query and version, and with ``varies`` also by
    the place, but by passage and query in different ways, 0 on average. One to seven queries per passage, three to
    eight sentences."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(passages), rng.integers(1, 8, passages))
    others = rng.integers(2, 8, passages)
    needed, shape, weights = version_shapes(others[of], 5)
    place = np.zeros((len(needed), weights.shape[2]))
    for row, (number, columns) in enumerate(zip(np.unique(others), needed, strict=True)):
        place[row, : len(columns)] = columns / number - 0.5
    x = place[shape]
    values = rng.normal(size=passages)[of, None] + rng.normal(size=(len(of), 1))
    values = values + 0.5 * rng.normal(size=(passages, x.shape[1]))[of] + 0.5 * rng.normal(size=x.shape)
    if varies:
        values = values + (rng.normal(size=passages)[of] + 0.5 * rng.normal(size=len(of)))[:, None] * x
        values = values + (3 * rng.normal(size=passages)[of] + rng.normal(size=len(of)))[:, None] * x**2
    if kind == "nDCG":
        rank = np.maximum(1, np.round(np.exp(1 - values)))
        values = np.where(rank <= 10, 1 / np.log2(1 + rank), 0)
    return Versions(np.where(weights[shape].any(axis=1), values, np.nan), shape, weights), of


def rejected(monkeypatch: pytest.MonkeyPatch, runs: int, passages: int, kind: str, *, varies: bool) -> Floats:
    """How often first − last, ends − middle and index are significant."""
    monkeypatch.setattr(curves, "bootstrap_means", lambda rows, seed, clusters: rows[:2])
    found = []
    for seed in range(runs):
        made, of = null_ranker(seed, passages, kind, varies=varies)
        curve: PositionCurve = position_curve(made, level=0.0 if kind == "nDCG" else 20.0, clusters=of, seed=seed)
        assert curve.index is not None
        p = (curve.first_last.p, curve.ends_middle.p, curve.index.p)
        found.append([one is not None and one < 0.05 for one in p])
    return np.asarray(np.mean(found, axis=0))


def test_under_no_effect_one_in_twenty_is_significant(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curves, "PERMUTATIONS", 199)
    rates = rejected(monkeypatch, 400, 20, "nDCG", varies=True)
    assert all((rates >= 0.03) & (rates <= 0.07)), rates


@pytest.mark.slow
@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize("kind", ["score", "nDCG"])
@pytest.mark.parametrize("passages", [12, 24, 60])
def test_under_no_effect_in_other_shapes(
    monkeypatch: pytest.MonkeyPatch, passages: int, kind: str, varies: bool
) -> None:
    monkeypatch.setattr(curves, "PERMUTATIONS", 499)
    rates = rejected(monkeypatch, 800, passages, kind, varies=varies)
    assert all((rates >= 0.03) & (rates <= 0.07)), rates
