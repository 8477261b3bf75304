"""Progress on standard error: a bar on a terminal, otherwise a line every half minute."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta

EVERY = 30.0
"""Seconds between two lines of progress if standard error is not a terminal."""


@contextmanager
def progress(what: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Shows progress on standard error; call the returned function with the number of items just done.

    On a terminal, a bar; otherwise (a log file, a pipe) a line about every 30 seconds, and none for shorter work.
    With ``quiet``, nothing.
    """
    if quiet:
        yield lambda _: None
        return
    if not sys.stderr.isatty():
        yield ProgressLines(what, total).advance
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.advance(task, done)


class ProgressLines:
    """Progress as lines of text, for log files: ``re-ranking: 1,200 of 9,000 (13%), 0:04:10 so far``.

    ``clock`` returns seconds; ``write`` receives each line.
    """

    def __init__(
        self,
        what: str,
        total: int | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        write: Callable[[str], None] | None = None,
    ) -> None:
        self._what, self._total = what, total
        self._clock, self._write = clock, write or to_standard_error
        self._started = self._last = clock()
        self._done = 0

    def advance(self, done: int, note: str = "") -> None:
        """Counts ``done`` more items, and writes a line if the last one was written long enough ago."""
        self._done += done
        now = self._clock()
        if now - self._last >= EVERY:
            self._last = now
            self._write(self._line(now - self._started, note))

    def _line(self, seconds: float, note: str) -> str:
        parts = [f"{self._what}: {self._done:,}"]
        if self._total:
            parts[0] += f" of {self._total:,} ({self._done / self._total:.0%})"
        if note:
            parts.append(note)
        parts.append(f"{_clock_time(seconds)} so far")
        if self._total and 0 < self._done < self._total:
            parts.append(f"about {_clock_time(seconds * (self._total - self._done) / self._done)} left")
        return ", ".join(parts)


def _clock_time(seconds: float) -> str:
    return str(timedelta(seconds=round(seconds)))


def to_standard_error(line: str) -> None:
    """Writes a line."""
    # Work continues even if standard error is closed.
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)
