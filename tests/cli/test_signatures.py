"""Commands are made from signatures that are read, not imported: what is read is what Python has."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import pytest
import typer

from evenrank import options as opt
from evenrank.cli import _signatures, app
from evenrank.cli._signatures import From, Given, Values, made


def functions() -> Iterator[tuple[str, Any]]:
    """The functions of ``cli`` by their commands' names."""
    for command in app.registered_commands:
        assert command.callback is not None
        yield str(command.name), inspect.unwrap(command.callback)
    for group in app.registered_groups:
        assert group.typer_instance is not None
        for command in group.typer_instance.registered_commands:
            yield f"{group.name} {command.name}", inspect.unwrap(command.callback)  # type: ignore[arg-type]


def sources() -> list[tuple[str, From]]:
    found = []
    for name, function in functions():
        for one in inspect.signature(function).parameters.values():
            told = get_args(eval(one.annotation, function.__globals__))[1]
            found += [(name, told)] if isinstance(told, From) else []
    return found


SOURCES = sources()


@pytest.mark.parametrize(("command", "source"), SOURCES, ids=[f"{name}-{of.name}" for name, of in SOURCES])
def test_what_is_read_is_what_python_has(command: str, source: From) -> None:
    home = f"evenrank.{source.home}".removesuffix(".__init__")
    function = getattr(importlib.import_module(home), source.name)
    own = inspect.signature(function).parameters
    options = source.options()
    assert {one.name for one in options} >= set(source.only)
    assert not {one.name for one in options} & set(source.without)
    for one in options:
        if one.name in own:
            assert one.default == own[one.name].default
            positional = own[one.name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD and not inspect.isclass(function)
            assert one.positional == positional
        else:
            assert one.name in opt.GroupOptions.__annotations__
            assert one.default is None
        assert one.option.help[:1].isalpha() or one.option.help[:1].isdigit()
        assert one.option.help.endswith((".", "]", ")", "?")), one.option.help


def test_no_command_declares_what_its_function_has() -> None:
    """Of a command's own parameters none is one of the functions that it is made from."""
    for name, function in functions():
        told = {
            one.name: get_args(eval(one.annotation, function.__globals__))[1]
            for one in inspect.signature(function).parameters.values()
        }
        taken = [of for of in told.values() if isinstance(of, From)]
        own = {key for key, of in told.items() if isinstance(of, opt.Option)}
        assert not own & {one.name for of in taken for one in of.options()}, name


def test_an_option_of_all_that_read_groups_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    new = Annotated[float | None, opt.Option("A new one.")]
    monkeypatch.setitem(opt.GroupOptions.__annotations__, "new", new)
    _signatures._declared.cache_clear()
    have = {name for name, source in SOURCES if "new" in [one.name for one in source.options()]}
    _signatures._declared.cache_clear()
    assert have == {"score", "audit", "gate", "rebalance", "negatives"}


def test_a_command_by_hand() -> None:
    seen: dict[str, Any] = {}

    def command(
        run: Annotated[str, opt.Option("A run.", metavar="RUN")],
        *,
        index: Annotated[Values, From("search.expansion", "RM3", without=("fb_terms",))],
        words: Annotated[list[str], opt.Option("Words.", flag="--word", typed=list)] = (),  # type: ignore[assignment]
        share: Annotated[float | None, opt.Option("A share.", reads=True)] = None,
    ) -> None:
        """What it does."""
        seen.update(run=run, index=index, words=words, share=share)

    line = typer.Typer()
    line.command()(made(command))
    line(["r", "--fb-docs", "3", "--word", "a", "--word", "b"], standalone_mode=False)
    assert seen == {"run": "r", "index": {"fb_docs": 3, "original_weight": 0.5}, "words": ["a", "b"], "share": None}
    assert (seen["index"].changed, seen["index"].read) == (("fb_docs",), ())
    line(["r"], standalone_mode=False)
    assert (seen["words"], seen["index"].changed) == ((), ())


@pytest.mark.parametrize(
    ("type_", "option", "typed"),
    [
        ("int | None", opt.Option(""), int),
        ("bool", opt.Option(""), bool),
        ("TextsLike", opt.Option(""), str),
        ("int | tuple[int, int] | str | None", opt.Option(""), str),
        ("Sequence[str]", opt.Option("", typed=list), list[str]),
    ],
)
def test_what_is_typed(type_: str, option: opt.Option, typed: object) -> None:
    annotation = Given("name", type_, option, 0, positional=False).parameter().annotation
    assert get_args(annotation)[0] == typed


def test_help_loads_neither_numpy_nor_polars(tmp_path: Path) -> None:
    code = (
        "import sys; from evenrank.cli import main; sys.argv = ['evenrank', 'audit', '--help']\n"
        "try:\n    main()\nexcept SystemExit: pass\n"
        "print([name for name in ('numpy', 'polars', 'pyarrow', 'torch') if name in sys.modules], file=sys.stderr)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert ended.stderr == "[]\n"
    assert "--baseline" in ended.stdout
