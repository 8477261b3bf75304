"""Standard output and standard error that may be closed, full, or no longer read by anyone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TextIO, cast


class OutputLostError(Exception):
    """Standard output cannot be written any more; ``reason`` is None if its reader closed the pipe."""

    def __init__(self, error: OSError) -> None:
        self.reason = None if isinstance(error, BrokenPipeError) else os.strerror(error.errno or 0)
        super().__init__(str(error))


class _Stream:
    """A stream that calls ``failed`` when it cannot be written; everything else is delegated."""

    def __init__(self, stream: TextIO, failed: Callable[[OSError], None]) -> None:
        self._stream, self._failed = stream, failed
        self._error: OSError | None = None

    def write(self, text: str) -> int:
        self._do(lambda: self._stream.write(text))
        return len(text)

    def flush(self) -> None:
        self._do(self._stream.flush)

    def _do(self, act: Callable[[], object]) -> None:
        if self._error is None:
            try:
                act()
            except OSError as error:
                self._error = error
                # The rest is discarded; otherwise Python would try again at exit and print an error.
                with suppress(OSError, ValueError):
                    nowhere = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(nowhere, self._stream.fileno())
                    os.close(nowhere)
        # Every time: the caller may have swallowed the first error.
        if self._error is not None:
            self._failed(self._error)

    @property
    def buffer(self) -> _Bytes:
        """The stream's bytes."""
        return _Bytes(self)

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


class _Bytes:
    """The binary buffer of a stream, which fails in the same way."""

    def __init__(self, text: _Stream) -> None:
        self._text = text

    def write(self, data: bytes) -> int:
        self._text._do(lambda: self._text._stream.buffer.write(data))
        return len(data)

    def flush(self) -> None:
        self._text._do(self._text._stream.buffer.flush)

    def __getattr__(self, name: str) -> object:
        return getattr(self._text._stream.buffer, name)


def _lose(error: OSError) -> None:
    raise OutputLostError(error)


@contextmanager
def guarded() -> Iterator[None]:
    """In the block, standard output raises OutputLostError if it cannot be written; standard error fails silently.

    If one of them is closed, no other file gets its descriptor.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # open returns the lowest free descriptor. Opened for reading, it fails on writing as a closed one does.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    kept = sys.stdout, sys.stderr
    out, err = (stream or open(number, "w", closefd=False) for number, stream in enumerate(kept, 1))  # noqa: SIM115
    sys.stdout, sys.stderr = cast(TextIO, _Stream(out, _lose)), cast(TextIO, _Stream(err, lambda _: None))
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout, sys.stderr = kept
