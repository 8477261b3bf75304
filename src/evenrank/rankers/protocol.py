"""What every ranker is: query groups in, a score matrix out."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

Inputs = dict[str, Tensor]


@dataclass(frozen=True, slots=True)
class QueryGroups:
    """B queries, each with its own passages: the one unit of training. Lists may be ragged; K is the longest.

    ``queries`` [B] and ``passages`` [B][K_b] are texts; ``labels`` [B, K] float: relevance grades (or a teacher's
    scores), 0 where there is no passage; ``groups`` [A, B, K] int8: bias labels +1, −1 and 0 for each of A attributes
    (gender, …).
    """

    queries: Sequence[str]
    passages: Sequence[Sequence[str]]
    labels: Tensor | None = None
    groups: Tensor | None = None

    @property
    def mask(self) -> Tensor:
        """[B, K] bool: where a passage stands."""
        lengths = torch.tensor([len(row) for row in self.passages])
        return torch.arange(int(lengths.max()) if len(lengths) else 0) < lengths[:, None]


class Ranker(nn.Module, ABC):
    """A ranker: texts → tensors (:meth:`encode`), tensors → scores [B, K] (:meth:`forward`).

    The score of a pair depends on that pair alone: neither padding nor the other passages of the batch change it.
    Where ``mask`` is False the score is 0. ``encode`` keeps no gradient and may run in a data-loading process.
    """

    kind: ClassVar[str]

    @abstractmethod
    def encode(self, groups: QueryGroups) -> Inputs:
        """The tensors of a batch, ``mask`` [B, K] among them, each with the batch or the pairs first."""

    @abstractmethod
    def forward(self, **inputs: Tensor) -> Tensor:
        """Scores [B, K] of what :meth:`encode` gave."""

    @abstractmethod
    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes weights (safetensors), configuration (JSON) and vocabulary into a folder."""

    @classmethod
    @abstractmethod
    def load(cls, folder: str | os.PathLike[str]) -> Ranker:
        """The ranker that :meth:`save` wrote, with the same scores. Raises InputError for a folder without weights."""

    @abstractmethod
    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        """How many characters of each passage [pairs] the ranker reads before it cuts; all of one that is not cut."""

    def lost_spans(self, queries: Sequence[str], passages: Sequence[str], ends: Sequence[int]) -> int:
        """How many answer spans, given by where they end in each passage [pairs], fall off the end of what is read."""
        return sum(end > read for end, read in zip(ends, self.reads_to(queries, passages), strict=True))

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """Parameters by the name under which a recipe sets their learning rate; all of them, each once."""
        return {"all": list(self.parameters())}

    def keep_tokens(self) -> None:
        """Called before training, where the same texts come in every epoch; a ranker may keep what it made of them."""
        return

    @torch.inference_mode()
    def score(self, queries: Sequence[str], passages: Sequence[str], batch_size: int = 32) -> Tensor:
        """Scores [pairs] of pairs, on the ranker's device, in batches sorted by length."""
        training = self.training
        self.eval()
        device = next(self.parameters()).device
        order = sorted(range(len(queries)), key=lambda i: len(passages[i]) + len(queries[i]), reverse=True)
        scores = torch.empty(len(queries))
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            inputs = self.encode(QueryGroups([queries[i] for i in rows], [[passages[i]] for i in rows]))
            scores[rows] = self(**{name: value.to(device) for name, value in inputs.items()})[:, 0].float().cpu()
        self.train(training)
        return scores


def ranker_class(kind: str) -> type[Ranker]:
    """The class of a ranker by its name in a recipe. Raises KeyError for another name."""
    import importlib

    module, name = _CLASSES[kind]
    return getattr(importlib.import_module(f"{__package__}.{module}"), name)  # type: ignore[no-any-return]


_CLASSES = {
    "cat": ("cat", "CatRanker"),
    "dot": ("dot", "DotRanker"),
    "tk": ("tk", "TKRanker"),
    "knrm": ("knrm", "KNRMRanker"),
    "conv-knrm": ("conv_knrm", "ConvKNRMRanker"),
    "match-pyramid": ("match_pyramid", "MatchPyramidRanker"),
}
RANKERS = tuple(_CLASSES)


def config_file(folder: str | os.PathLike[str]) -> Path:
    """Where a kernel ranker keeps its configuration; ``cat`` and ``dot`` keep that of sentence-transformers."""
    return Path(folder) / "evenrank.json"
