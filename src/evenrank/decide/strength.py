"""The strength of a method: the least that meets bounds, or the least biased that keeps them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from ir_measures import Measure

from evenrank.files.errors import EvenrankError
from evenrank.groups import GroupTable
from evenrank.measures import parse_measure, resolve
from evenrank.mitigation.reorderings import Reordering, reordered
from evenrank.results.table import number

from .bound import Bound
from .order_figures import OrderFigures

STEPS = 1000
GRID = (0, 1, 2, 3, 5, 7, 10, 14, 20, 28, 39, *range(50, STEPS + 1, 50))
"""Strengths are thousandths; these are tried first, close together near 0, where a small ``shift`` goes a long way."""
_ROUNDING = 1e-12


class UnmetError(EvenrankError):
    """No strength meets the bounds: nothing is written, which is an answer rather than an error in the input."""


@dataclass(frozen=True, slots=True)
class StrengthPoint:
    """A strength, from 0, the run as it is, to 1, with its figures of effectiveness and of bias; None: undefined."""

    strength: float
    utility: float | None
    bias: float | None


@dataclass(frozen=True, slots=True)
class Strengths:
    """A method's strengths on the validation queries, from the least: those of :data:`GRID` and the chosen one.

    ``utility``: the measure of effectiveness, that of the first bound on it, else nDCG@10; None without judgements.
    ``bias``: that of the first bound on bias, else the measure by which a strength is chosen.
    """

    utility: Measure | None
    bias: Measure
    points: tuple[StrengthPoint, ...]


class Tuning:
    """A method's figures on the queries that a strength is chosen on; each strength is computed once."""

    def __init__(self, method: Reordering, figures: OrderFigures) -> None:
        self._method, self._figures = method, figures
        self._known: dict[int, tuple[float, ...]] = {}
        self._of_run = figures.figures(figures.lists.run)

    def slack(self, bound: Bound, step: int) -> float:
        """How far the figure at a strength of ``step`` thousandths is within the bound; below 0 where it is not."""
        of_run = self._of_run[self._figures.measures.index(bound.measure)]
        return bound.slack(self.figure(bound.measure, step), of_run)

    def figure(self, measure: Measure, step: int) -> float:
        """The figure, with its sign; NaN where no query has a value."""
        if step not in self._known:
            lists = self._figures.lists
            order = reordered(self._method, lists.lists, step / STEPS)
            self._known[step] = self._figures.figures(lists.reordered(order))
        return self._known[step][self._figures.measures.index(measure)]

    def bias(self, measure: Measure, step: int) -> float:
        """How biased the order is: less is better; infinite where no query has a value."""
        figure = self.figure(measure, step)
        return math.inf if math.isnan(figure) else abs(figure) if resolve(measure).signed else -figure

    def strengths(self, chosen: int, utility: Measure | None, bias: Measure) -> Strengths:
        """The strengths of :data:`GRID` and the ``chosen`` one, with the figures of two of the measures."""

        def figure(measure: Measure | None, step: int) -> float | None:
            value = math.nan if measure is None else self.figure(measure, step)
            return None if math.isnan(value) else value

        steps = sorted({*GRID, chosen})
        rows = (StrengthPoint(step / STEPS, figure(utility, step), figure(bias, step)) for step in steps)
        return Strengths(utility, bias, tuple(rows))


def chosen_step(
    tuning: Tuning, max_bias: Sequence[Bound], min_utility: Sequence[Bound], name: str, queries: int
) -> int:
    """The least strength, in thousandths, that meets both bounds; without ``max_bias`` the greatest.

    Figures need not rise or fall with the strength. Between two strengths of :data:`GRID` that are not allowed, those
    that are looked for where a figure moves as far as it is from its bound, with its sign: a lean that turns to the
    other side passes what is allowed in between. Where one is found, every thousandth before it is tried.
    Raises UnmetError, with the nearest figures, if none of those tried is allowed.
    """
    search = _Search(tuning, (*max_bias, *min_utility))
    on = f"on the {queries:,} queries to tune on"
    step = search.first(GRID if max_bias else GRID[::-1])
    if step is None:
        nearest = search.nearest()
        raise UnmetError(
            f"no strength of {name} reaches {_said(search.bounds)} {on}: {_nearest(tuning, search.bounds, nearest)}"
        )
    return step


