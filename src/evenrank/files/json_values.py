"""JSON from fields: how every result and everything in it is written.

A dataclass is an object with a key for each of its fields, and for each property that its class names in ``also``::

    @dataclass(frozen=True)
    class Share:
        also: ClassVar = ("value",)
        part: int = field(metadata=LEFT_OUT)
        n: int

is ``{"n": 8, "value": 0.25}``. What differs from that is said beside the field: :data:`LEFT_OUT`, :data:`IF_KNOWN`,
:data:`BY_QUERY`, :data:`INLINE` and :func:`named`. Arrays, series and tuples are lists, mappings and named tuples are
objects, measures and paths are texts, and a number that is not finite is null. An object with a method ``to_dict``
says itself what it is.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from os import PathLike, fspath

import numpy as np

from .errors import readable

Metadata = Mapping[str, object]

LEFT_OUT: Metadata = {"json": "left out"}
"""No part of the JSON."""
IF_KNOWN: Metadata = {"json": "if known"}
"""Left out where it is None or empty."""
BY_QUERY: Metadata = {"json": "by query"}
"""Left out unless the values of single queries are asked for and known."""
INLINE: Metadata = {"json": "inline"}
"""Its keys stand among those of the object that it is a field of, as far as that has no such key itself."""


def named(name: str) -> Metadata:
    """Under another key than the field's name."""
    return {"key": name}


def json_text(value: object, *, lines: bool = True) -> str:
    """``value`` as JSON (see :func:`json_values`); without ``lines`` on one line."""
    return readable(json.dumps(json_values(value), indent=1 if lines else None, ensure_ascii=False, allow_nan=False))


def json_values(value: object, *, by_query: bool = False) -> object:
    """``value`` as dicts, lists, strings, finite numbers, booleans and None.

    Args:
        by_query: Whether fields that are marked :data:`BY_QUERY` are written.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    if isinstance(value, Mapping):
        return {_text(name): json_values(inner, by_query=by_query) for name, inner in value.items()}
    if hasattr(value, "_asdict"):
        return json_values(value._asdict(), by_query=by_query)
    if isinstance(value, list | tuple):
        return [json_values(inner, by_query=by_query) for inner in value]
    if isinstance(value, np.ndarray):
        listed: list[object] = value.tolist()
        return listed if value.dtype.kind != "f" or np.isfinite(value).all() else json_values(listed)
    if hasattr(value, "to_dict"):
        return json_values(value.to_dict(), by_query=by_query)
    if is_dataclass(value):
        return fields_of(value, by_query=by_query)
    if hasattr(value, "to_list"):
        return json_values(value.to_list(), by_query=by_query)
    return _text(value)


def fields_of(value: object, *, by_query: bool = False) -> dict[str, object]:
    """The fields of a dataclass, and the properties that it names in ``also``, as JSON values."""
    json_fields: dict[str, object] = {}
    inline: list[object] = []
    for field in fields(value):  # type: ignore[arg-type]
        how, inner = field.metadata.get("json"), getattr(value, field.name)
        if how == "inline":
            inline.append(inner)
        elif how is None or (_known(inner) and (how == "if known" or (how == "by query" and by_query))):
            json_fields[str(field.metadata.get("key", field.name))] = json_values(inner, by_query=by_query)
    for name in getattr(value, "also", ()):
        json_fields[name] = json_values(getattr(value, name), by_query=by_query)
    for inner in inline:
        keys = json_values({} if inner is None else inner, by_query=by_query)
        assert isinstance(keys, dict)
        json_fields = {**json_fields, **{name: of for name, of in keys.items() if name not in json_fields}}
    return json_fields


def _known(value: object) -> bool:
    return value is not None and (not hasattr(value, "__len__") or len(value) > 0)


def _text(value: object) -> str:
    """A name, a number that is a key, a path or a measure as text. Raises TypeError for anything else."""
    if isinstance(value, PathLike):
        return str(fspath(value))
    if isinstance(value, str | int | float) or hasattr(value, "NAME"):
        return str(value)
    raise TypeError(f"no JSON of a {type(value).__name__}")
