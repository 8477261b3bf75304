"""JSON from fields, worked by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
import polars as pl
import pytest
from ir_measures import nDCG

from evenrank.files.json_values import BY_QUERY, INLINE, fields_of, json_text, json_values
from evenrank.files.types import Array


class Place(NamedTuple):
    x: float
    y: int


@dataclass(frozen=True, slots=True)
class Outer:
    also: ClassVar = ("twice",)
    n: int
    inner: dict[str, float] = field(metadata=INLINE)
    values: Array = field(metadata=BY_QUERY)

    @property
    def twice(self) -> int:
        return 2 * self.n


def test_fields_make_the_json() -> None:
    outer = Outer(3, {"n": 9, "mean": 0.5}, np.array([1.0, np.nan]))
    # The inner n stands behind the outer one.
    assert json_values([outer]) == [{"n": 3, "twice": 6, "mean": 0.5}]
    assert fields_of(outer, by_query=True) == {"n": 3, "values": [1.0, None], "twice": 6, "mean": 0.5}


def test_values() -> None:
    given = {
        1: (np.float64(2.5), np.int64(3), np.bool_(True)),
        nDCG @ 10: pl.Series([1.0, None]),
        "where": Path("a/b"),
        "place": Place(float("inf"), 2),
        "matrix": np.array([[1, 2], [3, 4]]),
        "floats": np.array([[0.5, np.inf]]),
        "texts": np.array(["a", "b"]),
    }
    wanted = {
        "1": [2.5, 3, True], "nDCG@10": [1.0, None], "where": "a/b", "place": {"x": None, "y": 2},
        "matrix": [[1, 2], [3, 4]], "floats": [[0.5, None]], "texts": ["a", "b"],
    }  # fmt: skip
    assert json_values(given) == wanted
    assert json.loads(json_text(given)) == wanted
    with pytest.raises(TypeError, match="no JSON of a object"):
        json_values([object()])
