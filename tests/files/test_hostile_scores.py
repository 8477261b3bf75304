"""Values and settings of score tables that no scoring gives."""

from __future__ import annotations

import decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest

from evenrank.files import EvenrankError, InputError
from evenrank.groups import GroupTable, read_group_table

GOOD = {
    "doc_id": ["a", "b"],
    "count_f": [1, 0],
    "magnitude_tf_f": [0.7, 0.0],
    "count_m": [0, 2],
    "neutrality": [1.0, 0],
}


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("neutrality", [1.0, 1.5], "the document 'b': expected a number from 0 to 1 in neutrality, found 1.5"),
        ("neutrality", [-0.5, 1], "the document 'a': expected a number from 0 to 1 in neutrality, found -0.5"),
        ("count_f", [1, -1], "the document 'b': expected 0 or more in count_f, found -1"),
        ("magnitude_tf_f", [0.5, -0.25], "the document 'b': expected 0 or more in magnitude_tf_f, found -0.25"),
        ("magnitude_tf_f", [0.0, 1e300], "the document 'b': expected 1e+09 at most in magnitude_tf_f, found 1e+300"),
        ("magnitude_tf_f", [float("inf"), 0], "the document 'a' has no finite number in magnitude_tf_f"),
        ("count_m", [decimal.Decimal(1), decimal.Decimal(2)], "expected numbers in count_m, found Decimal"),
        ("count_m", [True, False], "expected numbers in count_m, found Boolean"),
        ("count_m", [object(), 1], "expected numbers in count_m, found Object"),
    ],
)
def test_values_that_no_scoring_gives(tmp_path: Path, column: str, values: list[Any], message: str) -> None:
    table = pl.DataFrame(GOOD).with_columns(pl.Series(column, values, dtype=pl.Object if "Object" in message else None))
    with pytest.raises(EvenrankError) as caught:
        GroupTable.of(table)
    assert str(caught.value).startswith(message)
    if "Object" not in message:
        table.write_parquet(tmp_path / "s")
        with pytest.raises(InputError) as of_file:
            read_group_table(tmp_path / "s")
        assert str(of_file.value) == f"{tmp_path}/s: {caught.value}"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('{"shares": [NaN, 0.5]}', "expected numbers from 0 to 1 as shares"),
        ('{"shares": [2, -1]}', "expected numbers from 0 to 1 as shares"),
        ('{"poles": ["f", "f"]}', "expected numbers from 0 to 1 as shares and two groups as poles"),
        ('{"poles": ["rest", "f"]}', "expected numbers from 0 to 1 as shares and two groups as poles"),
        ('{"shares": ' + "[" * 100_000 + "]" * 100_000 + "}", "its settings are no JSON object"),
    ],
)
def test_settings_of_scores(tmp_path: Path, settings: str, message: str) -> None:
    table = pl.DataFrame(GOOD).to_arrow().replace_schema_metadata({b"evenrank": settings.encode()})
    pq.write_table(table, tmp_path / "s")
    with pytest.raises(InputError, match=rf"{tmp_path}/s: damaged: {message}"):
        read_group_table(tmp_path / "s")
