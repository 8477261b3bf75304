"""For the trainers of sentence-transformers: IBBR losses, and an evaluator of bias and effectiveness together.

>>> trainer = SentenceTransformerTrainer(  # doctest: +SKIP
...     model, args, with_group_labels(dataset), loss=IBBRLoss(model, weight=0.1), evaluator=BiasEvaluator(...)
... )
"""

from __future__ import annotations

import csv
import io
import math
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import polars as pl
import torch
import yaml
from numpy.typing import NDArray
from sentence_transformers.base.evaluation import BaseEvaluator
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn
from torch.nn import functional

from evenrank import options as opt
from evenrank.auditing import AuditResult
from evenrank.auditing import audit as audit_runs
from evenrank.files import EvenrankError, Run, as_collection, as_qrels, as_queries, as_run, read_texts, write_text
from evenrank.files.arguments import checked
from evenrank.files.convert import QrelsLike, TextsLike, is_path
from evenrank.files.errors import arg, quoted, shown
from evenrank.files.runs import RunLike
from evenrank.files.tables import IdIndex
from evenrank.files.wording import counted
from evenrank.groups import (
    MAGNITUDES,
    GroupSource,
    GroupTable,
    Scoring,
    as_group_table,
    as_labels,
    load_lexicon,
    score_in_memory,
    sides_of_texts,
)
from evenrank.measures import BACKGROUND_DEPTH, Evaluation, MeasuresLike, Missing, is_bias, parse_measures, spelled
from evenrank.mitigation import ibbr
from evenrank.mitigation.attributes import (
    Attributes,
    OneLexicon,
    attributes_of,
    rows_of,
    scorings_of,
    several,
    sides_by,
)
from evenrank.mitigation.ibbr import EffectiveBatch
from evenrank.models.load import load_ranker
from evenrank.models.scorers import TextPairs

from . import fairness
from .losses import LOSSES

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

__all__ = [
    "Attributes",
    "BiasEvaluator",
    "CrossEncoderIBBRLoss",
    "CrossEncoderWithFairness",
    "IBBRLoss",
    "KeepWeight",
    "OneLexicon",
    "RankLoss",
    "Weight",
    "WithFairness",
    "with_group_labels",
]

_COLUMNS = "the columns query, positive and negatives"
_NO_PAIRS = (
    ": the term compares a query's own passages, not in-batch negatives, so add a column negative_1 to pairs"
    " (sentence_transformers.util.mine_hard_negatives)"
)
_LABEL_COLUMNS = ("label", "labels", "score", "scores", "dataset_name")


@checked
def with_group_labels(
    dataset: Any,
    lexicon: Attributes | None = None,
    *,
    labels: opt.Labels = None,
    id_columns: Sequence[str] = (),
    label: str | None = None,
) -> Any:
    """A dataset (query, positive, negative_1 … negative_n) with the column ``label`` that :class:`WithFairness` reads.

    ``label`` [K] has for each passage, the positive first, +1 for the first pole, −1 for the second, 0 for neither
    [IBBR §2.2]; [A, K] if ``lexicon`` (default: gender-en) names A attributes. ``dataset``: a Dataset, an
    IterableDataset whose columns are known, or a DatasetDict of either.

    ``labels``: the groups of documents instead of their words, as :func:`evenrank.as_labels` takes them (for several
    attributes, ``lexicon`` may name group tables of labels). They are by document, so the dataset needs columns with
    the passages' ids: ``id_columns`` names one for each passage, the positive's first (``["positive_id",
    "negative_1_id"]``); they are not in the result, whose columns are all read as texts. A passage without a label has
    side 0, as one of neither group; a warning says how many of a Dataset's passages these are.

    ``label``: the column that the loss itself needs, a number or a list of numbers as long in each row, such as a
    teacher's scores. It is put after the sides, so that it is for one attribute only.

    Raises EvenrankError for fewer than three text columns, another column that would be taken for the label, labels
    without the columns of ids, labels beside a lexicon, and labels that know none of the passages.
    """
    if isinstance(dataset, dict):
        return type(dataset)(
            {
                name: with_group_labels(part, lexicon, labels=labels, id_columns=id_columns, label=label)
                for name, part in dataset.items()
            }
        )
    source = lexicon if labels is None else as_labels(labels)
    attributes = attributes_of("gender-en" if source is None else source)
    names = list(dataset.column_names or ())
    if label is not None and (label not in names or several(lexicon)):
        raise EvenrankError(f"`label`: expected a column of the dataset, and one attribute, found {quoted(label)}")
    taken = [name for name in names if name in _LABEL_COLUMNS and name != label]
    if taken:
        raise EvenrankError(f"the dataset has a column {taken[0]}, which would be taken for the group labels")
    columns = [name for name in names if name not in id_columns and name != label]
    if len(columns) < 3:
        raise EvenrankError(f"expected {_COLUMNS}, found {', '.join(columns) or 'none'}{_NO_PAIRS}")
    by_label = [attribute for attribute in attributes.values() if isinstance(attribute, GroupTable)]
    if by_label:
        _check_ids(names, columns, id_columns)
    if by_label and hasattr(dataset, "num_rows"):  # no stream
        every = [str(doc_id) for name in id_columns for doc_id in dataset[name]]
        for table in by_label:
            _warn_of_unknown(pl.Series("doc_id", every, dtype=pl.String).unique(maintain_order=True), table)

    if label == "label":
        # The new one has another type.
        dataset, label = dataset.rename_column("label", "own_label"), "own_label"
    used = [*id_columns, *([] if label is None else [label])]
    labelled = _Labelled(
        tuple(attributes.values()), tuple(columns), tuple(id_columns) if by_label else (), label, several(lexicon)
    )
    return dataset.map(labelled, batched=True, remove_columns=used or None)


