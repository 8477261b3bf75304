"""The command line that runs, for results that say how they were made; nothing heavy, as ``--help`` passes here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

typed: ContextVar[str | None] = ContextVar("typed", default=None)
"""The command as it was typed, quoted for a shell; None in a Python program."""
writes: ContextVar[bool] = ContextVar("writes", default=False)
"""Whether the command that runs will write what says how it was made, so that work for it may begin early."""


@contextmanager
def running(arguments: Sequence[str]) -> Iterator[None]:
    """While the block runs, results are those of the command ``evenrank`` with these arguments."""
    import shlex

    tokens = typed.set(shlex.join(["evenrank", *arguments])), writes.set(False)
    try:
        yield
    finally:
        typed.reset(tokens[0])
        writes.reset(tokens[1])
