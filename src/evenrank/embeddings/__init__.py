"""Word vectors: read from common formats, taken from a transformer, or trained; debiased; and evaluated.

- vectors: :mod:`.vectors`, :mod:`.vector_files`, :mod:`.word_sets`
- debiasing: :mod:`.debias` (with :mod:`.subspace`, :mod:`.specific`, :mod:`.equality`), :mod:`.leace` (with
  :mod:`.moments`)
- evaluation: :mod:`.evaluation` (with :mod:`.associations`, :mod:`.recovery`, :mod:`.neighbours`), :mod:`.group_probes`
- whole files: :mod:`.debias_file`, :mod:`.audit_file`
"""

from .associations import Association, association
from .audit_file import BiasAudit, audit_file, parse_analogy
from .debias import Debiased, hard_debias
from .debias_file import DebiasResult, debias_file
from .equality import EqualityCheck, check_equality
from .evaluation import BiasEvaluation, BiasFigures, EvaluationSettings, direct_bias, evaluate_bias, most_biased
from .leace import Erased, Eraser, eraser_of, fit_leace, leace
from .moments import GroupMeans, Moments
from .neighbours import Analogy, analogy, nearest
from .recovery import Recovery, recovery
from .specific import SpecificWords, learn_specific, specific_words
from .subspace import Subspace, bias_subspace
from .vector_files import write_vectors
from .vectors import Vectors, from_keyed_vectors, from_transformer, read_vectors, train_vectors
from .word_sets import AssociationTest, WordSets, gender_en, load_word_sets, read_sets, read_word_list

__all__ = [
    "Analogy",
    "Association",
    "AssociationTest",
    "BiasAudit",
    "BiasEvaluation",
    "BiasFigures",
    "DebiasResult",
    "Debiased",
    "EqualityCheck",
    "Erased",
    "Eraser",
    "EvaluationSettings",
    "GroupMeans",
    "Moments",
    "Recovery",
    "SpecificWords",
    "Subspace",
    "Vectors",
    "WordSets",
    "analogy",
    "association",
    "audit_file",
    "bias_subspace",
    "check_equality",
    "debias_file",
    "direct_bias",
    "eraser_of",
    "evaluate_bias",
    "fit_leace",
    "from_keyed_vectors",
    "from_transformer",
    "gender_en",
    "hard_debias",
    "leace",
    "learn_specific",
    "load_word_sets",
    "most_biased",
    "nearest",
    "parse_analogy",
    "read_sets",
    "read_vectors",
    "read_word_list",
    "recovery",
    "specific_words",
    "train_vectors",
    "write_vectors",
]