@dataclass(frozen=True)
class _Labelled:
    """What gives a batch of a dataset its labels: a class, as datasets hashes all that a function can reach."""

    attributes: tuple[Any, ...]
    columns: tuple[str, ...]
    id_columns: tuple[str, ...]
    label: str | None
    several: bool

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, object]:
        texts = [text for name in self.columns[1:] for text in batch[name]]
        ids = [str(i) for name in self.id_columns for i in batch[name]] if self.id_columns else [""] * len(texts)
        passages = pl.DataFrame({"doc_id": ids, "text": texts}, {"doc_id": pl.String, "text": pl.String})
        signs = [sides_by(attribute, passages, partly=True) for attribute in self.attributes]
        sides = [s.reshape(len(self.columns) - 1, -1).T for s in signs]
        table = np.stack(sides, axis=1) if self.several else sides[0]
        if self.label is None:
            return {"label": table.tolist()}
        own = np.asarray(batch[self.label], np.float64).reshape(len(table), -1)
        return {"label": np.concatenate([table, own], axis=1).tolist()}


def _check_ids(names: list[str], columns: list[str], id_columns: Sequence[str]) -> None:
    """Raises EvenrankError unless each passage's column has one with its ids."""
    absent = next((name for name in id_columns if name not in names), None)
    if absent is not None:
        raise EvenrankError(f"`id_columns`: the dataset has no column {quoted(absent)} (it has {', '.join(names)})")
    if len(id_columns) != len(columns) - 1:
        wanted = f"expected {len(columns) - 1} columns with the ids of {', '.join(columns[1:])}"
        raise EvenrankError(f"`id_columns`: labels are by document: {wanted}, found {len(id_columns)}")


def _warn_of_unknown(ids: pl.Series, labels: GroupTable) -> None:
    """Warns of passages that have no label. Raises EvenrankError if none has one."""
    known = int((rows_of(labels, ids) >= 0).sum())
    if known < len(ids):
        of = f"{known:,} of {counted(len(ids), 'passage')}"
        warnings.warn(f"{labels.source} know {of}: the others are on no side", stacklevel=3)


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


