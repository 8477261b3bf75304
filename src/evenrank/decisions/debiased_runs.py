"""What debiasing does to the rankings of an index, beside what costs less: a shift of scores, and blind texts."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import polars as pl

from evenrank.auditing import AuditResult, audit
from evenrank.groups import GroupTable, Scoring
from evenrank.io import Run, as_batches
from evenrank.measures import parse_measures
from evenrank.mitigation.blind import blind
from evenrank.reports.format import Interval
from evenrank.retrieval.encoding import Encoding
from evenrank.retrieval.indexes import build_index, open_index
from evenrank.retrieval.vector_index import VectorIndex

from .debiased_groups import PassageGroups
from .frontier import sweep
from .order_figures import OrderFigures
from .paired_figures import Difference, difference
from .rebalance_lists import Grouping

UNTOUCHED, DEBIASED, SHIFT, BLIND = "untouched", "debiased", "shift", "blind"
UTILITY, ARAB, NFAIRR = "nDCG@10", "ARaB@10", "NFaiRR@10"
SHIFTED = 100
"""How many documents of each query the shift puts into another order."""
STRENGTHS = (
    0.0, 0.0025, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 0.75, 1.0,
)  # fmt: skip
"""A little of the range of scores moves much."""


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
    """The figures of each ranking, by its name and the measure's.

    ``strengths``: of the shift, for each half of the queries, as the other half asks for it; None where the ``bias`` is
    undefined there, and no shift can be chosen; ``reached``: whether the shift gets as near to no bias as the debiased
    index there. ``notes``: remarks.
    """

    queries: int
    depth: int
    figures: Mapping[str, Mapping[str, Measured]]
    bias: str
    strengths: tuple[float, float] | None
    reached: bool
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        runs = {name: {measure: asdict(one) for measure, one in of.items()} for name, of in self.figures.items()}
        shift = None
        if self.strengths is not None:
            shift = {"measure": self.bias, "strengths": list(self.strengths), "reached": self.reached}
        return {"queries": self.queries, "depth": self.depth, "runs": runs, "shift": shift}


@dataclass(frozen=True)
class Search:
    """How rankings are made: ``queries`` with their texts, ``qrels`` if there are any, ``depth`` documents of each; the
    ``model`` and the ``encoding`` as for :meth:`VectorIndex.search`; ``masked``: whose words blind texts lack."""

    queries: pl.DataFrame
    qrels: pl.DataFrame | None = None
    depth: int = 200
    model: object = None
    encoding: Encoding | None = None
    masked: Scoring | None = None
    seed: int = 0
    quiet: bool = False

    def run(self, index: VectorIndex, name: str) -> Run:
        """The ranking of an index."""
        options = {"model": self.model, "encoding": self.encoding, "quiet": self.quiet}
        return index.search(self.queries, self.depth, name=name, **options)  # type: ignore[arg-type]


def measure_rankings(before: VectorIndex, after: VectorIndex, source: PassageGroups, search: Search) -> Rankings:
    """The figures of the index before and after, of the shift, and of blind texts if ``search`` says so."""
    queries, qrels = search.queries, search.qrels
    runs = {UNTOUCHED: search.run(before, UNTOUCHED), DEBIASED: search.run(after, DEBIASED)}
    if search.masked is not None:
        runs[BLIND] = _blind(before, source, search, search.masked)
    ids = [run.table["doc_id"] for run in runs.values()]
    table = source.table(ids)
    bias = ARAB if table.poles is not None else NFAIRR
    shifted = _shifted(runs[UNTOUCHED], runs[DEBIASED], table, bias, search.seed)
    if shifted is not None:
        runs = {UNTOUCHED: runs[UNTOUCHED], DEBIASED: runs[DEBIASED], SHIFT: shifted.run, **runs}
    measures = [*([UTILITY] if qrels is not None else []), *([ARAB] if table.poles is not None else []), NFAIRR]
    result = _audited(runs, table, qrels, measures, search.seed)
    figures = {name: {measure: _measured(result, name, measure, search.seed) for measure in measures} for name in runs}
    strengths, reached = (None, False) if shifted is None else (shifted.strengths, shifted.reached)
    notes = []
    if shifted is not None and not reached:
        notes = [
            f"On a half of the queries that it is chosen on, no shift brings {bias} as near to no bias as the debiased"
            " index."
        ]
    return Rankings(queries.height, search.depth, figures, bias, strengths, reached, tuple(notes))


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


# --- what costs less --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Shifted:
    run: Run
    strengths: tuple[float, float]
    reached: bool


def _shifted(run: Run, debiased: Run, table: GroupTable, bias: str, seed: int) -> _Shifted | None:
    """The run with the least shift that gets as near to no bias as the debiased one, tuned on the other queries.

    Each half of the queries, at random, is shifted as the other half asks for: by the offsets learnt there, at the
    least strength that is enough there, or the one that comes nearest. None where the bias is undefined in a half.
    """
    queries = run.queries
    first = np.random.default_rng(seed).permutation(len(queries)) < len(queries) // 2
    halves = [queries.filter(pl.Series(first)), queries.filter(pl.Series(~first))]
    parts, strengths, reached = [], [], True
    for own, other in (halves, halves[::-1]):
        learn = _of(run, other)
        figures = OrderFigures(learn, Grouping(table, SHIFTED, missing="skip"), None, parse_measures(bias))
        wanted = figures.means(_of(debiased, other))[0]
        if np.isnan(wanted) or np.isnan(figures.means(learn)[0]):
            return None
        tuned = sweep(learn, table, ["shift"], STRENGTHS, depth=SHIFTED, learn=learn, missing="skip")
        strength, met = _least(figures, tuned, distance(wanted, bias), bias)
        shifts = sweep(_of(run, own), table, ["shift"], [strength], depth=SHIFTED, learn=learn, missing="skip")
        reached = reached and met
        strengths.append(strength)
        parts.append(shifts["shift", strength].table)
    # In the order of the run's own queries.
    place = pl.DataFrame({"query_id": queries, "place": np.arange(len(queries))})
    whole = pl.concat(parts).join(place, on="query_id", how="left", maintain_order="left").sort("place", "rank")
    shifted = replace(run, name=SHIFT, table=whole.drop("place"), notes=(), source=None, card=None)
    return _Shifted(shifted, (strengths[0], strengths[1]), reached)


def _least(
    figures: OrderFigures, tuned: Mapping[tuple[str, float], Run], wanted: float, bias: str
) -> tuple[float, bool]:
    """The least strength that gets as near to no bias as ``wanted``, or the one that comes nearest, and which it is."""
    far = {strength: distance(figures.means(run)[0], bias) for (_, strength), run in tuned.items()}
    enough = [strength for strength, distance in far.items() if distance <= wanted + 1e-12]
    return (min(enough), True) if enough else (min(far, key=lambda strength: (far[strength], strength)), False)


def distance(mean: float, bias: str) -> float:
    """How far a mean is from no bias."""
    return float("inf") if np.isnan(mean) else abs(mean) if bias == ARAB else 1 - mean


def _of(run: Run, queries: pl.Series) -> Run:
    return replace(run, table=run.table.filter(pl.col("query_id").is_in(queries.implode())), orders=())


def _blind(index: VectorIndex, source: PassageGroups, search: Search, scoring: Scoring) -> Run:
    """The ranking of the same model where every group word is masked, in passages and queries."""
    facts = index.manifest.model or {}
    given = search.encoding or Encoding()
    encoding = replace(
        given,
        query_prompt=_text(facts.get("query_prompt")) if given.query_prompt is None else given.query_prompt,
        document_prompt=_text(facts.get("document_prompt")),
        precision=_text(facts.get("precision")) if given.precision is None else given.precision,
    )
    if search.model is not None and not isinstance(search.model, str | os.PathLike):
        encoding = replace(encoding, precision=None)
    model = facts.get("path") if search.model is None else search.model
    with tempfile.TemporaryDirectory() as folder:
        masked = (blind(batch, scoring) for batch in as_batches(source.source.collection))
        build_index(masked, os.path.join(folder, "blind"), model=model, encoding=encoding, quiet=search.quiet)
        found = open_index(os.path.join(folder, "blind"))
        options = {"model": search.model, "encoding": search.encoding, "quiet": search.quiet}
        return found.search(blind(search.queries, scoring), search.depth, name=BLIND, **options)  # type: ignore[arg-type]


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
