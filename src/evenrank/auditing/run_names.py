"""What an audit's runs are called where a name is long, or where there are several."""

from __future__ import annotations

from rich.cells import cell_len

from evenrank.files.errors import plain
from evenrank.results.table import fitted

from .data import AuditFigures

_LETTERS = "abcdefghij"
_LONG = 20
"""Characters of a run's name from which on sentences call it otherwise where they can."""


def in_short(name: str, instead: str) -> str:
    """A run's name, or what is said instead of a long one."""
    return name if len(name) <= _LONG else instead


def cut_name(name: str) -> str:
    """A run's name on one line, cut in the middle where it is long."""
    return fitted(plain(name), min(cell_len(plain(name)), _LONG))


def letters_of(result: AuditFigures) -> dict[str, str]:
    """A letter for each of several runs, by which the others say that they differ from it; none of more than ten."""
    if not result.pairs or len(result.given) > len(_LETTERS):
        return {}
    return dict(zip((run.name for run in result.given), _LETTERS, strict=False))


def short_names(result: AuditFigures) -> dict[str, str]:
    """What runs are called where several are named: where a name is long, by their letters, or cut if that tells."""
    names = [run.name for run in result.given]
    cut = {name: cut_name(name) for name in names}
    if all(in_short(name, "") for name in names):
        return {name: name for name in names}
    return letters_of(result) or (cut if len(set(cut.values())) == len(cut) else {name: name for name in names})
