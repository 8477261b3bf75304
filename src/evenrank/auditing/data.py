"""The data of an audit: figures, comparisons and rankings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, overload

import polars as pl
from ir_measures import Measure

from evenrank.files.convert import PathLike
from evenrank.files.errors import EvenrankError, UnknownNameError, quoted
from evenrank.files.json_values import BY_QUERY, IF_KNOWN, INLINE, LEFT_OUT, named
from evenrank.files.types import EQUAL, Array
from evenrank.files.wording import counted, percent
from evenrank.groups import Lexicon
from evenrank.measures import Lacking, Share, is_bias, parse_measure, resolve
from evenrank.results.finding import Finding
from evenrank.results.result import Result, metric_entries
from evenrank.results.table import Interval, equation
from evenrank.stats.bounds import MeanBound
from evenrank.stats.compare import Comparison
from evenrank.stats.estimate import SIGNIFICANT, Estimate
from evenrank.stats.sampling import LabelSample

from .impact import GroupImpact
from .judge_check import JudgeCheck
from .word_attribution import Words

TIES = "it depends on the order of tied documents"
NOT_CHECKED = "not checked"
"""What the settings say of a judge whose grades stand alone."""


@dataclass(frozen=True, slots=True)
class OrderEffect:
    """Difference between a run's order and a reference order of its candidates, over queries where both are defined.

    Attributes:
        mean: Mean over queries of run minus reference; ``n``: number of queries.
        test: Whether the mean differs from 0, and from what random orders make of it.
        reference: The reference's figure over the same queries.
        tied: The same with the run's expectation over the orders of its tied documents; None where that is not known.
        values: The difference for each of the audit's queries, array of shape [Q]; NaN where it is undefined.
        leans: Whether the reference's figure differs from 0.
        sample: What the values owe to labels that were drawn.
        over_ties: The values' expectations over the orders of tied documents [Q]; None where nothing is tied.
    """

    also: ClassVar = ("tie_mean", "tie_p")
    mean: float
    n: int
    test: Comparison = field(metadata=INLINE)
    reference: float
    tied: Comparison | None = field(metadata=LEFT_OUT)
    values: Array = field(repr=False, metadata=BY_QUERY)
    leans: Comparison = field(metadata=LEFT_OUT)
    sample: LabelSample | None = field(default=None, repr=False, metadata=BY_QUERY)
    over_ties: Array | None = field(default=None, repr=False, metadata=BY_QUERY)

    @property
    def ci95(self) -> Interval | None:
        """The interval of the mean."""
        return self.test.ci95

    @property
    def tie_mean(self) -> float | None:
        """The mean with the run's expectation over the orders of its tied documents."""
        return None if self.tied is None else self.tied.mean

    @property
    def tie_p(self) -> float | None:
        """Whether that differs from 0."""
        return None if self.tied is None else self.tied.p

    @property
    def tie_sensitive(self) -> bool:
        """Whether ties decide: the mean over them lies outside the interval, or has another significance."""
        test, tied = self.test, self.tied
        if tied is None or tied.mean is None:
            return False
        outside = test.ci95 is not None and not test.ci95[0] <= tied.mean <= test.ci95[1]
        return outside or test.reason == TIES


RANDOM, NEUTRAL_FIRST, RELEVANCE_FIRST = "random", "neutral-first", "relevance-first"
REFERENCES = (RANDOM, NEUTRAL_FIRST, RELEVANCE_FIRST)
SHOWN_AS = {RANDOM: "candidates", RELEVANCE_FIRST: "ideal"}
"""What screens call two of the reference rankings."""


def shown_name(measure: Measure) -> str:
    """A measure's name on screens: without the target that an audit of labels has, a share by its group's name."""
    params = measure.params
    if type(measure) is type(Share) and "cutoff" in params:
        return f"Share of {params['group']}@{params['cutoff']}"
    return str(measure).replace("(target='candidates')", "")


