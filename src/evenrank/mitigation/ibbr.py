"""In-batch balancing regularization (IBBR): a term of the loss that brings two groups' nPRF together.

Li et al. 2022, "Debiasing neural retrieval via in-batch balancing regularization" [IBBR], §2.3 and §3.1. The pieces
work alone, on score matrices: ``scores`` [B, K] float; ``labels`` [B, K]: a passage with label ≥ 1 is clicked;
``groups`` [B, K]: +1 for the first pole, −1 for the second, 0 for neither; ``mask`` [B, K] bool marks real passages.

When it misleads: the term sees clicked passages only, so a training set whose relevant passages are nearly all of one
group gives it little to balance, and a batch with fewer than two of a group gives nothing (the log counts such batches:
use large ones). It balances how often the groups win, |ΔA-PRF|; what the first ranks speak of, ARaB and NFaiRR, can
stay as it was or move the other way. A large weight can reach balance by ranking both groups worse: look at nDCG beside
it, and at ``blind``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

Term = Literal["ibbr-pd", "ibbr-ts"]
Score = Literal["softmax", "sigmoid", "identity"]
Form = Literal["squared", "printed"]


@dataclass(frozen=True, slots=True)
class Pairwise:
    """The nPRF of both poles for each query of a batch.

    ``nprf`` [2, B], differentiable; ``prf`` [2, B], without gradient: the share of pairs that are won; ``defined``
    [2, B] bool: where the query has a clicked passage of the pole and one that is not clicked. 0 where not defined.
    """

    nprf: Tensor
    prf: Tensor
    defined: Tensor

    @classmethod
    def of(cls, scores: Tensor, labels: Tensor, groups: Tensor, mask: Tensor, score: Score = "softmax") -> Pairwise:
        """nPRF_a(q) = sqrt(1/(n1,a n0) Σ_j Σ_k R_j² 1[R_j ≥ R_k]) over clicked j of pole a and k not clicked.

        [IBBR, eq. 3]; the indicator counts as a constant. R is ``score`` of the scores: ``softmax`` over the list's
        passages, ``sigmoid``, or ``identity``. The indicator compares the scores themselves, in whose order R is, so
        that no two become equal by rounding.
        """
        clicked = mask & (labels >= 1)
        others = mask & ~clicked
        with torch.no_grad():
            beaten = _beaten(scores, others)
            pole = torch.stack([clicked & (groups > 0), clicked & (groups < 0)]).to(scores.dtype)
            pairs = pole.sum(2) * others.sum(1)
            defined = pairs > 0
            share = pole * beaten / pairs.clamp(min=1)[:, :, None]
        squares = (share * _values(scores, mask, score).square()).sum(2)
        won = squares > 0
        # sqrt has no gradient at 0: a query that wins no pair has none.
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
    (μ_m − μ_f)² + var_m + var_f with biased variances, to which it is equal. 0 where a group is empty.

    When it misleads: it is not 0 for equal groups: the variances stay, so it also pulls all values together, within a
    group too.

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
    equation is printed. 0 where a group has fewer than two.

    When it misleads: it grows with the batch for the same difference, and can be lowered by spreading the values of a
    group as well as by bringing the means together; a value of one batch size says nothing beside that of another.

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
    """The term of a loss: ``ibbr-pd`` or ``ibbr-ts`` over a batch's nPRF values.

    R is ``softmax`` unless told otherwise: of the three it took away most |ΔA-PRF| for the MRR that it cost on the
    built-in collection (``evenrank experiment ibbr``, table "Score R").
    """

    term: Term = "ibbr-ts"
    form: Form = "squared"
    score: Score = "softmax"

    def __post_init__(self) -> None:
        for name, allowed in (("term", Term), ("form", Form), ("score", Score)):
            if getattr(self, name) not in allowed.__args__:  # type: ignore[attr-defined]
                options = ", ".join(allowed.__args__)  # type: ignore[attr-defined]
                raise ValueError(f"{name}: expected {options}, found {getattr(self, name)!r}")

    def pairwise(self, scores: Tensor, labels: Tensor, groups: Tensor, mask: Tensor) -> Pairwise:
        """The nPRF of both poles for each query [2, B]."""
        return Pairwise.of(scores, labels, groups, mask, self.score)

    def loss(self, nprf: Tensor, defined: Tensor) -> Tensor:
        """The term of the queries of a batch; ``nprf`` and ``defined`` [2, B]."""
        first, second = (values[there] for values, there in zip(nprf, defined, strict=True))
        if self.term == "ibbr-pd":
            return pairwise_difference(first, second)
        return t_statistics(first, second, self.form)

    def counts(self, defined: Tensor) -> bool:
        """Whether a batch has enough queries of each pole [2, B] for the term: one for PD, two for TS."""
        return bool((defined.sum(1) >= (1 if self.term == "ibbr-pd" else 2)).all())

    def __call__(self, scores: Tensor, labels: Tensor, groups: Tensor, mask: Tensor | None = None) -> Tensor:
        """The term of one batch, all its queries in this process; without ``mask`` every passage is real."""
        mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
        found = self.pairwise(scores, labels, groups, mask)
        return self.loss(found.nprf, found.defined)


def delta_aprf(prf: Tensor, defined: Tensor) -> float:
    """ΔA-PRF of a batch: mean PRF of the first pole − that of the second ([2, B]); NaN where a pole has no query."""
    sums, counts = (prf * defined).sum(1), defined.sum(1)
    return float(sums[0] / counts[0] - sums[1] / counts[1]) if bool((counts > 0).all()) else float("nan")


@dataclass(frozen=True, slots=True)
class Whole:
    """The terms of a batch that came in pieces, one an attribute.

    A term is no mean over queries, so each piece's loss cannot be had from that piece alone. The pieces' nPRF are
    gathered without a graph, the gradient g = ∂L/∂v is taken there, and each piece adds Σ v·g to its own loss, whose
    gradient is the exact one.

    ``terms`` [A]: the value of each, None where a group is lacking; ``delta`` [A]: ΔA-PRF; ``gradient`` [B, A, 2]: of
    Σ_a weight_a · term_a with respect to the nPRF of both poles.
    """

    terms: list[float | None]
    delta: list[float]
    gradient: Tensor

    @classmethod
    def of(cls, ibbr: IBBR, values: Tensor, weights: Sequence[float]) -> Whole:
        """The terms of ``values`` [B, A, 2, 3], rows of :func:`stacked` of all pieces; a row of 0 is no query."""
        attributes = range(values.shape[1])
        nprf, defined = values[..., 0].detach().clone().requires_grad_(), values[..., 2] > 0
        with torch.enable_grad():
            losses = [ibbr.loss(nprf[:, a].T, defined[:, a].T) for a in attributes]
            total = torch.stack([weight * loss for weight, loss in zip(weights, losses, strict=True)]).sum()
            gradient = torch.autograd.grad(total, nprf)[0]
        return cls(
            [float(loss.detach()) if ibbr.counts(defined[:, a].T) else None for a, loss in enumerate(losses)],
            [delta_aprf(values[:, a, :, 1].T, defined[:, a].T) for a in attributes],
            gradient,
        )


def stacked(pairwise: Sequence[Pairwise]) -> Tensor:
    """nPRF, PRF and whether they are defined of each attribute's poles: [B, A, 2, 3] without a graph, queries first."""
    parts = [torch.stack([one.nprf.detach(), one.prf, one.defined], -1) for one in pairwise]
    return torch.stack(parts).permute(2, 0, 1, 3).contiguous()


