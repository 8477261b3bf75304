"""The scores of models of sentence-transformers: of whole pairs, or the similarity of vectors."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

import numpy as np

from evenrank.files import EvenrankError, arg

from .scorers import Rows, Scorer, Scores, TextPairs, Truncation, TruncationCounter, is_static, max_tokens, token_counts

if TYPE_CHECKING:
    import torch
    from scipy.sparse import csr_matrix
    from sentence_transformers import CrossEncoder, MultiVectorEncoder, SentenceTransformer, SparseEncoder

    from .encoders import DotRanker
    from .scorers import Model

# Similarities computed at once.
_SIMILARITIES = 1 << 14
# Batches whose passages' vectors are kept at once, if they are large.
_BATCHES = 16
_PASSAGE_PROMPTS = ("document", "passage", "corpus")
Vectors = TypeVar("Vectors")


def two_prompts() -> EvenrankError:
    """The error for a prompt of documents beside that of queries."""
    return EvenrankError(
        f"{arg.document_prompt}: a cross-encoder has one prompt, {arg.query_prompt}, before the whole pair"
    )


class EncoderScorer(Scorer):
    """What the models of sentence-transformers share: prompts, how far they read, what they cut.

    ``query_prompt``, ``document_prompt``: in place of those in the model's configuration. ``backend``, ``precision``:
    how it computes, if not as PyTorch does in the type of its weights.
    """

    backend = "torch"
    precision: str | None = None
    _counts: Literal["passage", "pair"] = "passage"

    def __init__(
        self, model: Model, name: str, query_prompt: str | None = None, document_prompt: str | None = None
    ) -> None:
        super().__init__(name)
        self.model = model
        self.query_prompt = self._prompt(("query",)) if query_prompt is None else query_prompt
        self.document_prompt = self._prompt(_PASSAGE_PROMPTS) if document_prompt is None else document_prompt
        self.reads = max_tokens(model)
        self.truncated = Truncation(self._counts, self.reads)

    def tokens(self, texts: Sequence[str]) -> list[int] | None:
        return token_counts(self.model, texts) if texts else []

    def _prompt(self, names: Sequence[str]) -> str:
        """The prompt of the model's configuration that sentence-transformers would take."""
        prompts = self.model.prompts or {}
        name = next((name for name in names if name in prompts), self.model.default_prompt_name)
        return prompts.get(name) or ""

    def facts(self) -> dict[str, object]:
        precision = self.precision or _precision(self.model)
        return {
            **super().facts(),
            "query_prompt": self.query_prompt or None,
            "document_prompt": self.document_prompt or None,
            "reads": self.reads,
            "precision": precision,
            "backend": self.backend,
            "device": str(self.model.device),
        }

    def watched(self, compute: Callable[[], Vectors]) -> Vectors:
        """What ``compute`` gives, with what the model cuts meanwhile counted and its mode left as it was."""
        counter, training = TruncationCounter(), self.model.training
        with counter.watching(self.model):
            found = compute()
        self.model.train(training)
        if not counter.known:
            self.truncated = None
        elif self.truncated is not None:
            self.truncated = self.truncated.plus(counter.cut, counter.of, counter.lost_end)
        return found


class CrossEncoderScorer(EncoderScorer):
    """The logits of a cross-encoder, or the difference of two logits of a causal language model.

    Its one prompt, an instruction, precedes the query of a pair; in a chat template it is the system's message.
    """

    model: CrossEncoder
    _counts = "pair"

    def __init__(self, model: CrossEncoder, name: str, query_prompt: str | None = None) -> None:
        super().__init__(model, name, query_prompt)

    def _prompt(self, names: Sequence[str]) -> str:
        return super()._prompt(())

    def facts(self) -> dict[str, object]:
        from .stored import is_causal

        facts = super().facts() | {"kind": "causal language model" if is_causal(self.model) else "cross-encoder"}
        del facts["document_prompt"]
        return facts

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        from torch.nn import Identity

        from .export import pair_scores, scores_pairs

        def score(rows: Rows) -> Scores:
            texts = list(zip(*pairs.texts(rows), strict=True))
            if scores_pairs(self.model):
                scores = self.watched(lambda: pair_scores(self.model, texts, self.query_prompt, batch_size))
                return np.asarray(scores, np.float64)
            # predict sorts its pairs by length, pads each batch to its longest and works in inference mode.
            scores = self.watched(
                lambda: self.model.predict(
                    texts,
                    prompt=self.query_prompt,
                    batch_size=batch_size,
                    activation_fn=Identity(),
                    show_progress_bar=self.progress_bar,
                )
            )
            return np.asarray(scores, np.float64)

        return score

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        from .encoders import gives_offsets, reads_to

        # A chat template's offsets are those of the text that it makes.
        if "message" in self.model.modalities or not gives_offsets(self.model, ["a", "a"]):
            return None
        return reads_to(self.model, [list(pair) for pair in zip(queries, passages, strict=True)], self.query_prompt)


