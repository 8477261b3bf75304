"""FA*IR: the tables of fairsearchcore, and the best of all orders that meet them."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.mitigation.reorderings import Fair, GroupedLists, m_table
from slow_reorderings import grouped, lists_of, merges, one_list, utility

# Written by fairsearchcore 1.0.4 (with scipy 1.17.1): RecursiveNumericFailProbabilityCalculator(k, p, alpha)
# .adjust_alpha(). `needed_from`: the prefixes at which one more protected document is needed.
TABLES = list(
    csv.DictReader(
        (Path(__file__).parent / "fairsearchcore_tables.csv").read_text(encoding="utf-8").splitlines(),
    )
)


@pytest.mark.parametrize("row", TABLES, ids=lambda row: f"{row['k']}-{row['p']}-{row['alpha']}")
def test_tables_of_fairsearchcore(row: dict[str, str]) -> None:
    k = int(row["k"])
    found = m_table(k, float(row["p"]), float(row["alpha"]))
    needed = np.array(row["needed_from"].split(), dtype=int)
    assert found.minimum.tolist() == [int((needed <= length).sum()) for length in range(1, k + 1)]
    assert found.alpha == pytest.approx(float(row["adjusted_alpha"]), abs=1e-15)
    assert found.fail_probability == pytest.approx(float(row["fail_probability"]), abs=1e-12)


@pytest.mark.parametrize(("k", "p"), [(10, 0.3), (13, 0.5), (12, 0.8), (14, 0.05)])
def test_fail_probability_is_that_of_all_lists(k: int, p: float) -> None:
    found = m_table(k, p)
    drawn = np.array(list(itertools.product([0, 1], repeat=k - 1)))
    chance = np.prod(np.where(drawn, p, 1 - p), axis=1)
    fails = (drawn.cumsum(axis=1) < found.minimum[:-1]).any(axis=1)
    assert found.fail_probability == pytest.approx(chance[fails].sum(), abs=1e-12)


def test_ends_of_the_range() -> None:
    assert m_table(5, 0).minimum.tolist() == [0] * 5
    assert m_table(5, 1).minimum.tolist() == [1, 2, 3, 4, 5]
    # The last place is left out of the correction, and there is no other.
    assert m_table(1, 0.95).minimum.tolist() == [0]


def test_a_larger_proportion_asks_for_more_but_where_the_correction_ends_elsewhere() -> None:
    tables = np.array([m_table(60, p).minimum for p in np.linspace(0, 1, 201)])
    assert np.diff(tables, axis=0).min() >= -1
    assert (np.diff(tables.sum(axis=1)) >= 0).mean() > 0.95


def test_by_hand() -> None:
    # The table of 8 documents is 0, 0, 0, 1, 1, 1, 2, 2.
    fair = Fair(protected=1)
    assert fair.order(one_list([0, 0, 0, 0, 0, 1, 1, 1]), 1).tolist() == [0, 1, 2, 5, 3, 4, 6, 7]
    assert fair.order(one_list([0, 0, -1, 0, 0, 1, -1, 1]), 1).tolist() == [0, 1, 2, 5, 3, 4, 7, 6]
    assert fair.order(one_list([1, 1, 1, 0, 0, 0, 0, 0]), 1).tolist() == list(range(8))
    # p = 0.25 asks for none.
    assert fair.order(one_list([0, 0, 0, 0, 0, 1, 1, 1]), 0.5).tolist() == list(range(8))


def test_too_few_protected_documents_are_counted() -> None:
    lists = lists_of(
        *[[(1 - n / 8, group) for n, group in enumerate(row)] for row in ([0] * 8, [0] * 7 + [1], [1] * 8)]
    )
    fair = Fair(protected=1)
    order = fair.order(lists, 1)
    assert order.tolist() == [*range(8), 8, 9, 10, 15, 11, 12, 13, 14, *range(16, 24)]
    assert fair.unmet(lists, order, 1).tolist() == [5, 2, 0]
    assert fair.unmet(lists, np.arange(24), 1).tolist() == [5, 5, 0]


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


@settings(max_examples=15)
@given(grouped(most=6, groups=2), st.floats(0.5, 1))
def test_best_of_all_orders(case: tuple[GroupedLists, object], strength: float) -> None:
    lists, _ = case
    order = Fair(0, 0.5).order(lists, strength).tolist()
    protected = lists.group == 0
    n = len(protected)
    minimum = np.minimum(m_table(n, strength * lists.targets[0, 0], 0.5).minimum, protected.sum()) if n else 0
    scores = lists.scores.tolist()
    best = max(
        utility(scores, one)
        for one in itertools.permutations(range(n))
        if not n or (np.cumsum(protected[list(one)]) >= minimum).all()
    )
    assert utility(scores, order) == pytest.approx(best)
