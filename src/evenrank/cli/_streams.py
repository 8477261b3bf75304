"""Standard output and standard error that may be closed, full, or no longer read."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast


class OutputLostError(Exception):
    """Standard output takes nothing more; ``reason`` is None where whoever read it has seen enough."""

    def __init__(self, error: OSError) -> None:
        self.reason = None if isinstance(error, BrokenPipeError) else os.strerror(error.errno or 0)
        super().__init__(str(error))


class _Stream:
    """A stream that is asked what to do when it cannot be written; all else is the stream's own."""

    def __init__(self, stream: Any, failed: Callable[[OSError], None]) -> None:
        self._stream, self._failed = stream, failed
        self._error: OSError | None = None

    def write(self, text: Any) -> int:
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
                # What is left of it goes nowhere, or Python would try once more at its end and complain.
                with suppress(OSError, ValueError):
                    nowhere = os.open(os.devnull, os.O_WRONLY)
                    os.dup2(nowhere, self._stream.fileno())
                    os.close(nowhere)
        # Again and again: whoever tried it may not have passed the first error on.
        if self._error is not None:
            self._failed(self._error)

    @property
    def buffer(self) -> _Bytes:
        """The stream's bytes."""
        return _Bytes(self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Bytes:
    """The bytes below a stream, which fail as it does."""

    def __init__(self, text: _Stream) -> None:
        self._text = text

    def write(self, data: bytes) -> int:
        self._text._do(lambda: self._text._stream.buffer.write(data))
        return len(data)

    def flush(self) -> None:
        self._text._do(self._text._stream.buffer.flush)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._text._stream.buffer, name)


def _lose(error: OSError) -> None:
    raise OutputLostError(error)


@contextmanager
def guarded() -> Iterator[None]:
    """Within, standard output raises OutputLostError where it cannot be written; standard error is silent then.

    Where one of them is closed no other file gets its number.
    """
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is given; writing to what is open for reading fails as writing to what is closed.
            os.open(os.devnull, os.O_WRONLY if number == 2 else os.O_RDONLY)
    kept = sys.stdout, sys.stderr
    out, err = (stream or open(number, "w", closefd=False) for number, stream in enumerate(kept, 1))  # noqa: SIM115
    sys.stdout, sys.stderr = cast(TextIO, _Stream(out, _lose)), cast(TextIO, _Stream(err, lambda _: None))
    try:
        yield
        sys.stdout.flush()
    finally:
        sys.stdout, sys.stderr = kept
