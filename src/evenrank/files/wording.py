"""Numbers and nouns in messages."""

from __future__ import annotations

from collections.abc import Sequence


def counted(count: int, noun: str) -> str:
    """A number with its noun, plural unless the number is one: ``1 query``, ``12,000 documents``."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def in_clusters(count: int, worth: float) -> str:
    """Clusters counted, and how many of equal size they are ``worth``, where unlike sizes take more than a tenth.

    >>> in_clusters(3, 3.0), in_clusters(21, 6.11)
    ('3 clusters', '21 clusters, worth 6.1 of equal size')
    """
    text = counted(count, "cluster")
    return text if worth > 0.9 * count else f"{text}, worth {worth:.{1 if worth < 10 else 0}f} of equal size"


def plural(noun: str) -> str:
    """The plural of a noun of this library's messages."""
    if noun.endswith(("ch", "x")):
        return f"{noun}es"
    return f"{noun[:-1]}ies" if noun.endswith("y") and noun[-2] not in "aeou" else f"{noun}s"


def singular(noun: str) -> str:
    """The singular of a noun of this library's messages; any other word is unchanged."""
    return f"{noun[:-3]}y" if noun.endswith("ries") else noun.removesuffix("s")


def are(count: int) -> str:
    """``is`` for one, else ``are``."""
    return "is" if count == 1 else "are"


def percent(share: float, decimals: int = 0) -> str:
    """A share as a percentage with at most so many decimals; a part is never rounded to nothing, nor to the whole.

    >>> percent(0.123), percent(0.004), percent(0.0), percent(0.1042, 1), percent(0.1, 1), percent(0.998)
    ('12%', '< 1%', '0%', '10.4%', '10%', '> 99%')
    """
    text = f"{100 * share:.{decimals}f}"
    if share > 0 and float(text) == 0:
        return f"< {10**-decimals:g}%"
    if share < 1 and float(text) == 100:
        return f"> {100 - 10**-decimals:g}%"
    return f"{text.rstrip('0').rstrip('.') if decimals else text}%"


def listed(parts: Sequence[str]) -> str:
    """Parts in a sentence.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else "".join(parts)
