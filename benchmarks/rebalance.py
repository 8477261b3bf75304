"""A fairer order of 6,980 × 1,000 documents, depth 100, by every method: seconds in memory, and time and memory of the
command on the file."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

from .measure import Row, run_command

QUERIES, DEPTH, DOCUMENTS, REORDERED, STRENGTH = 6_980, 1_000, 500_000, 100, 0.5
BUDGET = 5.0
METHODS = ("neutral", "fair", "detconstsort", "shift")
RUNS = 3


def _made(folder: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """A run's table, and scores of its documents."""
    rng = np.random.default_rng(0)
    counts = rng.poisson([0.8, 0.5], (DOCUMENTS, 2))
    total = counts.sum(axis=1)
    share = counts[:, 0] / np.maximum(total, 1)
    names = np.array([f"d{i}" for i in range(DOCUMENTS)])
    scores = pl.DataFrame(
        {
            "doc_id": names,
            "count_m": counts[:, 0],
            "count_f": counts[:, 1],
            "neutrality": np.where(total > 1, 1 - np.abs(share - 0.5) * 2, 1.0),
        }
    )
    places = np.arange(DEPTH) * (DOCUMENTS // DEPTH)
    drawn = rng.integers(0, DOCUMENTS // DEPTH, (QUERIES, DEPTH)) + places
    table = pl.DataFrame(
        {
            "query_id": np.repeat([f"q{i}" for i in range(QUERIES)], DEPTH),
            "doc_id": scores["doc_id"].gather(rng.permuted(drawn, axis=1).ravel()),
            "score": -np.sort(-rng.gamma(4, 2, (QUERIES, DEPTH)), axis=1).ravel(),
            "rank": np.tile(np.arange(1, DEPTH + 1, dtype=np.uint32), QUERIES),
        }
    )
    scores.write_parquet(folder / "scores.parquet")
    lines = table.select("query_id", pl.lit("Q0").alias("q0"), "doc_id", "rank", "score", pl.lit("t").alias("tag"))
    lines.write_csv(folder / "long.run", separator=" ", include_header=False)
    return table, scores


def rows(folder: Path) -> list[Row]:
    """A row for each method, and one for the command."""
    from evenrank.decide.rebalance_lists import Grouping
    from evenrank.decide.rebalance_method import MethodOptions, applied
    from evenrank.files import Run
    from evenrank.groups import GroupTable

    table, scores = _made(folder)
    grouping = Grouping(GroupTable.of(scores), REORDERED)
    run = Run("long", table)
    start = time.perf_counter()
    lists = grouping.lists(run)
    gathered = time.perf_counter() - start
    found = []
    for name in METHODS:
        method = MethodOptions(name).make(lists.lists, grouping.table)
        start = time.perf_counter()
        order, _ = applied(method, lists.lists, STRENGTH)
        made = time.perf_counter() - start
        lists.reordered(order)
        whole = gathered + time.perf_counter() - start
        what = f"a fairer order of {QUERIES:,} × {DEPTH:,}, depth {REORDERED}, in memory: `{name}`"
        found.append(Row(what, whole, "s", most=BUDGET))
        found.append(Row(f"`{name}` alone", made, "s"))
    command = [sys.executable, "-m", "evenrank", "rebalance", str(folder / "long.run")]
    command += ["--scores", str(folder / "scores.parquet"), "--strength", f"{STRENGTH}", "--out"]
    cost = run_command([*command, str(folder / "new.run")])
    size = (folder / "long.run").stat().st_size / 1e6
    found.append(Row(f"`evenrank rebalance` of that run, file to file ({size:.0f} MB)", cost.seconds, "s"))
    found.append(Row("its memory", cost.megabytes, "MB"))
    return found
