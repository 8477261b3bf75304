"""People's rewordings of texts into another group, beside the swap of the same texts.

A swap by a word list is worth as much as it is like what people would have written. Where both wordings of a text are
at hand, such as the male and female texts of Grep-BiasIR, the two can be compared word by word. Only some of people's
rewordings can be had by exchanging words at all: those that are *one for one* (see :class:`Rewording`).

Worked example:

>>> from evenrank.groups import load_lexicon
>>> from evenrank.probes.rewordings import compared
>>> [found] = compared(["Men hit by a handsome guy."], ["Women hit by a pretty girl."], load_lexicon("gender-en"))
>>> found.one_for_one, found.misses
(True, (('handsome', 'handsome', 'pretty'),))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from evenrank.groups import Lexicon
from evenrank.groups.tokens import tokenize

from .group_wording import POSSESSIVE, swapped

_PRONOUNS = frozenset(word for pair in POSSESSIVE for word in pair if word not in ("them", "theirs"))


@dataclass(frozen=True, slots=True)
class Rewording:
    """A text, its swap, and the same text as people reworded it.

    ``one_for_one``: people exchanged words and did nothing else: both texts have as many words; a word of the one
    always stands where the same word of the other stands, and the reverse (*her*, *his*, *him* and *hers* count as one
    word, as English *her* is two); and no word that has a counterpart was left as it is. ``changed``: how many words
    people, or the swap, changed (0 if the numbers of words differ); ``misses``: those where the two differ, as (word,
    the swap's, people's).
    """

    one_for_one: bool
    changed: int
    misses: tuple[tuple[str, str, str], ...]


def compared(texts: Sequence[str], reworded: Sequence[str], lexicon: Lexicon) -> list[Rewording]:
    """Each text's swap beside its rewording, by their words, case ignored."""
    swaps = swapped(pl.Series(texts, dtype=pl.String), lexicon).texts.to_list()
    with_counterpart = {tuple(tokenize(word)) for word, _ in lexicon.pairs}
    found = []
    for text, swap, theirs in zip(texts, swaps, reworded, strict=True):
        words, ours, other = tokenize(text), tokenize(swap), tokenize(theirs)
        if not len(words) == len(ours) == len(other):
            found.append(Rewording(False, 0, ()))
            continue
        places = list(zip(words, ours, other, strict=True))
        misses = tuple(place for place in places if place[1] != place[2])
        kept = any(word == they and (word,) in with_counterpart for word, _, they in places)
        changed = sum(not word == our == they for word, our, they in places)
        found.append(Rewording(_exchanged(words, other) and not kept, changed, misses))
    return found


def _exchanged(words: list[str], others: list[str]) -> bool:
    """Whether each word always stands where one and the same other word stands, and the reverse."""
    both = {tuple("her" if word in _PRONOUNS else word for word in pair) for pair in zip(words, others, strict=True)}
    return len(both) == len({first for first, _ in both}) == len({second for _, second in both})
