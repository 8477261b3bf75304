"""DetConstSort: the published algorithm, its constraints, and what it loses to the best order."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenrank.mitigation.reorderings import DetConstSort, GroupedLists
from slow_reorderings import (
    det_const_sort,
    grouped,
    lists_of,
    merges,
    one_list,
    shares,
    utility,
    within,
)

Case = tuple[GroupedLists, list[Fraction]]
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


def test_by_hand() -> None:
    lists = one_list([0, 0, 0, 1, 1, 1])
    assert DetConstSort().order(lists, 1).tolist() == [0, 3, 1, 4, 2, 5]
    assert DetConstSort().order(lists, 0.5).tolist() == [0, 1, 2, 3, 4, 5]
    assert DetConstSort(top=2).order(lists, 1).tolist() == [0, 3, 1, 2, 4, 5]
    # Other groups than there are count as none.
    assert DetConstSort().order(one_list([5, 0, -7, 1]), 1).tolist() == [1, 3, 0, 2]
    # Nobody's target leaves something to documents without a group: they come last.
    assert DetConstSort().order(one_list([-1, 0, -1, 1]), 1).tolist() == [1, 3, 0, 2]


def test_a_document_may_wait_until_its_due_rank_and_no_longer() -> None:
    # With an index from 0, as published, the document of f slips from rank 2, its last, to rank 3.
    group, half = [0, 0, 1, 1], [Fraction(1, 2), Fraction(1, 2), Fraction(0)]
    lists = one_list(group)
    slipped = det_const_sort(group, half, slip=1)
    assert slipped == [0, 1, 2, 3]
    assert DetConstSort().unmet(lists, np.array(slipped), 1).tolist() == [1]
    kept = DetConstSort().order(lists, 1)
    assert kept.tolist() == [0, 2, 1, 3]
    assert DetConstSort().unmet(lists, kept, 1).tolist() == [0]


@st.composite
def plenty(draw: st.DrawFn, kinds: int) -> Case:
    """12 documents of each of so many groups (those without one count) in some order."""
    target = draw(shares(kinds - 1))
    group = draw(st.permutations([number for number in range(-1, kinds - 1) for _ in range(12)]))
    return one_list(group, [float(share) for share in target]), target


def first_unmet(lists: GroupedLists, strength: float) -> int:
    """Prefixes of the first 12 ranks, for which every group has enough documents, that miss a minimum."""
    order = DetConstSort().order(lists, strength)[:12]
    first = {name: getattr(lists, name)[:12] for name in ("scores", "signed", "neutrality")}
    twelve = replace(lists, offsets=np.array([0, 12]), group=lists.group[order], **first)
    return int(DetConstSort().unmet(twelve, np.arange(12), strength)[0])


@given(st.integers(2, 6).flatmap(plenty), st.floats(0, 1))
def test_detconstsort_keeps_every_minimum(case: Case, strength: float) -> None:
    assert first_unmet(case[0], strength) == 0


def losses(lists: GroupedLists, target: list[Fraction]) -> list[float]:
    """What is lost at each strength to the best order that meets the same minimums, if they are met."""
    found = []
    group = numbered(lists)
    scores = lists.scores.tolist()
    orders = sorted(merges(group), key=lambda order: -utility(scores, order))
    for strength in STRENGTHS[1:]:
        least = [strength * share for share in target]
        order = DetConstSort().order(lists, float(strength)).tolist()
        if all(within(group, order, least, there=True)):
            best = next(one for one in orders if all(within(group, one, least, there=True)))
            found.append(1 - utility(scores, order) / (utility(scores, best) or 1) if utility(scores, best) else 0.0)
    return found


def test_loss_to_the_best_order() -> None:
    rng = np.random.default_rng(19)
    found: list[float] = []
    for _ in range(150):
        groups = int(rng.integers(1, 4))
        weights = rng.integers(0, 6, groups + 1)
        weights[0] += 1
        group = rng.integers(-1, groups, rng.integers(2, 8))
        scores = np.sort(rng.random(len(group)))[::-1]
        scores = (scores - scores[-1]) / (scores[0] - scores[-1])
        target = [Fraction(int(weight), int(weights.sum())) for weight in weights]
        lists = lists_of(list(zip(scores, group, strict=True)), targets=[float(share) for share in target])
        found += losses(lists, target)
    assert len(found) > 300
    assert min(found) > -1e-12
    assert np.mean(found) < 0.003
    assert 0 < max(found) < 0.4
