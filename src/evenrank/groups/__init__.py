"""What a text says about groups: lexicons, counts and magnitudes, neutrality, a whole collection at once."""

from .lexicon import Lexicon, builtin_lexicons, load_lexicon
from .score import (
    DEFAULT_MAGNITUDES,
    MAGNITUDES,
    Magnitude,
    Scores,
    Scoring,
    bias_labels,
    gendered_spans,
    neutrality,
    read_scores,
    score_collection,
    score_groups,
    score_texts,
    signed_magnitude,
)
from .tokens import Tokens, tokenize

__all__ = [
    "DEFAULT_MAGNITUDES",
    "MAGNITUDES",
    "Lexicon",
    "Magnitude",
    "Scores",
    "Scoring",
    "Tokens",
    "bias_labels",
    "builtin_lexicons",
    "gendered_spans",
    "load_lexicon",
    "neutrality",
    "read_scores",
    "score_collection",
    "score_groups",
    "score_texts",
    "signed_magnitude",
    "tokenize",
]
