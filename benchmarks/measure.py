"""Running one side of a comparison as a process of its own, so that time and peak memory are its alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Cost:
    """Wall seconds and peak memory (MB) of a process, start included, and what it printed last."""

    seconds: float
    megabytes: float
    said: str


def run(*arguments: str) -> Cost:
    """``python -m benchmarks ARGUMENTS`` in a new process."""
    return run_command([sys.executable, "-m", "benchmarks", *arguments])


# A process counts what its parent held when it was made, so the parent has to be a small one.
_LAUNCH = """
import os, sys
number = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(number, 0)
os.write(int(sys.argv[1]), b"%d %d" % (os.waitstatus_to_exitcode(status), usage.ru_maxrss))
"""


def run_command(command: list[str]) -> Cost:
    """Any command; raises where it fails."""
    read, write = os.pipe()
    start = time.perf_counter()
    launch = [sys.executable, "-S", "-E", "-c", _LAUNCH, str(write), *command]
    done = subprocess.run(launch, stdout=subprocess.PIPE, text=True, pass_fds=[write], check=True)
    seconds = time.perf_counter() - start
    os.close(write)
    with os.fdopen(read) as stream:
        status, kilobytes = map(int, stream.read().split())
    if status:
        raise SystemExit(f"{' '.join(command)} failed with status {status}")
    return Cost(seconds, kilobytes / 1e3, done.stdout.strip().rsplit("\n", 1)[-1])


@dataclass(frozen=True)
class Row:
    """A line of the table: ours, the peer's, the ratio, and what was expected of it."""

    what: str
    ours: str
    peer: str
    ratio: str
    expected: str


def show(rows: list[Row]) -> None:
    """Prints the table."""
    lines = [("benchmark", "evenrank", "peer", "ratio", "expected")]
    lines += [(row.what, row.ours, row.peer, row.ratio, row.expected) for row in rows]
    widths = [max(len(line[column]) for line in lines) for column in range(5)]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def bare_scan(path: Path) -> float:
    """Seconds to read a file and count its lines: what no program that reads it can beat."""
    start = time.perf_counter()
    with path.open("rb") as stream:
        lines = 0
        while block := stream.read(1 << 24):
            lines += block.count(b"\n")
    return time.perf_counter() - start
