"""A frontier as tables, a drawing and sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from evenrank.auditing.plane import Placed, PlanePoint, draw_plane
from evenrank.measures import resolve
from evenrank.measures.statistics import EQUAL
from evenrank.reports.format import interval, number, p_value
from evenrank.reports.page import Page, Table

from .frontier_points import BLIND, Point
from .frontier_result import Frontier
from .frontier_words import borderline, method_names, strength_text, summary
from .paired_figures import Difference

_ROOM = 1.2
_SOURCE = "Every method at every strength: effectiveness against bias, on queries that nothing was chosen on"


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
        (),
        (*found.notes, *borderline(found)),
        tuple(summary(found)),
        late=(_all(found),),
        plane=_plane(found),
    )


def _plane(found: Frontier) -> str:
    """The plane, of the methods' rankings with those that are about as biased as the run or less."""
    run = found.points[0]
    points = [
        PlanePoint(point.name, Placed(*point.utility), Placed(*point.bias), point.reference, point.method)
        for point in found.points
        if point.method is None or _is_near(point, run, found)
    ]
    return draw_plane(found.measures, points)


def _is_near(point: Point, run: Point, found: Frontier) -> bool:
    """Whether a point has at most the run's bias, of measures whose best is 0 with some room."""
    own, base = point.bias[0], run.bias[0]
    if own is None or base is None:
        return False
    return own >= base if resolve(found.measures[1]).better == "higher" else abs(own) <= _ROOM * abs(base)


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
