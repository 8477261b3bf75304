"""The findings of position sensitivity, in sentences."""

from __future__ import annotations

from evenrank.io.wording import counted
from evenrank.measures.statistics import SIGNIFICANT, holm
from evenrank.reports.format import number, p_value

from .curves import CONTRASTS, Contrast
from .resampling import Interval
from .sensitivity_result import MEASURE, MovedAnswers, SensitivityResult

_FEW = 10
"""With fewer passages, a missing effect is not reported as such: hardly any could be found."""
_CONTRASTS = ("first − last", "ends − middle", f"Position Sensitivity Index of {MEASURE}")


def summary(result: SensitivityResult) -> tuple[str, ...]:
    """One sentence or more on each of: moved answers, truncation."""
    moved = result.moved
    if moved is None:
        return (_unmoved(result.unmovable),)
    return _preference(moved), _ends(moved), _truncation(moved, result.cut, result.queries)


def _unmoved(count: int) -> str:
    fewer = "the passage of none has two sentences besides the answer's" if count > 1 else "its passage is too short"
    return f"No answer could be moved, of {counted(count, 'query')}: {fewer}."


def with_interval(ci: Interval | None, p: float | None, digits: int = 4) -> str:
    """A figure's interval and p-value, in brackets."""
    return f"({_between(ci, digits)}, {'no p' if p is None else f'p {p_value(p)}'})"


def _preference(moved: MovedAnswers) -> str:
    """What moving the answer's sentence does beyond moving another one, by three tests with Holm's correction."""
    score, index = moved.score.difference, moved.value.difference.index
    if not score.n:
        return "The answers' sentences were moved, but the candidates of each query all have one score."
    if score.first_last.p is None or index is None:
        return "The answer's sentence was moved, but one passage shows nothing about others."
    corrected = holm([*(getattr(score, name).p for name in CONTRASTS), index.p])
    significant = [p is not None and p < SIGNIFICANT for p in corrected]
    if significant[0]:
        verdict = f"The model prefers {'early' if score.first_last.mean > 0 else 'late'} answers"
        own = moved.score.answer.ends_middle
        # A strong preference reaches the control, too, which moves the answer by one sentence at most.
        if significant[1] and own.p is not None and own.p < SIGNIFICANT and own.mean * score.ends_middle.mean > 0:
            verdict += f", and those {_where(score.ends_middle)}"
    elif significant[1]:
        verdict = f"The model prefers answers {_where(score.ends_middle)}"
    elif significant[2]:
        verdict = f"{MEASURE} depends on the place of the answer, though no contrast of the score shows how"
    elif moved.passages < _FEW:
        verdict = f"Moved answers of {moved.passages} passages show nothing"
    else:
        verdict = "No preference shown"
    figures = (*(getattr(score, name).mean for name in CONTRASTS), index.value)
    named = zip(_CONTRASTS, figures, corrected, significant, strict=True)
    shown = ", ".join(f"{name} {number(figure)} (p {p_value(p)})" for name, figure, p, one in named if one)
    tried = (
        f"Significant, of 3 tests, Holm-corrected: {shown}"
        if shown
        else "None of 3 tests is significant, Holm-corrected"
    )
    return (
        f"{verdict}: from the last place of its passage to the first, the answer's sentence changes the score by"
        f" {_sd(score.first_last)} beyond what another sentence does. {tried}."
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
    return said


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
    end = f"among the {kept.n:,} that are read whole at every place the score changes by {_sd(kept.first_last)}"
    if kept.first_last.p is None or kept.first_last.p >= SIGNIFICANT:
        return f"{lines}; {end}: no preference shown apart from truncation."
    return f"{lines}; {end}: a preference apart from truncation."
