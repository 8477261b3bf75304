"""Our measures inside ir_measures: ``provider(table).calc_aggregate([NFaiRR @ 10, nDCG @ 10], qrels, run)``.

Where the program chooses the provider, as PyTerrier does, ``provider(table).metric(NFaiRR @ 10)`` is a measure that
brings its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Annotated

import ir_measures
import numpy as np
import polars as pl
from ir_measures import Measure, Metric, Qrel, ScoredDoc
from ir_measures.providers import Evaluator, Provider

from evenrank import options as opt
from evenrank.files.arguments import checked
from evenrank.files.errors import EvenrankError, arg
from evenrank.files.runs import Run, as_qrels, as_run
from evenrank.groups.table import GroupTable, GroupTableLike, as_group_table

from .base import BiasMeasure, PartValue
from .joined import BACKGROUND_DEPTH, MISSING_LIMIT, Missing, OfMissing
from .registry import Evaluation, parse_measure
from .targets import Target, as_target

if TYPE_CHECKING:
    import pandas as pd

_QRELS = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}


@checked
def provider(
    table: GroupTableLike,
    *,
    background: object = None,
    background_depth: Annotated[int, opt.COUNT] = BACKGROUND_DEPTH,
    missing: OfMissing | None = None,
    missing_limit: Annotated[float, opt.SHARE] = MISSING_LIMIT,
    target: object = None,
) -> GroupTableProvider:
    """An ir_measures provider that computes our measures from a group table, and leaves all others to ir_measures.

    ``table``: a :class:`GroupTable`, a file that ``evenrank score`` wrote, or a frame. ``background``: the run that
    NFaiRR is normalised by, as a path, a :class:`Run`, a dict or a frame (default: each run is its own background), of
    which the first ``background_depth`` documents of each query count. ``missing``: what to do with documents that the
    table lacks: "error" (the default), or "skip" and "neutral", which tolerate a share of up to ``missing_limit``.
    ``target``: the shares of exposure that groups should have, for measures that do not say: ``uniform`` (the default),
    ``candidates`` (the background's), ``relevant``, a file, ``{group: share}``, ``{query: {group: share}}`` or a frame.

    Labels (``table=as_labels("labels.csv")``) are seldom complete: documents without one are skipped by default,
    however many they are, and ``missing_limit`` does not apply; one document of a run at least must have a label.
    Bounds of what they would change are what :func:`evenrank.audit` adds.

    ``calc``, ``iter_calc``, ``calc_aggregate`` and ``evaluator`` take runs and qrels as ir_measures does, and as
    :func:`evenrank.audit` does. Raises EvenrankError if more documents are missing.
    """
    scores = as_group_table(table, what=arg.table)
    run = None if background is None else as_run(background, what=arg.background)
    wanted = None if target is None else as_target(target, scores.groups)
    how: Missing = missing or ("skip" if scores.labelled else "error")
    return GroupTableProvider(scores, run, background_depth, how, missing_limit, wanted)


class GroupTableProvider(Provider):  # type: ignore[misc]
    """An ir_measures ``Provider`` bound to a group table, as made by :func:`provider`."""

    NAME = "evenrank"

    def __init__(
        self,
        table: GroupTable,
        background: Run | None,
        background_depth: int,
        missing: Missing,
        missing_limit: float,
        target: Target | None = None,
    ) -> None:
        super().__init__()
        self.table = table
        self.background = background
        self.background_depth = background_depth
        self.missing: Missing = missing
        self.missing_limit = missing_limit
        self.target = target

    def supports(self, measure: Measure) -> bool:
        """Whether it is one of ours, or ir_measures has it."""
        return isinstance(measure, BiasMeasure) or bool(ir_measures.DefaultPipeline.supports(measure))

    def metric(self, measure: Measure | str, name: str | None = None) -> Measure:
        """A measure of ours that ir_measures computes by itself: ``pt.Experiment(…, eval_metrics=[bound.metric(…)])``.

        Its values are those of this provider, for the judged queries alone, which PyTerrier averages over: where one
        of them has no value, its mean is NaN. ``name``: what it is called (default: as the measure); two metrics of
        several tables need two names. Raises EvenrankError for a measure that is not ours, and for one that is no mean
        over queries (|DeltaAPRF|, |ARaB|).
        """
        inner = parse_measure(measure)
        if not isinstance(inner, BiasMeasure):
            raise EvenrankError(f"{arg.measure}: {inner} is one of ir_measures: it needs no group table")
        if inner.whole_run or inner.part_count > 1:
            raise EvenrankError(
                f"{arg.measure}: {inner} is a figure of the run, no mean over queries: use calc_aggregate"
            )

        def values(made: Measure, qrels: pd.DataFrame, run: pd.DataFrame) -> Iterator[Metric]:
            judged = set(qrels["query_id"])
            # Of judged queries that no topic has, PyTerrier asks with an empty run.
            for metric in self.iter_calc([inner], qrels, run) if len(run) else ():
                if metric.query_id in judged:
                    yield Metric(metric.query_id, made, metric.value)

        # What ir_measures looks for in measures that are defined at run time.
        own = {"runtime_impl": values, "RUN_INPUTS": ["query_id", "doc_id", "score"], "QREL_INPUTS": list(_QRELS)}
        own["__repr__"] = lambda _: name or repr(inner)
        return type(type(inner).__name__, (type(inner),), own)(**inner.params)

    def joined(self, run: Run, qrels: pl.DataFrame, measures: list[BiasMeasure]) -> Evaluation:
        """The run with the table, the qrels, and the background if a measure needs one."""
        evaluation = Evaluation(run, self.table, qrels, missing=self.missing, target=self.target)
        evaluation.check_missing(self.missing_limit, measures)
        evaluation.check_estimated(measures)
        of_candidates = self.target is not None and self.target.kind == "candidates"
        if of_candidates or any(measure.needs_background for measure in measures):
            of = Evaluation(self.background, self.table, missing=self.missing) if self.background else evaluation
            of.check_missing(self.missing_limit, (), [self.background_depth])
            evaluation.background = of.as_background(of.run.name, self.background_depth)
        return evaluation

    def _evaluator(self, measures: Iterable[Measure], qrels: object) -> Evaluator:
        # Bias needs no judgements: an empty container is not a mistake here.
        none = isinstance(qrels, Sized) and not len(qrels)
        return _Evaluator(self, list(measures), pl.DataFrame(schema=_QRELS) if none else as_qrels(qrels))


class _Evaluator(Evaluator):  # type: ignore[misc]
    """Our values are over the run's queries, and a query without one is undefined; others are as in ir_measures.

    Tied documents are in the same order for all: by descending id.
    """

    def __init__(self, bound: GroupTableProvider, measures: list[Measure], qrels: pl.DataFrame) -> None:
        super().__init__(measures, qrels["query_id"].unique().to_list())
        self.bound = bound
        self.qrels = qrels
        self.ours = [measure for measure in measures if isinstance(measure, BiasMeasure)]
        others = [measure for measure in measures if not isinstance(measure, BiasMeasure)]
        rows = [Qrel(*row) for row in qrels.select("query_id", "doc_id", "relevance").iter_rows()]
        self.others = ir_measures.evaluator(others, rows) if others else None

    def _iter_calc(self, run: object) -> Iterator[Metric]:
        known = as_run(run)
        if self.others is not None:
            # Its programs break ties in different ways: the order of a table's measures is one.
            rows = known.table.select("query_id", "doc_id", -pl.col("rank").cast(pl.Float64)).iter_rows()
            yield from self.others.iter_calc([ScoredDoc(*row) for row in rows])
        evaluation = self.bound.joined(known, self.qrels, self.ours)
        for measure in self.ours:
            parts = measure.parts(evaluation)
            for number, part in enumerate(parts):
                for query, value in zip(evaluation.queries, part.tolist(), strict=True):
                    # A query may have a value in some parts only: it is undefined if it has none.
                    if len(parts) == 1 or not np.isnan(value):
                        yield Metric(query_id=query, measure=measure, value=PartValue(value, number))