@dataclass(frozen=True, slots=True, repr=False)
class RunComparison:
    """A run compared with the baseline on one measure, over the queries where both have a value.

    Attributes:
        difference: Mean of run minus baseline.
        test: Whether the difference is one, after Holm's correction over the runs compared and the measures of the same
            kind, effectiveness or bias. Where the order of tied documents, missing queries or the length of lists
            decides it, nothing can be told.
        relative: The difference divided by the baseline's mean; None if that mean is within 1e-6 of 0.
        better, equal, worse: Numbers of queries; None for a measure of the whole run.
        losses: Of effectiveness, whether it is shown to be no more than a share (5% by default) below the baseline's:
            of the values, of their expectations over the orders of tied documents, and of the queries that both runs
            have, where these are others. Empty of bias, and where there is nothing to lose.
        tied: Whether the queries' expectations over the orders of tied documents differ, which do not depend on how
            ties are broken; None where nothing is tied.
        sizes: Of a measure that is better nearer 0, whether one mean is further from it than the other, corrected
            alike; None of others.
        n: Number of queries with a value in both runs.
        mean, baseline_mean: The means over these ``n`` queries.
        partial: Whether some query has a value in only one of the runs, so that these are not the figures' means.
        unequal_depth: Whether one of the lists is so much shorter, within the measure's cutoff, that depth rather
            than order may decide.
    """

    also: ClassVar = ("no_loss",)
    difference: float | None
    test: Comparison = field(metadata=INLINE)
    relative: float | None = None
    better: int | None = None
    equal: int | None = None
    worse: int | None = None
    losses: tuple[MeanBound, ...] = field(default=(), metadata=LEFT_OUT)
    tied: Comparison | None = field(default=None, metadata=LEFT_OUT)
    sizes: Comparison | None = field(default=None, metadata=LEFT_OUT)
    n: int = 0
    mean: float | None = None
    baseline_mean: float | None = None
    partial: bool = False
    unequal_depth: bool = False

    def __repr__(self) -> str:
        difference = "no value" if self.difference is None else f"{self.difference:+.4f}"
        counts = "" if self.better is None else f", {self.better}/{self.equal}/{self.worse} better/equal/worse"
        p = "" if self.holm_p is None else f", {equation('Holm p', self.holm_p)}"
        return f"RunComparison({difference}{counts}{p}, {counted(self.n, 'query')})"

    @property
    def counts(self) -> tuple[int, int, int] | None:
        """Queries better, equal and worse; None for a measure of the whole run."""
        if self.better is None or self.equal is None or self.worse is None:
            return None
        return self.better, self.equal, self.worse

    @property
    def p(self) -> float | None:
        """Two-sided p of the difference; None where nothing can be told."""
        return self.test.p

    @property
    def holm_p(self) -> float | None:
        """The p-value after Holm's correction over the compared runs and the measures of the same kind."""
        return self.test.holm_p

    @property
    def ci95(self) -> Interval | None:
        """The interval of the difference."""
        return self.test.ci95

    @property
    def significant(self) -> bool:
        """Whether the difference is shown; of a reference ranking, which is not corrected for, never."""
        return self.test.holm_p is not None and self.test.shown

    @property
    def no_loss(self) -> bool | None:
        """Whether effectiveness is shown to be no more than the margin below the baseline's; None of bias."""
        if not self.losses:
            return None
        return not self.unequal_depth and all(loss.p_holds() <= SIGNIFICANT for loss in self.losses)


class Known(NamedTuple):
    """Number of a measure's rows whose label is known, and number of all its rows."""

    rows: int
    of: int

    def __str__(self) -> str:
        """The share that is known; of all but some, never 100%."""
        share = self.rows / self.of if self.of else 1.0
        return percent(share, 0 if share in (0.0, 1.0) or 0.01 <= share < 0.995 else 2)


@dataclass(frozen=True, slots=True)
class FromLabels:
    """How sampled labels enter an estimated figure: their number and the resulting intervals.

    ``ci95``: the interval for these queries, in which only which labels were drawn is chance (that of the figure is for
    queries like these); ``guess_alone``: what the guess says without labels, ``without_guess``: the interval for these
    queries of the labels without it, both None where there is no guess.
    """

    labels: int
    ci95: Interval | None
    guess_alone: float | None = field(default=None, metadata=IF_KNOWN)
    without_guess: Interval | None = field(default=None, metadata=IF_KNOWN)


