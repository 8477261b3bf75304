"""Words around numbers."""

from __future__ import annotations


def counted(count: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is one: ``1 query``, ``12,000 documents``."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """The plural of a noun of this library's messages."""
    return f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}s"


def singular(noun: str) -> str:
    """The singular of a noun of this library's messages; a word that is no plural stays."""
    return f"{noun[:-3]}y" if noun.endswith("ries") else noun.removesuffix("s")


def are(count: int) -> str:
    """``is`` for one, else ``are``."""
    return "is" if count == 1 else "are"
