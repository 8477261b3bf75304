"""Distillation: a small encoder learns the vectors that a larger one gives the same texts, without labels.

A linear layer gives the student's vectors [n, d] the teacher's size; both are compared by the cosine, and so are the
similarities within a batch: of each text, the softmax of its cosines with the others. The first term follows Reimers &
Gurevych 2020 (who take squared errors), the second Fang et al. 2021 (SEED, over a queue in place of the batch); their
sum with these settings is evenrank's own.

The student knows the texts that it learns from, so that it ranks these better than others. It takes over what the
teacher prefers, bias included: audit it as any ranker.

Worked example: two texts, of which the student reverses the second. The softmax over one other text is 1, so the
divergence is 0, and the loss is the mean of 1 − 1 and 1 + 1.

>>> import torch
>>> from evenrank.training.distil import distillation_loss
>>> teacher = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
>>> float(distillation_loss(torch.tensor([[2.0, 0.0], [0.0, -1.0]]), teacher))
1.0
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn import functional

from evenrank.files import EvenrankError
from evenrank.files.errors import quoted
from evenrank.files.types import Array
from evenrank.models.encoders import DotRanker
from evenrank.models.kept_vectors import KeptVectors, VectorFile
from evenrank.models.protocol import CandidateLists, Inputs
from evenrank.models.text_encoders import find_encoder

from .choice import CheckpointChooser
from .recipes import TeacherRecipe, TrainingRecipe
from .trainer import METRIC, CheckpointTrainer

MEASURE = "cosine"
_PART = 16


def distillation_loss(student: Tensor, teacher: Tensor, *, weight: float = 0.2, scale: float = 20.0) -> Tensor:
    """1 − cos(s_i, t_i) + ``weight`` × KL(p_i ‖ q_i), mean over the texts of a batch.

    ``student`` and ``teacher`` [n, d] are vectors of any length. p_i is the softmax over the other texts j of
    ``scale`` × cos(t_i, t_j), q_i that of the student's; of a batch of one text the divergence is 0.
    """
    student, teacher = functional.normalize(student, dim=1), functional.normalize(teacher, dim=1)
    apart = 1 - (student * teacher).sum(1).mean()
    if len(student) < 2:
        return apart
    expected, actual = (_shares(vectors, scale) for vectors in (teacher, student))
    return apart + weight * functional.kl_div(actual, expected, reduction="batchmean", log_target=True)


def _shares(vectors: Tensor, scale: float) -> Tensor:
    """[n, n − 1]: of each text the log softmax of its scaled products with the others."""
    n = len(vectors)
    others = ~torch.eye(n, dtype=torch.bool, device=vectors.device)
    return (scale * vectors @ vectors.T)[others].view(n, n - 1).log_softmax(1)


@dataclass(frozen=True, slots=True)
class TaughtTexts:
    """Texts with the vectors [n, d] that their teacher gives them; an item is its number, −1 − i pads a batch."""

    texts: Sequence[str]
    vectors: Tensor

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, index: int) -> int:
        return index

    def set_epoch(self, epoch: int) -> None:
        """Every epoch has the same texts."""

    def query_id(self, index: int) -> str:
        """The beginning of a text."""
        return quoted(self.texts[index])

    def split(self, share: float, seed: int) -> tuple[TaughtTexts, TaughtTexts]:
        """Those to train on, and at random a ``share`` that is held out: at least one, at most 1,000."""
        order = np.random.default_rng([seed, 17]).permutation(len(self))
        size = min(1000, max(1, round(share * len(self))))
        return self._taken(np.sort(order[size:])), self._taken(np.sort(order[:size]))

    def _taken(self, rows: Array) -> TaughtTexts:
        return TaughtTexts([self.texts[row] for row in rows], self.vectors[rows])


def taught_texts(wanted: TeacherRecipe, documents: pl.Series, queries: pl.Series | None = None) -> TaughtTexts:
    """The distinct texts of a collection and, if there are any, of queries, with the teacher's vectors of each.

    The teacher encodes each text once, in float32. Raises EvenrankError for fewer than two texts, and EvenrankError or
    InputError for a teacher that gives no vector of a text alone.
    """
    stored = find_encoder(wanted.model, precision="float32")
    if stored.sparse:
        raise EvenrankError(f"teacher.model: {wanted.model} gives weights of words, no vectors to learn")
    encoder = stored.load()
    texts, query_texts = (
        [] if column is None else [text for text in column.unique(maintain_order=True).to_list() if text.strip()]
        for column in (documents, queries)
    )
    if len(texts) + len(query_texts) < 2:
        raise EvenrankError("data: expected at least two texts to learn from")
    file = None if wanted.kept is None else VectorFile(wanted.kept)

    def vectors(side: str, prompt: str, encode: Callable[[list[str]], Array], some: list[str]) -> Tensor:
        def encoded(some: list[str]) -> tuple[Array, Array]:
            return np.asarray(encode(some)), np.zeros(len(some), bool)

        return KeptVectors(("teacher", stored.sha256, side, prompt), encoded, file)(some)[0]

    parts = [vectors("document", "", encoder.documents, texts)] if texts else []
    if query_texts:
        parts.append(vectors("query", encoder.query_prompt, encoder.queries, query_texts))
    return TaughtTexts([*texts, *query_texts], torch.cat(parts))


def passage_inputs(ranker: DotRanker, texts: Sequence[str]) -> Inputs:
    """The tensors of texts as the ranker reads passages; its forward pass then gives their vectors."""
    return _passages(ranker.encode(CandidateLists([""] * len(texts), [[text] for text in texts])), slice(None))


def _passages(inputs: Inputs, rows: Tensor | slice) -> Inputs:
    return {name: value[rows] for name, value in inputs.items() if name.startswith("passage_")}


@torch.inference_mode()
def agreement(ranker: DotRanker, taught: TaughtTexts, batch_size: int = 64) -> float:
    """The mean cosine of the ranker's vectors with the teacher's."""
    training, device = ranker.training, next(ranker.parameters()).device
    ranker.eval()
    order = np.argsort([-len(text) for text in taught.texts], kind="stable")
    total = 0.0
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        inputs = passage_inputs(ranker, [taught.texts[row] for row in rows])
        vectors = ranker(**{name: value.to(device) for name, value in inputs.items()}).cpu()
        total += float(functional.cosine_similarity(vectors, taught.vectors[rows]).double().sum())
    ranker.train(training)
    return total / len(order)


class DistilTrainer(CheckpointTrainer):
    """Trains a bi-encoder to give the vectors of a teacher; validates by their mean cosine on texts held out."""

    def __init__(
        self,
        ranker: DotRanker,
        taught: TaughtTexts,
        held_out: TaughtTexts,
        teacher: TeacherRecipe,
        settings: TrainingRecipe,
        folder: Path,
    ) -> None:
        self.taught, self.held_out = taught, held_out
        self._loss = partial(distillation_loss, weight=teacher.similarities, scale=teacher.scale)
        last = settings.keep == "last"
        chooser = CheckpointChooser(
            "last" if last else "utility", "the last, as asked" if last else "", MEASURE, settings.patience
        )
        super().__init__(ranker, taught, self._collated, settings, folder, chooser, validated=True)

    def _collated(self, items: Sequence[int]) -> Inputs:
        rows = [item if item >= 0 else -1 - item for item in items]
        inputs = passage_inputs(self.ranker, [self.taught.texts[row] for row in rows])  # type: ignore[arg-type]
        return {**inputs, "taught": self.taught.vectors[rows], "index": torch.tensor(items)}

    def compute_loss(
        self,
        model: nn.Module,
        inputs: Inputs,
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Any:
        """The loss of a batch. Raises TrainingError if it is not a number."""
        lengths = inputs["passage_attention_mask"].sum(1)
        # Parts of like length, so that short texts are not padded to the longest of the batch: a third of the time.
        # Gradients of several processes are gathered in one pass.
        part = _PART if self.args.world_size == 1 else len(lengths)
        rows = lengths.argsort(stable=True)
        vectors = torch.cat([model(**_passages(inputs, some)) for some in torch.split(rows, part)])[rows.argsort()]
        counted = inputs["index"] >= 0
        loss = self._loss(vectors[counted].float(), inputs["taught"][counted])
        self._check(loss, inputs)
        return (loss, vectors) if return_outputs else loss

    def validate(self) -> tuple[dict[str, float], float]:
        """The mean cosine with the teacher's vectors on the texts held out."""
        return {METRIC: agreement(self.ranker, self.held_out)}, math.nan  # type: ignore[arg-type]
