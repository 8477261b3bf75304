"""What a text says about groups: lexicons, counts and magnitudes, neutrality, a whole collection at once."""

from .lexicon import Lexicon, builtin_lexicons, load_lexicon
from .score import (
    DEFAULT_MAGNITUDES,
    Scoring,
    gendered_spans,
    label_texts,
    neutrality,
    score_batches,
    score_collection,
    score_in_memory,
    score_texts,
    scores_as_asked,
)
from .tokens import Tokens, tokenize

__all__ = [
    "DEFAULT_MAGNITUDES",
    "Lexicon",
    "Scoring",
    "Tokens",
    "builtin_lexicons",
    "gendered_spans",
    "label_texts",
    "load_lexicon",
    "neutrality",
    "score_batches",
    "score_collection",
    "score_in_memory",
    "score_texts",
    "scores_as_asked",
    "tokenize",
]