def least_biased(tuning: Tuning, min_utility: Sequence[Bound], measure: Measure, greatest: int) -> int:
    """Of the strengths up to the ``greatest`` that keeps ``min_utility``, one that keeps it with the least bias.

    Those of :data:`GRID` are tried, then ever nearer ones around the best. Of equal ones, the least.
    """
    search = _Search(tuning, min_utility)
    steps = sorted({step for step in GRID if step < greatest and search.allowed(step)} | {greatest})

    def bias(step: int) -> tuple[float, int]:
        return tuning.bias(measure, step), step

    best = min(steps, key=bias)
    width = max((after - before for before, after in pairwise(steps) if best in (before, after)), default=0)
    while width > 1:
        width = (width + 1) // 2
        near = [step for step in (best - width, best + width) if 0 <= step <= greatest and search.allowed(step)]
        best = min([best, *near], key=bias)
    return best if math.isfinite(bias(best)[0]) else greatest


def usual_bias(table: GroupTable) -> Measure:
    """The measure of bias where none is named: of labels without poles, nearness to the candidates' shares."""
    if table.poles is not None:
        return parse_measure("ARaB@10")
    return parse_measure("AWRF(target='candidates')@10" if table.labelled else "NFaiRR@10")


class _Search:
    """The first strength, in either direction, at which all ``bounds`` are kept."""

    def __init__(self, tuning: Tuning, bounds: Sequence[Bound]) -> None:
        self.tuning, self.bounds = tuning, bounds
        self._tried: dict[int, bool] = {}

    def first(self, grid: Sequence[int]) -> int | None:
        """The first allowed step in the direction of ``grid``, which rises or falls."""
        if self.allowed(grid[0]):
            return grid[0]
        for before, after in pairwise(grid):
            end = self._between(before, after)
            if end is not None:
                onward = 1 if after > before else -1
                return next(step for step in range(before + onward, end + onward, onward) if self.allowed(step))
        return None

    def nearest(self) -> int:
        """The least of the steps tried that come nearest to the bounds."""
        return max(sorted(self._tried), key=lambda step: min(map(_finite, self._slacks(step))))

    def _between(self, before: int, after: int) -> int | None:
        """An allowed step from ``before``, which is not allowed, to ``after``; None if none is found."""
        if not self.allowed(after) and not self._may_pass(before, after):
            return None
        if abs(after - before) == 1:
            return after if self.allowed(after) else None
        middle = (before + after) // 2
        step = self._between(before, middle)
        return step if step is not None or self.allowed(middle) else self._between(middle, after)

    def _may_pass(self, before: int, after: int) -> bool:
        """Whether each bound's figure moves as far between two steps as the nearer one is from the bound."""
        for bound in self.bounds:
            apart = abs(self.tuning.figure(bound.measure, after) - self.tuning.figure(bound.measure, before))
            if -max(self.tuning.slack(bound, before), self.tuning.slack(bound, after)) > apart:
                return False
        return True

    def allowed(self, step: int) -> bool:
        """Whether a strength of ``step`` thousandths keeps all bounds."""
        if step not in self._tried:
            self._tried[step] = all(slack >= -_ROUNDING for slack in self._slacks(step))
        return self._tried[step]

    def _slacks(self, step: int) -> list[float]:
        return [self.tuning.slack(bound, step) for bound in self.bounds]


def _finite(slack: float) -> float:
    """A slack to compare: one of a figure that is undefined is the least."""
    return -math.inf if math.isnan(slack) else slack


def _said(bounds: Sequence[Bound]) -> str:
    return " and ".join(bound.text for bound in bounds)


def _nearest(tuning: Tuning, bounds: Sequence[Bound], step: int) -> str:
    sizes = [(bound.measure, bound.size(tuning.figure(bound.measure, step))) for bound in bounds]
    figures = ", ".join(f"{measure} {number(size, 4)}" for measure, size in sizes)
    return f"the nearest tried is {figures} at strength {step / STEPS:g}"
