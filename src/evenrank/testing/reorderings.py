"""The contract of methods that reorder lists."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from evenrank.files.errors import EvenrankError
from evenrank.files.types import Array
from evenrank.mitigation.reorderings import GroupedLists, Reordering


def check_reordering(make: Callable[[], Reordering]) -> None:
    """Checks that a method which reorders lists keeps what :func:`evenrank.rebalance` relies on.

    - Each list's places come once, list by list, in int64; the same input gives the same order, and no list changes
      that of another.
    - At a strength of 0 every list stays; strengths outside 0 to 1 are refused; at every strength, documents that
      differ in nothing (or in their relevance alone) stay in the order of the run.

    ``make``: a class that is made without arguments, or a function that makes the method.
    Raises AssertionError with the first that is broken.
    """
    rng = np.random.default_rng(0)
    for _ in range(40):
        lists = _grouped(rng, rng.integers(0, 12, rng.integers(1, 5)))
        for strength in (0.0, 0.5, 1.0, float(rng.random())):
            _check_order(make, lists, strength)
    for group in (-1, 0, 1):
        alike = _grouped(rng, [8], group=group)
        order = make().order(alike, 1.0)
        assert order.tolist() == list(range(8)), "documents that are all alike do not stay"
    for strength in (-0.1, 1.1, float("nan")):
        try:
            make().order(_grouped(rng, [3]), strength)
        except EvenrankError:
            continue
        raise AssertionError(f"a strength of {strength} is taken")


def _grouped(rng: np.random.Generator, lengths: Array | list[int], group: int | None = None) -> GroupedLists:
    """Lists of documents about one of two groups, or none; with ties."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    count = int(offsets[-1])
    scores = (
        np.concatenate([np.sort(rng.integers(0, 5, length) / 4)[::-1] for length in lengths]) if count else np.zeros(0)
    )
    of = rng.integers(-1, 2, count) if group is None else np.full(count, group)
    signed = np.array([1.0, -1.0, 0.0])[of]
    targets = np.tile([0.4, 0.35, 0.25], (len(lengths), 1))
    return GroupedLists(offsets, scores, signed, (of < 0).astype(float), of.astype(np.int64), ("m", "f"), targets)


def _check_order(make: Callable[[], Reordering], lists: GroupedLists, strength: float) -> None:
    method = make()
    order = method.order(lists, strength)
    assert order.dtype == np.int64, f"places are {order.dtype}, not int64"
    for again in (method, make()):
        assert again.order(lists, strength).tolist() == order.tolist(), "the same input gives another order"
    if strength == 0:
        assert order.tolist() == list(range(len(lists.scores))), "a strength of 0 does not leave the run as it is"
    for number, (start, end) in enumerate(itertools.pairwise(lists.offsets)):
        places = order[start:end]
        assert sorted(places) == list(range(start, end)), "not every place of each list comes once, list by list"
        alone = GroupedLists(
            np.array([0, end - start]),
            lists.scores[start:end],
            lists.signed[start:end],
            lists.neutrality[start:end],
            lists.group[start:end],
            lists.groups,
            lists.targets[number : number + 1],
        )
        assert (make().order(alone, strength) + start).tolist() == places.tolist(), "a list changes another's order"
        for group in (-1, 0, 1):
            of = places[lists.group[places] == group]
            assert of.tolist() == sorted(of), "documents that differ in their relevance alone change their order"
