"""Ranking losses on score matrices. ``scores``, ``relevance`` [B, K] float; ``mask`` [B, K] bool marks real passages.

A passage with a relevance of 1 or more is a positive, any other a negative. Each loss is a mean, so its size does not
depend on that of the batch; a batch without a pair to learn from has loss 0 and gradient 0. :data:`AVERAGED_OVER` marks
the elements of each mean: pieces of a batch, weighted by how many they have, add up to the mean over the batch.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional

from evenrank.files import EvenrankError
from evenrank.files.errors import arg, quoted

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(scores, relevance, mask) → a number with a gradient for the scores."""
Elements = Callable[[Tensor, Tensor], Tensor]
"""(relevance, mask) → what a loss is a mean over: True in [B], [B, K] or [B, K, K]."""


def nll(scores: Tensor, relevance: Tensor, mask: Tensor) -> Tensor:
    """−log softmax of a positive against the negatives of its list, mean over positives [IBBR §3.2.1].

    Other positives of the list do not compete with it.
    """
    negatives = scores.masked_fill(~(mask & (relevance < 1)), -torch.inf).logsumexp(dim=1, keepdim=True)
    # A list without a negative teaches nothing: log(exp(s)) − s = 0.
    return _mean(torch.logaddexp(scores, negatives) - scores, _positives(relevance, mask))


def against_batch(relevance: Tensor, mask: Tensor, counted: Tensor) -> tuple[Tensor, Tensor]:
    """The relevance and the mask [B, N] of in-batch negatives, whose scores are of every query and every passage.

    N passages, list by list, of which ``mask`` [B, K] says where they stand and ``counted`` [B, K] which enter the
    loss. Those of other lists have relevance 0: with one positive a list, :func:`nll` of such scores is
    MultipleNegativesRankingLoss (Henderson et al. 2017, §4.4, with hard negatives).

    When it misleads: a passage of another list may be relevant to this query too, and still is a negative.
    """
    own = torch.arange(len(mask), device=mask.device)[:, None] == mask.nonzero()[:, 0]
    return relevance[mask] * own, counted[mask].expand_as(own) & counted.any(1)[:, None]


def hinge(scores: Tensor, relevance: Tensor, mask: Tensor) -> Tensor:
    """max(0, 1 − s⁺ + s⁻), mean over all pairs of a positive and a negative of its list [POS §3]."""
    return _mean((1 - _differences(scores)).clamp(min=0), _positive_pairs(relevance, mask))


def bce(scores: Tensor, relevance: Tensor, mask: Tensor) -> Tensor:
    """Binary cross-entropy of each passage, mean over passages [BAS]."""
    target = (relevance >= 1).to(scores.dtype)
    return _mean(
        functional.binary_cross_entropy_with_logits(scores, target, reduction="none"), _passages(relevance, mask)
    )


def ranknet(scores: Tensor, relevance: Tensor, mask: Tensor) -> Tensor:
    """log(1 + exp(−(s_i − s_j))), mean over pairs with rel_i > rel_j (Burges et al. 2005, eq. 3)."""
    return _mean(functional.softplus(-_differences(scores)), _ordered_pairs(relevance, mask))


def margin_mse(scores: Tensor, relevance: Tensor, mask: Tensor) -> Tensor:
    """((s_i − s_j) − (t_i − t_j))², mean over pairs that the teacher's scores t = ``relevance`` order.

    Hofstätter et al. 2020, eq. 3, over every pair of the list.
    """
    return _mean((_differences(scores) - _differences(relevance)).square(), _ordered_pairs(relevance, mask))


def _positives(relevance: Tensor, mask: Tensor) -> Tensor:
    return mask & (relevance >= 1)


def _passages(relevance: Tensor, mask: Tensor) -> Tensor:
    return mask


def _lists(relevance: Tensor, mask: Tensor) -> Tensor:
    return mask.any(dim=1)


def _positive_pairs(relevance: Tensor, mask: Tensor) -> Tensor:
    return _pairs(_positives(relevance, mask), mask & (relevance < 1))


def _ordered_pairs(relevance: Tensor, mask: Tensor) -> Tensor:
    return _pairs(mask, mask) & (relevance[:, :, None] > relevance[:, None, :])


def _differences(values: Tensor) -> Tensor:
    """[B, K, K]: value i minus value j."""
    return values[:, :, None] - values[:, None, :]


def _pairs(first: Tensor, second: Tensor) -> Tensor:
    return first[:, :, None] & second[:, None, :]


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    # where() rather than a product: a masked infinity must not become NaN.
    return torch.where(chosen, values, torch.zeros_like(values)).sum() / chosen.sum().clamp(min=1)


LOSSES: dict[str, Loss] = {"nll": nll, "hinge": hinge, "bce": bce, "ranknet": ranknet, "margin-mse": margin_mse}
AVERAGED_OVER: dict[str, Elements] = {
    "nll": _positives,
    "hinge": _positive_pairs,
    "bce": _passages,
    "ranknet": _ordered_pairs,
    "margin-mse": _ordered_pairs,
}
"""What each loss is a mean over."""
_BUILT_IN = tuple(LOSSES)


def register_loss(name: str, loss: Loss, averaged_over: Elements | None = None) -> None:
    """Lets recipes and :func:`evenrank.train` name a custom loss: ``[loss] name = "…"``.

    ``averaged_over``: what the loss is a mean over, so that accumulation steps and processes of different size are
    weighted as in one batch; the lists of the batch by default. Raises EvenrankError for the name of a built-in loss.
    """
    if name in _BUILT_IN:
        raise EvenrankError(f"{arg.name}: {name} is a built-in loss")
    LOSSES[name], AVERAGED_OVER[name] = loss, averaged_over or _lists


def loss_of(loss: str | Loss) -> tuple[Loss, Elements]:
    """A loss, by name or as it is, and what it is a mean over.

    Raises EvenrankError for an unknown name and for anything but a function of (scores, relevance, mask); so does the
    loss, when called, if its value is not a scalar tensor.
    """
    function, averaged_over = _found(loss)
    try:
        inspect.signature(function).bind(None, None, None)
    except TypeError:
        raise EvenrankError("`loss`: expected a function of (scores, relevance, mask)") from None
    except ValueError:
        # Some compiled functions have no signature.
        pass

    def checked(scores: Tensor, relevance: Tensor, mask: Tensor) -> Tensor:
        value: object = function(scores, relevance, mask)
        if isinstance(value, Tensor) and value.numel() == 1:
            return value
        what = f"a tensor of shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__
        raise EvenrankError(f"`loss`: expected a scalar tensor, found {what}")

    return checked, averaged_over


def _found(loss: str | Loss) -> tuple[Loss, Elements]:
    if not isinstance(loss, str):
        names = [name for name, known in LOSSES.items() if known is loss]
        return loss, AVERAGED_OVER[names[0]] if names else _lists
    if loss not in LOSSES:
        raise EvenrankError(f"`loss`: expected one of {', '.join(LOSSES)}, found {quoted(loss)}")
    return LOSSES[loss], AVERAGED_OVER[loss]
