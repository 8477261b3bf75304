"""What an audit found: figures, comparisons and rankings."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank._wording import counted
from evenrank.groups import Lexicon
from evenrank.io import Provenance
from evenrank.io.errors import EvenrankError, UnknownNameError, shown
from evenrank.measures import Lacking, is_bias, parse_measure

from .words import Words

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
    than 5% below the baseline's, None for bias; ``tie_difference`` and ``tie_p``: difference and t-test of each
    query's expectation over the orders of tied documents, which no order of ids can decide.

    ``n`` queries have a value in both, on which the run has ``mean`` and the baseline ``baseline_mean``; ``n_poles``:
    of those, the queries of each pole of ΔA-PRF; ``partial``: some query has a value in only one of the two, so these
    are not the means of the figures. ``unequal_depth``: one of the lists is so much shorter, within the measure's
    cutoff, that depth rather than order decides.
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
    n: int = 0
    mean: float | None = None
    baseline_mean: float | None = None
    n_poles: tuple[int, int] | None = None
    partial: bool = False
    unequal_depth: bool = False

    @property
    def significant(self) -> bool:
        """Whether the Holm-corrected p is below .05."""
        return self.holm_p is not None and self.holm_p < SIGNIFICANT

    def to_dict(self, whole_run: bool) -> dict[str, Any]:
        """The comparison as JSON values."""
        names = ["difference", "relative", "better", "equal", "worse", "t_p", "wilcoxon_p", "holm_p"]
        names += ["ci95", "p"] if whole_run else []
        names += ["n", "mean", "baseline_mean"] + ["n_poles"] * (self.n_poles is not None) + ["unequal_depth"]
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

    def __repr__(self) -> str:
        value = "no value" if self.mean is None else f"{self.mean:.4f}"
        ends = "" if self.ci95 is None else f" [{self.ci95[0]:.4f}, {self.ci95[1]:.4f}]"
        return f"Figure({self.measure}: {value}{ends}, {counted(self.n, 'query')})"

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
    ``absent``: judged queries that the run lacks; ``lacking``: its documents without text, None where all have one.
    """

    name: str
    queries: int
    figures: dict[str, Figure]
    tie_share: float
    by_depth: pl.DataFrame = field(repr=False)
    absent: int = 0
    lacking: Lacking | None = None

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON values."""
        missing = None
        if self.lacking is not None:
            names = ("documents", "total", "share", "depth", "queries")
            missing = {name: getattr(self.lacking, name) for name in names}
        return {
            "queries": self.queries,
            "absent": self.absent,
            "missing": missing,
            "measures": {name: figure.to_dict() for name, figure in self.figures.items()},
        }

    def __getitem__(self, measure: str | Measure) -> Figure:
        """A measure's figure. Raises UnknownNameError for one that was not measured."""
        name = str(measure)
        if name not in self.figures:
            # However it is written: its parameters in another order, say.
            with suppress(EvenrankError):
                name = str(parse_measure(measure))
        if name not in self.figures:
            raise UnknownNameError(f"no measure {shown(measure)} (the measures are {', '.join(self.figures)})")
        return self.figures[name]

    def __repr__(self) -> str:
        means = ", ".join(
            f"{name} {'none' if figure.mean is None else f'{figure.mean:.4f}'}" for name, figure in self.figures.items()
        )
        return f"RunAudit({self.name}: {counted(self.queries, 'query')}, {means})"

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
    warnings: tuple[str, ...] = ()
    """The notes that stand in the first lines: who reads no further must have read them."""
    unequal_depth: tuple[str, ...] = ()
    """The measures that the runs' unequal depths decide."""
    all_neutral: bool = False
    """Whether no document of the background is other than neutral: then NFaiRR says nothing."""
    provenance: Provenance | None = field(default=None, repr=False, compare=False)
    words: Words | None = field(default=None, repr=False)
    """Which words drive the figures; None where there are no texts to see them in."""

    @overload
    def __getitem__(self, name: str) -> RunAudit: ...

    @overload
    def __getitem__(self, name: tuple[str, str | Measure]) -> Figure: ...

    def __getitem__(self, name: str | tuple[str, str | Measure]) -> RunAudit | Figure:
        """A run's figures, or one of them: ``result["BM25"]``, ``result["BM25", "nDCG@10"]``.

        Raises UnknownNameError, a KeyError, that names the runs or measures there are.
        """
        if isinstance(name, tuple):
            run, measure = name
            return self[run][measure]
        for one in self.runs:
            if one.name == name:
                return one
        raise UnknownNameError(f"no run {shown(name)} (the runs are {', '.join(run.name for run in self.runs)})")

    @property
    def measures(self) -> list[Measure]:
        """The measures, utility first."""
        return [figure.measure for figure in self.runs[0].figures.values()]

    @property
    def judged(self) -> bool:
        """Whether effectiveness is known."""
        return any(not is_bias(measure) for measure in self.measures)
