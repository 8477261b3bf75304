"""The shape of the source: which folder may import which."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "evenrank"

FLOORS = (
    ("files",),
    ("groups", "stats"),
    ("measures", "models", "mitigation"),
    ("results",),
    ("auditing", "search"),
    ("decide", "probes", "testing", "training"),
    ("evenrank",),
    ("papers",),
    ("cli",),
)
"""From the ground up; a folder imports only from the floors below its own. ``evenrank``: the package's own names."""
LEAVES = ("evenrank._command", "evenrank._lazy", "evenrank._version", "evenrank.options")
"""Modules beside the folders that any folder may import."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A file of the source."""

    name: str
    path: Path

    @property
    def place(self) -> str:
        return self.path.relative_to(SOURCE).as_posix()

    @property
    def folder(self) -> str:
        if self.name == "evenrank.__main__":
            return "cli"
        parts = self.path.relative_to(SOURCE).parts
        return "/".join(parts[:-1]) or "evenrank"

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def imported(self, tree: ast.AST) -> Iterator[str]:
        """The modules of the package that the statements below ``tree`` import; annotations' imports too."""
        for node in self.nodes if tree is self.tree else ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                start = node.module or ""
                if node.level:
                    inside = self.name.split(".") + ["__init__"] * (self.path.name == "__init__.py")
                    start = ".".join([*inside[: -node.level], *filter(None, [node.module])])
                inner = [f"{start}.{alias.name}" for alias in node.names]
                names = [name if name in modules() else start for name in inner]
            else:
                continue
            yield from (name for name in names if name in modules())


@cache
def modules() -> dict[str, Module]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        name = ".".join(("evenrank", *(parts[:-1] if parts[-1] == "__init__" else parts)))
        found[name] = Module(name, path)
    return found


def test_every_folder_has_a_floor_and_imports_run_down() -> None:
    floor_of = {folder: number for number, floor in enumerate(FLOORS) for folder in floor}
    assert {module.folder for name, module in modules().items() if name not in LEAVES} == set(floor_of)
    up = [
        f"{module.place} imports {name}"
        for module in modules().values()
        for name in module.imported(module.tree)
        if name not in LEAVES and (folder := modules()[name].folder) != module.folder
        if floor_of[folder] >= floor_of[module.folder]
    ]
    assert not up, "\n".join(up)


def test_papers_import_what_folders_export() -> None:
    exported = {
        name: {one.value for node in module.tree.body if "__all__ = " in ast.unparse(node) for one in node.value.elts}
        for name, module in modules().items()
        if module.path.name == "__init__.py" and "__all__" in module.path.read_text(encoding="utf-8")
    }
    inside = [
        f"{module.place}: {alias.name} of {node.module}"
        for module in modules().values()
        if module.folder == "papers"
        for node in module.nodes
        if isinstance(node, ast.ImportFrom) and not node.level and (node.module or "").startswith("evenrank.")
        for alias in node.names
        if alias.name not in exported.get(str(node.module), ())
    ]
    assert not inside, "\n".join(inside)


def _at_import(statements: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements that run when a module is imported, but for those for the type checker."""
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.unparse(statement.test):
            yield from _at_import(statement.orelse)
        elif not isinstance(statement, Function):
            for name in ("body", "orelse", "finalbody"):
                yield from _at_import(getattr(statement, name, []))
            for handler in getattr(statement, "handlers", []):
                yield from _at_import(handler.body)


def test_no_circle_of_modules() -> None:
    imports = {
        name: sorted({found for line in _at_import(module.tree.body) for found in module.imported(line)} - {name})
        for name, module in modules().items()
    }
    done: set[str] = set()
    circles = []

    def visit(name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circles.append(" → ".join((*path[path.index(name) :], name)))
        elif name not in done:
            for other in imports[name]:
                visit(other, (*path, name))
            done.add(name)

    for name in imports:
        visit(name, ())
    assert not circles, "\n".join(circles)


def test_intervals_and_p_values_are_made_in_one_place() -> None:
    """Quantiles and tails of distributions, and percentiles of draws, are the core's alone."""
    made = re.compile(r"stdtr|scipy\.(stats|special)|percentile\(|\bquantile\(")
    places = [path for path in SOURCE.rglob("*.py") if made.search(path.read_text(encoding="utf-8"))]
    assert {path.relative_to(SOURCE).parts[0] for path in places} == {"stats"}
