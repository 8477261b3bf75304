"""Ranked lists as flat arrays: sorted, summed and taken from, as slow obvious loops do it."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.measures import RankedLists
from evenrank.measures.joined import ideal_order
from evenrank.measures.neutrality import fairr
from evenrank.measures.ranked_lists import Column, TableRows

LENGTHS = st.lists(st.integers(0, 12), max_size=9)


def lists_of(lengths: list[int], scores: Any = None) -> RankedLists:
    offsets = np.concatenate(([0], np.cumsum(np.array(lengths, dtype=np.int64))))
    return RankedLists(offsets, np.zeros(int(offsets[-1])) if scores is None else scores)


def drawn(lengths: list[int], seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, *lengths])


@given(LENGTHS, st.sampled_from([1, 3, 1 << 30]), st.integers(0, 9))
def test_each_list_by_falling_code(lengths: list[int], most: int, seed: int) -> None:
    code = drawn(lengths, seed).integers(0, most, sum(lengths)).astype(np.int32)
    slow = [
        place
        for start, end in itertools.pairwise(lists_of(lengths).offsets.tolist())
        for place in sorted(range(start, end), key=lambda place: -int(code[place]))
    ]
    assert lists_of(lengths).falling(code).tolist() == slow
    assert lists_of(lengths).places().tolist() == [place for length in lengths for place in range(length)]


@given(LENGTHS, st.integers(0, 9))
def test_totals_to_the_last_bit(lengths: list[int], seed: int) -> None:
    values, lists = drawn(lengths, seed).normal(size=sum(lengths)), lists_of(lengths)
    at_once = np.add.reduceat(np.append(values, 0.0), lists.offsets[:-1]) if lengths else np.zeros(0)
    assert lists.totals(values).tolist() == np.where(lists.lengths > 0, at_once, 0.0).tolist()


@given(LENGTHS, st.integers(0, 9))
def test_blocks_of_ties(lengths: list[int], seed: int) -> None:
    scores = -np.sort(drawn(lengths, seed).integers(0, 3, sum(lengths))).astype(np.float64)
    starts, sizes = lists_of(lengths, scores).ties
    slow, place = [], 0
    for length in lengths:
        for _, block in itertools.groupby(range(place, place + length), key=lambda row: float(scores[row])):
            rows = list(block)
            slow += [(rows[0], len(rows))] if len(rows) > 1 else []
        place += length
    assert list(zip(starts.tolist(), sizes.tolist(), strict=True)) == slow


@given(LENGTHS, st.integers(1, 20), st.integers(0, 9))
def test_means_of_a_column_with_unknown_documents(lengths: list[int], height: int, seed: int) -> None:
    rng = drawn(lengths, seed)
    rows, of_table = rng.integers(-1, height, sum(lengths)).astype(np.int32), rng.normal(size=height)
    lists, column = lists_of(lengths), Column(lambda known: of_table[known], TableRows(rows, height), 0.5)
    values = np.where(rows >= 0, of_table[rows], 0.5)
    assert column.means(lists).tolist() == lists.means(values).tolist()
    assert column.first(lists, 3).tolist() == lists.top(values, 3).tolist()
    assert column[:].tolist() == values.tolist()


@pytest.mark.parametrize("kind", [np.uint8, np.bool_])
def test_a_column_of_other_numbers(kind: Any) -> None:
    of_table = np.array([0, 1, 1, 0]).astype(kind)
    column = Column(lambda known: of_table[known], TableRows(np.array([0, 1, -1, 2, 3], dtype=np.int32), 4), 0.5)
    lists = lists_of([5], np.array([3.0, 2.0, 2.0, 2.0, 1.0]))
    # The mean of a tie, and its largest values first.
    assert lists.tie_average(column, 4).tolist() == [[0, 2.5 / 3, 2.5 / 3, 2.5 / 3]]
    assert lists.tie_sorted(column, 4, largest_first=True).tolist() == [[0, 1, 1, 0.5]]
    assert ideal_order(of_table[None], np.array([4]), 3).tolist() == [[1, 1, 0]]


@given(LENGTHS, st.integers(1, 14), st.integers(0, 9))
def test_neutral_documents_first(lengths: list[int], depth: int, seed: int) -> None:
    width = max([1, *lengths])
    neutrality = drawn(lengths, seed).integers(0, 5, (len(lengths), width)) / 4
    slow = [
        sorted(row[:length], reverse=True) + [-1.0] * (width - length)
        for row, length in zip(neutrality.tolist(), lengths, strict=True)
    ]
    found = ideal_order(neutrality, np.array(lengths, dtype=np.int64), depth)
    assert found.tolist() == [row[:depth] for row in slow]


@given(LENGTHS, st.integers(1, 12), st.integers(0, 9))
def test_fairr_to_the_last_bit(lengths: list[int], cutoff: int, seed: int) -> None:
    neutrality = drawn(lengths, seed).random((len(lengths), 12))
    weights = np.where(np.arange(cutoff) < np.array(lengths)[:, None], 1 / np.log2(np.arange(2, cutoff + 2)), 0.0)
    at_once = np.where(np.array(lengths) > 0, (weights * neutrality[:, :cutoff]).sum(axis=1), np.nan)
    for given_ in (neutrality, np.asfortranarray(neutrality)):
        found = fairr(given_, np.array(lengths, dtype=np.int64), cutoff)
        np.testing.assert_array_equal(found, at_once)
