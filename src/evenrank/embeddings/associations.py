"""Word embedding association tests [Caliskan et al. 2017]."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evenrank.io.ranges import check_ranges

from ._rows import Doubles, row_numbers, unit_rows
from .vectors import Vectors
from .word_sets import AssociationTest

EXACT = 200_000
"""Up to this number of partitions, all are computed; beyond, a sample."""
_BLOCK = 10_000


@dataclass(frozen=True, slots=True)
class Association:
    """The result of a test: ``effect`` size, and one-sided ``p`` over ``partitions`` (all of them if ``exact``).

    Both are None if a set has too few words with a vector; ``missing``: words without one.
    """

    name: str
    effect: float | None
    p: float | None
    partitions: int
    exact: bool
    missing: tuple[str, ...]


def association(vectors: Vectors, test: AssociationTest, *, permutations: int = 10_000, seed: int = 0) -> Association:
    """Tests whether the words of X are nearer to A than to B, and more so than those of Y (WEAT).

    s(w, A, B) = mean cos(w, a) − mean cos(w, b); effect size d = (mean over X of s − mean over Y of s) / standard
    deviation of s over X ∪ Y (of a sample, n − 1); p: the share of the partitions of X ∪ Y into sets of these sizes
    whose Σ_X s − Σ_Y s is at least the observed one, which is among them (Caliskan et al. 2017, supplement). Up to
    200,000 partitions all are computed, else ``permutations`` random ones and the observed.
    """
    check_ranges(permutations=permutations, seed=seed)
    of = {"x": test.x, "y": test.y, "a": test.a, "b": test.b}
    row_of = row_numbers(vectors.words, (word for words in of.values() for word in words))
    missing = tuple(dict.fromkeys(word for words in of.values() for word in words if word not in row_of))
    known = {key: unit_rows(vectors.matrix[[row_of[w] for w in words if w in row_of]]) for key, words in of.items()}
    if min(len(known["a"]), len(known["b"])) < 1 or min(len(known["x"]), len(known["y"])) < 2:
        return Association(test.name, None, None, 0, False, missing)
    targets = np.concatenate([known["x"], known["y"]])
    s: Doubles = targets @ known["a"].mean(axis=0) - targets @ known["b"].mean(axis=0)
    of_x = len(known["x"])
    spread = float(s.std(ddof=1))
    effect = (float(s[:of_x].mean()) - float(s[of_x:].mean())) / spread if spread > 1e-12 else None
    p, partitions, exact = permutation_p(s, of_x, permutations, seed)
    return Association(test.name, effect, p, partitions, exact, missing)


def permutation_p(s: Doubles, of_x: int, permutations: int, seed: int) -> tuple[float, int, bool]:
    """One-sided p of Σ over the first ``of_x`` of ``s`` [N] − Σ over the others; the number of partitions; whether all.

    The difference increases with the first sum, so only that is compared.
    """
    total = math.comb(len(s), of_x)
    # The order of summation must not matter.
    least = float(s[:of_x].sum()) - 1e-9 * max(1.0, float(np.abs(s).sum()))
    if total <= EXACT:
        chosen = np.fromiter(combinations(range(len(s)), of_x), np.dtype((np.int64, of_x)), total)
        return float((s[chosen].sum(axis=1) >= least).mean()), total, True
    rng = np.random.default_rng(seed)
    above = 1
    for start in range(0, permutations, _BLOCK):
        drawn = rng.permuted(np.tile(s, (min(_BLOCK, permutations - start), 1)), axis=1)
        above += int((drawn[:, :of_x].sum(axis=1) >= least).sum())
    return above / (permutations + 1), permutations + 1, False
