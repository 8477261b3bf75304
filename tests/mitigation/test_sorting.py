"""The compiled merge sort of lists: equal to numpy's, and stable."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from evenrank.mitigation._reordering import falling


def test_by_hand() -> None:
    offsets = np.array([0, 3, 3, 4, 8])
    values = np.array([0.5, 1, 0.5, 2, 0, -0.0, 1, 1])
    assert falling(offsets, values).tolist() == [1, 0, 2, 3, 6, 7, 4, 5]
    assert falling(np.array([0]), np.array([])).tolist() == []


@given(st.lists(st.integers(0, 130), max_size=5), st.integers(1, 200), st.integers(0, 2**32 - 1))
def test_like_a_stable_sort(lengths: list[int], distinct: int, seed: int) -> None:
    offsets = np.cumsum([0, *lengths])
    rng = np.random.default_rng(seed)
    # From many equal values to nearly none, and from nearly sorted to shuffled.
    values = rng.integers(0, distinct, offsets[-1]) / 7 - rng.integers(0, 2) * np.arange(offsets[-1]) / 20
    list_of = np.repeat(np.arange(len(lengths)), lengths)
    assert falling(offsets, values).tolist() == np.lexsort((-values, list_of)).tolist()
