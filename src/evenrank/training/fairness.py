"""The fair term over the effective batch: all processes and accumulation steps, however the batch is split."""

from __future__ import annotations

from typing import Any

import torch
from accelerate import Accelerator
from torch import Tensor

from evenrank.groups import Scoring, load_lexicon
from evenrank.mitigation.ibbr import IBBR, AutoWeight, DualWeight, FixedWeight, Pairwise, Whole, stacked

from .recipes import AttributeRecipe, FairnessRecipe, named_as


def scoring(attribute: AttributeRecipe) -> Scoring:
    """How an attribute's passages are labelled. Raises EvenrankError for a lexicon without poles."""
    with named_as(lexicon="fairness.attributes.lexicon", poles="fairness.attributes.poles"):
        lexicon = load_lexicon(attribute.lexicon, poles=attribute.poles)
    if lexicon.poles is None:
        from evenrank.io import EvenrankError

        raise EvenrankError(
            f"fairness.attributes: the lexicon {lexicon.name} has the groups {', '.join(lexicon.groups)}: poles says"
            ' which two to balance, as in poles = "a,b"'
        )
    return Scoring(lexicon, tokens=attribute.tokens, magnitudes=("tf_words",))


def _weight(recipe: FairnessRecipe) -> FixedWeight:
    if recipe.weight == "auto":
        return AutoWeight(rate=recipe.rate or 0.01)
    if recipe.weight == "dual":
        return DualWeight(target=recipe.target, rate=recipe.rate or 0.1)
    assert isinstance(recipe.weight, float)
    return FixedWeight(recipe.weight)


class FairTerm:
    """Adds w_rank L_rank + Σ_a w_a L_fair,a to each piece of a step's batch, with the gradient of the whole batch.

    :meth:`begin` is given every piece's nPRF without a graph and gathers those of all processes (see :class:`Whole`).
    With one piece a step, :meth:`total` begins by itself.
    """

    def __init__(self, recipe: FairnessRecipe, accelerator: Accelerator) -> None:
        self.ibbr = IBBR(recipe.name, recipe.form, recipe.score)
        self.names = [attribute.name for attribute in recipe.attributes]
        self.weight = _weight(recipe)
        self.accelerator = accelerator
        self._gradients: list[Tensor] = []
        self._rank: list[Tensor] = []
        self._sums: dict[str, float] = {}
        self._steps = 0

    def pairwise(self, scores: Tensor, inputs: dict[str, Any]) -> list[Pairwise]:
        """nPRF and PRF of each attribute over the lists of a piece."""
        labels, mask = inputs["labels"], inputs["counted"]
        return [self.ibbr.pairwise(scores.float(), labels, groups, mask) for groups in inputs["groups"]]

    def begin(self, pieces: list[list[Pairwise]]) -> None:
        """Starts a step whose batch is in ``pieces`` on this process."""
        rows = [stacked(piece) for piece in pieces]
        local = torch.cat(rows)
        whole, start = self._gathered(local)
        _, weights = self.weight.weights(len(self.names))
        self._whole = Whole.of(self.ibbr, whole, weights)
        # The trainer averages over pieces and processes; a sum over queries is wanted.
        scale = len(pieces) * self.accelerator.num_processes
        gradient = scale * self._whole.gradient[start : start + len(local)]
        self._gradients = list(gradient.split([len(row) for row in rows]))
        self._pieces = len(pieces)
        self._value = sum(weight * (term or 0.0) for weight, term in zip(weights, self._whole.terms, strict=True))
        self._rank = []

    def total(self, rank: Tensor, scores: Tensor, inputs: dict[str, Any]) -> Tensor:
        """The loss of one piece: its value is that of the ranking loss of the piece and the term of the whole batch."""
        found = self.pairwise(scores, inputs)
        if not self._gradients:
            self.begin([found])
        gradient = self._gradients.pop(0)
        nprf = torch.stack([one.nprf for one in found]).permute(2, 0, 1)
        share = (nprf * gradient).sum()
        rank_weight, weights = self.weight.weights(len(self.names))
        loss = rank_weight * rank + share + (self._value + self.weight.offset() - share.detach())
        self._rank.append(rank.detach())
        if len(self._rank) == self._pieces:
            self._finish(weights)
        return loss

    def _finish(self, weights: list[float]) -> None:
        rank = float(self.accelerator.gather(torch.stack(self._rank)).mean())
        terms, deltas = self._whole.terms, self._whole.delta
        self.weight.update(rank, terms, deltas)
        self._steps += 1
        parts = {"rank_loss": rank}
        for name, fair, weight, delta in zip(self.names, terms, weights, deltas, strict=True):
            parts |= {f"fair_loss_{name}": fair or 0.0, f"fair_weight_{name}": weight}
            parts |= {f"lacking_a_group_{name}": float(fair is None)}
            if delta == delta:
                parts |= {f"delta_aprf_{name}": delta, f"with_delta_aprf_{name}": 1.0}
        for key, value in parts.items():
            self._sums[key] = self._sums.get(key, 0.0) + value

    def report(self) -> dict[str, float]:
        """Means over the steps since the last call, and how many of their batches lacked a group."""
        found = {}
        for name, value in self._sums.items():
            if name.startswith("delta_aprf_"):
                found[name] = value / self._sums[f"with_{name}"]
            elif name.startswith("lacking_"):
                found[name] = value
            elif not name.startswith("with_"):
                found[name] = value / self._steps
        self._sums, self._steps = {}, 0
        return found

    def _gathered(self, local: Tensor) -> tuple[Tensor, int]:
        """The queries of all processes, and where this one's start."""
        if self.accelerator.num_processes == 1:
            return local, 0
        padded = self.accelerator.pad_across_processes(local, dim=0)
        whole: Tensor = self.accelerator.gather(padded)
        # What pads is not defined, so it enters no mean.
        return whole, self.accelerator.process_index * len(padded)
