"""Ranking losses on score matrices. ``scores``, ``labels`` [B, K] float; ``mask`` [B, K] bool marks real passages.

A passage with label ≥ 1 is a positive, any other a negative. Each loss is a mean, so its size does not depend on the
batch's; a batch without a pair to learn from gives 0 with a gradient of 0. :data:`TERMS` says what each is a mean over:
pieces of a batch, each weighed by the number of its terms, have the batch's mean.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
Terms = Callable[[Tensor, Tensor], Tensor]


def nll(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """−log softmax of a positive against the negatives of its list, mean over positives [IBBR §3.2.1].

    Other positives of the list do not compete with it.
    """
    negatives = scores.masked_fill(~(mask & (labels < 1)), -torch.inf).logsumexp(dim=1, keepdim=True)
    # Without a negative, the list teaches nothing: log(exp(s)) − s = 0.
    return _mean(torch.logaddexp(scores, negatives) - scores, _positives(labels, mask))


def hinge(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """max(0, 1 − s⁺ + s⁻), mean over all pairs of a positive and a negative of its list [POS §3]."""
    return _mean((1 - _differences(scores)).clamp(min=0), _positive_pairs(labels, mask))


def bce(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """Binary cross-entropy of each passage, mean over passages [BAS]."""
    target = (labels >= 1).to(scores.dtype)
    return _mean(functional.binary_cross_entropy_with_logits(scores, target, reduction="none"), _passages(labels, mask))


def ranknet(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """log(1 + exp(−(s_i − s_j))), mean over pairs with label_i > label_j (Burges et al. 2005, eq. 3)."""
    return _mean(functional.softplus(-_differences(scores)), _ordered_pairs(labels, mask))


def margin_mse(scores: Tensor, labels: Tensor, mask: Tensor) -> Tensor:
    """((s_i − s_j) − (t_i − t_j))², mean over pairs that the teacher's scores t = ``labels`` put in order.

    Hofstätter et al. 2020, eq. 3, over every pair of the list.
    """
    return _mean((_differences(scores) - _differences(labels)).square(), _ordered_pairs(labels, mask))


def _positives(labels: Tensor, mask: Tensor) -> Tensor:
    return mask & (labels >= 1)


def _passages(labels: Tensor, mask: Tensor) -> Tensor:
    return mask


def _positive_pairs(labels: Tensor, mask: Tensor) -> Tensor:
    return _pairs(_positives(labels, mask), mask & (labels < 1))


def _ordered_pairs(labels: Tensor, mask: Tensor) -> Tensor:
    return _pairs(mask, mask) & (labels[:, :, None] > labels[:, None, :])


def _differences(values: Tensor) -> Tensor:
    """[B, K, K]: value i minus value j."""
    return values[:, :, None] - values[:, None, :]


def _pairs(first: Tensor, second: Tensor) -> Tensor:
    return first[:, :, None] & second[:, None, :]


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    # where() rather than a product: a masked infinity must not become NaN.
    return torch.where(chosen, values, torch.zeros_like(values)).sum() / chosen.sum().clamp(min=1)


LOSSES: dict[str, Loss] = {"nll": nll, "hinge": hinge, "bce": bce, "ranknet": ranknet, "margin-mse": margin_mse}
TERMS: dict[str, Terms] = {
    "nll": _positives,
    "hinge": _positive_pairs,
    "bce": _passages,
    "ranknet": _ordered_pairs,
    "margin-mse": _ordered_pairs,
}
"""What each loss is a mean over, True in [B, K] or [B, K, K], from ``labels`` and ``mask``."""
