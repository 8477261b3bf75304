"""Every verdict on data where it is false, in short: ``python -m benchmarks calibration`` has the full form."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from benchmarks.calibration import cells, listed
from benchmarks.calibration.cell import Cell, Count, count
from benchmarks.calibration.run import tables

CELLS = cells()
ROOT = Path(__file__).parents[2]
_COMMAND = 3


def test_no_cell_was_removed_since_the_list_was_written() -> None:
    names = [cell.name for cell in CELLS]
    assert len(set(names)) == len(names)
    assert names == listed()


def test_each_verdict_of_the_core_has_its_cells() -> None:
    """What makes a Comparison, a BoundTest or a Mixed is used by some cell: a verdict without cells does not land."""
    core = ast.parse((ROOT / "src/evenrank/measures/inference.py").read_text())
    functions = [one for one in core.body if isinstance(one, ast.FunctionDef) and one.returns is not None]
    verdicts = re.compile(r"\b(Comparison|MeanBound|SizeBound|Mixed)\b")
    made = [one.name for one in functions if verdicts.search(ast.unparse(one.returns or one))]
    used = "".join(path.read_text() for path in (ROOT / "benchmarks/calibration").glob("*.py"))
    # What the cells of probe, position, scan and limits call through their own functions.
    helpers = {"untold", "corrected", "from_error", "bound_of_mean", "_of_drawn", "both"}
    assert {"compare", "compare_parts", "compare_sizes", "no_loss", "bound_of_size", "mixed_test"} <= set(made)
    assert [name for name in made if name not in helpers and f"{name}(" not in used] == []


@pytest.mark.parametrize("rule", sorted({cell.rule for cell in CELLS}))
def test_a_verdict_is_not_said_where_it_is_false(rule: str) -> None:
    """Few draws of each cell: no cell is far above what it may be, and the command says the same as the core."""
    for cell in (one for one in CELLS if one.rule == rule):
        found = count(cell, min(cell.quick, 40), _COMMAND)
        assert found.apart == 0, cell.name
        assert cell.kind != "false" or found.lower() <= 0.05, cell.name


def test_what_a_count_says() -> None:
    cell = Cell("rule", "family", 5, lambda rng: rng.random(), lambda value: value < 0.2, lambda value: value < 0.21)
    found = count(cell, 500, 500)
    assert found.said == pytest.approx(100, abs=30)
    assert found.apart > 0
    assert not found.holds(cell)
    assert Count(62, 1000).holds(cell)
    assert not Count(80, 1000).holds(cell)
    assert Count(0, 10).lower() == 0.0
    power = Cell("rule", "family", 50, cell.draw, cell.said, kind="power", floor=0.5)
    assert (Count(460, 1000).holds(power), Count(400, 1000).holds(power)) == (True, False)
    assert tables([cell], {cell.name: Count(80, 1000)}).splitlines()[-1] == "| family | **.080** |"
