"""IBBR losses for the trainers of sentence-transformers, and a callback that saves their weight."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import torch
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn
from torch.nn import functional
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from evenrank.groups import sides_of_texts
from evenrank.io import EvenrankError, write_text
from evenrank.mitigation import ibbr
from evenrank.mitigation.attributes import Attributes, scorings_of
from evenrank.mitigation.effective_batch import EffectiveBatch
from evenrank.rankers.losses import LOSSES

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

RankLoss = Literal["nll", "hinge", "bce", "ranknet"]
Weight = ibbr.Weight
Columns = Sequence[Sequence[Any]]

_CITATION = """
@inproceedings{li2022debiasing,
    title = "Debiasing Neural Retrieval via In-batch Balancing Regularization",
    author = "Li, Yuantong and Wei, Xiaokai and Wang, Zijian and Wang, Shen and Bhatia, Parminder and Ma, Xiaofei and Arnold, Andrew",
    booktitle = "Proceedings of the 4th Workshop on Gender Bias in Natural Language Processing",
    year = "2022",
}
"""  # noqa: E501


class _BalancedLoss(nn.Module):
    """A ranking loss and the IBBR term of each attribute, as a dict of weighted parts."""

    def __init__(self, model: nn.Module, term: ibbr.IBBR, rank_loss: RankLoss, attributes: Sequence[str]) -> None:
        super().__init__()
        if rank_loss not in get_args(RankLoss):
            raise ValueError(f"rank_loss: expected {', '.join(get_args(RankLoss))}, found {rank_loss!r}")
        self.model: Any = model
        self.ibbr = term
        self.rank_loss = rank_loss
        self.weight = ibbr.as_weight(term.weight)
        self.parts = [f"fair_{name}" if name else "fair" for name in attributes]
        if len(set(self.parts)) < len(self.parts):
            raise ValueError("attributes: two have the same name")
        self.batch = EffectiveBatch(self.ibbr, self.weight, len(self.parts))

    def weighted(self, scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor) -> dict[str, Tensor]:
        """``rank`` and ``fair`` of score matrices [B, K]; ``sides`` [A, B, K].

        The term is that of the batch of all processes: :class:`evenrank.mitigation.effective_batch.EffectiveBatch`.
        """
        scores = scores.float()
        summary = self.batch.summarize(scores, relevance, sides, mask)
        self.batch.begin([summary])
        shares, figures = self.batch.shares(summary), self.batch.figures
        rank = LOSSES[self.rank_loss](scores, relevance, mask)
        parts = {"rank": figures.rank_weight * rank}
        for a, (name, weight, term) in enumerate(zip(self.parts, figures.weights, figures.terms, strict=True)):
            share = shares[:, a].sum()
            parts[name] = weight * (term or 0.0) + share - share.detach()
        # Evaluation has no gradient, and must not move the weight.
        if torch.is_grad_enabled() and self.model.training:
            self.batch.update([rank])
        return parts

    def get_config_dict(self) -> dict[str, object]:
        """The settings, for the model card."""
        kind = type(self.weight)
        weight = self.weight.weight if kind is ibbr.FixedWeight else kind.__name__
        term = {"term": self.ibbr.term, "form": self.ibbr.form, "score": self.ibbr.score}
        return {"weight": weight, **term, "rank_loss": self.rank_loss}

    @property
    def citation(self) -> str:
        """The paper, for the model card."""
        return _CITATION


class IBBRLoss(_BalancedLoss):
    """In-batch balancing regularization of a bi-encoder: a ranking loss plus ``weight`` times ``term``.

    Li et al. 2022 [IBBR], eq. 3 (nPRF), eq. 4 (PD) and two without a number (TS, the total);
    :mod:`evenrank.mitigation.ibbr` defines the terms, :mod:`evenrank.rankers.losses` the ranking losses.

    Columns: query, positive, negative_1 … negative_n, in this order, and ``label`` [K] with K = n + 1: the side of each
    passage, +1, −1 or 0, the positive first (:func:`with_group_labels` adds it); [A, K] if ``attributes`` names A.

    Returns the parts ``rank`` and ``fair`` (``fair_NAME`` for each of ``attributes``), already weighted; the trainer
    sums and logs them. ``weight``: a number, ``"auto"``, ``"dual"``, or one of the classes of
    :mod:`evenrank.mitigation.ibbr` with other settings. A weight that changes does so after each training step;
    :class:`KeepWeight` saves it in checkpoints, which do not contain the state of losses otherwise. With ``"auto"`` the
    parts omit what has no gradient (a + b).

    A score is ``scale`` times the model's similarity of query and passage. Default: 1 for the inner product, 20 for the
    cosine. ``score``: R in nPRF.

    The term is that of a step's batch over all processes. Gradient accumulation does not enlarge it: it is the mean of
    the terms of the smaller batches.

    Raises ValueError for a setting out of range and for a batch of another shape.
    """

    def __init__(
        self,
        model: SentenceTransformer,
        weight: Weight = 0.1,
        term: ibbr.Term = "ibbr-ts",
        *,
        form: ibbr.Form = "squared",
        score: ibbr.Score = "softmax",
        rank_loss: RankLoss = "nll",
        scale: float | None = None,
        attributes: Sequence[str] = (),
    ) -> None:
        similarity = model.similarity_fn_name
        if similarity not in ("dot", "cosine"):
            raise ValueError(f"similarity: expected dot or cosine, found {similarity!r}")
        cosine = similarity == "cosine"
        super().__init__(model, ibbr.IBBR(term, form, score, weight), rank_loss, tuple(attributes) or ("",))
        self.cosine = cosine
        self.several = bool(attributes)
        self.scale = (20.0 if cosine else 1.0) if scale is None else scale
        if not self.scale > 0:
            raise ValueError(f"scale: expected more than 0, found {scale}")

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None) -> dict[str, Tensor]:
        """The parts of the loss, from the columns' features and the sides [B, K] or [B, A, K]."""
        columns = list(sentence_features)
        if len(columns) < 3:
            raise ValueError(f"IBBRLoss needs the columns query, positive and negatives, found {len(columns)} columns")
        shape = (len(self.parts), len(columns) - 1) if self.several else (len(columns) - 1,)
        if labels is None:
            raise ValueError("IBBRLoss needs the column label with the passages' groups: see with_group_labels")
        if tuple(labels.shape[1:]) != shape:
            raise ValueError(f"label: expected {shape} group labels a query, found {tuple(labels.shape[1:])}")
        _check_sides(labels)
        query, *documents = (self.model(column)["sentence_embedding"].float() for column in columns)
        stacked = torch.stack(documents, dim=1)
        if self.cosine:
            query, stacked = functional.normalize(query, dim=-1), functional.normalize(stacked, dim=-1)
        scores = self.scale * (query[:, None] * stacked).sum(2)
        sides = labels.transpose(0, 1) if self.several else labels[None]
        relevance = torch.zeros_like(scores)
        relevance[:, 0] = 1
        return self.weighted(scores, relevance, sides.to(scores.device), torch.ones_like(scores, dtype=torch.bool))

    def get_config_dict(self) -> dict[str, object]:
        """The settings, for the model card."""
        return {**super().get_config_dict(), "scale": self.scale}


