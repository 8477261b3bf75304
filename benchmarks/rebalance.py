"""A fairer order of 6,980 × 1,000 documents, depth 100, by every method: seconds in memory against a plain loop over
lists and documents on a sample, and time and memory of the command on the file."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

from .measure import Row, run_command

QUERIES, DEPTH, DOCUMENTS, SAMPLE, REORDERED, STRENGTH = 6_980, 1_000, 500_000, 100, 100, 0.5
BUDGET = 5.0
RUNS = 3
List = list[tuple[float, float, float, int]]
"""Score, signed magnitude, neutrality and group of each document."""


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
    small = grouping.lists(Run("small", table[: SAMPLE * DEPTH]))
    given = small.lists
    plain_lists: list[List] = [
        list(
            zip(
                *(column[a:b].tolist() for column in (given.scores, given.signed, given.neutrality, given.group)),
                strict=True,
            )
        )
        for a, b in zip(given.offsets[:-1], given.offsets[1:], strict=True)
    ]
    found = []
    for name, plain in PLAIN.items():
        method = MethodOptions(name).make(given, grouping.table)
        # Compiled on a machine's first use and loaded from disk after: not what is measured here.
        applied(method, given, STRENGTH)
        start = time.perf_counter()
        order, _ = applied(method, lists.lists, STRENGTH)
        made = time.perf_counter() - start
        lists.reordered(order)
        whole = gathered + time.perf_counter() - start
        start = time.perf_counter()
        for one in plain_lists:
            plain(one)
        loop = (time.perf_counter() - start) / SAMPLE * QUERIES
        what = f"a fairer order of {QUERIES:,} × {DEPTH:,}, depth {REORDERED}, in memory: `{name}`"
        found.append(Row(what, whole, "s", most=BUDGET))
        found.append(Row(f"`{name}` alone, against a plain loop (from {SAMPLE} lists)", made, "s", loop))
    command = [sys.executable, "-m", "evenrank", "rebalance", str(folder / "long.run")]
    command += ["--scores", str(folder / "scores.parquet"), "--strength", f"{STRENGTH}", "--out"]
    cost = run_command([*command, str(folder / "new.run")])
    size = (folder / "long.run").stat().st_size / 1e6
    found.append(Row(f"`evenrank rebalance` of that run, file to file ({size:.0f} MB)", cost.seconds, "s"))
    found.append(Row("its memory", cost.megabytes, "MB"))
    return found


# --- plain loops ------------------------------------------------------------------------------------------------------


def _neutral(docs: List) -> List:
    return sorted(docs, key=lambda doc: -((1 - STRENGTH) * doc[0] + STRENGTH * doc[2]))


def _shift(docs: List) -> List:
    return sorted(docs, key=lambda doc: -(doc[0] + STRENGTH * (0.0, 1.0, -1.0)[doc[3]]))


def _constrained(docs: List) -> List:
    """At every rank the best document of a group that is short of its minimum, else of one below its maximum."""
    queues = {group: [doc for doc in docs if doc[3] == group] for group in (-1, 0, 1)}
    share = {group: len(queue) / len(docs) for group, queue in queues.items()}
    taken = dict.fromkeys(queues, 0)
    made: List = []
    for rank in range(1, len(docs) + 1):
        there = [group for group in queues if taken[group] < len(queues[group])]
        short = [group for group in there if taken[group] < math.floor(STRENGTH * share[group] * rank)]
        below = [group for group in there if taken[group] < math.ceil(share[group] * rank)]
        chosen = max(short or below or there, key=lambda group: queues[group][taken[group]][0])
        made.append(queues[chosen][taken[chosen]])
        taken[chosen] += 1
    return made


def _fair(docs: List) -> List:
    """At every rank the best document, or the best protected one if there are fewer than a binomial quantile."""
    first, others = [doc for doc in docs if doc[3] == 1], [doc for doc in docs if doc[3] != 1]
    share, made, taken = STRENGTH * len(first) / len(docs), [], 0
    for rank in range(1, len(docs) + 1):
        least = math.floor(rank * share - 1.28 * math.sqrt(rank * share * (1 - share)))
        other = rank - 1 - taken
        need = taken < least or other >= len(others)
        if taken < len(first) and (need or first[taken][0] >= others[other][0]):
            made.append(first[taken])
            taken += 1
        else:
            made.append(others[other])
    return made


PLAIN: dict[str, Callable[[List], List]] = {
    "neutral": _neutral,
    "fair": _fair,
    "detconstsort": _constrained,
    "shift": _shift,
}
"""Loops that do about what the methods do."""
