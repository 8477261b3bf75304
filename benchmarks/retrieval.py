"""BM25 against bm25s itself on the same postings, and RM3, on 200,000 passages."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl

from .measure import Row, once, run

PASSAGES, QUERIES, K = 200_000, 1_000, 1_000


def make(folder: Path) -> None:
    """The built-in collection with its questions."""
    from evenrank.files.synthetic import SyntheticConfig, generate

    made = generate(SyntheticConfig(passages=PASSAGES, queries=QUERIES))
    made.collection.write_parquet(folder / "c.parquet")
    made.queries.select("query_id", "text").write_parquet(folder / "q.parquet")


def both(folder: str) -> None:
    """Prints seconds of a search of ours, of bm25s with the same index and terms, and of ours with RM3."""
    import bm25s
    import numba

    from evenrank.search.analysis import Analyzer
    from evenrank.search.bm25 import Index
    from evenrank.search.expansion import RM3

    collection, queries = (pl.read_parquet(Path(folder) / f"{name}.parquet") for name in "cq")
    index = Index.build(collection, Analyzer("english", "english"), forward=True, quiet=True)
    engine = bm25s.BM25(k1=index.k1, b=index.b, method="lucene", backend="numba")
    engine.scores = {**index._postings._asdict(), "num_docs": collection.height}
    engine.nonoccurrence_array = None
    # It asks these for the terms that it may score.
    engine.vocab_dict, engine.unique_token_ids_set = {"": index.analyzer.size}, range(index.analyzer.size)
    engine.retrieve([[0]], k=K, show_progress=False, backend_selection="numba")
    index.search(queries.head(1), K, quiet=True)
    ours, theirs = [], []
    for _ in range(5):
        start = time.perf_counter()
        index.search(queries, K, quiet=True)
        ours.append(time.perf_counter() - start)
        start = time.perf_counter()
        terms = index.analyzer.terms(queries["text"], grow=False).filter(pl.col("term") >= 0)
        lists = terms.group_by("text", maintain_order=True).agg("term")["term"].to_list()
        engine.retrieve(lists, k=K, show_progress=False, n_threads=numba.get_num_threads(), backend_selection="numba")
        theirs.append(time.perf_counter() - start)
    start = time.perf_counter()
    index.search(queries, K, rm3=RM3(), quiet=True)
    print(min(ours), min(theirs), time.perf_counter() - start)


def rows(folder: Path) -> list[Row]:
    """The table's lines."""
    once(folder, make)
    ours, theirs, rm3 = map(float, run("retrieval.both", str(folder)).said.split())
    what = f"BM25, {QUERIES:,} queries × {K:,} over {PASSAGES:,} passages"
    return [
        Row(f"{what}, against bm25s on the same index", ours, "s", theirs, least=0.9),
        Row(f"{what} with RM3, against without", QUERIES / rm3, "queries/s", QUERIES / ours, compare="share"),
    ]
