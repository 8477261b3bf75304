"""The report's charts as altair specifications without data; its script adds data, titles and colours.

A string that starts with ``@`` is a placeholder for the script; ``["@runs"]`` becomes a list. Runs are distinguished
by shape and colour, as in the page's legend.
"""

from __future__ import annotations

from typing import Any

GIVEN_SHAPES = ("circle", "square", "triangle-up", "triangle-down", "triangle-right", "triangle-left")
REFERENCE_SHAPES = {"random": "cross", "neutral-first": "diamond", "relevance-first": "star"}
DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3], [5, 2], [12, 4])
_CORNERS = {"ne": (9, -9, "left"), "nw": (-9, -9, "right"), "se": (9, 13, "left"), "sw": (-9, 13, "right")}


def specifications() -> dict[str, dict[str, object]]:
    """The charts by the names that the script uses."""
    drawn = {"plane": _plane(), "queries": _queries(), "depth": _depth(), "ties": _ties()}
    return {**drawn, "origins": _origins(), "waterfall": _waterfall()}


def styles(runs: list[tuple[str, bool]]) -> list[dict[str, object]]:
    """Shape, dash and colour number (−1 for references) of each run, given as (name, whether it is a reference).

    Repeated shapes and dashes are shifted against the colours, so that 36 runs look different.
    """
    result: list[dict[str, object]] = []
    given = 0
    for name, reference in runs:
        if reference:
            result.append({"shape": REFERENCE_SHAPES.get(name, "cross"), "colour": -1, "dash": [2, 2]})
            continue
        shift = given + given // len(GIVEN_SHAPES)
        shape, dash = GIVEN_SHAPES[shift % len(GIVEN_SHAPES)], DASHES[shift % len(DASHES)]
        result.append({"shape": shape, "colour": given, "dash": dash})
        given += 1
    return result


def _plane() -> dict[str, object]:
    """Effectiveness against bias: a labelled point with two intervals and the bounds of bias for each run.

    A run that has bounds alone is their line, without a point.
    """
    import altair as alt

    runs = _run_scales(alt)
    x = alt.X("x:Q", title="@x", scale=alt.Scale(zero=False, nice=True, padding=24), axis=alt.Axis(tickCount=8))
    y = alt.Y("y:Q", title="@y", scale=alt.Scale(zero=False, nice=True, padding=24))
    base = alt.Chart(alt.NamedData("points"))
    tooltip = [
        alt.Tooltip("run:N", title="run"),
        alt.Tooltip("xText:N", title="@xName"),
        alt.Tooltip("yText:N", title="@yName"),
    ]
    zero = _zero(alt, "y")
    # Bounds are behind all else, thin and light.
    bounds = (
        base.transform_filter("datum.bounded")
        .mark_rule(strokeWidth=1.25, opacity=0.6)
        .encode(y=alt.Y("least:Q", title="@y"), y2="most:Q", x=x, color=runs["color"], tooltip=tooltip)
        .properties(name="bounds")
    )
    known = base.transform_filter("datum.known")
    across = (
        known.mark_rule(strokeWidth=2, opacity=0.75)
        .encode(x=alt.X("xLow:Q", title="@x"), x2="xHigh:Q", y=y, color=runs["color"])
        .properties(name="across")
    )
    up = (
        known.mark_rule(strokeWidth=2, opacity=0.75)
        .encode(y=alt.Y("yLow:Q", title="@y"), y2="yHigh:Q", x=x, color=runs["color"])
        .properties(name="interval")
    )
    points = (
        known.mark_point(size=150, filled=True, opacity=1)
        .encode(x=x, y=y, color=runs["color"], shape=runs["shape"], tooltip=tooltip)
        .properties(name="point")
    )
    labels = [
        base.transform_filter(f"datum.corner === '{corner}'")
        .mark_text(dx=dx, dy=dy, align=align, fontSize=13, fontWeight=600)
        .encode(x=x, y=y, text="label:N", color=runs["color"])
        .properties(name=corner)
        for corner, (dx, dy, align) in _CORNERS.items()
    ]
    return _finished(alt.layer(zero, bounds, across, up, points, *labels), height=440)


