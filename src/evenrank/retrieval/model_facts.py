"""What an index says of its model, checked where it is read: it may come from anywhere."""

from __future__ import annotations

import os
from collections.abc import Mapping

from evenrank.io.ranges import LARGEST
from evenrank.rankers.truncation import Truncation

_TEXTS = ("kind", "model", "sha256", "path", "query_prompt", "document_prompt", "precision", "backend", "device")
_COUNTS = ("cut", "of", "lost_end")


def are_facts(facts: object) -> bool:
    """Whether these are a model's facts, as :meth:`TextEncoder.facts` gives them: of the types that a search needs."""
    if not isinstance(facts, Mapping) or not isinstance(facts.get("model"), str):
        return False
    if not all(facts.get(name) is None or isinstance(facts[name], str) for name in _TEXTS):
        return False
    if not all(_is_text(facts.get(name)) for name in _TEXTS if name != "path"):
        return False
    place = facts.get("path")
    return (place is None or _is_path(place)) and is_truncation(facts.get("truncated"))


def is_truncation(counts: object) -> bool:
    """Whether these are the values of a :class:`Truncation`, or None for counts that are not known."""
    if counts is None:
        return True
    if not isinstance(counts, dict) or counts.keys() != {"unit", "reads", *_COUNTS}:
        return False
    reads = counts["reads"]
    sound = all(type(number) is int and 0 <= number <= LARGEST for number in (counts[name] for name in _COUNTS))
    return sound and counts["unit"] in ["passage", "pair"] and (reads is None or (type(reads) is int and reads >= 0))


def truncation_notes(facts: Mapping[str, object], name: str) -> tuple[str, ...]:
    """What to say of the documents that the model did not read to their ends."""
    counts = facts.get("truncated")
    return Truncation(**counts).notes(name) if isinstance(counts, dict) else ()


def _is_text(value: object) -> bool:
    """Whether a value is None or a text that can be encoded: a JSON file can have half a pair of surrogates."""
    try:
        str(value).encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_path(value: object) -> bool:
    try:
        return isinstance(value, str) and b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False
