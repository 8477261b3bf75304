"""Impact ratios: people of whom one group is selected at exactly four fifths of the rate of the others.

Each list has a fixed number of places, so its people compete for them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

import evenrank
from evenrank.files.types import Array
from evenrank.stats.compare import corrected
from evenrank.stats.ratios import rate_ratios

from .cell import Cell

RULE, INTERVAL = "a group is below four fifths", "impact ratio"


@dataclass(frozen=True, slots=True)
class People:
    """The list, the group and the selection of each of N people [N]; group 0 is the one at four fifths."""

    list_of: Array
    group: Array
    selected: Array


def drawn(
    n: int, sizes: tuple[int, ...], rate: float, rng: np.random.Generator, *, ratio: float = 0.8, vary: str = ""
) -> People:
    """``n`` lists with so many people of each group, of whom ``rate`` are selected, of the first group less.

    ``vary``: "rates" of the lists, their "ratios", or the "sizes", of which the first has half of all people.
    """
    lists, groups, taken = [], [], []
    for number in range(n):
        times = max(1, n - 1) if vary == "sizes" and number == 0 else 1
        group = np.repeat(np.arange(len(sizes)), np.array(sizes) * times)
        own = rate * (rng.choice([0.4, 1.6]) if vary == "rates" else 1.0)
        less = ratio * (rng.choice([0.5, 1.5]) if vary == "ratios" else 1.0)
        lists.append(np.full(len(group), number))
        groups.append(group)
        taken.append(_places(np.where(group == 0, less, 1.0) * own, rng))
    return People(*map(np.concatenate, (lists, groups, taken)))


def _places(chances: Array, rng: np.random.Generator) -> Array:
    """Who gets one of Σ chances places, each person with the given chance: a systematic draw in random order."""
    order = rng.permutation(len(chances))
    ends = np.cumsum(chances[order]) + rng.random()
    selected = np.zeros(len(chances))
    selected[order] = np.floor(ends) - np.floor(ends - chances[order])
    return selected


def below(people: People) -> bool:
    """Whether some group is said to be below four fifths."""
    return any(one.shown for one in corrected(rate_ratios(*counted(people))))


def counted(people: People) -> tuple[Array, Array]:
    """How many of each list and group are selected, and how many there are [Q, G]."""
    shape = int(people.list_of.max()) + 1, int(people.group.max()) + 1
    selected, every = np.zeros(shape), np.zeros(shape)
    np.add.at(selected, (people.list_of, people.group), people.selected)
    np.add.at(every, (people.list_of, people.group), 1)
    return selected, every


def below_by_command(people: People) -> bool:
    columns = {"list": people.list_of, "group": people.group.astype(str), "selected": people.selected.astype(int)}
    found = evenrank.impact_ratios(pl.DataFrame(columns), group_column="group", selected="selected", query="list")
    return any(row.ratio.shown for row in found.groups)


def misses(people: People) -> bool:
    """Whether the interval of two groups' ratio misses the true one, .8, or its inverse if the other came out ahead."""
    counts = counted(people)
    first, second = rate_ratios(*counts)
    found, truth = (first, 0.8) if first.ci95 is not None else (second, 1.25)
    return found.ci95 is not None and not found.ci95[0] <= truth <= found.ci95[1]


def _cells() -> Iterator[Cell]:
    def cell(family: str, n: int, draw: Callable[[np.random.Generator], People], **more: object) -> Cell:
        return Cell(RULE, family, n, draw, below, below_by_command, **more)  # type: ignore[arg-type]

    for family, sizes, rate in (
        ("one list, 100 of 200 people", (100, 100), 0.3),
        ("one list, 20 of 400 people, 5% selected", (20, 380), 0.05),
        ("one list, 12 of 30 people", (12, 18), 0.4),
        ("one list, 1,000 of 5,000 people", (1000, 4000), 0.1),
        ("one list, five groups", (60, 60, 60, 60, 60), 0.3),
    ):
        yield cell(family, 1, functools.partial(drawn, 1, sizes, rate))
    for n in (2, 5, 10, 20, 50, 117):
        yield cell("lists alike", n, functools.partial(drawn, n, (10, 20), 0.3))
        yield cell("lists with other rates", n, functools.partial(drawn, n, (10, 20), 0.3, vary="rates"))
        yield cell("lists with other ratios", n, functools.partial(drawn, n, (10, 20), 0.3, vary="ratios"))
        yield cell("one list has half of the people", n, functools.partial(drawn, n, (10, 20), 0.3, vary="sizes"))
        yield cell("one of its people a list, 5% selected", n, functools.partial(drawn, n, (1, 19), 0.05))
        yield cell("five groups", n, functools.partial(drawn, n, (6, 6, 6, 6, 6), 0.3))
    for family, sizes, rate in (
        ("one list, 100 of 200 people", (100, 100), 0.3),
        ("one list, 20 of 400 people, 5% selected", (20, 380), 0.05),
        ("one list, 12 of 30 people", (12, 18), 0.4),
    ):
        yield Cell(INTERVAL, family, 1, functools.partial(drawn, 1, sizes, rate), misses, kind="coverage")
    for n in (2, 5, 10, 20, 50, 117):
        for family, vary in (("lists alike", ""), ("lists with other ratios", "ratios"), ("other sizes", "sizes")):
            draw = functools.partial(drawn, n, (10, 20), 0.3, vary=vary)
            yield Cell(INTERVAL, family, n, draw, misses, kind="coverage")
    for n in (1, 5, 20, 117):
        draw = functools.partial(drawn, n, (20, 40), 0.3, ratio=0.5)
        yield cell("a ratio of one half", n, draw, kind="power")


CELLS: tuple[Cell, ...] = tuple(_cells())
