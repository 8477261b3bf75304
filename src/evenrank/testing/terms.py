"""The contract of loss terms."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from evenrank.mitigation.ibbr import FunctionTerm

_Batch = dict[str, Tensor]


def check_term(term: FunctionTerm | Callable[..., Tensor]) -> None:
    """Checks that a loss term keeps what training relies on.

    - It returns one finite number with a finite gradient, in float32 as in float64, from 1 to 8 queries, with and
      without passages of each side, and with equal scores.
    - Neither what stands in padding nor the order of queries or of passages changes it.
    - No gradient reaches padding.

    ``term``: a :class:`~evenrank.mitigation.ibbr.FunctionTerm`, or its function of four arguments.
    Raises AssertionError with the first that is broken.
    """
    wrapped = term if isinstance(term, FunctionTerm) else FunctionTerm(term)
    acts = False
    for seed in range(6):
        for dtype in (torch.float32, torch.float64):
            acts |= _check(wrapped, _batch(seed, dtype))
    assert acts, "no batch has a gradient"


def _batch(seed: int, dtype: torch.dtype) -> _Batch:
    """Lists of unlike lengths; in some, one side or all differences of scores are missing."""
    draw = torch.Generator().manual_seed(seed)
    queries, longest = 1 + (seed * 3) % 8, 5
    lengths = torch.randint(2, longest + 1, (queries,), generator=draw)
    mask = torch.arange(longest) < lengths[:, None]
    scores = torch.randn(queries, longest, generator=draw, dtype=dtype)
    sides = torch.randint(-1, 2, (queries, longest), generator=draw)
    relevance = (torch.arange(longest) == 0).expand(queries, longest).to(dtype)
    values = torch.rand(queries, longest, generator=draw, dtype=dtype)
    if seed == 4:
        sides = sides.abs()
    if seed == 5:
        scores = torch.zeros_like(scores)
    batch = {"scores": scores, "relevance": relevance, "sides": sides, "values": values}
    return {name: column.masked_fill(~mask, 0) for name, column in batch.items()} | {"mask": mask}


def _loss(term: FunctionTerm, batch: _Batch) -> tuple[Tensor, Tensor]:
    """The term and the gradient [B, K] of the scores."""
    scores = batch["scores"].clone().requires_grad_()
    columns = [batch[name] for name in ("relevance", "sides", "mask")] + [batch["values"]] * term.values
    loss = term.loss(term.summarize(scores, *columns))
    assert loss.shape == (), f"a tensor of shape {tuple(loss.shape)}, not one number"
    return loss.detach(), torch.autograd.grad(loss, scores)[0]


def _check(term: FunctionTerm, batch: _Batch) -> bool:
    loss, gradient = _loss(term, batch)
    assert bool(torch.isfinite(loss)), f"the term is {loss}"
    assert bool(torch.isfinite(gradient).all()), "its gradient is not finite"
    assert not gradient[~batch["mask"]].any(), "a gradient reaches padding"

    def near(found: Tensor, expected: Tensor) -> bool:
        return torch.allclose(found, expected, rtol=1e-4, atol=1e-5)

    def unchanged(other: _Batch, places: Callable[[Tensor], Tensor], broken: str) -> None:
        again, again_gradient = _loss(term, other)
        same = near(again, loss) and near(places(again_gradient), gradient)
        assert same, f"{broken}: {again}, before {loss}"

    padding = ~batch["mask"]
    other = {name: column.masked_fill(padding, 1) for name, column in batch.items() if name != "mask"}
    unchanged({**other, "mask": batch["mask"]}, lambda found: found, "what stands in padding changes it")
    turned = {name: column.flip(0) for name, column in batch.items()}
    unchanged(turned, lambda found: found.flip(0), "the order of the queries changes it")
    turned = {name: column.flip(1) for name, column in batch.items()}
    unchanged(turned, lambda found: found.flip(1), "the order of the passages changes it")
    return bool(gradient.any())
