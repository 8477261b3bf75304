"""Balance: the least excess, then the least loss, against all orders; the gap of the beam is as stated."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.io.types import Array
from evenrank.mitigation import reorder_balance
from evenrank.mitigation.reorder_balance import Balance, Balanced
from evenrank.mitigation.reordering import GroupedLists


def lists_of(*lists: list[tuple[float, float]]) -> GroupedLists:
    """Lists of (relevance, signed magnitude)."""
    rows = np.array([row for one in lists for row in one], dtype=np.float64).reshape(-1, 2)
    return GroupedLists(
        offsets=np.cumsum([0, *map(len, lists)]),
        scores=rows[:, 0].copy(),
        signed=rows[:, 1].copy(),
        neutrality=np.zeros(len(rows)),
        group=np.full(len(rows), -1),
        groups=("female", "male"),
        targets=np.full((len(lists), 3), 1 / 3),
    )


def signs(*signed: float) -> GroupedLists:
    """One list, by falling relevance."""
    return lists_of(list(zip(np.linspace(1, 0, len(signed)), signed, strict=True)))


def figures(lists: GroupedLists, places: Array, epsilon: Array) -> tuple[Array, Array, Array]:
    """Excess, discounted relevance and the number of prefixes beyond ε of each list."""
    excess, utility, beyond = np.zeros((3, len(lists.lengths)))
    for query, (first, last) in enumerate(itertools.pairwise(lists.offsets)):
        order = places[first:last]
        assert sorted(order) == list(range(first, last))
        over = np.abs(np.cumsum(lists.signed[order])) - epsilon[query]
        over = np.where(over > 1e-9, over, 0)
        excess[query], beyond[query] = over.sum(), (over > 0).sum()
        utility[query] = (lists.scores[order] / np.log2(np.arange(2, 2 + len(order)))).sum()
    return excess, utility, beyond


def best(lists: GroupedLists, epsilon: float) -> tuple[float, float]:
    """Of all orders of one list: the least excess, and the largest discounted relevance that goes with it."""
    orders = np.array(list(itertools.permutations(range(len(lists.scores)))))
    over = np.abs(np.cumsum(lists.signed[orders], axis=1)) - epsilon
    excess = np.where(over > 1e-9, over, 0).sum(axis=1)
    utility = (lists.scores[orders] / np.log2(np.arange(2, 2 + orders.shape[1]))).sum(axis=1)
    least = excess.min()
    return float(least), float(utility[excess <= least + 1e-9].max())


magnitudes = st.one_of(
    st.sampled_from([-1.0, 0.0, 1.0]),
    st.sampled_from([float(sign * np.log(n)) for n in range(1, 5) for sign in (-1, 1)]),
    st.integers(-3000, 3000).map(lambda n: n / 1000),
)
one_list = st.lists(st.tuples(st.floats(0, 1), magnitudes), min_size=1, max_size=6).map(
    lambda rows: sorted(rows, reverse=True)
)
strengths = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.integers(0, 1000).map(lambda n: n / 1000))


def test_by_hand() -> None:
    # Sums 1 2 3 2 1 0. ε 3: as run; ε 1.5: no two of a pole in front; ε 0: no prefix of odd length is within.
    lists = signs(1, 1, 1, -1, -1, -1)
    assert Balance().order(lists, 0).tolist() == [0, 1, 2, 3, 4, 5]
    half = Balance().details(lists, 0.5)
    assert half.places.tolist() == [0, 3, 1, 4, 2, 5]
    assert (half.epsilon.tolist(), half.exact.tolist(), half.exceeding.tolist()) == ([1.5], [True], [0])
    whole = Balance().details(lists, 1)
    assert (whole.places.tolist(), whole.exceeding.tolist()) == ([0, 3, 1, 4, 2, 5], [3])
    # ε 2 of 3: two of the first pole, then one of the other.
    assert Balance().order(lists, 1 / 3).tolist() == [0, 1, 3, 2, 4, 5]


def test_a_surplus_goes_to_the_end_with_the_largest_last() -> None:
    # The sum is 6: with ε 0 neutral ones come first, then 1, 2 and 3: 1 + 3 + 6 in excess, and no other order has less.
    found = Balance().details(signs(3, 0, 2, 0, 1), 1)
    assert (found.places.tolist(), found.exceeding.tolist()) == ([1, 3, 4, 2, 0], [3])


@pytest.mark.parametrize("work", [0, reorder_balance.WORK])
@pytest.mark.parametrize("strength", [0, 0.3, 1])
def test_lists_with_nothing_to_balance_stay(work: int, strength: float) -> None:
    # No poles, one document, none at all, and equal magnitudes of one pole.
    lists = lists_of([(1, 0), (0.5, 0), (0, 0)], [(1, 2)], [], [(1, 1), (0.2, 1), (0, 1)])
    found = Balance(work=work).details(lists, strength)
    assert found.places.tolist() == list(range(7))
    assert found.exact.all()
    assert found.epsilon == pytest.approx((1 - strength) * np.array([0, 2, 0, 3]))
    within = {0: [0, 0, 0, 0], 0.3: [0, 1, 0, 1], 1: [0, 1, 0, 3]}
    assert found.exceeding.tolist() == within[strength]


def test_no_lists() -> None:
    found = Balance().details(lists_of(), 0.5)
    assert [len(column) for column in (found.places, found.epsilon, found.exact, found.exceeding)] == [0, 0, 0, 0]


def test_equal_relevance_parts_nothing_without_need() -> None:
    # All orders within ε are equally relevant: the first that alternates, in the run's order.
    lists = lists_of([(1, 1), (1, 1), (1, 0), (1, -1), (1, -1)])
    assert Balance().order(lists, 0).tolist() == [0, 1, 2, 3, 4]
    assert Balance().order(lists, 0.5).tolist() == [0, 2, 3, 1, 4]


def test_sums_that_are_zero_but_for_rounding_are_within() -> None:
    # In floating point log 6 − log 2 − log 3 is not 0.
    lists = signs(np.log(2), np.log(3), -np.log(6), 0.1, 0.2, -0.3)
    found = Balance().details(lists, 1)
    assert found.exceeding.tolist() == [4]
    tiny = Balance().details(signs(*(1e-9 * lists.signed)), 1)
    assert tiny.places.tolist() == found.places.tolist()


@settings(max_examples=80, deadline=None)
@given(one_list, strengths)
def test_no_order_is_better(rows: list[tuple[float, float]], strength: float) -> None:
    lists = lists_of(rows)
    exact, beam = Balance().details(lists, strength), Balance(work=0).details(lists, strength)
    excess, utility, beyond = figures(lists, exact.places, exact.epsilon)
    least, most = best(lists, exact.epsilon[0])
    assert exact.exact.all()
    assert excess[0] == pytest.approx(least, abs=1e-8)
    assert utility[0] == pytest.approx(most, abs=1e-8)
    assert exact.exceeding.tolist() == beyond.tolist()
    # The beam alone keeps to what it says of itself.
    excess, utility, beyond = figures(lists, beam.places, beam.epsilon)
    assert beam.exceeding.tolist() == beyond.tolist()
    assert excess[0] >= least - 1e-8
    if beam.exact[0]:
        assert excess[0] == pytest.approx(least, abs=1e-8)
        assert utility[0] == pytest.approx(most, abs=1e-8)


def drawn(seed: int, count: int, longest: int, shortest: int = 1) -> GroupedLists:
    """Random lists: a third each of labels, of log-counts and of any numbers, that lean more or less."""
    rng = np.random.default_rng(seed)
    lists = []
    for query in range(count):
        size = rng.integers(shortest, longest + 1)
        scores = -np.sort(-rng.random(size))
        scores = (scores - scores[-1]) / np.ptp(scores) if size > 1 else np.ones(1)
        sign = np.where(rng.random(size) < rng.uniform(0.3, 0.9), 1, -1) * (rng.random(size) < rng.uniform(0.4, 1))
        amount = (np.ones(size), np.log1p(rng.integers(1, 9, size)), rng.random(size))[query % 3]
        lists.append(list(zip(scores, sign * amount, strict=True)))
    return lists_of(*lists)


def test_the_gap_of_the_beam_is_as_stated() -> None:
    lists, strengths = drawn(7, 2000, 9), (0.25, 0.5, 0.75, 1)
    of_run = figures(lists, np.arange(len(lists.scores)), np.zeros(2000))[1]
    lost, best_found, more = [], [], 0
    for strength in strengths:
        exact, beam = Balance().details(lists, strength), Balance(work=0).details(lists, strength)
        assert exact.exact.all()
        (least, most, beyond), (excess, utility, others) = (
            figures(lists, found.places, found.epsilon) for found in (exact, beam)
        )
        lost.append((most - utility) / of_run)
        best_found.append((excess < least + 1e-6) & (utility > most - 1e-9))
        assert not (beam.exact & ~best_found[-1]).any()
        more += int(others.sum() - beyond.sum())
    stated = re.search(
        r"order of ([\d.]+) % and loses ([\d.]+) % .* average, ([\d.]+) % at most; of all prefixes, ([\d.]+) % more",
        " ".join((reorder_balance.__doc__ or "").split()),
    )
    assert stated is not None
    found, mean, worst = np.mean(best_found), np.mean(lost), np.max(lost)
    share = more / (len(strengths) * len(lists.scores))
    assert [float(figure) for figure in stated.groups()] == pytest.approx(
        [round(100 * figure, digits) for figure, digits in ((found, 1), (mean, 2), (worst, 0), (share, 2))]
    )


def test_long_lists() -> None:
    lists = drawn(3, 30, 100, 60)
    for strength in (0, 0.3, 0.9, 1):
        found = Balance().details(lists, strength)
        excess, utility, beyond = figures(lists, found.places, found.epsilon)
        assert found.exceeding.tolist() == beyond.tolist()
        of_run = figures(lists, np.arange(len(lists.scores)), found.epsilon)
        assert (excess <= of_run[0] + 1e-9).all()
        assert (utility <= of_run[1] + 1e-9).all()
        # Labels are searched exactly at any of these lengths; the rest stay as they are at strength 0 alone.
        assert found.exact[::3].all()
        assert (found.places == np.arange(len(lists.scores))).all() == (strength == 0)


def test_lists_are_independent(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = drawn(5, 12, 25)
    together = Balance().details(lists, 0.7)
    monkeypatch.setattr(reorder_balance, "_PART", 1)
    alone: Balanced = Balance().details(lists, 0.7)
    for name in ("places", "epsilon", "exact", "exceeding"):
        assert getattr(alone, name).tolist() == getattr(together, name).tolist()
