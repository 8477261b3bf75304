"""The running command line, for provenance; imports nothing heavy, because ``--help`` imports this."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

typed: ContextVar[str | None] = ContextVar("typed", default=None)
"""The command as typed, quoted for a shell; None in a Python program."""
writes: ContextVar[bool] = ContextVar("writes", default=False)
"""Whether the running command writes provenance, so that digests can be computed while inputs are read."""


@contextmanager
def running(arguments: Sequence[str]) -> Iterator[None]:
    """In the block, results are recorded as made by the command ``evenrank`` with these arguments."""
    import shlex

    tokens = typed.set(shlex.join(["evenrank", *arguments])), writes.set(False)
    try:
        yield
    finally:
        typed.reset(tokens[0])
        writes.reset(tokens[1])
