"""The ranker ``sparse``: weights of a vocabulary's terms, as SPLADE gives them, and their inner product.

Formal, Piwowarski & Clinchant, SIGIR 2021, "SPLADE", with the maximum over tokens of Formal et al. 2021 ("SPLADE v2"):
the weight of a term t in a text is max_i log(1 + relu(logit_it)) over its tokens i, and a score is the inner product of
the weights of query and passage.

The query's weights are those of the encoder that training starts from, and stay: each query is encoded once, only the
passage side learns, and only the query's terms are computed of a passage, so that a step takes little more memory than
one of a bi-encoder of that size.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import torch
from torch import Tensor, nn

from evenrank import options as opt
from evenrank.files import EvenrankError
from evenrank.files.arguments import checked

from .encoders import EncoderRanker, reads_to, set_lengths, tokenise, trimmed
from .protocol import CandidateLists, Inputs

if TYPE_CHECKING:
    from sentence_transformers import SparseEncoder

_BATCH = 64
_PAIRS = 256
_PASSAGE = "passage_"


class SparseRanker(EncoderRanker):
    """The inner product of term weights; the passage side is trained, the query side stays as it is.

    :meth:`save` writes a folder of sentence-transformers' ``SparseEncoder`` with an encoder for each side, which gives
    the same scores; so does :func:`evenrank.rerank`, which computes every term of the vocabulary.

    For example:

        ranker = SparseRanker.from_pretrained("naver/splade-v3-distilbert", passage_length=256)
        evenrank.train(ranker, lists, learning_rate=2e-5, learning_rates={"embeddings": 0.0}, out="runs/sparse")
    """

    kind = "sparse"

    def __init__(self, model: SparseEncoder) -> None:
        """A ranker around a SparseEncoder with the inner product, whose passage side is SPLADE with the maximum.

        Raises EvenrankError for any other.
        """
        from sentence_transformers import SparseEncoder
        from sentence_transformers.base.modules import Router

        super().__init__()
        if not isinstance(model[0], Router):
            sides = [copy.deepcopy(list(model)), list(model)]
            settings = {"similarity_fn_name": model.similarity_fn_name, "prompts": model.prompts}
            model = SparseEncoder(modules=[Router.for_query_document(*sides)], device="cpu", **settings)
        self.model = model
        query, passage = (model[0].sub_modules[side] for side in ("query", "document"))
        self._check(passage)
        self._encoder = passage[0]
        self._terms = passage[0].model.get_output_embeddings()
        self._twice = passage[-1].activation_function == "log1p_relu"
        query.requires_grad_(False)
        for name, parameter in passage.named_parameters():
            if ".pooler." in name:
                parameter.requires_grad_(False)
        self._queries: dict[str, tuple[Tensor, Tensor, bool]] = {}
        self.prompts = {"query": model.prompts.get("query") or "", "document": model.prompts.get("document") or ""}
        self.eval()

    def _check(self, passage: Any) -> None:
        from sentence_transformers.sparse_encoder.modules import SpladePooling

        pooled = isinstance(passage[-1], SpladePooling) and passage[-1].pooling_strategy == "max"
        if len(passage) != 2 or not pooled or self.model.similarity_fn_name != "dot":
            raise EvenrankError("a sparse ranker needs SPLADE with the maximum over tokens and the inner product")

    @classmethod
    @checked
    def from_pretrained(
        cls,
        model: str | os.PathLike[str],
        *,
        query_length: Annotated[int | None, opt.COUNT] = None,
        passage_length: Annotated[int | None, opt.COUNT] = None,
    ) -> SparseRanker:
        """A ranker that starts from a SPLADE model: a folder, or a name on the hub.

        ``query_length``, ``passage_length``: in tokens (default: as the model reads). Raises EvenrankError for a
        setting out of range or an unknown name; InputError for a folder without weights or with another kind of model.
        """
        lengths = {"query_length": query_length, "passage_length": passage_length}
        ranker = cls.load(model)
        return ranker._note(os.fspath(model), set_lengths(ranker.model, lengths))

    @property
    def keeps_vectors(self) -> bool:
        """Each query is encoded once."""
        return True

    def train(self, mode: bool = True) -> SparseRanker:
        """Sets training or evaluation; the query side stays in evaluation."""
        super().train(mode)
        self.model[0].sub_modules["query"].eval()
        return self

    def encode(self, lists: CandidateLists) -> Inputs:
        """``query_terms`` and ``query_weights`` [B, T], ``passage_input_ids`` and so on [ΣK_b, L], and ``mask`` [B, K].

        T is the largest number of terms of a query; weights of 0 pad the others. ``query_cut`` [B] and ``passage_cut``
        [ΣK_b] bool: truncated texts.
        """
        return {
            **self._query_inputs(lists.queries),
            **self._passage_inputs([text for row in lists.passages for text in row]),
            "mask": lists.mask,
        }

    def _query_inputs(self, queries: Sequence[str]) -> Inputs:
        new = [query for query in dict.fromkeys(queries) if query not in self._queries]
        for start in range(0, len(new), _BATCH):
            self._queries |= self._weights(new[start : start + _BATCH])
        if not queries:
            return {}
        terms, weights, cut = zip(*(self._queries[query] for query in queries), strict=True)
        return {
            "query_terms": nn.utils.rnn.pad_sequence(list(terms), batch_first=True),
            "query_weights": nn.utils.rnn.pad_sequence(list(weights), batch_first=True),
            "query_cut": torch.tensor(cut),
        }

    @torch.no_grad()
    def _weights(self, queries: list[str]) -> dict[str, tuple[Tensor, Tensor, bool]]:
        """By query its terms and their weights above 0, and whether it was cut."""
        device = next(self.parameters()).device
        tokens = tokenise(self.model, queries, self.prompts["query"], task="query")
        # Weights of words read every word.
        cut = tokens.pop("cut", torch.zeros(len(queries), dtype=torch.bool)).tolist()
        with torch.autocast(device.type, enabled=False):
            inputs = {name: value.to(device) for name, value in tokens.items()}
            for part in self.model[0].sub_modules["query"]:
                inputs = part.eval()(inputs)
        encoded = {}
        for query, row, was_cut in zip(queries, inputs["sentence_embedding"].float().cpu(), cut, strict=True):
            terms = row.nonzero()[:, 0]
            encoded[query] = terms, row[terms], was_cut
        return encoded

    def _passage_inputs(self, passages: Sequence[str]) -> Inputs:
        tokens = tokenise(self.model, passages, self.prompts["document"], task="document")
        return {_PASSAGE + name: value for name, value in tokens.items()}

    def forward(self, **inputs: Tensor) -> Tensor:
        """Scores [B, K], float32."""
        mask = inputs["mask"]
        scores = torch.zeros(mask.shape, device=mask.device)
        if _PASSAGE + "input_ids" not in inputs:
            return scores
        hidden, read = self._hidden(inputs)
        # Pairs are ordered by query, as the True values of the mask are.
        query, passage = mask.nonzero()[:, 0], torch.arange(len(hidden), device=hidden.device)
        products = self._products(hidden, read, passage, inputs["query_terms"][query], inputs["query_weights"][query])
        return scores.masked_scatter(mask, products)

    def _hidden(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """What the logits of passages' tokens are a linear function of [P, L, H], and which tokens [P, L] are read."""
        own = trimmed(inputs, _PASSAGE)
        with _left_out(self._terms):
            hidden = self._encoder(own)
        return hidden["token_embeddings"].float(), own["attention_mask"].bool()

    def _products(self, hidden: Tensor, read: Tensor, passage: Tensor, terms: Tensor, weights: Tensor) -> Tensor:
        """The scores [N] of pairs of the passages with these numbers and of queries' terms and weights [N, T]."""
        logits = torch.bmm(hidden[passage], self._terms.weight[terms].float().transpose(1, 2))
        if self._terms.bias is not None:
            logits = logits + self._terms.bias[terms].float()[:, None]
        # What is masked counts as 0, as where no token names the term.
        in_passage = logits.relu().masked_fill(~read[passage][:, :, None], 0).amax(1).log1p()
        return ((in_passage.log1p() if self._twice else in_passage) * weights).sum(1)

    @torch.inference_mode()
    def score(self, queries: Sequence[str], passages: Sequence[str], batch_size: int = 32) -> Tensor:
        """Scores [pairs], computed on the ranker's device; each distinct text is encoded once."""
        if not queries:
            return torch.empty(0)
        training, device = self.training, next(self.parameters()).device
        self.eval()
        query_row = {query: row for row, query in enumerate(dict.fromkeys(queries))}
        known = self._query_inputs(list(query_row))
        terms, weights = known["query_terms"].to(device), known["query_weights"].to(device)
        distinct = sorted(set(passages), key=lambda text: (-len(text), text))
        pairs: dict[str, list[int]] = {text: [] for text in distinct}
        for pair, text in enumerate(passages):
            pairs[text].append(pair)
        scores = torch.empty(len(queries))
        for start in range(0, len(distinct), batch_size):
            texts = distinct[start : start + batch_size]
            inputs = {name: value.to(device) for name, value in self._passage_inputs(texts).items()}
            hidden, read = self._hidden(inputs)
            rows = [(pair, number) for number, text in enumerate(texts) for pair in pairs[text]]
            for at in range(0, len(rows), _PAIRS):
                part = rows[at : at + _PAIRS]
                query = torch.tensor([query_row[queries[pair]] for pair, _ in part], device=device)
                passage = torch.tensor([number for _, number in part], device=device)
                products = self._products(hidden, read, passage, terms[query], weights[query])
                scores[[pair for pair, _ in part]] = products.cpu()
        self.train(training)
        return scores

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int]:
        """How many characters of each passage [pairs] are read."""
        return reads_to(self.model, passages, self.prompts["document"], task="document")


@contextmanager
def _left_out(layer: nn.Module) -> Iterator[None]:
    """A layer gives its input as it is: the encoder's words are computed for a query's terms alone."""
    layer.forward = lambda values: values
    try:
        yield
    finally:
        del layer.forward
