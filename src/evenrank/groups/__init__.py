"""Which groups a text is about: lexicons, counts, magnitudes and neutrality, of texts or a whole collection."""

from evenrank.files.tokens import Tokens, tokenize

from .labels import as_labels
from .lexicon import Lexicon, LexiconLike, builtin_lexicons, load_lexicon, note_lexicon
from .scoring import (
    GroupSource,
    Scoring,
    WordCounts,
    gendered_spans,
    score,
    score_batches,
    score_collection,
    score_in_memory,
    score_texts,
    score_with_words,
    scoring_of,
    sides_of_texts,
)
from .table import (
    MAGNITUDES,
    GroupTable,
    Magnitude,
    as_group_table,
    neutrality,
    read_group_table,
    sides,
)

__all__ = [
    "MAGNITUDES",
    "GroupSource",
    "GroupTable",
    "Lexicon",
    "LexiconLike",
    "Magnitude",
    "Scoring",
    "Tokens",
    "WordCounts",
    "as_group_table",
    "as_labels",
    "builtin_lexicons",
    "gendered_spans",
    "load_lexicon",
    "neutrality",
    "note_lexicon",
    "read_group_table",
    "score",
    "score_batches",
    "score_collection",
    "score_in_memory",
    "score_texts",
    "score_with_words",
    "scoring_of",
    "sides",
    "sides_of_texts",
    "tokenize",
]
