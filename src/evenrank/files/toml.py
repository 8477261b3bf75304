"""TOML that people write: limits first, then parsing."""

from __future__ import annotations

import re
import tomllib
from typing import Any

PARTS = 100
"""The most parts that the name of a key may have: the parser takes seconds for thousands."""
_LONG_KEY = re.compile(rf"""^[ \t]*\[{{0,2}}[ \t]*(?:[\w"'-]+[ \t]*\.[ \t]*){{{PARTS}}}""", re.MULTILINE)


def parsed_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML text.

    Raises ValueError for what is no TOML, and for a key of more than :data:`PARTS` parts.

    >>> parsed_toml("a.b = 1")
    {'a': {'b': 1}}
    """
    long_key = _LONG_KEY.search(text)
    if long_key is not None:
        line = text.count("\n", 0, long_key.start()) + 1
        raise ValueError(f"the key in line {line} has more than {PARTS} parts")
    return tomllib.loads(text)
