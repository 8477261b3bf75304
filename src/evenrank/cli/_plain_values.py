"""Typed values that need no parsing: they spare a command the import of what parses the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _options

if TYPE_CHECKING:
    # typer either vendors click or imports it: the type is that of the method that is called.
    from typer import _click

_INTEGER_DIGITS = 9


class _Plain:
    """Coerces a parameter's values as typer does, with typer's own way for whatever is not plain."""

    def __init__(self, kind: object, parser: object) -> None:
        self._kind, self._parser = kind, parser

    def coerce(self, value: object, param: Any, ctx: _click.Context) -> object:
        """The value of a parameter; raises typer's errors for a wrong one."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        found = self._plain(value, several)
        if found is not None:
            return found
        param._runtime_param = None
        coerced: object = param.get_runtime_param().coerce(value, param=param, ctx=ctx)
        return coerced

    def _plain(self, value: object, several: bool) -> object:
        """The value, or None if it is not plain. Text that is not ASCII may be no text at all, but bytes."""
        if several:
            given = isinstance(value, list | tuple) and all(isinstance(one, str) and one.isascii() for one in value)
            return list(value) if given and self._kind == list[str] and self._parser is None else None  # type: ignore[call-overload]
        if isinstance(value, str) and value.isascii():
            if self._kind is int and value.isdigit() and len(value) <= _INTEGER_DIGITS:
                return int(value)
            return value if self._parser is _options.text or (self._parser is None and self._kind is str) else None
        # A default.
        return value if type(value) in (int, float) and type(value) is self._kind else None


def spare_parsing(command: _click.Command, ctx: _click.Context) -> None:
    """Lets a command's parameters take plain values as they are, in versions of typer that parse them by pydantic."""
    for parameter in command.get_params(ctx):
        descriptor = getattr(parameter, "type_descriptor", None)
        if descriptor is None or getattr(parameter, "_runtime_param", 0) is not None:
            continue
        info, kind = getattr(descriptor, "parameter_info", None), getattr(descriptor, "annotation", None)
        parser = getattr(info, "parser", parameter)
        if parser is not parameter and all(getattr(info, name, info) is None for name in ("min", "max")):
            setattr(parameter, "_runtime_param", _Plain(kind, parser))  # noqa: B010
