"""Statistics in standard terms: estimates, comparisons, bounds, clusters, planning, ratios, sampling.

Arrays in, dataclasses out; nothing here knows of rankings. Every interval, p-value and verdict of evenrank is made in
this folder, and docs/verdicts-table.md says how often each verdict is false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names

if TYPE_CHECKING:
    from . import compare
    from .estimate import (
        SIGNIFICANT,
        Estimate,
        Interval,
        MeanEstimate,
        combined_estimate,
        confidence_interval,
        mean_estimate,
        p_two_sided,
        t_quantile,
    )
    from .planning import power, queries_to_decide
    from .signed_rank import signed_rank_p
    from .sizes import ResampledSizes
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "SIGNIFICANT",
    "Estimate",
    "Interval",
    "MeanEstimate",
    "ResampledSizes",
    "combined_estimate",
    "compare",
    "confidence_interval",
    "mean_estimate",
    "p_two_sided",
    "power",
    "queries_to_decide",
    "signed_rank_p",
    "t_quantile",
]
