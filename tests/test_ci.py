"""The tools in ci/: mutants of a source text and which tests kill them, the size of a tree; the order of the tests."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "ci"))
from mutant_maker import Maker


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