class CrossEncoderIBBRLoss(_BalancedLoss):
    """In-batch balancing regularization of a cross-encoder with one score a pair; otherwise as :class:`IBBRLoss`.

    Columns: query, docs (a list), in this order, and ``labels`` (a list; relevant from 1 on). Lists may be ragged. The
    passages' sides come from ``lexicon`` (a lexicon, or one for each of several named attributes: the parts are then
    ``fair_NAME``), or from a third column: a list of +1, −1 and 0 for each query, a list of such lists for several
    attributes.

    Raises ValueError for a setting out of range and for a batch of another shape, EvenrankError for a lexicon.
    """

    def __init__(
        self,
        model: CrossEncoder,
        weight: Weight = 0.1,
        term: ibbr.Term = "ibbr-ts",
        *,
        form: ibbr.Form = "squared",
        score: ibbr.Score = "softmax",
        rank_loss: RankLoss = "nll",
        lexicon: Attributes = "gender-en",
    ) -> None:
        if model.num_labels != 1:
            raise ValueError(f"expected a model with one score a pair, found {model.num_labels}")
        scorings = scorings_of(lexicon)
        super().__init__(model, ibbr.IBBR(term, form, score, weight), rank_loss, tuple(scorings))
        self.scorings = scorings
        self.several = isinstance(lexicon, Mapping)

    def forward(
        self,
        inputs: Columns,
        labels: Sequence[Tensor] | None,
        prompt: str | None = None,
        task: str | None = None,
    ) -> dict[str, Tensor]:
        """The parts of the loss, from the columns [B] and the relevance [K_b] of each query's passages."""
        try:
            return self._forward(inputs, labels, prompt, task)
        except TypeError as error:
            # The trainer would take the loss for one without prompt and task, and call it again without them.
            raise RuntimeError(f"CrossEncoderIBBRLoss: {error}") from error

    def _forward(
        self, inputs: Columns, labels: Sequence[Tensor] | None, prompt: str | None, task: str | None
    ) -> dict[str, Tensor]:
        documents, relevance = _check_lists(inputs, labels)
        lengths = torch.tensor([len(row) for row in documents])
        mask = torch.arange(int(lengths.max())) < lengths[:, None]
        sides = self._sides(documents, inputs[2] if len(inputs) == 3 else None)
        pairs = [(query, text) for query, row in zip(inputs[0], documents, strict=True) for text in row]
        features = batch_to_device(self.model.preprocess(pairs, prompt=prompt, task=task), self.model.device)
        found = self.model(features)["scores"].view(-1).float()
        place = mask.to(found.device)

        def matrix(values: Tensor) -> Tensor:
            # Pairs come query by query, like the True of the mask.
            return torch.zeros(mask.shape, device=found.device).masked_scatter(place, values.to(found))

        return self.weighted(matrix(found), matrix(torch.cat(relevance)), torch.stack(list(map(matrix, sides))), place)

    def _sides(self, documents: list[list[str]], given: Sequence[Any] | None) -> Tensor:
        """Sides [A, pairs]."""
        if given is None:
            texts = [text for row in documents for text in row]
            return torch.from_numpy(np.stack([sides_of_texts(texts, one) for one in self.scorings.values()]))
        rows = [np.asarray(row if self.several else [row]) for row in given]
        if [row.shape for row in rows] != [(len(self.parts), len(row)) for row in documents]:
            raise ValueError("the third column: expected a group label for each passage (and each attribute)")
        sides = torch.from_numpy(np.concatenate(rows, axis=1))
        _check_sides(sides)
        return sides


