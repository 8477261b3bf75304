"""Rank bias: which group the documents at the top speak of (RaB, ARaB)."""

from __future__ import annotations

import numpy as np

from .lists import Array


def rab_weights(lengths: Array, cutoff: int) -> Array:
    """The weight [Q, cutoff] of each rank in RaB@cutoff: 1 / min(cutoff, n) for the ranks a list of n fills.

    RaB(q)@t = mean of the signed magnitude over the first min(t, n) documents [RS20, eq. 4].
    """
    depth = np.minimum(lengths, cutoff)[:, None]
    return np.where(np.arange(cutoff) < depth, 1 / np.maximum(depth, 1), 0.0)


def arab_weights(lengths: Array, cutoff: int) -> Array:
    """The weight [Q, cutoff] of each rank in ARaB@cutoff: with K = min(cutoff, n), (1/K) Σ_{t=i..K} 1/t for rank i ≤ K.

    ARaB(q)@k = mean of RaB(q)@t over t = 1 … min(k, n) [RS20, eq. 5].
    """
    depth = np.minimum(lengths, cutoff)
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, cutoff + 1))))
    weights = (harmonic[depth][:, None] - harmonic[:-1]) / np.maximum(depth, 1)[:, None]
    return np.where(np.arange(cutoff) < depth[:, None], weights, 0.0)


def rab(magnitudes: Array, lengths: Array, cutoff: int) -> Array:
    """RaB@cutoff [Q] of signed magnitudes [Q, ≥ cutoff] in rank order; NaN for an empty list.

    >>> rab(np.array([[1.0, 0.0, -1.0]]), np.array([3]), 2).tolist()
    [0.5]
    """
    return _weighted(rab_weights(lengths, cutoff), magnitudes, lengths)


def arab(magnitudes: Array, lengths: Array, cutoff: int) -> Array:
    """ARaB@cutoff [Q] of signed magnitudes [Q, ≥ cutoff] in rank order; NaN for an empty list.

    >>> arab(np.array([[1.0, 0.0, -1.0]]), np.array([3]), 3).round(4).tolist()  # (1 + 1/2 + 0) / 3
    [0.5]
    """
    return _weighted(arab_weights(lengths, cutoff), magnitudes, lengths)


def _weighted(weights: Array, values: Array, lengths: Array) -> Array:
    return np.where(lengths > 0, (weights * values[:, : weights.shape[1]]).sum(axis=1), np.nan)