# --- the weight of the term -----------------------------------------------------------------------------------------


@dataclass
class FixedWeight:
    """L_rank + weight · L_fair, the weight a number [IBBR, an equation without a number]."""

    weight: float

    def weights(self, attributes: int) -> tuple[float, list[float]]:
        """The weight of the ranking loss and of the term of each attribute."""
        return 1.0, [self.weight] * attributes

    def update(self, rank: float, fair: Sequence[float | None], delta: Sequence[float]) -> None:
        """Told after each step: the ranking loss; each attribute's term (None: a group was lacking) and ΔA-PRF."""

    def offset(self) -> float:
        """What the weighting adds to the loss, without a gradient for the ranker."""
        return 0.0

    def state(self) -> dict[str, Any]:
        """All that a resumed training needs, as JSON."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on from what :meth:`state` gave."""


@dataclass
class AutoWeight(FixedWeight):
    """Uncertainty weighting (Kendall et al. 2018): L_rank e^{−a} + a + Σ (L_fair e^{−b} + b), a and b trained.

    Our reading of the paper's trainable weight, since minimising over a weight alone drives it to 0. a and each b stay
    within [−5, 5]; an attribute's terms are left out of steps whose batch lacks one of its groups. a and b follow
    Adam with ``rate``; their gradient, 1 − L e^{−b}, needs only the losses, so every process finds the same.
    """

    weight: float = 1.0
    rate: float = 0.01
    values: dict[str, list[float]] = field(default_factory=dict)
    """For ``rank`` and for each attribute's number: the value, Adam's two moments and its steps."""

    def weights(self, attributes: int) -> tuple[float, list[float]]:
        """e^{−a} and e^{−b} of each attribute."""
        return self._factor("rank"), [self._factor(str(number)) for number in range(attributes)]

    def _factor(self, name: str) -> float:
        return float(np.exp(-self.values.get(name, [0.0])[0]))

    def update(self, rank: float, fair: Sequence[float | None], delta: Sequence[float]) -> None:
        """One step of Adam on a, and on the b of each attribute whose groups were there."""
        losses: dict[str, float | None] = {"rank": rank, **{str(i): value for i, value in enumerate(fair)}}
        for name, loss in losses.items():
            if loss is None:
                continue
            value, first, second, steps = self.values.get(name, [0.0, 0.0, 0.0, 0.0])
            gradient = 1 - loss * float(np.exp(-value))
            first, second, steps = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2, steps + 1
            step = first / (1 - 0.9**steps) / (float(np.sqrt(second / (1 - 0.999**steps))) + 1e-8)
            self.values[name] = [float(np.clip(value - self.rate * step, -5, 5)), first, second, steps]

    def offset(self) -> float:
        """a plus every b."""
        return sum(value[0] for value in self.values.values())

    def state(self) -> dict[str, Any]:
        """The values and Adam's moments."""
        return {"values": self.values}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on with these values."""
        self.values = {name: list(value) for name, value in state["values"].items()}


@dataclass
class DualWeight(FixedWeight):
    """The constraint |ΔA-PRF| ≤ ``target`` by dual ascent: weight ← max(0, weight + rate · (|ΔA-PRF| − target)).

    ΔA-PRF is a running mean of the steps' (``memory`` of the old kept), since a batch's own absolute value is inflated
    by its noise. Each attribute has its own weight, which starts at ``weight``.
    """

    weight: float = 0.0
    target: float = 0.01
    rate: float = 0.1
    memory: float = 0.9
    now: list[float] = field(default_factory=list)
    means: list[list[float]] = field(default_factory=list)
    """For each attribute the running sums of ΔA-PRF and of its weights."""

    def weights(self, attributes: int) -> tuple[float, list[float]]:
        """1 and the weight of each attribute."""
        if not self.now:
            self.now = [self.weight] * attributes
            self.means = [[0.0, 0.0] for _ in range(attributes)]
        return 1.0, list(self.now)

    def update(self, rank: float, fair: Sequence[float | None], delta: Sequence[float]) -> None:
        """Raises or lowers the weight of each attribute whose ΔA-PRF is known."""
        for number, value in enumerate(delta):
            if np.isnan(value):
                continue
            total, count = self.means[number]
            self.means[number] = [self.memory * total + value, self.memory * count + 1]
            gap = abs(self.means[number][0] / self.means[number][1]) - self.target
            self.now[number] = max(0.0, self.now[number] + self.rate * gap)

    def state(self) -> dict[str, Any]:
        """The weights and the running means."""
        return {"now": self.now, "means": self.means}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on with these weights."""
        self.now, self.means = list(state["now"]), [list(pair) for pair in state["means"]]


def best_weight(utility: Sequence[float], bias: Sequence[float], without: float, *, kept: float = 0.95) -> int | None:
    """Which weight of a grid is "Best": lowest validation |ΔA-PRF| among those that keep ``kept`` of the utility.

    ``utility`` and ``bias`` [W]: validation MRR and |ΔA-PRF| under each weight; ``without``: MRR without the term. None
    where no weight keeps enough (utility is a constraint, or a large weight that destroys the ranking, whose |ΔA-PRF|
    is small too, would win). Of equal ones, the first.
    """
    allowed = [i for i, value in enumerate(utility) if value >= kept * without and not np.isnan(bias[i])]
    return min(allowed, key=lambda i: bias[i], default=None)
