"""Fairness of exposure to neutral documents: FaiRR and NFaiRR."""

from __future__ import annotations

import numpy as np

from .lists import Array


def discount_weights(lengths: Array, cutoff: int) -> Array:
    """The weight [Q, cutoff] of each rank in FaiRR@cutoff: 1 / log2(1 + i) for the ranks a list fills."""
    return np.where(np.arange(cutoff) < lengths[:, None], 1 / np.log2(np.arange(2, cutoff + 2)), 0.0)


def fairr(neutrality: Array, lengths: Array, cutoff: int) -> Array:
    """FaiRR@cutoff [Q] of neutralities [Q, ≥ cutoff] in rank order [RKS21, eq. 2]; NaN for an empty list.

    >>> fairr(np.array([[1.0, 0.0, 0.5]]), np.array([3]), 3).tolist()  # 1/1 + 0.5/2
    [1.25]
    """
    weights = discount_weights(lengths, cutoff)
    return np.where(lengths > 0, (weights * neutrality[:, :cutoff]).sum(axis=1), np.nan)


def ideal_order(background: Array, lengths: Array, depth: int) -> Array:
    """The ``depth`` largest of the neutralities [Q, D] of each list, falling [Q, ≤ depth]; −1 past its end.

    ``lengths`` [Q] says how many of the D columns are documents.
    """
    depth = min(depth, background.shape[1])
    # Places without a document come last: no neutrality is below 0.
    falling = np.where(np.arange(background.shape[1]) < lengths[:, None], -background, 1.0)
    if depth < background.shape[1]:
        falling = np.partition(falling, depth, axis=1)[:, :depth]
    return -np.sort(falling, axis=1)


def ideal_fairr(background: Array, lengths: Array, cutoff: int) -> Array:
    """IFaiRR@cutoff [Q]: FaiRR of the background documents' neutralities [Q, D] sorted by falling neutrality.

    ``lengths`` [Q] says how many of the D columns are documents [RKS21, eq. 3].
    """
    ordered = ideal_order(background, lengths, cutoff)
    return fairr(ordered, lengths, ordered.shape[1])


def nfairr(fairness: Array, ideal: Array) -> Array:
    """NFaiRR [Q] = FaiRR / IFaiRR; undefined (NaN) where IFaiRR is 0 or missing [RKS21, eq. 4].

    >>> nfairr(np.array([1.25, 0.0]), np.array([1.5, 0.0])).round(4).tolist()
    [0.8333, nan]
    """
    normalised: Array = np.divide(fairness, ideal, out=np.full(len(fairness), np.nan), where=ideal > 0)
    return normalised


def ranker_agnostic_fairr(neutrality: Array, cutoff: int) -> float:
    """FaiRR@cutoff of a document set [D] any of which may stand at any rank: mean neutrality × Σ discounts.

    The ranker-agnostic form of [RKS21]. Raises ValueError for an empty set.

    >>> round(ranker_agnostic_fairr(np.array([1.0, 0.0]), 2), 4)  # 1/2 × (1 + 1/log2 3)
    0.8155
    """
    if not len(neutrality):
        raise ValueError("no document")
    return float(neutrality.mean() * (1 / np.log2(np.arange(2, cutoff + 2))).sum())


def ranker_agnostic_nfairr(neutrality: Array, cutoff: int) -> float:
    """:func:`ranker_agnostic_fairr` over the FaiRR of the same documents [D] sorted by falling neutrality.

    What a random order of the set has on average, as a share of its most neutral order; NaN without a neutral document.
    """
    depth = min(cutoff, len(neutrality))
    ideal = ideal_fairr(neutrality[None, :], np.array([len(neutrality)]), depth)
    return float(nfairr(np.array([ranker_agnostic_fairr(neutrality, depth)]), ideal)[0])
