"""Placebos of a change of wording: as many places of a passage changed, by words that name no group.

A ranker reacts to any edit. What it makes of a swap is known only beside what it makes of edits that should not matter:

- ``synonym``: function words and the like become their synonyms, from our own list (``synonyms.toml``, English);
- ``name``: a name inside running text becomes another word that the collection uses as a name equally often (or as
  nearly so as there is), the same one throughout the passage;
- ``spacing``: a second space. Tokenisers that ignore white space, such as BERT's, see no change at all;
- ``any``, the usual one: synonyms, and names for the places that synonyms do not suffice for.

Which places are changed depends on the seed and the passage's id alone. Group words are never touched, nor, where a
probe makes the placebo, are words of the queries that the passage is listed for: to lose those does matter.

When it misleads: a synonym is not as salient as a group word, a name may be more so; a passage may have fewer places
than the variant changed (``edits`` says how many were). A placebo in a file is made without queries: it may take a
name away that a query asks for.

Worked example:

>>> import polars as pl
>>> from evenrank.groups import load_lexicon
>>> from evenrank.probes.placebos import placebo_of_words
>>> table = pl.DataFrame({"doc_id": ["d"], "text": ["Although she often won, he did not mind."]})
>>> placebo_of_words(table, np.array([3]), load_lexicon("gender-en"), "synonym", 0, None).texts.to_list()
["Though she frequently won, he didn't mind."]
"""

from __future__ import annotations

import functools
import re
import tomllib
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.files.hashing import GOLDEN, MASK, fnv, mix
from evenrank.files.tokens import APOSTROPHES, folded, tokenize, word_spans
from evenrank.groups import Lexicon, gendered_spans

from .group_wording import Edited, in_case_of

_RUN = r"[\p{L}\p{N},;]['’]?(?:[ \t\r\n]+\p{Lu}\p{Ll}+\b)+"
"""Names in running text, for polars: after a word or a comma, so not at the beginning of a sentence."""
_LETTERS = re.compile(r"(?<=\s)[^\W\d_]{2,}\b")
_AFTER_WORD = re.compile(r"[\w,;]['’]?\s+$")
_ARTICLE = re.compile(r"\ba(n)? $", re.IGNORECASE)
_SPACE = re.compile(r"(?<=\S) (?=\S)")
_BEGINS = re.compile(r"(?:^|[.!?:][\"”’')\]]*\s+)[\"“‘'(\[]*$")
"""What is before the first word of a sentence."""

Key = tuple[str, ...]
Asked = Mapping[str, frozenset[str]]
"""The words of the queries that each document is listed for, by its id."""


class Place(NamedTuple):
    """A place that may be changed: from ``start`` to ``end``, and what it becomes."""

    start: int
    end: int
    becomes: str


@dataclass(frozen=True, slots=True)
class Names:
    """The words that a collection uses as names, by how often.

    ``count``: how often each is used as one: capitalised inside a sentence; of words that are more often written so
    than in small letters. ``ordered``: (count, word) in order.
    """

    count: Mapping[str, int]
    ordered: Sequence[tuple[int, str]]

    @staticmethod
    def counted(batches: Iterable[pl.DataFrame]) -> Names:
        """Counted over the ``text`` of a whole collection, batch by batch."""
        names: Counter[str] = Counter()
        small: Counter[str] = Counter()
        for batch in batches:
            runs = batch["text"].str.extract_all(_RUN).explode().drop_nulls()
            names.update(_frequencies(runs.str.slice(1).str.extract_all(r"\p{Lu}\p{Ll}+\b")))
            small.update(_frequencies(batch["text"].str.extract_all(r"\b\p{Ll}+\b")))
        return Names.of({word: count for word, count in names.items() if count > small[word.lower()]})

    @staticmethod
    def of(count: Mapping[str, int]) -> Names:
        """From the counts themselves."""
        return Names(count, sorted((times, word) for word, times in count.items()))

    def like(self, word: str, draw: int, without: AbstractSet[str]) -> str | None:
        """A word used as often as ``word``, or else one of those nearest in count; None if there is none at all.

        Of words that are equally near, in order of (count, word), the first from number ``draw`` on, around and around,
        that is neither ``word`` nor, folded, in ``without``.
        """
        times = self.count[word]
        low = high = bisect_left(self.ordered, (times, ""))
        while low > 0 or high < len(self.ordered):
            ends = [times - self.ordered[low - 1][0]] if low > 0 else []
            ends += [self.ordered[high][0] - times] if high < len(self.ordered) else []
            start, end = low, high
            low = bisect_left(self.ordered, (times - min(ends), ""))
            high = bisect_left(self.ordered, (times + min(ends) + 1, ""))
            below, near = start - low, start - low + high - end
            for step in range(near):
                place = (draw + step) % near
                other: str = self.ordered[low + place if place < below else end + place - below][1]
                if other != word and other.casefold() not in without:
                    return other
        return None


