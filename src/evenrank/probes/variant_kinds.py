"""The kinds of variants: what each changes, and what it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Kind:
    """What a variant of this kind changes.

    ``pairs``: it depends on the query, so it has a text per query and passage, not one per passage. ``answers``,
    ``queries``, ``lexicon``: what it needs (``queries`` with a run or judgements). ``placebo``: whether there is one.
    ``oriented``: its effect is signed by the change of the passage's magnitude.
    """

    name: str
    change: str
    pairs: bool = False
    answers: bool = False
    queries: bool = False
    lexicon: bool = False
    placebo: bool = False
    oriented: bool = False


KINDS: Mapping[str, Kind] = MappingProxyType(
    {
        kind.name: kind
        for kind in (
            Kind("swap", "group words exchanged for those of another group", lexicon=True, placebo=True, oriented=True),
            Kind("neutral", "group words exchanged for neutral ones", lexicon=True, placebo=True),
            Kind("rotate", "sentences (or words) rotated at a drawn place"),
            Kind("padded", "sentences of other passages added until the length doubles"),
            Kind("brief", "only the answer's sentence", pairs=True, answers=True),
            Kind("early", "the answer's sentence moved first", pairs=True, answers=True, placebo=True),
            Kind("late", "the answer's sentence moved last", pairs=True, answers=True, placebo=True),
            Kind("foil", "the answer's sentence removed", pairs=True, answers=True, placebo=True),
            Kind("repeated", "the query's content words in one more sentence", pairs=True, queries=True, placebo=True),
        )
    }
)
"""Every kind but ``placebo``, which is a placebo *of* one of them."""

PLACEBO = "placebo"
WITH_PLACEBO = tuple(kind.name for kind in KINDS.values() if kind.placebo)
