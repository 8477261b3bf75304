"""For the trainers of sentence-transformers: IBBR losses, and an evaluator of bias and effectiveness together.

>>> trainer = SentenceTransformerTrainer(  # doctest: +SKIP
...     model, args, with_group_labels(dataset), loss=IBBRLoss(model, weight=0.1), evaluator=BiasEvaluator(...)
... )
"""

from evenrank.mitigation.attributes import Attributes, OneLexicon

from .st_evaluator import BiasEvaluator
from .st_labels import with_group_labels
from .st_losses import CrossEncoderIBBRLoss, IBBRLoss, KeepWeight, RankLoss, Weight

__all__ = [
    "Attributes",
    "BiasEvaluator",
    "CrossEncoderIBBRLoss",
    "IBBRLoss",
    "KeepWeight",
    "OneLexicon",
    "RankLoss",
    "Weight",
    "with_group_labels",
]
