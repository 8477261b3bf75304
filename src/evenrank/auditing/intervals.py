"""Which intervals a run's values support: those of a single query would have no width, and mislead."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .figures import Measured
from .findings import Comparison, Figure, RunAudit

_FEWEST = 2
"""The fewest queries with a value (in each pole, for a difference between poles) that an interval is drawn from."""


def drop_undetermined(results: list[RunAudit], measured: list[Measured]) -> list[RunAudit]:
    """The results without the intervals, and without the claims of non-inferiority, that rest on a single query."""
    return [
        replace(result, figures={key: _supported(figure, values, key) for key, figure in result.figures.items()})
        for result, values in zip(results, measured, strict=True)
    ]


def _supported(figure: Figure, measured: Measured, key: str) -> Figure:
    samples = measured.parts[key]
    compared = None if figure.vs_baseline is None else _supported_comparison(figure.vs_baseline)
    if min(int((~np.isnan(values)).sum()) for values in samples) < _FEWEST:
        return replace(figure, ci95=None, vs_baseline=compared)
    return figure if compared is figure.vs_baseline else replace(figure, vs_baseline=compared)


def _supported_comparison(compared: Comparison) -> Comparison:
    if min(compared.n_poles or (compared.n,)) >= _FEWEST:
        return compared
    return replace(compared, ci95=None, non_inferior=None if compared.non_inferior is None else False)
