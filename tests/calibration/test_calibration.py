"""Every verdict on data where it is false, in short: ``python -m benchmarks calibration`` has the full form."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from benchmarks.calibration import cells, listed
from benchmarks.calibration.cell import Cell, Count, count
from benchmarks.calibration.run import kept, tables

CELLS = cells()
ROOT = Path(__file__).parents[2]
_DRAWS, _COMMAND = 10, 2
_SLOW, _FEW = 50, 3
"""Cells with fewer quick draws are slow: only one of each kind of data is tried, with few."""


def test_no_cell_was_removed_since_the_list_was_written() -> None:
    names = [cell.name for cell in CELLS]
    assert len(set(names)) == len(names)
    assert names == listed()


def test_each_verdict_of_the_core_has_its_cells() -> None:
    """What makes a verdict is used by some cell: a verdict without cells does not land."""
    parsed = [ast.parse(path.read_text()) for path in (ROOT / "src/evenrank/stats").glob("*.py")]
    functions = [one for core in parsed for one in core.body if isinstance(one, ast.FunctionDef) and one.returns]
    verdicts = re.compile(r"\b(Comparison|MeanBound|AbsoluteMargin|RateRatio)\b")
    made = {one.name for one in functions if one.returns and verdicts.search(ast.unparse(one.returns))}
    used = "".join(path.read_text() for path in (ROOT / "benchmarks/calibration").glob("*.py"))
    # What the cells of probe, position and scan call through their own functions.
    helpers = {"undecidable", "corrected", "compare_estimate", "intersection_union"}
    assert {"compare", "compare_groups", "compare_to_random_order", "no_loss", "limit_absolute"} <= made
    assert [name for name in made - helpers if not name.startswith("_") and f"{name}(" not in used] == []


def test_what_does_not_hold_is_what_is_known_not_to() -> None:
    """Of the counts that are kept; which cells these are is said beside each of them."""
    found = kept()
    counted = [cell for cell in CELLS if cell.name in found]
    assert {name for name in found if name not in listed()} == set()
    failing = {cell.name for cell in counted if not found[cell.name].holds(cell)}
    assert failing == {cell.name for cell in counted if cell.known_to_fail}


@pytest.mark.parametrize("rule", sorted({cell.rule for cell in CELLS}))
def test_a_verdict_is_not_said_where_it_is_false(rule: str) -> None:
    """Few draws of each cell: no cell is far above what it may be, and the command says the same as the core."""
    families: set[str] = set()
    for cell in (one for one in CELLS if one.rule == rule and one.available):
        new = cell.family not in families
        asked = not families or (cell.kind == "false" and not cell.known_to_fail)
        if cell.quick < _SLOW and not new:
            continue
        # Of what nothing is asked: that it runs.
        draws = 1 if not asked else _DRAWS if cell.quick >= _SLOW else min(cell.quick, _FEW)
        found = count(cell, draws, 0 if families else _COMMAND)
        families.add(cell.family)
        assert found.apart == 0, cell.name
        assert cell.kind != "false" or cell.known_to_fail or found.lower() <= cell.level, cell.name


def test_what_a_count_says() -> None:
    cell = Cell("rule", "family", 5, lambda rng: rng.random(), lambda value: value < 0.2, lambda value: value < 0.21)
    found = count(cell, 500, 500)
    assert found.said == pytest.approx(100, abs=30)
    assert found.apart > 0
    assert not found.holds(cell)
    assert Count(62, 1000).holds(cell)
    assert not Count(80, 1000).holds(cell)
    assert Count(0, 10).lower() == 0.0
    power = Cell("rule", "family", 50, cell.draw, cell.said, kind="power", floor=0.5, most=0.7)
    assert [Count(said, 1000).holds(power) for said in (460, 400, 740, 800)] == [True, False, True, False]
    assert tables([cell], {cell.name: Count(80, 1000)}).splitlines()[-1] == "| family | **.080** |"
