"""Exact search in blocks against a slow, obvious twin; ties."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.search import exact_search
from evenrank.search.exact_search import search_exact


def slow(vectors: np.ndarray, turn: np.ndarray, query: np.ndarray, k: int) -> list[tuple[int, float]]:
    """Every score in float64, sorted by falling score, then turn."""
    scores = [float(sum(float(a) * float(b) for a, b in zip(row, query, strict=True))) for row in vectors]
    order = sorted(range(len(vectors)), key=lambda document: (-scores[document], turn[document]))
    return [(document, scores[document]) for document in order[:k]]


def turns(count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    by_turn = rng.permutation(count).astype(np.int32)
    return np.argsort(by_turn).astype(np.int32), by_turn


SIZES = st.tuples(*(st.integers(1, most) for most in (40, 5, 6, 50, 7, 4)))


@given(SIZES, st.integers(0, 999))
def test_equals_a_slow_search_with_ties(sizes: tuple[int, ...], seed: int) -> None:
    count, width, queries, k, block, at_once = sizes
    # Whole numbers: every product is exact, and many scores tie.
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-2, 3, (count, width)).astype(np.float16)
    asked = rng.integers(-2, 3, (queries, width)).astype(np.float32)
    turn, by_turn = turns(count, rng)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact_search, "_BLOCK", block)
        patch.setattr(exact_search, "_CELLS", 1)
        patch.setattr(exact_search, "_STEP", at_once)
        documents, scores = search_exact(vectors, turn, by_turn, asked, k)
    assert documents.shape == (queries, min(k, count))
    for query in range(queries):
        expected = slow(vectors, turn, asked[query], k)
        assert list(zip(documents[query].tolist(), scores[query].tolist(), strict=True)) == expected


def test_scores_do_not_depend_on_k() -> None:
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(9_000, 96)).astype(np.float16)
    queries = rng.normal(size=(100, 96)).astype(np.float32)
    orders = turns(9_000, rng)
    (documents, scores), few = (search_exact(vectors, *orders, queries, k) for k in (50, 7))
    assert np.array_equal(documents[:, :7], few[0])
    assert np.array_equal(scores[:, :7], few[1])


def test_turns_that_are_no_order_are_refused() -> None:
    vectors, query = np.ones((3, 2), np.float16), np.ones((1, 2), np.float32)
    sound = [0, 1, 2]
    for turns_ in (([0, 1, 7], sound), ([0, -1, 2], sound), (sound, [0, 99, -5])):
        with pytest.raises(ValueError, match="turns"):
            search_exact(vectors, *(np.array(one, np.int32) for one in turns_), query, 3)
