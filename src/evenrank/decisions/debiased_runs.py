"""What debiasing does to the rankings of an index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from evenrank.auditing import AuditResult, audit
from evenrank.groups import GroupTable
from evenrank.io import Run
from evenrank.reports.format import Interval
from evenrank.retrieval.encoding import Encoding
from evenrank.retrieval.vector_index import VectorIndex

from .debiased_groups import PassageGroups
from .paired_figures import Difference, difference

UNTOUCHED, DEBIASED = "untouched", "debiased"
UTILITY, ARAB, NFAIRR = "nDCG@10", "ARaB@10", "NFaiRR@10"


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure of a ranking: its ``mean`` and interval; what the order ``added`` to its candidates, (mean, interval),
    where the measure is linear; and the figure ``against`` the untouched index's."""

    mean: float | None
    ci95: Interval | None
    added: tuple[float, Interval | None] | None = None
    against: Difference | None = None


@dataclass(frozen=True, slots=True)
class Rankings:
    """The figures of each ranking, by its name and the measure's."""

    queries: int
    depth: int
    figures: Mapping[str, Mapping[str, Measured]]

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        runs = {name: {measure: asdict(one) for measure, one in of.items()} for name, of in self.figures.items()}
        return {"queries": self.queries, "depth": self.depth, "runs": runs}


@dataclass(frozen=True)
class Search:
    """How rankings are made: ``queries`` with their texts, ``qrels`` if there are any, ``depth`` documents of each; the
    ``model`` and the ``encoding`` as for :meth:`VectorIndex.search`."""

    queries: pl.DataFrame
    qrels: pl.DataFrame | None = None
    depth: int = 200
    model: object = None
    encoding: Encoding | None = None
    seed: int = 0
    quiet: bool = False

    def run(self, index: VectorIndex, name: str) -> Run:
        """The ranking of an index."""
        options = {"model": self.model, "encoding": self.encoding, "quiet": self.quiet}
        return index.search(self.queries, self.depth, name=name, **options)  # type: ignore[arg-type]


def measure_rankings(before: VectorIndex, after: VectorIndex, source: PassageGroups, search: Search) -> Rankings:
    """The figures of the index before and after."""
    queries, qrels = search.queries, search.qrels
    runs = {UNTOUCHED: search.run(before, UNTOUCHED), DEBIASED: search.run(after, DEBIASED)}
    table = source.table([run.table["doc_id"] for run in runs.values()])
    measures = [*([UTILITY] if qrels is not None else []), *([ARAB] if table.poles is not None else []), NFAIRR]
    result = _audited(runs, table, qrels, measures, search.seed)
    figures = {name: {measure: _measured(result, name, measure, search.seed) for measure in measures} for name in runs}
    return Rankings(queries.height, search.depth, figures)


def _audited(
    runs: Mapping[str, Run], table: GroupTable, qrels: pl.DataFrame | None, measures: Sequence[str], seed: int
) -> AuditResult:
    known = {"labels": table} if table.labelled else {"scores": table, "missing": "skip", "missing_limit": 1.0}
    return audit(runs, qrels=qrels, baseline=UNTOUCHED, measures=list(measures), seed=seed, **known)


def _measured(result: AuditResult, name: str, measure: str, seed: int) -> Measured:
    figure = result[name, measure]
    added = None if figure.added is None else (figure.added.mean, figure.added.ci95)
    against = None
    if name != UNTOUCHED:
        against = difference(figure.values, result[UNTOUCHED, measure].values, seed)
    return Measured(figure.mean, figure.ci95, added, against)


def distance(mean: float, bias: str) -> float:
    """How far a mean is from no bias."""
    return float("inf") if np.isnan(mean) else abs(mean) if bias == ARAB else 1 - mean
