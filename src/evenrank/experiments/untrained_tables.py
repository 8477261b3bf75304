"""The tables of a run's reorderings without training, and of trained mitigations beside them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from .paper_tables import Row, Table, Value
from .untrained import WITHIN, Axis, Frontier, Line

Cells = Mapping[str, tuple[str, bool]]
"""For each column of a table the column of the rows, and whether its absolute value is shown."""


def frontier_rows(frontier: Frontier, cells: Cells, axis: Axis, labels: tuple[str, ...] = ()) -> list[Row]:
    """The run itself, and each method by strength; "(best)" marks the strength that development queries chose."""
    best = frontier.best(axis)
    named = [(frontier.run, "0", frontier.run)]
    for method, curve in frontier.curves.items():
        named += [(method, f"{s:g}{' (best)' if s == best[method] else ''}", row) for s, row in curve.items()]
    return [
        Row((*labels, method, strength), _measured(frontier, row, cells), control=row == frontier.run)
        for method, strength, row in named
    ]


def _measured(frontier: Frontier, row: str, cells: Cells) -> dict[str, Value]:
    found = {key: frontier.test.value(row, column, absolute=size) for key, (column, size) in cells.items()}
    return {key: value for key, value in found.items() if value.mean is not None}


def placed(frontier: Frontier, row: str, axis: Axis) -> tuple[Value, Value]:
    """Where a row stands in a plane: effectiveness, and bias."""
    bias = frontier.test.value(row, axis.column, absolute=not axis.rises)
    return frontier.test.value(row, frontier.utility), bias


def drawn(frontier: Frontier, axis: Axis) -> dict[str, list[tuple[str, Value, Value]]]:
    """The curve of each method from the run on, for a plane: name, effectiveness, and bias. It ends where it has lost a
    fifth of the effectiveness or doubled the bias: what lies beyond would leave no room for the rest."""

    def point(row: str) -> tuple[str, Value, Value]:
        return row, *placed(frontier, row, axis)

    own = point(frontier.run)
    found = {}
    for method, curve in frontier.curves.items():
        points = itertools.takewhile(lambda one: _near(one, own, axis), map(point, curve.values()))
        if curve:
            found[method] = [own, *points]
    return found


def _near(point: tuple[str, Value, Value], own: tuple[str, Value, Value], axis: Axis) -> bool:
    means = [value.mean for value in (*point[1:], *own[1:])]
    if None in means:
        return False
    useful, bias, before, least = (float(mean or 0.0) for mean in means)
    return useful >= 0.8 * before and (axis.rises or bias <= 2 * least)


def frontier_table(
    rows: Sequence[Row], headings: Mapping[str, str], labels: tuple[str, ...], run: str, digits: int = 3
) -> Table:
    """``run``: the name of the ranker whose runs are reordered."""
    notes = (
        "The protected group and the sign of the offsets are learnt on the development queries of each seed. (best):"
        " the strength with the least bias on those of the first seed that keeps 95% of the effectiveness there, the"
        " rule by which a trained term's weight is chosen. Intervals over seeds; with one seed, or where seeds share"
        " queries, bootstrap draws of the queries count too.",
    )
    title = f"Rebalance: {run}'s runs reordered, without training"
    return Table("Rebalance", title, (*labels, "method", "strength"), headings, tuple(rows), notes, digits)


def against_table(lines: Sequence[Line], labels: tuple[str, ...], utility: str, digits: int = 4) -> Table:
    """Each trained mitigation beside the reordering with the same bias."""
    rows = [
        Row(
            (*line.labels, line.trained, line.axis.heading, line.method or "none", line.mark),
            {} if line.difference.mean is None else {
                "difference": line.difference,
                "limit": Value(-line.limit, line.difference.n, line.difference.unit),
            },
            control=line.control,
        )
        for line in lines
    ]  # fmt: skip
    notes = (
        "Difference: what the reordering has at the trained mitigation's bias on the same queries, minus what that one"
        " has. The method is the best at that bias on the first seed's development queries; between two strengths by"
        " linear interpolation, which is what showing one order for a share of the queries has on average.",
        f"equal, not worse: by less than {WITHIN:.0%} of the untouched run's {utility}, by one-sided tests at 5%;"
        " beats: the 95% interval is above 0, too. It includes what chance does to the mitigation's own bias.",
    )
    headings = {"difference": f"{utility}: difference", "limit": "may lose"}
    title = "Trained mitigations against reordering at the same bias"
    return Table(
        "Rebalance against trained",
        title,
        (*labels, "trained", "bias", "method", "reordering"),
        headings,
        tuple(rows),
        notes,
        digits,
    )
