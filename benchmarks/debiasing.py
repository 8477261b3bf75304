"""Hard debiasing of 300,000 × 300 vectors against NumPy on the whole matrix; ``debiasing.large``: 3,000,000 × 300."""

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
    from evenrank.search import Vectors, hard_debias

    words, matrix, pairs, specific = _made(size)
    few = Vectors(tuple(words[:SPECIFIC]), matrix[:SPECIFIC].copy())
    hard_debias(few, pairs[:10], [], [])
    vectors = Vectors(tuple(words), matrix)
    start = time.perf_counter()
    found = hard_debias(vectors, pairs[:10], pairs, specific, in_place=True, check=check == "check")
    seconds = time.perf_counter() - start
    gaps = (found.check.dot, found.check.distance) if found.check else (0, 0)
    print(seconds, *gaps, found.vectors.matrix[:: len(words) // 1000].sum())


def in_numpy(size: str) -> None:
    """The same on the whole matrix at once, without a check; prints seconds."""
    words, matrix, pairs, specific = _made(size)
    start = time.perf_counter()
    row_of = {word: row for row, word in enumerate(words)}
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    first, second = (matrix[[row_of[pair[side]] for pair in pairs]] for side in (0, 1))
    half = (first[:10] - second[:10]) / 2
    g = np.linalg.svd(np.concatenate([half, -half]), full_matrices=False)[2][0]
    neutral = np.ones(len(words), bool)
    neutral[[row_of[word] for word in specific]] = False
    along = np.where(neutral, matrix @ g, 0)
    matrix -= along[:, None] * g
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    mean = (first + second) / 2
    nu = mean - (mean @ g)[:, None] * g
    z = np.sqrt(1 - (nu**2).sum(1)) * np.sign((first - second) @ g)
    for side, sign in ((0, 1), (1, -1)):
        matrix[[row_of[pair[side]] for pair in pairs]] = nu + sign * z[:, None] * g
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
    alone, theirs = run("debiasing.ours", size, "alone"), run("debiasing.in_numpy", size)
    peer, _, _, expected = map(float, theirs.said.split())
    if abs(total - expected) > 1e-2:
        raise SystemExit(f"NumPy finds other vectors: their sums are {expected} and {total}")
    return [
        Row(
            f"Hard debiasing of {name}, against NumPy on the whole matrix",
            float(alone.said.split()[0]),
            "s",
            peer,
            least=1,
        ),
        Row("the same with a check of all pairs", seconds, "s"),
        *shared,
    ]


def large() -> None:
    """``python -m benchmarks debiasing.large``: 3,000,000 × 300."""
    print(markdown(lines([rows(Path(), "large")])))
