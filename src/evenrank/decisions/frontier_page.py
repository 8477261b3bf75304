"""A frontier as tables, a chart and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from evenrank.measures import resolve
from evenrank.measures.statistics import EQUAL
from evenrank.reports.format import Interval, interval, number, p_value
from evenrank.reports.page import COLOURS, Drawing, Page, Table, specification

from .frontier_points import BLIND, Point
from .frontier_result import Frontier
from .frontier_words import borderline, method_names, strength_text, summary
from .paired_figures import Difference

_SOURCE = "Every method at every strength: effectiveness against bias, on queries that nothing was chosen on"
_ROOM = 1.2


def frontier_page(found: Frontier) -> Page:
    """All points and what the methods cost at equal bias."""
    facts = (
        ("queries", f"{found.queries:,}"),
        ("methods", f"{len(method_names(found))}"),
        ("points", f"{len(found.points)}"),
    )
    tables = [_equal(found)] if found.equal else []
    title = f"Frontier of {found.name}: {found.measures[0]} against {found.measures[1]}"
    return Page(
        "rebalance",
        title,
        _SOURCE,
        facts,
        tuple(tables),
        (_near(found), _whole(found)),
        (*found.notes, *borderline(found)),
        tuple(summary(found)),
        late=(_all(found),),
    )


# --- tables -----------------------------------------------------------------------------------------------------------


def _equal(found: Frontier) -> Table:
    rows = tuple(
        (
            number(one.bias, 4),
            one.method,
            " to ".join(map(strength_text, one.between)) if one.jump else strength_text(one.strength),
            number(one.utility, 4),
            *_cells(one.cost),
            *(_cells(one.behind)[:2]),
            p_value(one.holm_p),
        )
        for one in found.equal
    )
    utility, bias = map(str, found.measures)
    heads = (bias, "method", "strength", utility, "minus the run", "95%", "p", "minus the best", "95%", "Holm p")
    notes: tuple[str, ...] = (
        "Between the two nearest strengths, each query's value is interpolated; intervals and tests are paired by query"
        " and take the strength as given. The best: the method with the highest figure at that bias. Holm p: corrected"
        " over all pairs of methods at the same bias, as the best is found on the same queries; the intervals are not.",
    )
    if any(one.jump for one in found.equal):
        notes += (
            "Two strengths: no strength that was tried has this bias, since the measure jumps between them; the figures"
            " are those of mixing the two rankings at random.",
        )
    return Table("At equal bias", heads, rows, notes, left=2)


def _all(found: Frontier) -> Table:
    lines = any(point.beyond is not None for point in found.points)
    rows = tuple(
        (name + (" †" if point.reference else ""), *_figures_of(point)[: 10 + 2 * lines])
        for name, point in _folded(found.points)
    )
    utility, bias = map(str, found.measures)
    heads: tuple[str, ...] = (
        "ranking",
        utility,
        "95%",
        "minus the run",
        "95%",
        "p",
        bias,
        "95%",
        "minus the run",
        "95%",
        "p",
    )
    heads += ("beyond the line", "95%") if lines else ()
    notes = [
        "†: a reference ranking of the run's documents. p: paired t-tests, not corrected. A row for several strengths:"
        " all figures are equal."
    ]
    if lines:
        notes.append(f"Beyond the line: {utility} minus that of a mixture of the run and {BLIND} of the same {bias}.")
    return Table("All points", heads, rows, tuple(notes))


def _folded(points: Sequence[Point]) -> Iterator[tuple[str, Point]]:
    """The points with a label; neighbouring strengths of a method with equal figures are one, the first of them."""
    for method, group in groupby(points, key=lambda point: point.method):
        of_method = list(group)
        if method is None:
            yield from ((point.name, point) for point in of_method)
            continue
        for _, same in groupby(of_method, key=_figures_of):
            alike = list(same)
            first, last = alike[0], alike[-1]
            if len(alike) == len(of_method) and _unchanged(first):
                yield f"{method}: changes nothing up to strength {last.strength:g}", first
            else:
                yield first.name if first is last else f"{first.name} to {last.strength:g}", first


def _unchanged(point: Point) -> bool:
    """Whether no query's figure differs from the run's."""
    apart = (point.utility_difference, point.bias_difference)
    return all(one is not None and one.mean == 0 and max(map(abs, one.ci95 or (0.0, 0.0))) <= EQUAL for one in apart)


def _figures_of(point: Point) -> tuple[str, ...]:
    """The figures as they are shown: those of equal rankings may differ by rounding."""
    return (
        number(point.utility[0], 4),
        interval(point.utility[1], 4),
        *_cells(point.utility_difference),
        number(point.bias[0], 4),
        interval(point.bias[1], 4),
        *_cells(point.bias_difference),
        *_cells(point.beyond)[:2],
    )


def _cells(apart: Difference | None) -> tuple[str, str, str]:
    if apart is None:
        return number(None), number(None), number(None)
    return number(apart.mean, 4), interval(apart.ci95, 4), p_value(apart.t_p)


# --- charts -----------------------------------------------------------------------------------------------------------


def _near(found: Frontier) -> Drawing:
    """The rankings about as biased as the run or less, with the intervals of their differences from it."""
    run = found.points[0]
    shown = [point for point in found.points if point is run or _is_near(point, run, found)]
    utility, bias = found.measures
    higher = resolve(bias).better == "higher"
    which = (
        f"no more biased than the run, by {bias}" if higher else f"whose {bias} is at most {_ROOM:g} times the run's"
    )
    hint = (
        f"Rankings {which}. Lines: a method from the run (strength 0) on, in the order of strengths;"
        f" rules: 95% intervals of the paired differences from the run. {_directions(found)}"
    )
    title = f"{utility} against {bias}, near the run"
    return Drawing("Near the run", title, _chart(found, shown, paired=True), hint)


def _whole(found: Frontier) -> Drawing:
    """All rankings, with the intervals of their figures."""
    utility, bias = map(str, found.measures)
    hint = f"All rankings and references; rules: 95% intervals of the figures. {_directions(found)}"
    title = f"{utility} against {bias}"
    return Drawing("All", title, _chart(found, list(found.points), paired=False), hint)


def _directions(found: Frontier) -> str:
    better = "up is less biased" if resolve(found.measures[1]).better == "higher" else "nearer 0 is less biased"
    blind = any(point.name == BLIND for point in found.points)
    dashed = f" Dashed: the straight line from the run to {BLIND}." if blind else ""
    return f"Right is more effective, {better}.{dashed}"


def _is_near(point: Point, run: Point, found: Frontier) -> bool:
    """Whether a point is no reference and has at most the run's bias, of measures whose best is 0 with some room."""
    own, base = point.bias[0], run.bias[0]
    if point.reference or own is None or base is None:
        return False
    return own >= base if resolve(found.measures[1]).better == "higher" else abs(own) <= _ROOM * abs(base)


