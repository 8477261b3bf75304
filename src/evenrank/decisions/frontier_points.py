"""The rankings of a frontier: each with its figures, and what it costs beside the others at the same bias."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
from ir_measures import Measure

from evenrank.io.types import Array
from evenrank.measures import resolve
from evenrank.measures import statistics as st
from evenrank.measures.base import mean_of
from evenrank.reports.format import Interval

from .paired_figures import Difference, described, difference

BLIND = "blind"
LEVELS = (0.5, 0.25)
"""The shares of the run's bias at which the methods are compared."""
_JUMP = 0.1
"""From which share of the run's bias on two neighbouring strengths are called a jump."""


@dataclass(frozen=True, slots=True)
class Point:
    """One ranking in the plane of effectiveness against bias.

    Attributes:
        name: The method and its strength, or the name of a run or a reference.
        method, strength: None for a run that was given and for a reference.
        utility, bias: The mean over queries and its 95% interval; a mean of None is undefined.
        utility_difference, bias_difference: The figures minus the run's; None for the run itself.
        beyond: Effectiveness minus that of the straight line from the run to ``blind`` at the same bias; None without
            such a run, and for a point whose bias is not between theirs.
        reference: Whether it is a reference ranking of the run's documents.
    """

    name: str
    method: str | None
    strength: float | None
    utility: tuple[float | None, Interval | None]
    bias: tuple[float | None, Interval | None]
    utility_difference: Difference | None = None
    bias_difference: Difference | None = None
    beyond: Difference | None = None
    reference: bool = False

    def to_dict(self) -> dict[str, object]:
        """The point as JSON values."""
        values = asdict(self)
        for name in ("utility", "bias"):
            values[name] = {"mean": values[name][0], "ci95": values[name][1]}
        return values


@dataclass(frozen=True, slots=True)
class EqualBias:
    """What a method costs at a given bias, between the two strengths that are nearest.

    Attributes:
        share: The bias, as a share of the run's distance to none (or to the best of the methods).
        bias: The figure itself.
        method: The method; ``strength``: interpolated.
        between: The two strengths; ``biases``: their figures; ``jump``: whether these are so far apart that no strength
            that was tried has this bias.
        utility: The mean over queries, interpolated as each query's value is; the weights are taken as given.
        cost: Effectiveness minus the run's.
        behind: Effectiveness minus that of the method that costs least; None for that one.
        holm_p: The p of that difference, corrected over all pairs of methods at this bias, as which one costs least is
            found on the same queries.
    """

    share: float
    bias: float
    method: str
    strength: float
    utility: float
    cost: Difference
    behind: Difference | None
    holm_p: float | None = None
    between: tuple[float, float] = (0.0, 0.0)
    biases: tuple[float, float] = (0.0, 0.0)
    jump: bool = False

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Ranking:
    """The values of a ranking: effectiveness and bias of each query [Q], NaN where undefined."""

    name: str
    utility: Array
    bias: Array
    method: str | None = None
    strength: float | None = None
    reference: bool = False


