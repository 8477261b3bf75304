"""The report's charts as Vega-Lite specifications without data; its script adds data, titles and colours."""

from __future__ import annotations

import json

from evenrank.reports.folding import asset

GIVEN_SHAPES = ("circle", "square", "triangle-up", "triangle-down", "triangle-right", "triangle-left")
REFERENCE_SHAPES = {"random": "cross", "neutral-first": "diamond", "relevance-first": "star"}
DASHES = ([1, 0], [7, 3], [2, 3], [9, 3, 2, 3], [5, 2], [12, 4])


def specifications() -> dict[str, dict[str, object]]:
    """The charts by the names that the script uses.

    * ``plane``: effectiveness against bias, a labelled point with two intervals for each run, and behind it the bounds
      of bias; a run that has bounds alone is their line, without a point.
    * ``queries``: one bar per query, sorted.
    * ``depth``: one line per run over the ranks, with its shape at some of them.
    * ``ties``: one row per run for one measure: tie range as a band, interval as a line, mean and tie mean as points.
    * ``origins``: up to three rows per run for one measure: what its order adds, what a perfect one would, and the
      difference.

    A string that starts with ``@`` is a placeholder for the script; ``["@runs"]`` becomes a list. Runs are
    distinguished by shape and colour, as in the page's legend, and so have none in the charts. The script removes the
    layer ``zero``, a line at 0, if 0 has no meaning.
    """
    specifications: dict[str, dict[str, object]] = json.loads(asset("charts.json"))
    return specifications


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
