"""Commands whose names are two words, the first of which is a command too: ``index`` and ``index debias``."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from ._help import Group


def named(arguments: Sequence[str], commands: Container[str]) -> tuple[str, list[str]] | None:
    """The command that arguments begin with and the arguments after its name; None if there is none.

    One of two words comes before one of one.

    >>> named(["index", "debias", "i"], ["index", "index debias"])
    ('index debias', ['i'])
    >>> named(["index", "./debias"], ["index", "index debias"])
    ('index', ['./debias'])
    """
    names = [(" ".join(arguments[:words]), list(arguments[words:])) for words in (2, 1) if len(arguments) >= words]
    return next((found for found in names if found[0] in commands), None)


class TwoWords(Group):
    """A group of commands some of which have names of two words."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command, and its arguments."""
        found = named(args, self.commands)
        # What is none is for the group to complain of.
        if found is None:
            return super().resolve_command(ctx, args)
        return found[0], self.commands[found[0]], found[1]
