"""Exposure of every document over many queries, whoever asks them: which are never shown, and which everywhere.

[BA10] Bache & Azzopardi (2010). Improving access to large patent corpora. Transactions on Large-Scale Data- and
Knowledge-Centered Systems II.
[WA14] Wilkie & Azzopardi (2014). A retrievability analysis: exploring the relationship between retrieval bias and
retrieval performance. CIKM 2014.
"""

from __future__ import annotations

import numpy as np

from evenrank.files.types import Array

POINTS = 101


def retrievability(documents: Array, ranks: Array, size: int) -> Array:
    """The exposure r(d) = Σ_q 1 / ln(1 + rank) of each of ``size`` documents [size] (BA10's gravity-based form).

    ``documents`` [rows], whole numbers from 0 to ``size`` − 1, stand at ``ranks`` [rows], from 1, in the list of some
    query; what no list has counts 0.

    Worked example: document 0 is first twice, document 1 second once: 2 / ln 2 and 1 / ln 3.

    >>> retrievability(np.array([0, 0, 1]), np.array([1, 1, 2]), 3).round(3).tolist()
    [2.885, 0.91, 0.0]
    """
    found: Array = np.bincount(documents, 1 / np.log1p(ranks), size)
    return found


def gini(values: Array) -> float | None:
    """The Gini coefficient of values [N] from 0 up: 0 where all are equal, 1 − 1/N where one has all (WA14, eq. 3).

    G = Σ_i (2i − N − 1) · x_i / (N · Σ x), values ascending and i from 1. None where all are 0.

    >>> gini(np.array([0.0, 0.0, 0.0, 5.0])), gini(np.array([2.0, 2.0]))
    (0.75, 0.0)
    """
    ascending = np.sort(values)
    total, number = float(ascending.sum()), len(ascending)
    if not total:
        return None
    return float((2 * np.arange(1, number + 1) - number - 1) @ ascending) / (number * total)


def lorenz(values: Array) -> Array:
    """The Lorenz curve of values [N] from 0 up: at each percent of the documents, those with the least first, their
    share of the total [101]; it ends with 1. NaN where all are 0.

    >>> lorenz(np.array([0.0, 1.0, 3.0, 0.0]))[[0, 50, 75, 100]].tolist()
    [0.0, 0.0, 0.25, 1.0]
    """
    so_far = np.concatenate([[0.0], np.cumsum(np.sort(values))])
    at = np.linspace(0, len(values), POINTS)
    found: Array = np.interp(at, np.arange(len(so_far)), so_far)
    return found / so_far[-1] if so_far[-1] else np.full(POINTS, np.nan)
