"""Slow, obvious versions of the methods that reorder lists by group, and random lists for both."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from evenrank.mitigation.reorderings import GroupedLists

Order = Sequence[int]


def lists_of(*lists: Sequence[tuple[float, int]], targets: Sequence[float] = (0.5, 0.5, 0)) -> GroupedLists:
    """Lists of (score, group); m is group 0 with a signed magnitude of 1, f is 1 with −1, −1 has none."""
    scores = [score for rows in lists for score, _ in rows]
    group = np.array([group for rows in lists for _, group in rows], dtype=np.int64)
    return GroupedLists(
        offsets=np.cumsum([0, *map(len, lists)]),
        scores=np.array(scores, dtype=np.float64),
        signed=np.where(group == 0, 1.0, np.where(group == 1, -1.0, 0.0)),
        neutrality=(group < 0).astype(np.float64),
        group=group,
        groups=tuple("mfxyz"[: len(targets) - 1]),
        targets=np.tile(np.array(targets, dtype=np.float64), (len(lists), 1)),
    )


def one_list(groups: Sequence[int], targets: Sequence[float] = (0.5, 0.5, 0)) -> GroupedLists:
    """One list whose scores fall evenly from 1 to 0."""
    return lists_of(list(zip(np.linspace(1, 0, len(groups)), groups, strict=True)), targets=targets)


@st.composite
def shares(draw: st.DrawFn, groups: int) -> list[Fraction]:
    """Target shares of groups and of documents without one, in twelfths and the like, which sum to 1."""
    weights = draw(st.lists(st.integers(0, 5), min_size=groups + 1, max_size=groups + 1).filter(any))
    return [Fraction(weight, sum(weights)) for weight in weights]


@st.composite
def grouped(draw: st.DrawFn, most: int = 9, groups: int = 3) -> tuple[GroupedLists, list[Fraction]]:
    """One list of up to ``most`` documents of up to ``groups`` groups, and its exact target shares."""
    groups = draw(st.integers(1, groups))
    target = draw(shares(groups))
    rows = draw(st.lists(st.tuples(st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.integers(-1, groups - 1)), max_size=most))
    rows.sort(key=lambda row: -row[0])
    return lists_of(rows, targets=[float(share) for share in target]), target


def merges(group: Sequence[int]) -> Iterator[list[int]]:
    """All orders of a list's documents that keep the run's order within each group."""
    queues = [[place for place, one in enumerate(group) if one == number] for number in sorted(set(group))]

    def extended(order: list[int], left: list[list[int]]) -> Iterator[list[int]]:
        if not any(left):
            yield order
        for number, queue in enumerate(left):
            if queue:
                yield from extended([*order, queue[0]], [*left[:number], queue[1:], *left[number + 1 :]])

    return extended([], queues)


def counts(group: Sequence[int], order: Order, groups: int) -> Iterator[tuple[int, list[int]]]:
    """The length of each prefix, and its documents of each group."""
    found = [0] * groups
    for length, place in enumerate(order, start=1):
        found[group[place]] += 1
        yield length, list(found)


def within(group: Sequence[int], order: Order, least: Sequence[Fraction]) -> list[bool]:
    """Whether each prefix keeps the minimums."""
    return [
        all(math.floor(low * k) <= one for one, low in zip(found, least, strict=True))
        for k, found in counts(group, order, len(least))
    ]


def det_const_sort(group: Sequence[int], least: Sequence[Fraction]) -> list[int]:
    """Algorithm 3 of Geyik et al. 2019, in its words; what no minimum asks for within the list is added at the end."""
    queues = [[place for place, one in enumerate(group) if one == number] for number in range(len(least))]
    order: list[int] = []
    max_indices: list[int] = []

    def insert(place: int, max_index: int) -> None:
        start = len(order)
        order.append(place)
        max_indices.append(max_index)
        while start > 0 and max_indices[start - 1] >= start + 1 and order[start - 1] > order[start]:
            for one in (order, max_indices):
                one[start - 1], one[start] = one[start], one[start - 1]
            start -= 1

    min_counts = [0] * len(least)
    for k in range(1, len(group) + 1):
        temp_min_counts = [math.floor(share * k) for share in least]
        changed = [a for a in range(len(least)) if min_counts[a] < temp_min_counts[a] and queues[a]]
        for a in sorted(changed, key=lambda a: queues[a][0]):
            insert(queues[a].pop(0), k)
        min_counts = temp_min_counts
    for place in sorted(itertools.chain(*queues)):
        insert(place, len(group) + 1)
    return order
