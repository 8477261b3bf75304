"""Messages of the library in the words of the command line: its arguments as the options that they are there."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import typer

ALIASES: Mapping[str, Mapping[str, str]] = {
    "experiment": {"folder": "out"},
    "expand": {"stop": "stopwords"},
    "fuse": {"measure": "tune", "measures": "tune", "weights": "weight"},
    "rerank": {"lexicon": "blind"},
}
"""For a command, arguments of the library and those of the command where they are called otherwise."""

_ARGUMENT = re.compile(r"""(?<!['"`])`(?P<name>[a-z]\w*)(?:=(?P<value>'[^'`]*'|"[^"`]*"|[\w.…-]+))?`(?!`)""")


def chosen(command: Any, arguments: Sequence[str]) -> tuple[str, Any]:
    """The command that ``arguments`` choose in the typer group ``command``, and how it is called; else the group."""
    path = ["evenrank"]
    for argument in arguments:
        commands = getattr(command, "commands", None)
        if commands is None:
            break
        # Before a command's name there are options without values only.
        if not argument.startswith("-"):
            if argument not in commands:
                break
            command = commands[argument]
            path.append(argument)
    return " ".join(path), command


def said(message: str) -> str:
    """``message`` in the words of the command that is running."""
    from . import app

    return translated(message, chosen(typer.main.get_command(app), sys.argv[1:])[1])


def translated(message: str, command: Any) -> str:
    """``message`` with each argument of ``command`` in backquotes as it is typed: `` `k` `` → ``--k``.

    `` `missing='skip'` `` becomes ``--missing skip``, `` `resume=True` `` becomes ``--resume``, and a positional
    argument its name in the help (``COLLECTION``). What is no argument of the command stays as it is.
    """
    parameters = {parameter.name: parameter for parameter in command.params}
    aliases = ALIASES.get(command.name or "", {})

    def typed(found: re.Match[str]) -> str:
        parameter = parameters.get(aliases.get(found["name"], found["name"]))
        if parameter is None:
            return found[0]
        if parameter.param_type_name == "argument":
            return str(parameter.metavar or parameter.name.upper())
        option = max(parameter.opts, key=len)
        value = (found["value"] or "True").strip("'\"")
        return option if value == "True" else f"{option} {value}"

    return _ARGUMENT.sub(typed, message)
