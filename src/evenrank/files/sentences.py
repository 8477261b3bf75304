"""Where the sentences of a text begin and end.

>>> from evenrank.files.sentences import sentence_spans
>>> text = "Tea is old. Dr. Li likes it."
>>> [text[start:end] for start, end in sentence_spans(text)]
['Tea is old.', 'Dr. Li likes it.']
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"\S+")
_MARKS = frozenset(".!?")
_CLOSERS = "\"')]”’»"
_OPENERS = "\"'(["
ABBREVIATIONS = frozenset(
    (  # noqa: SIM905 - easier to read
        "mr mrs ms dr prof rev gen col capt lt sgt st jr sr inc ltd co corp vs etc e.g i.e cf al no nos vol pp fig figs"
        " eq approx est jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k u.n a.m p.m d.c ph.d"
    ).split(" ")
)
"""Words whose full stop ends no sentence."""
Span = tuple[int, int]
"""The first character and the one behind the last."""


def sentence_starts(words: Sequence[str]) -> list[int]:
    """The numbers of the words that begin a sentence, 0 first.

    A word ends a sentence with ``.``, ``!`` or ``?`` (closing quotes and brackets may follow), unless it is an initial
    or one of ABBREVIATIONS. The next word begins one unless its first character is a lower-case ASCII letter; in a text
    without a capital letter, as older test collections are stored, that one too. A mark that stands alone, as a
    tokenizer leaves it, belongs to the word before it.
    """
    starts = [0]
    lower = all(word == word.lower() for word in words)
    for number in range(1, len(words)):
        word = words[number - 1]
        if word in _MARKS and number > 1:
            word = words[number - 2] + word
        while len(word.encode()) > 3 and word[-1] in _CLOSERS:
            word = word[:-1]
        if word[-1] not in _MARKS or ("a" <= words[number][0] <= "z" and not lower) or words[number] in _MARKS:
            continue
        if word[-1] == ".":
            stem = word[:-1].lstrip(_OPENERS)
            stem = "".join(c.lower() if c.isascii() else c for c in stem)
            if (len(stem.encode()) <= 1 and stem.isalnum()) or stem in ABBREVIATIONS:
                continue
        starts.append(number)
    return starts


def word_places(text: str) -> list[Span]:
    """The characters of the words, which white space separates."""
    return [match.span() for match in _WORD.finditer(text)]


def sentence_spans(text: str) -> list[Span]:
    """The sentences' characters, end excluded, without the white space between them; none for a blank text."""
    words = word_places(text)
    if not words:
        return []
    starts = sentence_starts([text[start:end] for start, end in words])
    lasts = [start - 1 for start in starts[1:]] + [len(words) - 1]
    return [(words[first][0], words[last][1]) for first, last in zip(starts, lasts, strict=True)]
