"""The findings of position sensitivity, in sentences."""

from __future__ import annotations

import math

import numpy as np

from evenrank.measures.statistics import SIGNIFICANT, holm
from evenrank.reports.format import number, p_value

from .resampling import Interval
from .sensitivity_result import MEASURE, RotationCurves, SensitivityResult

_FEW = 10
"""With fewer passages, a missing effect is not reported as such: hardly any could be found."""
_TESTS = ("slope over the passage", "slope over words", "fifths of the passage", "ranges of words")


def summary(result: SensitivityResult) -> tuple[str, ...]:
    """One sentence or more on each of: buckets, moved answers, truncation."""
    lines = [_dependence(result)]
    if result.moved is not None:
        lines += [_preference(result.moved), _truncation(result.moved, result.cut, result.queries)]
    return tuple(lines)


def with_interval(ci: Interval | None, p: float | None) -> str:
    """A figure's interval and p-value, in brackets."""
    between = "no interval" if ci is None else f"95% interval {number(ci[0], 4)} to {number(ci[1], 4)}"
    return f"({between}, {'no p' if p is None else f'p {p_value(p)}'})"


def _dependence(result: SensitivityResult) -> str:
    """Whether effectiveness depends on the position of the answer, by four tests with Holm's correction."""
    relative, tokens = result.relative, result.tokens
    unknown = f"Whether {MEASURE} depends on the position of the answer cannot be determined"
    if result.passages < 2:
        return f"{unknown} from one passage."
    if not result.value:
        return f"{unknown}: it is 0 for every query."
    if math.isnan(tokens.slope):
        return f"{unknown}: all answers begin at the same word."
    tests = (relative.slope_p, tokens.slope_p, relative.p, tokens.p)
    corrected = dict(zip(_TESTS, holm(tests), strict=True))
    significant = {name: p for name, p in corrected.items() if p is not None and p < SIGNIFICANT}
    change = ""
    if not math.isnan(relative.slope):
        change = (
            f" From the beginning of a passage to its end it changes by {number(relative.slope, 4)}"
            f" {with_interval(relative.slope_ci95, relative.slope_p)}."
        )
    tried = f"{sum(p is not None for p in tests)} tests, Holm-corrected"
    if not significant:
        if result.passages < _FEW:
            return f"{unknown} from {result.passages} passages."
        least = min((p for p in corrected.values() if p is not None), default=None)
        return (
            f"No preference shown: {MEASURE} does not depend on the position of the answer beyond chance.{change}"
            f" Smallest p of {tried}: {p_value(least)}."
        )
    slope = relative.slope if _TESTS[0] in significant else tokens.slope if _TESTS[1] in significant else 0
    who = "early answers" if slope < 0 else "late answers" if slope > 0 else "answers at some positions"
    shown = ", ".join(f"{name} (p {p_value(p)})" for name, p in significant.items())
    other = "" if result.moved is not None else " The passages may differ in other ways too."
    verdict = f"{MEASURE} depends on the position of the answer: {who} do better."
    return f"{verdict}{change} Significant, of {tried}: {shown}.{other}"


def _preference(moved: RotationCurves) -> str:
    """The effect of moving the answer within its passage, by two tests with Holm's correction."""
    score, rank = moved.score, moved.rank
    first, last = (number(float(score.means[place]), 4) for place in (0, -1))
    change = (
        f"a straight line fitted to the scores at all positions changes by {number(score.slope, 4)} from first to last"
        f" {with_interval(score.slope_ci95, score.slope_p)}; at these two the mean score is {first} and {last}, the"
        f" mean rank {number(float(rank.means[0]), 1)} and {number(float(rank.means[-1]), 1)}"
    )
    best, worst = int(np.argmax(score.means)), int(np.argmin(score.means))
    spread = (
        f"between positions it differs by up to {number(score.spread, 4)} (highest at {score.places[best]:.2f}, lowest"
        f" at {score.places[worst]:.2f}, p {p_value(score.spread_p)})"
    )
    slope_p, spread_p = holm([score.slope_p, score.spread_p])
    if slope_p is None or spread_p is None:
        return f"In the same passage, {change}: one passage shows nothing about others."
    if slope_p < SIGNIFICANT:
        verdict = f"the model prefers {'early' if score.slope < 0 else 'late'} answers"
    elif spread_p < SIGNIFICANT:
        verdict = "the score depends on the position, but neither early nor late answers are preferred throughout"
    else:
        verdict = "no preference is shown"
    return f"In the same passage {verdict}: {change}; {spread}."


def _truncation(moved: RotationCurves, cut: int | None, queries: int) -> str:
    """The effect of truncation on the answers."""
    if moved.cut is None or cut is None:
        return "How far the model reads is unknown, so an answer that it cuts off counts as one at a late position."
    read = f"The model reads {queries - cut:,} of {queries:,} answers to the end at their original position"
    if not moved.cut.any():
        return f"{read}, and all at every position they are moved to: truncation plays no part in the above."
    lines = f"{read}; moved, up to {int(moved.cut.max()):,} of {moved.score.n:,} are cut off"
    kept = moved.kept_score
    if not kept.n:
        return f"{lines}, and none is read whole at every position: preference and truncation cannot be told apart."
    among = f"among the {kept.n:,} that are read whole at every position the score changes by {number(kept.slope, 4)}"
    end = f"{among} {with_interval(kept.slope_ci95, kept.slope_p)}"
    if kept.slope_p is None or kept.slope_p >= SIGNIFICANT:
        return f"{lines}; {end}: no preference shown apart from truncation."
    return f"{lines}; {end}: a preference apart from truncation."
