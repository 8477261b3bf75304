"""The tools in ci/: mutants of a source text and which tests kill them, the size of a tree; the order of the tests."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ci"))
from mutant_maker import Maker
from mutants import cover

UNTOUCHED = '''
"""Adds 1 + 1, or not."""
from typing import TYPE_CHECKING, Annotated, cast

__all__ = ["f", str(1)]
if TYPE_CHECKING:
    least = 1
Small = Annotated[int, 1 + 1]

@decorated(1, 2.0)
def f(x: Annotated[int, 1 < 2]) -> "Literal[True, 1]":
    """Fails if 1 < 2."""
    y: Literal[1, 2] = x
    if x is y:
        raise ValueError("over", x + 1)
    fail(InputError(1, x - 1), f"{x + 1}")
    return cast("int", x)
'''


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        ("a + b", ["sign a - b"]),
        ("(a) != (b)", ["sign (a) == (b)"]),
        ("'é' + a < b", ["sign 'é' + a <= b"]),
        ("-a", ["sign a"]),
        ("a and b and c", ["bound a or b and c", "bound a and b or c"]),
        ("a[3]", ["bound a[4]"]),
        ("a = True, .0", ["constant a = False, .0", "constant a = True, 1.0"]),
        ("a = f(b, c, *d, 'e', f)", ["arguments a = f(c, b, *d, 'e', f)"]),
        ("a = f(a, k=b)", ["dropped a = a"]),
        ("a = sorted(b); a.sort()", ["dropped a = b; a.sort()", "dropped a = sorted(b); pass"]),
        ("def f():\n return a\n return b, c", ["return return (a)", "return return c, b"]),
    ],
)  # fmt: skip
def test_a_mistake_of_each_kind(source: str, mutants: list[str]) -> None:
    found = Maker(source, "a.py").found
    assert [f"{m.name.split(', ')[1].split(':')[0]} {m.name.split(' → ')[1]}" for m in found] == mutants
    for mutant in found:
        ast.parse(mutant.within(source))
        assert mutant.within(source).splitlines()[mutant.line - 1].strip() == mutant.name.split(" → ")[1]


def test_words_types_and_errors_stay() -> None:
    (mutant,) = Maker(UNTOUCHED, "a.py").found
    assert mutant.name == 'a.py f, dropped: fail(InputError(1, x - 1), f"{x + 1}") → pass'


def test_few_tests_kill_the_same() -> None:
    killed = [{"killed_by": names} for names in (["t.py::a", "t.py::b"], ["t.py::b", "t.py::c"], ["u.py"], [])]
    lines = {"t.py::a": 1, "t.py::b": 9, "t.py::c": 1, "u.py::d": 5, "u.py::e": 4}
    assert cover(killed, lines) == ["t.py::b", "u.py::e"]
