"""Parquet files whose columns or settings are not what they say."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenrank.groups import read_group_table

pytest.importorskip("torch")

from damage import collection, told
from evenrank.training.lists import read_list_file


def strings(*values: bytes) -> pa.Array:
    """A column that says it is UTF-8, whatever it holds."""
    ends = np.cumsum([0, *map(len, values)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])


LATIN = strings(b"d1", b"d\xe9")


PLAIN = strings(b"d1", b"d2")


NEUTRAL = {"neutrality": [1.0, 1.0], "count_f": [1, 2], "count_m": [0, 0]}


@pytest.mark.parametrize(
    ("read", "columns", "said"),
    [
        (collection, {"doc_id": PLAIN, "text": LATIN}, "damaged Parquet file ("),
        (collection, {"doc_id": LATIN, "text": PLAIN}, "damaged Parquet file ("),
        (collection, {"doc_id": LATIN.dictionary_encode(), "text": PLAIN}, "damaged Parquet file ("),
        (read_group_table, {"doc_id": LATIN, **NEUTRAL}, "no Parquet file that can be read ("),
        (read_list_file, {"query_id": LATIN, "doc_id": [["a"]] * 2, "label": [[0]] * 2}, "damaged Parquet file ("),
        (read_list_file, {"query_id": PLAIN, "doc_id": PLAIN, "label": [[0, 1]] * 2}, "expected query_id, and lists"),
        (read_list_file, {"query_id": PLAIN, "doc_id": [["a", "b"]] * 2}, "expected query_id, and lists"),
        (
            read_list_file,
            {"query_id": PLAIN, "doc_id": [["a", "b"], ["a", None]], "label": [[0, 1]] * 2},
            ", line 2: query 'd2': a query_id, a doc_id or a label is missing",
        ),
        (
            read_list_file,
            {"query_id": PLAIN, "doc_id": [["a", "b"]] * 2, "label": [[0, 1], [2, math.nan]]},
            ", line 2: query 'd2': a label is no finite number",
        ),
    ],
)  # fmt: skip
def test_parquet_that_is_no_text(tmp_path: Path, read: Callable[[Path], Any], columns: Any, said: str) -> None:
    pq.write_table(pa.table(columns), tmp_path / "file")
    assert told(read, tmp_path / "file")[1].startswith(f"{tmp_path}/file: {said}".replace(": , line", ", line"))


@pytest.mark.parametrize(
    "stored",
    [{"shares": [1]}, {"shares": 1}, {"shares": ["x", "y"]}, {"poles": ["m"]}, {"poles": "mf"}, {"poles": ["m", "x"]}],
)
def test_settings_that_do_not_fit(tmp_path: Path, stored: dict[str, Any]) -> None:
    table = pa.table({"doc_id": PLAIN, **NEUTRAL})
    pq.write_table(table.replace_schema_metadata({"evenrank": json.dumps(stored)}), tmp_path / "scores")
    assert "settings" in told(read_group_table, tmp_path / "scores")[1]
