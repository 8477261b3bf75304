"""First stages: BM25, vectors, fusion; word vectors, their debiasing, and query expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names

if TYPE_CHECKING:
    from .embeddings import (
        Vectors,
        WordSets,
        bias_subspace,
        hard_debias,
        load_word_sets,
        most_biased,
        read_sets,
        read_vectors,
        read_word_list,
        recovery,
        specific_words,
        train_vectors,
    )
    from .expansion import Expansion, nearest_rows
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Expansion",
    "Vectors",
    "WordSets",
    "bias_subspace",
    "hard_debias",
    "load_word_sets",
    "most_biased",
    "nearest_rows",
    "read_sets",
    "read_vectors",
    "read_word_list",
    "recovery",
    "specific_words",
    "train_vectors",
]
