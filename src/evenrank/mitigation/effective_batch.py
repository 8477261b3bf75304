"""A fairness term over the effective batch: all processes and accumulation steps, however the batch is split."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, distributed
from torch.nn import functional

from .ibbr_weights import FixedWeight

Summary = tuple[Tensor, ...]


class BatchTerm(Protocol):
    """A term that is no mean over queries: a function of a differentiable summary of every query of the batch."""

    def summarize(self, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor) -> Summary:
        """What the term needs of each query: [F, B] tensors, of which the first carries the gradient."""

    def loss(self, summary: Summary) -> Tensor:
        """The term of the queries summarized; queries of zeros alone are padding."""

    def applies(self, summary: Summary) -> bool:
        """Whether the queries are enough for the term (both groups are there)."""

    def delta_aprf(self, summary: Summary) -> float:
        """ΔA-PRF of the queries; NaN where undefined."""


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

    def summarize(self, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor) -> list[Summary]:
        """The summary of a piece for each attribute; ``sides`` [A, B, K]."""
        return [self.term.summarize(scores.float(), relevance, one, mask) for one in sides]

    def begin(self, pieces: Sequence[Sequence[Summary]]) -> None:
        """Starts a step whose batch is in ``pieces`` on this process."""
        rows = [_rows(piece) for piece in pieces]
        widths = [row.shape[2] for row in rows]
        local = torch.cat([_widened(row, max(widths)) for row in rows])
        whole, start, processes = _gathered(local)
        rank_weight, weights = self.weight.weights(self.attributes)
        values = whole[..., 0].detach().clone().requires_grad_()
        # In evaluation, too, where the caller records no graph.
        with torch.enable_grad():
            summaries = [(values[:, a].T, *whole[:, a, :, 1:].permute(2, 1, 0)) for a in range(self.attributes)]
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
        values = torch.stack([one[0] for one in summary]).permute(2, 0, 1)
        return values * self._gradients.pop(0)

    def update(self, rank: Sequence[Tensor]) -> float:
        """Ends a step: updates the weight with the ranking losses of all pieces, and returns their mean."""
        losses, _, _ = _gathered(torch.stack([loss.detach() for loss in rank]))
        mean = float(losses.mean())
        self.weight.update(mean, self.figures.terms, self.figures.delta)
        return mean


def _rows(piece: Sequence[Summary]) -> Tensor:
    """A piece's summaries without a graph: [B, A, F, C], queries first, the differentiable values as column 0."""
    parts = [torch.stack([one[0].detach(), *one[1:]], -1) for one in piece]
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
