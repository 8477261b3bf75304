"""Runs every cell and writes the table: ``python -m benchmarks calibration [--quick] [--write] [PATTERN …]``."""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Iterable, Sequence
from pathlib import Path

from . import cell as where
from . import cells
from .cell import COMMAND, Cell, Count, count

PAGE = Path(__file__).parents[2] / "docs" / "verdicts-table.md"
LIMITS = PAGE.with_name("limits.md")
KEPT = PAGE.with_name("verdicts.json")
_START, _END = "<!-- table: python -m benchmarks calibration --write -->", "<!-- end of table -->"
Found = dict[str, Count]


def main(arguments: Sequence[str]) -> None:
    """Counts, prints what does not hold, and with ``--write`` makes the docs' table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks calibration", description=__doc__)
    parser.add_argument("patterns", nargs="*", help="only cells whose names have one of these in them; no table")
    parser.add_argument("--quick", action="store_true", help="as many draws as make test has")
    parser.add_argument("--write", action="store_true", help=f"keep what is found, and make the table of {PAGE.name}")
    parser.add_argument("--resume", action="store_true", help="count only cells that are not kept yet")
    parser.add_argument("--statistics", action="store_true", help="no draw through the command")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time")
    parser.add_argument("--data", type=Path, default=where.CLONES, help="a folder with clones of the judges' data")
    chosen = parser.parse_args(arguments)
    where.CLONES = chosen.data
    every = [one for one in cells() if not chosen.patterns or any(part in one.name for part in chosen.patterns)]
    every = [one for one in every if one.available]
    found = kept()
    missing = [cell for cell in every if not (chosen.resume and cell.name in found)]
    with multiprocessing.Pool(chosen.jobs) as pool:
        asked = [(cell.name, chosen.quick, chosen.statistics) for cell in missing]
        for cell, one in zip(missing, pool.imap(_counted, asked), strict=True):
            found[cell.name] = one
            print(line(cell, one), flush=True)
            if chosen.write:
                keep(found)
    report(every, found)
    if chosen.write and not chosen.patterns:
        write(cells(), found)


def report(every: Sequence[Cell], found: Found) -> None:
    """Prints which cells do not hold, those that are known not to apart."""
    failed = [cell for cell in every if not found[cell.name].holds(cell)]
    known = [cell for cell in failed if cell.known_to_fail]
    others = [cell.name for cell in failed if not cell.known_to_fail]
    print(f"{len(every)} cells, {len(failed)} do not hold, {len(known)} of these known not to")
    for cell in known:
        print(f"Known: {cell.name}: {cell.known_to_fail}")
    for name in others:
        print(f"Does not hold: {name}")
    for cell in every:
        if cell.known_to_fail and cell not in failed:
            print(f"Holds, though known not to: {cell.name}")


def kept() -> Found:
    """The counts that are kept beside the page, by the names of their cells."""
    if not KEPT.is_file():
        return {}
    return {name: Count(*one) for name, one in json.loads(KEPT.read_text()).items()}


def keep(found: Found) -> None:
    """Keeps counts beside the page."""
    KEPT.write_text(
        json.dumps(
            {name: [one.said, one.draws, one.apart, one.checked] for name, one in sorted(found.items())}, indent=0
        )
        + "\n"
    )


def _counted(asked: tuple[str, bool, bool]) -> Count:
    name, quick, statistics = asked
    cell = next(one for one in cells() if one.name == name)
    command = 0 if statistics and cell.command is not None else 10 if quick else COMMAND
    return count(cell, min(cell.quick, cell.draws) if quick else None, command)


def line(cell: Cell, found: Count) -> str:
    """A cell in one line."""
    said = f"{cell.name}: {found.share:.3f} of {found.draws:,}"
    apart = f", the command says otherwise of {found.apart}" if found.apart else ""
    fails = " KNOWN NOT TO HOLD" if cell.known_to_fail else " DOES NOT HOLD"
    return f"{said}{apart}{'' if found.holds(cell) else fails}"


def write(every: Iterable[Cell], found: Found) -> None:
    """The tables in the pages, between their marks."""
    every = list(every)
    for path, table in ((PAGE, tables(every, found)), (LIMITS, known(every, found))):
        before, rest = path.read_text().split(_START)
        _, after = rest.split(_END)
        path.write_text(f"{before}{_START}\n\n{table}\n\n{_END}{after}")


def known(every: Sequence[Cell], found: Found) -> str:
    """A table of the cells that are known not to hold, a line for each verdict and kind of data."""
    own = [cell for cell in every if cell.known_to_fail]
    lines = ["| said falsely | data | how often, by the number of queries |", "| --- | --- | --- |"]
    for rule, family in dict.fromkeys((cell.rule, cell.family) for cell in own):
        cells = sorted((one for one in own if (one.rule, one.family) == (rule, family)), key=lambda one: one.n)
        shares = ", ".join(f"{one.n}: {found[one.name].share:.3f}".replace("0.", ".") for one in cells)
        lines.append(f"| {rule} | {family} | {shares} |")
    return "\n".join(lines)


def tables(every: Sequence[Cell], found: Found) -> str:
    """A table for each verdict: data by number of queries (or passages), the share of draws of which it is said."""
    parts = []
    titles = {
        "false": "Claims that are false",
        "power": "Claims that are true",
        "coverage": "Intervals without the truth",
        "beside": "The same claims by another test",
    }
    for kind, title in titles.items():
        part = [f"## {title}"]
        for rule in dict.fromkeys(cell.rule for cell in every if cell.kind == kind):
            own = [cell for cell in every if cell.rule == rule and cell.kind == kind and cell.name in found]
            if not own:
                continue
            sizes = sorted({cell.n for cell in own})
            shares = {(cell.family, cell.n): _share(cell, found[cell.name]) for cell in own}
            rows = [
                f"| {family} | " + " | ".join(shares.get((family, n), "") for n in sizes) + " |"
                for family in dict.fromkeys(cell.family for cell in own)
            ]
            draws = sorted({found[cell.name].draws for cell in own})
            of = f"{draws[0]:,}" if len(draws) == 1 else f"{draws[0]:,} to {draws[-1]:,}"
            head = f"| **{rule}** ({of} draws) | " + " | ".join(map(str, sizes)) + " |\n| --- |" + " --: |" * len(sizes)
            part.append(f"{head}\n" + "\n".join(rows))
        parts += part if len(part) > 1 else []
    return "\n\n".join(parts)


def _share(cell: Cell, found: Count) -> str:
    text = f"{found.share:.3f}".lstrip("0") if found.share < 1 else "1"
    if cell.kind == "power" and cell.floor is not None:
        ends = f"≥ {cell.floor:.2f}" if cell.most is None else f"{cell.floor:.2f} to {cell.most:.2f}"
        text += f" ({ends})".replace("0.", ".")
    if found.holds(cell):
        return text
    return f"**{text}** *known*" if cell.known_to_fail else f"**{text}**"