@dataclass(frozen=True, slots=True)
class MetricValue:
    """Value of one measure for one run, with its interval, ties and comparisons.

    Attributes:
        mean: The mean over queries, or the value of a measure of the whole run; None if undefined.
        n: Number of queries with a value; ``undefined``: number of queries that should have one but do not.
        ci95: 95% interval of the mean; None with fewer than two queries, and where documents without a label could
            change it.
        lean: Of a signed measure, whether it differs from 0; None of others.
        tie_mean: Expectation over the orders of tied documents; ``tie_range``: the smallest and largest value.
        values: The value of each of the audit's queries, array of shape [Q]; NaN if a query has none.
        vs_baseline: The comparison with the baseline, if there is one.
        known: With labels, how many of the rows that the measure looks at are known, and how many it looks at.
        bounds: The smallest and largest figure over every way to label the unknown documents; None where that is not
            known exactly.
        vs_random_order: What the run's order adds to its own candidates in random order; ``vs_ideal_order``: what it
            has beyond an ideal order of them, by falling grade. None for reference rankings and for measures that are
            no weighted sum over ranks, the second also without judgements.
        greatest: The largest size that a query's value can have; of a measure without bounds, with the run's
            documents; None where that is not known.
        partly_labelled: Whether documents without a label could change it.
        from_labels: Of a figure that is estimated from labels that were drawn, what they make of it; ``sample``: what
            its values owe to them.
        parts: The arrays [Q] that the figure is made of if they are several, such as the two poles' PRF of ΔA-PRF.
        over_ties: The values' expectations over the orders of tied documents [Q]; None where nothing is tied.
    """

    measure: Measure = field(metadata=LEFT_OUT)
    mean: float | None
    n: int
    undefined: int
    ci95: Interval | None
    tie_mean: float | None
    tie_range: Interval | None
    values: Array = field(metadata=BY_QUERY)
    vs_baseline: RunComparison | None = None
    known: Known | None = field(default=None, metadata=IF_KNOWN)
    bounds: Interval | None = None
    vs_random_order: OrderEffect | None = None
    vs_ideal_order: OrderEffect | None = None
    lean: Comparison | None = field(default=None, metadata=IF_KNOWN)
    greatest: float | None = None
    partly_labelled: bool = field(default=False, metadata=LEFT_OUT)
    parts: tuple[Array, ...] = field(default=(), repr=False, metadata=BY_QUERY)
    from_labels: FromLabels | None = field(default=None, metadata=IF_KNOWN)
    sample: LabelSample | None = field(default=None, repr=False, metadata=BY_QUERY)
    over_ties: Array | None = field(default=None, repr=False, metadata=BY_QUERY)

    def __repr__(self) -> str:
        value = "no value" if self.mean is None else f"{self.mean:.4f}"
        ends = "" if self.ci95 is None else f" [{self.ci95[0]:.4f}, {self.ci95[1]:.4f}]"
        compared = self.vs_baseline
        against = "" if compared is None or compared.difference is None else f", {compared.difference:+.4f} vs baseline"
        return f"MetricValue({self.measure}: {value}{ends}, {counted(self.n, 'query')}{against})"

    @property
    def tie_sensitive(self) -> bool:
        """Whether the order of tied documents moves the figure by more than the width of its confidence interval."""
        if self.tie_range is None:
            return False
        # A single query has no interval: any effect counts.
        interval = EQUAL if self.ci95 is None else self.ci95[1] - self.ci95[0]
        return self.tie_range[1] - self.tie_range[0] > interval

    @property
    def whole_run(self) -> bool:
        """Whether this is a figure of the run as a whole rather than a mean over queries."""
        return resolve(self.measure).whole_run


@dataclass(frozen=True, slots=True)
class Unjudged:
    """How many of the documents in the first ``depth`` ranks of the judged queries have no judgement.

    ``rows``: number of these documents, queries together; ``unjudged``: of those, the ones without a judgement, which
    count as not relevant.
    """

    also: ClassVar = ("share",)
    depth: int
    rows: int
    unjudged: int

    @property
    def share(self) -> float:
        """The share of these documents that has no judgement."""
        return self.unjudged / self.rows if self.rows else 0.0


@dataclass(frozen=True, slots=True)
class KnownLabels:
    """The labels of the first ``depth`` ranks of all queries together.

    Attributes:
        rows: Number of rows; ``known``: of those, the ones whose document has a label.
        groups: The sum of the known documents' weights, by group.
        neutral: The weight of the known documents that is of no group.
    """

    also: ClassVar = ("unknown",)
    depth: int
    rows: int
    known: int
    groups: dict[str, float]
    neutral: float

    @property
    def unknown(self) -> int:
        """Number of rows without a label."""
        return self.rows - self.known