class _Fair(nn.Module):
    """A loss and a term of each attribute, as a dict of weighted parts."""

    def __init__(self, loss: nn.Module, term: ibbr.IBBR | ibbr.FunctionTerm, attributes: Sequence[str]) -> None:
        super().__init__()
        if not isinstance(getattr(loss, "model", None), nn.Module):
            raise EvenrankError(f"`loss`: expected a loss of sentence-transformers, found {shown(loss)}")
        self.loss = loss
        self.term = term
        self.weight = ibbr.as_weight(term.weight)
        self.parts = [f"fair_{name}" if name else "fair" for name in attributes]
        if len(set(self.parts)) < len(self.parts):
            raise EvenrankError("`attributes`: two have the same name")
        self.batch = EffectiveBatch(term, self.weight, len(self.parts))

    @property
    def model(self) -> Any:
        """The loss's, in whose place the trainer puts another that runs in several processes."""
        return self.loss.model

    @contextmanager
    def _outputs(self, name: str) -> Iterator[list[Tensor]]:
        """What the model returns as ``name`` in the block, one tensor for each call."""
        outputs: list[Tensor] = []
        hook = self.model.register_forward_hook(lambda *called: outputs.append(called[2][name]))
        try:
            yield outputs
        finally:
            hook.remove()

    def _usable(self, found: list[Tensor], rows: int) -> Tensor | None:
        """The outputs as one tensor, if these are all and have a gradient: losses with mini-batches may drop it."""
        graph = torch.is_grad_enabled()
        if sum(len(t) for t in found) != rows or (graph and not all(t.requires_grad for t in found)):
            return None
        return torch.cat(found)

    @contextmanager
    def _again(self) -> Iterator[None]:
        """For another pass through the model: what is random in the training is as without it."""
        device = next(self.model.parameters()).device
        with torch.random.fork_rng([device] if device.type == "cuda" else []):
            yield

    def weighted(
        self, base: Tensor | Mapping[str, Tensor], scores: Tensor, relevance: Tensor, sides: Tensor, mask: Tensor
    ) -> dict[str, Tensor]:
        """The parts of ``base`` (``rank``, if it is one tensor) and ``fair`` of score matrices [B, K].

        ``sides`` [A, B, K]. The term is that of the batch of all processes:
        :class:`evenrank.mitigation.ibbr.EffectiveBatch`.
        """
        base_parts = base if isinstance(base, Mapping) else {"rank": base}
        if both := base_parts.keys() & set(self.parts):
            raise EvenrankError(f"the loss and the term have parts of the same name: {', '.join(sorted(both))}")
        summary = self.batch.summarize(scores.float(), relevance, sides, mask)
        self.batch.begin([summary])
        shares, figures = self.batch.shares(summary), self.batch.figures
        parts = {name: figures.rank_weight * value for name, value in base_parts.items()}
        for a, (name, weight, term) in enumerate(zip(self.parts, figures.weights, figures.terms, strict=True)):
            share = shares[:, a].sum()
            parts[name] = weight * (term or 0.0) + share - share.detach()
        # Evaluation has no gradient, and must not move the weight.
        if torch.is_grad_enabled() and self.model.training:
            self.batch.update([torch.stack([value.detach() for value in base_parts.values()]).sum()])
        return parts

    def get_config_dict(self) -> dict[str, object]:
        """The settings, for the model card."""
        loss = getattr(self.loss, "rank_loss", type(self.loss).__name__)
        return {"loss": loss, **ibbr.term_settings(self.term, self.weight)}

    @property
    def citation(self) -> str:
        """The paper, for the model card."""
        return _CITATION


class WithFairness(_Fair):
    """Adds a fairness term to a loss of a bi-encoder, any of sentence-transformers': ``loss + weight · term``.

    ``term``: :class:`evenrank.mitigation.ibbr.IBBR` or a :class:`~evenrank.mitigation.ibbr.FunctionTerm`, with its
    weight. Returns the parts of the loss (``rank``, if it is a single number) and ``fair`` (``fair_NAME`` for each of
    ``attributes``), already weighted; the trainer sums and logs them. With the weight 0 a training is that of the loss,
    bit for bit.

    The term is of the scores of each query's own passages, ``scale`` times the model's similarity (default: 1 for the
    inner product, 20 for the cosine); what else the loss compares, such as passages of other queries, it does not see.

    Data, of which :func:`with_group_labels` makes the column ``label``, with K = n + 1 passages:

    | columns | ``label`` | the loss is given |
    | --- | --- | --- |
    | query, positive, negative_1 … negative_n | sides [K], the positive's first, or [A, K] | the columns |
    | the same, for a loss with a label of its own | sides and that label, [K + L] | the columns, and [L] or a number |

    The embeddings are those that the loss computes. One that keeps none with a gradient (``Cached…``) or cuts them
    (``MatryoshkaLoss``) has the model encode the batch again, in one piece.

    The term is that of a step's batch over all processes. Gradient accumulation does not enlarge it: it is the mean of
    the terms of the smaller batches. A weight that changes (``"auto"``, ``"dual"``) does so after each training step;
    :class:`KeepWeight` saves it in checkpoints, which do not contain the state of losses otherwise. With ``"auto"`` the
    parts omit what has no gradient (a + b).

    Raises EvenrankError for a setting out of range and for a batch of another shape.

    >>> import numpy as np, torch
    >>> from sentence_transformers import SentenceTransformer
    >>> from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    >>> from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    >>> from tokenizers import Tokenizer, models, pre_tokenizers
    >>> from evenrank.training.sentence_transformers import WithFairness
    >>> from evenrank.mitigation.ibbr import IBBR
    >>> words = Tokenizer(models.WordLevel({"?": 0, "he": 1, "she": 2, "works": 3}, unk_token="?"))
    >>> words.pre_tokenizer = pre_tokenizers.Whitespace()
    >>> vectors = np.array([[0, 0, 1], [1, 0.2, 0], [1, 0.1, 0.1], [1, 0, 0]], np.float32)
    >>> model = SentenceTransformer(modules=[StaticEmbedding(words, embedding_weights=vectors)], device="cpu")
    >>> loss = WithFairness(MultipleNegativesRankingLoss(model), IBBR("ibbr-pd", weight=0.5))
    >>> columns = ["works", "works"], ["he works", "she works"], ["she", "he"]
    >>> sides = torch.tensor([[1, -1], [-1, 1]])  # of the positive and the negative
    >>> parts = loss([model.preprocess(list(texts)) for texts in columns], sides)
    >>> {name: round(float(value), 4) for name, value in parts.items()}
    {'rank': 1.2853, 'fair': 0.0018}
    """

    @checked
    def __init__(
        self,
        loss: nn.Module,
        term: ibbr.IBBR | ibbr.FunctionTerm,
        *,
        scale: float | None = None,
        attributes: Sequence[str] = (),
    ) -> None:
        super().__init__(loss, term, tuple(attributes) or ("",))
        self.several = bool(attributes)
        self.similarity = _Similarity(self.model, scale)

    @property
    def scale(self) -> float:
        """What the similarity is multiplied by."""
        return self.similarity.scale

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None) -> dict[str, Tensor]:
        """The parts of the loss, from the columns' features and the sides [B, K] or [B, A, K]."""
        columns = list(sentence_features)
        name = type(self).__name__
        if len(columns) < 3:
            raise EvenrankError(f"{name} needs {_COLUMNS}, found {len(columns)} columns{_NO_PAIRS}")
        passages = len(columns) - 1
        shape = (len(self.parts), passages) if self.several else (passages,)
        if labels is None:
            raise EvenrankError(f"{name} needs the column label with the passages' groups: see with_group_labels")
        own = None
        if not self.several and labels.dim() == 2 and labels.shape[1] > passages:
            labels, own = labels[:, :passages], labels[:, passages:]
            own = own[:, 0] if own.shape[1] == 1 else own
        if tuple(labels.shape[1:]) != shape:
            raise EvenrankError(f"`label`: expected {shape} group labels a query, found {tuple(labels.shape[1:])}")
        _check_sides(labels)
        base, scores = self._scored(columns, own, len(labels))
        sides = labels.transpose(0, 1) if self.several else labels[None]
        mask = torch.ones_like(scores, dtype=torch.bool)
        return self.weighted(base, scores, _first_relevant(scores), sides.to(scores.device), mask)

    def _scored(
        self, columns: list[dict[str, Tensor]], own: Tensor | None, queries: int
    ) -> tuple[Tensor | Mapping[str, Tensor], Tensor]:
        """The loss, and the scores [B, K] by the embeddings that it computed."""
        copies = [dict(column) for column in columns]
        with self._outputs("sentence_embedding") as outputs:
            base = self.loss(columns, own)
        embedded = self._usable(outputs, len(columns) * queries)
        if embedded is None:
            with self._again():
                embedded = torch.cat([self.model(column)["sentence_embedding"] for column in copies])
        return base, self.similarity(embedded.reshape(len(columns), queries, -1).unbind(0))

    def get_config_dict(self) -> dict[str, object]:
        """The settings, for the model card."""
        return {**super().get_config_dict(), "scale": self.scale}


