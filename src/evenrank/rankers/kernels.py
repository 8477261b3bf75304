"""Cosines of word vectors and kernel pooling, which the kernel rankers share."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

# 1, .9, .7, … −.9 (K-NRM as published, TK) and −1, −.8, … 1.
PUBLISHED_CENTRES = (1.0, 0.9, 0.7, 0.5, 0.3, 0.1, -0.1, -0.3, -0.5, -0.7, -0.9)
EVEN_CENTRES = (-1.0, -0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
WIDTH = 0.1
# The cosine of padding: so far from every centre that each kernel and its derivative are exactly 0.
_NOWHERE = 1e4


def exact_widths(exact: float) -> tuple[float, ...]:
    """σ of the published centres; ``exact`` is that of the one at 1, which counts exact matches only."""
    return (exact, *[WIDTH] * (len(PUBLISHED_CENTRES) - 1))


def cosine(queries: Tensor, passages: Tensor, rows: Tensor) -> Tensor:
    """a·b / ((‖a‖ + 1e-13)(‖b‖ + 1e-13)) of each query vector with each passage vector, in float32.

    ``queries`` [B, Q, d]; ``passages`` [N, D, d]; ``rows`` [N]: the query of each passage. Returns [N, Q, D].
    """
    with torch.autocast(queries.device.type, enabled=False):
        queries, passages = queries.float(), passages.float()
        query_norm = torch.linalg.vector_norm(queries, dim=-1) + 1e-13
        passage_norm = torch.linalg.vector_norm(passages, dim=-1) + 1e-13
        # Divided after, not before: the matrix of products is smaller than the vectors.
        products = torch.bmm(queries[rows], passages.transpose(1, 2))
        cosines: Tensor = products / query_norm[rows][:, :, None] / passage_norm[:, None, :]
        return cosines


class _KernelSums(torch.autograd.Function):
    """Σ over the last dimension of each kernel; saves only the cosines for the backward pass."""

    @staticmethod
    def forward(ctx: Any, cosines: Tensor, centres: tuple[float, ...], widths: tuple[float, ...]) -> Tensor:
        """``cosines`` [..., D] → [..., kernels]."""
        ctx.save_for_backward(cosines)
        ctx.kernels = tuple(zip(centres, widths, strict=True))
        sums = cosines.new_empty(*cosines.shape[:-1], len(centres))
        values = torch.empty_like(cosines)
        for number, (centre, width) in enumerate(ctx.kernels):
            torch.sub(cosines, centre, out=values)
            values.square_().mul_(-0.5 / width**2).exp_()
            torch.sum(values, -1, out=sums[..., number])
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        (cosines,) = ctx.saved_tensors
        total = torch.zeros_like(cosines)
        for number, (centre, width) in enumerate(ctx.kernels):
            distance = cosines - centre
            values = distance.square().mul_(-0.5 / width**2).exp_()
            total.addcmul_(values.mul_(distance), gradient[..., number, None], value=-1 / width**2)
        return total, None, None


def kernel_pool(
    cosines: Tensor,
    query_mask: Tensor,
    passage_mask: Tensor,
    centres: tuple[float, ...],
    widths: tuple[float, ...],
) -> Tensor:
    """Σ_i ln max(Σ_j exp(−(cos_ij − μ_k)² / (2σ_k²)), 1e-10) for each kernel k [Xiong et al. 2017, eq. 3–5].

    ``cosines`` [..., Q, D]; ``query_mask`` [..., Q] and ``passage_mask`` [..., D], bool: True for words; their
    shapes broadcast. Returns [..., kernels], finite: −23.03 for each query word and kernel without a match.
    """
    sums: Tensor = _KernelSums.apply(cosines.masked_fill(~passage_mask[..., None, :], _NOWHERE), centres, widths)  # type: ignore[no-untyped-call]
    return (sums.clamp(min=1e-10).log() * query_mask[..., None]).sum(-2)


def kernel_weights(features: int) -> nn.Linear:
    """The last layer: no bias, weights from U(−0.014, 0.014)."""
    layer = nn.Linear(features, 1, bias=False)
    nn.init.uniform_(layer.weight, -0.014, 0.014)
    return layer
