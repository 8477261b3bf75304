"""Word vectors: read from common formats, taken from a transformer, or trained; debiased; and evaluated.

- vectors: :mod:`.vectors`, :mod:`.word_sets`
- debiasing: :mod:`.debias`, :mod:`.debias_file`
- evaluation: :mod:`.embeddings_audit`
"""

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
from .debias_file import DebiasResult, debias_file
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
from .word_sets import WordSets, gender_en, load_word_sets, read_sets, read_word_list

__all__ = [
    "Analogy",
    "BiasAudit",
    "BiasEvaluation",
    "BiasFigures",
    "DebiasResult",
    "Debiased",
    "EqualityCheck",
    "EvaluationSettings",
    "Recovery",
    "Subspace",
    "Vectors",
    "WordSets",
    "analogy",
    "audit_file",
    "bias_subspace",
    "check_equality",
    "debias_file",
    "evaluate_bias",
    "from_keyed_vectors",
    "gender_en",
    "hard_debias",
    "load_word_sets",
    "most_biased",
    "parse_analogy",
    "read_sets",
    "read_vectors",
    "read_word_list",
    "recovery",
    "specific_words",
    "train_vectors",
    "write_vectors",
]
