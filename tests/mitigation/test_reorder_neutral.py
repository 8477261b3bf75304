"""Neutral: the greedy order is a sort, and no order has a larger sum."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.mitigation.reorderings import GroupedLists, Neutral


def lists_of(*lists: list[tuple[float, float]]) -> GroupedLists:
    """Lists of (relevance, neutrality)."""
    rows = np.array([row for one in lists for row in one], dtype=np.float64).reshape(-1, 2)
    return GroupedLists(
        offsets=np.cumsum([0, *map(len, lists)]),
        scores=rows[:, 0].copy(),
        signed=np.zeros(len(rows)),
        neutrality=rows[:, 1].copy(),
        group=np.full(len(rows), -1),
        groups=("female", "male"),
        targets=np.full((len(lists), 3), 1 / 3),
    )


shares = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
one_list = st.lists(st.tuples(shares, shares), max_size=7).map(
    lambda rows: sorted(rows, key=lambda row: row[0], reverse=True)
)


def test_by_hand() -> None:
    lists = lists_of([(1, 0), (0.5, 0.5), (0.25, 1), (0, 1)], [], [(1, 1)], [(1, 0.2), (0.4, 0.9)])
    assert Neutral().order(lists, 0).tolist() == [0, 1, 2, 3, 4, 5, 6]
    # .5, .5, .625 and .5: equal ones in the run's order. .6 and .65.
    assert Neutral().order(lists, 0.5).tolist() == [2, 0, 1, 3, 4, 6, 5]
    assert Neutral().order(lists, 1).tolist() == [2, 3, 1, 0, 4, 6, 5]
    assert Neutral().order(lists_of(), 0.5).tolist() == []


@given(one_list, shares)
def test_greedy_and_no_order_is_better(rows: list[tuple[float, float]], strength: float) -> None:
    lists = lists_of(rows)
    discount = 1 / np.log2(np.arange(2, 2 + len(rows)))
    # Rank by rank, with the gain that each has at that rank; the first of equal ones.
    greedy, left = [], list(range(len(rows)))
    while left:
        greedy.append(max(left, key=lambda i: (1 - strength) * rows[i][0] + strength * rows[i][1]))
        left.remove(greedy[-1])
    order = Neutral().order(lists, strength)
    assert order.tolist() == greedy
    value = (1 - strength) * lists.scores + strength * lists.neutrality
    orders = np.array(list(itertools.permutations(range(len(rows)))), dtype=np.int64)
    assert (value[order] * discount).sum() == pytest.approx((value[orders] * discount).sum(axis=1).max())
