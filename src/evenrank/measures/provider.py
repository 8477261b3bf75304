"""Our measures inside ir_measures: ``ir_measures.calc_aggregate([NFaiRR@10, nDCG@10], qrels, run)``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ir_measures
import numpy as np
import polars as pl
from ir_measures import Measure, Metric
from ir_measures.providers import Evaluator, Provider, register
from ir_measures.util import QrelsConverter, RunConverter

from evenrank.io.errors import EvenrankError
from evenrank.io.runs import Run
from evenrank.io.scores import Scores, as_scores

from .background import BACKGROUND_DEPTH
from .evaluate import MISSING_LIMIT, Evaluation, Missing
from .registry import BIAS_MEASURES, BiasMeasure, GroupValue


@dataclass
class _Active:
    scores: Scores | None = None
    background: Run | None = None
    background_depth: int = BACKGROUND_DEPTH
    missing: Missing = "error"
    missing_limit: float = MISSING_LIMIT


_active = _Active()


def set_scores(
    scores: Any,
    *,
    background: Run | None = None,
    background_depth: int = BACKGROUND_DEPTH,
    missing: Missing = "error",
    missing_limit: float = MISSING_LIMIT,
) -> None:
    """Says which score table (or score file) the measures use when ir_measures calls them, until the next call.

    ``background``: the run against which NFaiRR is normalised; without one, each run is its own background.
    ``missing_limit``: the largest share of documents without scores that ``missing`` "skip" and "neutral" put up with;
    above it, EvenrankError.
    """
    global _active
    active = None if scores is None else as_scores(scores)
    _active = _Active(active, background, background_depth, missing, missing_limit)


@contextmanager
def using_scores(scores: Any, **settings: Any) -> Iterator[None]:
    """:func:`set_scores` for the length of a ``with`` block."""
    global _active
    before = _active
    set_scores(scores, **settings)
    try:
        yield
    finally:
        _active = before


class EvenrankEvaluator(Evaluator):  # type: ignore[misc]
    """Scores runs with our measures. Queries are those of the run; one without a value is undefined, not 0."""

    def __init__(self, measures: Iterable[Measure], qrels: pl.DataFrame) -> None:
        super().__init__(list(measures), qrels["query_id"].unique().to_list())
        self.qrels = qrels
        self.active = _active

    def _iter_calc(self, run: Any) -> Iterator[Metric]:
        active = self.active
        if active.scores is None:
            raise EvenrankError("evenrank's measures need a score table: call evenrank.measures.set_scores(...) first")
        rows = [(row.query_id, row.doc_id, row.score) for row in RunConverter(run).as_namedtuple_iter()]
        table = pl.DataFrame(rows, {"query_id": pl.String, "doc_id": pl.String, "score": pl.Float64}, orient="row")
        settings: dict[str, Any] = {"missing": active.missing}
        evaluation = Evaluation(Run.from_table(table), active.scores, self.qrels, **settings)
        evaluation.check_missing(active.missing_limit, self.measures)
        if any(measure.NAME == "NFaiRR" for measure in self.measures):
            of = Evaluation(active.background, active.scores, **settings) if active.background else evaluation
            of.check_missing(active.missing_limit, (), [active.background_depth])
            evaluation.background = of.as_background(of.run.name, active.background_depth)
        for measure in self.measures:
            if measure.NAME in ("DeltaAPRF", "|DeltaAPRF|"):
                poles = zip((1, -1), evaluation.poles_prf(measure), strict=True)
                values = [
                    (query, GroupValue(v, sign))
                    for sign, of_pole in poles
                    for query, v in zip(evaluation.queries, of_pole.tolist(), strict=True)
                    if not np.isnan(v)
                ]
            else:
                values = list(zip(evaluation.queries, evaluation.values(measure).tolist(), strict=True))
            for query, value in values:
                yield Metric(query_id=query, measure=measure, value=value)


class _Supports:
    """Every parameter of a measure that passed its own checks is supported."""

    def __init__(self, measure: Measure) -> None:
        self.NAME = measure.NAME
        self.params: dict[str, Any] = {}

    def __repr__(self) -> str:
        return str(self.NAME)


class EvenrankProvider(Provider):  # type: ignore[misc]
    """evenrank: https://pypi.org/project/evenrank"""

    NAME = "evenrank"
    SUPPORTED_MEASURES = [_Supports(measure) for measure in BIAS_MEASURES]  # noqa: RUF012 - as the base class has it

    def _evaluator(self, measures: Iterable[Measure], qrels: Any) -> EvenrankEvaluator:
        rows = [(row.query_id, row.doc_id, row.relevance) for row in QrelsConverter(qrels).as_namedtuple_iter()]
        schema = {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
        return EvenrankEvaluator(measures, pl.DataFrame(rows, schema, orient="row"))


def add_measure(measure: BiasMeasure) -> BiasMeasure:
    """Makes a measure of your own (see :class:`LinearMeasure`) known by its name, to evenrank and to ir_measures.

    Raises EvenrankError for a name that another measure has.
    """
    name = str(measure.NAME)
    known = ir_measures.measures.registry.get(name)
    if known is not None:
        raise EvenrankError(f"there is a measure named {name} already")
    ir_measures.measures.register(measure, name=name)
    EvenrankProvider.SUPPORTED_MEASURES.append(_Supports(measure))
    return measure


provider = register(EvenrankProvider())
ir_measures.DefaultPipeline.providers.append(provider)
