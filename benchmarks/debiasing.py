"""Hard debiasing of 300,000 × 300 vectors against a loop over words; ``debiasing.large``: 3,000,000 × 300."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np

from .measure import Row, run

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
    from evenrank.embeddings import Vectors, hard_debias

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
    mine, alone = run("debiasing.ours", size), run("debiasing.ours", size, "alone")
    seconds, dot, distance, total = map(float, mine.said.split())
    name = f"{SIZES[size]:,} x {DIMENSIONS}"
    held = Row(
        f"debiasing {name}: largest gaps, |w·a - w·b| and of distances", f"{dot:.1e}, {distance:.1e}", "", "", "< 1e-6"
    )
    memory = SIZES[size] * DIMENSIONS * 4 / 1e6
    peak = Row(
        f"debiasing {name}: peak memory, against the matrix",
        f"{mine.megabytes:,.0f} MB",
        f"{memory:,.0f} MB",
        f"{mine.megabytes / memory:.2f}",
        "< 12 GB at 3 million",
    )
    if size == "large":
        return [Row(f"debiasing {name}, with the check", f"{seconds:.1f} s", "", "", "< 60 s"), peak, held]
    theirs = run("debiasing.loop", size)
    peer, _, _, expected = map(float, theirs.said.split())
    if abs(total - expected) > 1e-2:
        raise SystemExit(f"the loop finds other vectors: their sums are {expected} and {total}")
    fast = float(alone.said.split()[0])
    return [
        Row(
            f"debiasing {name}, plain loop over words",
            f"{fast:.2f} s",
            f"{peer:.2f} s",
            f"{peer / fast:.1f} x",
            ">= 20",
        ),
        Row(f"debiasing {name}, with the check of all pairs", f"{seconds:.2f} s", "", "", "-"),
        peak,
        held,
    ]


def large() -> None:
    """``python -m benchmarks debiasing.large``: 3,000,000 × 300."""
    from .measure import show

    show(rows(Path(), "large"))
    sys.stdout.flush()
