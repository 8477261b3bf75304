"""What a text says about groups: lexicons, counts and magnitudes, neutrality, a whole collection at once."""

from .lexicon import Lexicon, builtin_lexicons, load_lexicon, note_lexicon
from .score import (
    DEFAULT_MAGNITUDES,
    Scoring,
    WordCounts,
    gendered_spans,
    label_texts,
    neutrality,
    score_batches,
    score_collection,
    score_in_memory,
    score_texts,
    score_with_words,
    scores_as_asked,
)
from .tokens import Tokens, tokenize

__all__ = [
    "DEFAULT_MAGNITUDES",
    "Lexicon",
    "Scoring",
    "Tokens",
    "WordCounts",
    "builtin_lexicons",
    "gendered_spans",
    "label_texts",
    "load_lexicon",
    "neutrality",
    "note_lexicon",
    "score_batches",
    "score_collection",
    "score_in_memory",
    "score_texts",
    "score_with_words",
    "scores_as_asked",
    "tokenize",
]
