"""ATS and MATS against the obvious loop over pairs, on random vectors of 200 passages of 100 words."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from .measure import Row, run

PASSAGES, WORDS, TERMS, DIMENSIONS = 200, 100, 2_000, 384


def _made() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    size = PASSAGES * WORDS
    # As words are, but for the 20 that are everywhere, whose pairs the loop would take hours for.
    terms = np.minimum(rng.zipf(1.3, size) - 1, TERMS - 1)
    places, passages = np.tile(np.arange(WORDS), PASSAGES), np.repeat(np.arange(PASSAGES), WORDS)
    vectors = rng.standard_normal((size, DIMENSIONS), dtype=np.float32)
    kept = (terms >= 20) & (terms < TERMS - 1)
    return vectors[kept], terms[kept], places[kept], passages[kept]


def ours() -> None:
    """Prints processor seconds and the sum of the curve."""
    from threadpoolctl import threadpool_limits

    from evenrank.position.similarity import term_similarity

    made = _made()
    with threadpool_limits(1):
        start = time.process_time()
        found = term_similarity(*made, cap=PASSAGES * WORDS)
    print(time.process_time() - start, float(np.nansum(found.ats)), int(found.pairs.sum()))


def loop() -> None:
    """The same, pair by pair."""
    vectors, terms, places, passages = _made()
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    start = time.process_time()
    cosines: dict[tuple[int, int], list[float]] = {}
    pairs = 0
    for term in np.unique(terms):
        rows = np.flatnonzero(terms == term)
        for i, first in enumerate(rows):
            for second in rows[:i]:
                if passages[first] != passages[second]:
                    key = int(term), abs(int(places[first]) - int(places[second]))
                    cosines.setdefault(key, []).append(float(units[first] @ units[second]))
                    pairs += 1
    print(time.process_time() - start, pairs)


def rows(_: Path) -> list[Row]:
    """The table's line: pairs a processor second."""
    seconds, _total, pairs = run("similarity.ours").said.split()
    slow_seconds, slow_pairs = run("similarity.loop").said.split()
    rate, peer = float(pairs) / float(seconds), float(slow_pairs) / float(slow_seconds)
    return [Row("pairs of word vectors for ATS, against a loop (processor seconds)", rate, "pairs/s", peer)]