class _Similarity:
    """``scale`` times the similarity [B, K] of queries and passages, as the model has it: inner product or cosine."""

    def __init__(self, model: Any, scale: float | None) -> None:
        similarity = model.similarity_fn_name
        if similarity not in ("dot", "cosine"):
            raise EvenrankError(f"`similarity`: expected dot or cosine, found {similarity!r}")
        self.cosine = similarity == "cosine"
        self.scale = (20.0 if self.cosine else 1.0) if scale is None else scale
        if not self.scale > 0:
            raise EvenrankError(f"{arg.scale}: expected more than 0, found {scale}")

    def __call__(self, embedded: Sequence[Tensor]) -> Tensor:
        query, *documents = (column.float() for column in embedded)
        stacked = torch.stack(documents, dim=1)
        if self.cosine:
            query, stacked = functional.normalize(query, dim=-1), functional.normalize(stacked, dim=-1)
        return self.scale * (query[:, None] * stacked).sum(2)


def _first_relevant(scores: Tensor) -> Tensor:
    relevance = torch.zeros_like(scores)
    relevance[:, 0] = 1
    return relevance


class _RankLossBase(nn.Module):
    """A ranking loss of :mod:`evenrank.training.losses`."""

    def __init__(self, model: nn.Module, rank_loss: RankLoss) -> None:
        super().__init__()
        self.model: Any = model
        self.rank_loss = rank_loss


class _OfTuples(_RankLossBase):
    def __init__(self, model: nn.Module, rank_loss: RankLoss, scale: float | None) -> None:
        super().__init__(model, rank_loss)
        self.similarity = _Similarity(model, scale)

    def forward(self, sentence_features: Iterable[dict[str, Tensor]], labels: Tensor | None) -> Tensor:
        return self.scored(sentence_features)[0]

    def scored(self, sentence_features: Iterable[dict[str, Tensor]]) -> tuple[Tensor, Tensor]:
        """The loss, and the scores [B, K] that it is of."""
        scores = self.similarity([self.model(column)["sentence_embedding"] for column in sentence_features])
        loss = LOSSES[self.rank_loss](scores, _first_relevant(scores), torch.ones_like(scores, dtype=torch.bool))
        return loss, scores


