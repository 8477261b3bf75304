"""A whole audit against ir_measures computing three measures of effectiveness, by CPU seconds, start included."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from .measure import Cost, Row, once, run, run_command

QUERIES, DEPTH, DOCUMENTS = 6_980, 1_000, 1_000_000
FEW = 2_000
UTILITY = "RR@10 nDCG@10 AP"
BIAS = "NFaiRR@10 ARaB@10 ARaB(magnitude='bool')@10"


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
    table[: FEW * DEPTH].write_csv(folder / "few.trec", separator=" ", include_header=False)
    relevant = np.arange(QUERIES) * DEPTH + np.minimum(rng.geometric(0.05, QUERIES) - 1, DEPTH - 1)
    qrels = table[relevant].select("query_id", pl.lit(0).alias("iteration"), "doc_id", pl.lit(1).alias("relevance"))
    for name, queries in (("run", QUERIES), ("few", FEW)):
        qrels[:queries].write_csv(folder / f"{name}.qrels", separator=" ", include_header=False)
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


def _audit(folder: Path, run_name: str, measures: str, *scores: str) -> Cost:
    """The command: values, intervals, ties, findings; prints the measures of effectiveness."""
    files = [f"run={folder / run_name}.trec", "--qrels", str(folder / f"{run_name}.qrels"), *scores]
    asked = ["--measures", measures, "--json", str(folder / "audit.json")]
    cost = run_command([str(Path(sys.executable).with_name("evenrank")), "audit", *files, *asked])
    found = json.loads((folder / "audit.json").read_text(encoding="utf-8"))["runs"]["run"]["measures"]
    return replace(cost, said=" ".join(f"{found[name]['mean']:.9f}" for name in UTILITY.split()))


def theirs(folder: str, run_name: str) -> None:
    """Three measures of effectiveness by ir_measures."""
    import ir_measures

    measures = [ir_measures.parse_measure(name) for name in UTILITY.split()]
    judged = list(ir_measures.read_trec_qrels(f"{folder}/{run_name}.qrels"))
    values = ir_measures.calc_aggregate(measures, judged, ir_measures.read_trec_run(f"{folder}/{run_name}.trec"))
    print(*[f"{values[measure]:.9f}" for measure in measures])


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    once(folder, make)
    scores = ("--scores", str(folder / "scores.parquet"))
    found = []
    for run_name, measures, groups, least in (
        ("few", UTILITY, (), 6),
        ("run", f"{UTILITY} {BIAS} DeltaAPRF", scores, None),
    ):
        audit, peer = _audit(folder, run_name, measures, *groups), run("audits.theirs", str(folder), run_name)
        if audit.said != peer.said:
            raise SystemExit(f"audits: effectiveness differs: {audit.said} and {peer.said}")
        queries = FEW if run_name == "few" else QUERIES
        what = f"`evenrank audit` of {queries:,} x 1,000{', with four measures of bias too' if groups else ''}"
        beside = f"{what}, CPU seconds, against ir_measures with {UTILITY}"
        found.append(Row(beside, audit.cpu_seconds, "s", peer.cpu_seconds, least=least))
    return [*found, Row("its peak memory", audit.megabytes, "MB", peer.megabytes, "share", most=0.5)]
