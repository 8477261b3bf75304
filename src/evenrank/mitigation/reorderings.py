"""The methods that reorder lists, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np

from evenrank.io.errors import EvenrankError, quoted

from .reorder_constrained import DetConstSort
from .reorder_fair import Fair
from .reorder_neutral import Neutral
from .reorder_shift import Shift, lean_offsets
from .reordering import GroupedLists, Reordering

METHODS: dict[str, Callable[..., Reordering]] = {
    "neutral": Neutral,
    "fair": Fair,
    "detconstsort": DetConstSort,
    "shift": Shift,
}
"""The classes by name; :func:`make_method` finds what they are to be given."""


def make_method(name: str, lists: GroupedLists, **options: object) -> Reordering:
    """A method by its name, with what it needs from ``lists``, those of the tuning queries.

    ``options`` go to the method. For fair, ``protected`` may be a group's name, and is by default the group with the
    least exposure against its target in ``lists``; for shift, ``offsets`` are by default :func:`lean_offsets` of them.
    Raises EvenrankError for an unknown method, option or group.
    """
    if name not in METHODS:
        raise EvenrankError(f"`method`: expected {', '.join(METHODS)}, found {quoted(name)}")
    method = METHODS[name]
    allowed = tuple(inspect.signature(method).parameters)
    for option in options:
        if option not in allowed:
            has = f"only {', '.join(f'`{one}`' for one in allowed)}" if allowed else "none"
            raise EvenrankError(f"{name} has no option {quoted(option)}, {has}")
    if name == "fair":
        options["protected"] = _protected(options.get("protected"), lists)
    if name == "shift" and options.get("offsets") is None:
        options["offsets"] = lean_offsets(lists, options.get("per", "group"))  # type: ignore[arg-type]  # it checks
    return method(**options)


def _protected(given: object, lists: GroupedLists) -> int:
    """The number of the protected group."""
    if not lists.groups:
        raise EvenrankError("fair needs groups of documents")
    if given is None:
        return int(np.argmax(lean_offsets(lists)))
    numbers = dict(zip(lists.groups, range(len(lists.groups)), strict=True))
    number = numbers.get(given, given) if isinstance(given, str) else given
    if isinstance(number, bool) or not isinstance(number, int | np.integer) or not 0 <= number < len(lists.groups):
        raise EvenrankError(f"`protected`: expected {' or '.join(lists.groups)}, found {quoted(given)}")
    return int(number)
