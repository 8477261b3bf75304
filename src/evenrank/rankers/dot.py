"""The bi-encoder: query and passage are encoded separately.

Karpukhin et al. 2020 (DPR); Hofstätter et al., ECIR 2021 [POS], eq. 3.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor

from evenrank.io import EvenrankError, InputError
from evenrank.io.errors import quoted

from .encoders import EncoderRanker, TokenCache, reads_to, seeded, start_encoder, tokenise
from .models import find_model, load_encoder
from .protocol import CandidateLists, Inputs

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Module

Pooling = Literal["cls", "mean"]
Similarity = Literal["dot", "cosine"]
_QUERY, _PASSAGE = "query_", "passage_"
_TASKS = {_QUERY: "query", _PASSAGE: "document"}
# The prompts of a loaded model, in the order in which sentence-transformers takes the first that there is.
_PROMPTS = {_QUERY: ("query",), _PASSAGE: ("document", "passage", "corpus")}


class DotRanker(EncoderRanker):
    """The inner product of a query's vector and a passage's, from one encoder or from two (towers).

    A vector is the encoder's output at [CLS] or the mean over the tokens, optionally projected by a linear layer, and
    normalised if the similarity is the cosine, so that a score is always an inner product. :meth:`save` writes a folder
    of sentence-transformers' ``SentenceTransformer`` (with its ``Router`` for two encoders), whose ``encode_query`` and
    ``encode_document`` return the vectors.
    """

    kind = "dot"

    def __init__(self, model: SentenceTransformer) -> None:
        """A ranker around a SentenceTransformer whose similarity is the inner product or the cosine."""
        from sentence_transformers.base.modules import Normalize

        super().__init__()
        similarity = model.similarity_fn_name
        if similarity not in ("dot", "cosine"):
            raise EvenrankError(f"`similarity`: expected dot or cosine, found {quoted(similarity)}")
        if similarity == "cosine" and not isinstance(model[-1], Normalize):
            model.append(Normalize())
        self.model = model
        self._tokens: dict[str, TokenCache] = {}
        self.prompts = {
            side: next((model.prompts[name] for name in names if name in model.prompts), "")
            for side, names in _PROMPTS.items()
        }
        if any(self.prompts.values()) and not all(getattr(part, "include_prompt", True) for part in model.modules()):
            raise EvenrankError("a model that leaves its prompt out of the mean is not supported")
        for name, parameter in model.named_parameters():
            # BERT's pooler is for another task, and no vector depends on it.
            if ".pooler." in name:
                parameter.requires_grad_(False)
        self.eval()

    @classmethod
    def from_pretrained(
        cls,
        model: str,
        *,
        passage_model: str | None = None,
        shared: bool = True,
        pooling: Pooling = "cls",
        projection: int | None = None,
        similarity: Similarity = "dot",
        layers: int | None = None,
        query_length: int = 100,
        passage_length: int = 100,
        seed: int = 0,
    ) -> DotRanker:
        """A ranker that starts from a checkpoint: a folder, or a name on the hub.

        Queries and passages share one encoder, unless ``shared`` is False (two copies) or ``passage_model`` is set.
        ``projection``: output size d of a linear layer after pooling, one per encoder; ``layers``: the number of layers
        kept, from the first; ``query_length``, ``passage_length``: in tokens; ``seed``: for weights missing from the
        checkpoint. Raises EvenrankError for a setting out of range, an unknown name, or encoders whose vectors differ
        in size; InputError for a folder without weights.
        """
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.base.modules import Router

        if pooling not in ("cls", "mean"):
            raise EvenrankError(f"`pooling`: expected cls or mean, found {quoted(pooling)}")
        if projection is not None and projection < 1:
            raise EvenrankError(f"`projection`: expected 1 or more, found {projection}")
        if query_length < 1 or passage_length < 1:
            raise EvenrankError(
                f"`query_length` and `passage_length`: expected 1 or more, found {min(query_length, passage_length)}"
            )
        lengths = {"query_length": query_length, "document_length": passage_length}
        with seeded(seed):
            modules = [_tower(model, pooling, projection, layers, lengths)]
            if passage_model is not None or not shared:
                modules.append(_tower(passage_model or model, pooling, projection, layers, lengths))
        sizes = [tower[-1].get_embedding_dimension() for tower in modules]
        if len(set(sizes)) > 1:
            raise EvenrankError(f"vectors of {sizes[0]} and {sizes[1]} numbers: project both to one size")
        whole = modules[0] if len(modules) == 1 else [Router.for_query_document(*modules)]
        return cls(SentenceTransformer(modules=whole, similarity_fn_name=similarity, device="cpu"))

    def encode(self, lists: CandidateLists) -> Inputs:
        """``query_input_ids`` and so on [B, L], ``passage_input_ids`` and so on [ΣK_b, L'], and ``mask`` [B, K].

        Passages are ordered by query. ``query_cut`` [B] and ``passage_cut`` [ΣK_b] bool: truncated texts.
        """
        texts = {_QUERY: lists.queries, _PASSAGE: [text for row in lists.passages for text in row]}
        inputs = {
            side + name: value
            for side, side_texts in texts.items()
            for name, value in self._tokenise(side, side_texts).items()
        }
        return {**inputs, "mask": lists.mask}

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        """How many characters of each passage [pairs] are read."""
        return reads_to(self.model, passages, self.prompts[_PASSAGE], task=_TASKS[_PASSAGE])

    def forward(self, **inputs: Tensor) -> Tensor:
        """Scores [B, K], float32; without ``mask``, the vectors [B + ΣK_b, d] of the given texts.

        Cached gradients use the second form, so that a wrapper around this module sees every forward pass.
        """
        mask = inputs.pop("mask", None)
        vectors = [self._embed(side, inputs) for side in (_QUERY, _PASSAGE) if side + "input_ids" in inputs]
        if mask is None:
            return torch.cat(vectors)
        return self.scores(vectors[0], vectors[1], mask) if len(vectors) == 2 else torch.zeros(mask.shape)

    def scores(self, queries: Tensor, passages: Tensor, mask: Tensor) -> Tensor:
        """Scores [B, K] of the vectors of queries [B, d] and passages [ΣK_b, d]; 0 where ``mask`` [B, K] is False."""
        products = (queries[mask.nonzero()[:, 0]] * passages).sum(1)
        return torch.zeros(mask.shape, device=mask.device).masked_scatter(mask, products)

    def embed_queries(self, **inputs: Tensor) -> Tensor:
        """The vectors [B, d] of the queries, given as the ``query_…`` tensors of :meth:`encode`."""
        return self._embed(_QUERY, inputs)

    def embed_passages(self, **inputs: Tensor) -> Tensor:
        """The vectors [ΣK_b, d] of the passages, given as the ``passage_…`` tensors of :meth:`encode`."""
        return self._embed(_PASSAGE, inputs)

    @torch.inference_mode()
    def score(self, queries: Sequence[str], passages: Sequence[str], batch_size: int = 32) -> Tensor:
        """Scores [pairs], computed on the ranker's device; each distinct text is encoded once."""
        training = self.training
        self.eval()
        query_vectors, query = self._vectors(_QUERY, queries, batch_size)
        passage_vectors, passage = self._vectors(_PASSAGE, passages, batch_size)
        self.train(training)
        steps = [slice(start, start + (1 << 14)) for start in range(0, len(query), 1 << 14)]
        products = [(query_vectors[query[part]] * passage_vectors[passage[part]]).sum(1) for part in steps]
        return torch.cat(products).cpu() if products else torch.empty(0)

    def _vectors(self, side: str, texts: Sequence[str], batch_size: int) -> tuple[Tensor, Tensor]:
        """The vectors of the distinct texts, encoded in batches sorted by length, and the row [texts] of each text."""
        rows = {text: row for row, text in enumerate(sorted(set(texts), key=lambda text: (-len(text), text)))}
        distinct = list(rows)
        device = next(self.parameters()).device
        vectors = []
        for start in range(0, len(distinct), batch_size):
            inputs = self._tokenise(side, distinct[start : start + batch_size])
            vectors.append(self._embed(side, {side + name: value.to(device) for name, value in inputs.items()}))
        numbers = torch.tensor([rows[text] for text in texts], device=device, dtype=torch.long)
        return torch.cat(vectors) if vectors else torch.empty(0, 0), numbers

    def _tokenise(self, side: str, texts: Sequence[str]) -> Inputs:
        if side in self._tokens:
            return self._tokens[side](texts)
        return tokenise(self.model, texts, self.prompts[side], task=_TASKS[side])

    def keep_tokens(self) -> None:
        """From now on each text is tokenised once."""
        self._tokens = {side: TokenCache(self.model, self.prompts[side], task) for side, task in _TASKS.items()}

    def _embed(self, side: str, inputs: Inputs) -> Tensor:
        own = {name.removeprefix(side): value for name, value in inputs.items() if name.startswith(side)}
        own.pop("cut", None)
        # Part of a batch may be shorter than the whole.
        length = int(own["attention_mask"].any(0).nonzero().max()) + 1
        trimmed = {name: value[:, :length] for name, value in own.items()}
        return self.model(trimmed, task=_TASKS[side])["sentence_embedding"].float()  # type: ignore[no-any-return]

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> DotRanker:
        """A ranker from a folder of :meth:`save`, or of another SentenceTransformer with inner product or cosine.

        Raises InputError for a folder without weights or with another kind of model.
        """
        found = find_model(os.fspath(folder))
        if found.architecture != "bi":
            raise InputError(found.path, f"expected a bi-encoder, found a {found.architecture} model")
        try:
            return cls(load_encoder(found, "float32", "cpu"))
        except InputError:
            raise
        except EvenrankError as error:
            raise InputError(found.path, str(error)) from None


def _tower(
    model: str, pooling: Pooling, projection: int | None, layers: int | None, lengths: dict[str, int]
) -> list[Module]:
    """The modules of one encoder."""
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.modules import Pooling as Pool

    encoder = start_encoder(model, "feature-extraction", layers, max(lengths.values()), **lengths)
    # No longer than the model has positions.
    for name, length in lengths.items():
        setattr(encoder, name, min(length, encoder.tokenizer.model_max_length))
    size = encoder.get_embedding_dimension()
    modules = [encoder, Pool(size, pooling)]
    return [*modules, Dense(size, projection, activation_function=None)] if projection is not None else modules
