"""Tests of a mean, step by step as they are written, to compare with."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import stats


def slow_compare(values: Sequence[float]) -> tuple[float, float, float]:
    """p, and the ends of the interval of the values that are not 0, step by step as the rule is written."""
    present = [x for x in values if abs(x) > 1e-12]
    k = len(present)

    def tests(sample: list[float], mu: float) -> tuple[float, float, int]:
        n = len(sample)
        mean = math.fsum(sample) / n
        s = math.sqrt(math.fsum((x - mean) ** 2 for x in sample) / (n - 1))
        t = (mean - mu) * math.sqrt(n) / s
        third = math.fsum((x - mean) ** 3 for x in sample) / n
        second = math.fsum((x - mean) ** 2 for x in sample) / n
        a = (1 + 6 / n) * third / second**1.5 / math.sqrt(n)
        return t, t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6, n - 1

    mean = math.fsum(present) / k
    reach = max(abs(x - mean) for x in present)

    def rejects(mu: float, side: int) -> float:
        """The larger one-sided p of the claim that the mean is on that side of mu."""
        samples = [present] + ([[*present, mean - side * reach]] if k < 30 else [])
        found = [tests(sample, mu) for sample in samples]
        return max(float(stats.t.sf(side * t, freedom)) for *both, freedom in found for t in both)

    p = min(1.0, 2 * rejects(0.0, 1 if mean >= 0 else -1))
    ends = []
    for side in (1, -1):
        inside, outside = mean, mean - side * 1e4
        for _ in range(80):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if rejects(middle, side) > 0.025 else (inside, middle)
        ends.append(inside)
    return p, ends[0], ends[1]