def _queries() -> dict[str, object]:
    """One bar per query, sorted."""
    import altair as alt

    bars = (
        alt.Chart(alt.NamedData("bars"))
        .mark_bar(cursor="pointer")
        .encode(
            x=alt.X("place:O", title="@x", axis=alt.Axis(labels=False, ticks=False), scale=alt.Scale(paddingInner=0.1)),
            y=alt.Y("difference:Q", title="@y"),
            color=alt.Color("sign:N", legend=None, scale=alt.Scale(domain=["above", "below"], range=["@signs"])),
            tooltip=[
                alt.Tooltip("query:N", title="query"),
                alt.Tooltip("id:N", title="id"),
                alt.Tooltip("first:N", title="@first"),
                alt.Tooltip("second:N", title="@second"),
                alt.Tooltip("differenceText:N", title="difference"),
            ],
        )
    )
    zero = _zero(alt, "y")
    return _finished(alt.layer(bars, zero), height=300)


def _depth() -> dict[str, object]:
    """One line per run over the ranks, with its shape at some of them."""
    import altair as alt

    runs = _run_scales(alt)
    base = alt.Chart(alt.NamedData("ranks"))
    x = alt.X("rank:Q", title="down to rank", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(values=["@ranks"]))
    y = alt.Y("value:Q", title="@y", scale=alt.Scale(zero=False, nice=True))
    dash = alt.StrokeDash("run:N", legend=None, scale=alt.Scale(domain=["@runs"], range=["@dashes"]))
    lines = base.mark_line(strokeWidth=2.5).encode(x=x, y=y, color=runs["color"], strokeDash=dash)
    points = (
        base.transform_filter("datum.marked")
        .mark_point(size=70, filled=True, opacity=1)
        .encode(
            x=x,
            y=y,
            color=runs["color"],
            shape=runs["shape"],
            tooltip=[alt.Tooltip("run:N"), alt.Tooltip("rank:Q"), alt.Tooltip("text:N", title="@y")],
        )
    )
    zero = _zero(alt, "y")
    return _finished(alt.layer(zero, lines, points), height=300)


def _ties() -> dict[str, object]:
    """One row per run for one measure: tie range as a band, interval as a line, mean and tie mean as points."""
    import altair as alt

    base = alt.Chart(alt.NamedData("rows"))
    y = alt.Y("run:N", title=None, sort=["@runs"], axis=alt.Axis(labelLimit=130, ticks=False, domain=False))
    x = alt.X("tieLow:Q", title=None, scale=alt.Scale(zero=False, nice=True, padding=10), axis=alt.Axis(tickCount=6))
    tooltip = [
        alt.Tooltip("run:N"),
        alt.Tooltip("meanText:N", title="mean"),
        alt.Tooltip("intervalText:N", title="95% interval"),
        alt.Tooltip("tieMeanText:N", title="tie mean"),
        alt.Tooltip("tieText:N", title="tie range"),
    ]
    band = base.mark_bar(height=16, cornerRadius=2, fill="@band", stroke="@bandEdge", strokeWidth=1).encode(
        x=x, x2="tieHigh:Q", y=y, tooltip=tooltip
    )
    line = (
        base.mark_rule(strokeWidth=2.5, stroke="@ink")
        .encode(x=alt.X("low:Q", title=None), x2="high:Q", y=y, tooltip=tooltip)
        .properties(name="interval")
    )
    mean = base.mark_point(shape="circle", size=70, filled=True, fill="@ink", opacity=1).encode(
        x=alt.X("mean:Q", title=None), y=y, tooltip=tooltip
    )
    expected = (
        base.mark_point(shape="diamond", size=110, fill="@paper", stroke="@ink", strokeWidth=1.75, opacity=1)
        .encode(x=alt.X("tieMean:Q", title=None), y=y, tooltip=tooltip)
        .properties(name="tie mean")
    )
    zero = _zero(alt, "x")
    return _finished(alt.layer(zero, band, line, mean, expected), height=30)


