"""Keys and passwords kept out of what is written: messages, notes, and the logs of the HTTP library."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

HIDDEN = "…"
"""Stands for what is not shown."""
SHORTEST = 6
"""Characters of a value in an address that may be a key, and of the beginnings and ends of keys that are not shown."""


def scrubbed(text: str, secrets: Sequence[str]) -> str:
    """A text without ``secrets``, longest first, and without their beginnings and ends of SHORTEST characters on."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
        if len(secret) > SHORTEST:
            text = _without_beginnings(text, secret)
            text = _without_beginnings(text[::-1], secret[::-1])[::-1]
    return text


def _without_beginnings(text: str, secret: str) -> str:
    """A text without what begins as a secret does, as far as it goes on like that."""
    first, *others = text.split(secret[:SHORTEST])
    rest = secret[SHORTEST:]
    return HIDDEN.join([first, *(part[_common(part, rest) :] for part in others)])


def _common(one: str, other: str) -> int:
    """How far two texts are the same."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


class _WithoutQuery(logging.Filter):
    """Cuts what comes after ``?`` in the paths that urllib3 logs at DEBUG: it may be a key."""

    def filter(self, record: logging.LogRecord) -> bool:
        if isinstance(record.args, tuple):
            record.args = tuple(
                re.sub(r"\?\S*", f"?{HIDDEN}", one) if isinstance(one, str) else one for one in record.args
            )
        return True


_without_query = _WithoutQuery()


def hide_queries() -> None:
    """Cuts the queries of addresses from what is logged from now on."""
    for name in ("urllib3.connectionpool", "urllib3.util.retry"):
        # The same filter is added only once.
        logging.getLogger(name).addFilter(_without_query)
