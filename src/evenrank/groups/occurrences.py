"""How the words of a lexicon occur in a collection: how often, in how many documents, and in which contexts."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import polars as pl

from .scoring import Scoring, WordCounts, gendered_spans
from .tokens import tokenize

EXAMINED = 100
"""The contexts of a word are read at its first occurrences in the collection, at most so many."""
_CONTEXTS = 3
_AROUND = 36
_NEAR = 60
_OPENING = " \t\"'“”„‘’«»‹›([{¿¡*_"
_ENDS = ".!?:;…\n\r|"
_HYPHENS = "-\u2010\u2011"
_SENTENCE = re.compile(rf"[{re.escape(_ENDS)}]")
_LOWER = re.compile(r"[^\W\d_]{4,}")
_BEFORE = re.compile(r"([\w'’]+)[^\w'’]*$")
_AFTER = re.compile(r"[^\w'’]*([\w'’]+)")


@dataclass(frozen=True, slots=True)
class WordUse:
    """One word of a lexicon in a collection.

    Attributes:
        word: As the tokenisation reads it (``ex wife``); ``group``: its group.
        occurrences: In all documents; ``documents``: how many documents contain the word.
        examined: How many of the occurrences, the first ones, the other attributes are of.
        capitalised: Of those within running text, the share that begins with a capital. None where there are none.
            Running text: not the first word of a sentence, not in capitals throughout, and near another word of the
            sentence with four or more letters and no capital, so that headings do not count.
        hyphenated: The share joined to another word by a hyphen.
        in_name: The share that is part of a name: capitalised within running text, beside another capitalised word.
        neighbours: The effective number of neighbouring words: e to the entropy of the words right before and after.
        name: The most frequent of the names, or None.
        contexts: Up to three examples with the word in brackets; those capitalised or hyphenated come first.
    """

    also: ClassVar = ("doubt",)
    word: str
    group: str
    occurrences: int
    documents: int
    examined: int
    capitalised: float | None
    hyphenated: float
    in_name: float
    neighbours: float
    name: str | None
    contexts: tuple[str, ...]

    @property
    def doubt(self) -> float:
        """How far one form is used in several ways, from 0 to 1; our definition.

        The largest of the share in names, the share with a hyphen, and the share of the less frequent of the two
        spellings, with a capital and without.
        """
        spelling = 0.0 if self.capitalised is None else min(self.capitalised, 1 - self.capitalised)
        return max(self.in_name, self.hyphenated, spelling)


@dataclass(slots=True)
class _Tally:
    """What is counted of one word while texts are read."""

    examined: int = 0
    within: int = 0
    capitalised: int = 0
    hyphenated: int = 0
    names: Counter[str] = field(default_factory=Counter)
    beside: Counter[str] = field(default_factory=Counter)
    striking: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)

    def add(self, text: str, start: int, end: int) -> None:
        """One occurrence, from ``start`` to ``end``."""
        self.examined += 1
        written = text[start:end]
        before, after = _BEFORE.search(text, max(0, start - _NEAR), start), _AFTER.match(text, end)
        self.beside.update(found[1].casefold() for found in (before, after) if found)
        within = _is_running(text, start, end)
        capital = within and written[:1].isupper()
        joined = _is_joined(text, start - 1, -1) or _is_joined(text, end, 1)
        name = _name(text, start, end) if capital else None
        self.within += within
        self.capitalised += capital
        self.hyphenated += joined
        if name is not None:
            self.names[name] += 1
        kept = self.striking if capital or joined else self.plain
        if len(kept) < _CONTEXTS:
            kept.append(_context(text, start, end))

    def entropy(self) -> float:
        """The entropy of the neighbouring words, in nats."""
        total = self.beside.total()
        return -sum(count / total * math.log(count / total) for count in self.beside.values())


def _begins_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 20) : start].rstrip(_OPENING)
    return not before or before[-1] in _ENDS


def _is_running(text: str, start: int, end: int) -> bool:
    """Whether a word stands within running text; see :class:`WordUse`."""
    if _begins_sentence(text, start) or (end - start > 1 and text[start:end].isupper()):
        return False
    near = (_SENTENCE.split(text[max(0, start - _NEAR) : start])[-1], _SENTENCE.split(text[end : end + _NEAR])[0])
    return any(word.islower() for part in near for word in _LOWER.findall(part))


def _is_joined(text: str, place: int, step: int) -> bool:
    """Whether the character at ``place`` is a hyphen with a letter or digit beyond it."""
    beyond = place + step
    return 0 <= place < len(text) and 0 <= beyond < len(text) and text[place] in _HYPHENS and text[beyond].isalnum()


def _name(text: str, start: int, end: int) -> str | None:
    """The word with the capitalised words right before and after it, one space apart; None if there are none."""
    before, after = _BEFORE.search(text, max(0, start - _NEAR), start), _AFTER.match(text, end)
    parts = [text[start:end]]
    beside = before is not None and before.end(1) == start - 1 and text[start - 1] == " "
    if before and beside and before[1][0].isupper() and not _begins_sentence(text, before.start(1)):
        parts.insert(0, before[1])
    if after and after.start(1) == end + 1 and text[end] == " " and after[1][0].isupper():
        parts.append(after[1])
    return " ".join(parts) if len(parts) > 1 else None


def _context(text: str, start: int, end: int) -> str:
    """The word in brackets with what is around it, cut between words."""
    left, right = text[max(0, start - _AROUND) : start], text[end : end + _AROUND]
    if start > _AROUND:
        left = "…" + left[left.find(" ") :]
    if len(text) > end + _AROUND and " " in right:
        right = right[: right.rfind(" ") + 1] + "…"
    return " ".join(f"{left}[{text[start:end]}]{right}".split())


class Occurrences:
    """Counts the words of a lexicon in batches of documents, and reads the contexts of the first ones."""

    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring
        entries = scoring.lexicon.entries(scoring.tokens)
        self._groups = tuple(entries.values())
        self._words = tuple(map(" ".join, entries))
        self._place = {key: place for place, key in enumerate(entries)}
        self._tallies = [_Tally() for _ in entries]
        self._occurrences = np.zeros(len(entries), dtype=np.int64)
        self._documents = np.zeros(len(entries), dtype=np.int64)

    def add(self, texts: pl.Series, found: WordCounts) -> None:
        """A batch of documents and the words found in it, whose ``document`` is a row of ``texts``."""
        size = len(self._words)
        self._occurrences += np.bincount(found.word, weights=found.count, minlength=size).astype(np.int64)
        self._documents += np.bincount(found.word, minlength=size)
        open_ = np.array([tally.examined < EXAMINED for tally in self._tallies], dtype=bool)
        wanted = open_[found.word] if size else np.zeros(0, dtype=bool)
        last = -1
        for document, word in zip(found.document[wanted].tolist(), found.word[wanted].tolist(), strict=True):
            if document != last and self._tallies[word].examined < EXAMINED:
                self._read(texts[document])
                last = document

    def _read(self, text: str) -> None:
        for start, end, key in _spans(text, self._scoring):
            tally = self._tallies[self._place[key]]
            if tally.examined < EXAMINED:
                tally.add(text, start, end)

    def words(self) -> tuple[WordUse, ...]:
        """Every word of the lexicon, the most frequent first."""
        order = np.argsort(-self._occurrences, kind="stable")
        return tuple(self._use(int(place)) for place in order)

    def _use(self, place: int) -> WordUse:
        tally = self._tallies[place]
        named = tally.names.most_common(1)
        return WordUse(
            self._words[place],
            self._groups[place],
            int(self._occurrences[place]),
            int(self._documents[place]),
            tally.examined,
            tally.capitalised / tally.within if tally.within else None,
            tally.hyphenated / max(tally.examined, 1),
            tally.names.total() / max(tally.examined, 1),
            math.exp(tally.entropy()) if tally.beside else 0.0,
            named[0][0] if named else None,
            tuple((tally.striking + tally.plain)[:_CONTEXTS]),
        )


def _spans(text: str, scoring: Scoring) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Where the lexicon's entries are in a text: start, end, and the entry's tokens."""
    if scoring.tokens == "word":
        for start, end, _ in gendered_spans(text, scoring.lexicon):
            yield start, end, tuple(tokenize(text[start:end]))
        return
    entries = scoring.lexicon.entries(scoring.tokens)
    for match in re.finditer("[^ ]+", text):
        key = tuple(tokenize(match[0], scoring.tokens))
        if key in entries:
            yield *match.span(), key
