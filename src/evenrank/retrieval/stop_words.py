"""Stop words: the lists that come with evenrank, and files."""

from __future__ import annotations

import functools
import os
from importlib import resources

from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.io.files import line_blocks

LANGUAGES = (
    "english", "danish", "dutch", "french", "german", "italian", "norwegian", "portuguese", "russian", "spanish",
    "swedish", "turkish",
)  # fmt: skip
"""Languages with a stop list (English: Lucene's 33 words, else NLTK's lists) and a Snowball stemmer of that name."""
NLTK = "nltk"
"""The name of NLTK's English list (179 words)."""


@functools.cache
def stop_list(name: str) -> frozenset[str]:
    """The stop words of one of LANGUAGES, or of NLTK's English list."""
    text = (resources.files(__package__) / "stop_lists" / f"{name}.txt").read_text(encoding="utf-8")
    return frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())


def read_stop_words(source: str, *, nltk: bool = False) -> frozenset[str]:
    """The stop words, in lower case, that ``source`` names: a language, ``none``, or a file with a word per line.

    ``nltk``: accept the name ``nltk``, of NLTK's English list, as well.

    Raises EvenrankError, which names the lists, for anything else; InputError for a file that cannot be read.
    """
    lists = (NLTK, *LANGUAGES) if nltk else LANGUAGES
    if source == "none":
        return frozenset()
    if source in lists:
        return stop_list(source)
    if not os.path.exists(source):
        names = ", ".join(lists)
        raise EvenrankError(f"`stopwords`: no such file and no list {quoted(source)} (the lists are {names} and none)")
    lines = (line for block in line_blocks(source) for line in block.data.decode().split("\n"))
    return frozenset(line.strip().lower() for line in lines if line.strip())
