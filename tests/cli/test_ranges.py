"""The numbers that settings may be: every option of every command refuses the others in one line."""

from __future__ import annotations

import inspect
import math
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
import typer

from evenrank.cli import app, main
from evenrank.files import EvenrankError
from evenrank.files.arguments import check_range
from evenrank.measures import parse_measure
from evenrank.options import COUNT, K1, LARGEST, SEED, SHARE, WORDS, Range

HUGE = 10**40


def commands(group: typer.Typer = app, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for command in group.registered_commands:
        assert command.callback is not None
        yield (*path, command.name or command.callback.__name__), command.callback
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        yield from commands(inner.typer_instance, (*path, str(inner.name)))


def options(callback: Callable[..., Any]) -> Iterator[tuple[str, Any, frozenset[type], bool]]:
    """Name, what typer is told of it, types and whether it must be given, of each parameter."""
    hints = get_type_hints(callback, include_extras=True)
    for name, parameter in inspect.signature(callback).parameters.items():
        base, info = get_args(hints[name])[:2]
        yield name, info, frozenset(get_args(base) or (base,)), parameter.default is inspect.Parameter.empty


def numeric() -> Iterator[tuple[tuple[str, ...], list[str], str, bool, Range]]:
    for path, callback in commands():
        found = list(options(callback))
        run = inspect.getclosurevars(callback).nonlocals["run"]
        declared = inspect.getclosurevars(run).nonlocals["declared"]
        # Files that are not there: nothing is read before the numbers are checked.
        given = []
        for name, info, _, needed in found:
            if needed:
                option = f"--{name.replace('_', '-')}"
                given += ["absent"] if isinstance(info, typer.models.ArgumentInfo) else [option, "absent"]
        for name, _, types, _ in found:
            if types & {int, float}:
                yield path, given, name, float in types, declared[name].option.range


NUMERIC = list(numeric())
FLAGS = {"count": "--most", "dimensions": "--size"}
"""Those of options that have another name in Python."""


def refused(arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that a command ends with."""
    monkeypatch.setattr(sys, "argv", ["evenrank", *arguments])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Traceback" not in shown.err
    return shown.err


def names(option: str, line: str) -> bool:
    return re.search(rf"(--{option.replace('_', '-')}|`{option}`)['’: ]", line) is not None


def test_the_walk_finds_the_options() -> None:
    assert len(NUMERIC) > 50
    assert {("retrieve",), ("embeddings", "audit"), ("position", "sensitivity"), ("data", "squad")} <= {
        path for path, *_ in NUMERIC
    }
    assert [one for one in NUMERIC if one[-1] is None] == []


@pytest.mark.parametrize(("path", "given", "name", "real", "allowed"), NUMERIC, ids=lambda value: str(value)[:30])
def test_an_absurd_number_is_one_line(
    path: tuple[str, ...],
    given: list[str],
    name: str,
    real: bool,
    allowed: Range,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    values = ["100000000000000000000", str(HUGE), "-1", "nan", "inf", "-inf"]
    values += [str(math.nextafter(allowed.most, math.inf))] if real else [str(int(allowed.most) + 1)]
    for value in values:
        option = FLAGS.get(name, f"--{name.replace('_', '-')}")
        line = refused([*path, *given, f"{option}={value}"], monkeypatch, capsys)
        assert names(option.removeprefix("--"), line), line
        # What is no number at all, typer says in a box of its own.
        if real or value not in ("nan", "inf", "-inf"):
            assert re.fullmatch(r"evenrank: .*: expected .*, found .*\n", line), line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["fuse", "a", "b", "--out", "o", "--weight", "nan"], "weight"),
        (["fuse", "a", "b", "--out", "o", "--weight=-1"], "weight"),
        (["fuse", "a", "b", "--out", "o", "--weight", "1e400,1"], "weight"),
        (["fuse", "a", "b", "--out", "o", "--qrels", "q", "--tune", f"nDCG@{HUGE}"], "nDCG"),
        (["data", "squad", "a", "--out", "o", "--shares", "nan 1 1"], "shares"),
    ],
)  # fmt: skip
def test_numbers_within_a_text_too(
    arguments: list[str],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    line = refused(arguments, monkeypatch, capsys)
    assert name in line
    assert line.startswith("evenrank: ")
    assert line.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("text", [f"nDCG@{HUGE}", "R@2147483648", f"NFaiRR@{10**19}", f"AP(rel={HUGE})", "nDCG@0"])
def test_a_measure_of_an_absurd_depth(text: str) -> None:
    with pytest.raises(EvenrankError, match=r"`measures`: .*(2147483647 at most|is not a measure)"):
        parse_measure(text)


def test_the_deepest_measure() -> None:
    assert str(parse_measure(f"nDCG@{LARGEST}")) == f"nDCG@{LARGEST}"


@pytest.mark.parametrize(
    ("allowed", "value", "message"),
    [
        (COUNT, 0, "expected 1 or more, found 0"),
        (COUNT, 10**19, "expected 1 to 2147483647, found 10000000000000000000"),
        (COUNT, 10.0, "expected a whole number from 1, found 10.0"),
        (COUNT, True, "expected a whole number from 1, found True"),
        (COUNT, "ten", "expected a whole number from 1, found 'ten'"),
        (SEED, -1, "expected 0 to 18446744073709551615, found -1"),
        (SHARE, math.nan, "expected a number from 0 to 1, found nan"),
        (WORDS, -1, "expected a number from 0, found -1"),
        (WORDS, math.inf, "expected a number from 0 to 2147483647, found inf"),
        (K1, np.float64(-1), "expected a number from 0 to 1000000, found -1.0"),
    ],
)
def test_what_a_number_may_be(allowed: Range, value: object, message: str) -> None:
    with pytest.raises(EvenrankError) as error:
        check_range("x", value, allowed)
    assert str(error.value) == f"`x`: {message}"


def test_what_passes() -> None:
    with pytest.raises(EvenrankError, match="expected 1 to 2147483647, found a number of 6001 digits"):
        check_range("x", 10**6000, COUNT)
    for allowed, value in ((COUNT, np.int64(LARGEST)), (SEED, 0), (SHARE, 1), (K1, np.float32(1.5)), (COUNT, None)):
        check_range("x", value, allowed)
