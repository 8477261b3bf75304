"""The help: a screen a command, with examples that work and options under a few headings; the rest on request."""

from __future__ import annotations

import re
import shlex
from typing import get_args

import pytest

from evenrank.cli import commands
from evenrank.options import Panel

HEADING = re.compile(r"╭─ (\w+) ─")
LISTED = re.compile(r"│ [ *]*(?P<name>--[\w-]+) ")
WITHOUT_OPTIONS = ("data list", "lexicon list")
"""They have one example, as there is but one way to call them."""


def walk(group, prefix=""):
    for name, command in group.commands.items():
        yield f"{prefix}{name}", command
        if hasattr(command, "commands"):
            yield from walk(command, f"{prefix}{name} ")


ALL = dict(walk(commands()))
COMMANDS = {name: command for name, command in ALL.items() if not hasattr(command, "commands")}


@pytest.fixture
def text(monkeypatch, evenrank):
    """What a command prints on a terminal of 80 columns."""
    monkeypatch.setenv("COLUMNS", "80")

    def printed(*arguments):
        done = evenrank(*arguments)
        assert (done.status, done.err) == (0, "")
        return done.out

    return printed


def examples(command):
    lines = command.epilog.replace("\\\n", " ").splitlines()
    return [line for line in lines if not line.startswith("# ")]


@pytest.mark.parametrize("name", ["", *ALL])
def test_a_help_is_one_screen(text, name):
    lines = text(*name.split(), "--help").splitlines()
    assert len(lines) <= 60
    assert max(map(len, lines)) <= 80
    assert not re.search(r"<\w+(\[\w+\])?>", "\n".join(lines))


@pytest.mark.parametrize("name", COMMANDS)
def test_options_stand_under_the_headings_or_are_rare(text, name):
    command = COMMANDS[name]
    short, whole = text(*name.split(), "--help"), text(*name.split(), "--help-all")
    found = [one for one in command.params if one.param_type_name == "option" and one.name != "help_all"]
    frequent, rare = ({max(one.opts, key=len) for one in found if one.hidden == hidden} for hidden in (False, True))
    assert set(LISTED.findall(short)) == frequent
    assert set(LISTED.findall(whole)) == frequent | rare
    for page in (short, whole):
        headings = HEADING.findall(page)
        assert headings == [heading for heading in ("Arguments", *get_args(Panel)) if heading in headings]
    assert (f"More options ({len(rare)}): evenrank {name} --help-all" in short) == bool(rare)
    assert "More options" not in whole
    # The next help is the short one again.
    assert text(*name.split(), "--help") == short
    assert all(one.required is False for one in command.params if getattr(one, "hidden", False))


@pytest.mark.parametrize("name", COMMANDS)
def test_examples_work(text, name):
    command = COMMANDS[name]
    shown = [line.strip() for line in text(*name.split(), "--help").splitlines()]
    assert [line.strip() for line in command.epilog.splitlines() if line.strip() not in shown] == []
    called = examples(command)
    assert len(called) == (1 if name in WITHOUT_OPTIONS else 3)
    assert command.epilog.count("# ") == len(called)
    for example in called:
        arguments = shlex.split(example)[1:]
        assert arguments[: len(name.split())] == name.split()
        # Wrong options, values and numbers of arguments raise.
        with command.make_context(f"evenrank {name}", arguments[len(name.split()) :]) as context:
            assert context.args == []
