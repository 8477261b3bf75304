"""Scoring pairs with the rankers over word vectors, on one thread.

300 dimensions, 20,000 words drawn as in natural text (Zipf), queries of 3 to 9 words with passages of 40 to 60.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from .measure import Row, run

KINDS = ("knrm", "conv-knrm", "match-pyramid", "tk")
WORDS, DIMENSIONS, QUERIES, DEPTH = 20_000, 300, 16, 256
SHORTEST = 0.5


def _ranker_and_pairs(kind: str) -> tuple[Any, list[str], list[str]]:
    import numpy as np
    import torch

    from evenrank.models.protocol import ranker_class
    from evenrank.search import Vectors

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    words = np.array([f"word{number}" for number in range(WORDS)])
    share = 1 / np.arange(1, WORDS + 1)
    share /= share.sum()

    def text(shortest: int, longest: int) -> str:
        return " ".join(rng.choice(words, rng.integers(shortest, longest + 1), p=share))

    queries = [query for query in (text(3, 9) for _ in range(QUERIES)) for _ in range(DEPTH)]
    passages = [text(40, 60) for _ in queries]
    vectors = Vectors(tuple(words.tolist()), rng.standard_normal((WORDS, DIMENSIONS)).astype(np.float32))
    form: Any = ranker_class(kind)
    return form.from_vectors(vectors).eval(), queries, passages


def ours(kind: str) -> None:
    """Prints pairs a second, tokenising included."""
    ranker, queries, passages = _ranker_and_pairs(kind)
    ranker.score(queries[:64], passages[:64])
    pairs, start = 0, time.perf_counter()
    while time.perf_counter() - start < SHORTEST:
        ranker.score(queries, passages)
        pairs += len(queries)
    print(pairs / (time.perf_counter() - start))


def rows(folder: Path) -> list[Row]:
    """The lines of the table."""
    rates = {kind: float(run("kernel_rankers.ours", kind).said) for kind in KINDS}
    return [Row(f"scoring pairs with `{kind}`, one thread", rate, "pairs/s") for kind, rate in rates.items()]
