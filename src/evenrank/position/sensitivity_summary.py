"""The findings of position sensitivity, in sentences."""

from __future__ import annotations

import math
from dataclasses import dataclass

from evenrank.io.wording import counted
from evenrank.measures.statistics import SIGNIFICANT, holm
from evenrank.reports.format import number, p_value

from .buckets import Buckets
from .curves import CONTRASTS, Contrast, PositionCurve
from .place_blind import PlaceBlind
from .resampling import Interval
from .sensitivity_result import MEASURE, MovedAnswers, SensitivityResult

_FEW = 10
"""With fewer passages, a missing effect is not reported as such: hardly any could be found."""
_TESTS = ("slope over the passage", "slope over words", "fifths of the passage", "ranges of words")
_CONTRASTS = ("slope", "first − last", "ends − middle", f"Position Sensitivity Index of {MEASURE}")


def summary(result: SensitivityResult) -> tuple[str, ...]:
    """One sentence or more on each of: moved answers, truncation, answers as they stand."""
    if result.moved is None:
        alone = () if not result.unmovable else (_unmoved(result.unmovable),)
        return (*alone, _dependence(result))
    moved = result.moved
    lines = [_preference(moved), _ends(moved), _truncation(moved, result.cut, result.queries), _dependence(result)]
    return tuple(lines + _opposite(moved, result.relative))


def _unmoved(count: int) -> str:
    fewer = "the passage of none has two sentences besides the answer's" if count > 1 else "its passage is too short"
    return f"No answer could be moved, of {counted(count, 'query')}: {fewer}."


def with_interval(ci: Interval | None, p: float | None, digits: int = 4) -> str:
    """A figure's interval and p-value, in brackets."""
    return f"({_between(ci, digits)}, {'no p' if p is None else f'p {p_value(p)}'})"


def _dependence(result: SensitivityResult) -> str:
    """Whether effectiveness depends on the position of the answer, by four tests with Holm's correction."""
    relative, tokens = result.relative, result.tokens
    where = "the position of the answer" if result.moved is None else "the position of the answer as it stands"
    unknown = f"Whether {MEASURE} depends on {where} cannot be determined"
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
            f" From the beginning of a passage to its end it changes by {number(relative.slope)}"
            f" {with_interval(relative.slope_ci95, relative.slope_p, 3)}"
        )
        if significant and not math.isnan(relative.length_slope):
            fitted = with_interval(relative.length_slope_ci95, relative.length_slope_p, 3)
            change += f"; among passages of equal length by {number(relative.length_slope)} {fitted}"
        change += "."
    tried = f"{sum(p is not None for p in tests)} tests"
    if not significant:
        if result.passages < _FEW:
            return f"{unknown} from {result.passages} passages."
        shown = "No preference shown: " if result.moved is None else ""
        none = f"None of {tried} is significant, Holm-corrected."
        return f"{shown}{MEASURE} does not depend on {where} beyond chance.{change} {none}"
    slope = relative.slope if _TESTS[0] in significant else tokens.slope if _TESTS[1] in significant else 0
    who = "early answers" if slope < 0 else "late answers" if slope > 0 else "answers at some positions"
    shown = ", ".join(f"{name} (p {p_value(p)})" for name, p in significant.items())
    verdict = f"{MEASURE} depends on {where}: {who} do better."
    other = "This is a correlation: the passages may differ in other ways too."
    return f"{verdict}{change} Significant, of {tried}, Holm-corrected: {shown}. {other}"


@dataclass(frozen=True, slots=True)
class _Tests:
    """The tests of _CONTRASTS: p after Holm's correction, whether significant, and whether also ``found``, beyond what
    every scorer that cannot see places shows."""

    corrected: tuple[float | None, ...]
    significant: tuple[bool, ...]
    found: tuple[bool, ...]

    @property
    def neighbours(self) -> bool:
        """Whether all that is significant could be due to other neighbours."""
        return any(self.significant) and not any(self.found)


