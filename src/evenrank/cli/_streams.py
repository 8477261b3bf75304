"""Standard output and standard error that may be closed, full, or no longer read by anyone."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


class OutputLostError(Exception):
    """Standard output cannot be written any more; ``reason`` is None if its reader closed the pipe."""

    def __init__(self, error: OSError) -> None:
        self.reason = None if isinstance(error, BrokenPipeError) else os.strerror(error.errno or 0)
        super().__init__(str(error))


class _Descriptor(io.FileIO):
    """Descriptor 1, which raises OutputLostError once if it cannot be written, or 2, which is then silent."""

    lost = False

    def write(self, data: Any, /) -> int:
        try:
            return len(data) if self.lost else super().write(data)
        except OSError as error:
            # Python writes again what is left when it ends.
            self.lost = True
            if self.fileno() == 1:
                raise OutputLostError(error) from None
            return len(data)


def guard() -> None:
    """Makes standard output raise OutputLostError if it cannot be written, and standard error fail silently.

    If one of them is closed, no other file gets its descriptor. File names can contain bytes that are not text, and the
    terminal may not support every character: these are escaped.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # open returns the lowest free descriptor. Opened for reading, it fails on writing as a closed one does.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = getattr(sys, name)
        # Those of a test are left alone.
        if stream is getattr(sys, f"__{name}__"):
            raw = io.BufferedWriter(_Descriptor(number, "w", closefd=False))
            encoding, lines = getattr(stream, "encoding", None), number == 2 or os.isatty(number)
            setattr(sys, name, io.TextIOWrapper(raw, encoding, "backslashreplace", line_buffering=lines))
