"""The cross-encoder: query and passage together through a transformer.

Nogueira & Cho 2019; Hofstätter et al., ECIR 2021 [POS], eq. 2.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from evenrank.io import InputError

from .encoders import EncoderRanker, reads_to, seeded, start_encoder, tokenise
from .models import find_model, load_encoder
from .protocol import CandidateLists, Inputs

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder


class CatRanker(EncoderRanker):
    """[CLS] query [SEP] passage [SEP] through a transformer and a head with one output, whose logit is the score.

    The head is that of ``AutoModelForSequenceClassification(num_labels=1)``: a linear layer on [CLS], after the
    architecture's own pooler if it has one (BERT: a layer with tanh; DistilBERT: a layer with ReLU; RoBERTa and
    ELECTRA: a layer in the head itself). Pairs that are too long lose tokens of the longer text. :meth:`save` writes a
    folder of sentence-transformers' ``CrossEncoder``.
    """

    kind = "cat"

    def __init__(self, model: CrossEncoder) -> None:
        """A ranker around a CrossEncoder with one score per pair; sets its activation to the identity."""
        super().__init__()
        self.model = model
        model.activation_fn = torch.nn.Identity()
        self.eval()

    @classmethod
    def from_pretrained(
        cls, model: str, *, layers: int | None = None, max_length: int = 512, seed: int = 0
    ) -> CatRanker:
        """A ranker that starts from a checkpoint: a folder, or a name on the hub.

        ``layers``: the number of layers kept, from the first; ``max_length``: tokens of a pair; ``seed``: for weights
        missing from the checkpoint, usually those of the head. Raises EvenrankError for a setting out of range or an
        unknown name; InputError for a folder without weights or with a head for several scores.
        """
        from sentence_transformers import CrossEncoder

        with seeded(seed):
            encoder = start_encoder(model, "sequence-classification", layers, max_length)
        return cls(CrossEncoder(modules=[encoder], num_labels=1, device="cpu"))

    @property
    def max_length(self) -> int:
        """The greatest number of tokens of a pair."""
        return int(self.model.max_seq_length)

    def encode(self, lists: CandidateLists) -> Inputs:
        """``input_ids`` and the other tensors [ΣK_b, L] of all pairs, query by query, and ``mask`` [B, K].

        L is the longest pair of the batch. ``cut`` [ΣK_b] bool: pairs longer than ``max_length``.
        """
        pairs = [[query, text] for query, row in zip(lists.queries, lists.passages, strict=True) for text in row]
        prompt = self.model.prompts.get(self.model.default_prompt_name)
        return {**tokenise(self.model, pairs, prompt), "mask": lists.mask}

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        """How many characters of each passage [pairs] are read; a long query leaves less room for its passage."""
        prompt = self.model.prompts.get(self.model.default_prompt_name)
        return reads_to(self.model, [[q, p] for q, p in zip(queries, passages, strict=True)], prompt)

    def forward(self, **inputs: Tensor) -> Tensor:
        """Scores [B, K], float32."""
        mask = inputs.pop("mask")
        inputs.pop("cut", None)
        scores = torch.zeros(mask.shape, device=mask.device)
        if not inputs:
            return scores
        # Pairs are ordered by query, as the True values of the mask are.
        return scores.masked_scatter(mask, self.model(inputs)["scores"].float())

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> CatRanker:
        """A ranker from a folder of :meth:`save`, or of any cross-encoder that sentence-transformers loads.

        Raises InputError for a folder without weights or with another kind of model.
        """
        found = find_model(os.fspath(folder))
        if found.architecture != "cross":
            raise InputError(found.path, f"expected a cross-encoder, found a {found.architecture} model")
        return cls(load_encoder(found, "float32", "cpu"))