@dataclass(frozen=True, slots=True)
class RunAudit:
    """The values of one run, by measure.

    Attributes:
        queries: Number of the run's queries.
        measures: Metric values by the measure's text, such as ``"nDCG@10"``.
        tie_share: Share of the documents in the first 10 ranks that are tied.
        absent: Number of judged queries that the run lacks.
        unjudged: How many of its first documents, as many as the first measure of effectiveness looks at, have no
            judgement; None without qrels.
        lacking: The run's documents without text; None if all have one.
        labels: The labels of its first 10 ranks; None without labels.
        lengths: How many documents each of the audit's queries has, array of shape [Q]; NaN if the run lacks it.
    """

    name: str = field(metadata=LEFT_OUT)
    queries: int
    measures: dict[str, MetricValue]
    tie_share: float
    absent: int = 0
    unjudged: Unjudged | None = field(default=None, metadata=IF_KNOWN)
    lacking: Lacking | None = field(default=None, metadata=named("missing"))
    labels: KnownLabels | None = field(default=None, metadata=IF_KNOWN)
    lengths: Array | None = field(default=None, repr=False, metadata=BY_QUERY)

    def __getitem__(self, measure: str | Measure) -> MetricValue:
        """The figure of a measure. Raises UnknownNameError if it was not measured."""
        name = str(measure)
        if name not in self.measures:
            # Another spelling, such as with its parameters in another order.
            with suppress(EvenrankError):
                name = str(parse_measure(measure))
        if name not in self.measures:
            # As screens have it.
            name = next((key for key, figure in self.measures.items() if shown_name(figure.measure) == name), name)
        if name not in self.measures:
            raise UnknownNameError(f"no measure {quoted(measure)} (the measures are {', '.join(self.measures)})")
        return self.measures[name]

    def __repr__(self) -> str:
        means = ", ".join(
            f"{name} {'none' if figure.mean is None else f'{figure.mean:.4f}'}"
            for name, figure in self.measures.items()
        )
        return f"RunAudit({self.name}: {counted(self.queries, 'query')}, {means})"

    def metrics(self) -> dict[str, float]:
        """The figures by name, with their 95% intervals: ``ARaB@10``, ``ARaB@10/low``, ``ARaB@10/high``."""
        entries = [metric_entries(name, figure.mean, figure.ci95) for name, figure in self.measures.items()]
        return {name: value for entry in entries for name, value in entry.items()}

    @property
    def reference(self) -> bool:
        """Whether this is a reference ranking rather than one of the audited runs."""
        return self.name in REFERENCES


@dataclass(frozen=True, slots=True)
class Pair:
    """Two runs on one measure, first minus second, tested with Holm's correction over all pairs and the measures of the
    same kind, effectiveness or bias. What the order of tied documents decides cannot be told.
    """

    measure: str
    first: str
    second: str
    test: Comparison = field(metadata=INLINE)


@dataclass(frozen=True, slots=True)
class GroupShare:
    """A group's share of a run's first ranks, and whether it differs from that of the candidates in random order.

    ``share``, ``candidates``: of the ranks and of the candidates; ``test``: their difference, with Holm's correction
    over the groups, so that the smallest p is that of the omnibus test. Likewise ``vs_ideal_order``, the difference
    from an ideal order of the candidates, None without judgements. ``vs_baseline``: the comparison with the baseline.
    What the order of tied documents decides cannot be told.
    """

    run: str
    group: str
    share: float
    candidates: float
    test: Comparison = field(metadata=INLINE)
    vs_ideal_order: Comparison | None = field(default=None, metadata=IF_KNOWN)
    vs_baseline: Comparison | None = field(default=None, metadata=IF_KNOWN)

    @property
    def beyond_ideal(self) -> bool:
        """Whether an ideal ranking is shown to go less far to the same side."""
        beyond = self.vs_ideal_order
        return beyond is not None and beyond.shown and (beyond.mean or 0) * (self.test.mean or 0) > 0


@dataclass(frozen=True, slots=True)
class QueryGroup:
    """A run's figure over the queries of a group.

    ``figure``: the mean over the group's queries, its interval and their number; ``test``: its difference from the mean
    over the other groups' queries; ``vs_baseline``: the run's difference from the baseline on the group's queries, None
    without one. Holm's correction is over all groups, runs and measures of a kind. What the order of tied documents
    decides cannot be told.
    """

    run: str
    measure: str
    group: str
    figure: Estimate
    test: Comparison
    vs_baseline: Comparison | None = field(default=None, metadata=IF_KNOWN)


