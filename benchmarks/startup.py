"""How long ``evenrank --help`` takes against a Python that does nothing."""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

from .measure import Row, run_command


def rows(_: Path) -> list[Row]:
    """The line of the table: medians of seven runs each, in turn."""
    command = str(Path(sys.executable).with_name("evenrank"))
    pairs = [(run_command([command, "--help"]), run_command([sys.executable, "-c", "pass"])) for _ in range(7)]
    ours, bare = (statistics.median(pair[side].seconds for pair in pairs) for side in (0, 1))
    return [Row("evenrank --help, python -c pass", f"{ours:.2f} s", f"{bare:.3f} s", f"{ours / bare:.0f} x", "< 0.5 s")]
