"""Shift: a sort; the largest relevance of all orders with as much exposure; offsets against the lean."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.mitigation.reorderings import GroupedLists, Shift, lean_offsets
from slow_reorderings import grouped, lists_of, one_list, utility

Case = tuple[GroupedLists, object]


def added(lists: GroupedLists, offsets: list[float], per: str) -> list[float]:
    if per == "magnitude":
        return [offsets[0] * signed for signed in lists.signed]
    return [offsets[number] if number >= 0 else 0.0 for number in lists.group]


@given(grouped(most=9), st.floats(0, 1), st.lists(st.floats(-1, 1), min_size=3, max_size=3))
def test_sorted_by_the_sum(case: Case, strength: float, offsets: list[float]) -> None:
    lists, _ = case
    for per, given_offsets in (("group", offsets[: len(lists.groups)]), ("magnitude", offsets[:1])):
        sums = [s + strength * a for s, a in zip(lists.scores, added(lists, given_offsets, per), strict=True)]
        found = Shift(given_offsets, per).order(lists, strength).tolist()  # type: ignore[arg-type]
        assert found == sorted(range(len(sums)), key=lambda place: (-sums[place], place))


@settings(max_examples=25)
@given(grouped(most=6, groups=2), st.floats(0, 1))
def test_no_order_with_as_much_exposure_has_more_relevance(case: Case, strength: float) -> None:
    lists, _ = case
    offsets = [1.0, -0.5][: len(lists.groups)]
    extra = added(lists, offsets, "group")
    order = Shift(offsets).order(lists, strength).tolist()  # type: ignore[arg-type]
    scores = lists.scores.tolist()
    exposed = utility(extra, order)
    rivals = [
        utility(scores, one)
        for one in itertools.permutations(range(len(scores)))
        if utility(extra, one) >= exposed - 1e-12
    ]
    # Without a strength, nothing is said about exposure; the run is the best anyway.
    assert utility(scores, order) >= max(rivals) - 1e-9


def test_offsets_by_hand() -> None:
    # Exposure of m: (1 + 1/log2 3)/2.1309; of f: 0.5/2.1309.
    lists = lists_of([(1, 0), (0.7, 0), (0.4, 1)], [], targets=[0.25, 0.5, 0.25])
    missing = np.array([0.25, 0.5]) - np.array([1 + 1 / math.log2(3), 0.5]) / (1.5 + 1 / math.log2(3))
    np.testing.assert_allclose(lean_offsets(lists), missing / abs(missing[0]))
    assert lean_offsets(lists)[0] == -1
    assert lean_offsets(lists, "magnitude").tolist() == [-1]


@given(st.lists(grouped(most=6, groups=1).map(lambda case: case[0]), max_size=4))
def test_offsets_are_of_the_mean_over_lists(cases: list[GroupedLists]) -> None:
    lists = lists_of(*(list(zip(one.scores, one.group, strict=True)) for one in cases), targets=[0.25, 0.25, 0.5])
    missing = []
    for one in filter(lambda one: len(one.scores), cases):
        weights = [1 / math.log2(1 + rank) for rank in range(1, len(one.scores) + 1)]
        shares = [sum(w for w, g in zip(weights, one.group, strict=True) if g == group) for group in (0, 1)]
        missing.append([0.25 - share / sum(weights) for share in shares])
    mean = np.mean(missing, axis=0) if missing else np.zeros(2)
    np.testing.assert_allclose(lean_offsets(lists), mean / (abs(mean).max() or 1), atol=1e-9)


def test_offsets_at_their_ends() -> None:
    for lists in (one_list([]), one_list([0], [1, 0, 0])):
        assert lean_offsets(lists).tolist() == [0, 0]
    for lists in (one_list([]), one_list([-1])):
        assert lean_offsets(lists, "magnitude").tolist() == [0]
    # The largest magnitude moves by the whole range.
    lists = replace(one_list([0, 1]), signed=np.array([3.0, -4.0]))
    assert lean_offsets(lists, "magnitude").tolist() == [-0.25]
    # At strength 1, 1 − 0.75 and 0 + 1.
    assert Shift(lean_offsets(lists, "magnitude"), "magnitude").order(lists, 1).tolist() == [1, 0]
