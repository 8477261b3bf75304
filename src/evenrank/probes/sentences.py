"""Edits of a passage's whole sentences: the answer's moved, kept alone or removed, others added.

Sentences are cut as for rotation (:func:`evenrank.mitigation.rotation.sentence_starts`). Edits return sentences joined
by single spaces, or the text itself where nothing changes. An answer in several sentences moves them together.
``start`` and ``end`` are the answer's characters in the text, end excluded.

>>> from evenrank.probes.sentences import moved, only, without
>>> text = "Tea is old. It came from China. We like it."
>>> moved(text, 25, 30, 0)
'It came from China. Tea is old. We like it.'
>>> only(text, 25, 30), without(text, 25, 30)
('It came from China.', 'Tea is old. We like it.')
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations

from evenrank.mitigation.rotation import sentence_starts

_WORD = re.compile(r"\S+")
_PAIRED = 50
"""In longer texts one sentence is removed: among so many, some are about as long as any other."""
Span = tuple[int, int]


def sentence_spans(text: str) -> list[Span]:
    """The sentences' characters, end excluded, without the white space between them; none for a blank text."""
    words = [found.span() for found in _WORD.finditer(text)]
    if not words:
        return []
    starts = sentence_starts([text[start:end] for start, end in words])
    lasts = [start - 1 for start in starts[1:]] + [len(words) - 1]
    return [(words[first][0], words[last][1]) for first, last in zip(starts, lasts, strict=True)]


def holding(spans: Sequence[Span], start: int, end: int) -> tuple[int, int]:
    """The first and the last sentence that the answer touches. Raises ValueError if it touches none."""
    touched = [number for number, (begin, stop) in enumerate(spans) if begin < end and stop > start]
    if not touched:
        raise ValueError("the answer is in no sentence")
    return touched[0], touched[-1]


def places(text: str, start: int, end: int) -> tuple[int, int]:
    """How many sentences precede the answer's, and how many others there are (m): its places are 0 … m."""
    spans = sentence_spans(text)
    first, last = holding(spans, start, end)
    return first, len(spans) - (last - first + 1)


def moved(text: str, start: int, end: int, place: int) -> str:
    """The answer's sentences at ``place`` (0 … m) among the others; the text itself if they are there already."""
    units, first = _units(text, start, end)
    return _at(text, units, first, place)


def control_moved(text: str, start: int, end: int, place: int, draw: int) -> str | None:
    """The seam control of :func:`moved`: another sentence at ``place``, the answer's in order among the rest.

    It is the one nearest in words to the answer's that is not there already; ``draw`` (a whole number from 0) chooses
    among several. None without one.
    """
    units, first = _units(text, start, end)
    length = len(units[first].split())
    far = {number: abs(len(unit.split()) - length) for number, unit in enumerate(units) if number not in (first, place)}
    nearest = [number for number, distance in far.items() if distance == min(far.values())]
    return _at(text, units, nearest[draw % len(nearest)], place) if nearest else None


def only(text: str, start: int, end: int) -> str:
    """The answer's sentences alone; the text itself if there are no others."""
    units, first = _units(text, start, end)
    return units[first] if len(units) > 1 else text


def without(text: str, start: int, end: int) -> str:
    """The other sentences; the text itself if there are none."""
    units, first = _units(text, start, end)
    return " ".join(units[:first] + units[first + 1 :]) if len(units) > 1 else text


def control_without(text: str, start: int, end: int, draw: int) -> str | None:
    """The control of :func:`without`: another sentence removed, or two, so that as many words go on average.

    Of one or two others, those with as many words as the answer's; else the next shorter or the next longer ones, by
    ``draw`` and with the chances that make the mean equal. (The nearest ones are shorter on average, as sentences with
    answers are long: by 3 of 29 words on XQuAD, which a ranker that looks at lengths alone would react to.) None if
    all others are longer, or all shorter.
    """
    units, first = _units(text, start, end)
    wanted = len(units[first].split())
    words = {number: len(unit.split()) for number, unit in enumerate(units) if number != first}
    choices: dict[int, list[tuple[int, ...]]] = {}
    sizes = (1, 2) if len(words) <= _PAIRED else (1,)
    for gone in (gone for size in sizes for gone in combinations(words, size)):
        choices.setdefault(sum(words[number] for number in gone), []).append(gone)
    shorter, longer = (
        max((n for n in choices if n <= wanted), default=0),
        min((n for n in choices if n >= wanted), default=0),
    )
    if not shorter or not longer:
        return None
    apart = max(longer - shorter, 1)
    fitting = choices[longer if draw % apart < wanted - shorter else shorter]
    gone = fitting[draw // apart % len(fitting)]
    return " ".join(unit for number, unit in enumerate(units) if number not in gone)


def inserted(text: str, sentence: str, place: int) -> str:
    """The sentence after the first ``place`` sentences of the text (0 … n)."""
    units = sentences_of(text)
    return " ".join([*units[:place], sentence, *units[place:]])


def padded(text: str, choose: Callable[[int], str | None]) -> tuple[str, int]:
    """Other sentences after each of the text's, so that the length so far stays about double; and their number.

    ``choose``: from the number of words that are lacking (1 or more) to a sentence of about as many, or None if there
    is none left. A sentence is added only if the length comes nearer to the double.
    """
    parts: list[str] = []
    own = total = added = 0
    for sentence in sentences_of(text):
        parts.append(sentence)
        words = len(sentence.split())
        own, total = own + words, total + words
        while total < 2 * own:
            other = choose(2 * own - total)
            if other is None or len(other.split()) >= 2 * (2 * own - total):
                break
            parts.append(other)
            added += 1
            total += len(other.split())
    return (" ".join(parts) if added else text), added


def sentences_of(text: str) -> list[str]:
    """The sentences of a text as they stand."""
    return [text[start:end] for start, end in sentence_spans(text)]


def _units(text: str, start: int, end: int) -> tuple[list[str], int]:
    """The sentences, those of the answer as one; and the number of that one."""
    spans = sentence_spans(text)
    first, last = holding(spans, start, end)
    found = [text[begin:stop] for begin, stop in spans]
    return [*found[:first], " ".join(found[first : last + 1]), *found[last + 1 :]], first


def _at(text: str, units: list[str], number: int, place: int) -> str:
    if number == place:
        return text
    others = units[:number] + units[number + 1 :]
    return " ".join([*others[:place], units[number], *others[place:]])
