"""Effectiveness against bias: a chart of an audit's rankings, or of a reordering at several strengths."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ir_measures import Measure

from evenrank.files.errors import plain
from evenrank.measures import is_bias, resolve
from evenrank.results.page import COLOURS, Drawing
from evenrank.results.table import Interval, interval, number

from .data import SHOWN_AS, AuditFigures, shown_name
from .selected_measures import direction, plane_bias
from .summary import shown_runs

WIDTH, HEIGHT = 460, 250
_LONGEST = 18
_SYMBOL = 90
_REFERENCE = "#7f8794"
_REFERENCE_SHAPES = ("diamond", "triangle-up", "square")


@dataclass(frozen=True, slots=True)
class Placed:
    """Where a ranking stands on an axis: a mean with its 95% interval, or bounds alone."""

    mean: float | None
    ci95: Interval | None = None
    bounds: Interval | None = None

    def __str__(self) -> str:
        parts = [number(self.mean, 4)] if self.mean is not None else []
        parts += [interval(self.ci95, 4)] if self.ci95 is not None else []
        parts += [f"bounds {interval(self.bounds, 4)}"] if self.bounds is not None else []
        return " ".join(parts)


@dataclass(frozen=True, slots=True)
class RankingPoint:
    """A ranking in the plot; ``series``: what it is called in the legend, where several points are joined to a line."""

    name: str
    utility: Placed
    bias: Placed
    reference: bool = False
    series: str | None = None


def plot_measures(result: AuditFigures) -> tuple[Measure, Measure] | None:
    """The measures of effectiveness and of bias that the plot sets against each other; None without both."""
    utility = next((measure for measure in result.measures if not is_bias(measure)), None)
    bias = plane_bias(result)
    return None if utility is None or bias is None else (utility, bias)


def audit_plot(result: AuditFigures) -> Callable[[], Drawing] | None:
    """Makes the plot of an audit's rankings; None where no ranking has values of both measures."""
    measures = plot_measures(result)
    if measures is None:
        return None
    points = []
    for run in shown_runs(result):
        utility, bias = (run[measure] for measure in measures)
        bounds = bias.bounds if bias.from_labels is None else None
        if utility.mean is not None and (bias.mean is not None or bounds is not None):
            placed = Placed(utility.mean, utility.ci95), Placed(bias.mean, bias.ci95, bounds)
            points.append(RankingPoint(SHOWN_AS.get(run.name, run.name), *placed, run.reference))
    return functools.partial(tradeoff_plot, measures, points) if points else None


