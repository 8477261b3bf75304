"""Running one side of a comparison as a process of its own, so that time and peak memory are its alone."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Cost:
    """Wall seconds and peak memory (MB) of a process, start included, and what it printed last.

    ``cpu_seconds``: of all processes that it started too, daemons among them.
    """

    seconds: float
    megabytes: float
    said: str
    cpu_seconds: float


def run(*arguments: str) -> Cost:
    """``python -m benchmarks ARGUMENTS`` in a new process."""
    return run_command([sys.executable, "-m", "benchmarks", *arguments])


# A process counts what its parent held when it was made, so the parent has to be a small one, whose own start does not
# count.
_LAUNCH = """
import ctypes, os, resource, sys, time
ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: whom a process leaves behind is waited for here
start = time.perf_counter()
number = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(number, 0)
seconds = time.perf_counter() - start
try:
    while True:
        os.wait()
except ChildProcessError:
    every = resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = every.ru_utime + every.ru_stime
os.write(int(sys.argv[1]), b"%d %d %r %r" % (os.waitstatus_to_exitcode(status), usage.ru_maxrss, seconds, cpu))
"""


def run_command(command: list[str]) -> Cost:
    """Any command; raises where it fails."""
    read, write = os.pipe()
    launch = [sys.executable, "-S", "-E", "-c", _LAUNCH, str(write), *command]
    done = subprocess.run(launch, stdout=subprocess.PIPE, text=True, pass_fds=[write], check=True)
    os.close(write)
    with os.fdopen(read) as stream:
        status, kilobytes, seconds, cpu = stream.read().split()
    if int(status):
        raise SystemExit(f"{' '.join(command)} failed with status {status}")
    return Cost(float(seconds), int(kilobytes) / 1e3, done.stdout.strip().rsplit("\n", 1)[-1], float(cpu))


@dataclass(frozen=True)
class Row:
    """Something of ours beside the same of a peer's, measured once: ``rows`` of a module is called for each run.

    ``unit`` is ``s``, ``MB``, a rate (``docs/s``), ``%`` or a measure's name. ``compare`` says what the ratio is:
    ``faster`` (of seconds peer / ours, of rates ours / peer), ``share`` (ours / peer) or ``difference`` (ours - peer).
    ``least`` and ``most`` are the line that it is held to; without a peer they are about ``ours``.
    """

    what: str
    ours: float
    unit: str
    peer: float | None = None
    compare: Literal["faster", "share", "difference"] = "faster"
    least: float | None = None
    most: float | None = None

    @property
    def ratio(self) -> float | None:
        """What ``compare`` says; none without a peer."""
        if self.peer is None:
            return None
        if self.compare == "difference":
            return self.ours - self.peer
        if self.compare == "share" or self.unit.endswith("/s"):
            return self.ours / self.peer
        return self.peer / self.ours


def once(folder: Path, make: Callable[[Path], object]) -> None:
    """Makes a benchmark's data on its first run; the others find it there."""
    done = folder / f"{make.__module__}.{make.__qualname__}"
    if not done.exists():
        make(folder)
        done.touch()


def bare_scan(path: Path) -> float:
    """Seconds to read a file and count its lines: what no program that reads it can beat."""
    start = time.perf_counter()
    with path.open("rb") as stream:
        lines = 0
        while block := stream.read(1 << 24):
            lines += block.count(b"\n")
    return time.perf_counter() - start