def _frequencies(words: pl.Series) -> Counter[str]:
    counts = words.explode().drop_nulls().value_counts()
    return Counter(dict(counts.iter_rows()))


def placebo_of_words(
    table: pl.DataFrame,
    edits: NDArray[np.int64],
    lexicon: Lexicon,
    form: str,
    seed: int,
    names: Names | None,
    asked: Asked = MappingProxyType({}),
) -> Edited:
    """The texts of a table (``doc_id``, ``text`` [N]) with as many places changed as ``edits`` [N] says, or all.

    ``form``: synonym, name, spacing or any; ``names``: those of the whole collection, for ``name`` and ``any``;
    ``asked``: for each document the words of its queries, which are neither changed nor written. What a passage becomes
    depends on its text, its id, its number of edits and the seed (and the names and queries).
    """
    texts = table["text"]
    rows = np.flatnonzero(edits > 0)
    counts = np.zeros(len(texts), dtype=np.int64)
    if not len(rows):
        return Edited(texts, counts)
    changed = []
    # What a placebo never writes as a name: the words of phrases too.
    words = frozenset(word for key in lexicon.entries("word") for word in key)
    chosen = table[rows].select("doc_id", "text")
    for row, (doc_id, text) in zip(rows.tolist(), chosen.iter_rows(), strict=True):
        of_queries = asked.get(doc_id, frozenset())
        spans = [(start, end) for start, end, _ in gendered_spans(text, lexicon)]
        if of_queries:
            spans += [(start, end) for start, end in word_spans(text) if folded(text[start:end]) in of_queries]
        draw = mix(mix((seed + GOLDEN) & MASK) ^ mix(fnv(doc_id.encode())))
        places: list[Place] = []
        wanted = int(edits[row])
        if form in ("synonym", "any"):
            synonyms = _synonym_places(text, spans, lexicon)
            free = [place for place in synonyms if of_queries.isdisjoint(tokenize(place.becomes))]
            places = _drawn(free, wanted, draw)
        elif form == "spacing":
            places = _drawn(_spaces(text, spans), wanted, draw)
        if names is not None and form in ("name", "any") and len(places) < wanted:
            places += _name_places(text, spans, words | of_queries, names, draw, wanted - len(places))
        counts[row] = len(places)
        changed.append(_replaced(text, places))
    written = texts.clone().scatter(rows, pl.Series(changed, dtype=pl.String))
    return Edited(written, counts, short=int((counts < edits).sum()))


def _drawn(places: list[Place], wanted: int, draw: int) -> list[Place]:
    """As many of the places as wanted: those of smallest random keys."""
    keys = [mix((draw + number * GOLDEN) & MASK) for number in range(len(places))]
    return [places[number] for number in sorted(range(len(places)), key=keys.__getitem__)[:wanted]]


