"""Fairness terms by name: IBBR's two, and those that users register."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from evenrank.io import EvenrankError

from .effective_batch import Summary
from .ibbr import IBBR, Form, Pairwise, Score, Weight, delta_aprf

TermFunction = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
"""(scores [B, K], relevance [B, K], sides [B, K], mask [B, K] bool) → a number with a gradient for the scores."""


@dataclass(frozen=True, slots=True)
class FunctionTerm:
    """A custom term: any function of a batch's scores, relevance, sides and mask; ``weight`` as in :class:`IBBR`.

    The function is called with all queries of a step, in all processes and accumulation steps, at once.
    """

    function: TermFunction
    weight: Weight = 1.0

    def summarize(self, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor) -> Summary:
        """Scores (differentiable), relevance, sides and mask, [K, B] each."""
        return scores.T, relevance.T, sides.T, mask.T

    def loss(self, summary: Summary) -> Tensor:
        """The function of the queries that have a passage."""
        scores, relevance, sides, mask = (column.T for column in summary)
        real = (mask > 0).any(1)
        # Without a query, or if the function ignores the scores, there is still a gradient: of 0.
        nothing = 0 * scores.sum()
        if not bool(real.any()):
            return nothing
        return self.function(scores[real], relevance[real], sides[real], mask[real] > 0) + nothing

    def applies(self, summary: Summary) -> bool:
        """Whether a clicked passage of each pole competes with one that is not clicked."""
        return bool(self._pairwise(summary).defined.any(1).all())

    def delta_aprf(self, summary: Summary) -> float:
        """ΔA-PRF of the queries."""
        found = self._pairwise(summary)
        return delta_aprf(found.prf, found.defined)

    def _pairwise(self, summary: Summary) -> Pairwise:
        scores, relevance, sides, mask = (column.detach().T for column in summary)
        return Pairwise.of(scores, relevance, sides, mask > 0)


REGISTERED: dict[str, TermFunction] = {}
"""Custom terms by name."""
_IBBR = ("ibbr-pd", "ibbr-ts")


def register_term(name: str, function: TermFunction) -> None:
    """Lets recipes name a custom term: ``[fairness] name = "…"``, with its weight and attributes beside it.

    The recipe's ``form`` and ``score`` are for IBBR alone. Raises EvenrankError for the name of a built-in term.
    """
    if name in _IBBR:
        raise EvenrankError(f"`name`: {name} is a built-in term")
    REGISTERED[name] = function


def term_named(name: str, form: Form = "squared", score: Score = "softmax") -> IBBR | FunctionTerm:
    """A term by its name in a recipe. Raises ValueError for an unknown name."""
    if name in REGISTERED:
        return FunctionTerm(REGISTERED[name])
    if name not in _IBBR:
        raise ValueError(f"expected {', '.join((*_IBBR, *REGISTERED))}, found {name!r}")
    return IBBR(name, form, score)  # type: ignore[arg-type]
