"""Invented names, built from syllables."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import polars as pl

from .synthetic_templates import templates

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
