"""Cells of what is said of groups of queries."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import evenrank
from evenrank.files.types import Array
from evenrank.stats.compare import compare, compare_groups, corrected

from . import queries as q
from .cell import Cell

_APART = ("group_worst", "group_best", "group_higher", "group_lower")
_CHANGED = ("groups_better", "groups_worse", "groups_better_and_worse", "groups_changed")
_SIZES = (0.5, 0.2, 0.15, 0.1, 0.05)
_FAMILIES = ("normal", "lognormal", "reciprocal ranks", "20% of values not 0, skewed", "like ARaB")


Unlike = Callable[[np.random.Generator, int, bool], Array]
UNLIKE: dict[str, Unlike] = {
    "rare values": lambda rng, n, inside: np.where(rng.random(n) < 0.03, rng.exponential(1, n), 0.0),
    "rare equal values": lambda rng, n, inside: (rng.random(n) < 0.05).astype(float),
    "three times the spread in the group": lambda rng, n, inside: rng.normal(0, 3 if inside else 1, n),
    "three times the spread outside": lambda rng, n, inside: rng.normal(0, 1 if inside else 3, n),
    "lognormal in the group": lambda rng, n, inside: (q.lognormal if inside else q.normal)(rng, n),
    "lognormal outside": lambda rng, n, inside: (q.normal if inside else q.lognormal)(rng, n),
}


ONE_TAIL = "the group's values have a long tail, and those of the others have not"


def of_two(values: q.Values, n: int, size: int, rng: np.random.Generator) -> Any:
    """Values of queries that are all alike, and which of them are of a group."""
    return values(rng, n), np.arange(n) < size


def apart(sample: Any) -> bool:
    """Whether the group is shown to differ from the other queries."""
    values, inside = sample
    return compare_groups(np.where(inside, values, np.nan), np.where(inside, np.nan, values)).shown


def apart_in_audit(sample: Any) -> bool:
    """The same through ``evenrank.audit``."""
    values, inside = sample
    return q.says(_audit(values, inside.astype(int)), _APART)


def _audit(values: Array, groups: Array) -> evenrank.AuditResult:
    table, run, _ = q.table_of(values)
    of = {f"q{n}": f"group {group}" for n, group in enumerate(groups.tolist())}
    return evenrank.audit(run, scores=table, measures="ARaB@1", query_groups=of)


def unlike(values: Unlike, n: int, size: int, rng: np.random.Generator) -> Any:
    """Values of a group and of others with the same mean."""
    return np.concatenate([values(rng, size, True), values(rng, n - size, False)]), np.arange(n) < size


def of_five(values: q.Values, n: int, rng: np.random.Generator) -> Any:
    """Values of queries that are all alike, and the groups that they are dealt to at random."""
    return values(rng, n), rng.choice(len(_SIZES), n, p=_SIZES)


def any_apart(sample: Any) -> bool:
    values, groups = sample
    some = np.unique(groups)
    tests = [compare_groups(*(np.where(of, values, np.nan) for of in (groups == g, groups != g))) for g in some]
    return any(one.shown for one in corrected(tests))


def any_apart_in_audit(sample: Any) -> bool:
    return q.says(_audit(*sample), _APART)


def dealt(n: int, rng: np.random.Generator) -> Any:
    """Reciprocal ranks of two runs that are alike, and the queries' groups."""
    return *q.exchangeable(n, 2, rng), rng.choice(len(_SIZES), n, p=_SIZES)


def changed(sample: Any) -> bool:
    """Whether two runs are shown to differ on the queries of any group."""
    first, second, groups = sample
    tests = [compare(np.where(groups == g, first - second, np.nan), zeros="keep") for g in np.unique(groups)]
    return any(one.shown for one in corrected(tests))


def changed_in_audit(sample: Any) -> bool:
    first, second, groups = sample
    runs = {"new": q.trec(first), "old": q.trec(second)}
    of = {f"q{n}": f"group {group}" for n, group in enumerate(groups.tolist())}
    found = evenrank.audit(runs, qrels=q.judged(len(groups)), baseline="old", measures="RR@10", query_groups=of)
    return q.says(found, _CHANGED)


def _groups() -> Iterator[Cell]:
    for family in _FAMILIES:
        for n, size in ((40, 20), (117, 15), (117, 40), (215, 20), (1000, 20), (1000, 100), (1000, 300)):
            draw = functools.partial(of_two, q.CENTRED[family], n, size)
            named = f"{family}, a group of {size}"
            yield Cell("a query group differs from the others", named, n, draw, apart, apart_in_audit, quick=50)
        for n in (117, 1000):
            draw = functools.partial(of_five, q.CENTRED[family], n)
            yield Cell("any of 5 query groups differs", family, n, draw, any_apart, any_apart_in_audit, quick=50)
    for family, values in UNLIKE.items():
        for n, size in ((120, 15), (120, 40), (300, 30), (1000, 100)):
            draw = functools.partial(unlike, values, n, size)
            named, known = (
                f"{family}, a group of {size}",
                ONE_TAIL if (family, size) == ("lognormal in the group", 15) else None,
            )
            more: dict[str, Any] = {"known_to_fail": known, "quick": 50}
            yield Cell("a query group differs from the others", named, n, draw, apart, apart_in_audit, **more)
    for n in (117, 1000):
        draw = functools.partial(dealt, n)
        rule = "runs differ on a query group"
        yield Cell(rule, "runs alike, 5 groups", n, draw, changed, changed_in_audit, draws=2000, quick=20)
    draw = functools.partial(of_two, lambda rng, n: q.normal(rng, n) + 0.5 * (np.arange(n) < 100), 500, 100)
    yield Cell("a query group differs from the others", "normal, .5 sd, a group of 100", 500, draw, apart, kind="power")


CELLS: tuple[Cell, ...] = tuple(_groups())
