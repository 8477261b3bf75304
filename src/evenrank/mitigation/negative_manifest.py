"""What the manifest of a sample of negatives reports."""

from __future__ import annotations

import platform

import numpy as np
import polars as pl

from evenrank._version import __version__

from .negative_lists import Sampler
from .negative_sampling import Settings


def manifest_of(sampler: Sampler, settings: dict[str, object], rows: int) -> dict[str, object]:
    """Versions, settings, and the counts over all queries; ``rows``: how many were written."""
    table, left_out = sampler.per_query(), dict(sampler.left_out)
    if settings["format"] == "n-tuple":
        left_out["too_few_for_n_tuple"] = int((table["short"] > 0).sum())
    return {
        "evenrank": __version__,
        "versions": {"python": platform.python_version(), "polars": pl.__version__, "numpy": np.__version__},
        "settings": settings,
        **_totals(table, sampler.settings),
        "left_out": left_out,
        "rows": rows,
    }


def _totals(table: pl.DataFrame, settings: Settings) -> dict[str, object]:
    """The sums over queries; the mean β of all documents of each part (None if there is none)."""

    def mean(column: str, count: str) -> float | None:
        number = int(table[count].sum())
        # Summed as one array: a sum by parts may differ in the last digit.
        return float(np.nansum(table[column].to_numpy() * table[count].to_numpy())) / number if number else None

    biased, random = int(table["biased"].sum()), int(table["random"].sum())
    lacking = (settings.quota - table["gendered"].cast(pl.Int64)).clip(lower_bound=0)
    return {
        "queries": table.height,
        "negatives": biased + random,
        "biased": biased,
        "random": random,
        "short": {"queries": int((table["short"] > 0).sum()), "negatives": int(table["short"].sum())},
        "short_of_gendered": {"queries": int((lacking > 0).sum()), "negatives": int(lacking.sum())},
        "mean_beta": {
            "biased": mean("beta_biased", "biased"),
            "random": mean("beta_random", "random"),
            "candidates": mean("beta_candidates", "candidates"),
        },
    }
