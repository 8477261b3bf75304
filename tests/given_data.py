"""A run, judgements, texts and queries as Python callers give them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import polars as pl
import pytest

RUN = {"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d2": 2.0, "d3": 1.0}}
QRELS = {"q1": {"d1": 1}, "q2": {"d3": 2}}
TEXTS = {"d1": "She and her", "d2": "He said he", "d3": "nothing"}
ROWS = [(query, document, score) for query, of in RUN.items() for document, score in of.items()]
JUDGED = [(query, document, grade) for query, of in QRELS.items() for document, grade in of.items()]


def frame(rows: list[tuple[Any, ...]], names: str, make: Any = pl.DataFrame) -> Any:
    return make({name: list(column) for name, column in zip(names.split(), zip(*rows, strict=True), strict=True)})


def pandas_frame(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


FRAMES = pytest.mark.parametrize("make", [pl.DataFrame, pandas_frame], ids=["polars", "pandas"])


def rows_of(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def write_rows(path: Path, rows: list[dict[str, Any]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
