"""Translates the library's messages for the command line: arguments become options."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Protocol

_ARGUMENT = re.compile(r"""(?<!['"`])`(?P<name>[a-z]\w*)(?:=(?P<value>'[^'`]*'|"[^"`]*"|[\w.…-]+))?`(?!`)""")


class Parameter(Protocol):
    """An option or an argument of a command."""

    @property
    def name(self) -> str | None:
        """Its name in Python."""

    @property
    def opts(self) -> Sequence[str]:
        """Its names on the command line."""

    @property
    def metavar(self) -> str | None:
        """Its name in the help."""

    @property
    def param_type_name(self) -> str:
        """``option`` or ``argument``."""


class Command(Protocol):
    """A command or a group of commands, as click or typer's copy of it defines them."""

    @property
    def name(self) -> str | None:
        """Its name on the command line."""

    @property
    def params(self) -> Sequence[Parameter]:
        """Its options and arguments."""


def chosen(command: Command, arguments: Sequence[str]) -> tuple[str, Command]:
    """The path and the command that ``arguments`` select in the typer group ``command``; otherwise the group."""
    path = ["evenrank"]
    rest = list(arguments)
    while (commands := getattr(command, "commands", None)) is not None:
        # Options before a command's name never have values.
        while rest and rest[0].startswith("-"):
            rest.pop(0)
        if not rest or rest[0] not in commands:
            break
        path.append(rest.pop(0))
        command = commands[path[-1]]
    return " ".join(path), command


def said(message: str) -> str:
    """``message`` in the words of the running command."""
    from . import running

    return translated(message, chosen(running(), sys.argv[1:])[1])


def translated(message: str, command: Command) -> str:
    """``message`` with each argument of ``command`` in backquotes as it is typed: `` `k` `` → ``--k``.

    `` `missing='skip'` `` becomes ``--missing skip``, `` `resume=True` `` becomes ``--resume``, and a positional
    argument its name in the help (``COLLECTION``). Anything else in backquotes is left unchanged.
    """
    parameters = {parameter.name: parameter for parameter in command.params}

    def typed(found: re.Match[str]) -> str:
        parameter = parameters.get(found["name"])
        if parameter is None:
            return found[0]
        if parameter.param_type_name == "argument":
            return str(parameter.metavar or found["name"].upper())
        option = max(parameter.opts, key=len)
        value = (found["value"] or "True").strip("'\"")
        return option if value == "True" else f"{option} {value or repr(value)}"

    return _ARGUMENT.sub(typed, message)
