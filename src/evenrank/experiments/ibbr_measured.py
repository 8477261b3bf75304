"""What was measured in the IBBR experiment: audits of every seed, and differences between rows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from evenrank.auditing import RELEVANCE_FIRST, AuditResult
from evenrank.groups import GroupTable, Scoring, score_in_memory
from evenrank.io import Run, read_qrels, read_run, read_texts
from evenrank.io.types import Array
from evenrank.measures import Evaluation, parse_measure
from evenrank.measures.nested import Mixed, crossed_figures, mixed_test
from evenrank.measures.registry import resolve
from evenrank.measures.statistics import bootstrap_means
from evenrank.training.verdicts import ruined

from .ibbr_trainings import Experiment
from .ibbr_why import kinds_of
from .paper_tables import Value

FIRST = "BM25"
COLUMNS = {
    "recall_10": "R@10",
    "mrr": "RR",
    "ndcg_10": "nDCG@10",
    "delta_aprf_abs": "|DeltaAPRF|",
    "delta_aprf_signed": "DeltaAPRF",
    "rab_5": "RaB@5",
    "rab_10": "RaB@10",
}
HEADINGS = {
    "recall_10": "Recall@10",
    "mrr": "MRR",
    "ndcg_10": "nDCG@10",
    "delta_aprf_abs": "|ΔA-PRF|",
    "delta_aprf_signed": "ΔA-PRF",
    "rab_5": "RaB@5",
    "rab_10": "RaB@10",
}
OF_GROUPS = {f"qrab_{group}_{depth}": (group, depth) for depth in (5, 10) for group in ("m", "f")}
"""qRaB of each group: the mean magnitude of its words in the first passages [IBBR]."""
GROUP_HEADINGS = {key: f"qRaB_{group}@{depth}" for key, (group, depth) in OF_GROUPS.items()}
CLICKED = "delta_aprf_clicks"
QUERY_COLUMNS = ("recall_10", "mrr", "ndcg_10")
"""Measures with a value for each query."""


WHOLE_COLUMNS = ("delta_aprf_abs", "delta_aprf_signed", "rab_5", "rab_10")
"""Figures of whole runs that queries can be drawn again for."""


@dataclass
class Figures:
    """One model's rows: an audit a seed, and the figures that audits do not have.

    same_queries: seeds share test queries, all of them or some: they are no new evidence then.
    """

    audits: list[AuditResult] = field(default_factory=list)
    more: list[dict[str, dict[str, float]]] = field(default_factory=list)
    """For each seed, by row and column."""
    parts: list[dict[str, dict[str, Array]]] = field(default_factory=list)
    """Where seeds share queries, for each seed, by row and measure: what the figure is made of [Q, ·]."""
    kinds: list[list[str]] = field(default_factory=list)
    """For each seed, the kind of each query (:func:`evenrank.experiments.ibbr_why.kinds_of`)."""
    same_queries: bool = False

    @property
    def systems(self) -> list[str]:
        """The rows."""
        return [run.name for run in self.audits[0].runs if run.name != RELEVANCE_FIRST] if self.audits else []

    def per_seed(self, system: str, column: str) -> list[float]:
        """The figure of each seed, NaN if there is none."""
        if column not in COLUMNS:
            return [one.get(system, {}).get(column, math.nan) for one in self.more]
        means = [audit[system].figures[COLUMNS[column]].mean for audit in self.audits]
        return [math.nan if mean is None else mean for mean in means]

    def row(self, system: str, columns: Sequence[str]) -> dict[str, Value]:
        """A row's figures, means over seeds; of one seed with the interval over its queries."""
        if system not in self.systems:
            return {}
        found = {}
        for column in columns:
            if len(self.audits) == 1 and column in COLUMNS:
                figure = self.audits[0][system].figures[COLUMNS[column]]
                found[column] = Value(figure.mean, figure.n, "queries", figure.ci95)
                continue
            values = self.per_seed(system, column)
            if np.isnan(values).all():
                continue
            crossed = self._crossed(column, system)
            # The row minus 0 times itself.
            found[column] = Value.of_test(self._compared(self, (system, system), column, 0.0)) if crossed else (
                Value.over_seeds(values)
            )  # fmt: skip
        return found

    def difference(self, system: str, baseline: str, column: str, factor: float = 1.0) -> Value:
        """The mean over seeds of a row's figure − ``factor`` × the other's; of one seed, or where seeds share queries,
        with an interval over queries too."""
        return self._difference(self, (system, baseline), column, factor)

    def nearer(self, system: str, baseline: str, column: str) -> Value:
        """The difference of absolute values of a signed figure."""
        return self._difference(self, (system, baseline), column, 1.0, absolute=True)

    def against(self, other: Figures, system: str, column: str) -> Value:
        """A row minus the same row of another model on the same queries."""
        return self._difference(other, (system, system), column, 1.0)

    def test(self, system: str, baseline: str, column: str) -> Mixed:
        """Whether a row differs from another: over queries nested in seeds, or over seeds for figures of whole runs;
        over both where seeds share queries."""
        return self._compared(self, (system, baseline), column, 1.0)

    def _difference(
        self, other: Figures, pair: tuple[str, str], column: str, factor: float, absolute: bool = False
    ) -> Value:
        crossed = self._crossed(column, pair[0]) and other._crossed(column, pair[1])
        if crossed or (len(self.audits) == 1 and column in QUERY_COLUMNS):
            return Value.of_test(self._compared(other, pair, column, factor, absolute))
        one, two = self.per_seed(pair[0], column), other.per_seed(pair[1], column)
        size = abs if absolute else float
        return Value.over_seeds([size(a) - factor * size(b) for a, b in zip(one, two, strict=True)])

    def _compared(
        self, other: Figures, pair: tuple[str, str], column: str, factor: float, absolute: bool = False
    ) -> Mixed:
        """A row minus ``factor`` × a row of a model that was measured on the same queries."""
        if column in QUERY_COLUMNS:
            each = []
            for number, (own, theirs) in enumerate(zip(self.audits, other.audits, strict=True)):
                one, two = (
                    np.asarray(audit[name].figures[COLUMNS[column]].values)
                    for audit, name in zip((own, theirs), pair, strict=True)
                )
                each.append(self._placed(number, one - factor * two) if self.same_queries else one - factor * two)
            return mixed_test(each, same_queries=self.same_queries)
        size = np.abs if absolute else np.asarray
        values = size(self.per_seed(pair[0], column)) - factor * size(other.per_seed(pair[1], column))
        if not (self._crossed(column, pair[0]) and other._crossed(column, pair[1])):
            return mixed_test([np.array([value]) for value in values])
        draws = size(self._draws(pair[0], column)) - factor * size(other._draws(pair[1], column))
        return crossed_figures(values, draws, len(self.queries))

    def _crossed(self, column: str, system: str) -> bool:
        """Whether the row's figure can be had for draws of the queries that seeds share."""
        if not self.same_queries:
            return False
        return column in QUERY_COLUMNS or (column in WHOLE_COLUMNS and all(system in one for one in self.parts))

    @property
    def queries(self) -> dict[str, int]:
        """The place of each query that any seed has."""
        return {query: place for place, query in enumerate(dict.fromkeys(q for a in self.audits for q in a.queries))}

    def _placed(self, number: int, values: Array) -> Array:
        """One seed's values [Q, …] by the queries of all seeds; NaN for those that it lacks."""
        places = self.queries
        found = np.full((len(places), *values.shape[1:]), np.nan)
        found[[places[query] for query in self.audits[number].queries]] = values
        return found

    def _draws(self, system: str, column: str) -> Array:
        """The figure of each seed [S, draws], with the same queries drawn for all seeds and rows."""
        key = "delta_aprf_signed" if column == "delta_aprf_abs" else column
        found = []
        for number, parts in enumerate(self.parts):
            means = bootstrap_means(self._placed(number, parts[system][key]), 0)
            signed = means[:, 0] - means[:, 1] if means.shape[1] == 2 else means[:, 0]
            found.append(abs(signed) if column == "delta_aprf_abs" else signed)
        return np.stack(found)

    def warning(self, system: str) -> str:
        """Whether a ranker is destroyed: below the first stage, or far below its base."""
        if system in (FIRST, "random", "neutral-first") or system not in self.systems:
            return ""
        mean, first, base = (
            float(np.nanmean(self.per_seed(name, "mrr"))) if name in self.systems else None
            for name in (system, FIRST, "base")
        )
        return "" if mean is None else ruined(mean, first, None if system == "base" else base, measure="MRR")