def _replaced(text: str, places: list[Place]) -> str:
    parts, done = [], 0
    for start, end, becomes in sorted(places):
        parts += [text[done:start], becomes]
        done = end
    return "".join([*parts, text[done:]])


def _apart(start: int, end: int, spans: list[tuple[int, int]]) -> bool:
    return all(end <= other or start >= until for other, until in spans)


def _spaces(text: str, spans: list[tuple[int, int]]) -> list[Place]:
    starts = [match.start() for match in _SPACE.finditer(text)]
    return [Place(start, start + 1, "  ") for start in starts if _apart(start, start + 1, spans)]


@functools.lru_cache(maxsize=8)
def _synonyms(lexicon: Lexicon) -> tuple[dict[Key, str | None], int]:
    """What each word or phrase becomes, by its tokens, None where it is left; and the tokens of the longest."""
    data = tomllib.loads(resources.files(__package__).joinpath("synonyms.toml").read_text(encoding="utf-8"))
    table: dict[Key, str | None] = {tuple(tokenize(word)): other for word, other in data["synonyms"].items()}
    table = {key: other if other and not gendered_spans(other, lexicon) else None for key, other in table.items()}
    table |= {tuple(tokenize(phrase)): None for phrase in data["left"]}
    return table, max(map(len, table))


def _synonym_places(text: str, spans: list[tuple[int, int]], lexicon: Lexicon) -> list[Place]:
    """Where a synonym fits: in no group word, compound or name."""
    table, longest = _synonyms(lexicon)
    where = word_spans(text)
    tokens = [folded(text[start:end]) for start, end in where]
    places, number = [], 0
    while number < len(tokens):
        for length in range(min(longest, len(tokens) - number), 0, -1):
            key = tuple(tokens[number : number + length])
            if key not in table:
                continue
            start, end, becomes = where[number][0], where[number + length - 1][1], table[key]
            if becomes is not None and _fits(text, start, end, becomes) and _apart(start, end, spans):
                places.append(Place(start, end, in_case_of(text[start:end], becomes)))
            number += length - 1
            break
        number += 1
    return places


def _fits(text: str, start: int, end: int, becomes: str) -> bool:
    """Words joined by nothing but spaces, to nothing else, and in small letters but for the first of a sentence.

    After an article (a, an), what they become must begin as the article wants.
    """
    around = text[start - 1 : start] + text[end : end + 1]
    if not set(around).isdisjoint({"-", "‐", "‑", "/", "_", "&", *APOSTROPHES}):
        return False
    words = text[start:end].split(" ")
    if len(words) != len(word_spans(text[start:end])) or not "".join(words)[1:].islower():
        return False
    article = _ARTICLE.search(text, max(0, start - 4), start)
    if article and (article[1] is not None) != (becomes[0] in "aeiou"):
        return False
    return words[0][0].islower() or _BEGINS.search(text, max(0, start - 12), start) is not None


def _name_places(
    text: str, spans: list[tuple[int, int]], words: frozenset[str], names: Names, draw: int, wanted: int
) -> list[Place]:
    """Names in a passage and what they become, name by name in random order; never what is there already."""
    places: dict[str, list[tuple[int, int]]] = {}
    for match in _LETTERS.finditer(text):
        word = match[0]
        if (
            word in names.count
            and _apart(*match.span(), spans)
            and _AFTER_WORD.search(text, max(0, match.start() - 8), match.start())
        ):
            places.setdefault(word, []).append(match.span())
    without = {*words, *tokenize(text)} if places else set()
    replacements: list[Place] = []
    for word in sorted(places, key=lambda name: mix(draw ^ fnv(name.encode()))):
        if len(replacements) >= wanted:
            break
        other = names.like(word, mix(draw ^ mix(fnv(word.encode()))), without)
        if other is not None:
            without.add(other.casefold())
            replacements += [Place(start, end, other) for start, end in places[word]]
    return replacements[:wanted]
