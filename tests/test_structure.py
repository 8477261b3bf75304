"""The shape of the source: what imports what, how long things are, how often types are left open."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "evenrank"

FLOORS = (
    ("io",),
    ("engines", "datasets", "reports"),
    ("groups",),
    ("measures", "embeddings"),
    ("rankers",),
    ("retrieval",),
    ("mitigation",),
    ("auditing",),
    ("decisions", "probes"),
    ("position", "training"),
    ("experiments", "integrations"),
    ("evenrank",),
    ("cli",),
)
"""From the ground up; a folder imports only from the floors below its own. ``evenrank``: the package's own names."""
LEAVES = ("evenrank._command", "evenrank._jit", "evenrank._version")
"""Modules beside the folders that any folder may import."""

MOST_FOLDERS = 18
MOST_IMPORTS = 100
"""Between folders."""
MOST_ANY = 60
LONGEST_MODULE = 350
LONGEST_FUNCTION = 60
MOST_PARAMETERS = 8

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
    def lines(self) -> list[str]:
        return self.path.read_text(encoding="utf-8").splitlines()

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse("\n".join(self.lines))

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(self.tree))

    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes if isinstance(node, Function))

    def imported(self, tree: ast.AST) -> Iterator[str]:
        """The modules of the package that the statements below ``tree`` import; annotations' imports too."""
        for node in self.nodes if tree is self.tree else ast.walk(tree):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                start = node.module or ""
                if node.level:
                    package = self.name.split(".")
                    inside = package if self.path.name == "__init__.py" else package[:-1]
                    base = inside[: len(inside) - node.level + 1]
                    start = ".".join([*base, *filter(None, [node.module])])
                names = [
                    f"{start}.{alias.name}" if f"{start}.{alias.name}" in modules() else start for alias in node.names
                ]
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


@cache
def folder_imports() -> dict[tuple[str, str], list[str]]:
    """(importing, imported) folder → the modules where it happens."""
    found = defaultdict(list)
    for module in modules().values():
        for name in module.imported(module.tree):
            folder = modules()[name].folder
            if name not in LEAVES and folder != module.folder:
                found[module.folder, folder].append(f"{module.place} imports {name}")
    return dict(found)


def test_every_folder_has_a_floor() -> None:
    folders = {module.folder for name, module in modules().items() if name not in LEAVES}
    assert folders == {folder for floor in FLOORS for folder in floor}
    assert len(folders - {"evenrank"}) <= MOST_FOLDERS


def test_imports_run_down() -> None:
    floor_of = {folder: number for number, floor in enumerate(FLOORS) for folder in floor}
    up = [
        place for (a, b), places in folder_imports().items() if floor_of[b] >= floor_of[a] for place in sorted(places)
    ]
    assert not up, "\n".join(up)


def test_leaves_import_nothing_of_the_package() -> None:
    assert [name for leaf in LEAVES for name in modules()[leaf].imported(modules()[leaf].tree)] == []


def test_few_imports_between_folders() -> None:
    edges = folder_imports()
    few = sorted((len(places), places[0]) for places in edges.values())[:15]
    assert len(edges) <= MOST_IMPORTS, f"{len(edges)} imports between folders; those made in the fewest places: {few}"


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


def test_short_modules() -> None:
    long = [f"{m.place}: {len(m.lines)} lines" for m in modules().values() if len(m.lines) > LONGEST_MODULE]
    assert not long, "\n".join(long)


def _has_reason(module: Module, function: Function, word: str) -> bool:
    """Whether a comment ``# word: …`` (or ``# long, parameters: …``) is above a function or in its head."""
    first = min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])
    reason = re.compile(rf"# (\w+, )?{word}(, \w+)?: \w")
    return any(reason.search(line) for line in module.lines[max(first - 3, 0) : function.body[0].lineno])


def test_short_functions() -> None:
    long = [
        f"{module.place}: {function.name} has {length} lines"
        for module in modules().values()
        for function in module.functions()
        if (length := (function.end_lineno or 0) - function.lineno + 1) > LONGEST_FUNCTION
        and not _has_reason(module, function, "long")
    ]
    assert not long, "\n".join(long)


def _parameters(function: Function) -> int:
    given = [*function.args.posonlyargs, *function.args.args]
    own = bool(given) and given[0].arg in ("self", "cls")
    return len(given) + len(function.args.kwonlyargs) - own


def test_few_parameters() -> None:
    many = [
        f"{module.place}: {function.name} has {count} parameters"
        for module in modules().values()
        for function in module.functions()
        if (count := _parameters(function)) > MOST_PARAMETERS and not _has_reason(module, function, "parameters")
    ]
    assert not many, "\n".join(many)


def _is_any(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Name) and node.id == "Any"


def test_types_are_seldom_left_open() -> None:
    uses: Counter[str] = Counter()
    hidden = []
    for module in modules().values():
        for node in module.nodes:
            if _is_any(node):
                uses[module.folder] += 1
            if isinstance(node, ast.Attribute) and node.attr == "Any" and ast.unparse(node) == "typing.Any":
                uses[module.folder] += 1
            assigned = isinstance(node, ast.Assign | ast.AnnAssign) and _is_any(node.value)
            cast = isinstance(node, ast.Call) and len(node.args) > 1 and _is_any(node.args[0])
            if assigned or (cast and ast.unparse(node).startswith("cast(Any,")):
                hidden.append(f"{module.place}, line {node.lineno}: {ast.unparse(node)}")
    assert not hidden, "\n".join(hidden)
    assert uses.total() <= MOST_ANY, f"{uses.total()} uses of Any: {dict(uses.most_common())}"


def test_a_file_name_means_one_thing() -> None:
    places = defaultdict(list)
    for module in modules().values():
        # Commands are named for their subject.
        if module.folder != "cli" and module.path.name not in ("__init__.py", "__main__.py"):
            places[module.path.name].append(module.place)
    several = [" and ".join(found) for found in places.values() if len(found) > 1]
    assert not several, "\n".join(several)