def measure(
    experiment: Experiment, seed: int, runs: Mapping[str, Run], into: Figures, scoring: Scoring | None = None
) -> None:
    """Adds the audit of a seed's test lists, and the figures of each group. ``scoring``: by default the seed's own."""
    data = experiment.of(seed)
    part, scoring = data.parts["test"], scoring or experiment.scoring(seed)
    result = experiment.work(seed).audit(part, runs, " ".join(COLUMNS.values()), FIRST, scoring)
    into.audits.append(result)
    every = {FIRST: read_run(part.run, FIRST), **runs}
    documents = pl.concat([run.table["doc_id"] for run in every.values()]).unique(maintain_order=True)
    texts = read_texts(data.collection, documents)
    table = score_in_memory(texts, scoring)
    counts = {
        group: dict(zip(table.table["doc_id"].to_list(), table.magnitude("tf", group).tolist(), strict=True))
        for group in ("m", "f")
    }
    found = {name: group_figures(run, counts) for name, run in runs.items()}
    if data.clicks is not None:
        clicks = read_qrels(data.clicks.qrels)
        for name, run in runs.items():
            found[name][CLICKED] = Evaluation(run, table, clicks).figure(parse_measure("DeltaAPRF"))
    into.more.append(found)
    into.kinds.append(kinds_of(part, texts, scoring, list(result.queries)))
    if into.same_queries:
        judged = read_qrels(part.qrels)
        queries, columns = list(result.queries), WHOLE_COLUMNS[1:]
        into.parts.append({name: parts_of(run, table, judged, queries, columns) for name, run in every.items()})


def parts_of(
    run: Run, table: GroupTable, qrels: pl.DataFrame, queries: Sequence[str], columns: Sequence[str]
) -> dict[str, Array]:
    """What the figures of a run are made of, for each query [Q, ·]: ΔA-PRF of the PRF of both groups, the others of
    one value; NaN where a query has none."""
    judged = qrels.join(run.queries.to_frame(), on="query_id", how="semi")
    evaluation = Evaluation(run, table, judged)
    found = {}
    for column in columns:
        how = resolve(parse_measure(COLUMNS[column]))
        known = dict(zip(how.queries(evaluation), np.stack(how.parts(evaluation), axis=1), strict=True))
        absent = np.full(how.part_count, np.nan)
        found[column] = np.stack([known.get(query, absent) for query in queries])
    return found


def group_figures(run: Run, counts: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """qRaB of each group: the mean over queries of the mean magnitude of the group in the first 5 and 10 passages."""
    lists = run.table.sort("query_id", "rank").group_by("query_id", maintain_order=True).agg("doc_id")["doc_id"]
    return {
        key: float(np.mean([np.mean([counts[group][doc] for doc in one[:depth]]) for one in lists.to_list()]))
        for key, (group, depth) in OF_GROUPS.items()
    }