class Plane:
    """Rankings of the same queries; the first one is the run that all others are compared with."""

    def __init__(self, rankings: Sequence[Ranking], bias: Measure, seed: int) -> None:
        self.rankings, self.seed = tuple(rankings), seed
        self.run = self.rankings[0]
        mean = mean_of(self.run.bias) or 0.0
        how = resolve(bias)
        self._sign = -1.0 if how.better == "higher" or (how.signed and mean < 0) else 1.0
        self._to_zero = how.better != "higher"

    def gap(self, ranking: Ranking) -> float:
        """How biased a ranking is: 0 or less is not at all, or, of a measure where more is better, minus its figure."""
        mean = mean_of(ranking.bias)
        return np.nan if mean is None else self._sign * mean

    def points(self) -> tuple[Point, ...]:
        """All rankings with intervals; those of differences are paired."""
        run = self.run
        blind = next((one for one in self.rankings if one.name == BLIND and one.method is None), None)
        lines = [None if blind is None else self._line(run, blind, one) for one in self.rankings]
        columns = [
            column
            for one, line in zip(self.rankings, lines, strict=True)
            for column in (
                one.utility,
                one.bias,
                one.utility - run.utility,
                one.bias - run.bias,
                one.utility - (run.utility if line is None else line),
            )
        ]
        several = [(~np.isnan(column)).sum() > 1 for column in columns]
        draws = st.bootstrap_means(np.stack(columns, axis=1), self.seed)
        found = []
        for place, (one, line) in enumerate(zip(self.rankings, lines, strict=True)):
            own = [draws[:, 5 * place + i] if several[5 * place + i] else None for i in range(5)]
            ends = [None if draw is None else st.interval(draw) for draw in own[:2]]
            point = Point(
                one.name,
                one.method,
                one.strength,
                (mean_of(one.utility), ends[0]),
                (mean_of(one.bias), ends[1]),
                reference=one.reference,
            )
            if one is not run:
                point = replace(
                    point,
                    utility_difference=described(one.utility, run.utility, own[2]),
                    bias_difference=described(one.bias, run.bias, own[3]),
                    beyond=None if line is None else described(one.utility, line, own[4]),
                )
            found.append(point)
        return tuple(found)

    def _line(self, run: Ranking, blind: Ranking, one: Ranking) -> Array | None:
        """Effectiveness [Q] on the straight line from the run to ``blind``, at the bias of a ranking."""
        if one is run or one is blind or one.reference:
            return None
        start, end, own = self.gap(run), self.gap(blind), self.gap(one)
        if not end < start or not end <= own <= start:
            return None
        part = (start - own) / (start - end)
        line: Array = (1 - part) * run.utility + part * blind.utility
        return line

    @property
    def methods(self) -> dict[str, list[Ranking]]:
        """The path of each method: the run, then the rankings by rising strength."""
        names = dict.fromkeys(one.method for one in self.rankings if one.method is not None)
        return {
            name: [
                replace(self.run, strength=0.0),
                *sorted((one for one in self.rankings if one.method == name), key=lambda one: one.strength or 0.0),
            ]
            for name in names
        }

    def levels(self) -> dict[float, float]:
        """The biases, as :meth:`gap` has them, at which methods are compared, by their shares; none without bias."""
        start = self.gap(self.run)
        best = 0.0 if self._to_zero else min(self.gap(one) for path in self.methods.values() for one in path)
        if not start > best + st.NEAR_ZERO:
            return {}
        return {share: best + share * (start - best) for share in LEVELS}

    def equal(self, levels: Mapping[float, float] | None = None) -> tuple[EqualBias, ...]:
        """The methods at the same bias, the one that costs least first; ``levels``: by default :meth:`levels`."""
        methods = self.methods
        levels = self.levels() if levels is None else levels
        return tuple(one for share, level in levels.items() for one in self._at(share, level, methods))

    def between(self, method: str, level: float) -> tuple[float, float] | None:
        """The strengths between which a method first comes down to a bias; None if it does not."""
        found = self._ends(self.methods[method], level)
        return None if found is None else (found[0].strength or 0.0, found[1].strength or 0.0)

    def _ends(self, path: list[Ranking], level: float) -> tuple[Ranking, Ranking] | None:
        """The neighbours on a method's path between which it first comes down to a bias."""
        pairs = itertools.pairwise(path)
        return next(((one, other) for one, other in pairs if self.gap(one) > level >= self.gap(other)), None)

    def _at(self, share: float, level: float, methods: Mapping[str, list[Ranking]]) -> Iterator[EqualBias]:
        found = {method: ends for method, path in methods.items() if (ends := self._ends(path, level)) is not None}
        if not found:
            return
        parts = {method: self._part(ends, level) for method, ends in found.items()}
        reached = {
            method: (1 - parts[method]) * before.utility + parts[method] * after.utility
            for method, (before, after) in found.items()
        }
        names = sorted(reached, key=lambda name: -(mean_of(reached[name]) or 0.0))
        least = reached[names[0]]
        behind = [None] + [difference(reached[name], least, self.seed) for name in names[1:]]
        pairs = itertools.combinations([reached[name] for name in names], 2)
        # Those with the best come first. It is the best of these queries, so that any pair could have been one.
        corrected = [None, *st.holm([st.paired_tests(second, first).t_p for first, second in pairs])]
        for method, apart, p in zip(names, behind, corrected, strict=False):
            values, part, (before, after) = reached[method], parts[method], found[method]
            strengths = before.strength or 0.0, after.strength or 0.0
            yield EqualBias(
                share,
                self._sign * level,
                method,
                (1 - part) * strengths[0] + part * strengths[1],
                mean_of(values) or 0.0,
                difference(values, self.run.utility, self.seed),
                apart,
                p,
                strengths,
                (self._sign * self.gap(before), self._sign * self.gap(after)),
                self._is_jump(before, after, level),
            )

    def _part(self, ends: tuple[Ranking, Ranking], level: float) -> float:
        """How far a bias is on the way from one ranking to another."""
        high, low = map(self.gap, ends)
        return (high - level) / (high - low)

    def _is_jump(self, before: Ranking, after: Ranking, level: float) -> bool:
        """Whether two rankings are far apart, beside the way from the run to this bias, and neither has it."""
        high, low, way = self.gap(before), self.gap(after), self.gap(self.run) - level
        return high - low > _JUMP * way and level - low > _JUMP / 2 * way and high - level > _JUMP / 2 * way