class VectorScorer(EncoderScorer, Generic[Vectors]):
    """A model's own similarity of the vectors of query and passage; each text is encoded once.

    ``large``: whether vectors are so large that those of few passages are kept at a time.
    """

    unit = "document"
    kind = ""
    large = True

    @abstractmethod
    def queries(self, texts: list[str], batch_size: int) -> Vectors:
        """The vectors of queries, in at least float32."""

    @abstractmethod
    def passages(self, texts: list[str], batch_size: int) -> Vectors:
        """The vectors of passages, in at least float32."""

    @abstractmethod
    def similarities(self, queries: Vectors, query: Rows, passages: Vectors, passage: Rows) -> Scores:
        """The similarities of the vectors ``queries[query[i]]`` and ``passages[passage[i]]``."""

    def facts(self) -> dict[str, object]:
        return super().facts() | {"kind": self.kind, "similarity": self.model.similarity_fn_name}

    def bind(self, pairs: TextPairs, batch_size: int) -> Callable[[Rows], Scores]:
        from torch import inference_mode

        training = self.model.training
        queries = self.queries(pairs.queries.to_list(), batch_size)
        self.model.train(training)

        def score(rows: Rows) -> Scores:
            distinct, place = np.unique(pairs.document[rows], return_inverse=True)
            scores = np.empty(len(rows))
            for start, stop in self._pieces(len(distinct), batch_size):
                texts = pairs.documents.gather(distinct[start:stop]).to_list()
                passages = self.watched(lambda texts=texts: self.passages(texts, batch_size))  # type: ignore[misc]
                inside = np.flatnonzero((place >= start) & (place < stop))
                with inference_mode():
                    for at in range(0, len(inside), _SIMILARITIES):
                        part = inside[at : at + _SIMILARITIES]
                        query, passage = pairs.query[rows[part]], place[part] - start
                        scores[part] = self.similarities(queries, query, passages, passage)
            return scores

        return score

    def _pieces(self, size: int, batch_size: int) -> list[tuple[int, int]]:
        step = _BATCHES * batch_size if self.large else max(size, 1)
        return [(start, min(start + step, size)) for start in range(0, size, step)]

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        from .encoders import gives_offsets, reads_to

        if not gives_offsets(self.model, "a", task="document"):
            return None
        return reads_to(self.model, passages, self.document_prompt, task="document")

    def _options(self, batch_size: int) -> dict[str, object]:
        return {"batch_size": batch_size, "show_progress_bar": self.progress_bar}


class BiEncoderScorer(VectorScorer["torch.Tensor"]):
    """One vector a text: a bi-encoder, or static embeddings."""

    model: SentenceTransformer
    kind = "bi-encoder"
    large = False

    def __init__(
        self, model: Model, name: str, query_prompt: str | None = None, document_prompt: str | None = None
    ) -> None:
        super().__init__(model, name, query_prompt, document_prompt)
        if is_static(self.model):
            self.kind = "static embeddings"

    def queries(self, texts: list[str], batch_size: int) -> torch.Tensor:
        options = self._options(batch_size)
        found: torch.Tensor = self.model.encode_query(
            texts, prompt=self.query_prompt, convert_to_tensor=True, **options
        )
        return found.float()

    def passages(self, texts: list[str], batch_size: int) -> torch.Tensor:
        options = self._options(batch_size)
        found: torch.Tensor = self.model.encode_document(
            texts, prompt=self.document_prompt, convert_to_tensor=True, **options
        )
        return found.float()

    def similarities(self, queries: torch.Tensor, query: Rows, passages: torch.Tensor, passage: Rows) -> Scores:
        found: Scores = self.model.similarity_pairwise(queries[query], passages[passage]).cpu().numpy()
        return found

    def reads_to(self, queries: Sequence[str], passages: Sequence[str]) -> list[int] | None:
        if self.kind != "static embeddings":
            return super().reads_to(queries, passages)
        texts = [self.document_prompt + passage for passage in passages]
        ends = (row.offsets for row in self.model.tokenizer.encode_batch(texts, add_special_tokens=False))
        whole = self.reads is None
        before = len(self.document_prompt)
        return [
            len(passage) if whole else max(0, (end[-1][1] if end else 0) - before)
            for passage, end in zip(passages, ends, strict=True)
        ]


class KeptVectorScorer(BiEncoderScorer):
    """A dot ranker with a frozen encoder: what it has encoded before, it does not encode again."""

    def __init__(self, ranker: DotRanker, name: str) -> None:
        super().__init__(ranker.model, name)
        self.ranker = ranker

    def watched(self, compute: Callable[[], Vectors]) -> Vectors:
        return compute()

    def queries(self, texts: list[str], batch_size: int) -> torch.Tensor:
        return self._embedded(self.ranker.embed_queries, texts, [[] for _ in texts])

    def passages(self, texts: list[str], batch_size: int) -> torch.Tensor:
        return self._embedded(self.ranker.embed_passages, [], [texts])

    def _embedded(
        self, embed: Callable[..., torch.Tensor], queries: list[str], passages: list[list[str]]
    ) -> torch.Tensor:
        from torch import inference_mode

        from .protocol import CandidateLists

        encoded = self.ranker.encode(CandidateLists(queries, passages))
        inputs = {name: value.to(self.model.device) for name, value in encoded.items()}
        cut = inputs.get("passage_cut")
        if cut is not None and self.truncated is not None:
            self.truncated = self.truncated.plus(int(cut.sum()), len(cut))
        with inference_mode():
            return embed(**inputs)


