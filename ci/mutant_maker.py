"""The mutants of a source text: small mistakes, each a replacement of some bytes, and a fair draw of them."""

from __future__ import annotations

import ast
import random
import re
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any, NamedTuple

PAIRS = (("+", "-"), ("<", "<="), (">", ">="), ("==", "!="), ("and", "or"))
OTHER = {**dict(PAIRS), **{other: one for one, other in PAIRS}}
# Functions whose result can stand where their argument does, and those that refuse swapped arguments.
SAME_KIND = {"abs", "ceil", "exp", "floor", "list", "log", "log1p", "log2", "round", "set", "sorted", "sqrt", "unique"}
UNSWAPPED = {"filter", "getattr", "hasattr", "isinstance", "issubclass", "map", "setattr"}


class Mutant(NamedTuple):
    """The bytes from ``start`` to ``end`` of a file replaced; the name finds it again in another tree."""

    name: str
    file: str
    line: int
    start: int
    end: int
    new: str

    def within(self, source: str) -> str:
        text = source.encode()
        return (text[: self.start] + self.new.encode() + text[self.end :]).decode()


class Maker(ast.NodeVisitor):
    """Finds all mutants of a file. Strings, types, decorators and what errors say stay as they are."""

    def __init__(self, source: str, file: str) -> None:
        self.text, self.file, self.function = f"{source}\n".encode(), file, "<module>"
        self.lines = [0, *(match.end() for match in re.finditer(rb"\n", self.text))]
        self.found: list[Mutant] = []
        self.names: Counter[str] = Counter()
        self.returned: dict[str, str] = {}
        self.visit(ast.parse(source))

    def span(self, node: Any) -> tuple[int, int]:
        return self.lines[node.lineno - 1] + node.col_offset, self.lines[node.end_lineno - 1] + node.end_col_offset

    def code(self, node: ast.AST) -> str:
        return self.text[slice(*self.span(node))].decode()

    def edit(self, kind: str, start: int, end: int, new: str) -> None:
        """Adds a mutant, named by its lines before and after."""
        first, last = self.text.rfind(b"\n", 0, start) + 1, self.text.find(b"\n", end)
        changed = self.text[first:start] + new.encode() + self.text[end:last]
        before, after = (" ".join(text.decode().split()) for text in (self.text[first:last], changed))
        name = f"{self.file} {self.function}, {kind}: {before} → {after}"
        self.names[name] += 1
        if before != after:
            name += f" ({self.names[name]})" if self.names[name] > 1 else ""
            self.found.append(Mutant(name, self.file, self.text.count(b"\n", 0, start) + 1, start, end, new))

    def operators(self, kind: str, operands: list[ast.expr]) -> None:
        for left, right in pairwise(operands):
            start = self.span(left)[1]
            gap = self.text[start : self.span(right)[0]].decode()
            if "#" not in gap and (match := re.search(r"[<>=!]=|[-+<>]|\band\b|\bor\b", gap)):
                self.edit(kind, start + match.start(), start + match.end(), OTHER[match[0]])

    def swap(self, kind: str, values: list[ast.expr]) -> None:
        for left, right in pairwise(values):
            if not any(isinstance(side, ast.Starred) or is_text(side) for side in (left, right)):
                (start, stop), (begin, end) = self.span(left), self.span(right)
                self.edit(kind, start, end, self.code(right) + self.text[stop:begin].decode() + self.code(left))

    def visit(self, node: ast.AST) -> None:
        outer, skipped = self.function, {"annotation", "returns", "decorator_list"}
        match node:
            case ast.Raise() | ast.JoinedStr() | ast.AnnAssign(annotation=ast.Name(id="TypeAlias")):
                return
            case ast.Subscript(value=ast.Name(id="Annotated" | "Callable" | "Literal")):
                return
            case ast.Call(func=ast.Name(id="cast" | "TypeVar")) | ast.Assign(targets=[ast.Name(id="__all__")]):
                return
            case ast.Call(func=called) if name_of(called).endswith(("Error", "Warning", "warn")):
                return
            case ast.If(test=test) if name_of(test) == "TYPE_CHECKING":
                skipped.add("body")
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                self.function = name if outer == "<module>" else f"{outer}.{name}"
        self.mutate(node)
        for field, value in ast.iter_fields(node):
            for inner in value if isinstance(value, list) else [value]:
                if isinstance(inner, ast.AST) and field not in skipped:
                    self.visit(inner)
        self.function = outer

    def mutate(self, node: ast.AST) -> None:
        match node:
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub(), right=right):
                if not is_text(left) and not is_text(right):
                    self.operators("sign", [left, right])
            case ast.Compare(left=left, ops=[op], comparators=[right]) if not isinstance(op, ast.In | ast.NotIn):
                self.operators("sign", [left, right])
            case ast.UnaryOp(op=ast.USub()):
                self.edit("sign", self.span(node)[0], self.span(node)[0] + 1, "")
            case ast.BoolOp(values=values):
                self.operators("bound", values)
            case ast.Constant(value=bool() as value):
                self.edit("constant", *self.span(node), str(not value))
            case ast.Constant(value=int() as value):
                self.edit("bound", *self.span(node), str(value + 1))
            case ast.Constant(value=float() as value):
                self.edit("constant", *self.span(node), repr(2 * value or 1.0))
            case ast.Expr(value=ast.Call()):
                self.edit("dropped", *self.span(node), "pass")
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=called, args=[first, *_])):
                if name_of(first) == name or name_of(called) in SAME_KIND:
                    self.edit("dropped", *self.span(node.value), self.code(first))
            case ast.Return(value=ast.expr() as value):
                if self.function in self.returned:
                    self.edit("return", *self.span(value), self.returned[self.function])
                self.returned[self.function] = f"({self.code(value)})"
                self.swap("return", getattr(value, "elts", []))
        if isinstance(node, ast.Call) and name_of(node.func) not in UNSWAPPED:
            self.swap("arguments", node.args)


def name_of(node: ast.AST) -> str:
    return str(getattr(node, "id", getattr(node, "attr", "")))


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str)


def drawn(mutants: list[Mutant], number: int, seed: int) -> list[Mutant]:
    """``number`` mutants, of each function in turn and there of each kind in turn, in random order."""
    generator = random.Random(seed)
    turns: Counter[str] = Counter()
    of_functions: dict[str, list[tuple[int, Mutant]]] = defaultdict(list)
    for mutant in generator.sample(mutants, len(mutants)):
        function, kind = mutant.name.split(":")[0].split(", ")[:2]
        turns[function + kind] += 1
        of_functions[function].append((turns[function + kind], mutant))
    rounds = []
    for function in generator.sample(sorted(of_functions), len(of_functions)):
        places = sorted(of_functions[function], key=lambda place: place[0])
        rounds += [(turn, mutant) for turn, (_, mutant) in enumerate(places)]
    return [mutant for _, mutant in sorted(rounds, key=lambda place: place[0])[:number]]
