"""Sentences of a collection's passages, drawn by their ids, to be put into other passages."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.engines.hashing import FNV_OFFSET, GOLDEN, MASK, fnv_array, mix, mix_array
from evenrank.io.tables import text_bytes
from evenrank.mitigation.rotation import mixed_seed

from .content_words import content_words
from .sentences import sentences_of

SIZE = 5000
_NEAR = 8
"""A sentence is drawn among this many of about the length that is wanted."""


@dataclass(frozen=True, slots=True)
class SentencePool:
    """Distinct ``sentences`` with their ``documents`` and numbers of ``words``, from the shortest to the longest."""

    sentences: tuple[str, ...]
    documents: tuple[str, ...]
    words: tuple[int, ...]

    @classmethod
    def sampled(cls, batches: Iterable[pl.DataFrame], seed: int, size: int = SIZE) -> SentencePool:
        """Up to ``size`` sentences of up to ``size`` passages of batches with ``doc_id`` and ``text``.

        The passages have the smallest hashes of seed and id, and the sentences those of seed, id and number: they do
        not depend on the order of the passages.
        """
        found = [
            (mix((key + number * GOLDEN) & MASK), doc_id, number, sentence)
            for key, doc_id, text in _smallest(batches, seed, size).iter_rows()
            for number, sentence in enumerate(sentences_of(text), 1)
        ]
        distinct: dict[str, tuple[int, str, int]] = {}
        for key, doc_id, number, sentence in sorted(found):
            if len(distinct) < size:
                distinct.setdefault(sentence, (key, doc_id, number))
        rows = sorted((len(sentence.split()), key, doc_id, sentence) for sentence, (key, doc_id, _) in distinct.items())
        return cls(tuple(row[3] for row in rows), tuple(row[2] for row in rows), tuple(row[0] for row in rows))

    def chooser(self, doc_id: str, text: str, key: int) -> Callable[[int], str | None]:
        """A function from a number of words to a sentence of about as many, a different one on each call.

        Never one of the passage ``doc_id`` or of its ``text``; None if there is none left. ``key`` (64 bits) decides.
        """
        used = set(sentences_of(text))
        calls = 0

        def choose(words: int) -> str | None:
            nonlocal calls
            calls += 1
            draw = mix((key + calls * GOLDEN) & MASK)
            nearest = []
            for place in self._outwards(words, draw):
                if self.documents[place] != doc_id and self.sentences[place] not in used:
                    nearest.append(place)
                    if len(nearest) == _NEAR:
                        break
            if not nearest:
                return None
            close = [place for place in nearest if abs(self.words[place] - words) <= words // 4] or nearest[:1]
            chosen = self.sentences[close[(draw >> 32) % len(close)]]
            used.add(chosen)
            return chosen

        return choose

    def other_words(self, count: int, doc_id: str, text: str, query: str, key: int) -> list[str] | None:
        """``count`` content words of another passage's sentence (or of several, if one has too few), none of them the
        query's; None if there are not as many. ``key`` decides."""
        avoided = set(content_words(query))
        own = set(sentences_of(text))
        found: dict[str, None] = {}
        for step in range(len(self.sentences)):
            place = (key + step) % len(self.sentences)
            if self.documents[place] == doc_id or self.sentences[place] in own:
                continue
            found |= dict.fromkeys(word for word in content_words(self.sentences[place]) if word not in avoided)
            if len(found) >= count:
                return list(found)[:count]
        return None

    def _outwards(self, words: int, draw: int) -> Iterator[int]:
        """The places of all sentences, those whose length is nearest to ``words`` first."""
        first, after = bisect_left(self.words, words), bisect_right(self.words, words)
        high = first + draw % (after - first) if after > first else first
        low = high - 1
        while low >= 0 or high < len(self.words):
            if low < 0 or (high < len(self.words) and self.words[high] - words <= words - self.words[low]):
                yield high
                high += 1
            else:
                yield low
                low -= 1


def _smallest(batches: Iterable[pl.DataFrame], seed: int, size: int) -> pl.DataFrame:
    """The ``size`` passages with the smallest keys: ``key``, ``doc_id``, ``text``."""
    start = FNV_OFFSET ^ mixed_seed(seed)
    schema = {"key": pl.UInt64, "doc_id": pl.String, "text": pl.String}
    kept = pl.DataFrame(schema=schema)
    for batch in batches:
        keys = mix_array(fnv_array(*text_bytes(batch["doc_id"]), start))
        if kept.height == size:
            batch, keys = batch.filter(pl.Series(keys <= np.uint64(kept["key"][-1]))), keys[keys <= kept["key"][-1]]
        keyed = batch.select(pl.Series("key", keys, pl.UInt64), "doc_id", "text")
        kept = pl.concat([kept, keyed]).sort("key", "doc_id").head(size)
    return kept
