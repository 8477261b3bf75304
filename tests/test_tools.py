"""The tools of the house: mutants of a source text, and the table that the benchmarks make."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest
from benchmarks import table
from benchmarks.__main__ import PAGE_NAMES
from benchmarks.measure import Row

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


def test_ratios_are_of_pairs_and_their_median_is_held_to_the_line() -> None:
    runs = [[Row("a", ours, "s", peer, least=3.0)] for ours, peer in ((1.0, 5.0), (2.0, 4.0), (1.0, 3.0))]
    (line,) = table.lines(runs)
    assert (line.ours, line.peer, line.ratio) == ((1.0, 1.0, 2.0), (3.0, 4.0, 5.0), (2.0, 3.0, 5.0))
    assert line.held
    assert table.markdown([line]).splitlines()[-1] == (
        "| a | 1.00 s (1.00–2.00) | 4.00 s (3.00–5.00) | 3.00 × (2.00–5.00) | ≥ 3.00: held |"
    )


def test_the_documented_table_is_the_kept_one() -> None:
    between = table.PAGE.read_text(encoding="utf-8").split(table.START)[1].split(table.END)[0]
    assert between.strip() == table.page(PAGE_NAMES)
