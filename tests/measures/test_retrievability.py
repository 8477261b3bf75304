"""Exposure over many queries: against loops over the definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.measures.retrievability import gini, lorenz, retrievability

LISTS = st.lists(st.permutations(range(6)).flatmap(lambda p: st.integers(0, 6).map(lambda n: p[:n])), max_size=8)
VALUES = st.lists(st.floats(0, 1e6) | st.just(0.0), min_size=1, max_size=12)


@given(LISTS)
def test_exposure_is_a_loop_over_lists(lists: list[list[int]]) -> None:
    expected = [0.0] * 6
    for one in lists:
        for rank, document in enumerate(one, 1):
            expected[document] += 1 / math.log(1 + rank)
    rows = [(document, rank) for one in lists for rank, document in enumerate(one, 1)]
    documents, ranks = np.array(rows, np.int64).reshape(-1, 2).T
    assert retrievability(documents, ranks, 6) == pytest.approx(expected, rel=1e-12)


@given(VALUES)
def test_gini_is_half_the_relative_mean_difference(values: list[float]) -> None:
    mean = sum(values) / len(values)
    if mean == 0:
        assert gini(np.array(values)) is None
        return
    apart = sum(abs(x - y) for x in values for y in values) / len(values) ** 2
    assert gini(np.array(values)) == pytest.approx(apart / (2 * mean), abs=1e-9)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=100).filter(any))
def test_lorenz_curve_is_what_the_least_have(values: list[int]) -> None:
    found = lorenz(np.array(values, float))
    ascending = sorted(values)
    for percent, share in enumerate(found):
        whole, part = divmod(percent * len(values), 100)
        so_far = sum(ascending[:whole]) + (ascending[whole] * part / 100 if part else 0)
        assert share == pytest.approx(so_far / sum(values), abs=1e-9)
