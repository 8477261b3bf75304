"""Effectiveness against bias as one SVG, for pages and notebooks.

It needs no script. Its text and axes take the colour of the text around them, so that it reads on light and on
dark backgrounds.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from ir_measures import Measure

from evenrank.files.errors import plain
from evenrank.measures import is_bias
from evenrank.results.table import Interval, interval, number

from .about import direction
from .data import SHOWN_AS, AuditFigures, shown_name
from .screen import shown_runs
from .unknown_labels import plane_bias

# Small, so that it can be read on a phone, where it is scaled down, and stands beside the verdicts on a wide screen.
WIDTH, HEIGHT = 460, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 66, 12, 10, 42
# These have a contrast of at least 3 on white and on black.
_COLOURS = ("#1a7fd4", "#d06000", "#00926b", "#b8569d", "#8f7a00", "#7a72d8")
_GREY = "#7f8794"
_LETTER = 6.6
_LONGEST = 24
# How much further than next to its point a name may be, in pixels.
_ASIDE, _AWAY = (0, 14, 28, 42), (0, 8, 16, 24, 32)

_Box = tuple[float, float, float, float]
"""Left, top, right and bottom in pixels."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear axis: the values ``low`` to ``high`` are drawn at the pixels ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, values: list[float], start: float, end: float) -> Axis:
        """An axis for values, with round ticks and some room at both ends."""
        low, high = min(values), max(values)
        room = 0.08 * (high - low) or 0.1 * abs(high) or 0.1
        low, high = low - room, high + room
        rough = (high - low) / 5
        magnitude = 10.0 ** math.floor(math.log10(rough))
        step = next(m * magnitude for m in (1, 2, 2.5, 5, 10) if m * magnitude >= rough)
        first, last = math.ceil(low / step), math.floor(high / step)
        return cls(low, high, start, end, tuple(round(i * step, 12) for i in range(first, last + 1)))

    def place(self, value: float) -> float:
        """The pixel of a value."""
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a ranking stands on an axis: a mean with its 95% interval, or bounds alone."""

    mean: float | None
    ci95: Interval | None
    bounds: Interval | None = None

    @property
    def middle(self) -> float | None:
        """The mean, or what is shown at the middle of the bounds if these are all that is known."""
        if self.mean is not None or self.bounds is None:
            return self.mean
        return (self.bounds[0] + self.bounds[1]) / 2

    @property
    def extent(self) -> tuple[float, ...]:
        """All that has to be on the axis."""
        return (self.middle or 0.0, *(self.ci95 or ()), *(self.bounds or ()))


@dataclass(frozen=True, slots=True)
class PlanePoint:
    """A ranking in the plane; ``method``: whose path it is on, with rising strength."""

    name: str
    utility: Placed
    bias: Placed
    reference: bool = False
    method: str | None = None


def plane_measures(result: AuditFigures) -> tuple[Measure, Measure] | None:
    """The measures of effectiveness and of bias that the plane sets against each other; None without both."""
    utility = next((measure for measure in result.measures if not is_bias(measure)), None)
    bias = plane_bias(result)
    return None if utility is None or bias is None else (utility, bias)


def plane_svg(result: AuditFigures) -> str:
    """A point for each run with its 95% intervals and, behind them, the bounds of bias where labels are unknown.

    A run that has bounds alone is their line, without a point. "" if no run has a value of both measures.
    """
    measures = plane_measures(result)
    if measures is None:
        return ""
    points = []
    for run in shown_runs(result):
        utility, bias = (run.measures[str(measure)] for measure in measures)
        bounds = bias.bounds if bias.from_labels is None else None
        placed = Placed(utility.mean, utility.ci95, utility.bounds), Placed(bias.mean, bias.ci95, bounds)
        points.append(PlanePoint(SHOWN_AS.get(run.name, run.name), *placed, run.reference))
    return draw_plane(measures, points)


def draw_plane(measures: tuple[Measure, Measure], points: Sequence[PlanePoint]) -> str:
    """The points with their intervals; those of a method are joined from the first point on, and its last is named.

    "" if none has a value of both measures.
    """
    utility, bias = map(str, measures)
    points = [point for point in points if point.utility.mean is not None and point.bias.middle is not None]
    if not points:
        return ""
    zero = [0.0] if getattr(measures[1], "better", "higher") == "nearer zero" else []
    x = Axis.over([value for point in points for value in point.utility.extent], _LEFT, WIDTH - _RIGHT)
    y = Axis.over([value for point in points for value in point.bias.extent] + zero, HEIGHT - _BOTTOM, _TOP)
    places = [(x.place(point.utility.mean or 0.0), y.place(point.bias.middle or 0.0)) for point in points]
    bars = [bar for point, place in zip(points, places, strict=True) for bar in _bars(point, place, x, y)]
    if zero:
        bars.append((_LEFT, y.place(0.0) - 1, WIDTH - _RIGHT, y.place(0.0) + 1))
    last = {point.method: number_ for number_, point in enumerate(points) if point.method is not None}
    named = [n for n, point in enumerate(points) if point.method is None or n == last[point.method]]
    bars += [_around(*places[n]) for n in range(len(points)) if n not in named]
    names = [_short(points[n].method or points[n].name) for n in named]
    labels = dict(zip(named, _labels(names, [places[n] for n in named], bars), strict=True))
    series = list(dict.fromkeys(point.method or point.name for point in points if not point.reference))
    colours = {name: _COLOURS[number_ % len(_COLOURS)] for number_, name in enumerate(series)}
    marks = [_path(points, places, method, colours[method]) for method in last if method is not None]
    marks += [
        _mark(point, (utility, bias), x, y, colours.get(point.method or point.name, _GREY), labels.get(n))
        for n, point in enumerate(points)
    ]
    title = f"Effectiveness ({utility}) against bias ({bias})"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{_text(title)}" width="{WIDTH}"'
        f' height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" style="max-width:100%;height:auto;color:inherit"'
        f' font-family="sans-serif" font-size="12" fill="currentColor">{_axes(measures, x, y, bool(zero))}'
        f"{''.join(marks)}</svg>"
    )


def _text(text: str) -> str:
    return escape(plain(text))


def _axes(measures: tuple[Measure, Measure], x: Axis, y: Axis, zero: bool) -> str:
    faint = 'stroke="currentColor" stroke-opacity="0.15"'
    line = 'stroke="currentColor" stroke-opacity="0.6"'
    bottom, left = HEIGHT - _BOTTOM, _LEFT
    parts = [f'<path d="M{left},{_TOP}V{bottom}H{WIDTH - _RIGHT}" fill="none" {line}/>']
    for tick in x.ticks:
        at = f"{x.place(tick):.1f}"
        parts.append(f'<path d="M{at},{_TOP}V{bottom}" {faint}/>')
        parts.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle">{_tick(tick)}</text>')
    for tick in y.ticks:
        at = f"{y.place(tick):.1f}"
        parts.append(f'<path d="M{left},{at}H{WIDTH - _RIGHT}" {faint}/>')
        parts.append(f'<text x="{left - 6}" y="{at}" dy="4" text-anchor="end">{_tick(tick)}</text>')
    if zero:
        parts.append(f'<path d="M{left},{y.place(0.0):.1f}H{WIDTH - _RIGHT}" stroke-dasharray="4 4" {line}/>')
    names = [_text(f"{shown_name(measure)} ({direction(measure)})") for measure in measures]
    middle = (_TOP + bottom) / 2
    bold = 'text-anchor="middle" font-weight="bold"'
    parts.append(f'<text x="{(left + WIDTH - _RIGHT) / 2}" y="{HEIGHT - 6}" {bold}>{names[0]}</text>')
    parts.append(f'<text x="12" y="{middle}" transform="rotate(-90 12 {middle})" {bold}>{names[1]}</text>')
    return "".join(parts)


def _tick(value: float) -> str:
    return f"{value:.6g}".replace("-", "−")


@dataclass(frozen=True, slots=True)
class _Label:
    text: str
    x: float
    y: float
    anchor: str


def _path(points: Sequence[PlanePoint], places: Sequence[tuple[float, float]], method: str, colour: str) -> str:
    """A line from the first point through those of a method."""
    through = [
        place for n, (point, place) in enumerate(zip(points, places, strict=True)) if not n or point.method == method
    ]
    line = "L".join(f"{x:.1f},{y:.1f}" for x, y in through)
    return f'<path d="M{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _mark(point: PlanePoint, measures: tuple[str, str], x: Axis, y: Axis, colour: str, label: _Label | None) -> str:
    """A point with its intervals, its name if it has a label, and its figures as a tooltip; a reference is a hollow
    diamond.

    Bounds are a thin, light line behind; without a mean they are all there is.
    """
    utility, bias, reference = point.utility, point.bias, point.reference
    at_x, at_y = x.place(utility.mean or 0.0), y.place(bias.middle or 0.0)
    parts = []
    for measure, placed in zip(measures, (utility, bias), strict=True):
        values = [number(placed.mean, 4)] if placed.mean is not None else []
        values += [interval(placed.ci95, 4)] if placed.ci95 else []
        values += [f"bounds {interval(placed.bounds, 4)}"] if placed.bounds is not None else []
        parts.append(f"{measure} {' '.join(values)}")
    kind = " (reference ranking)" if reference else ""
    marks = [f"<title>{_text(f'{point.name}{kind}: {parts[0]}, {parts[1]}')}</title>"]
    if bias.bounds is not None:
        low, high = map(y.place, bias.bounds)
        marks.append(
            f'<path d="M{at_x:.1f},{low:.1f}V{high:.1f}" class="bounds" stroke-width="1" stroke-opacity="0.6"/>'
        )
    if utility.ci95 is not None and bias.mean is not None:
        low, high = map(x.place, utility.ci95)
        marks.append(f'<path d="M{low:.1f},{at_y:.1f}H{high:.1f}"/>')
    if bias.ci95 is not None:
        low, high = map(y.place, bias.ci95)
        marks.append(f'<path d="M{at_x:.1f},{low:.1f}V{high:.1f}"/>')
    if bias.mean is not None and reference:
        marks.append(f'<path d="M{at_x:.1f},{at_y - 6:.1f}l6,6l-6,6l-6,-6Z" fill="none"/>')
    elif bias.mean is not None:
        marks.append(f'<circle cx="{at_x:.1f}" cy="{at_y:.1f}" r="5" fill="{colour}"/>')
    if label is not None:
        marks.append(
            f'<text x="{label.x:.1f}" y="{label.y:.1f}" text-anchor="{label.anchor}" stroke="none" fill="currentColor">'
            f"{_text(label.text)}</text>"
        )
    faint = ' stroke-opacity="0.35"' if point.method is not None else ""
    return f'<g stroke="{colour}" stroke-width="1.75" fill="{colour}"{faint}>{"".join(marks)}</g>'


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST // 2]}…{name[-(_LONGEST // 2 - 1) :]}"


def _bars(point: PlanePoint, place: tuple[float, float], x: Axis, y: Axis) -> list[_Box]:
    """The boxes of a point's intervals."""
    (at_x, at_y), utility, bias = place, point.utility, point.bias
    boxes = []
    if utility.ci95 is not None and bias.mean is not None:
        low, high = map(x.place, utility.ci95)
        boxes.append((low, at_y - 1, high, at_y + 1))
    for ends in (bias.ci95, bias.bounds):
        if ends is None:
            continue
        low, high = map(y.place, ends)
        boxes.append((at_x - 1, high, at_x + 1, low))
    return boxes


