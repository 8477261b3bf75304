"""The numbers that documents draw by their ids."""

from __future__ import annotations

import numpy as np
import polars as pl

from evenrank.auditing.documents import chances


def test_chances_are_uniform_and_independent_of_the_stream() -> None:
    hashes = pl.Series([f"d{i}" for i in range(20_000)]).hash().to_numpy()
    one, other = chances(hashes, 0, 1, 2), chances(hashes, 0, 1, 3)
    assert 0 < one.min() < one.max() < 1
    assert np.histogram(one, bins=10, range=(0, 1))[0].min() > 1_800
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03
    assert (one == chances(hashes, 0, 1, 2)).all()
