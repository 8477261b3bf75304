"""Tests of a mean, step by step as they are written, to compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats


def hall_tests(sample: Sequence[float], mu: float, c: float) -> tuple[float, float, int]:
    """t, Hall's t and the degrees of freedom of the claim that the mean is above ``mu``."""
    n = len(sample)
    mean = math.fsum(sample) / n
    s = math.sqrt(math.fsum((x - mean) ** 2 for x in sample) / (n - 1))
    t = (mean - mu) * math.sqrt(n) / s
    third = math.fsum((x - mean) ** 3 for x in sample) / n
    second = math.fsum((x - mean) ** 2 for x in sample) / n
    a = (1 + c / n) * third / second**1.5 / math.sqrt(n)
    return t, t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6, n - 1


def slow_compare(values: Sequence[float], zeros: str) -> tuple[float, float, float]:
    """p, and the ends of the interval of the values that count, step by step as the rule is written."""
    if zeros == "keep":
        return slow_test(values, 6, augmented=False)
    return slow_test([x for x in values if abs(x) > 1e-12], 10, augmented=True)


def slow_test(values: Sequence[float], c: float, *, augmented: bool) -> tuple[float, float, float]:
    """p, and the ends of the interval; ``augmented``: below 30 values also with one value more on the other side."""
    mean = math.fsum(values) / len(values)
    reach = max(abs(x - mean) for x in values)

    def rejects(mu: float, side: int) -> float:
        """The larger one-sided p of the claim that the mean is on that side of mu."""
        samples = [values] + ([[*values, mean - side * reach]] if len(values) < 30 and augmented else [])
        found = [hall_tests(sample, mu, c) for sample in samples]
        return max(float(stats.t.sf(side * t, df)) for *both, df in found for t in both)

    p = min(1.0, 2 * rejects(0.0, 1 if mean >= 0 else -1))
    ends = []
    for side in (1, -1):
        inside, outside = mean, mean - side * 1e4
        for _ in range(80):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if rejects(middle, side) > 0.025 else (inside, middle)
        ends.append(inside)
    return p, ends[0], ends[1]


def jackknife(values: Sequence[float], clusters: Sequence[int]) -> tuple[float, float]:
    """The variance of the mean by leaving out each cluster (CR3), and G* − 1."""
    names = sorted(set(clusters))
    mean = math.fsum(values) / len(values)
    left = []
    for name in names:
        rest = [x for x, c in zip(values, clusters, strict=True) if c != name]
        left.append(math.fsum(rest) / len(rest))
    sizes = [sum(c == name for c in clusters) for name in names]
    variance = (len(names) - 1) / len(names) * math.fsum((x - mean) ** 2 for x in left)
    return variance, len(values) ** 2 / sum(size**2 for size in sizes) - 1


def order_variance(weights: Sequence[float], values: Sequence[float]) -> float:
    """Var Σ w_i g_π(i) over all orders π, from the covariances of drawing without replacement."""
    n = len(values)
    if n < 2:
        return 0.0
    mean = math.fsum(values) / n
    variance = math.fsum((g - mean) ** 2 for g in values) / n
    return math.fsum(
        weights[i] * weights[j] * (variance if i == j else -variance / (n - 1)) for i in range(n) for j in range(n)
    )