def _origins() -> dict[str, object]:
    """Up to three rows per run for one measure: what its order adds, what a perfect one would, and the difference."""
    import altair as alt

    base = alt.Chart(alt.NamedData("rows"))
    y = alt.Y("run:N", title=None, sort=["@given"], axis=alt.Axis(labelLimit=130, ticks=False, domain=False, grid=True))
    x = alt.X("value:Q", title="@x", scale=alt.Scale(zero=False, nice=True, padding=14), axis=alt.Axis(tickCount=6))
    place = alt.YOffset("kind:N", scale=alt.Scale(domain=["@kinds"], paddingOuter=0.35))
    colour = alt.Color("kind:N", legend=None, scale=alt.Scale(domain=["@kinds"], range=["@paints"]))
    shape = alt.Shape("kind:N", legend=None, scale=alt.Scale(domain=["@kinds"], range=["@shapes"]))
    tooltip = [
        alt.Tooltip("run:N"),
        alt.Tooltip("what:N", title="what"),
        alt.Tooltip("valueText:N", title="@measure"),
        alt.Tooltip("intervalText:N", title="95% interval"),
        alt.Tooltip("pText:N", title="p"),
    ]
    line = (
        base.transform_filter("datum.low !== null")
        .mark_rule(strokeWidth=2.5)
        .encode(x=alt.X("low:Q", title="@x"), x2="high:Q", y=y, yOffset=place, color=colour, tooltip=tooltip)
        .properties(name="interval")
    )
    point = base.mark_point(size=110, filled=True, opacity=1).encode(
        x=x, y=y, yOffset=place, color=colour, shape=shape, tooltip=tooltip
    )
    return _finished(alt.layer(_zero(alt, "x"), line, point), height=60)


def _waterfall() -> dict[str, object]:
    """One row per step for one measure: a bar from the sum before to the sum after it, and its interval."""
    import altair as alt

    base = alt.Chart(alt.NamedData("steps"))
    y = alt.Y("label:N", title=None, sort=["@labels"], axis=alt.Axis(labelLimit=130, ticks=False, domain=False))
    x = alt.X("start:Q", title="@x", scale=alt.Scale(zero=False, nice=True, padding=12), axis=alt.Axis(tickCount=6))
    kinds = alt.Scale(domain=["up", "down", "level"], range=["@above", "@below", "@reference"])
    tooltip = [
        alt.Tooltip("name:N", title="step"),
        alt.Tooltip("addsText:N", title="adds"),
        alt.Tooltip("intervalText:N", title="95% interval"),
        alt.Tooltip("pText:N", title="p"),
        alt.Tooltip("sumText:N", title="sum"),
    ]
    bar = (
        base.mark_bar(height=18, fillOpacity=0.4, strokeWidth=1.5)
        .encode(
            x=x,
            x2="end:Q",
            y=y,
            fill=alt.Fill("kind:N", legend=None, scale=kinds),
            stroke=alt.Stroke("kind:N", legend=None, scale=kinds),
            tooltip=tooltip,
        )
        .properties(name="bar")
    )
    down = (
        base.transform_filter("datum.next !== null")
        .mark_rule(strokeDash=[3, 3], strokeWidth=1)
        .encode(x=alt.X("end:Q", title="@x"), y=y, y2="next:N")
        .properties(name="sum")
    )
    level = (
        base.mark_tick(thickness=3, size=24, opacity=1, color="@ink")
        .encode(x=alt.X("end:Q", title="@x"), y=y, tooltip=tooltip)
        .properties(name="level")
    )
    line = (
        base.transform_filter("datum.low !== null")
        .mark_rule(strokeWidth=2, color="@ink")
        .encode(x=alt.X("low:Q", title="@x"), x2="high:Q", y=y, tooltip=tooltip)
        .properties(name="interval")
    )
    return _finished(alt.layer(_zero(alt, "x"), down, bar, level, line), height=34)


def _zero(alt: Any, axis: str) -> Any:
    """A line at 0; the script removes it if 0 has no meaning."""
    return alt.Chart(alt.NamedData("zero"), name="zero").mark_rule(strokeDash=[4, 4]).encode(**{axis: alt.datum(0)})


def _run_scales(alt: Any) -> dict[str, object]:
    """Colour and shape of the runs, without a legend, which the page has."""
    return {
        "color": alt.Color("run:N", legend=None, scale=alt.Scale(domain=["@runs"], range=["@colours"])),
        "shape": alt.Shape("run:N", legend=None, scale=alt.Scale(domain=["@runs"], range=["@shapes"])),
    }


def _finished(chart: Any, height: int) -> dict[str, object]:
    specification: dict[str, object] = chart.properties(width="container", height=height).to_dict()
    # The page has its own configuration, and refers to no address.
    for name in ("config", "$schema"):
        specification.pop(name, None)
    specification["autosize"] = {"type": "fit-x", "contains": "padding"}
    return specification