def _around(x: float, y: float) -> _Box:
    return x - 7, y - 7, x + 7, y + 7


def _labels(names: list[str], places: list[tuple[float, float]], bars: list[_Box]) -> list[_Label]:
    """Each name near its point, where it overlaps the fewest points, lines, names and edges; above right if it can."""
    taken = [*bars, *(_around(x, y) for x, y in places)]
    labels = []
    for name, (x, y) in zip(names, places, strict=True):
        width = len(name) * _LETTER
        choices = []
        for right, up, aside, away in itertools.product((1, 0), (1, 0), _ASIDE, _AWAY):
            left = x + 9 + aside if right else x - 9 - aside - width
            top = y - 19 - away if up else y + 5 + away
            box = (left, top, left + width, top + 14)
            outside = max(0.0, _LEFT - box[0]) + max(0.0, box[2] - WIDTH) + max(0.0, box[3] - HEIGHT + _BOTTOM)
            outside += max(0.0, -box[1])
            clear = (left - 2, top - 1, left + width + 2, top + 15)
            cost = sum(_overlap(clear, other) for other in taken) + 20 * outside + 0.1 * (aside + away)
            choices.append((cost, box, "start" if right else "end"))
        _, box, anchor = min(choices, key=lambda choice: choice[0])
        taken.append(box)
        labels.append(_Label(name, box[0] if anchor == "start" else box[2], box[1] + 11, anchor))
    return labels


def _overlap(a: _Box, b: _Box) -> float:
    return max(0.0, min(a[2], b[2]) - max(a[0], b[0])) * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
