"""Expanding 250 queries over 1,000,000 × 300 vectors, against gensim's ``most_similar`` in a loop."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from .measure import Row, run

WORDS, DIMENSIONS, QUERIES, LOOP = 1_000_000, 300, 250, 50


def _made() -> tuple[list[str], np.ndarray, list[list[int]]]:
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((WORDS, DIMENSIONS), dtype=np.float32)
    rows = [rng.choice(WORDS, 3, replace=False).tolist() for _ in range(QUERIES)]
    return [f"w{i}" for i in range(WORDS)], matrix, rows


def ours() -> None:
    """Prints the queries a second, and the words found for the first queries."""
    import polars as pl
    from threadpoolctl import threadpool_limits

    from evenrank.search import Vectors
    from evenrank.search.expansion import expand

    words, matrix, rows = _made()
    vectors = Vectors(tuple(words), matrix)
    ids = [str(number) for number in range(QUERIES)]
    queries = pl.DataFrame({"query_id": ids, "text": [" ".join(words[i] for i in own) for own in rows]})
    with threadpool_limits(1):
        start = time.process_time()
        found = expand(queries, vectors=vectors)
        seconds = time.process_time() - start
    print(QUERIES / seconds, " ".join(found.words["word"].head(5 * LOOP)))


def gensim() -> None:
    """The same with gensim, which keeps unit vectors' lengths at hand; fewer queries, each as long as any other."""
    from gensim.models import KeyedVectors
    from threadpoolctl import threadpool_limits

    words, matrix, rows = _made()
    vectors = KeyedVectors(DIMENSIONS)
    vectors.add_vectors(words, matrix)
    vectors.fill_norms()
    vectors.most_similar(positive=[words[0]], topn=5)
    with threadpool_limits(1):
        start = time.process_time()
        found = [vectors.most_similar(positive=[words[i] for i in own], topn=5) for own in rows[:LOOP]]
        seconds = time.process_time() - start
    print(LOOP / seconds, " ".join(word for own in found for word, _ in own))


def rows(_: Path) -> list[Row]:
    """The table's lines. Processor seconds: a core that waits would count as one that works."""
    mine, theirs = run("expansion.ours"), run("expansion.gensim")
    rate, found = mine.said.split(" ", 1)
    peer, expected = theirs.said.split(" ", 1)
    same = np.mean([a == b for a, b in zip(found.split(), expected.split(), strict=True)])
    size = f"{WORDS:,} x {DIMENSIONS}"
    return [
        Row(
            f"Expansion over {size} vectors, against gensim's `most_similar`",
            float(rate),
            "queries/s",
            float(peer),
            least=10,
        ),
        Row("its peak memory, against gensim", mine.megabytes, "MB", theirs.megabytes, "share"),
        Row("its words in gensim's places", float(100 * same), "%", least=100),
    ]
