"""What every measure can do, and what measures that are weighted sums over ranks are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from ir_measures import Measure
from ir_measures.measures import ParamInfo
from ir_measures.measures.base import Agg

from evenrank.groups.formulas import MAGNITUDES
from evenrank.io.types import Array

from .by_relevance import relevance_first
from .joined import JoinedRun
from .ranked_lists import expand

Better = Literal["higher", "nearer zero"]

TIE_DRAWS = 200
CUTOFF = ParamInfo(dtype=int, required=True, desc="ranking cutoff")
MAGNITUDE = ParamInfo(dtype=str, choices=list(MAGNITUDES), default="tf", desc="group magnitude")
POLES = ParamInfo(dtype=str, default=None, desc="groups to compare, 'A,B', positive first; B may be 'rest'")


@dataclass(frozen=True, slots=True)
class TieFigures:
    """What ties do to a run's figure.

    ``expected`` [Q]: each query's expectation over the orders of tied documents (None for a figure without one);
    ``mean``: the figure's expectation; ``range``: its smallest and largest value. None if undefined or unknown.
    ``drawn``: the range is that of 200 random orders, and all orders may have a wider one.
    """

    expected: Array | None
    mean: float | None
    range: tuple[float, float] | None
    drawn: bool = False


class RunMeasure:
    """How a measure is computed from a :class:`JoinedRun`.

    A run's figure is made of *parts*: one array of values per query, or several (ΔA-PRF has one for each pole).
    :meth:`combine` takes the parts' means to the figure, and so does it with their bootstrap means.

    ``better``: which change is an improvement; ``whole_run``: a figure of the run as a whole rather than a mean over
    queries; ``signed``: the sign of a value says towards which pole; ``drawn``: what ties do to it is drawn rather than
    computed; ``undirected``: neither a larger nor a smaller value is better by itself; ``least`` and ``most``: no value
    is beyond; ``of_rankings``: it looks at all rankings of a system; ``meaning``: one sentence for readers of a report.
    """

    better: Better = "higher"
    whole_run = False
    signed = False
    needs_table = False
    needs_qrels = False
    needs_background = False
    part_count = 1
    drawn = False
    undirected = False
    of_rankings = False
    least, most = -np.inf, np.inf
    meaning = ""

    def queries(self, run: JoinedRun) -> pl.Series:
        """The ids [Q] of the queries that the values belong to."""
        return run.queries

    def values(self, run: JoinedRun) -> Array:
        """The value [Q] of each query; NaN is undefined."""
        raise NotImplementedError

    def expected(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The expectation [Q] of each query's value over the orders of its tied documents.

        ``random``: over random orders of all its candidates.
        """
        raise NotImplementedError

    def bounds(self, run: JoinedRun) -> tuple[Array, Array]:
        """The smallest and the largest value [Q] of each query over the orders of its tied documents."""
        raise NotImplementedError

    def label_bounds(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, Array] | None:
        """The least and the largest value [Q], all at once, over every way to label the unknown; None if not known."""
        return None

    def bounds_of_figure(self, ends: tuple[float, float]) -> tuple[float, float]:
        """The figure's bounds from those of the mean of the values."""
        return ends

    def looked_at(self, run: JoinedRun) -> Array | None:
        """The places of the documents that the values depend on; None: all of them."""
        cutoff = self.params.get("cutoff") if isinstance(self, Measure) else None
        if cutoff is None:
            return None
        places, _ = expand(run.lists.offsets[:-1], np.minimum(run.lists.lengths, cutoff))
        return places

    def parts(self, run: JoinedRun, *, random: bool = False) -> tuple[Array, ...]:
        """The arrays [Q] that the figure is made of; ``random``: their expectation over random orders."""
        return (self.expected(run, random=True) if random else self.values(run),)

    def per_query(self, parts: Sequence[Array]) -> Array:
        """Each query's value [Q] from the parts."""
        return parts[0]

    def combine(self, means: Sequence[Array]) -> Array:
        """The run's figure from the means of its parts, or figures [...] from as many means [...]."""
        return self.per_query(means)

    def figure(self, parts: Sequence[Array]) -> float:
        """The run's figure; NaN if a part has no value."""
        return float(self.combine([np.asarray(np.nan if (m := mean_of(part)) is None else m) for part in parts]))

    def by_relevance(self, run: JoinedRun) -> Array:
        """The expectation [Q] of each query's value with its candidates by falling grade, equal grades in any order."""
        return self.expected(relevance_first(run))

    def parts_by_relevance(self, run: JoinedRun) -> tuple[Array, ...]:
        """The arrays [Q] that the figure is made of, in the expectation of :meth:`by_relevance`."""
        return (self.by_relevance(run),)

    def figure_by_relevance(self, run: JoinedRun) -> float | None:
        """The figure's expectation by falling grade, if that is not the figure of those parts; else None."""
        return None

    def label_bounds_by_relevance(self, run: JoinedRun) -> tuple[Array, Array] | None:
        """As :meth:`label_bounds`, with the candidates by falling grade."""
        return None

    def ties(self, run: JoinedRun) -> TieFigures:
        """What ties do to the run's figure."""
        expected = self.expected(run)
        low, high = map(mean_of, self.bounds(run))
        return TieFigures(expected, mean_of(expected), None if low is None or high is None else (low, high))

    def random_figure(self, run: JoinedRun) -> float | None:
        """The figure's expectation over random orders, if that is not the figure of the expected parts; else None."""
        return None

    def figure_draws(self, run: JoinedRun, *, random: bool = False) -> Array:
        """The figure, before any absolute value, in each of 200 random orders of tied documents (or all candidates)."""
        raise NotImplementedError

    def permutation_p(self, parts: Sequence[Array], seed: int) -> float | None:
        """The two-sided p that the figures of two runs differ, for a figure of the whole run; None without a test.

        ``parts``: the values [n, 2] of both runs on the queries where both have one, for each part.
        """
        return None


