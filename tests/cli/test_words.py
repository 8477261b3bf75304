"""Commands speak of their own options, Python of arguments; help, version and a stop end well."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
import typer

import evenrank as package
from evenrank._command import arg, spelled

SOURCE = Path(package.__file__).parent


def test_arguments_are_named_as_they_are_typed():
    with spelled({"a": "--a", "runs": "RUN…"}):
        typed = [arg("a"), arg("a", "skip"), arg("a", ""), arg("a", True), arg("runs", "x"), arg("other")]
    assert typed == ["--a", "--a skip", "--a ''", "--a", "RUN…", "`other`"]
    assert [arg("a"), arg("a", "skip"), arg("a", True)] == ["`a`", "`a='skip'`", "`a=True`"]


def test_no_message_of_the_library_names_an_option():
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    assert len(sources) > 100
    raised = [
        (path.relative_to(SOURCE), part.lineno, part.value)
        for path, source in sources.items()
        if path.parent.name != "cli" and "--" in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Raise)
        for part in ast.walk(node)
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]
    assert raised
    assert [found for found in raised if re.search(r"(^|[\s(\[`'\"])--[a-z{]", found[2]) or found[2] == "--"] == []


def test_help_and_version_end_well(evenrank):
    for arguments, word in ((["--help"], "audit"), (["audit", "-h"], "--baseline"), (["--version"], "evenrank ")):
        ended = evenrank(*arguments)
        assert (ended.status, ended.err) == (0, "")
        assert word in ended.out
    # Without arguments: the help, and the status of a mistake.
    ended = evenrank("position")
    assert ended.status == 2
    assert "sensitivity" in ended.out + ended.err


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, 130), (typer.Abort, 1)])
def test_stopped(evenrank, monkeypatch, error, status):
    def stop(*_):
        raise error

    monkeypatch.setattr("evenrank.public_data", stop)
    ended = evenrank("data", "list")
    assert (ended.status, ended.out) == (status, "")
