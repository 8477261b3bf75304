"""AdvBert: an encoder trained so that an adversary cannot recognise gendered pairs from its vectors.

Rekabsaz, Kopeinik & Schedl, SIGIR 2021, "Societal biases in retrieved contents: measurement framework and adversarial
mitigation of BERT rankers" [RKS21], §4: a relevance head and, behind gradient reversal, a head that predicts whether
the pair is gendered. A fresh adversary measures what can still be found afterwards (:func:`attack`).

When it misleads: an adversary at chance during training proves little: a fresh one often still finds the group, so
``result.json`` reports a fresh one before and after. The label is whether a pair is gendered at all, not which group it
mentions, so a lean towards one group is not trained against. A large ``factor`` destroys the ranking, which the model
card says first. Validation by effectiveness would choose an early checkpoint, before the adversary acts, so training
keeps the last, as the publication does.

Worked example: the adversary's gradient reaches the encoder with reversed sign, times the factor.

>>> import torch
>>> from evenrank.training.adversarial import reverse_gradient
>>> vectors = torch.tensor([1.0, 2.0], requires_grad=True)
>>> reverse_gradient(vectors, factor=0.5).sum().backward()
>>> vectors.grad.tolist()
[-0.5, -0.5]
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor, nn
from torch.nn import functional

from evenrank.files import EvenrankError
from evenrank.files.types import Array
from evenrank.groups import GroupTable, Scoring, score_texts
from evenrank.mitigation.attributes import rows_of
from evenrank.models.encoders import CatRanker, DotRanker, seeded
from evenrank.models.protocol import CandidateLists, Inputs, Ranker
from evenrank.stats.clusters import linearized_means
from evenrank.stats.estimate import estimate

Label = Literal["neutrality", "any"]
Vector = Literal["pair", "passage"]


def gendered(texts: pl.Series, scoring: Scoring, label: Label = "neutrality") -> Array:
    """Whether each text [N] is gendered: neutrality below 1 (a single group word, or balanced words, do not count, as
    in the public program), or with ``any`` a word of any group at all."""
    table = pl.DataFrame({"doc_id": pl.int_range(len(texts), eager=True).cast(pl.String), "text": texts})
    scores = score_texts(table, scoring)
    if label == "any":
        counts = scores.select(pl.sum_horizontal(pl.col(f"count_{group}") for group in scoring.lexicon.groups))
        return counts.to_series().to_numpy() > 0
    return scores["neutrality"].to_numpy() < 1


def gendered_by_label(ids: pl.Series, labels: GroupTable, label: Label = "neutrality") -> Array:
    """Whether each document [N] int8 is gendered by its label: 1 if it is not neutral (``any``: has a weight), 0, or −1
    if it has no label. Raises EvenrankError if none has one."""
    rows = rows_of(labels, ids)
    if label == "any":
        flags = labels.table.select(pl.sum_horizontal(pl.col(f"count_{group}") for group in labels.groups) > 0)
        known = flags.to_series().to_numpy()
    else:
        known = labels.table["neutrality"].to_numpy() < 1
    return np.where(rows >= 0, known[rows], -1).astype(np.int8)


class _Reversal(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, vectors: Tensor, factor: float) -> Tensor:
        context.factor = factor
        return vectors.view_as(vectors)

    @staticmethod
    def backward(context: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return -context.factor * gradients[0], None


def reverse_gradient(vectors: Tensor, factor: float = 1.0) -> Tensor:
    """The vectors unchanged; their gradient is multiplied by −``factor`` (Ganin & Lempitsky 2015)."""
    reversed_: Tensor = _Reversal.apply(vectors, factor)  # type: ignore[no-untyped-call]
    return reversed_


class Adversary(nn.Module):
    """H → H, tanh → 2: whether the pair behind a vector [N, H] is gendered [RKS21 §4]."""

    def __init__(self, size: int, seed: int = 0) -> None:
        super().__init__()
        with seeded(seed):
            self.layers = nn.Sequential(nn.Linear(size, size), nn.Tanh(), nn.Linear(size, 2))

    def forward(self, vectors: Tensor) -> Tensor:
        """Logits [N, 2]."""
        return self.layers(vectors)  # type: ignore[no-any-return]


def scores_and_vectors(ranker: Ranker, inputs: Inputs, vector: Vector = "pair") -> tuple[Tensor, Tensor]:
    """Scores [B, K], and the vector [pairs, H] of each pair, query by query.

    ``cat``: the encoder's last [CLS]; ``dot``: the query's vector and the passage's, concatenated, or with ``vector``
    "passage" the latter alone. Raises EvenrankError for a ranker without an encoder, and for ``cat`` with "passage".
    """
    if isinstance(ranker, DotRanker):
        queries, passages = ranker.embed_queries(**inputs), ranker.embed_passages(**inputs)
        mask = inputs["mask"]
        pairs = passages if vector == "passage" else torch.cat([queries[mask.nonzero()[:, 0]], passages], dim=1)
        return ranker.scores(queries, passages, mask), pairs
    if vector == "passage":
        raise EvenrankError(f"adversary.vector: a {ranker.kind} ranker has no vector of a passage alone (dot has)")
    if not isinstance(ranker, CatRanker):
        raise EvenrankError(f"a {ranker.kind} ranker has no encoder for an adversary (cat and dot have)")
    hidden: list[Tensor] = []
    encoder = ranker.model[0].model.base_model
    hook = encoder.register_forward_hook(lambda _module, _inputs, output: hidden.append(output[0][:, 0]))
    try:
        scores = ranker(**inputs)
    finally:
        hook.remove()
    return scores, hidden[0].float()


class AdversarialRanker(Ranker):
    """A ranker trained together with its adversary; everything else is delegated to the ranker.

    While training, :meth:`forward` also returns the adversary's loss (cross-entropy over the batch's pairs), whose
    gradient is reversed before it reaches the encoder: one backward pass of the sum trains both.

    ``scoring``: which texts are gendered; None if the lists say it of each passage (``CandidateLists.gendered``), of
    which the loss leaves out those that are unknown; queries have no label. ``vector``: what the adversary sees of a
    pair of ``dot``; of a passage alone, the query's words do not count.
    """

    def __init__(
        self,
        ranker: Ranker,
        scoring: Scoring | None,
        *,
        label: Label = "neutrality",
        vector: Vector = "pair",
        factor: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Raises EvenrankError for a ranker without an encoder."""
        super().__init__()
        self.ranker = ranker
        self.scoring = scoring
        self.label = label
        self.vector = vector
        self.factor = factor
        self.kind = ranker.kind  # type: ignore[misc]
        self.adversary = Adversary(_vector_size(ranker, vector), seed)
        self.eval()

    def encode(self, groups: CandidateLists) -> Inputs:
        """The ranker's own tensors, and ``gendered`` [pairs]: bool, or by label int8, −1 for an unknown passage.

        Raises EvenrankError if neither the texts nor the lists say it.
        """
        if self.scoring is None:
            if groups.gendered is None:
                raise EvenrankError("an adversary by labels needs lists that say which passages are gendered")
            return {**self.ranker.encode(groups), "gendered": groups.gendered[groups.mask]}
        texts = pl.Series([text for row in groups.passages for text in row], dtype=pl.String)
        is_gendered = gendered(texts, self.scoring, self.label)
        if self.vector == "pair":
            query = gendered(pl.Series(groups.queries, dtype=pl.String), self.scoring, self.label)
            is_gendered |= np.repeat(query, [len(row) for row in groups.passages])
        return {**self.ranker.encode(groups), "gendered": torch.from_numpy(is_gendered)}

    def forward(self, **inputs: Tensor) -> Any:
        """Scores [B, K]; while training, scores and the adversary's loss (−1 in ``gendered``: an ignored pair)."""
        labels = inputs.pop("gendered", None)
        if not self.training or labels is None:
            return self.ranker(**inputs)
        scores, vectors = scores_and_vectors(self.ranker, inputs, self.vector)
        logits = self.adversary(reverse_gradient(vectors, self.factor))
        # A batch may consist of ignored pairs, whose mean is undefined.
        total = functional.cross_entropy(logits, labels.long(), ignore_index=-1, reduction="sum")
        return scores, total / (labels.long() >= 0).sum().clamp(min=1)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the ranker alone."""
        self.ranker.save(folder)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Ranker:
        """Always raises EvenrankError: only the ranker is saved."""
        raise EvenrankError(f"{os.fspath(folder)}: load the ranker itself")

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        """Delegated to the ranker."""
        return self.ranker.reads_to(queries, passages)

    @property
    def loss_scale(self) -> float:
        """Delegated to the ranker."""
        return self.ranker.loss_scale

    @property
    def keeps_vectors(self) -> bool:
        """Delegated to the ranker."""
        return self.ranker.keeps_vectors

    def score(self, queries: Sequence[str], passages: Sequence[str], batch_size: int = 32) -> Tensor:
        """Delegated to the ranker."""
        return self.ranker.score(queries, passages, batch_size)

    def parameter_groups(self) -> dict[str, list[nn.Parameter]]:
        """The ranker's, and ``adversary``."""
        return {**self.ranker.parameter_groups(), "adversary": list(self.adversary.parameters())}


