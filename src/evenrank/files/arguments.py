"""What public functions refuse: arguments of another kind than their annotation names, and numbers out of range.

>>> @checked
... def shortened(text: str, depth: int = 10) -> str:
...     return text[:depth]
>>> shortened(5)
Traceback (most recent call last):
evenrank.files.errors.EvenrankError: `text`: expected a string, found 5
"""

from __future__ import annotations

import functools
import inspect
import os
import types
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from .errors import EvenrankError, shown

_F = TypeVar("_F", bound=Callable[..., Any])
_WORDS = {str: "a string", int: "a whole number", float: "a number", bool: "True or False", Callable: "a function"}
_PATHS = (Path, os.PathLike)
_LISTS = (list, tuple, Sequence, Collection, AbstractSet, Iterable)


def checked(function: _F) -> _F:
    """A function, or a class, that raises EvenrankError for an argument of another kind than its annotation names.

    Numbers are also checked for the range of their name (:data:`RANGES`). What can come in many forms, such as a run,
    is annotated so that anything passes, and converted where it is used (:mod:`evenrank.files.convert`).
    """
    if isinstance(function, type):
        function.__init__ = checked(function.__init__)  # type: ignore[misc]
        return function
    parameters = list(inspect.signature(function).parameters.values())
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    unpacked = any(one.kind is one.VAR_KEYWORD and _is_unpacked(one) for one in parameters)
    variable = {one.name for one in parameters if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)}
    own = {one.name for one in parameters} - variable

    @functools.cache
    def kinds() -> dict[str, Any]:
        annotations = inspect.get_annotations(function).items()
        found = {name: _kind(text, function.__globals__) for name, text in annotations if name not in variable}
        for one in parameters:
            if one.kind is one.VAR_KEYWORD and _is_unpacked(one):
                # The keys of a TypedDict.
                of = eval(str(one.annotation).removeprefix("Unpack[").removesuffix("]"), function.__globals__)
                found |= {name: _kind(kind, function.__globals__) for name, kind in of.__annotations__.items()}
        return found

    @functools.wraps(function)
    def checking(*args: Any, **kwargs: Any) -> Any:
        for name, value in [*zip(names, args, strict=False), *kwargs.items()]:
            if name in kinds():
                _check(name, value, kinds()[name])
            elif unpacked and name not in own:
                raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
        return function(*args, **kwargs)

    return checking  # type: ignore[return-value]


def _is_unpacked(one: inspect.Parameter) -> bool:
    """Whether the keywords of a parameter are those of a TypedDict."""
    return str(one.annotation).startswith("Unpack[")


def _kind(annotation: object, names: dict[str, Any]) -> Any:
    try:
        return get_type_hints(types.SimpleNamespace(__annotations__={"it": annotation}), names)["it"]
    except NameError:
        # Imported by type checkers alone.
        return Any


def _check(name: str, value: object, kind: Any) -> None:
    if name in RANGES and value is not None and {int, float} >= set(_alternatives(kind)) - {types.NoneType}:
        check_ranges(**{name: value})
    elif not _fits(value, kind):
        raise EvenrankError(f"`{name}`: expected {_words(kind)}, found {shown(value)}")


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _fits(value: object, kind: Any) -> bool:
    of, inner = get_origin(kind) or kind, get_args(kind)
    if of in (Union, types.UnionType):
        return any(_fits(value, one) for one in inner)
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
    kinds = [one for one in _alternatives(kind) if one is not types.NoneType]
    if any((get_origin(one) or one) in _PATHS for one in kinds):
        kinds = [one for one in kinds if one is not str]
    words = []
    for one in kinds:
        of, inner = get_origin(one) or one, get_args(one)
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


LARGEST = 2**31 - 1
"""The largest count: numbers of documents, words and positions are 32-bit integers in the compiled loops."""


def seed_32(seed: int) -> int:
    """The seed for libraries that accept 32 bits only."""
    return seed % 2**32


class Range(NamedTuple):
    """From ``least`` to ``most``, inclusive."""

    least: float
    most: float
    whole: bool = True


_COUNT = Range(1, LARGEST)
_FROM_0 = Range(0, LARGEST)
_SHARE = Range(0, 1, whole=False)

RANGES: dict[str, Range] = {
    # Rankings.
    "k": _COUNT,
    "depth": _COUNT,
    "background_depth": _COUNT,
    "batch_size": _COUNT,
    # Larger values exceed the precision of float32, and term frequency no longer saturates anyway.
    "k1": Range(0, 1e6, whole=False),
    "b": _SHARE,
    "fb_docs": _COUNT,
    "fb_terms": _COUNT,
    "original_weight": _SHARE,
    "language_model": _SHARE,
    "folds": Range(2, LARGEST),
    "restarts": Range(0, 10_000),
    # Fairer orders. FA*IR corrects significances from 0.001 to 0.5.
    "strength": _SHARE,
    "alpha": Range(0.001, 0.5, whole=False),
    "top": _COUNT,
    # Groups and negatives.
    "threshold": Range(0, LARGEST, whole=False),
    "missing_limit": _SHARE,
    "n": _COUNT,
    "share": _SHARE,
    # Endpoints.
    "concurrency": Range(1, 1000),
    "timeout": Range(0.001, 86_400, whole=False),
    "largest_answer": Range(1, 1 << 20),
    # Word vectors.
    "components": _COUNT,
    "count": _COUNT,
    "limit": _COUNT,
    "train": _COUNT,
    "splits": _COUNT,
    "first": _COUNT,
    "size": Range(1, 100_000),
    "dimensions": Range(1, 100_000),
    "window": Range(1, 10_000),
    "epochs": _COUNT,
    "min_count": _COUNT,
    # Positions.
    "passages": _COUNT,
    "tokens": _COUNT,
    "overlap": _FROM_0,
    "max_words": _COUNT,
    "min_pairs": _COUNT,
    "min_terms": _COUNT,
    "cap": _COUNT,
    "places": Range(2, 10_000),
    "sample": _COUNT,
    "sentences": Range(1, 1000),
    "max_length": _COUNT,
    # Collections, seeds and workers.
    "validation": _FROM_0,
    "seed": Range(0, 2**64 - 1),
    "seeds": Range(1, 10_000),
    "jobs": Range(1, 10_000),
    "workers": Range(1, 100_000),
    "cpus": Range(0, 100_000, whole=False),
}


def check_ranges(**settings: object) -> None:
    """Raises EvenrankError, naming the argument, for a setting outside its range; None is allowed.

    >>> check_ranges(k=10, b=0.4, limit=None)
    >>> check_ranges(k=0)
    Traceback (most recent call last):
    evenrank.files.errors.EvenrankError: `k`: expected 1 or more, found 0
    """
    for name, value in settings.items():
        if value is not None:
            _check_range(name, value, RANGES[name])


def _check_range(name: str, value: object, allowed: Range) -> None:
    least, most, whole = allowed
    kind = Integral if whole else Real
    fits = isinstance(value, kind) and not isinstance(value, bool)
    if fits and least <= value <= most:  # type: ignore[operator]
        return
    # The largest count is mentioned only if it was exceeded.
    open_end = most == LARGEST and not (fits and value > most)  # type: ignore[operator]
    if not (whole and fits):
        expected = f"a {'whole ' * whole}number from {least:.10g}" + ("" if open_end else f" to {most:.10g}")
    else:
        expected = f"{least} or more" if open_end else f"{least} to {most}"
    raise EvenrankError(f"`{name}`: expected {expected}, found {shown(value)}")
