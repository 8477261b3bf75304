"""Converts docstrings to Markdown, for mkdocstrings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from griffe import Extension

sys.path.insert(0, str(Path(__file__).parent))
from _hooks import _markdown


class PlainRoles(Extension):
    """reStructuredText roles become code, doctests become code blocks."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called by griffe for each object."""
        if obj.docstring is not None:
            obj.docstring.value = _markdown(obj.docstring.value)
