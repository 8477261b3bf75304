"""Whether texts are in a lexicon's language: its words may mean other things in another (German *man*, *nun*)."""

from __future__ import annotations

from collections.abc import Iterable

import polars as pl

from evenrank.groups import Lexicon
from evenrank.groups.tokens import tokenize
from evenrank.retrieval.stop_words import NLTK, stop_list

_DOCUMENTS, _CHARACTERS = 1000, 2000
"""So many are read, and so many of each."""
_FEWEST_WORDS = 200
"""Fewer say nothing."""
_LEAST_SHARE = 0.1
"""Of stop words. On XQuAD they are 40 % of the words in English, 3 % in German and 5 % in Spanish."""


def language_notes(batches: Iterable[pl.DataFrame], lexicon: Lexicon) -> tuple[str, ...]:
    """A note if the first documents (``text``) are hardly English, though the lexicon is; none for other lexicons."""
    if lexicon.language != "en":
        return ()
    stops, documents, words, found = stop_list(NLTK), 0, 0, 0
    for batch in batches:
        for text in batch["text"].head(_DOCUMENTS - documents).str.slice(0, _CHARACTERS):
            tokens = tokenize(text)
            words += len(tokens)
            found += sum(token in stops for token in tokens)
        documents = min(documents + batch.height, _DOCUMENTS)
        if documents == _DOCUMENTS:
            break
    if words < _FEWEST_WORDS or found >= _LEAST_SHARE * words:
        return ()
    share = f"{found / words:.0%} of the words of the first documents are English stop words"
    other = f"but the lexicon {lexicon.name} is: its words may mean other things here"
    return (f"The texts hardly look English ({share}), {other}.",)