class FigureOfParts(Agg):  # type: ignore[misc]
    """Collects a measure's values in ir_measures: undefined ones are skipped, where ir_measures would count 0."""

    def __init__(self, measure: RunMeasure) -> None:
        self.measure = measure
        self.parts: dict[int, list[float]] = {}

    def add(self, value: float) -> None:
        """Takes a query's value (see :class:`PartValue`); NaN is undefined."""
        part = value.part if isinstance(value, PartValue) else 0
        if not np.isnan(value):
            self.parts.setdefault(part, []).append(float(value))

    def result(self) -> float:
        """The run's figure; NaN if a part has no value."""
        return self.measure.figure([np.array(self.parts.get(part, [])) for part in range(self.measure.part_count)])


class PartValue(float):
    """A query's value in one of several parts of a figure."""

    part: int

    def __new__(cls, value: float, part: int) -> PartValue:
        self = super().__new__(cls, value)
        self.part = part
        return self


class BiasMeasure(Measure, RunMeasure):  # type: ignore[misc]
    """A measure of how a ranking treats groups, computed from a group table.

    A subclass names itself (``__name__``, ``NAME``, ``PRETTY_NAME``; ``SPELLED`` in letters alone if the name has
    others) and its parameters (``SUPPORTED_PARAMS``); its docstring is its page in the documentation.
    """

    DEFAULT = float("nan")
    SPELLED: str | None = None
    better: Better = "nearer zero"
    needs_table = True

    def aggregator(self) -> FigureOfParts:
        """Collects per-query values in ir_measures."""
        return FigureOfParts(self)

    @property
    def poles(self) -> tuple[str, str] | None:
        """The poles that the parameter ``poles`` names; None means those of the group table."""
        text = self["poles"]
        if text is None:
            return None
        first, _, second = (part.strip() for part in text.partition(","))
        return first, second


def mean_of(values: Array) -> float | None:
    """The mean of the values that are defined; None if none is."""
    return float(np.nanmean(values)) if (~np.isnan(values)).any() else None
