"""Cached gradients: the exact gradient of a large batch in the memory of a small one.

Gao et al. 2021, "Scaling deep contrastive learning batch size under memory limited setup" (GradCache), eq. 3–5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

import torch
from torch import Tensor, nn

from .dot import DotRanker
from .protocol import Inputs

Rows = Tensor | None
_SIDES = ("query_", "passage_")


def cached_backward(
    ranker: nn.Module,
    inputs: Inputs,
    loss_fn: Callable[[Tensor], Tensor],
    *,
    chunk: int = 256,
    backward: Callable[[Tensor], object] = torch.autograd.backward,
) -> Tensor:
    """Adds the gradient of ``loss_fn(scores [B, K])`` to the parameters' ``.grad``; returns the loss, detached.

    1. All texts are encoded in chunks of ``chunk`` texts, without a graph.
    2. ``backward(loss)`` computes the gradients of the vectors and of the parameters of ``loss_fn``, if any. The
       default is for one process; ``accelerator.backward`` divides by the accumulation steps and scales the loss.
    3. Each chunk is encoded again with a graph and the same random numbers (dropout), and the gradient of its vectors
       is propagated. A graph never has more than ``chunk`` texts of queries or of passages.

    ``ranker``: a :class:`DotRanker`, or a wrapper that keeps it as ``module`` and passes calls on (DDP). Under DDP only
    the last chunk, which has both queries and passages, synchronises the gradients of all chunks, once. ``loss_fn`` is
    called once, so it may gather across processes. ``inputs``: as from :meth:`DotRanker.encode`, on
    the ranker's device. Call it under autocast as a forward pass.

    Raises ValueError for a chunk below 1 and TypeError for a ranker that has no vectors to cache.
    """
    if chunk < 1:
        raise ValueError(f"chunk: expected 1 or more, found {chunk}")
    inner = getattr(ranker, "module", ranker)
    if not isinstance(inner, DotRanker):
        raise TypeError(f"expected a DotRanker, found {type(inner).__name__}: its gradients cannot be cached")
    pieces = _pieces(inputs, chunk)
    vectors, states = _encode(inner, inputs, pieces)
    leaves = [part.requires_grad_() for part in vectors]

    with torch.enable_grad(), _unsynchronised(ranker):
        queries, passages = (_in_order(leaves, pieces, side) for side in (0, 1))
        loss = loss_fn(inner.scores(queries, passages, inputs["mask"]))
        if loss.requires_grad:
            backward(loss)

    for number, (piece, state, leaf) in enumerate(zip(pieces, states, leaves, strict=True)):
        last = number == len(pieces) - 1
        with torch.enable_grad(), nullcontext() if last else _unsynchronised(ranker), state.replayed():
            again = ranker(**_texts(inputs, piece))
            gradient = torch.zeros_like(again) if leaf.grad is None else leaf.grad.to(again.dtype)
            torch.autograd.backward(again, gradient)
        torch.clear_autocast_cache()
    return loss.detach()


def cached_scores(ranker: DotRanker, inputs: Inputs, *, chunk: int = 256) -> Tensor:
    """Scores [B, K] without a graph, in chunks; draws the random numbers that :func:`cached_backward` would draw."""
    pieces = _pieces(inputs, chunk)
    vectors, _ = _encode(ranker, inputs, pieces)
    queries, passages = (_in_order(vectors, pieces, side) for side in (0, 1))
    return ranker.scores(queries, passages, inputs["mask"])


def _encode(
    ranker: DotRanker, inputs: Inputs, pieces: list[tuple[Rows, Rows]]
) -> tuple[list[Tensor], list[RandomState]]:
    """The vectors of each piece without a graph, and the random state before it."""
    vectors: list[Tensor] = []
    states = []
    with torch.no_grad():
        for piece in pieces:
            states.append(RandomState(inputs["mask"].device))
            vectors.append(ranker(**_texts(inputs, piece)))
    # Weights that autocast has cast without a graph would be reused, without a gradient.
    torch.clear_autocast_cache()
    return vectors, states


def _pieces(inputs: Inputs, chunk: int) -> list[tuple[Rows, Rows]]:
    """The rows of queries and of passages of each chunk, sorted by length; only the last has both."""
    split = []
    for side in _SIDES:
        lengths = inputs[side + "attention_mask"].sum(1)
        split.append(torch.split(lengths.argsort(descending=True, stable=True), chunk))
    queries, passages = split
    return [
        *((rows, None) for rows in queries[:-1]),
        *((None, rows) for rows in passages[:-1]),
        (queries[-1], passages[-1]),
    ]


def _texts(inputs: Inputs, piece: tuple[Rows, Rows]) -> Inputs:
    return {
        name: value[rows]
        for side, rows in zip(_SIDES, piece, strict=True)
        if rows is not None
        for name, value in inputs.items()
        if name.startswith(side)
    }


def _in_order(vectors: list[Tensor], pieces: list[tuple[Rows, Rows]], side: int) -> Tensor:
    """The vectors of one side's texts in the order of the inputs; in a chunk, queries precede passages."""
    parts, places = [], []
    for part, piece in zip(vectors, pieces, strict=True):
        rows = piece[side]
        if rows is not None:
            parts.append(part[: len(rows)] if side == 0 else part[len(part) - len(rows) :])
            places.append(rows)
    return torch.cat(parts)[torch.cat(places).argsort()]


class RandomState:
    """The state of the random numbers of the CPU and of a device, to draw the same numbers again."""

    def __init__(self, device: torch.device) -> None:
        self._devices = [device] if device.type == "cuda" else []
        self._cpu = torch.get_rng_state()
        self._device = [torch.cuda.get_rng_state(device) for device in self._devices]

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Draws the same numbers inside, and restores the current state afterwards."""
        with torch.random.fork_rng(devices=self._devices):
            torch.set_rng_state(self._cpu)
            for device, state in zip(self._devices, self._device, strict=True):
                torch.cuda.set_rng_state(state, device)
            yield


def _unsynchronised(ranker: nn.Module) -> AbstractContextManager[object]:
    """Without synchronising gradients between processes, if ``ranker`` does so."""
    no_sync = getattr(ranker, "no_sync", None)
    return nullcontext() if no_sync is None else no_sync()
