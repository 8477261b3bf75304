"""The search for a strength: against every thousandth, for every method, and over figures that are written down."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from ir_measures import Measure

from evenrank.decide.bound import Bound
from evenrank.decide.order_figures import OrderFigures
from evenrank.decide.rebalance_lists import Grouping
from evenrank.decide.rebalance_method import MethodOptions
from evenrank.decide.strength import GRID, STEPS, Tuning, UnmetError, chosen_step
from evenrank.files.types import Array
from evenrank.measures import parse_measures
from evenrank.mitigation.reorderings import METHODS
from small_rebalance import drawn

MEASURES = parse_measures("ARaB@10 NFaiRR@10 nDCG@10")
MEET = ["ARaB@10 <= 50%", "ARaB@10 <= 20%", "ARaB@10 <= 0.005", "NFaiRR@10 >= 105%"]


@functools.cache
def tuned(method: str, seed: int) -> Tuning:
    """A tuning that remembers the figures of all thousandths that are asked for."""
    run, groups, qrels = drawn(6, 14, seed)
    figures = OrderFigures(run, Grouping(groups, 100), qrels, MEASURES)
    return Tuning(MethodOptions(method).make(figures.lists.lists, groups), figures)


def fits(tuning: Tuning, bound: Bound) -> list[int]:
    return [step for step in range(STEPS + 1) if tuning.slack(bound, step) >= -1e-12]


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("seed", [0, 1])
def test_every_thousandth(method: str, seed: int) -> None:
    tuning = tuned(method, seed)
    for text in MEET:
        bound = Bound.parse(text, "max_bias")
        allowed = fits(tuning, bound)
        if allowed:
            assert chosen_step(tuning, [bound], [], method, 1) == allowed[0], text
        else:
            with pytest.raises(UnmetError, match=f"no strength of {method} reaches"):
                chosen_step(tuning, [bound], [], method, 1)
    for text in ("nDCG@10 >= 95%", "nDCG@10 >= 80%"):
        bound = Bound.parse(text, "min_utility")
        assert chosen_step(tuning, [], [bound], method, 1) == fits(tuning, bound)[-1], text


class Written:
    """Figures by thousandth, and which of them were asked for."""

    def __init__(self, figures: Array) -> None:
        self.figures, self.tried = figures, set[int]()

    def slack(self, bound: Bound, step: int) -> float:
        self.tried.add(step)
        return float(bound.slack(self.figures[step], self.figures[0]))

    def figure(self, measure: Measure, step: int) -> float:
        self.tried.add(step)
        return float(self.figures[step])


def chosen(figures: Array, text: str, what: str = "max_bias") -> tuple[int, int]:
    """The step, and how many were tried."""
    steps, bound = Written(figures), [Bound.parse(text, what)]  # type: ignore[arg-type]
    return chosen_step(steps, *((bound, []) if what == "max_bias" else ([], bound)), "x", 1), len(steps.tried)  # type: ignore[arg-type]


STRENGTHS = np.arange(STEPS + 1) / STEPS


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("zero", [0.0015, 0.0042, 0.0333, 0.21, 0.777])
def test_a_lean_that_turns_to_the_other_side(zero: float, sign: int) -> None:
    # No strength of the grid meets the bound, a single thousandth, or two, in between does.
    figures = sign * 0.04 * (1 - STRENGTHS / zero)
    least = np.flatnonzero(np.abs(figures) <= 0.04 * 0.0006 / zero)[0]
    step, tried = chosen(figures, f"ARaB@10 <= {0.04 * 0.0006 / zero}")
    assert step == least
    assert tried < len(GRID) + 60


def test_where_figures_do_not_fall_steadily() -> None:
    figures = np.where((STRENGTHS >= 0.333) & (STRENGTHS < 0.549), 0.0, 1.0)
    assert chosen(figures, "ARaB@10 <= 0.5")[0] == 333
    # A step that is met alone, before many that are not, in the first range where one of the grid is.
    figures[304] = 0.2
    assert chosen(figures, "ARaB@10 <= 0.5")[0] == 304
    kept = np.where((STRENGTHS < 0.2) | ((STRENGTHS >= 0.7) & (STRENGTHS <= 0.912)), 1.0, 0.5)
    assert chosen(kept, "nDCG@10 >= 90%", "min_utility")[0] == 912
    assert chosen(np.ones(STEPS + 1), "nDCG@10 >= 90%", "min_utility") == (STEPS, 1)
    # Undefined figures are not allowed.
    undefined = np.where(STRENGTHS < 0.9, np.nan, 0.1)
    assert chosen(undefined, "ARaB@10 <= 0.5")[0] == 900


class Both(Written):
    """Figures by measure and thousandth."""

    def __init__(self, **figures: Array) -> None:
        self.by_measure, self.tried = figures, set[int]()

    def slack(self, bound: Bound, step: int) -> float:
        self.figures = self.by_measure[str(bound.measure).removesuffix("@10")]
        return super().slack(bound, step)

    def figure(self, measure: Measure, step: int) -> float:
        self.figures = self.by_measure[str(measure).removesuffix("@10")]
        return super().figure(measure, step)


def test_a_strength_that_meets_and_keeps() -> None:
    bounds = [Bound.parse("ARaB@10 <= 0.5", "max_bias")], [Bound.parse("nDCG@10 >= 0.9", "min_utility")]
    # The least strength that meets does not keep, a greater one does.
    kept = np.where((STRENGTHS >= 0.3) & (STRENGTHS < 0.423), 0.8, 1.0)
    assert chosen_step(Both(ARaB=1 - STRENGTHS * 1.25, nDCG=kept), *bounds, "x", 1) == 423  # type: ignore[arg-type]
    never = np.where(STRENGTHS >= 0.3, 0.8, 1.0)
    with pytest.raises(UnmetError, match=r"no strength of x reaches ARaB@10 <= 0.5 and nDCG@10 >= 0.9 on the 1 quer"):
        chosen_step(Both(ARaB=1 - STRENGTHS * 1.25, nDCG=never), *bounds, "x", 1)  # type: ignore[arg-type]


def test_few_strengths_are_tried_where_no_figure_comes_near() -> None:
    steps = Written(1 - STRENGTHS / 4)
    with pytest.raises(UnmetError, match=r"the nearest tried is ARaB@10 0.7500 at strength 1$"):
        chosen_step(steps, [Bound.parse("ARaB@10 <= 0.5", "max_bias")], [], "x", 1)  # type: ignore[arg-type]
    assert steps.tried == set(GRID)
