"""The table of the benchmarks: five runs of each, their least, median and greatest, kept in performance.json."""

from __future__ import annotations

import datetime
import json
import os
import platform
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from .measure import Row

PAGE = Path(__file__).resolve().with_name("performance.md")
KEPT = PAGE.with_suffix(".json")
START, END = "<!-- made by python -m benchmarks --write -->", "<!-- end of what the benchmarks made -->"


@dataclass(frozen=True)
class Line:
    """A row of several runs: ours, the peer's and the ratio as (least, median, greatest)."""

    what: str
    unit: str
    compare: str
    runs: int
    ours: tuple[float, float, float]
    peer: tuple[float, float, float] | None
    ratio: tuple[float, float, float] | None
    least: float | None
    most: float | None

    @property
    def held(self) -> bool | None:
        """Whether the median is on the right side of its line; none where there is no line."""
        if self.least is None and self.most is None:
            return None
        value = (self.ratio or self.ours)[1]
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    return min(values), statistics.median(values), max(values)


def lines(runs: Sequence[Sequence[Row]]) -> list[Line]:
    """The rows of each run of a benchmark, which come in the same order every time, as its lines."""
    found = []
    for same in zip(*runs, strict=True):
        first = same[0]
        if any((row.what, row.unit) != (first.what, first.unit) for row in same):
            raise ValueError(f"{first.what}: the runs have different rows")
        peers = [row.peer for row in same if row.peer is not None]
        ratios = [ratio for row in same if (ratio := row.ratio) is not None]
        found.append(
            Line(
                first.what,
                first.unit,
                first.compare,
                len(same),
                _spread([row.ours for row in same]),
                _spread(peers) if peers else None,
                _spread(ratios) if ratios else None,
                first.least,
                first.most,
            )
        )
    return found


def _number(value: float) -> str:
    """Three figures, and thousands with commas."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def _measured(spread: Sequence[float], unit: str) -> str:
    least, median, greatest = map(_number, spread)
    unit = "%" if unit == "%" else f" {unit}" if unit else ""
    return f"{median}{unit}" if least == greatest else f"{median}{unit} ({least}–{greatest})"


def _ratio(line: Line) -> str:
    if line.ratio is None:
        return "–"
    if line.compare == "difference":
        return "{1:+.4f} ({0:+.4f} to {2:+.4f})".format(*line.ratio)
    return _measured(line.ratio, "×" if line.compare == "faster" else "")


def _line(line: Line) -> str:
    if line.held is None:
        return "–"
    bounds = [f"{sign} {_number(value)}" for sign, value in (("≥", line.least), ("≤", line.most)) if value is not None]
    return f"{', '.join(bounds)}: {'held' if line.held else 'missed'}"


def markdown(lines: Iterable[Line]) -> str:
    """A table of Markdown: medians, with the least and the greatest in brackets."""
    rows = ["| what | evenrank | peer | ratio | line |", "| --- | --- | --- | --- | --- |"]
    for line in lines:
        peer = "–" if line.peer is None else _measured(line.peer, line.unit)
        cells = (line.what, _measured(line.ours, line.unit), peer, _ratio(line), _line(line))
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def machine() -> str:
    """The processor, how many cores this process may use, and the versions that matter most."""
    named = [part.split(":", 1)[1].strip() for part in _cpu_lines() if part.startswith("model name")]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{(named or [platform.machine()])[0]}, {cores} cores, Python {platform.python_version()}"


def _cpu_lines() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return []


def keep(name: str, found: Sequence[Line]) -> None:
    """Replaces a benchmark's lines in benchmarks/performance.json, with the machine and the day."""
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    kept[name] = {"machine": machine(), "date": today, "lines": [asdict(line) for line in found]}
    KEPT.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def page(names: Sequence[str]) -> str:
    """What performance.md has between its marks: a table for each machine and day, in the order of ``names``."""
    kept = json.loads(KEPT.read_text(encoding="utf-8"))
    tables: dict[tuple[str, str], list[Line]] = {}
    for name in names:
        if name in kept:
            where = (kept[name]["machine"], kept[name]["date"])
            tables.setdefault(where, []).extend(_read(line) for line in kept[name]["lines"])
    parts = []
    for (where, day), found in sorted(tables.items(), key=lambda item: item[0][1], reverse=True):
        counts = sorted({line.runs for line in found})
        runs = " or ".join(f"{count} run{'s' * (count > 1)}" for count in counts)
        parts.append(f"{day}, {where}; medians of {runs}, with the least and the greatest:\n\n{markdown(found)}")
    return "\n\n".join(parts)


def _read(line: dict[str, object]) -> Line:
    return Line(**{name: tuple(value) if isinstance(value, list) else value for name, value in line.items()})  # type: ignore[arg-type]


def write_page(names: Sequence[str]) -> None:
    """Puts ``page`` between the marks of benchmarks/performance.md."""
    text = PAGE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{START}\n\n{page(names)}\n\n{END}{after}", encoding="utf-8")
