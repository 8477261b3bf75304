"""For the trainers of sentence-transformers: IBBR losses, and an evaluator that reports bias beside effectiveness.

>>> trainer = SentenceTransformerTrainer(  # doctest: +SKIP
...     model, args, with_group_labels(dataset), loss=IBBRLoss(model, weight=0.1), evaluator=BiasEvaluator(...)
... )
"""

from .evaluator import BiasEvaluator
from .labels import Attributes, OneLexicon, with_group_labels
from .losses import CrossEncoderIBBRLoss, IBBRLoss, KeepWeight, RankLoss, Weight

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