class IBBRLoss(WithFairness):
    """In-batch balancing regularization of a bi-encoder: a ranking loss plus ``weight`` times ``term``.

    Li et al. 2022 [IBBR], eq. 3 (nPRF), eq. 4 (PD) and two without a number (TS, the total);
    :mod:`evenrank.mitigation.ibbr` defines the terms, :mod:`evenrank.training.losses` the ranking losses.
    :class:`WithFairness` adds the terms to any other loss, and says what the columns, parts and settings are.

    ``weight``: a number, ``"auto"``, ``"dual"``, or one of the classes of :mod:`evenrank.mitigation.ibbr` with other
    settings. ``score``: R in nPRF. ``scale``: of the ranking loss and the term.

    Raises EvenrankError for a setting out of range and for a batch of another shape.
    """

    @checked
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
        loss = _OfTuples(model, rank_loss, scale)
        super().__init__(loss, ibbr.IBBR(term, form, score, weight), scale=scale, attributes=attributes)

    def _scored(
        self, columns: list[dict[str, Tensor]], own: Tensor | None, queries: int
    ) -> tuple[Tensor | Mapping[str, Tensor], Tensor]:
        # Scores that the loss has already are not computed anew.
        assert isinstance(self.loss, _OfTuples)
        return self.loss.scored(columns)


class CrossEncoderWithFairness(_Fair):
    """Adds a fairness term to a loss of a cross-encoder with one score a pair; otherwise as :class:`WithFairness`.

    | columns | sides of the passages | the loss is given |
    | --- | --- | --- |
    | query, docs (a list) and ``labels`` (a list) | by the words of ``lexicon`` | query, docs, ``labels`` |
    | the same, with lists of +1, −1 and 0 after docs | that column; lists of lists for several attributes | the same |

    ``loss``: one of lists, such as LambdaLoss. A passage is relevant from a label of 1 on. Lists may be ragged.
    ``lexicon``: a lexicon, or one for each of several named attributes, whose parts are then ``fair_NAME``.

    Raises EvenrankError for a setting out of range, a batch of another shape, and a lexicon that cannot be used.
    """

    @checked
    def __init__(
        self, loss: nn.Module, term: ibbr.IBBR | ibbr.FunctionTerm, *, lexicon: Attributes = "gender-en"
    ) -> None:
        scorings = scorings_of(lexicon)
        super().__init__(loss, term, tuple(scorings))
        if self.model.num_labels != 1:
            raise EvenrankError(f"expected a model with one score a pair, found {self.model.num_labels}")
        self.scorings = scorings
        self.several = several(lexicon)

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
            raise RuntimeError(f"{type(self).__name__}: {error}") from error

    def _forward(
        self, inputs: Columns, labels: Sequence[Tensor] | None, prompt: str | None, task: str | None
    ) -> dict[str, Tensor]:
        documents, relevance = _check_lists(inputs, labels)
        sides = self._sides(documents, inputs[2] if len(inputs) == 3 else None)
        with self._outputs("scores") as outputs:
            base = self.loss(list(inputs[:2]), labels, prompt=prompt, task=task)
        scores = self._usable(outputs, sum(map(len, documents)))
        if scores is None:
            with self._again():
                scores = _pair_scores(self.model, inputs[0], documents, prompt, task)
        matrix = _Lists(documents, scores.device)
        table = torch.stack(list(map(matrix, sides)))
        return self.weighted(base, matrix(scores), matrix(torch.cat(relevance)), table, matrix.mask)

    def _sides(self, documents: list[list[str]], given: Sequence[Any] | None) -> Tensor:
        """Sides [A, pairs]."""
        if given is None:
            texts = [text for row in documents for text in row]
            return torch.from_numpy(np.stack([sides_of_texts(texts, scoring) for scoring in self.scorings.values()]))
        rows = [np.asarray(row if self.several else [row]) for row in given]
        if [row.shape for row in rows] != [(len(self.parts), len(row)) for row in documents]:
            raise EvenrankError("the third column: expected a group label for each passage (and each attribute)")
        sides = torch.from_numpy(np.concatenate(rows, axis=1))
        _check_sides(sides)
        return sides


class _Lists:
    """Values of pairs, which come query by query, as a matrix [B, K]; ``mask`` [B, K]: where there is one."""

    def __init__(self, documents: Sequence[Sequence[str]], device: torch.device) -> None:
        lengths = torch.tensor([len(row) for row in documents])
        self.mask = (torch.arange(int(lengths.max())) < lengths[:, None]).to(device)

    def __call__(self, values: Tensor) -> Tensor:
        values = values.to(self.mask.device, torch.float).view(-1)
        return torch.zeros(self.mask.shape, device=self.mask.device).masked_scatter(self.mask, values)


