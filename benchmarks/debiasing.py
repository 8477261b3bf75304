"""Hard debiasing of 300,000 × 300 vectors against a loop over words; ``debiasing.large``: 3,000,000 × 300."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from .measure import Row, run
from .table import lines, markdown

DIMENSIONS, PAIRS, SPECIFIC = 300, 100, 1_000
SIZES = {"small": 300_000, "large": 3_000_000}


def _made(size: str) -> tuple[list[str], np.ndarray, list[list[str]], list[str]]:
    """Words, vectors of float32, equalise pairs, specific words."""
    words = [f"w{i}" for i in range(SIZES[size])]
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((len(words), DIMENSIONS), dtype=np.float32)
    pairs = [[words[2 * i], words[2 * i + 1]] for i in range(PAIRS)]
    return words, matrix, pairs, words[:SPECIFIC]


def ours(size: str, check: str = "check") -> None:
    """Prints seconds, those of a first run on few words (the compiled loop is loaded) left out, and the gaps."""
    from evenrank.search.embeddings import Vectors, hard_debias

    words, matrix, pairs, specific = _made(size)
    few = Vectors(tuple(words[:SPECIFIC]), matrix[:SPECIFIC].copy())
    hard_debias(few, pairs[:10], [], [])
    vectors = Vectors(tuple(words), matrix)
    start = time.perf_counter()
    found = hard_debias(vectors, pairs[:10], pairs, specific, in_place=True, check=check == "check")
    seconds = time.perf_counter() - start
    gaps = (found.check.dot, found.check.distance) if found.check else (0, 0)
    print(seconds, *gaps, found.vectors.matrix[:: len(words) // 1000].sum())


def loop(size: str) -> None:
    """The same by a loop over words, as the definition has it and without a check; prints seconds."""
    words, matrix, pairs, specific = _made(size)
    start = time.perf_counter()
    row_of = {word: row for row, word in enumerate(words)}
    kept = set(specific)
    for row in range(len(words)):
        matrix[row] /= np.linalg.norm(matrix[row])
    definitional = []
    for a, b in pairs[:10]:
        center = (matrix[row_of[a]] + matrix[row_of[b]]) / 2
        definitional += [matrix[row_of[a]] - center, matrix[row_of[b]] - center]
    g = np.linalg.svd(np.array(definitional), full_matrices=False)[2][0]
    for row, word in enumerate(words):
        if word not in kept:
            rest = matrix[row] - (matrix[row] @ g) * g
            matrix[row] = rest / np.linalg.norm(rest)
    for a, b in pairs:
        first, second = matrix[row_of[a]], matrix[row_of[b]]
        mean = (first + second) / 2
        nu = mean - (mean @ g) * g
        z = np.sqrt(1 - nu @ nu) * (1 if (first - second) @ g > 0 else -1)
        matrix[row_of[a]], matrix[row_of[b]] = nu + z * g, nu - z * g
    seconds = time.perf_counter() - start
    print(seconds, 0, 0, matrix[:: len(words) // 1000].sum())


def rows(_: Path, size: str = "small") -> list[Row]:
    """The table's lines."""
    mine = run("debiasing.ours", size)
    seconds, dot, distance, total = map(float, mine.said.split())
    name = f"{SIZES[size]:,} x {DIMENSIONS}"
    memory = SIZES[size] * DIMENSIONS * 4 / 1e6
    shared = [
        Row(f"its peak memory, {name}, against the matrix", mine.megabytes, "MB", memory, "share"),
        Row("its largest gap of |w·a - w·b|", dot, "dot product", most=1e-6),
        Row("its largest gap of distances", distance, "distance", most=1e-6),
    ]
    if size == "large":
        peak = Row("its peak memory", mine.megabytes, "MB", most=12_000)
        return [Row(f"Hard debiasing of {name}, with the check of all pairs", seconds, "s", most=60), peak, *shared]
    alone, theirs = run("debiasing.ours", size, "alone"), run("debiasing.loop", size)
    peer, _, _, expected = map(float, theirs.said.split())
    if abs(total - expected) > 1e-2:
        raise SystemExit(f"the loop finds other vectors: their sums are {expected} and {total}")
    return [
        Row(f"Hard debiasing of {name}, against a loop over words", float(alone.said.split()[0]), "s", peer, least=20),
        Row("the same with a check of all pairs", seconds, "s"),
        *shared,
    ]


def large() -> None:
    """``python -m benchmarks debiasing.large``: 3,000,000 × 300."""
    print(markdown(lines([rows(Path(), "large")])))
