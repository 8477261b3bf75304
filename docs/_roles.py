"""Docstrings as Markdown, for the pages that mkdocstrings makes of them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from griffe import Extension

sys.path.insert(0, str(Path(__file__).parent))
from _hooks import _markdown


class PlainRoles(Extension):
    """Roles of reStructuredText become code, and what a doctest shows a block of code."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Called by griffe for each object that it reads."""
        if obj.docstring is not None:
            obj.docstring.value = _markdown(obj.docstring.value)