def _tests(moved: MovedAnswers) -> _Tests:
    score, index = moved.score.difference, moved.value.difference.index
    corrected = tuple(holm([*(getattr(score, name).p for name in CONTRASTS), None if index is None else index.p]))
    significant = tuple(p is not None and p < SIGNIFICANT for p in corrected)
    beyond = (all(_beyond(moved, number, one) for one in _compared(moved)) for number in range(len(corrected)))
    return _Tests(corrected, significant, tuple(one and other for one, other in zip(significant, beyond, strict=True)))


def _compared(moved: MovedAnswers) -> list[PlaceBlind]:
    """The scorers that cannot see places, without those whose scores do not vary."""
    return [one for one in moved.place_blind if one.beyond_score.slope.p is not None]


def _beyond(moved: MovedAnswers, number: int, blind: PlaceBlind) -> bool:
    """Whether a contrast, or the index, goes further than that of a scorer that cannot see places.

    The interval of the paired difference of the contrasts leaves out 0, on the side of the finding; the index is
    larger, and the difference of the two curves has one that noise does not explain.
    """
    if number < len(CONTRASTS):
        own, rest = (getattr(curve, CONTRASTS[number]) for curve in (moved.score.difference, blind.beyond_score))
        return rest.ci95 is not None and (rest.ci95[0] > 0 if own.mean > 0 else rest.ci95[1] < 0)
    of, its, left = (one.index for one in (moved.value.difference, blind.value, blind.beyond_value))
    if of is None or its is None or left is None or left.p is None:
        return False
    return of.value > its.value and left.p < SIGNIFICANT


def _slope_beyond(moved: MovedAnswers) -> bool:
    """Whether the slope, significant or not, goes further than that of every scorer that cannot see places."""
    return all(_beyond(moved, 0, one) for one in _compared(moved))


def _preference(moved: MovedAnswers) -> str:
    """What moving the answer's sentence does beyond moving another one, by four tests with Holm's correction."""
    score, index = moved.score.difference, moved.value.difference.index
    if not score.n:
        return "The answers' sentences were moved, but the candidates of each query all have one score."
    if score.slope.p is None or index is None:
        return "The answer's sentence was moved, but one passage shows nothing about others."
    tests = _tests(moved)
    found = tests.found
    if any(found[:2]):
        mean = score.slope.mean if found[0] else -score.first_last.mean
        verdict = f"The model prefers {'early' if mean < 0 else 'late'} answers"
        own = moved.score.answer.ends_middle
        # A strong preference reaches the control, too, which moves the answer by one sentence at most.
        if found[2] and own.p is not None and own.p < SIGNIFICANT and own.mean * score.ends_middle.mean > 0:
            verdict += f", and those {_where(score.ends_middle)}"
    elif found[2]:
        verdict = f"The model prefers answers {_where(score.ends_middle)}"
    elif found[3]:
        verdict = f"{MEASURE} depends on the place of the answer, though no contrast of the score shows how"
    elif any(tests.significant):
        verdict = "No preference for a place is shown"
    elif moved.passages < _FEW:
        verdict = f"Moved answers of {moved.passages} passages show nothing"
    else:
        verdict = "No preference shown"
    named = zip(_CONTRASTS, _figures(score, moved.value.difference), tests.corrected, tests.significant, strict=True)
    shown = ", ".join(f"{name} {number(figure)} (p {p_value(p)})" for name, figure, p, one in named if one)
    tried = (
        f"Significant, of 4 tests, Holm-corrected: {shown}"
        if shown
        else "None of 4 tests is significant, Holm-corrected"
    )
    return (
        f"{verdict}: from the first place of its passage to the last, the answer's sentence changes the score by"
        f" {_sd(score.slope)} beyond what another sentence does."
        f" {tried}.{_beside(moved, tests)}"
    )


def _figures(score: PositionCurve, value: PositionCurve) -> tuple[float, ...]:
    """The contrasts of the score, and the index of the value (NaN: none)."""
    index = float("nan") if value.index is None else value.index.value
    return (*(getattr(score, name).mean for name in CONTRASTS), index)


