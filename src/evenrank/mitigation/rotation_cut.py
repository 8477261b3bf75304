"""Where a passage is cut, and what the cut does to it and to an answer in it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from evenrank.engines.hashing import FNV_OFFSET, GOLDEN, MASK, fnv, mix

Mode = Literal["word", "sentence"]
MODES = ("word", "sentence")
_WORD = re.compile(r"\S+")
_CLOSERS = "\"')]”’»"
_OPENERS = "\"'(["
ABBREVIATIONS = frozenset(
    (  # noqa: SIM905 - easier to read
        "mr mrs ms dr prof rev gen col capt lt sgt st jr sr inc ltd co corp vs etc e.g i.e cf al no nos vol pp fig figs"
        " eq approx est jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k u.n a.m p.m d.c ph.d"
    ).split(" ")
)
"""Words whose full stop ends no sentence."""


def mixed_seed(*parts: int) -> int:
    """A 64-bit seed from whole numbers from 0 (a seed; a seed and an epoch)."""
    value = 0
    for part in parts:
        value = mix((value + part + GOLDEN) & MASK)
    return value


def draw(doc_id: str, choices: int, seed: int) -> int:
    """A whole number from 0 to ``choices`` − 1, from the passage's id and a mixed seed alone."""
    return (mix(fnv(doc_id.encode(), FNV_OFFSET ^ seed)) * choices) >> 64


def sentence_starts(words: Sequence[str]) -> list[int]:
    """The numbers of the words that begin a sentence, 0 first.

    A word ends a sentence with ``.``, ``!`` or ``?`` (closing quotes and brackets may follow), unless it is an initial
    or one of ABBREVIATIONS. The next word begins one unless its first character is a lower-case ASCII letter.
    """
    starts = [0]
    for number in range(1, len(words)):
        word = words[number - 1]
        while len(word.encode()) > 3 and word[-1] in _CLOSERS:
            word = word[:-1]
        if "a" <= words[number][0] <= "z" or word[-1] not in ".!?":
            continue
        if word[-1] == ".":
            stem = word[:-1].lstrip(_OPENERS)
            stem = "".join(c.lower() if c.isascii() else c for c in stem)
            if len(stem.encode()) <= 1 or stem in ABBREVIATIONS:
                continue
        starts.append(number)
    return starts


def cut_of(text: str, doc_id: str, seed: int, mode: Mode = "word") -> int:
    """How many words of a passage are moved to its end, 0 to n − 1 (r − 1 in eq. 7). ``seed``: a mixed one."""
    words = text.split()
    if not words:
        return 0
    if mode == "word":
        return draw(doc_id, len(words), seed)
    starts = sentence_starts(words)
    return starts[draw(doc_id, len(starts), seed)]


def rotated(text: str, cut: int) -> str:
    """words[cut:] + words[:cut], joined by single spaces; a text of white space alone is returned unchanged."""
    words = text.split()
    return " ".join([*words[cut:], *words[:cut]]) if words else text


def moved_span(text: str, start: int, end: int, cut: int) -> tuple[int, int] | None:
    """The place of text[start:end] after :func:`rotated` (characters, end excluded); None if the cut splits it.

    White space inside the span becomes single spaces; at its ends it is dropped. Raises ValueError for a span of
    white space alone.
    """
    inner = text[start:end]
    start += len(inner) - len(inner.lstrip())
    end -= len(inner) - len(inner.rstrip())
    if start >= end:
        raise ValueError("a span of white space alone")
    spans = [match.span() for match in _WORD.finditer(text)]
    first = next(i for i, (_, stop) in enumerate(spans) if stop > start)
    last = next(i for i, (_, stop) in enumerate(spans) if stop >= end)
    if first < cut <= last:
        return None
    order = [*range(cut, len(spans)), *range(cut)]
    place, places = 0, {}
    for number in order:
        places[number] = place
        place += spans[number][1] - spans[number][0] + 1
    return places[first] + start - spans[first][0], places[last] + end - spans[last][0]
