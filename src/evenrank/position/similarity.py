"""Average term similarity of a model on a collection: the call."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.engines.progress import progress
from evenrank.io import Provenance, as_batches
from evenrank.io.ranges import check_ranges

from .similarity_result import SimilarityResult
from .term_similarity import term_similarity

__all__ = ["SimilarityResult", "position_similarity"]

Encode = Callable[[list[str]], list[tuple[list[str], NDArray[np.float32]]]]


# parameters: the options of `evenrank position similarity`
def position_similarity(
    model: str,
    collection: object,
    *,
    passages: int = 2000,
    max_words: int = 200,
    min_pairs: int = 5,
    min_terms: int = 100,
    cap: int = 1000,
    batch_size: int = 32,
    device: str | None = None,
    seed: int = 0,
    quiet: bool = True,
) -> SimilarityResult:
    """ATS and MATS of a model [Hofstätter et al., ECIR 2021, §5] on a seeded sample of a collection's passages.

    ``model``: see :func:`evenrank.rankers.contextual.word_encoder`. ``collection``: a path, ``{document: text}``, or a
    frame with ``doc_id`` and ``text``. ``min_pairs``, ``min_terms``, ``cap``: see
    :func:`evenrank.position.term_similarity.term_similarity`. Memory: at most ``passages`` × ``max_words`` vectors,
    whatever the size of the collection. Raises EvenrankError for a setting out of range and for a model without
    contextual vectors.
    """
    measured = {"min_pairs": min_pairs, "min_terms": min_terms, "cap": cap}
    settings = {"passages": passages, "max_words": max_words, **measured}
    check_ranges(**settings, batch_size=batch_size, seed=seed)
    made = Provenance("evenrank.position_similarity").add_model("model", model).add("collection", collection).ahead()
    words = sampled_words(
        model,
        collection,
        passages=passages,
        max_words=max_words,
        batch_size=batch_size,
        device=device,
        seed=seed,
        quiet=quiet,
    )
    with progress("terms", int(words.terms.max(initial=-1)) + 1, quiet=quiet) as advance:
        similarity = term_similarity(
            *words.arrays,
            min_pairs=min_pairs,
            min_terms=min_terms,
            cap=cap,
            seed=seed,
            advance=advance,
        )
    inputs = {"collection": os.fspath(collection)} if isinstance(collection, str | os.PathLike) else {}
    return SimilarityResult(model, words.what, similarity, {"model": model, **inputs, **settings, "seed": seed}, made)


@dataclass(frozen=True, slots=True)
class SampledWords:
    """The words of sampled passages, each row an occurrence: its vector [N, d], term id, position and passage [N].

    Rows with the term −1 are no words. what: what the vectors are.
    """

    vectors: NDArray[np.float32]
    terms: NDArray[np.int64]
    places: NDArray[np.int64]
    passages: NDArray[np.int64]
    what: str

    @property
    def arrays(self) -> tuple[NDArray[np.float32], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The four arrays in this order."""
        return self.vectors, self.terms, self.places, self.passages


def sampled_words(
    model: str,
    collection: object,
    *,
    passages: int = 2000,
    max_words: int = 200,
    batch_size: int = 32,
    device: str | None = None,
    seed: int = 0,
    quiet: bool = True,
) -> SampledWords:
    """A model's contextual vectors of the words of a seeded sample of passages; as in :func:`position_similarity`."""
    from evenrank.rankers.contextual import sample_passages, word_encoder

    encoder = word_encoder(model, device=device, max_words=max_words)
    with progress("documents", quiet=quiet) as advance:
        batches = _counted(as_batches(collection), advance)
        texts = sample_passages(batches, passages, seed)["text"].to_list()
    with progress("passages", len(texts), quiet=quiet) as advance:
        vectors, terms = _encoded(encoder.encode, texts, max_words, batch_size, advance)
    owners, places = np.indices(terms.shape)
    return SampledWords(vectors.reshape(terms.size, -1), terms.ravel(), places.ravel(), owners.ravel(), encoder.what)


def _encoded(
    encode: Encode, texts: list[str], max_words: int, batch_size: int, advance: Callable[[int], None]
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """The vectors [N, max_words, d] of the words of N texts, and their term ids [N, max_words] from 0, −1 if none."""
    from evenrank.rankers.contextual import word_vectors

    words: list[list[str]] = [[] for _ in texts]
    vectors = np.empty((0, max_words, 0), np.float32)
    for row, (found, values) in word_vectors(encode, texts, batch_size, advance):
        if not vectors.size:
            # Room for the longest passages; pages that are never written to take no memory.
            vectors = np.empty((len(texts), max_words, values.shape[1]), np.float32)
        words[row] = found
        vectors[row, : len(found)] = values
    ids: dict[str, int] = {}
    terms = np.full(vectors.shape[:2], -1, np.int64)
    for row, found in enumerate(words):
        terms[row, : len(found)] = [ids.setdefault(word, len(ids)) for word in found]
    return vectors, terms


def _counted(batches: Iterable[pl.DataFrame], advance: Callable[[int], None]) -> Iterator[pl.DataFrame]:
    for batch in batches:
        yield batch
        advance(batch.height)