def _beside(moved: MovedAnswers, tests: _Tests) -> str:
    """What the scorers that cannot see places show of the first significant test, or of the first finding."""
    if not any(tests.significant):
        return ""
    blind = _compared(moved)
    if not blind:
        return " No query could be compared with a scorer that cannot see places." if moved.place_blind else ""
    if not tests.neighbours:
        beyond = ", ".join(name for name, one in zip(_CONTRASTS, tests.found, strict=True) if one)
        return f" Beyond what scorers that cannot see places show: {beyond}."
    first = tests.significant.index(True)
    # Of the scorers that do as much, the one that does most.
    near = [one for one in blind if not _beyond(moved, first, one)]
    figure, window = max(
        ((_figures(one.score, one.value)[first], one.window) for one in near), key=lambda one: abs(one[0])
    )
    return (
        " It is not told apart from what a sentence's neighbours do: a scorer that cannot see places, which counts the"
        f" query's words among {window} in a row, has {_CONTRASTS[first]} {number(figure)}."
    )


def _where(contrast: Contrast) -> str:
    return "at the ends of a passage" if contrast.mean > 0 else "in the middle of a passage"


def _sd(contrast: Contrast) -> str:
    return f"{number(contrast.mean)} sd {with_interval(contrast.ci95, contrast.p, 3)}"


def _between(ci: Interval | None, digits: int) -> str:
    return "no interval" if ci is None else f"95% interval {number(ci[0], digits)} to {number(ci[1], digits)}"


def _ends(moved: MovedAnswers) -> str:
    """The answer's sentence moved first and last, against the passage as it is."""
    parts = []
    for name, found in (("first", moved.early), ("last", moved.late)):
        figure = f"{number(found.mean)} sd {with_interval(found.ci95, found.p, 3)}" if found.n else "not possible"
        parts.append(f"moved {name} {figure}")
    said = f"Against the passage as it is, beyond what another sentence does: {', '.join(parts)}."
    seen = [found.detectable for found in (moved.early, moved.late) if found.detectable is not None]
    if seen:
        said += f" {number(max(seen))} sd or more would have been seen."
    if moved.score.difference.n and _tests(moved).neighbours:
        said += " Neighbours play a part in this, too."
    return said


def _opposite(moved: MovedAnswers, observed: Buckets) -> list[str]:
    """Why answers as they stand may show the opposite of moved ones, if they do."""
    slope = moved.score.difference.slope
    known = [p for p in (slope.p, observed.slope_p) if p is not None]
    # Written so that a slope that is undefined goes no way.
    if not slope.mean * observed.slope < 0 or not known or min(known) >= SIGNIFICANT or not _slope_beyond(moved):
        return []
    return [
        "The two go opposite ways: the moved answers show what the place does; passages with early and with late"
        " answers also differ in what they are about, in length and in what is asked of them."
    ]


def _truncation(moved: MovedAnswers, cut: int | None, queries: int) -> str:
    """The effect of truncation on the answers."""
    if moved.cut is None or cut is None:
        return "How far the model reads is unknown, so an answer that it cuts off counts as one at a late place."
    read = f"The model reads {queries - cut:,} of {queries:,} answers to the end as they stand"
    if not moved.cut.any():
        return f"{read}, and all at every place they are moved to: truncation plays no part."
    lines = f"{read}; moved, up to {int(moved.cut.max()):,} of {moved.queries:,} are cut off"
    kept = moved.kept.difference
    if not kept.n:
        return f"{lines}, and none is read whole at every place: preference and truncation cannot be told apart."
    end = f"among the {kept.n:,} that are read whole at every place the score changes by {_sd(kept.slope)}"
    if kept.slope.p is None or kept.slope.p >= SIGNIFICANT or not _slope_beyond(moved):
        return f"{lines}; {end}: no preference shown apart from truncation."
    return f"{lines}; {end}: a preference apart from truncation."
