"""In-batch balancing regularization (IBBR): a term of the loss that brings two groups' nPRF together.

Li et al. 2022, "Debiasing neural retrieval via in-batch balancing regularization" [IBBR], §2.3 and §3.1. The functions
work on score matrices and can be used alone: ``scores`` [B, K] float; ``relevance`` [B, K], clicked from 1 on;
``sides`` [B, K]: +1 for the first pole, −1 for the second, 0 for neither; ``mask`` [B, K] bool marks real passages.

When it misleads: the term sees clicked passages only, so a training set whose relevant passages are nearly all of one
group leaves it little to balance, and a batch with fewer than two of a group leaves it nothing (the log counts such
batches: use large ones). It balances how often the groups win, |ΔA-PRF|; the groups that the first ranks mention, ARaB
and NFaiRR, can stay the same or move the other way. A large weight can reach balance by ranking both groups worse: look
at nDCG beside it, and at ``blind``. Chosen by effectiveness alone, the checkpoint is one from before the term acted:
training chooses by both (:mod:`evenrank.training.choice`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from torch import Tensor

from .ibbr_weights import AutoWeight, DualWeight, FixedWeight, Weight, as_weight, best_weight

__all__ = [
    "IBBR",
    "AutoWeight",
    "DualWeight",
    "FixedWeight",
    "Form",
    "Pairwise",
    "Score",
    "Term",
    "Weight",
    "as_weight",
    "best_weight",
    "delta_aprf",
    "pairwise_difference",
    "t_statistics",
]

Term = Literal["ibbr-pd", "ibbr-ts"]
Score = Literal["softmax", "sigmoid", "identity"]
Form = Literal["squared", "printed"]


@dataclass(frozen=True, slots=True)
class Pairwise:
    """The nPRF of both poles for each query of a batch.

    ``nprf`` [2, B], differentiable; ``prf`` [2, B], without gradient: the share of pairs won; ``defined`` [2, B] bool:
    whether the query has a clicked passage of the pole and one that is not clicked. Undefined values are 0.
    """

    nprf: Tensor
    prf: Tensor
    defined: Tensor

    @classmethod
    def of(cls, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor, score: Score = "softmax") -> Pairwise:
        """nPRF_a(q) = sqrt(1/(n1,a n0) Σ_j Σ_k R_j² 1[R_j ≥ R_k]) over clicked j of pole a and k not clicked.

        [IBBR, eq. 3]; the indicator is treated as a constant. R is ``score`` of the scores: ``softmax`` over the list's
        passages, ``sigmoid``, or ``identity``. The indicator compares the scores themselves, which R keeps in order, so
        that rounding makes no two equal.
        """
        clicked = mask & (relevance >= 1)
        others = mask & ~clicked
        with torch.no_grad():
            beaten = _beaten(scores, others)
            pole = torch.stack([clicked & (sides > 0), clicked & (sides < 0)]).to(scores.dtype)
            pairs = pole.sum(2) * others.sum(1)
            defined = pairs > 0
            share = pole * beaten / pairs.clamp(min=1)[:, :, None]
        squares = (share * _values(scores, mask, score).square()).sum(2)
        won = squares > 0
        # sqrt has no gradient at 0: a query that wins no pair contributes none.
        values = torch.where(won, squares.where(won, torch.ones_like(squares)).sqrt(), torch.zeros_like(squares))
        return cls(values, share.sum(2), defined)


def _beaten(scores: Tensor, others: Tensor) -> Tensor:
    """How many of the other passages score no higher than each passage, [B, K]."""
    ordered = scores.masked_fill(~others, torch.inf).sort(dim=1).values
    return torch.searchsorted(ordered, scores.contiguous(), right=True).clamp(max=others.sum(1)[:, None])


def _values(scores: Tensor, mask: Tensor, score: Score) -> Tensor:
    if score == "sigmoid":
        return scores.sigmoid()
    if score == "softmax":
        return scores.masked_fill(~mask, -torch.inf).softmax(dim=1).masked_fill(~mask, 0)
    if score == "identity":
        return scores
    raise ValueError(f"score: expected softmax, sigmoid or identity, found {score!r}")


def pairwise_difference(first: Tensor, second: Tensor) -> Tensor:
    """PD: 1/(n_m n_f) Σ_c Σ_d (v_c − v_d)² over nPRF values of the two groups, ``first`` [n_m] and ``second`` [n_f].

    [IBBR, eq. 4], which prints nPRF_m in both terms while its text compares the groups. Computed in O(n) as
    (μ_m − μ_f)² + var_m + var_f with biased variances, which is equal. 0 if a group is empty.

    When it misleads: it is not 0 for equal groups: the variances remain, so it also pulls together the values within a
    group.

    Worked example: {3/4, 1/4} and {1/4}: ((3/4 − 1/4)² + (1/4 − 1/4)²) / 2 = 1/8.

    >>> import torch
    >>> from evenrank.mitigation.ibbr import pairwise_difference
    >>> pairwise_difference(torch.tensor([0.75, 0.25]), torch.tensor([0.25])).item()
    0.125
    """
    if not len(first) or not len(second):
        return (first.sum() + second.sum()) * 0
    return (first.mean() - second.mean()).square() + _variance(first) + _variance(second)


def t_statistics(first: Tensor, second: Tensor, form: Form = "squared") -> Tensor:
    """TS: (μ_m − μ_f)² / (var_m/n_m + var_f/n_f + ε), the squared T statistic of nPRF values [n_m] and [n_f].

    [IBBR, an equation without a number, as its text describes it], biased variances,
    ε = 1e-8 (μ_m + μ_f)² + 1e-12. ``form="printed"``: { (μ_m − μ_f)² / sqrt(var_m/n_m + var_f/n_f + ε) }², as the
    equation is printed. 0 if a group has fewer than two values.

    When it misleads: it grows with the batch size for the same difference, and can be lowered by spreading the values
    of a group as well as by bringing the means together; values of different batch sizes cannot be compared.

    Worked example: {3/4, 1/4} and {1/4, 1/4}: the means differ by 1/4, the variances are 1/16 and 0: (1/16) / (1/16/2 +
    0) = 2.

    >>> import torch
    >>> from evenrank.mitigation.ibbr import t_statistics
    >>> round(t_statistics(torch.tensor([0.75, 0.25]), torch.tensor([0.25, 0.25])).item(), 4)
    2.0
    """
    if len(first) < 2 or len(second) < 2:
        return (first.sum() + second.sum()) * 0
    gap = (first.mean() - second.mean()).square()
    spread = _variance(first) / len(first) + _variance(second) / len(second)
    spread = spread + 1e-8 * (first.mean() + second.mean()).square() + 1e-12
    if form == "printed":
        return gap.square() / spread
    if form != "squared":
        raise ValueError(f"form: expected squared or printed, found {form!r}")
    return gap / spread


def _variance(values: Tensor) -> Tensor:
    return (values - values.mean()).square().mean()


@dataclass(frozen=True, slots=True)
class IBBR:
    """The fairness term ``ibbr-pd`` or ``ibbr-ts`` over the nPRF values of a batch.

    ``score`` is R in nPRF. Softmax is the default: of the three it lowered |ΔA-PRF| most for the MRR it cost on the
    built-in collection (``evenrank experiment ibbr``, table "Score R"). ``weight`` (of the term beside the ranking
    loss) is for :func:`evenrank.train`; the term itself is unweighted.

    Raises ValueError for a setting out of range.
    """

    term: Term = "ibbr-ts"
    form: Form = "squared"
    score: Score = "softmax"
    weight: Weight = 0.1

    def __post_init__(self) -> None:
        for name, allowed in (("term", Term), ("form", Form), ("score", Score)):
            options = get_args(allowed)
            if getattr(self, name) not in options:
                raise ValueError(f"{name}: expected {', '.join(options)}, found {getattr(self, name)!r}")
        as_weight(self.weight)

    def __call__(self, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor | None = None) -> Tensor:
        """The term of one batch in this process; without ``mask`` every passage is real."""
        mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
        return self.loss(self.summarize(scores, relevance, sides, mask))

    # What EffectiveBatch asks of a term.

    def summarize(self, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor) -> tuple[Tensor, ...]:
        """nPRF (differentiable), PRF, and whether they are defined, for both poles of each query: [2, B] each."""
        found = Pairwise.of(scores, relevance, sides, mask, self.score)
        return found.nprf, found.prf, found.defined

    def loss(self, summary: tuple[Tensor, ...]) -> Tensor:
        """The term of what :meth:`summarize` returned."""
        nprf, _, defined = summary
        first, second = (values[there > 0] for values, there in zip(nprf, defined, strict=True))
        if self.term == "ibbr-pd":
            return pairwise_difference(first, second)
        return t_statistics(first, second, self.form)

    def applies(self, summary: tuple[Tensor, ...]) -> bool:
        """Whether there are enough queries of each pole for the term: one for PD, two for TS."""
        return bool(((summary[2] > 0).sum(1) >= (1 if self.term == "ibbr-pd" else 2)).all())

    def delta_aprf(self, summary: tuple[Tensor, ...]) -> float:
        """ΔA-PRF of the queries."""
        return delta_aprf(summary[1], summary[2] > 0)


def delta_aprf(prf: Tensor, defined: Tensor) -> float:
    """ΔA-PRF of a batch: mean PRF of the first pole − that of the second ([2, B]); NaN if a pole has no query."""
    sums, counts = (prf * defined).sum(1), defined.sum(1)
    return float(sums[0] / counts[0] - sums[1] / counts[1]) if bool((counts > 0).all()) else float("nan")
