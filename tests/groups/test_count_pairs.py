"""Signed magnitudes looked up by pairs of counts are those computed for each document."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.groups import Scoring, load_lexicon, read_group_table, score_collection
from evenrank.groups import table as group_table
from evenrank.groups.table import CountPairs, GroupTable, magnitude_of_count

KINDS: Any = ("count", "bool", "tf")
COUNTS = st.lists(st.tuples(st.integers(0, 254), st.integers(0, 254)), min_size=1, max_size=20)


@given(COUNTS, st.sampled_from([np.int32, np.uint8, np.int64]))
def test_pairs_of_counts(counts: list[tuple[int, int]], kind: Any) -> None:
    first, second = np.array(counts).T.astype(kind)
    pairs = CountPairs.of(first, second)
    assert pairs is not None
    assert list(zip(*np.divmod(pairs.codes, pairs.width), strict=True)) == counts
    for magnitude in KINDS:
        expected = magnitude_of_count(first, magnitude) - magnitude_of_count(second, magnitude)
        assert pairs.signed_magnitudes(magnitude)[pairs.codes].tolist() == expected.tolist()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([0.5, 1.0], [1, 0]),
        ([1, 0], [-1, 0]),
        ([256, 0], [0, 255]),
        ([65_535], [0]),
        ([0], [65_535]),
        ([1 << 40], [1 << 40]),
        (np.zeros(0, np.int32), np.zeros(0, np.int32)),
    ],
)
def test_counts_that_are_no_pairs(first: Any, second: Any) -> None:
    assert CountPairs.of(np.array(first), np.array(second)) is None


def test_the_largest_codes() -> None:
    for first, second in (([254, 0], [256, 1]), ([65_534, 0], [0, 0]), ([0, 0], [65_534, 1])):
        pairs = CountPairs.of(np.array(first), np.array(second))
        assert pairs is not None
        assert pairs.codes.tolist() == [65_534, second[1]]


@pytest.mark.parametrize("poles", [("a", "b"), ("b", "a"), ("a", "c"), ("a", "rest")])
@pytest.mark.parametrize("kind", [*KINDS, "tf_words"])
def test_a_table_gives_the_same_magnitudes(kind: Any, poles: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    columns = {f"count_{group}": rng.poisson(1, 40).astype(np.int32) for group in "abc"}
    words = {f"magnitude_tf_words_{group}": rng.random(40) for group in "abc"}
    made = pl.DataFrame({"doc_id": list(map(str, range(40))), **columns, **words, "neutrality": np.ones(40)})
    table, rows = GroupTable.of(made), rng.integers(0, 40, 60)
    expected = table.signed_magnitude(kind, poles, rows)
    monkeypatch.setattr(group_table, "_MANY", 60)
    assert table.signed_magnitude(kind, poles, rows).tolist() == expected.tolist()
    assert table.signed_magnitude(kind, poles)[rows].tolist() == expected.tolist()


def test_a_magnitude_in_the_table_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_table, "_MANY", 1)
    kept = {"count_a": [1, 2], "count_b": [0, 0], "magnitude_tf_a": [5.0, 7.0], "magnitude_tf_b": [1.0, 1.0]}
    table = GroupTable.of(pl.DataFrame({"doc_id": ["1", "2"], **kept, "neutrality": [1.0, 1.0]}))
    assert table._pairs_of("tf", "a", "b") is None
    assert table._pairs_of("count", "a", "b") is not None
    assert table.signed_magnitude("tf", ("a", "b"), np.array([1, 0])).tolist() == [6.0, 4.0]
    assert table.signed_magnitude("count", ("a", "b"), np.array([1, 0])).tolist() == [2.0, 1.0]


def test_magnitudes_of_a_scored_collection_follow_from_its_counts(tmp_path: Path) -> None:
    texts = ["she said to him and her", "he", "", "men and a woman, a woman", "father, mother and his son"]
    (tmp_path / "c.tsv").write_text("".join(f"{number}\t{text}\n" for number, text in enumerate(texts)))
    score_collection(tmp_path / "c.tsv", tmp_path / "s.parquet", Scoring(load_lexicon()))
    table = read_group_table(tmp_path / "s.parquet")
    assert {"magnitude_tf_f", "magnitude_bool_f", "magnitude_tf_words_f"} <= set(table.table.columns)
    for kind in KINDS:
        pairs = table._pairs_of(kind, "m", "f")
        assert pairs is not None
        found = pairs.signed_magnitudes(kind)[pairs.codes]
        assert found.tolist() == table.signed_magnitude(kind, ("m", "f")).tolist()
    assert table._pairs_of("tf_words", "m", "f") is None
