"""What an audit found: figures, comparisons and rankings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.groups import Lexicon
from evenrank.measures import is_bias

Array = np.ndarray[Any, Any]
Interval = tuple[float, float]
RANDOM, NEUTRAL_FIRST = "random", "neutral-first"
REFERENCES = (RANDOM, NEUTRAL_FIRST)
SIGNIFICANT = 0.05


@dataclass(frozen=True, slots=True)
class Comparison:
    """A run against the baseline on one measure, on the queries where both have a value.

    ``difference``: mean of run − baseline; ``relative``: difference over the baseline's mean, None where that is
    within 1e-6 of 0; ``better``, ``equal``, ``worse``: queries; ``t_p``, ``wilcoxon_p``: two-sided, not corrected;
    ``holm_p``: the t-test's p (the permutation p for a measure of the whole run) corrected over the runs compared;
    ``ci95`` and ``p``: only for a measure of the whole run; ``non_inferior``: whether utility is shown to be no more
    than 5 % below the baseline's, None for bias; ``tie_difference`` and ``tie_p``: difference and t-test of each
    query's expectation over the orders of tied documents, which no order of ids can decide.
    """

    difference: float | None
    relative: float | None = None
    better: int | None = None
    equal: int | None = None
    worse: int | None = None
    t_p: float | None = None
    wilcoxon_p: float | None = None
    holm_p: float | None = None
    ci95: Interval | None = None
    p: float | None = None
    non_inferior: bool | None = None
    tie_difference: float | None = None
    tie_p: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the Holm-corrected p is below .05."""
        return self.holm_p is not None and self.holm_p < SIGNIFICANT

    def to_dict(self, whole_run: bool) -> dict[str, Any]:
        """The comparison as JSON values."""
        names = ["difference", "relative", "better", "equal", "worse", "t_p", "wilcoxon_p", "holm_p"]
        names += ["ci95", "p"] if whole_run else []
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True)
class Figure:
    """One measure of one run.

    ``values`` [A]: the value of each of the audit's queries, NaN where it has none; ``n`` queries have one,
    ``undefined`` should and have none; ``ci95``: bootstrap interval of the mean; ``tie_mean``: expectation over orders
    of tied documents; ``tie_range``: smallest and largest value over them.
    """

    measure: Measure
    mean: float | None
    n: int
    undefined: int
    ci95: Interval | None
    tie_mean: float | None
    tie_range: Interval | None
    values: Array
    vs_baseline: Comparison | None = None

    @property
    def tie_sensitive(self) -> bool:
        """Whether the order of tied documents moves the figure by more than its confidence interval is wide."""
        if self.tie_range is None or self.ci95 is None:
            return False
        return self.tie_range[1] - self.tie_range[0] > self.ci95[1] - self.ci95[0]

    @property
    def whole_run(self) -> bool:
        """Whether this is a figure of the run as a whole rather than a mean over queries."""
        return bool(getattr(self.measure, "whole_run", False))

    def to_dict(self) -> dict[str, Any]:
        """The figure as JSON values."""
        names = ["mean", "n", "undefined", "ci95", "tie_mean", "tie_range"]
        result: dict[str, Any] = {name: getattr(self, name) for name in names}
        result["vs_baseline"] = self.vs_baseline.to_dict(self.whole_run) if self.vs_baseline else None
        return result


@dataclass(frozen=True, slots=True)
class RunAudit:
    """One run's figures, by the measure's text; ``tie_share`` is that of the first 10 ranks.

    ``by_depth``: the run's mean signed magnitude and neutrality of the documents down to each rank (for the report).
    """

    name: str
    queries: int
    figures: dict[str, Figure]
    tie_share: float
    by_depth: pl.DataFrame = field(repr=False)

    @property
    def reference(self) -> bool:
        """Whether this is a reference ranking rather than a run that was given."""
        return self.name in REFERENCES


@dataclass(frozen=True)
class Findings:
    """An audit: its settings, the figures of every run and of the reference rankings, and what to know about them."""

    settings: dict[str, Any]
    baseline: str | None
    runs: tuple[RunAudit, ...]
    notes: tuple[str, ...]
    queries: pl.Series = field(repr=False)
    """The audit's queries [A], to which the figures' values belong."""
    rankings: pl.DataFrame = field(repr=False)
    """The first documents of every run: run, query_id, rank, doc_id, score, tied, counts, neutrality, relevance."""
    lexicon: Lexicon | None = field(repr=False)
    sources: dict[str, Any] = field(repr=False)
    """Where the report finds texts: ``collection`` and ``queries``, as given to the audit."""

    def __getitem__(self, name: str) -> RunAudit:
        for run in self.runs:
            if run.name == name:
                return run
        raise KeyError(name)

    @property
    def measures(self) -> list[Measure]:
        """The measures, utility first."""
        return [figure.measure for figure in self.runs[0].figures.values()]

    @property
    def judged(self) -> bool:
        """Whether effectiveness is known."""
        return any(not is_bias(measure) for measure in self.measures)
