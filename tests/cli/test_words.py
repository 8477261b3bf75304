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
from evenrank.cli import _words, commands

Command = Callable[..., Any]
SOURCE = Path(package.__file__).parent


def of(*arguments: str) -> Any:
    return _words.chosen(commands(), arguments)[1]


@pytest.mark.parametrize(
    ("arguments", "message", "said"),
    [
        (["audit", "run"], "`background_depth`: expected 1 or more", "--background-depth: expected 1 or more"),
        (["audit", "run"], "give `collection` or `scores`", "give --collection or --scores"),
        (["audit"], "(`missing='skip'` or `missing='neutral'`)", "(--missing skip or --missing neutral)"),
        (["audit"], "`runs` and `nothing` and `data.blind`", "[NAME=]RUN… and `nothing` and `data.blind`"),
        (["score", "c", "--out", "o"], "`collection` and `poles='A,B'`", "COLLECTION and --poles A,B"),
        (["train", "r"], "`settings`: x; `resume=True` resumes", "--set: x; --resume resumes"),
        (["position", "similarity", "m"], "a smaller `min_terms`", "a smaller --min-terms"),
        (["embeddings", "--help", "train"], "`min_count`: x", "--min-count: x"),
        (["fuse", "a", "b"], "`measure`: no measure", "--tune: no measure"),
        # What a user wrote is no argument, nor is code.
        (["audit"], "found '`seed`', ``seed``, `seed", "found '`seed`', ``seed``, `seed"),
        ([], "`seed`", "`seed`"),
        (["nothing", "audit"], "`seed`", "`seed`"),
    ],
)
def test_arguments_become_what_is_typed(arguments: list[str], message: str, said: str) -> None:
    assert _words.translated(message, of(*arguments)) == said


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
