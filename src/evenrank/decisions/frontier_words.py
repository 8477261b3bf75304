"""A frontier in sentences: what costs least at equal bias, where it falls in a jump, and what is beyond the line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from math import floor, log10

from ir_measures import Measure

from evenrank.io import Run
from evenrank.io.wording import counted, percent
from evenrank.measures import resolve
from evenrank.measures.statistics import SIGNIFICANT
from evenrank.mitigation.reordering import Reordering
from evenrank.reports.format import interval, number, p_value

from .frontier_points import BLIND, EqualBias
from .frontier_result import Frontier
from .paired_figures import Difference
from .rebalance_lists import Grouping, RunLists


def method_names(found: Frontier) -> list[str]:
    """The methods, in the order of the points."""
    return list(dict.fromkeys(point.method for point in found.points if point.method is not None))


def summary(found: Frontier) -> Iterator[str]:
    """What the figures at equal bias show."""
    utility, bias = found.measures
    if found.points[0].bias[0] is None:
        yield f"{bias} of the run is undefined: there is nothing to compare at equal bias."
    elif not found.equal:
        yield f"The run has no {bias} to take away, or no method takes any: there is nothing to compare at equal bias."
    for share, group in groupby(found.equal, key=lambda one: one.share):
        levels = list(group)
        least, others = levels[0], levels[1:]
        of = "the run's" if resolve(bias).better != "higher" else "the distance from the run's to the best"
        yield (
            f"At {bias} {number(least.bias, 4)} ({percent(share)} of {of}) {least.method} {_at_strength(least)}"
            f" {_costs(utility, least.cost)}.{''.join(_behind(one) for one in others[:1])}"
        )
        yield from (_jump(one, bias) for one in levels[:2] if one.jump)
        short = [name for name in method_names(found) if name not in [one.method for one in levels]]
        if short:
            yield f"Not reached at any strength by {', '.join(short)}."
    beyond = [point for point in found.points if point.method is not None and point.beyond is not None]
    if beyond:
        shown = sorted({str(one.method) for one in beyond if _above(one.beyond)})
        yield (
            f"Beyond the straight line from the run to {BLIND}, with p < .05 (not corrected):"
            f" {', '.join(shown) or 'no method at any strength'}."
        )


def _at_strength(one: EqualBias) -> str:
    if one.jump:
        return f"between strengths {strength_text(one.between[0])} and {strength_text(one.between[1])}"
    return f"at strength {strength_text(one.strength)}"


def strength_text(value: float) -> str:
    """A strength with three digits, or as many as tell it from 0 and 1."""
    near = min(value, 1 - value)
    return f"{value:g}" if near <= 0 else f"{value:.{max(3, 1 - floor(log10(near)))}f}"


def _costs(utility: Measure, cost: Difference) -> str:
    """What a method costs beside the run: a gain costs nothing."""
    said = f"{utility} {_signed(cost)}"
    if cost.mean is None or cost.mean < 0:
        return f"costs least: {said}"
    if cost.mean == 0:
        return f"costs nothing: {said}"
    shown = "" if _significant(cost.t_p) else "not "
    return f"costs nothing: {said}, a gain, which is {shown}shown (p {p_value(cost.t_p)})"


def _jump(one: EqualBias, bias: Measure) -> str:
    low, high = map(strength_text, one.between)
    before, after = (number(value, 4) for value in one.biases)
    return (
        f"No strength of {one.method} that was tried has this bias: from {low} to {high} {bias} jumps from {before} to"
        f" {after}. The figures are those of mixing these two rankings at random."
    )


def _behind(one: EqualBias) -> str:
    if one.behind is None:
        return ""
    gains = one.cost.mean is not None and one.cost.mean > 0
    if _significant(one.holm_p):
        verb = "gains less" if gains else "costs more"
    else:
        verb = f"is not shown to {'gain less' if gains else 'cost more'}"
    return f" {one.method} comes next and {verb}: {_signed(one.behind)} beside it (Holm p {p_value(one.holm_p)})."


def _significant(p: float | None) -> bool:
    return p is not None and p < SIGNIFICANT


def _above(apart: Difference | None) -> bool:
    return apart is not None and apart.mean is not None and apart.mean > 0 and _significant(apart.t_p)


def borderline(found: Frontier) -> Iterator[str]:
    """Why an interval and a p may disagree, where some do."""
    apart = [one for point in found.points for one in (point.utility_difference, point.bias_difference, point.beyond)]
    apart += [one.cost for one in found.equal]
    if any(one is not None and one.t_p is not None and _excludes_zero(one) != _significant(one.t_p) for one in apart):
        yield (
            "Intervals are bootstrap percentiles, p is that of a paired t-test: near the border an interval can exclude"
            " 0 beside a p above .05, or the reverse. p decides the verdict."
        )


def _excludes_zero(apart: Difference) -> bool:
    return apart.ci95 is not None and not apart.ci95[0] <= 0 <= apart.ci95[1]


def _signed(apart: Difference) -> str:
    if apart.mean is None:
        return number(None)
    return f"{'+' if apart.mean > 0 else ''}{number(apart.mean, 4)} {interval(apart.ci95, 4)}"


def notes_on(
    lists: RunLists, grouping: Grouping, methods: Mapping[str, Reordering], others: Mapping[str, Run]
) -> Iterator[str]:
    """What a reader of a frontier of these lists should know; ``others``: the runs beside."""
    yield (
        "random, neutral-first and relevance-first are orders of the run's own candidates: relevance-first by falling"
        " grade, unjudged documents as grade 0, equal grades in expectation."
    )
    if "neutral" in methods and not lists.lists.neutrality.any():
        yield "neutral changes nothing: none of the documents is neutral."
    if lists.tied:
        yield (
            f"{counted(lists.tied, 'document')} of {lists.total:,} in the first {grouping.depth} ranks are tied with a"
            " neighbour in the run: the methods start from falling document ids there, and so do all figures."
        )
    if lists.lacking:
        what = "counted as neutral" if grouping.missing == "neutral" else "kept at their ranks and left out of figures"
        yield f"{counted(lists.lacking, 'document')} of {lists.total:,} are not known to the groups: {what}."
    if "blind" not in others:
        yield "No run named blind was given: there is no straight line that a method should be beyond."