def _vector_size(ranker: Ranker, vector: Vector) -> int:
    with torch.no_grad():
        return scores_and_vectors(ranker, ranker.encode(CandidateLists(["a"], [["b"]])), vector)[1].shape[1]


# --- what remains -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Leakage:
    """How well an adversary recognises gendered pairs: balanced accuracy (½ is chance) with its 95% interval."""

    balanced_accuracy: float
    ci95: tuple[float, float]
    pairs: int
    queries: int
    unknown: int = 0
    """Pairs left out, of whose passage nothing is known."""


@torch.inference_mode()
def pair_vectors(
    ranker: Ranker, queries: Sequence[str], passages: Sequence[str], vector: Vector = "pair", batch_size: int = 64
) -> Tensor:
    """The vector [pairs, H] of each pair, without training the encoder."""
    training = ranker.training
    ranker.eval()
    device = next(ranker.parameters()).device
    parts = []
    for start in range(0, len(queries), batch_size):
        rows = slice(start, start + batch_size)
        inputs = ranker.encode(CandidateLists(queries[rows], [[passage] for passage in passages[rows]]))
        inputs = {name: value.to(device) for name, value in inputs.items()}
        parts.append(scores_and_vectors(ranker, inputs, vector)[1].cpu())
    ranker.train(training)
    return torch.cat(parts)