def _check_sides(sides: Tensor) -> None:
    if not bool(((sides == 0) | (sides.abs() == 1)).all()):
        raise ValueError("group labels: expected only +1, -1 and 0")


def _check_lists(inputs: Columns, labels: Sequence[Tensor] | None) -> tuple[list[list[str]], list[Tensor]]:
    """The passages and the relevance of each query. Raises ValueError for columns of another form."""
    if len(inputs) not in (2, 3):
        raise ValueError(f"expected the columns query and docs, and perhaps one of group labels, found {len(inputs)}")
    if labels is None or isinstance(labels, Tensor):
        raise ValueError("expected the column labels with a list of relevance grades for each query")
    queries, documents = inputs[0], inputs[1]
    if not all(isinstance(query, str) for query in queries):
        raise ValueError("the first column: expected a text for each query")
    if not all(isinstance(row, (list, tuple)) and all(isinstance(text, str) for text in row) for row in documents):
        raise ValueError("the second column: expected a list of texts for each query")
    if [len(row) for row in documents] != [one.numel() for one in labels]:
        raise ValueError("labels: expected as many grades as there are passages, for each query")
    if not any(documents):
        raise ValueError("the second column: no query of the batch has a passage")
    return [list(row) for row in documents], list(labels)


class KeepWeight(TrainerCallback):
    """Saves a loss's changing weight (``"auto"``, ``"dual"``) in the trainer's checkpoints: ``fair_weight.json``.

    Pass it to the trainer as a callback; a training resumed from one of its ``checkpoint-STEP`` folders then continues
    with that weight. Raises EvenrankError if such a folder has none.
    """

    def __init__(self, loss: _BalancedLoss) -> None:
        self.loss = loss

    @staticmethod
    def _file(args: TrainingArguments, state: TrainerState) -> Path:
        return Path(args.output_dir or ".") / f"checkpoint-{state.global_step}" / "fair_weight.json"

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object) -> None:
        """Writes the weight into the checkpoint."""
        if state.is_world_process_zero:
            write_text(self._file(args, state), json.dumps(self.loss.weight.state()))

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **_: object
    ) -> None:
        """Restores the weight of the checkpoint that the training resumes from."""
        if not state.global_step:
            return
        try:
            self.loss.weight.restore(json.loads(self._file(args, state).read_text(encoding="utf-8")))
        except (OSError, ValueError, LookupError, TypeError):
            raise EvenrankError(f"{self._file(args, state)}: no weight to continue with") from None
