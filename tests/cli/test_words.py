"""What the command says when it is called wrongly: its own options, in one line; Python callers see arguments."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import typer

import evenrank as package
from evenrank._command import arg, spelled

Command = Callable[..., Any]
SOURCE = Path(package.__file__).parent


@pytest.mark.parametrize(
    ("name", "value", "python", "typed"),
    [
        ("background_depth", None, "`background_depth`", "--background-depth"),
        ("missing", "skip", "`missing='skip'`", "--missing skip"),
        ("poles", "A,B", "`poles='A,B'`", "--poles A,B"),
        ("threshold", 0, "`threshold=0`", "--threshold 0"),
        ("score", "", "`score=''`", "--score ''"),
        ("only_queries", True, "`only_queries=True`", "--only-queries"),
        ("measure", None, "`measure`", "--tune"),
        ("runs", None, "`runs`", "[NAME=]RUN…"),
        ("nothing", None, "`nothing`", "`nothing`"),
    ],
)
def test_arguments_are_named_as_they_are_typed(name: str, value: object, python: str, typed: str) -> None:
    options = {"background_depth", "missing", "poles", "threshold", "score", "only_queries"}
    flags = {one: f"--{one.replace('_', '-')}" for one in options} | {"measure": "--tune", "runs": "[NAME=]RUN…"}
    with spelled(flags):
        assert arg(name, value) == typed
    assert arg(name, value) == python


def test_one_mistake_said_to_both(tmp_path: Path, evenrank: Command) -> None:
    run = pl.DataFrame({"query_id": ["q"], "doc_id": ["d"], "score": [1.0]})
    with pytest.raises(package.EvenrankError) as caught:
        package.audit({"run": run}, background_depth=0)
    assert str(caught.value) == "`background_depth`: expected 1 or more, found 0"
    (tmp_path / "run").write_text("q Q0 d 1 1 t\n")
    ended = evenrank("audit", tmp_path / "run", "--background-depth", 0)
    assert (ended.status, ended.err) == (2, "evenrank: --background-depth: expected 1 or more, found 0\n")


def _raised(tree: ast.AST) -> Iterator[tuple[int, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            for part in ast.walk(node):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.lineno, part.value


def test_no_message_of_the_library_names_an_option() -> None:
    sources = {path: path.read_text(encoding="utf-8") for path in sorted(SOURCE.rglob("*.py"))}
    assert len(sources) > 100
    raised = [
        (path.relative_to(SOURCE), line, text)
        for path, source in sources.items()
        if path.parent.name != "cli" and "--" in source
        for line, text in _raised(ast.parse(source))
    ]
    assert raised
    assert [found for found in raised if re.search(r"(^|[\s(\[`'\"])--[a-z{]", found[2]) or found[2] == "--"] == []


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["audit"], "evenrank: an audit needs at least one run"),
        (["rotate"], "evenrank rotate: missing argument 'COLLECTION' (see evenrank rotate --help)"),
        (["audit", "x", "--xyzzy"], "evenrank audit: no such option: --xyzzy (see evenrank audit --help)"),
        (["audit", "x", "--seed"], "evenrank audit: option '--seed' requires an argument"),
        (["retrieve", "c", "q", "--out", "o", "--k", "x"], "evenrank retrieve: invalid value for '--k': "),
        (["rerank", "r", "--depth", "z"], "evenrank rerank: invalid value for '--depth': "),
        (["position", "nothing"], "evenrank position: no such command 'nothing' (see evenrank position --help)"),
        (["no\x1bthing"], r"evenrank: no such command 'no\x1bthing' (see evenrank --help)"),
    ],
)
def test_wrong_arguments_are_one_line(evenrank: Command, arguments: list[str], line: str) -> None:
    ended = evenrank(*arguments)
    assert (ended.status, ended.out, ended.err.count("\n")) == (2, "", 1)
    assert ended.err.startswith(line)
    assert ended.err.isascii() or "…" in ended.err


def test_help_and_version_end_well(evenrank: Command) -> None:
    for arguments, word in ((["--help"], "audit"), (["audit", "-h"], "--baseline"), (["--version"], "evenrank ")):
        ended = evenrank(*arguments)
        assert (ended.status, ended.err) == (0, "")
        assert word in ended.out
    # Without arguments: the help, and the status of a mistake.
    ended = evenrank("position")
    assert ended.status == 2
    assert "sensitivity" in ended.out + ended.err


@pytest.mark.parametrize(("error", "status"), [(KeyboardInterrupt, 130), (typer.Abort, 1)])
def test_stopped(evenrank: Command, monkeypatch: pytest.MonkeyPatch, error: type[BaseException], status: int) -> None:
    def stop(*_: object) -> None:
        raise error

    monkeypatch.setattr("evenrank.public_data", stop)
    ended = evenrank("data", "list")
    assert (ended.status, ended.out) == (status, "")
