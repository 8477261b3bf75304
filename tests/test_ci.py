"""The tools in ci/: mutants of a source text and which tests kill them, the size of a tree; the order of the tests."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from spread import LONGEST, TOGETHER

sys.path.insert(0, str(Path(__file__).parents[1] / "ci"))
import size
from mutant_maker import Maker, drawn
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


def test_the_draw_depends_on_the_seed_alone_and_a_long_function_takes_no_more() -> None:
    long = "def long(a):\n" + "    a += a[1] + 1\n" * 50 + "def short(a):\n    return a < 1\n"
    found = Maker(long, "a.py").found
    assert len({mutant.name for mutant in found}) == len(found) == 152
    chosen = drawn(found, 4, seed=1)
    assert chosen == drawn(Maker(long, "a.py").found, 4, seed=1) != drawn(found, 4, seed=2)
    assert sorted(mutant.name.split(", ")[0] for mutant in chosen) == 2 * ["a.py long"] + 2 * ["a.py short"]


def test_few_tests_kill_the_same() -> None:
    killed = [{"killed_by": names} for names in (["t.py::a", "t.py::b"], ["t.py::b", "t.py::c"], ["u.py"], [])]
    lines = {"t.py::a": 1, "t.py::b": 9, "t.py::c": 1, "u.py::d": 5, "u.py::e": 4}
    assert cover(killed, lines) == ["t.py::b", "u.py::e"]


def test_words_are_counted_outside_tables() -> None:
    markdown = "# A heading\n\n| a | table |\n| --- | --- |\n\nthree more words\n```sh\n| code counts\n```\n"
    assert size.words(markdown) == 3 + 3 + 5


def test_only_tracked_files_are_counted(tmp_path: Path) -> None:
    for name, lines in (("src/evenrank/a.py", 2), ("src/evenrank/files/b.py", 3), ("tests/c.py", 4), ("docs/d.md", 5)):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("a word\n" * lines, encoding="utf-8")
    for arguments in (["init", "--quiet"], ["add", "--all"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    (tmp_path / "src/evenrank/untracked.py").write_text("a\n", encoding="utf-8")
    found = {"source": {".": 2, "files": 3}, "tests": {".": 4}, "docs": {".": 10}}
    assert size.lines_and_words(tmp_path) == found


def test_the_files_that_have_an_order_are_there() -> None:
    named = [*LONGEST, *TOGETHER, *TOGETHER.values()]
    assert [name for name in named if not (Path(__file__).parent / name).is_file()] == []
    assert len(set(LONGEST)) == len(LONGEST)
