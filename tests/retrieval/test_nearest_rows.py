"""The nearest rows of large matrices: a first pass in 8 bits against all products."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenrank.retrieval import nearest_rows
from evenrank.retrieval._byte_products import able
from evenrank.retrieval.nearest_rows import Floats, Similarity

_ROWS = 3 * nearest_rows._BLOCK + 70


@pytest.fixture(autouse=True, scope="module")
def _smaller() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nearest_rows, "_FEW_ROWS", 2 * nearest_rows._BLOCK)
        patch.setattr(nearest_rows, "_FEW_PRODUCTS", 0)
        yield


def matrix(kind: str, dimensions: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    rows: Floats = rng.standard_normal((_ROWS, dimensions), dtype=np.float32)
    if kind == "ties":
        rows = np.rint(rows)
    elif kind == "copies":
        rows[5000:9000] = rows[1000:5000]
    elif kind == "lengths":
        rows *= rng.lognormal(0, 3, (_ROWS, 1)).astype(np.float32)
    elif kind == "zeros":
        rows[rng.integers(0, _ROWS, 6000)] = 0
    elif kind == "falling":
        rows = rows[np.argsort(-rows[:, 0])]
    elif kind == "rising":
        rows = rows[np.argsort(rows[:, 0])]
    elif kind == "tiny":
        rows[rng.integers(0, _ROWS, 3)] *= np.float32(1e-25)
    return np.ascontiguousarray(rows)


def points(rows: Floats, number: int, seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    found: Floats = np.stack([rows[rng.integers(0, len(rows), 3)].mean(axis=0) for _ in range(number)])
    found[0] = rows[-1]
    return found


def assert_equal(rows: Floats, asked: Floats, count: int, form: Similarity) -> None:
    found = nearest_rows.nearest_rows(rows, asked, count, form)
    expected = nearest_rows._all_multiplied(rows, asked, count, form)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.skipif(not able(), reason="the processor multiplies no bytes")
@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(["normal", "ties", "copies", "lengths", "zeros", "falling", "rising", "tiny"]),
    st.integers(1, 40),
    st.integers(16, 35),
    st.sampled_from([1, 2, 9, 100]),
    st.sampled_from(["cosine", "dot"]),
    st.integers(0, 99),
)
def test_to_the_last_bit(kind: str, dimensions: int, number: int, count: int, form: Similarity, seed: int) -> None:
    rows = matrix(kind, dimensions, seed)
    assert_equal(rows, points(rows, number, seed), count, form)


@pytest.mark.skipif(not able(), reason="the processor multiplies no bytes")
@pytest.mark.parametrize("form", ["cosine", "dot"])
def test_most_rows_are_left_out(form: Similarity) -> None:
    rows = matrix("normal", 30, 0)
    asked = points(rows, 20, 0)
    taken = nearest_rows._candidates(rows, asked, 5, form)
    assert taken is not None
    # The first block, one of those between, and the short last.
    assert len(taken) == 2 * nearest_rows._BLOCK + 70
    assert set(nearest_rows._all_multiplied(rows, asked, 5, form)[1]) <= set(taken)


@pytest.mark.skipif(not able(), reason="the processor multiplies no bytes")
def test_what_has_no_first_rows_is_multiplied_whole() -> None:
    same = np.ones((40 * nearest_rows._BLOCK, 4), np.float32)
    assert nearest_rows._candidates(same, same[:16], 1, "cosine") is None
    assert_equal(same, same[:16], 1, "cosine")
    for wrong in (1e-25, 1e20):
        rows = matrix("normal", 8, 1)
        rows[5000] *= np.float32(wrong)
        assert nearest_rows._candidates(rows, points(rows, 16, 1), 3, "dot") is None
    assert nearest_rows._candidates(rows, points(rows, 16, 1) * np.float32(1e-30), 3, "dot") is None


def test_a_point_of_zeros_has_the_first_rows() -> None:
    rows = matrix("normal", 8, 1)
    asked = points(rows, 17, 1)
    asked[3] = 0
    query, row, _ = nearest_rows.nearest_rows(rows, asked, 4, "cosine")
    assert row[query == 3].tolist() == [0, 1, 2, 3]
    assert_equal(rows, asked, 4, "cosine")
