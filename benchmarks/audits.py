"""A whole audit against ir_measures computing three measures of utility, and bias measures against Python loops."""

from __future__ import annotations

import json
import math
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .measure import Cost, Row, once, run, run_command

QUERIES, DEPTH, DOCUMENTS = 6_980, 1_000, 1_000_000
UTILITY = "RR@10 nDCG@10 AP"
BIAS = "NFaiRR@10 ARaB@10 ARaB(magnitude='bool')@10"
CUTOFFS = (5, 10, 20, 50, 100)
# What the public programs print.
ALL_BIAS = " ".join(
    f"RaB(magnitude='{kind}')@{k} ARaB(magnitude='{kind}')@{k}" for kind in ("tf", "bool", "count") for k in CUTOFFS
) + "".join(f" FaiRR@{k} NFaiRR@{k}" for k in CUTOFFS)


def make(folder: Path) -> None:
    """A run of 6,980 × 1,000 over a million scored documents, and one relevant document a query, as MS MARCO's."""
    rng = np.random.default_rng(0)
    docs = ((np.arange(QUERIES)[:, None] * 7_919_003 + np.arange(DEPTH) * 8_191) % DOCUMENTS).ravel()
    table = pl.DataFrame(
        {
            "query_id": np.repeat(np.arange(QUERIES) + 1_000_000, DEPTH),
            "q0": "Q0",
            "doc_id": docs,
            "rank": np.tile(np.arange(1, DEPTH + 1), QUERIES),
            # Without ties, which ir_measures breaks by another rule.
            "score": np.tile(np.arange(DEPTH, 0, -1) / 8, QUERIES),
            "tag": "run",
        }
    )
    table.write_csv(folder / "run.trec", separator=" ", include_header=False)
    relevant = np.arange(QUERIES) * DEPTH + np.minimum(rng.geometric(0.05, QUERIES) - 1, DEPTH - 1)
    qrels = table[relevant].select("query_id", pl.lit(0).alias("iteration"), "doc_id", pl.lit(1).alias("relevance"))
    qrels.write_csv(folder / "qrels.txt", separator=" ", include_header=False)
    counts = rng.poisson([0.4, 0.6], (DOCUMENTS, 2)).astype(np.int32)
    from evenrank.groups import neutrality

    words = np.log1p(counts)
    pl.DataFrame(
        {
            "doc_id": np.arange(DOCUMENTS).astype(str),
            "tokens": np.full(DOCUMENTS, 55, np.int32),
            "count_f": counts[:, 0],
            "count_m": counts[:, 1],
            "magnitude_tf_words_f": words[:, 0],
            "magnitude_tf_words_m": words[:, 1],
            "neutrality": neutrality(counts, [0.5, 0.5]),
        }
    ).write_parquet(folder / "scores.parquet")


def _audit(folder: Path) -> Cost:
    """The command: utility, bias, intervals, ties, reference rankings, notes."""
    files = ["--scores", str(folder / "scores.parquet"), "--qrels", str(folder / "qrels.txt")]
    asked = ["--measures", f"{UTILITY} {BIAS} DeltaAPRF", "--json", str(folder / "audit.json")]
    command = [str(Path(sys.executable).with_name("evenrank")), "audit", f"run={folder / 'run.trec'}", *files, *asked]
    cost = run_command(command)
    found = json.loads((folder / "audit.json").read_text(encoding="utf-8"))["runs"]["run"]["measures"]
    return replace(cost, said=" ".join(f"{found[name]['mean']:.9f}" for name in UTILITY.split()))


def theirs(folder: str) -> None:
    """Three measures of utility by ir_measures."""
    import ir_measures

    measures = [ir_measures.parse_measure(name) for name in UTILITY.split()]
    values = ir_measures.calc_aggregate(
        measures,
        ir_measures.read_trec_qrels(f"{folder}/qrels.txt"),
        ir_measures.read_trec_run(f"{folder}/run.trec"),
    )
    print(*[f"{values[measure]:.9f}" for measure in measures])


def bias(folder: str) -> None:
    """Bias measures of ranked documents whose scores are at hand, ours and by loops over queries; prints both."""
    from evenrank.files import read_run
    from evenrank.groups import read_group_table
    from evenrank.measures import Evaluation, parse_measures

    run_, scores = read_run(f"{folder}/run.trec"), read_group_table(f"{folder}/scores.parquet")
    rows = {row[0]: row[1:] for row in scores.table.select("doc_id", "count_f", "count_m", "neutrality").iter_rows()}
    ranked: dict[str, list[tuple[Any, ...]]] = {}
    for query, doc in run_.table.select("query_id", "doc_id").iter_rows():
        ranked.setdefault(query, []).append(rows[doc])
    # Finding each document's scores is part of the audit's line above; here both sides have them.
    evaluation = Evaluation(run_, scores)
    evaluation.document.sum()
    start = time.perf_counter()
    evaluation.background = evaluation.as_background("run")
    found = [float(np.nanmean(evaluation.values(measure))) for measure in parse_measures(ALL_BIAS)]
    ours_ = time.perf_counter() - start
    start = time.perf_counter()
    expected = _loops(list(ranked.values()))
    loops = time.perf_counter() - start
    np.testing.assert_allclose(found, expected, atol=1e-9)
    print(ours_, loops)


def _loops(ranked: list[list[tuple[Any, ...]]]) -> list[float]:
    """The same figures query by query, as they are defined and as the public programs go about it."""
    found: dict[str, list[float]] = {}
    for rows in ranked:
        values = []
        for magnitude in (_tf, _bool, _count):
            bias = [magnitude(row) for row in rows[: CUTOFFS[-1]]]
            for k in CUTOFFS:
                values.append(sum(bias[:k]) / k)
                values.append(sum(sum(bias[:t]) / t for t in range(1, k + 1)) / k)
        background = sorted((row[2] for row in rows[:200]), reverse=True)
        for k in CUTOFFS:
            fair = sum(row[2] / math.log2(rank + 1) for rank, row in enumerate(rows[:k], start=1))
            ideal = sum(value / math.log2(rank + 1) for rank, value in enumerate(background[:k], start=1))
            values += [fair, fair / ideal]
        for number, value in enumerate(values):
            found.setdefault(str(number), []).append(value)
    return [sum(values) / len(values) for values in found.values()]


def _tf(row: tuple[Any, ...]) -> float:
    return math.log(1 + row[1]) - math.log(1 + row[0])


def _bool(row: tuple[Any, ...]) -> float:
    return float(row[1] > 0) - float(row[0] > 0)


def _count(row: tuple[Any, ...]) -> float:
    return float(row[1] - row[0])


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    audit, peer = _audit(folder), run("audits.theirs", str(folder))
    assert audit.said == peer.said, f"utility differs: {audit.said} and {peer.said}"
    ours_, loops = map(float, run("audits.bias", str(folder)).said.split())
    return [
        Row(
            "`evenrank audit` of 6,980 x 1,000, against ir_measures with RR@10 nDCG@10 AP",
            audit.seconds,
            "s",
            peer.seconds,
            least=8,
        ),
        Row("the same, peak memory", audit.megabytes, "MB", peer.megabytes, "share", most=0.4),
        Row("40 bias figures of 6,980 x 1,000, against loops over queries", ours_, "s", loops, least=40),
    ]
