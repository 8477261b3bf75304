"""How often each verdict is said where it is false, and where it is true: ``python -m benchmarks calibration``.

``cells.txt`` lists every cell, by name; it was written before the first run, and a line goes only when no command says
its verdict any more.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from .cell import Cell

MODULES = ("queries", "clusters", "orders", "real", "probe", "position")
MODULES += ("drawn", "judged", "judge_strata", "served", "impact", "scan", "probe_bm25")
LISTED = Path(__file__).with_name("cells.txt")


def cells() -> tuple[Cell, ...]:
    """The cells of all modules."""
    found = (importlib.import_module(f"{__name__}.{name}").CELLS for name in MODULES)
    return tuple(cell for one in found for cell in one)


def listed() -> list[str]:
    """The names of the cells in the list."""
    return LISTED.read_text().splitlines()
