"""What public functions refuse: arguments of another kind than their annotation names, and numbers out of range.

>>> @checked
... def shortened(text: str, depth: int = 10) -> str:
...     return text[:depth]
>>> shortened(5)
Traceback (most recent call last):
evenrank.files.errors.EvenrankError: `text`: expected a string, found 5
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import os
import types
from collections import ChainMap, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from evenrank import options
from evenrank.options import LARGEST, Option, Range

from .errors import EvenrankError, arg, shown

_F = TypeVar("_F", bound=Callable[..., Any])
_WORDS = {str: "a string", int: "a whole number", float: "a number", bool: "True or False", Callable: "a function"}
_PATHS = (Path, os.PathLike)
_LISTS = (list, tuple, Sequence, Collection, AbstractSet, Iterable)


Options = Mapping[str, Option]


def checked(function: _F) -> _F:
    """A function, or a class, that raises EvenrankError for arguments that its annotations don't allow.

    Besides the type these are the range of a number, and what an option needs and excludes: see
    :class:`evenrank.options.Option`. What can come in many forms, such as a run, is annotated so that anything passes,
    and converted where it is used (:mod:`evenrank.files.convert`).
    """
    if isinstance(function, type):
        function.__init__ = checked(function.__init__)  # type: ignore[misc]
        return function
    parameters = list(inspect.signature(function).parameters.values())
    names = [
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    unpacked = next((parameter for parameter in parameters if str(parameter.annotation).startswith("Unpack[")), None)
    variable = {
        parameter.name
        for parameter in parameters
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    }
    defaults = {parameter.name: parameter.default for parameter in parameters if parameter.name not in variable}

    @functools.cache
    def declarations() -> tuple[dict[str, Any], dict[str, Option], dict[str, object]]:
        annotations = {
            name: annotation for name, annotation in inspect.get_annotations(function).items() if name in defaults
        }
        if unpacked is not None:
            # The keys of a TypedDict.
            annotations |= _evaluated(unpacked.annotation[7:-1], function.__globals__).__annotations__
        declared = {name: _declared(annotation, function.__globals__) for name, annotation in annotations.items()}
        kinds = {name: kind for name, (kind, _) in declared.items()}
        options = {name: option for name, (_, option) in declared.items() if option is not None}
        return kinds, options, dict.fromkeys(annotations) | defaults

    @functools.wraps(function)
    def checking(*args: Any, **kwargs: Any) -> Any:
        kinds, options, otherwise = declarations()
        passed = dict(zip(names, args, strict=False)) | kwargs
        for name, value in passed.items():
            if name in kinds:
                _check(name, value, kinds[name], options.get(name))
            elif unpacked is not None and name not in defaults:
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
        if any(option.needs or option.excludes or option.unless for option in options.values()):
            check_conditions(otherwise | passed, otherwise, options)
        return function(*args, **kwargs)

    checking.__signature__ = _plain_signature(function)  # type: ignore[attr-defined]
    return checking  # type: ignore[return-value]


class _Shown(str):
    """An annotation as help shows it, without quotes."""

    def __repr__(self) -> str:
        return str(self)


def _plain_signature(function: Callable[..., Any]) -> inspect.Signature:
    """The signature with types alone: what options say of themselves belongs to the command line."""
    own = inspect.signature(function)
    parameters = [parameter.replace(annotation=_plain(parameter.annotation)) for parameter in own.parameters.values()]
    return own.replace(parameters=parameters, return_annotation=_plain(own.return_annotation))


def _plain(annotation: Any) -> Any:
    if not isinstance(annotation, str):
        return annotation
    option = getattr(options, annotation.removeprefix("opt."), None) if annotation.startswith("opt.") else None
    if option is not None:
        kind = get_args(option)[0]
        return _Shown(getattr(kind, "__forward_arg__", None) or inspect.formatannotation(kind))
    tree = ast.parse(annotation, mode="eval").body if annotation.startswith("Annotated[") else None
    if isinstance(tree, ast.Subscript) and isinstance(tree.slice, ast.Tuple):
        annotation = ast.unparse(tree.slice.elts[0])
    return _Shown(annotation.replace("opt.", ""))


def _declared(annotation: object, names: dict[str, Any]) -> tuple[Any, Option | None]:
    """The type that an annotation names, and what is declared beside it."""
    annotation = _evaluated(annotation, names)
    if get_origin(annotation) is not Annotated:
        return _kind(annotation, names), None
    kind, declared = get_args(annotation)
    return _kind(kind, names), declared if isinstance(declared, Option) else Option("", range=declared)


def _evaluated(annotation: object, names: dict[str, Any]) -> Any:
    if not isinstance(annotation, str):
        return annotation
    # What type checkers alone import stands for anything.
    return eval(annotation, {}, ChainMap(names, vars(builtins), defaultdict(lambda: Any)))


def _kind(annotation: object, names: dict[str, Any]) -> Any:
    try:
        return get_type_hints(types.SimpleNamespace(__annotations__={"it": annotation}), names)["it"]
    except NameError:
        return Any


def _check(name: str, value: object, kind: Any, option: Option | None) -> None:
    numbers = {int, float, types.NoneType}.issuperset(_alternatives(kind))
    if option is not None and option.range and value is not None and numbers:
        check_range(name, value, option.range)
    elif not _fits(value, kind):
        raise EvenrankError(f"{arg(name)}: expected {_words(kind)}, found {shown(value)}")


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _fits(value: object, kind: Any) -> bool:
    of, inner = get_origin(kind) or kind, get_args(kind)
    if of in (Union, types.UnionType):
        return any(_fits(value, alternative) for alternative in inner)
    if of is Literal:
        return isinstance(value, str | int | None) and value in inner
    if of in (int, float):
        return isinstance(value, Integral if of is int else Real) and not isinstance(value, bool)
    if of in _PATHS:
        return isinstance(value, str | os.PathLike)
    if of is Callable:
        return callable(value)
    if of is bool:
        return isinstance(value, bool | np.bool_)
    if of in _LISTS:
        if not isinstance(value, list | tuple if of is tuple else of) or isinstance(value, str | bytes | Mapping):
            return False
        if not isinstance(value, Collection):
            return True
        each = inner[:1] * len(value) if len(inner) == 1 or inner[1:] == (...,) else inner
        return not inner or (len(each) == len(value) and all(map(_fits, value, each)))
    if of is Mapping:
        keys, values = inner or (object, object)
        return isinstance(value, Mapping) and all(_fits(k, keys) and _fits(v, values) for k, v in value.items())
    # A protocol says what a value can do, which shows where it is used.
    return not isinstance(of, type) or of is Any or getattr(of, "_is_protocol", False) or isinstance(value, of)


def _words(kind: Any) -> str:
    """``str | Path | None`` as "a path", ``Sequence[str]`` as "a list of strings", a class by its name."""
    kinds = [alternative for alternative in _alternatives(kind) if alternative is not types.NoneType]
    if any((get_origin(alternative) or alternative) in _PATHS for alternative in kinds):
        kinds = [alternative for alternative in kinds if alternative is not str]
    words = []
    for alternative in kinds:
        of, inner = get_origin(alternative) or alternative, get_args(alternative)
        if of is Literal:
            words += [str(value) for value in inner]
        elif of in _PATHS:
            words.append("a path")
        elif of in _LISTS:
            words.append(_each(inner[0]) if inner else "a list")
        else:
            name = "dict" if of is Mapping else of.__name__
            # An RM3, as its letters are said.
            article = "an" if name[0] in "AEIO" or (name[:2].isupper() and name[0] in "FHLMNRSX") else "a"
            words.append(_WORDS.get(of) or (name if name.endswith("s") else f"{article} {name}"))
    return " or ".join([*([", ".join(words[:-1])] if words[1:] else []), *words[-1:]])


def _each(kind: Any) -> str:
    """A list of what is of this kind."""
    if get_origin(kind) is Literal:
        return f"some of {', '.join(get_args(kind))}"
    words = _words(kind)
    if " or " in words:
        return "a list of them"
    noun, of, rest = words.partition(" ")[2].partition(" of ")
    return f"a list of {noun}s{of}{rest}"


def seed_32(seed: int) -> int:
    """The seed for libraries that accept 32 bits only."""
    return seed % 2**32


def check_range(name: str, value: object, allowed: Range | None) -> None:
    """Raises EvenrankError, naming the argument, for a number that is not allowed; None is.

    >>> check_range("k", 0, Range(1))
    Traceback (most recent call last):
    evenrank.files.errors.EvenrankError: `k`: expected 1 or more, found 0
    """
    if allowed is None or value is None:
        return
    least, most, whole = allowed
    fits = isinstance(value, Integral if whole else Real) and not isinstance(value, bool)
    if fits and least <= value <= most:  # type: ignore[operator]
        return
    # The largest count is mentioned only if it was exceeded.
    open_end = most == LARGEST and not (fits and value > most)  # type: ignore[operator]
    if not (whole and fits):
        expected = f"a {'whole ' * whole}number from {least:.10g}" + ("" if open_end else f" to {most:.10g}")
    else:
        expected = f"{least} or more" if open_end else f"{least} to {most}"
    raise EvenrankError(f"{arg(name)}: expected {expected}, found {shown(value)}")


def check_conditions(values: Mapping[str, object], defaults: Mapping[str, object], options: Options) -> None:
    """Raises EvenrankError for an option without what it needs, beside what it excludes, or missing.

    Args:
        values: All parameters of the call by name, also those that are not given.
        defaults: Their defaults, which count as not given.
        options: What is declared of them. Names of others, which this function or command lacks, are ignored.
    """
    there = {name for name, value in values.items() if _is_there(value)}
    nondefault = {name for name in there if not _is_default(values[name], defaults.get(name))}
    for name, declared in options.items():
        if name not in there:
            instead = [other for other in declared.unless if other in values]
            if declared.unless and there.isdisjoint(instead):
                raise EvenrankError(f"expected {_either([arg(option) for option in (name, *instead)])}")
        if name not in nondefault:
            continue
        for other in declared.excludes:
            if other in nondefault:
                raise EvenrankError(f"{arg(name)}: not with {arg(other)}")
        pairs = [need.partition("=") for need in declared.needs]
        pairs = [(other, equals, value) for other, equals, value in pairs if other in values]
        if pairs and not any(values[other] == value if equals else other in there for other, equals, value in pairs):
            raise EvenrankError(
                f"{arg(name)} needs {_either([arg(other, value or None) for other, _, value in pairs])}"
            )


def _is_there(value: object) -> bool:
    return value is not None and not (isinstance(value, bool | np.bool_ | list | tuple) and not value)


def _is_default(value: object, default: object) -> bool:
    # Frames and arrays are not compared.
    return value is default or (isinstance(value, str | Real | list | tuple) and value == default)


def _either(names: Sequence[str]) -> str:
    *most, last = names
    return f"{', '.join(most)} or {last}" if most else last
