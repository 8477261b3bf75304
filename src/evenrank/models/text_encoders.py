"""Models that encode each text by itself, as a vector or as weights of a vocabulary's terms."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenrank.files import EvenrankError
from evenrank.files.errors import arg, quoted, require_neural

from .load import ModelFolder, find_model, load_folder, load_ranker
from .scorers import BiEncoderScorer, Scorer, SparseScorer, Truncation

if TYPE_CHECKING:
    import torch
    from scipy.sparse import csr_matrix

Vectors = NDArray[np.float32]
Encoded: TypeAlias = "Vectors | csr_matrix"
"""A vector [texts, d] or the weights of terms [texts, terms] of each text."""
_KINDS = ("bi", "sparse")


class TextEncoder:
    """Encodes queries and documents with a model of sentence-transformers, in float32.

    ``sparse``: rows are weights of terms rather than vectors. The similarity is the inner product; where it is the
    cosine, rows have length 1. ``path``: where the model came from (None: it was given, loaded). Raises EvenrankError
    for a model that does not encode texts by themselves, or whose similarity is another.
    """

    def __init__(self, scorer: Scorer, batch_size: int = 32, path: str | None = None) -> None:
        place = scorer.name if path is None else path
        if not isinstance(scorer, BiEncoderScorer | SparseScorer):
            kind = scorer.facts()["kind"]
            raise EvenrankError(
                f"{place}: a {kind} gives no vector of a text alone, so that it cannot be indexed: re-rank with it"
            )
        self._scorer, self._batch_size, self._path = scorer, batch_size, path
        self.name = scorer.name
        self.sparse = isinstance(scorer, SparseScorer)
        similarity = scorer.model.similarity_fn_name
        if similarity not in ("cosine", "dot"):
            raise EvenrankError(f"{place}: expected a model with the similarity dot or cosine, found {similarity}")
        self._cosine = similarity == "cosine"

    @property
    def query_prompt(self) -> str:
        """What is put before each query."""
        return self._scorer.query_prompt

    @property
    def truncated(self) -> Truncation | None:
        """How many of the documents so far were longer than what the model reads; None if that is not known."""
        return self._scorer.truncated

    def queries(self, texts: Sequence[str]) -> Encoded:
        """The vectors [texts, d] or weights [texts, terms] of queries."""
        return self._rows(self._scorer.queries(list(texts), self._batch_size))

    def documents(self, texts: Sequence[str]) -> Encoded:
        """The vectors [texts, d] or weights [texts, terms] of documents; counts those that are truncated."""
        return self._rows(self._scorer.passages(list(texts), self._batch_size))

    def reads_to(self, texts: Sequence[str]) -> list[int] | None:
        """How many characters of each document the model reads before it truncates; None if unknown."""
        return self._scorer.reads_to([""] * len(texts), list(texts))

    def facts(self) -> dict[str, object]:
        """What the model is (see :meth:`Scorer.facts`), and its ``path``."""
        return {**self._scorer.facts(), "path": self._path}

    def _rows(self, found: torch.Tensor | csr_matrix) -> Encoded:
        from scipy.sparse import csr_matrix, diags_array

        if self.sparse:
            if self._cosine:
                lengths = np.sqrt(np.asarray(found.multiply(found).sum(1)).ravel())
                found = csr_matrix(diags_array(1 / np.maximum(lengths, 1e-12)) @ found)
            rows = csr_matrix(found, dtype=np.float32)
            rows.eliminate_zeros()
            rows.sort_indices()
            return rows
        vectors: Vectors = found.cpu().numpy()
        if self._cosine:
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), np.float32(1e-12))
        return vectors


@dataclass(frozen=True, slots=True)
class StoredEncoder:
    """An encoder that is found but not loaded.

    ``path``: the folder, absolute, or the name on the hub; ``sha256``: of the files that loading reads;
    ``settings``: of :func:`load_folder`.
    """

    folder: ModelFolder
    path: str
    sha256: str
    settings: Mapping[str, Any]

    @property
    def sparse(self) -> bool:
        """Whether it gives weights of terms."""
        return self.folder.architecture == "sparse"

    def load(self, batch_size: int = 32) -> TextEncoder:
        """Loads the weights. Raises InputError for a model that cannot be used."""
        return TextEncoder(load_folder(self.folder, **self.settings), batch_size, self.path)


def find_encoder(
    model: str | os.PathLike[str],
    kind: str | None = None,
    *,
    device: str | None = None,
    precision: str | None = None,
    query_prompt: str | None = None,
    document_prompt: str | None = None,
) -> StoredEncoder:
    """An encoder from a folder or a name on the hub, with its digest but without its weights.

    ``kind``: "bi" or "sparse", where the files do not tell. Raises InputError for a folder that cannot be used,
    EvenrankError for a model of another kind and for an unknown name, MissingExtraError without the extra [neural].
    """
    require_neural("an index of vectors")
    if kind not in (None, *_KINDS):
        raise EvenrankError(f"{arg.kind}: expected bi or sparse, found {quoted(kind)}")
    name = os.fspath(model)
    model_folder = find_model(name, kind)  # type: ignore[arg-type]
    if model_folder.architecture not in _KINDS:
        what = {"cross": "cross-encoder", "late": "late-interaction encoder", "kernel": "kernel ranker"}
        raise EvenrankError(
            f"{name}: a {what[model_folder.architecture]} gives no vector of a text alone, so that it cannot be"
            " indexed: re-rank with it"
        )
    path = os.path.abspath(name) if Path(name).is_dir() else name
    settings = {"device": device, "precision": precision or "auto"}
    prompts = {"query_prompt": query_prompt, "document_prompt": document_prompt}
    return StoredEncoder(model_folder, path, model_folder.digest(), settings | prompts)


def given_encoder(
    model: Any, batch_size: int = 32, *, query_prompt: str | None = None, document_prompt: str | None = None
) -> TextEncoder:
    """The encoder of a loaded model: a SentenceTransformer, a SparseEncoder or a dot ranker.

    Raises EvenrankError for anything else, MissingExtraError without the extra [neural].
    """
    require_neural("an index of vectors")
    return TextEncoder(load_ranker(model, query_prompt=query_prompt, document_prompt=document_prompt), batch_size)
