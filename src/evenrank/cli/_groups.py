"""Commands whose names are two words, the first of which is a command too: ``index`` and ``index debias``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from typer.core import TyperGroup

from . import _plain_values

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    # typer either vendors click or imports it: the types are those of the method that is overridden.
    from typer import _click


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


class TwoWords(TyperGroup):
    """A group of commands some of which have names of two words."""

    def parse_args(self, ctx: _click.Context, args: list[str]) -> list[str]:
        """Takes the group's own options; returns the other arguments."""
        _plain_values.spare_parsing(self, ctx)
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: _click.Context, args: list[str]
    ) -> tuple[str | None, _click.Command | None, list[str]]:
        """The command, and its arguments."""
        found = named(args, self.commands)
        # What is none is for the group to complain of.
        if found is None:
            return super().resolve_command(ctx, args)
        _plain_values.spare_parsing(self.commands[found[0]], ctx)
        return found[0], self.commands[found[0]], found[1]