def _chart(found: Frontier, points: list[Point], *, paired: bool) -> dict[str, object]:
    """Lines by method in the order of strengths, from the run, which comes first in ``points``."""
    import altair as alt

    utility, bias = map(str, found.measures)
    run = found.points[0]
    methods = method_names(found)
    defined = [point for point in points if point.utility[0] is not None and point.bias[0] is not None]
    paths = [
        _datum(point, method, run, paired)
        for method in methods
        for point in defined
        if point is run or point.method == method
    ]
    alone = [_datum(point, point.name, run, paired) for point in defined if point.method is None]
    x = alt.X("x:Q", title=utility, scale=alt.Scale(zero=False, nice=True, padding=16))
    y = alt.Y("y:Q", title=bias, scale=alt.Scale(zero=False, nice=True, padding=16))
    colour = alt.Color("series:N", title="method", scale=alt.Scale(domain=methods, range=COLOURS[: len(methods)]))
    tooltip = [alt.Tooltip("name:N", title="ranking")]
    tooltip += [alt.Tooltip("xText:N", title=utility), alt.Tooltip("yText:N", title=bias)]
    of_paths = alt.Chart(alt.Data(values=paths))
    of_others = alt.Chart(alt.Data(values=alone))
    grey = COLOURS[-1]
    layers = [
        of_paths.mark_line(opacity=0.85).encode(x=x, y=y, color=colour, order="strength:Q"),
        of_paths.mark_rule(opacity=0.25).encode(x=alt.X("xLow:Q"), x2="xHigh:Q", y=y, color=colour),
        of_paths.mark_rule(opacity=0.25).encode(y=alt.Y("yLow:Q"), y2="yHigh:Q", x=x, color=colour),
        of_paths.mark_point(size=45, filled=True, opacity=1).encode(x=x, y=y, color=colour, tooltip=tooltip),
        of_others.mark_rule(opacity=0.5, color=grey).encode(x=alt.X("xLow:Q"), x2="xHigh:Q", y=y),
        of_others.mark_rule(opacity=0.5, color=grey).encode(y=alt.Y("yLow:Q"), y2="yHigh:Q", x=x),
        of_others.mark_point(size=110, filled=True, opacity=1, color=grey).encode(
            x=x, y=y, shape=alt.Shape("kind:N", title=None), tooltip=tooltip
        ),
        of_others.mark_text(dx=9, dy=-9, align="left", fontWeight=600).encode(x=x, y=y, text="name:N"),
    ]
    blind = next((datum for datum in alone if datum["name"] == BLIND), None)
    if blind is not None:
        ends = [{**alone[0], "strength": 0}, {**blind, "strength": 1}]
        line = alt.Chart(alt.Data(values=ends)).mark_line(strokeDash=[5, 4], color=grey)
        layers.insert(0, line.encode(x=x, y=y, order="strength:Q"))
    if resolve(found.measures[1]).better != "higher":
        zero = alt.Chart(alt.Data(values=[{"y": 0}])).mark_rule(strokeDash=[2, 3], opacity=0.6)
        layers.insert(0, zero.encode(y=y))
    return specification(alt.layer(*layers).properties(width=780, height=460))


def _kind(point: Point) -> str:
    return "reference" if point.reference else "method" if point.method else "run"


def _datum(point: Point, series: str, run: Point, paired: bool) -> dict[str, object]:
    return {
        "name": point.name,
        "series": series,
        "kind": _kind(point),
        "strength": point.strength or 0.0,
        **_axis("x", point.utility, _around(run.utility[0], point.utility_difference) if paired else point.utility[1]),
        **_axis("y", point.bias, _around(run.bias[0], point.bias_difference) if paired else point.bias[1]),
    }


def _around(base: float | None, apart: Difference | None) -> Interval | None:
    """The interval of a difference from the run, at the run's figure."""
    if base is None or apart is None or apart.ci95 is None:
        return None
    return base + apart.ci95[0], base + apart.ci95[1]


def _axis(axis: str, figure: tuple[float | None, Interval | None], drawn: Interval | None) -> dict[str, object]:
    mean, ends = figure
    low, high = drawn or (mean, mean)
    text = number(mean, 4) + ("" if ends is None else f" {interval(ends, 4)}")
    return {axis: mean, f"{axis}Low": low, f"{axis}High": high, f"{axis}Text": text}
