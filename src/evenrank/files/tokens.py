"""The two tokenisations, ``word`` and ``whitespace``, as tables over code points that the counting kernel reads."""

from __future__ import annotations

import functools
import re
import unicodedata
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Tokens = Literal["word", "whitespace"]

SEPARATOR, WORD, APOSTROPHE = 0, 1, 2
APOSTROPHES = "'\u2019\u02bc\uff07"
"""Straight, curly, modifier-letter and full-width forms."""
_STRAIGHT = {ord(character): "'" for character in APOSTROPHES}
CLITICS = ("s", "d", "m", "ll", "re", "ve")
"""Endings after a word's last apostrophe that are not part of the word: "woman's", "she'll"."""
# No code point above has a case or is a word character, but for the combining variation selectors.
_TABLE_SIZE = 0x32400
_SELECTORS = range(0xE0100, 0xE01F0)

IntArray = NDArray[np.int32]
ByteArray = NDArray[np.uint8]


class Alphabet(NamedTuple):
    """What the kernel needs to know of each code point below the table's size.

    ``kinds`` [C]: SEPARATOR, WORD or APOSTROPHE. ``folded`` [C]: the code point after case folding, or −1 − row of
    ``expansions`` [E, 4] (how many, then up to three code points) for the few that fold to several.
    """

    kinds: ByteArray
    folded: IntArray
    expansions: IntArray


@functools.cache
def alphabet(tokens: Tokens) -> Alphabet:
    """The tables of a tokenisation (about 50 ms, once)."""
    kinds = np.zeros(_TABLE_SIZE, dtype=np.uint8)
    folded = np.arange(_TABLE_SIZE, dtype=np.int32)
    expansions: list[list[int]] = []
    for code in range(_TABLE_SIZE):
        character = chr(code)
        if tokens == "whitespace":
            kinds[code] = SEPARATOR if character == " " else WORD
        elif unicodedata.category(character)[0] in "LMN":
            kinds[code] = WORD
        result = _fold(character, tokens)
        if result != character:
            if len(result) > 1:
                folded[code] = -1 - len(expansions)
                expansions.append([len(result), *map(ord, result), 0, 0][:4])
            else:
                folded[code] = ord(result)
    if tokens == "word":
        kinds[[ord(character) for character in APOSTROPHES]] = APOSTROPHE
    return Alphabet(kinds, folded, np.array(expansions, dtype=np.int32).reshape(-1, 4))


def _fold(text: str, tokens: Tokens) -> str:
    if tokens == "word":
        return text.casefold().translate(_STRAIGHT)
    # str.lower() writes a last capital sigma as ς, elsewhere as σ; one form for both needs no look-ahead.
    return text.lower().replace("ς", "σ")


def tokenize(text: str, tokens: Tokens = "word") -> list[str]:
    """The tokens of a text: the definition in plain Python, for lexicon entries, highlighting and tests.

    ``word``: runs of letters, marks and digits, case-folded; an apostrophe between two such runs joins them
    ("don't"), and what may be left out after the last one is ("woman's" and "she'll" give "woman" and "she").
    Everything else separates, hyphens and underscores included. ``whitespace``: lower case, split at single spaces,
    as the public programs do.

    >>> tokenize("She, the woman's friend, don't!")
    ['she', 'the', 'woman', 'friend', "don't"]
    """
    if tokens == "whitespace":
        return [token for token in _fold(text, tokens).split(" ") if token]
    if text.isascii():
        # The same several times faster.
        words: list[str] = _ASCII_TOKEN.findall(text.lower())
        return [_without_clitic(word) for word in words] if "'" in text else words
    return [folded(text[start:end]) for start, end in word_spans(text)]


def _without_clitic(word: str) -> str:
    before, _, last = word.rpartition("'")
    return before if before and last in CLITICS else word


def folded(word: str) -> str:
    """A ``word`` token as it is compared: case-folded, with straight apostrophes."""
    return word.lower() if word.isascii() else _fold(word, "word")


def word_spans(text: str) -> list[tuple[int, int]]:
    """Start and end of each ``word`` token of a text, clitics left out, in characters."""
    # A table of bytes is many times faster than a mapping of code points.
    kinds = text.encode().translate(_ASCII).decode() if text.isascii() else text.translate(_KINDS)
    spans: list[tuple[int, int]] = []
    for match in _TOKEN.finditer(kinds):
        start, end = match.span()
        last_apostrophe = kinds.rfind("'", start, end)
        if last_apostrophe >= 0 and text[last_apostrophe + 1 : end].casefold() in CLITICS:
            end = last_apostrophe
        spans.append((start, end))
    return spans


class _Kinds(dict[int, str]):
    """For each code point w (word), ' (apostrophe) or a space (separator), found when it is first met."""

    def __missing__(self, code: int) -> str:
        inside = code < _TABLE_SIZE and unicodedata.category(chr(code))[0] in "LMN"
        kind = "'" if chr(code) in APOSTROPHES else "w" if inside or code in _SELECTORS else " "
        self[code] = kind
        return kind


_KINDS = _Kinds()
_ASCII = "".join(_KINDS[code] for code in range(128)).encode().ljust(256)
_TOKEN = re.compile("w+(?:'w+)*")
_ASCII_TOKEN = re.compile("[0-9a-z]+(?:'[0-9a-z]+)*")