def _pair_scores(
    model: Any, queries: Sequence[str], documents: Sequence[Sequence[str]], prompt: str | None, task: str | None
) -> Tensor:
    """The scores [pairs] of each query's passages."""
    pairs = [(query, text) for query, row in zip(queries, documents, strict=True) for text in row]
    features = batch_to_device(model.preprocess(pairs, prompt=prompt, task=task), model.device)
    scores: Tensor = model(features)["scores"]
    return scores.view(-1)


class _OfLists(_RankLossBase):
    def forward(
        self, inputs: Columns, labels: Sequence[Tensor], prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        scores = _pair_scores(self.model, inputs[0], inputs[1], prompt, task)
        matrix = _Lists(inputs[1], scores.device)
        return LOSSES[self.rank_loss](matrix(scores), matrix(torch.cat(list(labels))), matrix.mask)


class CrossEncoderIBBRLoss(CrossEncoderWithFairness):
    """In-batch balancing regularization of a cross-encoder with one score a pair: a ranking loss plus the term.

    Columns, sides and parts are those of :class:`CrossEncoderWithFairness`, which adds the terms to any other loss;
    settings those of :class:`IBBRLoss`.

    Raises EvenrankError for a setting out of range, a batch of another shape, and a lexicon that cannot be used.
    """

    @checked
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
        super().__init__(_OfLists(model, rank_loss), ibbr.IBBR(term, form, score, weight), lexicon=lexicon)


def _check_sides(sides: Tensor) -> None:
    if not bool(((sides == 0) | (sides.abs() == 1)).all()):
        raise EvenrankError("group labels: expected only +1, -1 and 0")


def _check_lists(inputs: Columns, labels: Sequence[Tensor] | None) -> tuple[list[list[str]], list[Tensor]]:
    """The passages and the relevance of each query. Raises EvenrankError for columns of another form."""
    if len(inputs) not in (2, 3):
        raise EvenrankError(
            f"expected the columns query and docs, and perhaps one of group labels, found {len(inputs)}"
        )
    if labels is None or isinstance(labels, Tensor):
        raise EvenrankError("expected the column labels with a list of relevance grades for each query")
    queries, documents = inputs[0], inputs[1]
    if not all(isinstance(query, str) for query in queries):
        raise EvenrankError("the first column: expected a text for each query")
    if not all(isinstance(row, (list, tuple)) and all(isinstance(text, str) for text in row) for row in documents):
        raise EvenrankError("the second column: expected a list of texts for each query")
    if [len(row) for row in documents] != [label.numel() for label in labels]:
        raise EvenrankError(f"{arg.labels}: expected as many grades as there are passages, for each query")
    if not any(documents):
        raise EvenrankError("the second column: no query of the batch has a passage")
    return [list(row) for row in documents], list(labels)


class KeepWeight(fairness.KeepWeight):
    """Keeps a loss's changing weight (``"auto"``, ``"dual"``) in the trainer's checkpoints.

    Pass it to the trainer as a callback; a training resumed from a checkpoint then continues with its weight. Raises
    EvenrankError if it has none.
    """

    @checked
    def __init__(self, loss: WithFairness | CrossEncoderWithFairness) -> None:
        super().__init__(loss.weight)


class _MetricName(str):
    """A metric's name that stays as it is in a model card, where sentence-transformers would write Arab@10."""

    __slots__ = ()

    def __getitem__(self, part: Any) -> _MetricName:
        return _MetricName(super().__getitem__(part))

    def replace(self, *_: Any) -> _MetricName:
        """The name itself."""
        return self

    def title(self) -> str:
        """The name itself."""
        return str(self)


yaml.add_representer(_MetricName, lambda dumper, name: dumper.represent_str(str(name)))

_USUAL = "nDCG@10 NFaiRR@10 ARaB@10 |DeltaAPRF|"
_OF_DRAWN = ("nDCG@10", "ARaB@10")


class BiasEvaluator(BaseEvaluator):  # type: ignore[misc]
    """Re-ranks candidates with a model and reports bias together with effectiveness; for both trainers, or on its own.

    ``queries``: the texts of the queries to evaluate; ``corpus``: those of at least the candidates. ``relevant``: each
    query's relevant documents (a set, or document → grade). ``candidates``: each query's documents, best first, or a
    run; the first ``depth`` are re-ranked. All work in any form that :func:`evenrank.audit` takes. Rows of other
    queries are ignored; a judged query without candidates counts 0 in effectiveness.

    The group table of the documents is made once, with ``lexicon`` (or given as ``scores``), or is that of ``labels``
    by document, as :func:`evenrank.as_labels` takes them. Documents without a label are unknown: measures of bias leave
    them out, and ``known`` (and the model card) says how many of the candidates have one. NFaiRR's background is the
    first ``background_depth`` candidates. The figures equal those of :func:`evenrank.audit` with the candidates as
    baseline; those of the candidates themselves are in ``first_stage``.

    Without ``measures``: nDCG@10, NFaiRR@10, ARaB@10 and |ΔA-PRF|, but for those that are undefined for the candidates.
    Called with a SentenceTransformer or a CrossEncoder, it returns the figures by the measures' names, with ``name_``
    before them; |ΔA-PRF| is spelled ``AbsoluteDeltaAPRF``, since ``|`` separates cells in a model card. The trainers
    log them, and the model card lists them. With an ``output_path`` it appends to a CSV file there. ``primary_metric``
    is nDCG@10, or the first measure of effectiveness. :meth:`audit` adds intervals and the values of each query.

    With ``labels`` that were drawn (:func:`evenrank.sample_labels` with ``depth``, so that every candidate could be)
    and a ``guess``, figures of bias are estimates; by default nDCG@10 and ARaB@10.

    Raises EvenrankError for measures without one of effectiveness (a model that ranks at random is fair), for queries
    or documents without a text, and for labels beside a lexicon or scores, or that know none of the candidates.
    """

    @checked
    def __init__(
        self,
        queries: TextsLike,
        corpus: TextsLike,
        relevant: QrelsLike,
        candidates: RunLike,
        *,
        lexicon: OneLexicon | None = None,
        scores: object = None,
        labels: opt.Labels = None,
        guess: opt.Guess = None,
        measures: MeasuresLike | None = None,
        depth: Annotated[int, opt.COUNT] = 100,
        background_depth: Annotated[int, opt.COUNT] = BACKGROUND_DEPTH,
        batch_size: Annotated[int, opt.COUNT] = 32,
        name: str = "",
        write_csv: bool = True,
        show_progress_bar: bool = False,
    ) -> None:
        super().__init__()
        usual = measures is None
        chosen = parse_measures(_USUAL if measures is None else measures)
        self.measures = {spelled(measure): measure for measure in chosen}
        effective = [key for key, measure in self.measures.items() if not is_bias(measure)]
        if not effective:
            raise EvenrankError(
                f"{arg.measures}: none is of effectiveness, and a ranking at random is fair: add nDCG@10"
            )
        self.primary_metric = "nDCG@10" if "nDCG@10" in effective else effective[0]
        self.name = name
        self.depth = depth
        self.batch_size = batch_size
        self.write_csv = write_csv
        self.show_progress_bar = show_progress_bar
        self.csv_file = "_".join(["BiasEvaluator", *([name] if name else []), "results.csv"])

        texts = as_queries(queries)
        everything = as_run(candidates, what="`candidates`")
        candidate_table = everything.table.filter(pl.col("query_id").is_in(texts["query_id"].implode()))
        if not candidate_table.height:
            raise EvenrankError("`candidates`: none of the queries has any")
        candidate_run = Run(everything.name, candidate_table)
        documents = _documents(corpus, candidate_table["doc_id"].unique(maintain_order=True))
        self._qrels = as_qrels(relevant, "`relevant`").filter(pl.col("query_id").is_in(texts["query_id"].implode()))
        if labels is not None:
            table = GroupSource(documents, labels=labels, guess=guess, takes_drawn=True).table([documents["doc_id"]])
        elif scores is not None:
            table = as_group_table(scores, [documents["doc_id"]])
        else:
            table = _by_words(documents, "gender-en" if lexicon is None else lexicon)
        if usual and table.sample is not None:
            self.measures = {name: measure for name, measure in self.measures.items() if name in _OF_DRAWN}
        self._scores = table
        self._missing: Missing = "skip" if table.labelled else "error"
        among = documents["doc_id"].is_in(table.table["doc_id"].implode())
        self.known = int(among.sum()), len(among)
        first = Evaluation(candidate_run, table, self._qrels, missing=self._missing)
        first.check_missing(1.0)
        first.check_estimated(list(self.measures.values()))
        self._background = first.background = first.as_background(candidate_run.name, background_depth)
        self.first_stage = {key: first.figure(measure) for key, measure in self.measures.items()}
        if usual:
            undefined = [key for key, value in self.first_stage.items() if math.isnan(value) and key not in effective]
            for key in undefined:
                del self.first_stage[key], self.measures[key]

        self._table = candidate_table.filter(pl.col("rank") <= depth)
        query_ids, document_ids = (self._table[n].unique(maintain_order=True) for n in ("query_id", "doc_id"))
        sample = table.sample
        if sample is not None and not document_ids.is_in(sample.documents.implode()).all():
            raise EvenrankError(
                f"{arg.labels}: not every candidate could be drawn: draw with {arg('depth', depth)}"
                " (evenrank.sample_labels)"
            )
        self._query = IdIndex([query_ids]).places(self._table["query_id"]).astype(np.int64)
        self._document = IdIndex([document_ids]).places(self._table["doc_id"]).astype(np.int64)
        self._queries = _in_order(texts, query_ids)
        self._documents = _in_order(documents, document_ids)

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """The figures of the model's re-ranking."""
        run = self._reranked(model)
        evaluation = Evaluation(run, self._scores, self._qrels, missing=self._missing, background=self._background)
        figures = {key: evaluation.figure(measure) for key, measure in self.measures.items()}
        if output_path is not None and self.write_csv:
            self._add_line(Path(output_path) / self.csv_file, [epoch, steps, *figures.values()])
        metrics: dict[str, float] = self.prefix_name_to_metrics(figures, self.name)
        named = {_MetricName(key): value for key, value in metrics.items()}
        self.store_metrics_in_model_card_data(model, named, epoch, steps)
        return metrics

    def audit(self, model: CrossEncoder | SentenceTransformer) -> AuditResult:
        """The same figures with their intervals and values of each query, compared with those of the candidates.

        The runs are ``model`` (or the evaluator's name) and ``first stage``, the candidates, which is the baseline:
        ``evaluator.audit(model)["model"]["nDCG@10"].ci95``. Not for labels that were drawn.
        """
        run = self._reranked(model)
        return audit_runs(
            {run.name: run, "first stage": self._background.run},
            scores=self._scores,
            qrels=self._qrels,
            baseline="first stage",
            background_depth=self._background.depth,
            measures=list(self.measures.values()),
            unknown="skip" if self._scores.labelled else None,
        )

    def _reranked(self, model: CrossEncoder | SentenceTransformer) -> Run:
        """The candidates in the model's order; the model is left as it was."""
        training = model.training
        scores = self._scored(model)
        model.train(training)
        return Run.from_table(self._table.with_columns(pl.Series("score", scores)), self.name or "model")

    def _scored(self, model: CrossEncoder | SentenceTransformer) -> NDArray[np.float64]:
        """The model's score of each candidate: its logit, or its similarity of query and document."""
        pairs = TextPairs(self._query, self._document, pl.Series(self._queries), pl.Series(self._documents))
        scorer = load_ranker(model)
        scorer.progress_bar = self.show_progress_bar
        return scorer.scores_of(pairs, self.batch_size)

    def _add_line(self, path: Path, values: list[float]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = io.StringIO()
        writer = csv.writer(lines, lineterminator="\n")
        if path.exists():
            lines.write(path.read_text(encoding="utf-8"))
        else:
            writer.writerow(["epoch", "steps", *self.measures])
        writer.writerow(values)
        write_text(path, lines.getvalue())

    @property
    def description(self) -> str:
        """Its name in the model card."""
        return "Effectiveness and Bias"

    def get_config_dict(self) -> dict[str, object]:
        """The settings, for the model card."""
        by_label = self._scores.labelled
        keys = ("labels", "poles", "neutral") if by_label else ("lexicon", "poles", "tokens", "threshold")
        known, candidates = self.known
        others = "others are left out" if self._scores.sample is None else "drawn for all"
        return {
            **{key: self._scores.settings.get(key) for key in keys},
            **({"candidates with a label": f"{known:,} of {candidates:,}, {others}"} if by_label else {}),
            "queries": len(self._queries),
            "depth": self.depth,
            "background": f"the candidates, {self._background.depth} a query",
            "first stage": {key: round(value, 4) for key, value in self.first_stage.items()},
        }


def _by_words(documents: pl.DataFrame, one: OneLexicon) -> GroupTable:
    if not isinstance(one, Scoring):
        one = Scoring(load_lexicon(one))
    kinds = tuple(kind for kind in MAGNITUDES if kind != "count")
    return score_in_memory(documents, replace(one, magnitudes=kinds))


def _documents(corpus: TextsLike, ids: pl.Series) -> pl.DataFrame:
    """The texts of documents. Raises EvenrankError if one has none."""
    if isinstance(corpus, Mapping):
        corpus = {id_: corpus[id_] for id_ in ids if id_ in corpus}
    if isinstance(corpus, Mapping) and not corpus:
        table = pl.DataFrame(schema={"doc_id": pl.String, "text": pl.String})
    else:
        texts = as_collection(corpus, "`corpus`")
        table = read_texts(texts, ids) if is_path(texts) else texts.filter(pl.col("doc_id").is_in(ids.implode()))
    if table.height < len(ids):
        lacking = ids.filter(~ids.is_in(table["doc_id"].implode()))
        raise EvenrankError(f"`candidates`: {len(lacking)} documents without a text, such as {quoted(lacking[0])}")
    return table


def _in_order(texts: pl.DataFrame, ids: pl.Series) -> list[str]:
    """The texts of ``ids``, in their order."""
    return ids.to_frame().join(texts, on=ids.name, how="left", maintain_order="left")["text"].to_list()