def tradeoff_plot(measures: tuple[Measure, Measure], points: Sequence[RankingPoint]) -> Drawing:
    """The points with their 95% intervals and, where labels are unknown, the bounds of bias as thin lines.

    A ranking that has bounds alone is their line, without a point.
    """
    called = _legend_names(points)
    names = list(dict.fromkeys(called))
    references = [name for name, point in zip(called, points, strict=True) if point.reference]
    own = [name for name in names if name not in references]
    colours = {name: COLOURS[n % len(COLOURS)] for n, name in enumerate(own)} | dict.fromkeys(references, _REFERENCE)
    shapes = dict.fromkeys(own, "circle") | dict(zip(references, _REFERENCE_SHAPES, strict=False))
    rows = [_row(point, name, step) for step, (name, point) in enumerate(zip(called, points, strict=True))]
    for row, larger in zip(rows, _covered(points), strict=True):
        row["size"] = _SYMBOL * (1 + 2 * larger)
    titles = {
        "x": f"{shown_name(measures[0])} ({direction(measures[0])})",
        "y": [shown_name(measures[1]), f"({direction(measures[1])})"],
    }
    legend = {"title": None, "orient": "top", "columns": 2, "labelLimit": 0, "symbolOpacity": 1}

    def by_ranking(values: Mapping[str, str]) -> dict[str, object]:
        scale = {"domain": names, "range": [values[name] for name in names]}
        return {"field": "ranking", "type": "nominal", "sort": None, "legend": legend, "scale": scale}

    def on(axis: str, field: str) -> dict[str, object]:
        return {"field": field, "type": "quantitative", "title": titles[axis], "scale": {"zero": False}}

    def layer(mark: Mapping[str, object], known: Sequence[str], **encoding: object) -> list[dict[str, object]]:
        """A mark of the points of which these fields are known; none without one."""
        there = [row for row in rows if all(row[name] is not None for name in known)]
        encoding = {"color": by_ranking(colours), **encoding}
        return [{"data": {"values": there}, "mark": mark, "encoding": encoding}] if there else []

    x, y, rule = on("x", "utility"), on("y", "bias"), {"type": "rule", "strokeWidth": 1.5}
    tips = (("name", "ranking"), ("utility_text", str(measures[0])), ("bias_text", str(measures[1])))
    tooltip = [{"field": field, "type": "nominal", "title": title} for field, title in tips]
    layers: list[dict[str, object]] = []
    if resolve(measures[1]).better == "nearer zero":
        encoding = {"y": on("y", "zero")}
        layers.append(
            {"data": {"values": [{"zero": 0}]}, "mark": {"type": "rule", "strokeDash": [4, 4]}, "encoding": encoding}
        )
    bounds = {**rule, "strokeWidth": 1, "opacity": 0.6}
    layers += layer(bounds, ["bound_low"], x=x, y=on("y", "bound_low"), y2={"field": "bound_high"})
    layers += layer(rule, ["bias", "utility_low"], x=on("x", "utility_low"), x2={"field": "utility_high"}, y=y)
    layers += layer(rule, ["bias_low"], x=x, y=on("y", "bias_low"), y2={"field": "bias_high"})
    if any(point.series is not None for point in points):
        order = {"field": "step", "type": "quantitative"}
        layers += layer({"type": "line", "strokeWidth": 1.5}, ["bias"], x=x, y=y, order=order)
    symbols = {"type": "point", "filled": True, "opacity": 1}
    size = {"field": "size", "type": "quantitative", "scale": None, "legend": None}
    layers += layer(symbols, ["bias"], x=x, y=y, shape=by_ranking(shapes), size=size, tooltip=tooltip)
    about = f"Effectiveness ({measures[0]}) against bias ({measures[1]})"
    return Drawing("tradeoff", about, {"width": WIDTH, "height": HEIGHT, "layer": layers})


def _covered(points: Sequence[RankingPoint]) -> list[int]:
    """How many later points lie on each one, which is drawn larger so that it shows around them."""
    places = [(number(point.utility.mean, 3), number(point.bias.mean, 3)) for point in points]
    return [places[n + 1 :].count(place) for n, place in enumerate(places)]


def _legend_names(points: Sequence[RankingPoint]) -> list[str]:
    """Each point's name in the legend, cut in the middle where it is long; numbered where two are cut to the same."""
    names = [plain(point.series or point.name) for point in points]
    cut = {name: _cut(name, _LONGEST) for name in names}
    shorts = list(cut.values())
    for number_, name in enumerate(cut, 1):
        if shorts.count(cut[name]) > 1:
            cut[name] = f"{number_} {_cut(name, _LONGEST - 4)}"
    return [cut[name] for name in names]


def _cut(name: str, most: int) -> str:
    return name if len(name) <= most else f"{name[: most // 2]}…{name[-(most // 2 - 1) :]}"


def _row(point: RankingPoint, name: str, step: int) -> dict[str, object]:
    """A point's data; ``name``: in the legend; ``step``: its place on a line."""
    utility, bias = point.utility, point.bias
    # Without a mean the bounds are all there is.
    ends = {"utility": utility.ci95, "bias": None if bias.mean is None else bias.ci95, "bound": bias.bounds}
    return {
        "name": f"{plain(point.name)}{' (reference ranking)' * point.reference}",
        "ranking": name,
        "utility": utility.mean,
        "bias": bias.mean,
        "utility_text": str(utility),
        "bias_text": str(bias),
        "step": step,
        **{f"{axis}_low": of and of[0] for axis, of in ends.items()},
        **{f"{axis}_high": of and of[1] for axis, of in ends.items()},
    }