def attack(
    ranker: Ranker,
    queries: Sequence[str],
    passages: Sequence[str],
    scoring: Scoring | Array,
    *,
    label: Label = "neutrality",
    vector: Vector = "pair",
    epochs: int = 100,
    seed: int = 0,
) -> Leakage:
    """Trains a fresh adversary on the vectors of a frozen ranker, and tests it on pairs of other queries.

    ``queries`` and ``passages`` [pairs]; ``scoring``: which of them are gendered by their words, or 1, 0 or −1 for each
    pair [pairs], −1 where nothing is known, which is left out. Half of the distinct queries train, half test; both
    classes weigh the same; Adam, learning rate 1e-3, on standardised vectors. The interval is over test
    queries.
    Raises EvenrankError if a half contains pairs of one class only.
    """
    unknown = 0
    if isinstance(scoring, Scoring):
        is_gendered = gendered(pl.Series(passages, dtype=pl.String), scoring, label)
        if vector == "pair":
            is_gendered |= gendered(pl.Series(queries, dtype=pl.String), scoring, label)
    else:
        known = np.flatnonzero(scoring >= 0).tolist()
        unknown, is_gendered = len(scoring) - len(known), scoring[known] > 0
        queries, passages = ([texts[row] for row in known] for texts in (queries, passages))
    names, query = np.unique(np.asarray(queries, dtype=object), return_inverse=True)
    rng = np.random.default_rng(seed)
    in_train = np.isin(query, rng.permutation(len(names))[: len(names) // 2])
    for half in (in_train, ~in_train):
        if len(np.unique(is_gendered[half])) < 2:
            raise EvenrankError("attack: one half of the queries has only gendered pairs, or none")
    vectors = pair_vectors(ranker, queries, passages, vector).clone()
    train = torch.from_numpy(in_train)
    mean, deviation = vectors[train].mean(0), vectors[train].std(0).clamp(min=1e-6)
    vectors = (vectors - mean) / deviation
    adversary = Adversary(vectors.shape[1], seed)
    target = torch.from_numpy(is_gendered).long()
    weight = len(is_gendered[in_train]) / (2 * torch.bincount(target[train], minlength=2).float())
    optimizer = torch.optim.Adam(adversary.parameters(), lr=1e-3)
    rows = np.flatnonzero(in_train)
    for _ in range(epochs):
        for batch in np.array_split(rng.permutation(rows), max(1, len(rows) // 64)):
            optimizer.zero_grad()
            loss = functional.cross_entropy(adversary(vectors[batch]), target[batch], weight=weight)
            torch.autograd.backward(loss)
            optimizer.step()
    with torch.no_grad():
        predicted = adversary(vectors[~train]).argmax(1).numpy().astype(bool)
    return replace(_leakage(predicted, is_gendered[~in_train], query[~in_train]), unknown=unknown)


def _leakage(predicted: Array, found: Array, query: Array) -> Leakage:
    """Balanced accuracy of predictions [N] with an interval over queries."""
    right, (plain, positive) = predicted == found, (~found, found)
    accuracy = float(right[plain].mean() + right[positive].mean()) / 2
    # Each pair's part in the two shares: their mean is the accuracy, and their spread that of its error.
    share = np.where(found, right[positive].mean(), right[plain].mean())
    parts = accuracy + (right - share) * len(found) / 2 / np.where(found, positive.sum(), plain.sum())
    ends = estimate(linearized_means(parts, query)).ci95 or (accuracy, accuracy)
    return Leakage(accuracy, (max(0.0, ends[0]), min(1.0, ends[1])), len(found), len(np.unique(query)))
