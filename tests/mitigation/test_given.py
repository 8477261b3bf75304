"""Negatives of what Python callers give."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from given_data import QRELS, RUN, TEXTS


def test_negatives(tmp_path: Path) -> None:
    from evenrank.mitigation.negatives import write_negatives

    done = write_negatives(RUN, out=tmp_path / "n.parquet", collection=TEXTS, qrels=QRELS, n=1)
    assert done["queries"] == 2
    assert pl.read_parquet(tmp_path / "n.parquet")["query_id"].to_list() == ["q1", "q2"]
