"""The words that stand in for a lexicon's words: counterparts of another group, and words that name no group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from evenrank.io.errors import EvenrankError, quoted

from .tokens import tokenize

Replacements = tuple[tuple[str, str], ...]
"""(word, what it becomes), each word once."""
Entries = Mapping[tuple[str, ...], str]
"""The group of each entry of a lexicon, by its tokens."""


def _is_table(table: object) -> TypeGuard[dict[str, str | list[str]]]:
    return isinstance(table, dict) and all(
        isinstance(words, str) or (isinstance(words, list) and words and all(isinstance(word, str) for word in words))
        for words in table.values()
    )


def pairs_of(table: object) -> Replacements:
    """The pairs of a TOML table: the words of a line become its key, which becomes the first of them.

    >>> pairs_of({"she": "he", "dad": ["mom", "mum"]})
    (('she', 'he'), ('he', 'she'), ('dad', 'mom'), ('mom', 'dad'), ('mum', 'dad'))
    """
    if not _is_table(table):
        raise EvenrankError("expected a table [pairs] with a word or a list of words for each word")
    lines = [(key, [words] if isinstance(words, str) else words) for key, words in table.items()]
    return tuple(pair for key, words in lines for pair in [(key, words[0]), *((word, key) for word in words)])


def neutral_of(table: object) -> Replacements:
    """The neutral words of a TOML table: the words of a line become its key.

    >>> neutral_of({"they": ["she", "he"]})
    (('she', 'they'), ('he', 'they'))
    """
    if not _is_table(table):
        raise EvenrankError("expected a table [neutral] with a word or a list of words for each neutral word")
    lines = [(key, [words] if isinstance(words, str) else words) for key, words in table.items()]
    return tuple((word, key) for key, words in lines for word in words)


def check_pairs(pairs: Replacements, entries: Entries) -> None:
    """Raises EvenrankError unless each word is an entry, once, and becomes an entry of another group."""
    _check_words("pairs", pairs, entries)
    for word, other in pairs:
        group, of = (entries.get(tuple(tokenize(each))) for each in (word, other))
        if of is None:
            raise EvenrankError(f"[pairs]: {quoted(other)} is no word of the lexicon")
        if group == of:
            raise EvenrankError(f"[pairs]: {quoted(word)} and {quoted(other)} are both of the group {group}")


def check_neutral(neutral: Replacements, entries: Entries) -> None:
    """Raises EvenrankError unless each word is an entry, once, and becomes a text without an entry."""
    _check_words("neutral", neutral, entries)
    for _, other in neutral:
        tokens = tokenize(other)
        if not tokens:
            raise EvenrankError(f"[neutral]: {quoted(other)} contains no word")
        for start in range(len(tokens)):
            for end in range(start + 1, len(tokens) + 1):
                if (group := entries.get(tuple(tokens[start:end]))) is not None:
                    found = " ".join(tokens[start:end])
                    raise EvenrankError(f"[neutral]: {quoted(other)} is not neutral, {found} is of the group {group}")


def _check_words(table: str, replacements: Replacements, entries: Entries) -> None:
    seen = set()
    for word, _ in replacements:
        key = tuple(tokenize(word))
        if key not in entries:
            raise EvenrankError(f"[{table}]: {quoted(word)} is no word of the lexicon")
        if key in seen:
            raise EvenrankError(f"[{table}]: {quoted(word)} is there twice")
        seen.add(key)