@dataclass(frozen=True, repr=False)
class AuditFigures(Result):
    """An audit: its settings, the figures of every run and of the reference rankings, and notes for the reader."""

    also: ClassVar = ("warnings",)
    settings: dict[str, Any]
    baseline: str | None
    runs: tuple[RunAudit, ...] = field(metadata=LEFT_OUT)
    """The audited runs, then the reference rankings."""
    notes: tuple[str, ...]
    queries: pl.Series = field(repr=False, metadata=BY_QUERY)
    """The ids of the audit's queries [Q], the axis of the figures' values."""
    rankings: pl.DataFrame = field(repr=False, metadata=LEFT_OUT)
    """The first documents of every run: run, query_id, rank, doc_id, score, tied, counts, neutrality, relevance."""
    lexicon: Lexicon | None = field(repr=False, metadata=LEFT_OUT)
    """The lexicon that documents were scored with, if it is known."""
    collection: PathLike | pl.DataFrame | None = field(default=None, repr=False, metadata=LEFT_OUT)
    """Where the report finds the documents' texts."""
    query_texts: pl.DataFrame | None = field(default=None, repr=False, metadata=LEFT_OUT)
    misleading: tuple[Finding, ...] = field(default=(), metadata=LEFT_OUT)
    """The notes that come first in every view, since the figures mislead without them."""
    unequal_depth: tuple[str, ...] = field(default=(), metadata=LEFT_OUT)
    """The measures that unequal depths of the runs may decide."""
    partly_labelled: bool = field(default=False, metadata=LEFT_OUT)
    """Whether documents of the runs or of the background have no label while others have one."""
    words: Words | None = field(default=None, repr=False)
    """The words that drive the figures; None without texts."""
    pairs: tuple[Pair, ...] = field(default=(), repr=False, metadata=IF_KNOWN)
    """Every two of several runs."""
    shares: tuple[GroupShare, ...] = field(default=(), repr=False, metadata=IF_KNOWN)
    """The groups' shares of the first ranks, where shares were measured."""
    query_groups: tuple[QueryGroup, ...] = field(default=(), repr=False, metadata=IF_KNOWN)
    """The figures by group of query, where groups were given."""
    query_group: pl.Series | None = field(default=None, repr=False, metadata=BY_QUERY)
    """The group of each query [Q], null of one without; None where no groups were given."""
    query_cluster: pl.Series | None = field(default=None, repr=False, metadata=BY_QUERY)
    """The cluster of each query [Q], as whole numbers; None where queries are independent."""
    views: pl.Series | None = field(default=None, repr=False, metadata=LEFT_OUT)
    """Of sums, how many views each query [Q] has, which is what their figures are of; None of runs."""
    impact: tuple[GroupImpact, ...] = field(default=(), repr=False, metadata=IF_KNOWN)
    """The groups' impact ratios, all queries together, where some ImpactRatio was measured."""
    judge: JudgeCheck | None = field(default=None, metadata=IF_KNOWN)
    """A judge's grades against people's, where judgements were drawn and there is a judge."""
    cautions: tuple[Finding, ...] = field(default=(), metadata=LEFT_OUT)
    """Those of the notes that could change the answer."""

    @overload
    def __getitem__(self, name: str) -> RunAudit: ...

    @overload
    def __getitem__(self, name: tuple[str, str | Measure]) -> MetricValue: ...

    def __getitem__(self, name: str | tuple[str, str | Measure]) -> RunAudit | MetricValue:
        """A run's figures, or one of them: ``result["BM25"]``, ``result["BM25", "nDCG@10"]``.

        Raises UnknownNameError, a KeyError, which lists the runs or measures that exist.
        """
        if isinstance(name, tuple):
            run, measure = name
            return self[run][measure]
        for audit in self.runs:
            if audit.name == name:
                return audit
        raise UnknownNameError(f"no run {quoted(name)} (the runs are {', '.join(run.name for run in self.runs)})")

    def __iter__(self) -> Iterator[str]:
        """The names of the audited runs, then those of the reference rankings."""
        return (run.name for run in self.runs)

    def __contains__(self, name: object) -> bool:
        """Whether there is a run, or a reference ranking, of this name."""
        return any(run.name == name for run in self.runs)

    def __len__(self) -> int:
        """Number of runs, reference rankings included."""
        return len(self.runs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The audit's warnings, as sentences."""
        return tuple(finding.text for finding in self.misleading)

    @property
    def unit(self) -> str:
        """The unit that figures are means over: ``query``, or ``view`` for a log of rankings."""
        return "query" if self.views is None else "view"

    @property
    def n(self) -> int:
        """Number of units that figures are means over."""
        return len(self.queries) if self.views is None else int(self.views.sum())

    @property
    def measures(self) -> list[Measure]:
        """The measures, effectiveness first."""
        return [figure.measure for figure in self.runs[0].measures.values()]

    @property
    def given(self) -> list[RunAudit]:
        """The audited runs, without the reference rankings."""
        return [run for run in self.runs if not run.reference]

    @property
    def unchecked(self) -> bool:
        """Whether effectiveness is by a judge whose grades nobody has compared with people's."""
        return self.settings.get("judge") == NOT_CHECKED

    @property
    def judged(self) -> bool:
        """Whether effectiveness is known."""
        return any(not is_bias(measure) for measure in self.measures)
