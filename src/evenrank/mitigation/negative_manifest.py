"""What the manifest of a sample of negatives reports."""

from __future__ import annotations

import platform

import numpy as np
import polars as pl

from evenrank._version import __version__
from evenrank.io.types import Array

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
    """The sums over queries; the mean β of all documents of each part whose β is known (None if there is none)."""

    def mean(column: str, counts: Array) -> float | None:
        number = int(counts.sum())
        # Summed as one array: a sum by parts may differ in the last digit.
        return float(np.nansum(table[column].to_numpy() * counts)) / number if number else None

    biased, random = int(table["biased"].sum()), int(table["random"].sum())
    counts = {name: table[name].to_numpy() for name in ("biased", "random", "candidates")}
    unknown = {}
    if "unknown" in table.columns:
        of_query, drawn = table["unknown"].to_numpy(), table["unknown_random"].to_numpy()
        counts |= {"random": counts["random"] - drawn, "candidates": counts["candidates"] - of_query}
        unknown = {
            "candidates": int(table["candidates"].sum()),
            "unknown": {
                "queries": int((of_query > 0).sum()),
                "candidates": int(of_query.sum()),
                "negatives": int(drawn.sum()),
            },
        }
    lacking = (settings.quota - table["gendered"].cast(pl.Int64)).clip(lower_bound=0)
    return {
        "queries": table.height,
        "negatives": biased + random,
        "biased": biased,
        "random": random,
        "short": {"queries": int((table["short"] > 0).sum()), "negatives": int(table["short"].sum())},
        "short_of_gendered": {"queries": int((lacking > 0).sum()), "negatives": int(lacking.sum())},
        **unknown,
        "mean_beta": {part: mean(f"beta_{part}", known) for part, known in counts.items()},
    }
