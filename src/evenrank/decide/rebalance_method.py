"""A method of rebalancing with its options: made, applied to lists, and what it learnt in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evenrank.files.errors import EvenrankError, arg
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.groups import GroupTable
from evenrank.mitigation.reorderings import (
    DetConstSort,
    Fair,
    GroupedLists,
    Reordering,
    Shift,
    make_method,
    method_named,
    reordered,
)

_ASKED = {
    "fair": " (the minimum of protected documents)",
    "detconstsort": " (the minimum of each group; at strength 1 also the maximum)",
}
"""What the methods ask of every prefix."""


@dataclass(frozen=True, slots=True)
class MethodOptions:
    """A method by its name, and what it is given; None for its default.

    ``protected``: the group of ``fair``; ``alpha``: its significance; ``per``: what ``shift`` has an offset for;
    ``top``: the ranks that ``fair`` and ``detconstsort`` promise something of. Raises EvenrankError for a name that no
    method has.
    """

    name: str
    protected: str | None = None
    alpha: float | None = None
    per: str | None = None
    top: int | None = None

    def __post_init__(self) -> None:
        method_named(self.name)

    @property
    def learns(self) -> bool:
        """Whether the method needs lists to learn a direction from."""
        return self.name == "shift" or (self.name == "fair" and self.protected is None)

    def make(self, lists: GroupedLists, table: GroupTable) -> Reordering:
        """The method, with the direction that it learns from ``lists``.

        Raises EvenrankError for a method that works on the difference of two groups if it is not known of which.
        """
        if self.per == "magnitude" and table.poles is None:
            raise EvenrankError(
                f"{arg('method', self.name)} works on the difference of two groups: of which?"
                f" {arg('poles', 'A,B')} says (the"
                f" groups are {', '.join(table.groups)})"
            )
        options = {name: getattr(self, name) for name in ("protected", "alpha", "per", "top")}
        return make_method(self.name, lists, **{name: value for name, value in options.items() if value is not None})

    @property
    def described(self) -> str:
        """The method with the options that tell it from others of its name."""
        return f"{self.name} per {self.per}" if self.per == "magnitude" else self.name


@dataclass(frozen=True, slots=True)
class Kept:
    """Whether the orders of lists are what the method promises: sums over lists.

    ``lists``: their number; ``unmet``: lists with prefixes that miss what the method asks for, where no order could
    have it; ``prefixes``: these prefixes.
    """

    lists: int
    unmet: int = 0
    prefixes: int = 0

    def notes(self, method: str, top: int | None) -> Iterator[str]:
        """What is to be said of them; ``top``: the ranks with a promise, if not all."""
        of = counted(self.lists, "list")
        within = "" if top is None else f" of the first {top:,} ranks"
        if self.unmet:
            yield (
                f"{method}: {counted(self.prefixes, 'prefix')} in {self.unmet:,} of {of}"
                f" {'miss' if self.prefixes > 1 else 'misses'} what is asked of every prefix{within}"
                f"{_ASKED.get(method, '')}, as the documents do not allow it."
            )


def check_top(top: int | None, depth: int) -> None:
    """Raises EvenrankError for more ranks with a promise than there are documents to choose from."""
    if top is not None and top > depth:
        raise EvenrankError(f"{arg.top}: expected {depth} at most, the {arg.depth} to choose from, found {top}")


def applied(method: Reordering, lists: GroupedLists, strength: float) -> tuple[Array, Kept]:
    """The new order [N] of lists, and what is to be said of it."""
    number = len(lists.lengths)
    order = reordered(method, lists, strength)
    if isinstance(method, Fair | DetConstSort):
        unmet = method.unmet(lists, order, strength)
        return order, Kept(number, int((unmet > 0).sum()), int(unmet.sum()))
    return order, Kept(number)


def learnt(method: Reordering, groups: tuple[str, ...]) -> dict[str, object]:
    """The direction that a method has, as JSON values."""
    if isinstance(method, Fair):
        return {"protected": groups[method.protected], "alpha": method.alpha}
    if isinstance(method, Shift):
        offsets = [round(float(offset), 6) for offset in method.offsets]
        named = dict(zip(groups, offsets, strict=True)) if method.per == "group" else offsets[0]
        return {"per": method.per, "offsets": named}
    return {}


def in_words(found: Mapping[str, object], poles: tuple[str, str] | None) -> str:
    """What :func:`learnt` says, in a line; ``poles``: the groups that signed magnitude is the difference of."""
    if found.get("per") == "magnitude" and poles is not None:
        # One number, of a magnitude that is positive towards the first pole.
        return f"offset {found['offsets']:+g} for each unit by which {poles[0]} outweighs {poles[1]}"
    return ", ".join(f"{key} {_plain(value)}" for key, value in found.items())


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {offset:+g}" for name, offset in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)
