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

    tokens = typed.set(shlex.join(["evenrank", *_without_secrets(arguments)])), writes.set(False)
    try:
        yield
    finally:
        typed.reset(tokens[0])
        writes.reset(tokens[1])


def _without_secrets(arguments: Sequence[str]) -> Iterator[str]:
    """The arguments without names and passwords in addresses, and without the values in an endpoint's query."""
    import re

    before = ""
    for argument in arguments:
        shown = re.sub(r"://[^/?#]*@", "://…@", argument)
        if "--endpoint" in (before, argument.partition("=")[0]):
            shown = re.sub(r"\?.*", "?…", shown, flags=re.DOTALL)
        yield shown
        before = argument
