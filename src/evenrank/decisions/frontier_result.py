"""A frontier as text, as JSON and as a page."""

from __future__ import annotations

from dataclasses import dataclass, field

from ir_measures import Measure

from evenrank.io import Provenance
from evenrank.reports.page import Page
from evenrank.reports.result import Result

from .frontier_points import EqualBias, Point


@dataclass(frozen=True, repr=False)
class Frontier(Result):
    """What :func:`evenrank.frontier` returns.

    Attributes:
        name: The run's name.
        points: The run, every method at every strength, the runs beside it, and the references.
        equal: The methods at the same bias, the one that costs least first.
        measures: Of effectiveness and of bias.
        queries: Number of queries that are reported.
        settings, notes, provenance: How it was made.
    """

    name: str
    points: tuple[Point, ...]
    equal: tuple[EqualBias, ...]
    measures: tuple[Measure, Measure]
    queries: int
    settings: dict[str, object]
    notes: tuple[str, ...]
    provenance: Provenance | None = field(default=None, compare=False)

    def __getitem__(self, name: str) -> Point:
        """The point of that name."""
        return next(point for point in self.points if point.name == name)

    def page(self) -> Page:
        """The figures as a page."""
        from .frontier_page import frontier_page

        return frontier_page(self)

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {
            "run": self.name,
            "utility": str(self.measures[0]),
            "bias": str(self.measures[1]),
            "queries": self.queries,
            "settings": self.settings,
            "points": [point.to_dict() for point in self.points],
            "equal_bias": [one.to_dict() for one in self.equal],
            "notes": list(self.notes),
        }