class SparseScorer(VectorScorer["csr_matrix"]):
    """A weight for each word of a vocabulary: SPLADE, or one without a neural network for queries."""

    model: SparseEncoder
    kind = "sparse encoder"

    def queries(self, texts: list[str], batch_size: int) -> csr_matrix:
        return self._vectors(self.model.encode_query, texts, self.query_prompt, batch_size)

    def passages(self, texts: list[str], batch_size: int) -> csr_matrix:
        return self._vectors(self.model.encode_document, texts, self.document_prompt, batch_size)

    def _vectors(self, encode: Callable[..., torch.Tensor], texts: list[str], prompt: str, size: int) -> csr_matrix:
        from scipy.sparse import csr_matrix, vstack

        # By length, as a call encodes a piece of them; what is kept is sparse.
        order = sorted(range(len(texts)), key=lambda row: -len(texts[row]))
        parts = []
        for start in range(0, len(order), _BATCHES * size):
            piece = [texts[row] for row in order[start : start + _BATCHES * size]]
            dense = encode(piece, prompt=prompt, convert_to_sparse_tensor=False, **self._options(size))
            parts.append(csr_matrix(dense.float().cpu().numpy()))
        return vstack(parts, format="csr")[np.argsort(order)].astype(np.float64)

    def similarities(self, queries: csr_matrix, query: Rows, passages: csr_matrix, passage: Rows) -> Scores:
        first, second = queries[query], passages[passage]
        name = self.model.similarity_fn_name
        if name in ("dot", "cosine"):
            dots = first.multiply(second).sum(1)
            lengths = 1.0 if name == "dot" else _lengths(first) * _lengths(second)
            return np.asarray(dots).ravel() / lengths
        apart = first - second
        distances = _lengths(apart, 0.0) if name == "euclidean" else np.asarray(abs(apart).sum(1)).ravel()
        return np.asarray(-distances)


def _lengths(rows: csr_matrix, least: float = 1e-12) -> Scores:
    found: Scores = np.sqrt(np.asarray(rows.multiply(rows).sum(1)).ravel())
    return np.maximum(found, least)


class LateScorer(VectorScorer["list[torch.Tensor]"]):
    """A vector for each token, and the sum (or mean) over the query's of the greatest similarity: MaxSim."""

    model: MultiVectorEncoder
    kind = "late interaction"

    def queries(self, texts: list[str], batch_size: int) -> list[torch.Tensor]:
        found = self.model.encode_query(texts, prompt=self.query_prompt, **self._options(batch_size))
        return [vectors.float() for vectors in found]

    def passages(self, texts: list[str], batch_size: int) -> list[torch.Tensor]:
        found = self.model.encode_document(texts, prompt=self.document_prompt, **self._options(batch_size))
        return [vectors.float() for vectors in found]

    def similarities(
        self, queries: list[torch.Tensor], query: Rows, passages: list[torch.Tensor], passage: Rows
    ) -> Scores:
        first, second = [queries[row] for row in query], [passages[row] for row in passage]
        found: Scores = self.model.similarity_pairwise(first, second).cpu().numpy()
        return found


def encoder_scorer(
    model: Model, name: str, query_prompt: str | None = None, document_prompt: str | None = None
) -> EncoderScorer:
    """The scorer of a model of sentence-transformers.

    Raises EvenrankError for a cross-encoder with several scores per pair, or a prompt that it has no place for.
    """
    from sentence_transformers import CrossEncoder, MultiVectorEncoder, SparseEncoder

    if isinstance(model, CrossEncoder):
        if document_prompt is not None:
            raise two_prompts()
        if model.num_labels != 1:
            raise EvenrankError(
                f"{arg.model}: expected a CrossEncoder with one score per pair, found {model.num_labels}"
            )
        return CrossEncoderScorer(model, name, query_prompt)
    if isinstance(model, SparseEncoder):
        return SparseScorer(model, name, query_prompt, document_prompt)
    scorer = LateScorer if isinstance(model, MultiVectorEncoder) else BiEncoderScorer
    return scorer(model, name, query_prompt, document_prompt)


def _precision(model: Model) -> str:
    """The type of the largest weights: others may be kept in another."""
    largest = max(model.parameters(), key=lambda one: one.numel(), default=None)
    return "float32" if largest is None else str(largest.dtype).removeprefix("torch.")
