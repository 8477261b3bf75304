"""Slow, obvious versions of the measures of exposure, straight from their definitions; and random input for both."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import polars as pl

from evenrank.files import Run
from evenrank.groups import GroupTable

NAN = math.nan
Weights = list[Sequence[float]]
"""The weights of the groups in each document of a list, in rank order."""


def discount(rank: int, kind: str = "log", gamma: float = 0.8) -> float:
    if kind == "rbp":
        return gamma ** (rank - 1)
    return 1 / math.log2(max(rank, 2) if kind == "trec" else rank + 1)


def share(docs: Weights, k: int, group: int) -> float:
    top = docs[:k]
    return sum(weights[group] for weights in top) / len(top)


def exposures(docs: Weights, k: int, kind: str = "log", gamma: float = 0.8) -> list[float]:
    found = [0.0] * len(docs[0])
    for rank, weights in enumerate(docs[:k], start=1):
        for group, weight in enumerate(weights):
            found[group] += discount(rank, kind, gamma) * weight
    return found


def normalised(values: Sequence[float]) -> list[float]:
    return [value / sum(values) if sum(values) else NAN for value in values]


def kl(p: Sequence[float], q: Sequence[float]) -> float:
    total = 0.0
    for one, other in zip(p, q, strict=True):
        if one > 0:
            total += one * math.log(one / other) if other > 0 else math.inf
    return total


def awrf(exposure: Sequence[float], target: Sequence[float], base: float = math.e) -> float:
    shares = normalised(exposure)
    if math.isnan(shares[0]) or math.isnan(target[0]):
        return NAN
    middle = [(one + other) / 2 for one, other in zip(shares, target, strict=True)]
    return 1 - (kl(shares, middle) + kl(target, middle)) / 2 / math.log(base)


def ndkl(docs: Weights, k: int, target: Sequence[float], kind: str = "log", gamma: float = 0.8) -> float:
    above = below = 0.0
    for depth in range(1, min(k, len(docs)) + 1):
        sums = [sum(weights[group] for weights in docs[:depth]) for group in range(len(docs[0]))]
        if sum(sums):
            above += discount(depth, kind, gamma) * kl(normalised(sums), target)
            below += discount(depth, kind, gamma)
    return above / below if below and math.isfinite(above) and not math.isnan(target[0]) else NAN


def mean_of_defined(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else NAN


def labels(weights: dict[str, Sequence[float]], groups: str = "abc") -> GroupTable:
    """A table of labels with these weights."""
    table = {"doc_id": [*weights], "neutrality": [1.0] * len(weights)}
    columns = {f"count_{g}": [float(of[i]) for of in weights.values()] for i, g in enumerate(groups)}
    return GroupTable.of(pl.DataFrame(table | columns), {"labels": "labels.csv"})


class Case:
    """A run with ties, and labels of some of its documents; groups a, b and c."""

    def __init__(self, seed: int, *, longest: int = 6, levels: int = 3, whole: bool = False) -> None:
        rng = np.random.default_rng(seed)
        names = [f"d{i}" for i in range(12)]
        # Whole weights, halves, nothing, and parts that sum to less than 1.
        choices = [(1, 0, 0), (0, 1, 0), (0, 0, 1)] + ([] if whole else [(0.5, 0.5, 0), (0, 0, 0), (0.1, 0.3, 0.2)])
        known = names if whole else [name for name in names if rng.random() < 0.8]
        self.weights = {name: choices[rng.integers(len(choices))] for name in known}
        self.table = labels(self.weights)
        rows = [
            (str(query), str(doc), float(rng.integers(levels)))
            for query in range(4)
            for doc in rng.permutation(names)[: rng.integers(1, longest + 1)]
        ]
        schema = {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}
        self.run = Run.from_table(pl.DataFrame(rows, schema, orient="row"), "case")

    def of(self, docs: Sequence[str]) -> Weights:
        """The weights of documents."""
        return [self.weights.get(doc, (0.0, 0.0, 0.0)) for doc in docs]
