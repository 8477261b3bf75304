"""What is said of a trained ranker before anything else: that it ranks worse than it may."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenrank.io.wording import counted
from evenrank.measures.statistics import SIGNIFICANT

LOST = 0.2
"""The share of its base's utility beyond whose loss a ranker is destroyed."""


def ruined(value: float, first_stage: float | None, base: float | None = None, *, measure: str = "utility") -> str:
    """A sentence if a ranker's utility is below the first stage, or more than 20% below its base; otherwise empty.

    ``value``: its validation ``measure``; ``first_stage``: that of the run that it re-ranks; ``base``: that of the
    ranker which training continued from. A base of 0 cannot be fallen below, and None or NaN is unknown.

    >>> ruined(0.535, 0.41, 0.963, measure="RR")
    'This ranker is destroyed: RR 0.5350, 44% below its base (0.9630).'
    >>> ruined(0.95, 0.41, 0.963, measure="RR")
    ''
    """
    found = []
    if base is not None and value < (1 - LOST) * base:
        found.append(f"{1 - value / base:.0%} below its base ({base:.4f})")
    if first_stage is not None and value < first_stage:
        found.append(f"below the first stage ({first_stage:.4f})")
    if not found:
        return ""
    what = "is destroyed" if len(found) > 1 or "base" in found[0] else "ranks worse than no ranker"
    return f"This ranker {what}: {measure} {value:.4f}, {' and '.join(found)}."


def warning(result: Mapping[str, Any]) -> str:
    """:func:`ruined` from the figures of a ``result.json``."""
    return ruined(result["value"], result["first_stage"], result.get("base"), measure=result["measure"])


def tested(result: Mapping[str, Any]) -> str:
    """What the paired test against the first stage shows, in words; empty if a ``result.json`` has none."""
    if "queries" not in result:
        return ""
    n, p = counted(result["queries"], "query"), result["p"]
    if p is None:
        return f"not tested against the first stage ({n})"
    if p >= SIGNIFICANT:
        verdict = "not significantly different from"
    else:
        verdict = "significantly worse than" if result["value"] < result["first_stage"] else "significantly better than"
    return f"{verdict} the first stage (p {'< 0.001' if p < 0.0005 else f'= {p:.3f}'}, {n})"
