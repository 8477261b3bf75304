"""The sentences of the built-in collection, read from ``sentences.toml`` into numbered templates."""

from __future__ import annotations

import itertools
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import resources
from string import Formatter
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

Ids = npt.NDArray[np.int64]

GROUPS = ("m", "f", "n")
"""The groups in the order of the arrays of :class:`Templates`; ``n`` is neutral wording."""


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence: alternating literals and slots, literals at even indexes."""

    pieces: tuple[str, ...]
    answer: str = ""
    """What fills the answer slot: "place", "person", "year", "number" or the name of a list of answers."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A topic of the collection: its noun, kind and words."""

    noun: str
    kind: int
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Templates:
    """All templates, and their indexes by use, for K kinds with A attributes each."""

    all: tuple[Template, ...]
    ask: Ids
    """[K, A, 3]: questions."""
    tell: Ids
    """[K, A, 3]: facts, which contain the answer."""
    tease: Ids
    """[K, A, 2]: sentences with a question's words but without an answer."""
    fillers: Ids
    """[K, F]: sentences about the entity or the topic."""
    voices: Ids
    """[V, 3]: sentences about people, in the wording of each group of GROUPS."""
    people_ask: Ids
    """[P, 3, 2]: questions about a person of either group, for P facts."""
    people_tell: Ids
    """[P, 3, 2]: their facts."""
    people_words: Ids
    """[P, 3]: gendered words of a fact."""
    voice_words: Ids
    """[V]: gendered words in the male and in the female wording of a voice."""
    kinds: tuple[str, ...]
    """The names of the K kinds."""
    topics: tuple[Topic, ...]
    """The kinds take turns, so that the first n cover them evenly."""
    answers: dict[str, tuple[str, ...]]
    helpers: tuple[str, ...]
    syllables: dict[str, tuple[str, ...]]
    male_words: frozenset[str]
    female_words: frozenset[str]


_USES = ("ask", "tell")


@cache
def templates() -> Templates:
    """The templates, read once."""
    data = tomllib.loads(resources.files(__package__).joinpath("sentences.toml").read_text(encoding="utf-8"))
    return _Builder(data).build()


class _Builder:
    def __init__(self, data: dict[str, Any]) -> None:
        self.data = data
        self.wording: dict[str, list[str]] = data["wording"]
        self.all: list[Template] = []

    def build(self) -> Templates:
        kinds = list(self.data["kinds"].values())
        common = self.data["common"]
        voices = [[self._add(self._worded(text, group)) for group in range(3)] for text in common["voices"]]
        per_use = {
            use: np.array([[self._numbers(a[use], a["answer"]) for a in kind["attributes"]] for kind in kinds])
            for use in ("ask", "tell", "tease")
        }
        people = {
            use: [[self._both(text, p["answer"]) for text in p[use]] for p in self.data["people"]] for use in _USES
        }
        return Templates(
            people_ask=np.array(people["ask"]),
            people_tell=np.array(people["tell"]),
            people_words=np.array([[self._gendered(text) for text in p["tell"]] for p in self.data["people"]]),
            fillers=np.array([self._numbers(common["fillers"] + kind["fillers"]) for kind in kinds]),
            voices=np.array(voices),
            voice_words=np.array([self._gendered(text) for text in common["voices"]]),
            kinds=tuple(self.data["kinds"]),
            topics=tuple(
                Topic(topic["noun"], number, tuple(topic["words"]))
                for turn in zip(*(kind["topics"] for kind in kinds), strict=True)
                for number, topic in enumerate(turn)
            ),
            answers={name: tuple(words) for name, words in self.data["answers"].items()},
            helpers=tuple(common["helpers"]),
            syllables={name: tuple(parts) for name, parts in self.data["syllables"].items()},
            male_words=frozenset(forms[0] for forms in self.wording.values()),
            female_words=frozenset(forms[1] for forms in self.wording.values()),
            all=tuple(self.all),
            **per_use,
        )

    def _worded(self, text: str, group: int) -> str:
        for slot, forms in self.wording.items():
            text = text.replace(f"{{{slot}}}", forms[group])
        return text

    def _both(self, text: str, answer: str) -> list[int]:
        """A text in male and in female wording."""
        return [self._add(self._worded(text, group), answer) for group in range(2)]

    def _gendered(self, text: str) -> int:
        return sum(slot in self.wording for slot in _pieces(text)[1::2])

    def _numbers(self, texts: list[str], answer: str = "") -> list[int]:
        return [self._add(text, answer) for text in texts]

    def _add(self, text: str, answer: str = "") -> int:
        self.all.append(Template(_pieces(text), answer))
        return len(self.all) - 1


def _pieces(text: str) -> tuple[str, ...]:
    pieces: list[str] = []
    for literal, slot, _, _ in Formatter().parse(text):
        pieces.append(literal)
        if slot is not None:
            pieces.append(slot)
    return tuple(pieces)


MALE_WORDS = templates().male_words
"""The male words of the collection, in lower case."""
FEMALE_WORDS = templates().female_words
"""The female words of the collection, in lower case."""


_POOLS = ("given", "family", "maker", "place")


@dataclass(frozen=True, slots=True)
class Names:
    """Pools of distinct names. Entities have a given and a family name, answers a given and a maker's name."""

    given: pl.Series
    family: pl.Series
    maker: pl.Series
    place: pl.Series


def make_names(rng: np.random.Generator, entities: int) -> Names:
    """Pools that grow with the number of entities like the vocabulary of natural text (to the power 0.6)."""
    size = int(entities**0.6) + 12
    taken = {word for words in templates().answers.values() for word in words}
    taken |= templates().male_words | templates().female_words
    syllables = templates().syllables
    pools = {}
    for what in _POOLS:
        parts = itertools.product(syllables["onset"], syllables["vowel"], syllables["middle"], syllables[what])
        every = [name for name in map("".join, parts) if name.lower() not in taken]
        chosen = rng.permutation(len(every))[:size]
        pools[what] = pl.Series(what, [every[i] for i in chosen.tolist()])
    return Names(**pools)
