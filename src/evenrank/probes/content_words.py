"""The words that carry a text's content."""

from __future__ import annotations

from evenrank.groups.tokens import tokenize
from evenrank.retrieval.stop_words import NLTK, stop_list


def content_words(text: str) -> list[str]:
    """The distinct words of a text, in lower case and in order, without English stop words (NLTK's list).

    >>> content_words("What is the capital of the capital?")
    ['capital']
    """
    stops = stop_list(NLTK)
    return [word for word in dict.fromkeys(tokenize(text)) if word not in stops]
