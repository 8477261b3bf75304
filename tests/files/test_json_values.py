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

from evenrank.files.json_values import BY_QUERY, IF_KNOWN, INLINE, LEFT_OUT, fields_of, json_text, json_values, named
from evenrank.files.types import Array
from evenrank.stats.compare import compare


class Place(NamedTuple):
    x: float
    y: int


@dataclass(frozen=True, slots=True)
class Inner:
    mean: float
    n: int
    p: float | None = None


@dataclass(frozen=True, slots=True)
class Outer:
    also: ClassVar = ("twice",)
    n: int
    inner: Inner = field(metadata=INLINE)
    figure: float = field(metadata=named("value"))
    values: Array = field(metadata=BY_QUERY)
    secret: object = field(default=None, metadata=LEFT_OUT)
    order: float | None = field(default=None, metadata=IF_KNOWN)
    names: tuple[str, ...] = field(default=(), metadata=IF_KNOWN)

    @property
    def twice(self) -> int:
        return 2 * self.n


def test_fields_make_the_json() -> None:
    outer = Outer(3, Inner(0.5, 9), float("nan"), np.array([1.0, np.nan]), object())
    # The inner n stands behind the outer one.
    assert json_values(outer) == {"n": 3, "value": None, "twice": 6, "mean": 0.5, "p": None}
    asked = fields_of(Outer(3, Inner(0.5, 9), 0.0, np.array([1.0, np.nan]), None, 0.0, ("a",)), by_query=True)
    assert asked == {
        "n": 3, "value": 0.0, "values": [1.0, None], "order": 0.0, "names": ["a"], "twice": 6, "mean": 0.5, "p": None,
    }  # fmt: skip
    assert json_values({"a": [outer]}, by_query=True)["a"][0]["values"] == [1.0, None]  # type: ignore[index]


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


def test_text() -> None:
    value = {"a": float("nan"), "b": np.float32("inf"), "c": (1, np.int64(2), [None, "é"]), "d": {"e": 0.5}}
    assert json_text(value, lines=False) == '{"a": null, "b": null, "c": [1, 2, [null, "é"]], "d": {"e": 0.5}}'
    assert json_text([1]) == "[\n 1\n]"


def test_a_comparison_says_its_verdict() -> None:
    found = compare(np.linspace(0.5, 1.5, 40))
    written = json_values(found)
    assert isinstance(written, dict)
    assert set(written) == {"mean", "ci95", "n", "unit", "p", "holm_p", "mde", "method", "reason", "verdict"}
    assert (written["n"], written["unit"], written["verdict"]) == (40, "queries", "shown")
    assert written["ci95"] == list(found.ci95 or ())
