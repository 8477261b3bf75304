"""The base class of rankers: lists of candidates in, a matrix of scores out."""

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
class CandidateLists:
    """B queries, each with its list of candidate passages, of different lengths; K is the longest.

    ``queries`` [B] and ``passages`` [B][K_b] are texts; ``relevance`` [B, K] float: grades (or a teacher's scores), 0
    for padding; ``sides`` [A, B, K] int8: +1, −1 or 0 for each of A attributes (gender, …); ``gendered`` [B, K] int8:
    1, 0 or −1 (unknown, padding) for an adversary whose target is by label; ``values`` [B, K] float: a number of each
    passage for a term of one's own, 0 for padding.
    """

    queries: Sequence[str]
    passages: Sequence[Sequence[str]]
    relevance: Tensor | None = None
    sides: Tensor | None = None
    gendered: Tensor | None = None
    values: Tensor | None = None

    @property
    def mask(self) -> Tensor:
        """[B, K] bool: False for padding."""
        lengths = torch.tensor([len(row) for row in self.passages])
        return torch.arange(int(lengths.max()) if len(lengths) else 0) < lengths[:, None]


class Ranker(nn.Module, ABC):
    """A ranker: texts → tensors (:meth:`encode`), tensors → scores [B, K] (:meth:`forward`).

    The score of a pair depends on that pair alone, not on padding or other passages of the batch; it is 0 where
    ``mask`` is False. ``encode`` keeps no gradient and may run in a data-loading process.
    """

    kind: ClassVar[str]

    @property
    def loss_scale(self) -> float:
        """What scores are multiplied by before a loss reads them, unless a training says otherwise."""
        return 1.0

    @property
    def keeps_vectors(self) -> bool:
        """Whether :meth:`encode` encodes each text once and gives vectors, which no data-loading process shares."""
        return False

    @abstractmethod
    def encode(self, lists: CandidateLists) -> Inputs:
        """The tensors of a batch, among them ``mask`` [B, K]; their first dimension is the batch or the pairs."""

    @abstractmethod
    def forward(self, **inputs: Tensor) -> Tensor:
        """Scores [B, K] of the tensors that :meth:`encode` returned."""

    @abstractmethod
    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes weights (safetensors), configuration (JSON) and vocabulary into a folder."""

    @classmethod
    @abstractmethod
    def load(cls, folder: str | os.PathLike[str]) -> Ranker:
        """The ranker that :meth:`save` wrote. Raises InputError for a folder without weights."""

    @abstractmethod
    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        """How many characters of each passage [pairs] the ranker reads before it truncates."""

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """All parameters, each once, by the names under which a recipe sets learning rates."""
        return {"all": list(self.parameters())}

    @torch.inference_mode()
    def score(self, queries: Sequence[str], passages: Sequence[str], batch_size: int = 32) -> Tensor:
        """Scores [pairs], computed on the ranker's device in batches sorted by length."""
        training = self.training
        self.eval()
        device = next(self.parameters()).device
        order = sorted(range(len(queries)), key=lambda i: len(passages[i]) + len(queries[i]), reverse=True)
        scores = torch.empty(len(queries))
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            inputs = self.encode(CandidateLists([queries[i] for i in rows], [[passages[i]] for i in rows]))
            scores[rows] = self(**{name: value.to(device) for name, value in inputs.items()})[:, 0].float().cpu()
        self.train(training)
        return scores


def ranker_class(kind: str) -> type[Ranker]:
    """The class of a ranker kind, as a recipe names it. Raises KeyError for an unknown kind."""
    import importlib

    if kind in REGISTERED:
        return REGISTERED[kind]
    module, name = _CLASSES[kind]
    return getattr(importlib.import_module(f"{__package__}.{module}"), name)  # type: ignore[no-any-return]


_CLASSES = {
    "cat": ("encoders", "CatRanker"),
    "dot": ("encoders", "DotRanker"),
    "sparse": ("sparse", "SparseRanker"),
    "tk": ("word_rankers", "TKRanker"),
    "knrm": ("word_rankers", "KNRMRanker"),
    "conv-knrm": ("word_rankers", "ConvKNRMRanker"),
    "match-pyramid": ("word_rankers", "MatchPyramidRanker"),
}
RANKERS = tuple(_CLASSES)
REGISTERED: dict[str, type[Ranker]] = {}
"""Custom rankers by kind."""


def register_ranker(ranker: type[Ranker]) -> None:
    """Lets recipes name a custom ranker by its ``kind``. Raises EvenrankError for the kind of a built-in ranker."""
    if ranker.kind in _CLASSES:
        from evenrank.files import EvenrankError

        raise EvenrankError(f"`ranker`: {ranker.kind} is a built-in ranker")
    REGISTERED[ranker.kind] = ranker


def config_file(folder: str | os.PathLike[str]) -> Path:
    """The configuration file of a kernel ranker; ``cat`` and ``dot`` have that of sentence-transformers."""
    return Path(folder) / "evenrank.json"
