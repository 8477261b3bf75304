"""Wilcoxon's signed-rank test (Wilcoxon 1945), as SciPy computes it."""

from __future__ import annotations

import numpy as np
from scipy.stats import wilcoxon

from evenrank.files.types import Array


def signed_rank_p(differences: Array) -> float:
    """Two-sided p that paired differences [Q] are symmetric about 0; differences of 0 are left out, 1 if all are."""
    known = np.asarray(differences)[~np.isnan(differences)]
    return float(wilcoxon(known).pvalue) if known.any() else 1.0
