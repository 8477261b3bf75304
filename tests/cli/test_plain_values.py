"""Options whose values need no parsing are taken as they are: with the values, and the errors, of typer's own way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from evenrank.cli import _plain_values, commands, running

VALUES = [None, "a", "é", "\udcff.run", "5", "-5", "05", "1_000", "9" * 10, "0.5", "", " ", 5, 0.5, "true", "٣"]
SEVERAL = [None, (), ("a",), ["a", "b"], ("é", "a"), ("\udcff",), ("5", "6")]


def parameters(command: Any) -> Iterator[Any]:
    for one in getattr(command, "commands", {}).values():
        yield from parameters(one)
    yield from command.params


def outcome(parameter: Any, value: Any) -> tuple[object, ...]:
    """What a parameter makes of a value, or its error."""
    try:
        found = parameter.get_runtime_param().coerce(value, param=parameter, ctx=None)
    except typer.BadParameter as error:
        return "error", error.format_message()
    return type(found), found


def test_every_option_takes_its_values_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: dict[tuple[str, ...], Any] = {}
    for parameter in parameters(commands()):
        info = parameter.type_descriptor.parameter_info
        several = parameter.multiple or parameter.nargs == -1
        key = (str(parameter.type_descriptor.annotation), str(info.parser), f"{info.min} {info.max}", str(several))
        kinds.setdefault(key, parameter)
    assert len(kinds) > 8
    for parameter in kinds.values():
        for value in SEVERAL if parameter.multiple or parameter.nargs == -1 else VALUES:
            monkeypatch.setattr(parameter, "_runtime_param", None)
            expected = outcome(parameter, value)
            monkeypatch.setattr(parameter, "_runtime_param", None)
            _plain_values.spare_parsing(Only(parameter), None)  # type: ignore[arg-type]
            assert outcome(parameter, value) == expected, (parameter.name, value)


class Only:
    """A command of one parameter."""

    def __init__(self, parameter: Any) -> None:
        self.parameter = parameter

    def get_params(self, _: object) -> list[Any]:
        return [self.parameter]


def test_only_the_command_that_is_called_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments, names in (
        (["audit", "run"], ["audit"]),
        (["index", "debias", "i"], ["index", "index debias"]),
        (["position", "answers"], ["position"]),
    ):
        monkeypatch.setattr(sys, "argv", ["evenrank", *arguments])
        assert list(running().commands) == names
    for arguments in ([], ["--help"], ["nosuch"], ["debias"], ["--version", "audit"]):
        monkeypatch.setattr(sys, "argv", ["evenrank", *arguments])
        assert running() is commands()


def test_the_command_line_is_made_when_it_is_asked_for() -> None:
    code = (
        "import sys, evenrank.cli\n"
        "assert 'evenrank.cli.train' not in sys.modules\n"
        "from evenrank.cli import app\n"
        "assert app is evenrank.cli.app and 'evenrank.cli.train' in sys.modules\n"
        "evenrank.cli.nosuch"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ended.stderr.endswith("AttributeError: module 'evenrank.cli' has no attribute 'nosuch'\n")
