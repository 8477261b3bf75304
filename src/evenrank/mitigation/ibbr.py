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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, distributed
from torch.nn import functional

from evenrank.files import EvenrankError
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, shown

from . import Term

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
    raise EvenrankError(f"{arg.score}: expected softmax, sigmoid or identity, found {score!r}")


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
        raise EvenrankError(f"{arg.form}: expected squared or printed, found {form!r}")
    return gap / spread


def _variance(values: Tensor) -> Tensor:
    return (values - values.mean()).square().mean()


@checked
@dataclass(frozen=True, slots=True)
class IBBR:
    """The fairness term ``ibbr-pd`` or ``ibbr-ts`` over the nPRF values of a batch.

    ``score`` is R in nPRF. Softmax is the default: of the three it lowered |ΔA-PRF| most for the MRR it cost on the
    built-in collection (``evenrank experiment ibbr``, table "Score R").

    ``weight`` is that of the term beside a ranking loss: :func:`evenrank.train` and ``WithFairness`` (of
    :mod:`evenrank.training.sentence_transformers`) minimise loss + weight · term, or adapt it (``"auto"``, ``"dual"``).
    ``IBBR(weight=5)(scores, relevance, sides)`` itself is the term without its weight: multiply it in a loop of your
    own. ``IBBRLoss`` has a ``weight`` of its own, and so does a recipe's ``[fairness]``; both make an ``IBBR`` with it.

    Raises EvenrankError for a setting out of range.
    """

    term: Term = "ibbr-ts"
    form: Form = "squared"
    score: Score = "softmax"
    weight: Weight = 0.1

    def __post_init__(self) -> None:
        as_weight(self.weight)

    def __call__(self, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor | None = None) -> Tensor:
        """The term of one batch in this process, in float32; without ``mask`` every passage is real."""
        mask = torch.ones_like(scores, dtype=torch.bool) if mask is None else mask
        return self.loss(self.summarize(scores.float(), relevance, sides, mask))

    # What EffectiveBatch asks of a term.

    def summarize(
        self, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor, values: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """nPRF (differentiable), PRF, and whether they are defined, for both poles of each query: [2, B] each."""
        pairwise = Pairwise.of(scores, relevance, sides, mask, self.score)
        return pairwise.nprf, pairwise.prf, pairwise.defined

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


Summary = tuple[Tensor, ...]


@dataclass(frozen=True, slots=True)
class StepFigures:
    """The figures of one step, for each of A attributes.

    ``terms``: the value of each term, None if a group is missing; ``weights`` of the terms; ``delta``: ΔA-PRF;
    ``rank_weight``: that of the ranking loss; ``offset``: what the weighting adds to the loss.
    """

    terms: list[float | None]
    weights: list[float]
    delta: list[float]
    rank_weight: float
    offset: float


class EffectiveBatch:
    """w_rank L_rank + Σ_a w_a L_fair,a for each piece of a step's batch, with the gradient of the whole batch.

    The term is not a mean over queries, so the loss of a piece cannot be computed from that piece alone. All pieces are
    summarized without a graph (v), the gradient g = ∂L/∂v is taken over all pieces of all processes, and each piece
    adds Σ v·g to its own loss, whose gradient is then exact.

    A step: :meth:`summarize` each piece without a graph and :meth:`begin` with all of them; then for each piece in
    order :meth:`summarize` it with a graph and take its :meth:`shares`; at the end :meth:`update` the weight. Trainers
    average over pieces and processes, while a sum over queries is wanted: the shares are scaled accordingly.
    """

    figures: StepFigures

    def __init__(self, term: BatchTerm, weight: FixedWeight, attributes: int) -> None:
        self.term = term
        self.weight = weight
        self.attributes = attributes
        self._gradients: list[Tensor] = []

    def summarize(
        self, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor, values: Tensor | None = None
    ) -> list[Summary]:
        """The summary of a piece for each attribute; ``sides`` [A, B, K]."""
        return [self.term.summarize(scores.float(), relevance, side, mask, values) for side in sides]

    def begin(self, pieces: Sequence[Sequence[Summary]]) -> None:
        """Starts a step whose batch is in ``pieces`` on this process."""
        rows = [_rows(piece) for piece in pieces]
        widths = [row.shape[2] for row in rows]
        local = torch.cat([_widened(row, max(widths)) for row in rows])
        batch, start, processes = _gathered(local)
        rank_weight, weights = self.weight.weights(self.attributes)
        values = batch[..., 0].detach().clone().requires_grad_()
        # In evaluation, too, where the caller records no graph.
        with torch.enable_grad():
            summaries = [(values[:, a].T, *batch[:, a, :, 1:].permute(2, 1, 0)) for a in range(self.attributes)]
            losses = [self.term.loss(summary) for summary in summaries]
            total = torch.stack([weight * loss for weight, loss in zip(weights, losses, strict=True)]).sum()
            gradient = len(pieces) * processes * torch.autograd.grad(total, values)[0]
        parts = torch.split(gradient[start : start + len(local)], [len(row) for row in rows])
        self._gradients = [part[..., :width] for part, width in zip(parts, widths, strict=True)]
        self.figures = StepFigures(
            [
                float(loss.detach()) if self.term.applies(summary) else None
                for loss, summary in zip(losses, summaries, strict=True)
            ],
            weights,
            [self.term.delta_aprf(summary) for summary in summaries],
            rank_weight,
            self.weight.offset(),
        )

    def shares(self, summary: Sequence[Summary]) -> Tensor:
        """v·g of the next piece [B, A, F]; its sum has the gradient of the weighted terms of the whole batch."""
        values = torch.stack([s[0] for s in summary]).permute(2, 0, 1)
        return values * self._gradients.pop(0)

    def update(self, rank: Sequence[Tensor]) -> float:
        """Ends a step: updates the weight with the ranking losses of all pieces, and returns their mean."""
        losses, _, _ = _gathered(torch.stack([loss.detach() for loss in rank]))
        mean = float(losses.mean())
        self.weight.update(mean, self.figures.terms, self.figures.delta)
        return mean


def _rows(piece: Sequence[Summary]) -> Tensor:
    """A piece's summaries without a graph: [B, A, F, C], queries first, the differentiable values as column 0."""
    parts = [torch.stack([s[0].detach(), *s[1:]], -1) for s in piece]
    return torch.stack(parts).permute(2, 0, 1, 3).contiguous()


def _widened(rows: Tensor, width: int) -> Tensor:
    return rows if rows.shape[2] == width else functional.pad(rows, (0, 0, 0, width - rows.shape[2]))


def _gathered(local: Tensor) -> tuple[Tensor, int, int]:
    """The rows of all processes, where those of this one begin, and the number of processes.

    Shorter parts are padded with zeros: a query of zeros is undefined and enters no mean.
    """
    if not (distributed.is_available() and distributed.is_initialized()) or distributed.get_world_size() == 1:
        return local, 0, 1
    processes = distributed.get_world_size()
    size = torch.tensor([len(local), local.shape[2] if local.dim() > 2 else 0], device=local.device)
    distributed.all_reduce(size, distributed.ReduceOp.MAX)
    rows, width = size.tolist()
    padded = local if local.dim() < 3 else _widened(local, width)
    padded = torch.cat([padded, padded.new_zeros(rows - len(padded), *padded.shape[1:])])
    parts = [torch.empty_like(padded) for _ in range(processes)]
    distributed.all_gather(parts, padded)
    return torch.cat(parts), distributed.get_rank() * rows, processes


TermFunction = Callable[..., Tensor]
"""(scores [B, K], relevance [B, K], sides [B, K], mask [B, K] bool) → a number with a gradient for the scores.

With ``FunctionTerm(…, values=True)`` the lists' values [B, K] are a fifth argument.
"""


@dataclass(frozen=True, slots=True)
class FunctionTerm:
    """A custom term: any function of a batch's scores, relevance, sides and mask; ``weight`` as in :class:`IBBR`.

    The function is called with all queries of a step, in all processes and accumulation steps, at once. It acts in
    every step; with ``pairs=True``, only where a clicked passage of each pole competes with one that is not clicked.
    With ``values=True``, its fifth argument is the number that the lists have for each passage: its neutrality, say.
    """

    function: TermFunction
    weight: Weight = 1.0
    pairs: bool = False
    values: bool = False

    def summarize(
        self, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor, values: Tensor | None = None
    ) -> Summary:
        """Scores (differentiable), relevance, sides, mask and, if wanted, values, [K, B] each.

        Raises EvenrankError if it takes values that there are not.
        """
        if not self.values:
            return scores.T, relevance.T, sides.T, mask.T
        if values is None:
            raise EvenrankError("`fairness`: the term takes the values of passages, which the lists lack")
        return scores.T, relevance.T, sides.T, mask.T, values.T

    def loss(self, summary: Summary) -> Tensor:
        """The function of the queries that have a passage."""
        scores, relevance, sides, mask, *values = (column.T for column in summary)
        real = (mask > 0).any(1)
        # Without a query, or if the function ignores the scores, there is still a gradient: of 0.
        nothing = 0 * scores.sum()
        if not bool(real.any()):
            return nothing
        rest = [column[real] for column in values]
        return self.function(scores[real], relevance[real], sides[real], mask[real] > 0, *rest) + nothing

    def applies(self, summary: Summary) -> bool:
        """Whether the term acts on these queries."""
        return not self.pairs or bool(self._pairwise(summary).defined.any(1).all())

    def delta_aprf(self, summary: Summary) -> float:
        """ΔA-PRF of the queries."""
        pairwise = self._pairwise(summary)
        return delta_aprf(pairwise.prf, pairwise.defined)

    def _pairwise(self, summary: Summary) -> Pairwise:
        scores, relevance, sides, mask = (column.detach().T for column in summary[:4])
        return Pairwise.of(scores, relevance, sides, mask > 0)


BatchTerm = IBBR | FunctionTerm
"""A term that is no mean over queries: a function of a differentiable summary of every query of the batch."""


def term_settings(term: BatchTerm, weight: FixedWeight) -> dict[str, object]:
    """The weight and the settings of a term, for a model card."""
    shown = {"weight": weight.weight if type(weight) is FixedWeight else type(weight).__name__}
    if isinstance(term, FunctionTerm):
        return {**shown, "term": getattr(term.function, "__name__", "a function")}
    return {**shown, **{name: getattr(term, name) for name in ("term", "form", "score")}}


REGISTERED: dict[str, TermFunction] = {}
"""Terms that are functions, by name: those that were registered, and any built-in one that is not IBBR's."""
_BUILT_IN = get_args(Term)


def register_term(name: str, function: TermFunction) -> None:
    """Lets recipes name a custom term: ``[fairness] name = "…"``, with its weight and attributes beside it.

    The recipe's ``form`` and ``score`` are for IBBR alone. Raises EvenrankError for the name of a built-in term.
    """
    if name in _BUILT_IN:
        raise EvenrankError(f"{arg.name}: {name} is a built-in term")
    REGISTERED[name] = function


def term_named(name: str, form: Form = "squared", score: Score = "softmax") -> IBBR | FunctionTerm:
    """A term by its name in a recipe. Raises EvenrankError for an unknown name."""
    if name in REGISTERED:
        return FunctionTerm(REGISTERED[name])
    if name not in _BUILT_IN:
        raise EvenrankError(f"`fairness`: expected {', '.join((*_BUILT_IN, *REGISTERED))}, found {name!r}")
    return IBBR(name, form, score)  # type: ignore[arg-type]


State = dict[str, Any]


@dataclass
class FixedWeight:
    """L_rank + weight · L_fair, the weight a number [IBBR, an equation without a number]."""

    weight: float

    def weights(self, attributes: int) -> tuple[float, list[float]]:
        """The weight of the ranking loss and of the term of each attribute."""
        return 1.0, [self.weight] * attributes

    def update(self, rank: float, fair: Sequence[float | None], delta: Sequence[float]) -> None:
        """Called after each step: the ranking loss, and each attribute's term (None without a group) and ΔA-PRF."""

    def offset(self) -> float:
        """What the weighting adds to the loss, without a gradient for the ranker."""
        return 0.0

    def state(self) -> State:
        """Everything a resumed training needs, as JSON values."""
        return {}

    def restore(self, state: State) -> None:
        """Continues from what :meth:`state` returned. Raises ValueError, TypeError or LookupError for anything else."""


@dataclass
class AutoWeight(FixedWeight):
    """Uncertainty weighting (Kendall et al. 2018): L_rank e^{−a} + a + Σ (L_fair e^{−b} + b), a and b trained.

    Our reading of the paper's trainable weight: minimising over the weight alone would drive it to 0. a and each b stay
    within [−5, 5]; an attribute is skipped in steps whose batch lacks one of its groups. a and b are trained by Adam
    with learning rate ``rate``; their gradient, 1 − L e^{−b}, depends on the losses alone, so all processes agree.
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
        """One step of Adam on a, and on the b of each attribute with both groups in the batch."""
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

    def state(self) -> State:
        """The values and Adam's moments."""
        return {"values": self.values}

    def restore(self, state: State) -> None:
        """Continues with these values."""
        self.values = {name: list(value) for name, value in dict(state["values"]).items()}


@dataclass
class DualWeight(FixedWeight):
    """The constraint |ΔA-PRF| ≤ ``target`` by dual ascent: weight ← max(0, weight + rate · (|ΔA-PRF| − target)).

    ΔA-PRF is a running mean over steps (decay ``memory``), since noise inflates the absolute value of a single batch.
    Each attribute has its own weight, which starts at ``weight``.
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
        """Raises or lowers the weight of each attribute whose ΔA-PRF is defined."""
        for number, value in enumerate(delta):
            if np.isnan(value):
                continue
            total, count = self.means[number]
            self.means[number] = [self.memory * total + value, self.memory * count + 1]
            gap = abs(self.means[number][0] / self.means[number][1]) - self.target
            self.now[number] = max(0.0, self.now[number] + self.rate * gap)

    def state(self) -> State:
        """The weights and the running means."""
        return {"now": self.now, "means": self.means}

    def restore(self, state: State) -> None:
        """Continues with these weights."""
        self.now, self.means = list(state["now"]), [list(pair) for pair in state["means"]]


Weight = float | Literal["auto", "dual"] | FixedWeight
"""A number, ``"auto"`` (:class:`AutoWeight`), ``"dual"`` (:class:`DualWeight`), or one of the classes."""


def as_weight(weight: Weight) -> FixedWeight:
    """The object for a weight. Raises EvenrankError for a number below 0 and for another name."""
    if isinstance(weight, FixedWeight):
        return weight
    if weight == "auto":
        return AutoWeight()
    if weight == "dual":
        return DualWeight()
    if isinstance(weight, str) or not weight >= 0:
        raise EvenrankError(f'`weight`: expected 0 or more, "auto" or "dual", found {shown(weight)}')
    return FixedWeight(float(weight))


KEPT = 0.95
"""The share of the utility that a fairer choice must keep."""


def keeps_enough(utility: float, best: float, kept: float = KEPT) -> bool:
    """Whether a utility is at least ``kept`` of the best."""
    return utility >= min(best, kept * best)


def best_weight(utility: Sequence[float], bias: Sequence[float], without: float, *, kept: float = KEPT) -> int | None:
    """The "Best" weight of a grid: lowest validation |ΔA-PRF| among the weights that keep ``kept`` of the utility.

    ``utility`` and ``bias`` [W]: validation MRR and |ΔA-PRF| under each weight; ``without``: MRR without the term.
    Returns the position of the weight (of equal bias the most useful, then the first), or None if no weight keeps
    enough. Utility is a constraint because a large weight that destroys the ranking has a small |ΔA-PRF| too. Training
    chooses among checkpoints in the same way, with the best of them for ``without``.
    """
    allowed = [i for i, value in enumerate(utility) if keeps_enough(value, without, kept) and not np.isnan(bias[i])]
    return min(allowed, key=lambda i: (bias[i], -utility[i]), default=None)
