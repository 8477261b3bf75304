"""First stages: BM25, vectors, fusion; word vectors, their debiasing, and query expansion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evenrank._lazy import lazy_names

if TYPE_CHECKING:
    from evenrank.models.vectors import (
        Vectors,
        from_keyed_vectors,
        read_vectors,
        train_vectors,
        write_vectors,
    )

    from .debias import (
        Debiased,
        EqualityCheck,
        Subspace,
        bias_subspace,
        check_equality,
        hard_debias,
        specific_words,
    )
    from .debias_file import DebiasResult
    from .embeddings_audit import (
        Analogy,
        BiasAudit,
        BiasEvaluation,
        BiasFigures,
        EvaluationSettings,
        Recovery,
        analogy,
        audit_file,
        evaluate_bias,
        most_biased,
        parse_analogy,
        recovery,
    )
    from .expansion import Expansion, nearest_rows
    from .word_sets import WordSets, gender_en, load_word_sets, read_sets, read_word_list
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "Analogy",
    "BiasAudit",
    "BiasEvaluation",
    "BiasFigures",
    "DebiasResult",
    "Debiased",
    "EqualityCheck",
    "EvaluationSettings",
    "Expansion",
    "Recovery",
    "Subspace",
    "Vectors",
    "WordSets",
    "analogy",
    "audit_file",
    "bias_subspace",
    "check_equality",
    "evaluate_bias",
    "from_keyed_vectors",
    "gender_en",
    "hard_debias",
    "load_word_sets",
    "most_biased",
    "nearest_rows",
    "parse_analogy",
    "read_sets",
    "read_vectors",
    "read_word_list",
    "recovery",
    "specific_words",
    "train_vectors",
    "write_vectors",
]
