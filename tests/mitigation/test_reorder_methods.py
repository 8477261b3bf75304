"""Each method that reorders lists against its slow version, by hand and against the published tables."""

from __future__ import annotations

import csv
import itertools
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.mitigation._reordering import falling
from evenrank.mitigation.reorderings import DetConstSort, Fair, GroupedLists, Neutral, Shift, lean_offsets, m_table
from slow_reorderings import det_const_sort, grouped, lists_of, merges, one_list, within

Case = tuple[GroupedLists, list[Fraction]]


# --- The compiled merge sort of lists: equal to numpy's, and stable ---


@given(st.lists(st.integers(0, 130), max_size=5), st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_like_a_stable_sort(lengths: list[int], distinct: int, seed: int) -> None:
    offsets = np.cumsum([0, *lengths])
    rng = np.random.default_rng(seed)
    # From many equal values to nearly none, and from nearly sorted to shuffled.
    values = rng.integers(0, distinct, offsets[-1]) / 7 - rng.integers(0, 2) * np.arange(offsets[-1]) / 20
    list_of = np.repeat(np.arange(len(lengths)), lengths)
    assert falling(offsets, values).tolist() == np.lexsort((-values, list_of)).tolist()


# --- Neutral: the greedy order is a sort, and no order has a larger sum ---


def neutral_lists(*lists: list[tuple[float, float]]) -> GroupedLists:
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


unit = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
neutral_list = st.lists(st.tuples(unit, unit), max_size=7).map(
    lambda rows: sorted(rows, key=lambda row: row[0], reverse=True)
)


def test_neutral_by_hand() -> None:
    lists = neutral_lists([(1, 0), (0.5, 0.5), (0.25, 1), (0, 1)], [], [(1, 1)], [(1, 0.2), (0.4, 0.9)])
    assert Neutral().order(lists, 0).tolist() == [0, 1, 2, 3, 4, 5, 6]
    # .5, .5, .625 and .5: equal ones in the run's order. .6 and .65.
    assert Neutral().order(lists, 0.5).tolist() == [2, 0, 1, 3, 4, 6, 5]
    assert Neutral().order(lists, 1).tolist() == [2, 3, 1, 0, 4, 6, 5]
    assert Neutral().order(neutral_lists(), 0.5).tolist() == []


@given(neutral_list, unit)
def test_greedy_and_no_order_is_better(rows: list[tuple[float, float]], strength: float) -> None:
    lists = neutral_lists(rows)
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


# --- FA*IR: the tables of fairsearchcore, and the best of all orders that meet them ---

# Written by fairsearchcore 1.0.4 (with scipy 1.17.1): RecursiveNumericFailProbabilityCalculator(k, p, alpha)
# .adjust_alpha(). `needed_from`: the prefixes at which one more protected document is needed.
TABLES = list(csv.DictReader(Path(__file__).with_name("fairsearchcore_tables.csv").read_text("utf-8").splitlines()))


@pytest.mark.parametrize("row", TABLES, ids=lambda row: f"{row['k']}-{row['p']}-{row['alpha']}")
def test_tables_of_fairsearchcore(row: dict[str, str]) -> None:
    k = int(row["k"])
    found = m_table(k, float(row["p"]), float(row["alpha"]))
    needed = np.array(row["needed_from"].split(), dtype=int)
    assert found.minimum.tolist() == [int((needed <= length).sum()) for length in range(1, k + 1)]
    assert found.alpha == pytest.approx(float(row["adjusted_alpha"]), abs=1e-15)
    assert found.fail_probability == pytest.approx(float(row["fail_probability"]), abs=1e-12)


def test_ends_of_the_range() -> None:
    assert m_table(5, 0).minimum.tolist() == [0] * 5
    assert m_table(5, 1).minimum.tolist() == [1, 2, 3, 4, 5]
    # The last place is left out of the correction, and there is no other.
    assert m_table(1, 0.95).minimum.tolist() == [0]


def test_fair_by_hand() -> None:
    # The table of 8 documents is 0, 0, 0, 1, 1, 1, 2, 2.
    fair = Fair(protected=1)
    assert fair.order(one_list([0, 0, 0, 0, 0, 1, 1, 1]), 1).tolist() == [0, 1, 2, 5, 3, 4, 6, 7]
    assert fair.order(one_list([0, 0, -1, 0, 0, 1, -1, 1]), 1).tolist() == [0, 1, 2, 5, 3, 4, 7, 6]
    assert fair.order(one_list([1, 1, 1, 0, 0, 0, 0, 0]), 1).tolist() == list(range(8))
    # p = 0.25 asks for none.
    assert fair.order(one_list([0, 0, 0, 0, 0, 1, 1, 1]), 0.5).tolist() == list(range(8))


@given(grouped(most=9, groups=2), st.integers(1, 9), st.floats(0, 1))
def test_best_choice_of_k_documents_of_n(case: tuple[GroupedLists, object], top: int, strength: float) -> None:
    lists, _ = case
    fair, protected = Fair(0, 0.5, top), (lists.group == 0).tolist()
    order = fair.order(lists, strength).tolist()
    promised = min(top, len(order))
    minimum = m_table(promised, strength * lists.targets[0, 0], 0.5).minimum if order else np.zeros(0, int)
    first = [one for one in order[:promised] if protected[one]]
    enough = np.minimum(minimum, sum(protected))
    assert (np.cumsum([protected[one] for one in order[:promised]]) >= enough).all()
    # The rest is in the run's order, and whoever rose without need would have come from there.
    assert order[promised:] == sorted(order[promised:])
    assert first == [place for place, one in enumerate(protected) if one][: len(first)]
    have = np.array([protected[one] for one in order[:promised]]).cumsum()
    assert fair.unmet(lists, np.array(order, dtype=np.int64), strength).sum() == (have < minimum).sum()
    if top >= len(order):
        assert order == Fair(0, 0.5).order(lists, strength).tolist()


@given(grouped(most=9, groups=2), st.sampled_from([0.01, 0.1, 0.5]), st.floats(0, 1))
def test_best_of_all_merges_at_every_prefix(case: tuple[GroupedLists, object], alpha: float, strength: float) -> None:
    lists, _ = case
    fair = Fair(0, alpha)
    order = fair.order(lists, strength).tolist()
    protected = (lists.group == 0).tolist()
    there = sum(protected)
    n = len(protected)
    minimum = m_table(n, strength * lists.targets[0, 0], alpha).minimum if n else np.zeros(0, int)
    meeting = [
        one
        for one in map(np.array, merges(protected))
        if (np.cumsum(np.array(protected)[one.astype(int)]) >= np.minimum(minimum, there)).all()
    ]
    assert order in [one.tolist() for one in meeting]
    sums = np.array([np.cumsum(lists.scores[one.astype(int)]) for one in meeting])
    assert (np.cumsum(lists.scores[order]) >= sums.max(axis=0) - 1e-12).all()


# --- DetConstSort: the published algorithm, its and its constraints ---

STRENGTHS = [Fraction(number, 4) for number in range(5)]


def numbered(lists: GroupedLists) -> list[int]:
    return np.where(lists.group < 0, len(lists.groups), lists.group).tolist()


@given(grouped(most=14, groups=4), st.sampled_from(STRENGTHS))
def test_as_published(case: Case, strength: Fraction) -> None:
    lists, target = case
    least = [strength * share for share in target]
    group = numbered(lists)
    order = DetConstSort().order(lists, float(strength))
    assert order.tolist() == det_const_sort(group, least)
    unmet = DetConstSort().unmet(lists, order, float(strength))
    assert unmet.tolist() == [within(group, order, least).count(False)]


@given(grouped(most=12, groups=3), st.integers(1, 12), st.sampled_from(STRENGTHS))
def test_only_the_first_ranks_have_a_promise(case: Case, top: int, strength: Fraction) -> None:
    lists, target = case
    sort, group, least = DetConstSort(top), numbered(lists), [strength * share for share in target]
    order = sort.order(lists, float(strength))
    assert order[top:].tolist() == sorted(order[top:].tolist())
    missed = within(group, order[:top], least).count(False)
    assert sort.unmet(lists, order, float(strength)).tolist() == [missed]
    enough = [group.count(number) >= int(share * min(top, len(group))) for number, share in enumerate(least)]
    assert missed == 0 or not all(enough)
    if top >= len(group):
        assert order.tolist() == DetConstSort().order(lists, float(strength)).tolist()


def test_detconstsort_by_hand() -> None:
    lists = one_list([0, 0, 0, 1, 1, 1])
    assert DetConstSort().order(lists, 1).tolist() == [0, 3, 1, 4, 2, 5]
    assert DetConstSort().order(lists, 0.5).tolist() == [0, 1, 2, 3, 4, 5]
    assert DetConstSort(top=2).order(lists, 1).tolist() == [0, 3, 1, 2, 4, 5]
    # Other groups than there are count as none.
    assert DetConstSort().order(one_list([5, 0, -7, 1]), 1).tolist() == [1, 3, 0, 2]
    # Nobody's target leaves something to documents without a group: they come last.
    assert DetConstSort().order(one_list([-1, 0, -1, 1]), 1).tolist() == [1, 3, 0, 2]


# --- Shift: a sort; offsets against the lean ---


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


def test_shift_offsets_by_hand() -> None:
    # Exposure of m: (1 + 1/log2 3)/2.1309; of f: 0.5/2.1309.
    lists = lists_of([(1, 0), (0.7, 0), (0.4, 1)], [], targets=[0.25, 0.5, 0.25])
    missing = np.array([0.25, 0.5]) - np.array([1 + 1 / math.log2(3), 0.5]) / (1.5 + 1 / math.log2(3))
    np.testing.assert_allclose(lean_offsets(lists), missing / abs(missing[0]))
    assert lean_offsets(lists)[0] == -1
    assert lean_offsets(lists, "magnitude").tolist() == [-1]
    # The largest magnitude moves by the whole range; without any there is nothing to move.
    lists = replace(one_list([0, 1]), signed=np.array([3.0, -4.0]))
    assert lean_offsets(lists, "magnitude").tolist() == [-0.25]
    assert lean_offsets(one_list([-1]), "magnitude").tolist() == [0]


@given(st.lists(grouped(most=6, groups=1).map(lambda case: case[0]), max_size=4))
def test_shift_offsets_are_of_the_mean_over_lists(cases: list[GroupedLists]) -> None:
    lists = lists_of(*(list(zip(one.scores, one.group, strict=True)) for one in cases), targets=[0.25, 0.25, 0.5])
    missing = []
    for one in filter(lambda one: len(one.scores), cases):
        weights = [1 / math.log2(1 + rank) for rank in range(1, len(one.scores) + 1)]
        shares = [sum(w for w, g in zip(weights, one.group, strict=True) if g == group) for group in (0, 1)]
        missing.append([0.25 - share / sum(weights) for share in shares])
    mean = np.mean(missing, axis=0) if missing else np.zeros(2)
    np.testing.assert_allclose(lean_offsets(lists), mean / (abs(mean).max() or 1), atol=1e-9)


@pytest.mark.parametrize(("k", "p"), [(10, 0.3), (13, 0.5), (12, 0.8), (14, 0.05)])
def test_fail_probability_is_that_of_all_lists(k: int, p: float) -> None:
    found = m_table(k, p)
    drawn = np.array(list(itertools.product([0, 1], repeat=k - 1)))
    chance = np.prod(np.where(drawn, p, 1 - p), axis=1)
    fails = (drawn.cumsum(axis=1) < found.minimum[:-1]).any(axis=1)
    assert found.fail_probability == pytest.approx(chance[fails].sum(), abs=1e-12)
