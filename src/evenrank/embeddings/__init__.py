"""Word vectors: read from the usual files, taken from a transformer, or trained on a collection; debiased; audited."""

from .associations import Association, association
from .debias import (
    Debiased,
    EqualityCheck,
    Subspace,
    bias_subspace,
    check_equality,
    hard_debias,
    learn_specific,
    specific_words,
)
from .files import write_vectors
from .leace import Erased, Eraser, fit_leace, leace
from .remains import Remains, analogy, direct_bias, most_biased, recovery, remains
from .vectors import Vectors, from_keyed_vectors, from_transformer, read_vectors, train_vectors
from .word_sets import AssociationTest, WordSets, gender_en, read_sets, read_word_list

__all__ = [
    "Association",
    "AssociationTest",
    "Debiased",
    "EqualityCheck",
    "Erased",
    "Eraser",
    "Remains",
    "Subspace",
    "Vectors",
    "WordSets",
    "analogy",
    "association",
    "bias_subspace",
    "check_equality",
    "direct_bias",
    "fit_leace",
    "from_keyed_vectors",
    "from_transformer",
    "gender_en",
    "hard_debias",
    "leace",
    "learn_specific",
    "most_biased",
    "read_sets",
    "read_vectors",
    "read_word_list",
    "recovery",
    "remains",
    "specific_words",
    "train_vectors",
    "write_vectors",
]
