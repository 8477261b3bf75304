"""An audit's rankings, measured: the runs, the reference rankings of their candidates, and the documents shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl
from ir_measures import Measure

from evenrank.files import Run
from evenrank.files.tables import IdIndex
from evenrank.groups import GroupTable
from evenrank.measures import Background, Evaluation, Target, is_bias
from evenrank.measures.base import Over

from .data import NEUTRAL_FIRST, RANDOM, RELEVANCE_FIRST
from .inputs import Inputs, Options
from .judgements import as_pairs
from .order_effects import ORDERS, own_references
from .query_clusters import QueryClusters, query_clusters
from .values import SHOWN_DEPTH, UNCHECKED, RunValues, measure_run


@dataclass(frozen=True, slots=True)
class Rankings:
    """The runs and the reference rankings, with their values on every measure.

    Attributes:
        evaluations: The audited runs, joined with groups and judgements.
        background: The run that normalises NFaiRR and has the references' candidates, joined likewise.
        neutral_first: Its neutral-first order; None where it is not known which documents are neutral.
        normaliser: The background as NFaiRR uses it; None without groups.
        audited: The values of the audited runs; ``references``: those of the reference rankings.
        own_references: The reference rankings of each run's own candidates, by run.
        queries: The ids [Q] of the audit's queries, the axis of all values.
        clusters: Which of them are about the same thing.
        documents: The first documents of every ranking.
    """

    evaluations: list[Evaluation]
    background: Evaluation
    neutral_first: Evaluation | None
    normaliser: Background | None
    audited: list[RunValues]
    references: list[RunValues]
    own_references: dict[str, dict[Over, RunValues]]
    queries: pl.Series
    clusters: QueryClusters
    documents: pl.DataFrame

    @property
    def every(self) -> list[RunValues]:
        """The audited runs, then the reference rankings."""
        return [*self.audited, *self.references]


def measure_rankings(
    inputs: Inputs,
    groups: GroupTable | None,
    measures: Sequence[Measure],
    options: Options,
    target: Target | None,
    clusters: object,
) -> Rankings:
    """All rankings of an audit on all measures.

    ``clusters``: the queries that are about the same thing, as :func:`evenrank.audit` takes them. Raises EvenrankError
    where too many documents have no text.
    """

    def evaluation(run: Run) -> Evaluation:
        joined = Evaluation(run, groups, inputs.qrels, missing=options.missing, target=target, seed=options.seed)
        if inputs.judgements is not None:
            joined.drawn_pairs = Evaluation(as_pairs(run), inputs.judgements.table, missing="bounds", seed=options.seed)
        return joined

    runs = [evaluation(run) for run in inputs.runs]
    background = next((run for run in runs if run.run is inputs.background), None) or evaluation(inputs.background)
    lacking = [run.check_missing(options.missing_limit, measures) for run in runs]
    normaliser, neutral_first = None, None
    if groups is not None:
        background.check_missing(options.missing_limit, measures, [options.background_depth])
        normaliser = background.as_background(inputs.background.name, options.background_depth)
        for run in [*runs, background]:
            run.background = normaliser
        # Which documents are neutral is not known of those that were not drawn.
        neutral_first = background.neutral_first() if groups.sample is None else None
    axis = inputs.asked
    clustering = query_clusters(clusters, axis, inputs.queries, inputs.qrels)
    audited = [
        measure_run(run, run.run.name, measures, axis, lacking=lacks, clusters=clustering.numbers)
        for run, lacks in zip(runs, lacking, strict=True)
    ]
    references = {RANDOM: measure_run(background, RANDOM, measures, axis, over="random", clusters=clustering.numbers)}
    first = {run.run.name: run.first(SHOWN_DEPTH) for run in runs}
    if neutral_first is not None:
        references[NEUTRAL_FIRST] = measure_run(
            neutral_first, NEUTRAL_FIRST, measures, axis, clusters=clustering.numbers
        )
        first[NEUTRAL_FIRST] = neutral_first.first(SHOWN_DEPTH)
    if inputs.qrels is not None:
        references[RELEVANCE_FIRST] = measure_run(
            background, RELEVANCE_FIRST, measures, axis, over="relevance", clusters=clustering.numbers
        )
    if inputs.unchecked:
        audited = [_without_tests(run) for run in audited]
    of_background: dict[Over, RunValues] = {
        over: references[name] for over, name in ORDERS.items() if name in references
    }
    own = {
        values.name: of_background if run is background else own_references(run, values, axis)
        for run, values in zip(runs, audited, strict=True)
    }
    shown = _first_documents(first, groups, inputs.qrels)
    return Rankings(
        runs, background, neutral_first, normaliser, audited, list(references.values()), own, axis, clustering, shown
    )


def _without_tests(run: RunValues) -> RunValues:
    """The values of a run whose effectiveness is by a judge that nobody has checked: figures alone."""
    measures = {
        name: values if is_bias(values.measure) else replace(values, undecidable_reason=UNCHECKED)
        for name, values in run.measures.items()
    }
    return replace(run, measures=measures)


def _first_documents(
    first: Mapping[str, pl.DataFrame], scores: GroupTable | None, qrels: pl.DataFrame | None
) -> pl.DataFrame:
    """The ``first`` documents of every run by name as one table, with their group counts and grades."""
    table = pl.concat([top.select(pl.lit(name).alias("run"), pl.all()) for name, top in first.items()])
    if scores is None:
        table = table.with_columns(pl.lit(None, dtype=pl.Float64).alias("neutrality"))
    else:
        counts = scores.table.select("doc_id", "neutrality", *[f"count_{group}" for group in scores.groups])
        if counts.height > table.height:
            counts = counts.filter(IdIndex([table["doc_id"]]).among(counts["doc_id"]))
        table = table.join(counts, on="doc_id", how="left", maintain_order="left")
    if qrels is None:
        return table.with_columns(pl.lit(None, dtype=pl.Int64).alias("relevance"))
    return table.join(qrels, on=["query_id", "doc_id"], how="left", maintain_order="left")
