"""Impact ratios: people of whom one group is selected at exactly four fifths of the rate of the others, or as often.

A list has a fixed number of places, so its people compete for them. The same people may be in many lists: each then has
a propensity of their own, and is selected where that and chance lift them above the list's threshold.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

import evenrank
from evenrank.files.types import Array
from evenrank.stats.ratios import FOUR_FIFTHS, RateRatio, Selection, corrected_ratios, rate_ratios

from .cell import Cell

RULE, LOWER, MISSED, INTERVAL = (
    "a group is below four fifths",
    "a group is below four fifths, and lower beyond chance",
    "a ratio at the smallest detectable is missed",
    "impact ratio",
)
LOWER_ANYWHERE = "a group is lower beyond chance, whatever its ratio"
FIVE_JOBS = (40, 80, 160, 320, 640)


@dataclass(frozen=True, slots=True)
class People:
    """The list, the group, the selection and the person of each of N rows [N]; group 0 is the one that is tested.

    ``ratio``: the ratio of group 0's chances to those of the others, over all lists.
    """

    list_of: Array
    group: Array
    selected: Array
    person: Array
    ratio: float = FOUR_FIFTHS


def drawn(
    n: int, sizes: tuple[int, ...], rate: float, rng: np.random.Generator, *, ratio: float = FOUR_FIFTHS, vary: str = ""
) -> People:
    """``n`` lists with so many people of each group, of whom ``rate`` are selected, of the first group less.

    ``vary``: "rates" of the lists, their "ratios", or the "sizes", of which the first has half of all people.
    """
    ratios = rng.choice([0.5, 1.5], n) if vary == "ratios" else np.ones(n)
    rates = rng.choice([0.4, 1.6], n) * rate if vary == "rates" else np.full(n, rate)
    times = [max(1, n - 1) if vary == "sizes" and number == 0 else 1 for number in range(n)]
    groups = [np.repeat(np.arange(len(sizes)), np.array(sizes) * more) for more in times]
    return competing(groups, rates, ratio * ratios / ratios.mean(), rng, ratio)


def five_jobs(
    rng: np.random.Generator, *, ratio: float = FOUR_FIFTHS, prefer: bool = False, same_rates: bool = False
) -> People:
    """Five jobs of unlike size and rate; ``prefer``: the first group applies for those that take many."""
    rates = np.full(5, 0.3) if same_rates else np.array([0.5, 0.4, 0.3, 0.2, 0.1])
    shares = np.array([0.8, 0.7, 0.5, 0.3, 0.2]) if prefer else np.full(5, 0.5)
    groups = [(np.arange(size) >= share * size).astype(np.int64) for size, share in zip(FIVE_JOBS, shares, strict=True)]
    first, second = (
        sum(rate * (group == number).sum() for rate, group in zip(rates, groups, strict=True))
        / sum((group == number).sum() for group in groups)
        for number in (0, 1)
    )
    return competing(groups, rates, np.full(5, ratio * second / first), rng, ratio)


def competing(groups: list[Array], rates: Array, ratios: Array, rng: np.random.Generator, ratio: float) -> People:
    """Lists with the ``groups`` of their people, who compete for places."""
    taken = [
        _places(np.where(group == 0, own, 1.0) * rate, rng)
        for group, rate, own in zip(groups, rates, ratios, strict=True)
    ]
    list_of = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return People(list_of, np.concatenate(groups), np.concatenate(taken), np.arange(len(list_of)), ratio)


def _places(chances: Array, rng: np.random.Generator) -> Array:
    """Who gets one of Σ chances places, each person with the given chance: a systematic draw in random order."""
    order = rng.permutation(len(chances))
    ends = np.cumsum(chances[order]) + rng.random()
    selected = np.zeros(len(chances))
    selected[order] = np.floor(ends) - np.floor(ends - chances[order])
    return selected


def repeated(
    n: int,
    sizes: tuple[int, ...],
    rate: float,
    rng: np.random.Generator,
    *,
    same: float = 0.5,
    ratio: float = FOUR_FIFTHS,
    unlike: bool = False,
) -> People:
    """The same people, so many of each group, in ``n`` lists; ``same``: the share of a score that is a person's own.

    ``unlike``: people are in 1 to n lists, most in few (Pareto's distribution).
    """
    from scipy.special import ndtri

    group = np.repeat(np.arange(len(sizes)), sizes)
    inside = np.ones((len(group), n), dtype=bool)
    if unlike:
        number = np.minimum(n, np.ceil(rng.pareto(1.2, len(group)) + 0.5))
        inside = np.argsort(rng.random(inside.shape), axis=1) < number[:, None]
    score = np.sqrt(same) * rng.normal(size=(len(group), 1)) + np.sqrt(1 - same) * rng.normal(size=inside.shape)
    selected = score > -ndtri(np.where(group == 0, ratio, 1.0) * rate)[:, None]
    person, list_of = np.nonzero(inside)
    return People(list_of, group[person], selected[inside].astype(np.float64), person, ratio)


def pairs(
    n: int, sizes: tuple[int, int], rng: np.random.Generator, *, ratio: float = FOUR_FIFTHS, same: bool = False
) -> People:
    """``n`` lists of few people, so many of each group, who compete for half of the places; ``same``: of 40 people."""
    rate = (sum(sizes) // 2) / (ratio * sizes[0] + sizes[1])
    people = drawn(n, sizes, rate, rng, ratio=ratio)
    if not same:
        return people
    members = [
        [*rng.choice(20, sizes[0], replace=False), *20 + rng.choice(20, sizes[1], replace=False)] for _ in range(n)
    ]
    return replace(people, person=np.concatenate(members))


def ratios(people: People) -> list[RateRatio]:
    """The corrected impact ratios."""
    weights = np.eye(int(people.group.max()) + 1)[people.group]
    (found,) = corrected_ratios(
        [rate_ratios(Selection.of_rows(people.selected, weights, people.person, people.list_of))]
    )
    return found


def below(people: People) -> bool:
    """Whether some group is said to be shown below four fifths."""
    return any(ratio.shown for ratio in ratios(people))


def lower(people: People) -> bool:
    """Whether some group below four fifths is said to be lower beyond chance, or shown to be below."""
    return any(ratio.below and (ratio.shown or ratio.to_equal_rates().shown) for ratio in ratios(people))


def lower_anywhere(people: People) -> bool:
    """Whether some group is said to be lower beyond chance, at four fifths or above too."""
    return any(ratio.to_equal_rates().shown for ratio in ratios(people))


def missed(people: People) -> bool:
    """Whether the first group is not shown to be below four fifths."""
    return not ratios(people)[0].shown


def said_by_command(claims: tuple[str, ...], people: People) -> bool:
    """Whether the command makes one of these claims of some group."""
    columns = {
        "list": people.list_of,
        "group": people.group.astype(str),
        "selected": people.selected.astype(int),
        "person": people.person,
    }
    found = evenrank.impact_ratios(
        pl.DataFrame(columns), group_column="group", selected="selected", query="list", id="person"
    )
    return any(row.claim in claims or ("above" in claims and row.lower) for row in found.groups)


def misses(people: People) -> bool:
    """Whether the interval of two groups' ratio misses the true one, or its inverse if the other came out ahead."""
    first, second = ratios(people)
    interval, truth = (first.ci95, people.ratio) if first.ci95 is not None else (second.ci95, 1 / people.ratio)
    return interval is not None and not interval[0] <= truth <= interval[1]


def at_the_smallest_detectable(draw: Callable[..., People], rng: np.random.Generator) -> People:
    """Another sample whose true ratio is the smallest detectable of a first one."""
    mde = ratios(draw(rng))[0].mde
    return draw(rng, ratio=FOUR_FIFTHS - (mde or 0.0))


def _cells() -> Iterator[Cell]:
    def cell(family: str, n: int, draw: Callable[[np.random.Generator], People], **more: object) -> Cell:
        command = functools.partial(said_by_command, ("shown",))
        return Cell(RULE, family, n, draw, below, command, **more)  # type: ignore[arg-type]

    for family, sizes, rate in (
        ("one list, 100 of 200 people", (100, 100), 0.3),
        ("one list, 20 of 400 people, 5% selected", (20, 380), 0.05),
        ("one list, 12 of 30 people", (12, 18), 0.4),
        ("one list, 1,000 of 5,000 people", (1000, 4000), 0.1),
        ("one list, five groups", (60, 60, 60, 60, 60), 0.3),
        ("one list, 10 of 20 people", (10, 10), 0.5),
        ("one list, 10 of 30 people", (10, 20), 0.3),
        ("one list, 20 of 120 people, mostly nobody selected", (20, 100), 0.03),
        ("one list, 10 of 110 people, often nobody selected", (10, 100), 0.1),
    ):
        yield cell(family, 1, functools.partial(drawn, 1, sizes, rate))
    for n in (2, 5, 10, 20, 50, 117):
        yield cell("lists alike", n, functools.partial(drawn, n, (10, 20), 0.3))
        yield cell("lists with other rates", n, functools.partial(drawn, n, (10, 20), 0.3, vary="rates"))
        yield cell("lists with other ratios", n, functools.partial(drawn, n, (10, 20), 0.3, vary="ratios"))
        yield cell("one list has half of the people", n, functools.partial(drawn, n, (10, 20), 0.3, vary="sizes"))
        yield cell("one of its people a list, 5% selected", n, functools.partial(drawn, n, (1, 19), 0.05))
        yield cell("five groups", n, functools.partial(drawn, n, (6, 6, 6, 6, 6), 0.3))
    jobs = (("five jobs of unlike size", False), ("five jobs of unlike size, groups apply for others", True))
    for family, prefer in jobs:
        yield cell(family, 5, functools.partial(five_jobs, prefer=prefer))
    for family, n, sizes, rate, same, unlike in _REPEATED:
        draw = functools.partial(repeated, n, sizes, rate, same=same, unlike=unlike)
        yield cell(family, n, draw)
    for family, n, sizes, same in _SHORT:
        yield cell(family, n, functools.partial(pairs, n, sizes, same=same))
    either = functools.partial(said_by_command, ("shown", "lower"))
    for family, sizes, rate in (
        ("one list, 100 of 200 people", (100, 100), 0.3),
        ("one list, 12 of 30 people", (12, 18), 0.4),
        ("one list, 10 of 20 people", (10, 10), 0.5),
        ("one list, five groups", (60, 60, 60, 60, 60), 0.3),
        ("one list, ten groups", (20,) * 10, 0.3),
    ):
        yield Cell(LOWER, family, 1, functools.partial(drawn, 1, sizes, rate, ratio=1.0), lower, either)
    for family, n, sizes, rate, same, unlike in _REPEATED:
        draw = functools.partial(repeated, n, sizes, rate, same=same, unlike=unlike, ratio=1.0)
        yield Cell(LOWER, family, n, draw, lower, either)
    for family, n, sizes, same in _SHORT:
        yield Cell(LOWER, family, n, functools.partial(pairs, n, sizes, same=same, ratio=1.0), lower, either)
    anywhere = functools.partial(said_by_command, ("above",))
    for family, sizes, rate in (
        ("one list, 100 of 200 people", (100, 100), 0.3),
        ("one list, 1,000 of 5,000 people", (1000, 4000), 0.5),
        ("one list, five groups", (60, 60, 60, 60, 60), 0.5),
    ):
        draw = functools.partial(drawn, 1, sizes, rate, ratio=1.0)
        yield Cell(LOWER_ANYWHERE, family, 1, draw, lower_anywhere, anywhere)
    for family, n, sizes, rate, same, unlike in _REPEATED:
        draw = functools.partial(repeated, n, sizes, rate, same=same, unlike=unlike, ratio=1.0)
        yield Cell(LOWER_ANYWHERE, family, n, draw, lower_anywhere, anywhere)
    draw = functools.partial(drawn, 1, (1000, 1000), 0.5, ratio=0.85)
    family = "one list, 1,000 of 2,000 people, a ratio of .85"
    yield Cell(LOWER_ANYWHERE, family, 1, draw, lower_anywhere, kind="power", floor=0.85)
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
    for family, prefer in jobs:
        yield Cell(INTERVAL, family, 5, functools.partial(five_jobs, prefer=prefer), misses, kind="coverage")
    for family, n, sizes, rate, same, unlike in _REPEATED:
        if len(sizes) > 2:
            continue
        draw = functools.partial(repeated, n, sizes, rate, same=same, unlike=unlike)
        yield Cell(INTERVAL, family, n, draw, misses, kind="coverage")
    for family, n, sizes, same in _SHORT:
        draw = functools.partial(pairs, n, sizes, same=same)
        yield Cell(INTERVAL, family, n, draw, misses, kind="coverage")
    for n in (1, 5, 20, 117):
        draw = functools.partial(drawn, n, (20, 40), 0.3, ratio=0.5)
        yield cell("a ratio of one half", n, draw, kind="power")
    for family, same_rates, floor in (("of unlike size and rate", False, 0.85), ("of unlike size", True, 0.95)):
        draw = functools.partial(five_jobs, ratio=0.5, same_rates=same_rates)
        yield cell(f"five jobs {family}, a ratio of one half", 5, draw, kind="power", floor=floor)
    for same in (0.0, 0.5):
        draw = functools.partial(repeated, 10, (100, 100), 0.3, same=same, ratio=0.5)
        scores = "scores their own by half" if same else "scores of chance"
        family = f"200 people in each list, {scores}, a ratio of one half"
        yield cell(family, 10, draw, kind="power")
    for family, n, draw in (
        ("one list, 100 of 200 people", 1, functools.partial(drawn, 1, (100, 100), 0.4)),
        ("lists alike", 20, functools.partial(drawn, 20, (20, 40), 0.3)),
        ("five jobs of unlike size", 5, five_jobs),
        ("200 people in each list", 10, functools.partial(repeated, 10, (100, 100), 0.3)),
    ):
        yield Cell(
            MISSED, family, n, functools.partial(at_the_smallest_detectable, draw), missed, kind="power", floor=0.16
        )


_SHORT = (
    ("lists of two people, one place", 100, (1, 1), False),
    ("lists of five people, two places", 60, (2, 3), False),
    ("lists of two of 40 people, one place", 200, (1, 1), True),
)
_REPEATED = (
    ("200 people in each list", 10, (100, 100), 0.3, 0.5, False),
    ("200 people in each list, scores of chance", 10, (100, 100), 0.3, 0.0, False),
    ("200 people in each list, scores their own", 10, (100, 100), 0.3, 0.95, False),
    ("200 people in each list, five groups", 10, (40,) * 5, 0.3, 0.5, False),
    ("20 people in each list", 10, (10, 10), 0.3, 0.5, False),
    ("40 people in each list, 10% selected, scores their own", 10, (20, 20), 0.1, 0.95, False),
    ("20 of 200 people in each list, 10% selected, scores their own", 10, (20, 180), 0.1, 0.95, False),
    ("30 of 330 people in each list, 2% selected", 20, (30, 300), 0.02, 0.5, False),
    ("100 people in 1 to 30 lists", 30, (50, 50), 0.2, 0.6, True),
    ("20 of 120 people in 1 to 30 lists", 30, (20, 100), 0.2, 0.8, True),
    ("120 people in two lists", 2, (60, 60), 0.4, 0.5, False),
)
CELLS: tuple[Cell, ...] = tuple(_cells())
