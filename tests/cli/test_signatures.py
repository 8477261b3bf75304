"""Commands are made from signatures that are read, not imported: what is read is what Python has."""

from __future__ import annotations

import importlib
import inspect
from typing import Annotated, get_args

import pytest
import typer

from evenrank import options as opt
from evenrank.cli import _signatures, app
from evenrank.cli._signatures import From, Values, made


def functions():
    """The functions of ``cli`` by their commands' names, with what each parameter is told to be."""
    groups = {"": app} | {f"{group.name} ": group.typer_instance for group in app.registered_groups}
    for prefix, group in groups.items():
        for command in group.registered_commands:
            function = inspect.unwrap(command.callback)
            parameters = inspect.signature(function).parameters.values()
            yield (
                f"{prefix}{command.name}",
                {one.name: get_args(eval(one.annotation, function.__globals__))[1] for one in parameters},
            )


FUNCTIONS = dict(functions())
SOURCES = [(name, of) for name, told in FUNCTIONS.items() for of in told.values() if isinstance(of, From)]


@pytest.mark.parametrize("source", [of for _, of in SOURCES], ids=[f"{name}-{of.name}" for name, of in SOURCES])
def test_what_is_read_is_what_python_has(source):
    function = getattr(importlib.import_module(f"evenrank.{source.home}".removesuffix(".__init__")), source.name)
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
        assert one.option.help[:1].isalnum()
        assert one.option.help.endswith((".", "]", ")", "?")), one.option.help


def test_an_option_of_all_that_read_groups_is_one_line(monkeypatch):
    new = Annotated[float | None, opt.Option("A new one.")]
    monkeypatch.setitem(opt.GroupOptions.__annotations__, "new", new)
    _signatures._declared.cache_clear()
    have = {name for name, source in SOURCES if "new" in [one.name for one in source.options()]}
    _signatures._declared.cache_clear()
    assert have == {"score", "audit", "gate", "rebalance", "negatives"}


def test_a_command_by_hand():
    seen = {}

    def command(
        run: Annotated[str, opt.Option("A run.", metavar="RUN")],
        *,
        index: Annotated[Values, From("search.expansion", "RM3", without=("fb_terms",))],
        words: Annotated[list[str], opt.Option("Words.", flag="--word", typed=list)] = (),
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
