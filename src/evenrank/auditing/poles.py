"""The groups that an audit is about, in words."""

from __future__ import annotations

from typing import NamedTuple

from ir_measures import Measure

from .data import AuditFigures


class Poles(NamedTuple):
    """The groups of a signed measure, the positive one first; ``labelled``: from labels rather than words."""

    first: str
    second: str
    labelled: bool = False

    @property
    def worded(self) -> bool:
        """Whether they are the words of men and women."""
        return {self.first, self.second} <= {"m", "f"} and not self.labelled


def groups(result: AuditFigures) -> list[str]:
    """The groups whose words were counted."""
    return [name.removeprefix("count_") for name in result.rankings.columns if name.startswith("count_")]


def labelled(result: AuditFigures) -> bool:
    """Whether groups are from labels, of which some may be unknown."""
    return "labels" in result.settings


def poles(result: AuditFigures, measure: Measure | None = None) -> Poles | None:
    """The groups of a signed measure, the positive one first."""
    own = measure.params.get("poles") if measure is not None else None
    named = [part.strip() for part in own.split(",")] if own else result.settings.get("poles")
    if not named and {"m", "f"} <= set(groups(result)):
        # The default of a group table without settings.
        named = ["m", "f"]
    return Poles(named[0], named[1], labelled(result)) if named else None


def passages(group: str, pair: Poles) -> str:
    """A phrase for a group's passages, such as ``male-worded passages``."""
    if pair.worded:
        return {"m": "male-worded", "f": "female-worded"}[group] + " passages"
    return "passages of the other groups" if group == "rest" else f"passages of group {group}"


def group_label(group: str, names: list[str]) -> str:
    """A group's label: ``female`` if the groups are f and m."""
    return {"m": "male", "f": "female"}[group] if set(names) <= {"m", "f"} else group


def pole(pair: Poles, mean: float) -> str:
    """The group that a mean leans to: ``male``, ``a``, ``the other groups``."""
    name = pair.second if mean < 0 else pair.first
    return "the other groups" if name == "rest" else group_label(name, list(pair[:2]))


def side(pair: Poles, mean: float) -> str:
    """The same behind "leans": ``male``, ``towards a``."""
    name = pole(pair, mean)
    return name if {*pair[:2]} <= {"m", "f"} else f"towards {name}"
