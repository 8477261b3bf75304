"""A cell of the calibration: one verdict on one kind of data, drawn again and again, and how often it is said."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

LEVEL = 0.05
"""The most often that a verdict may be said where it is false."""
LIMIT = 0.999
"""A cell fails where the lower limit of its share at this level is above :data:`LEVEL`."""
DRAWS, COMMAND, QUICK = 4000, 200, 200
"""Draws of the full form; of these the first so many also through the command's function; draws of the quick form."""
Kind = Literal["false", "power", "coverage", "beside"]
DATA = Path(__file__).parents[2].parent / "shared" / "data"
"""Public data beside the project."""
CLONES = DATA
"""Clones of repositories whose data are not kept; ``--data`` names another folder, before cells are made."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One verdict on one kind of data.

    Attributes:
        rule: What is said, as the docs' table names it; ``family``: the data; ``n``: how many queries (passages, …).
        draw: One sample, from a generator.
        said: Whether the verdict is said of a sample, by the function of ``evenrank.stats`` (or of the
            probe that uses it). Of a ``coverage`` cell: whether the interval misses the truth.
        command: The same through the function that the command calls; None where there is none.
        kind: "false": what is said is false, so at most ``level`` may say it; "power": it is true; "coverage": as
            "false"; "beside": what another test says, printed for comparison.
        floor, most: The least and the greatest share of a power cell; None: printed, without one.
        level: How often a false verdict may be said.
        known_to_fail: Why the cell is known not to hold; None of one that has to.
        data: A folder of public data beside the project that the cell needs; it is skipped where that is missing.
        draws, quick: How many draws the full and the quick form take, where a draw is slow.
    """

    rule: str
    family: str
    n: int
    draw: Callable[[np.random.Generator], Any]
    said: Callable[[Any], bool]
    command: Callable[[Any], bool] | None = None
    kind: Kind = "false"
    floor: float | None = None
    most: float | None = None
    level: float = LEVEL
    known_to_fail: str | None = None
    data: Path | None = None
    draws: int = DRAWS
    quick: int = QUICK

    @property
    def name(self) -> str:
        """The cell's line in the list: ``differs | lognormal | 20``."""
        return " | ".join((self.rule, self.family, str(self.n), self.kind))

    @property
    def available(self) -> bool:
        """Whether the data that the cell needs are there."""
        return self.data is None or self.data.is_dir()


@dataclass(frozen=True, slots=True)
class Count:
    """How often a cell's verdict was said, of how many draws.

    ``checked``: draws that went through the command as well; ``apart``: those of them of which it says otherwise.
    """

    said: int
    draws: int
    apart: int = 0
    checked: int = 0

    @property
    def share(self) -> float:
        """The share of draws of which it is said."""
        return self.said / self.draws

    def lower(self) -> float:
        """The lower limit of the share [Clopper & Pearson 1934]."""
        from scipy.stats import beta

        return float(beta.ppf(1 - LIMIT, self.said, self.draws - self.said + 1)) if self.said else 0.0

    def upper(self) -> float:
        """The upper limit of the share."""
        from scipy.stats import beta

        return float(beta.ppf(LIMIT, self.said + 1, self.draws - self.said)) if self.said < self.draws else 1.0

    def holds(self, cell: Cell) -> bool:
        """Whether the cell passes: said no more than it may be, or as often as it has to, and by the command alike."""
        if self.apart:
            return False
        if cell.kind == "power":
            enough = cell.floor is None or self.upper() >= cell.floor
            return enough and (cell.most is None or self.lower() <= cell.most)
        return cell.kind == "beside" or self.lower() <= cell.level


def count(cell: Cell, draws: int | None = None, command: int = COMMAND) -> Count:
    """Draws a cell's samples, the same ones each time, and counts; ``command``: so many through the command too."""
    rng = np.random.default_rng(zlib.crc32(cell.name.encode()))
    said = apart = checked = 0
    draws = cell.draws if draws is None else draws
    for number in range(draws):
        sample = cell.draw(rng)
        found = bool(cell.said(sample))
        said += found
        if cell.command is not None and number < command:
            apart += bool(cell.command(sample)) != found
            checked += 1
    return Count(said, draws, apart, checked)
