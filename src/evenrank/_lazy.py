"""The names that a package exports, imported on first use."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The ``__getattr__`` and ``__dir__`` of a package whose exports are imported on first use.

    Each export is named once for type checkers, in the package's block ``if TYPE_CHECKING:``, which is read here too.

    >>> import evenrank.files
    >>> evenrank.files.make_folder.__module__
    'evenrank.files.outputs'
    """
    module = sys.modules[package]

    @cache
    def homes() -> dict[str, str]:
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf-8"))
        block = next(
            node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        )
        imports = [line for line in block.body if isinstance(line, ast.ImportFrom)]
        return {name.name: "." * line.level + (line.module or "") for line in imports for name in line.names}

    def find(name: str) -> object:
        if name not in homes():
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if homes()[name] in (".", package):
            return importlib.import_module(f"{package}.{name}")
        try:
            home = importlib.import_module(homes()[name], package)
        except ModuleNotFoundError:
            from evenrank.files.errors import require_neural

            require_neural(f"{package}.{name}")
            raise
        value: object = getattr(home, name)
        setattr(module, name, value)
        return value

    return find, lambda: sorted({*homes(), *module.__all__})
