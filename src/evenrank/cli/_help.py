"""The help of a command: what it is for, examples, then its options under a few headings, without the rare ones."""

from __future__ import annotations

import copy
import inspect
from typing import Annotated, Any, Literal, get_args, get_origin

import typer

try:
    from typer._coercion import build_runtime_param
except ImportError:
    # Typer before 0.29, which converts values by itself.
    build_runtime_param = None  # type: ignore[assignment]
from typer.core import TyperCommand, TyperGroup

from evenrank.options import Panel

_ORDER = ("", *get_args(Panel))
"""The headings in their order; arguments have none."""


class _Typed:
    """Reads what is typed: texts as they are, other values by Typer, whose pydantic takes a tenth of a second."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of a parameter."""
        kind = param.type_descriptor.annotation
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if isinstance(value, str) and (kind is str or get_origin(kind) is Literal):
            return value
        if isinstance(value, list | tuple) or (isinstance(value, int | float) and isinstance(value, kind)):
            return list(value) if isinstance(value, tuple) else value
        return build_runtime_param(param.type_descriptor).coerce(value, param=param, ctx=ctx)


class _Params:
    """A command, or a group, whose parameters are read by :class:`_Typed`."""

    def get_params(self, ctx: Any) -> Any:
        """All parameters, ``--help`` too."""
        params = super().get_params(ctx)  # type: ignore[misc]
        for parameter in params:
            parameter._runtime_param = _Typed()
        return params


class Group(_Params, TyperGroup):
    """A group of commands; whoever reads its help has found ``--help``."""

    def get_params(self, ctx: Any) -> Any:
        """All parameters; those of completion without their type."""
        params = super().get_params(ctx)
        for parameter in params:
            parameter.display_type_rich = lambda ctx: None
        return params

    def get_help_option(self, ctx: Any) -> Any:
        """``--help``, which is not in the help."""
        return _hidden(super().get_help_option(ctx))


class Command(_Params, TyperCommand):
    """A command with ``--help-all`` and with examples, which Typer takes as its epilogue."""

    def get_help_option(self, ctx: Any) -> Any:
        """``--help``, which is not in the help."""
        return _hidden(super().get_help_option(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As always, but for files that are not required where another option stands for them."""
        instead = {"--beir", "--from"} & {word.partition("=")[0] for word in args}
        files = [param for param in self.params if param.required and param.name in ("collection", "queries", "qrels")]
        try:
            for file in files if instead else ():
                file.required = False
            return super().parse_args(ctx, args)
        finally:
            for file in files:
                file.required = True

    def whole(self) -> Command:
        """The same with its rare options in the help."""
        shown = copy.copy(self)
        parameters: list[Any] = [copy.copy(parameter) for parameter in self.params]
        for parameter in parameters:
            parameter.hidden = parameter.name == _HELP_ALL
        shown.params = parameters
        return shown

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Prints the examples before the options, and these by their headings."""
        shown = copy.copy(self)
        parameters: list[Any] = [copy.copy(parameter) for parameter in self.params]
        for parameter in parameters:
            if parameter.param_type_name == "argument":
                # What Typer says of its type beside its name, such as <list[str]>, says nothing more.
                parameter.display_type_rich = lambda ctx: None
        # Headings come in the order of their first options.
        parameters.sort(key=lambda parameter: _ORDER.index(parameter.rich_help_panel or ""))
        shown.params = parameters
        # Of all but the first paragraph, Typer keeps the lines.
        paragraphs = [" ".join(paragraph.split()) for paragraph in (self.help or "").split("\n\n")]
        shown.help = "\n\n".join(filter(None, (*paragraphs, self.epilog)))
        left_out = sum(parameter.hidden and parameter.name != _HELP_ALL for parameter in parameters)
        shown.epilog = f"More options ({left_out}): {ctx.command_path} --help-all" if left_out else None
        super(Command, shown).format_help(ctx, formatter)


def _hidden(option: Any) -> Any:
    if option is not None:
        option.hidden = True
    return option


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted and isinstance(ctx.command, Command) and not ctx.resilient_parsing:
        typer.echo(ctx.command.whole().get_help(ctx))
        raise typer.Exit


_HELP_ALL = "help_all"
HELP_ALL = inspect.Parameter(
    _HELP_ALL,
    inspect.Parameter.KEYWORD_ONLY,
    default=False,
    annotation=Annotated[
        bool, typer.Option("--help-all", is_eager=True, expose_value=False, hidden=True, callback=_show_all)
    ],
)
"""The parameter of every command that shows all of its options."""
