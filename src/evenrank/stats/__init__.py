"""Statistics in standard terms: estimates, comparisons, bounds, clusters, planning, ratios, sampling.

Arrays in, dataclasses out; nothing here knows of rankings. Every interval, p-value and verdict of evenrank is made in
this folder, and docs/verdicts-table.md says how often each verdict is false.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names

if TYPE_CHECKING:
    from .estimate import Estimate, MeanEstimate, combined_estimate, p_two_sided
    from .planning import power, queries_to_decide
    from .random_effects import (
        LEAST_SEEDS,
        RandomEffects,
        of_trainings,
        random_effects_test,
        size_test,
        unseen_share,
    )
    from .signed_rank import signed_rank_p
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "LEAST_SEEDS",
    "Estimate",
    "MeanEstimate",
    "RandomEffects",
    "combined_estimate",
    "of_trainings",
    "p_two_sided",
    "power",
    "queries_to_decide",
    "random_effects_test",
    "signed_rank_p",
    "size_test",
    "unseen_share",
]
