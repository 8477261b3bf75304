"""Li et al. 2022, "Debiasing neural retrieval via in-batch balancing regularization": Tables 1 to 3.

A two-tower ranker is trained on clicks; then training continues with the queries of the fairness set, without the term
("none"), with PD, with TS, or, from its start on, with group words masked ("blind"): rows that differ by that alone.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from evenrank.auditing import RELEVANCE_FIRST, AuditResult
from evenrank.files import Run, read_qrels, read_queries, read_run, read_texts
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.groups import GroupTable, Scoring, load_lexicon, score_in_memory, score_texts, sides_of_texts
from evenrank.measures import Evaluation, parse_measure
from evenrank.measures.inference import Mixed, bootstrap_means, crossed_figures, holm, mixed_test
from evenrank.measures.registry import resolve
from evenrank.training.card import ruined

from . import work
from .corpora import Part
from .ibbr_setup import DEV, MSMARCO_BM25, SOURCE, TERMS, Data, Experiment, Settings
from .paper_page import (
    UNDECIDED,
    Claim,
    Curves,
    Drawing,
    ExperimentPage,
    Row,
    Table,
    Value,
    Verdict,
    above,
    below,
    curve,
    every,
    floored,
    numbers,
    plane,
    published,
)
from .untrained import (
    Axis,
    Frontier,
    Line,
    Rows,
    against_table,
    compare,
    curves_of,
    drawn,
    frontier_rows,
    frontier_table,
    rebalance_claim,
    reorderings,
)
from .work import LEXICON, Trained, development

ASKED, BOTH, ONE, NEITHER = "asked", "both", "one", "neither"
WORDS = {
    ASKED: "queries with a group word",
    BOTH: "queries without one, relevant passages of both groups",
    ONE: "queries without one, relevant passages of one group",
    NEITHER: "queries without one, no relevant passage of a group",
}
REASONS = {
    ASKED: "group words are what these queries ask for, and an offset takes as much from the asked group as from the"
    " other",
    BOTH: "a ranker that prefers a group puts that group's relevant passage above most passages of the other, so the"
    " first relevant one comes early: the preference earns MRR although relevance is even",
    ONE: "the passages of that group gain or lose against all others, relevant or not",
    NEITHER: "only passages that are not relevant move",
}
LINES = ("removed", "kept")
_KEPT, _LEFT = 0.97, 0.25
_HALF = "shift × 0.5"


def kinds_of(part: Part, texts: pl.DataFrame, scoring: Scoring, queries: Sequence[str]) -> list[str]:
    """The kind of each query: by its own group words, else by the sides of its relevant passages.

    ``texts``: ``doc_id`` and ``text`` of all listed passages.
    """
    asked = read_queries(part.queries).rename({"query_id": "doc_id"})
    counts = score_texts(asked, scoring)
    words = counts.select(pl.sum_horizontal(pl.col(f"count_{group}") for group in scoring.lexicon.groups)).to_series()
    gendered = set(counts["doc_id"].filter(words > 0).to_list())
    relevant = read_qrels(part.qrels).filter(pl.col("relevance") >= 1)
    judged = texts.join(relevant.select("doc_id").unique(), on="doc_id", how="semi", maintain_order="left")
    by_words = replace(scoring, magnitudes=("tf_words",))
    side = dict(zip(judged["doc_id"].to_list(), list(sides_of_texts(judged["text"], by_words)), strict=True))
    sides: dict[str, set[int]] = {}
    for query, doc in relevant.select("query_id", "doc_id").iter_rows():
        sides.setdefault(query, set()).add(int(side.get(doc, 0)))
    names = {0: NEITHER, 1: ONE, 2: BOTH}
    return [ASKED if query in gendered else names[len(sides.get(query, set()) - {0})] for query in queries]


def why(claims: Sequence[Claim], figures: Figures, grid: Figures, encoder: str) -> list[str]:
    """Notes, if one of evenrank's own lines is not supported; ``grid``: every weight, on one seed."""
    lines = {one.statement.key: one.verdict.supported for one in claims if one.statement.key in LINES}
    missed = [
        f"{word} ({' and '.join(keys)})"
        for word, state in (("Not reached", False), ("Not decided", None))
        if (keys := [key for key, supported in lines.items() if supported is state])
    ]
    if not missed:
        return []
    return [_tried(grid, ", ".join(missed), encoder), *_reason(figures, encoder, failed=False in lines.values())]


def _tried(grid: Figures, missed: str, encoder: str) -> str:
    """MRR and |ΔA-PRF| of every weight and yardstick."""
    names = [name for name in grid.systems if name not in ("base", "random", "neutral-first", "BM25")]
    said = []
    for name in names:
        found = grid.row(name, ["mrr", "delta_aprf_abs"])
        if len(found) == 2 and all(value.mean is not None for value in found.values()):
            said.append(f"{name} {found['mrr'].mean:.4f} and {found['delta_aprf_abs'].mean:.4f}")
    return (
        f"{missed}, {encoder}. Tried on the first seed, every weight and yardstick with its"
        f" test MRR and |ΔA-PRF|: {'; '.join(said)}."
    )


def _reason(figures: Figures, encoder: str, *, failed: bool) -> list[str]:
    if not {"none", "shift"} <= set(figures.systems):
        return []
    gaps = {name: _mean(figures, name, "delta_aprf_abs") for name in ("none", "shift")}
    if not gaps["none"]:
        return []
    spare = figures.difference("shift", "none", "mrr", _KEPT)
    fact = (
        f"Why, {encoder}: the offset between the groups that is ideal on the development queries (shift)"
        f" {_does(figures, 'shift')} (shift − {_KEPT:g} none {spare.signed()}, {spare.n} {spare.unit})"
    )
    if _HALF in figures.systems:
        fact += f"; half of it {_does(figures, _HALF)}"
    if gaps["shift"] > _LEFT * gaps["none"]:
        return [f"{fact}. So not even that offset carries over to the test queries."]
    if above(spare).supported:
        blame = ": what fails is the term, or the choice of its weight" if failed else ""
        return [f"{fact}. So an even ranking has no such price here{blame}."]
    if below(spare).supported is None:
        return [f"{fact}. Whether an even ranking has such a price is not decidable with this n."]
    return [f"{fact}. So here an even ranking costs more MRR than the line allows, however it is reached by group."
            f"{_where(figures)}"]  # fmt: skip


def _does(figures: Figures, system: str) -> str:
    gap, mrr = (_mean(figures, system, key) / _mean(figures, "none", key) for key in ("delta_aprf_abs", "mrr"))
    return f"removes {1 - gap:.0%} of |ΔA-PRF| and keeps {mrr:.1%} of none's MRR"


def _mean(figures: Figures, system: str, column: str) -> float:
    return float(np.nanmean(figures.per_seed(system, column)))


def _where(figures: Figures) -> str:
    """In which queries the ideal offset loses MRR, and why there."""
    lost: dict[str, list[float]] = {}
    for audit, kinds in zip(figures.audits, figures.kinds, strict=True):
        change = np.asarray(audit["shift"].figures["RR"].values) - np.asarray(audit["none"].figures["RR"].values)
        for kind, value in zip(kinds, change.tolist(), strict=True):
            lost.setdefault(kind, []).append(value)
    every = sum(map(len, lost.values()))
    if not every:
        return ""
    said = "; ".join(
        f"{WORDS[kind]} {np.mean(lost[kind]):+.4f} ({len(lost[kind]) / every:.0%})" for kind in WORDS if kind in lost
    )
    worst = min(lost, key=lambda kind: sum(lost[kind]))
    return (
        f" MRR of shift − none by kind of query, all seeds: {said}. Most is lost in {WORDS[worst]}: {REASONS[worst]}."
    )


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
    """For each seed, the kind of each query (:func:`evenrank.papers.ibbr_paper.kinds_of`)."""
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
    every = {FIRST: read_run(part.run, name=FIRST), **runs}
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


PAPER = "ibbr"
REMOVED, KEPT, COST = 0.75, 0.97, 0.9


NONE_CHOSEN = "no weight of the grid qualified, so this row is none's"


@dataclass(frozen=True, slots=True)
class Model:
    """A model's figures, and the weight of each row of a term (0: none qualified)."""

    figures: Figures
    weights: Mapping[str, float]

    @property
    def line(self) -> str:
        """The row that evenrank's own lines rest on."""
        return DEV if DEV in self.figures.systems else "TS best"

    def unchosen(self, *systems: str) -> list[str]:
        """The rows of "best" that no training with a term is in: nothing can be said of them."""
        return [name for name in systems if self.weights.get(name) == 0]


Judged = tuple[Verdict, str]
Judge = Callable[[Model], Judged]


def claims(
    figures: Mapping[str, Figures],
    baselines: Figures,
    chosen: Mapping[tuple[str, str], float],
    dev_weight: float | None = None,
) -> tuple[Claim, ...]:
    """Every claim that was measured; the own lines are of the first model. ``dev_weight``: λ of the row "TS dev"."""
    models = {}
    for name, own in figures.items():
        weights = {f"{term} best": weight for (encoder, term), weight in chosen.items() if encoder == name}
        models[name] = Model(own, weights if dev_weight is None else {**weights, DEV: dev_weight})
    small, large = ({name: own for name, own in models.items() if name.endswith(end)} for end in ("L2", "L4"))
    found: list[Claim | None] = [*_own(models[next(iter(models))])]
    found += [
        _each("ts_bias", models, _falls("TS best", "none", "delta_aprf_abs")),
        _each("ts_utility", models, _cheap("TS best")),
        _each("ts_recall", models, _falls("TS best", "none", "recall_10")),
        _each("ts_pd", models, _falls("TS best", "PD best", "delta_aprf_abs")),
        _each("pd_bias", large, *(_falls(name, "none", "delta_aprf_abs") for name in ("PD best", "PD auto"))),
        _each("pd_raises", small, *(_falls("none", name, "delta_aprf_abs") for name in ("PD best", "PD auto"))),
        _each("pd_utility", small, *(_falls(f"PD {how}", f"TS {how}", "mrr") for how in ("best", "auto"))),
        _each("auto_bias", models, _falls("TS best", "TS auto", "delta_aprf_abs")),
        _each("auto_utility", models, _cheap("TS auto")),
        _each("rab", large, _nearer("TS best", "none", "rab_5")),
        _each("dpr_bm25", models, _falls(FIRST, "none", "mrr")),
        _models(small, large),
        _each("lean_l4", large, _leans),
        *_of_baselines(baselines),
    ]
    return tuple(one for one in found if one is not None)


def _own(model: Model) -> list[Claim]:
    figures, row = model.figures, model.line
    n = counted(len(figures.audits), "seed")
    if figures.same_queries:
        n += f", {counted(len(figures.queries), 'query')} in all"
    signed = _value(figures, "none", "delta_aprf_signed")
    gone = figures.difference(row, "none", "delta_aprf_abs", 1 - REMOVED)
    none, best = (_value(figures, name, "delta_aprf_abs").mean for name in ("none", row))
    share = f", {1 - best / none:.0%} removed" if none and best is not None else ""
    kept = figures.difference(row, "none", "mrr", KEPT)
    over = figures.difference(row, "blind", "mrr")
    part = [_value(figures, name, "mrr").mean for name in (row, "none", "blind")]
    said = ", ".join(f"{name} {value:.4f}" for name, value in zip((row, "none", "blind"), part, strict=True) if value)
    if part[0] is not None and part[1]:
        said += f", {part[0] / part[1]:.1%} kept"
    # A weight of 0 is none: its row removes nothing, whatever the noise.
    weight = model.weights.get(row, 0.0)
    acted, no = Verdict(bool(weight)), "" if weight else f" ({NONE_CHOSEN})"
    return [
        Claim.of(PAPER, "gap", every(above(signed), _alive(figures, "none")), f"ΔA-PRF {signed.signed()}, {n}"),
        Claim.of(
            PAPER,
            "removed",
            every(below(gone), acted, _alive(figures, row)),
            f"λ {weight:g}{no}: |ΔA-PRF| {_said(best)} of {_said(none)}{share};"
            f" {row} − a quarter of none {gone.signed()}, {n}",
        ),
        Claim.of(
            PAPER,
            "kept",
            every(above(kept), above(over), acted, _alive(figures, row)),
            f"λ {weight:g}{no}: {said}; {row} − 0.97 none {kept.signed()}, {row} − blind {over.signed()}, {n}",
        ),
    ]


def _said(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.4f}"


def _value(figures: Figures, system: str, column: str) -> Value:
    return figures.row(system, [column]).get(column, Value(None))


def _alive(figures: Figures, system: str) -> Verdict:
    """Whether a ranker is above BM25: a broken one fulfils no claim."""
    return above(figures.difference(system, FIRST, "mrr"))


def _each(key: str, models: Mapping[str, Model], *judges: Judge) -> Claim | None:
    """A claim that holds if it holds for every model; None if none was measured."""
    if not models:
        return None
    found = [(name, judge(own)) for name, own in models.items() for judge in judges]
    detail = "; ".join(f"{name} {text}" for name, (_, text) in found)
    return Claim.of(PAPER, key, every(*(verdict for _, (verdict, _) in found)), detail)


def _if_chosen(*systems: str) -> Callable[[Callable[[Figures], Judged]], Judge]:
    """A judge that leaves a claim undecided where no weight qualified for one of the rows."""

    def of(judge: Callable[[Figures], Judged]) -> Judge:
        def judged(model: Model) -> Judged:
            missing = model.unchosen(*systems)
            return (UNDECIDED, f"{', '.join(missing)}: {NONE_CHOSEN}") if missing else judge(model.figures)

        return judged

    return of


def _falls(system: str, baseline: str, column: str) -> Judge:
    """Whether a row's figure is below another's, both rankers being above BM25 (BM25 itself excepted)."""

    @_if_chosen(system, baseline)
    def judged(figures: Figures) -> Judged:
        value = figures.difference(system, baseline, column)
        alive = [_alive(figures, name) for name in (system, baseline) if name != FIRST]
        return floored(below(value), *alive), f"{system} − {baseline} {_with_n(value)}"

    return judged


def _nearer(system: str, baseline: str, column: str) -> Judge:
    """Whether a signed figure is nearer 0 than another."""

    @_if_chosen(system, baseline)
    def judged(figures: Figures) -> Judged:
        value = figures.nearer(system, baseline, column)
        verdict = floored(below(value), _alive(figures, system), _alive(figures, baseline))
        return verdict, f"|{system}| − |{baseline}| {_with_n(value)}"

    return judged


def _cheap(system: str) -> Judge:
    """Whether a row costs at most a tenth of none's MRR."""

    @_if_chosen(system)
    def judged(figures: Figures) -> Judged:
        value = figures.difference(system, "none", "mrr", COST)
        return floored(above(value), _alive(figures, system)), f"{system} − {COST:g} none {_with_n(value)}"

    return judged


def _with_n(value: Value) -> str:
    return f"{value.signed()}, {value.n} {value.unit}"


def _leans(model: Model) -> Judged:
    value = _value(model.figures, "none", "delta_aprf_signed")
    return floored(below(value), _alive(model.figures, "none")), _with_n(value)


def _models(small: Mapping[str, Model], large: Mapping[str, Model]) -> Claim | None:
    if not small or not large:
        return None
    one, other = (next(iter(models.values())).figures for models in (large, small))
    value = one.against(other, "none", "mrr")
    verdict = floored(above(value), _alive(one, "none"), _alive(other, "none"))
    return Claim.of(PAPER, "dpr_l4", verdict, _with_n(value))


def _of_baselines(figures: Figures) -> list[Claim | None]:
    """Table 2's claims: one seed, over its queries."""
    names = figures.systems
    found: list[Claim | None] = []
    if "RM3" in names:
        value = figures.difference("RM3", FIRST, "mrr")
        found.append(Claim.of(PAPER, "rm3", below(value), _with_n(value)))
    others = [name for name in ("C-KNRM", "KNRM", "MP", FIRST) if name in names]
    if "TK" in names and len(others) > 1:
        values = {name: figures.difference("TK", name, "mrr") for name in others}
        detail = "; ".join(f"TK − {name} {value.signed()}" for name, value in values.items())
        found.append(Claim.of(PAPER, "tk", every(*map(above, values.values())), detail))
    return found


Chosen = Mapping[tuple[str, str], float]


def notes(settings: Settings, chosen: Chosen, figures: Mapping[str, Figures], scoring: Scoring) -> tuple[str, ...]:
    """The settings, what differs from the paper, and the frontier."""
    found = [
        _development(settings),
        f"Bias measures and the term: lexicon {scoring.lexicon.name}, {scoring.tokens} tokens.",
        "Our reading: the ranker is trained with nll on the DPR queries, and continues with the fairness queries; none"
        " and blind go on with them too, without the term, so that rows differ by the term alone. Every training on the"
        " fairness queries keeps its last checkpoint: MRR alone would choose one from before the term acted.",
        f"A query's list: its clicked passage and BM25's first {settings.listed - 1} others (of the first"
        f" {settings.depth}); a clicked passage that BM25 did not find comes last.",
        "λ best was chosen on the development queries of one seed and then used for all; nothing was chosen on"
        f" test queries. The trained λ has a learning rate of {settings.auto_rate:g} of its own (the paper does not"
        " give one).",
        *_of_lines(settings),
        "shift, blind, random and neutral-first are controls; random is the expectation over random orders.",
        *_of_scale(settings),
        *([_SHARED] if any(own.same_queries for own in figures.values()) else []),
        *_shift_notes(figures),
    ]
    for (encoder, term), weight in chosen.items():
        if not weight:
            found.append(f"{encoder} {term}: no weight of the grid kept 0.95 of the MRR; its best row is that of none.")
    return tuple(found)


def _of_lines(settings: Settings) -> list[str]:
    """Where the weight of evenrank's own lines comes from."""
    if settings.dev_weight is None:
        return ["evenrank's own lines (removed, kept) rest on the row of TS with λ best."]
    return [
        f"TS dev: λ {settings.dev_weight:g}, between two weights that on the data of the development seeds removed more"
        " than three quarters of |ΔA-PRF| and kept more than 97% of MRR. evenrank's own lines (removed, kept) rest on"
        " it; the paper's claims rest on λ best, whose rule allows a loss of 5% of MRR."
    ]


def _development(settings: Settings) -> str:
    reported = ", ".join(map(str, settings.seeds))
    if settings.development:
        chosen = ", ".join(map(str, settings.development))
        return f"Settings were chosen on the development seeds {chosen}; reported are the seeds {reported}."
    if settings.options is not None:
        return (
            "Nothing was developed on these data: sizes and rates were set from estimates of the time. Reported are the"
            f" seeds {reported}."
        )
    return f"The settings are the paper's, or stand below; reported are the seeds {reported}."


_SHARED = (
    "Seeds share test queries, which are no new evidence. So the variance over seeds and that over queries add:"
    " Recall, MRR and nDCG by a mixed view of queries crossed with seeds; ΔA-PRF and RaB by bootstrap draws of the"
    " queries, the same for all seeds (an error too large rather than too small). n is of seeds or queries, whichever"
    " the error mostly comes from. Intervals of qRaB, of ΔA-PRF on clicks and of random and neutral-first are over"
    " seeds alone."
)


def _of_scale(settings: Settings) -> list[str]:
    planted = settings.planted
    if planted is not None:
        return [
            f"Scale tiny: the built-in collection ({planted.passages:,} passages, generated for each seed). In training"
            f" {planted.click_share('train'):.0%} of the gendered clicks are male, in development and test"
            f" {planted.click_share('test'):.0%}; development and test queries, about other entities, are judged by"
            f" planted relevance. Group words decide {planted.group_query_rate:.0%} of the queries, half for each"
            " group: the paper's fairness queries are all neutral; without these, masking would cost nothing.",
            f"The encoder has {settings.small_bert.layers} transformer layers (word vectors, layer norm and their mean)"
            f" and {settings.small_bert.hidden} dimensions in place of BERT-L2's two, and starts from random weights;"
            " no BERT-L4; kernel rankers with vectors made here. On the fairness queries only the projection after the"
            " encoder moves: the whole encoder learns those queries by heart, and |ΔA-PRF| falls on them alone.",
        ]
    if settings.options is not None:
        return [
            "Scale real: the first 2 and 4 layers of the encoder stand for BERT-L2 and BERT-L4, trained briefly on"
            " SQuAD's questions; the fairness set is Grep-BiasIR's queries, divided anew for each seed. In training"
            f" {settings.click_male_share:.0%} of the clicks are on the male wording of the relevant document, else on"
            " the female one; development and test count every wording of it. So few queries decide little: the"
            " claims say what n would.",
        ]
    return [
        "The paper does not say which 1,252 of the 1,765 neutral annotated queries it takes: a seeded draw of those"
        " that are judged. DPR queries: a seeded draw of all other judged queries of train and dev. Kernel rankers"
        " learn their word vectors from the collection unless `vectors` names a file (the papers: GloVe 42B).",
        "Learning rate and batch of DPR are chosen from the published grids by validation MRR on the first seed.",
        f"BM25 (also for RM3) has k1 {MSMARCO_BM25['k1']:g}, b {MSMARCO_BM25['b']:g}; the paper does not give them.",
        "The paper gives neither the length of a training nor when it stops. Here DPR trains for"
        f" {settings.base['epochs']:g} epochs, validated every {settings.base['evaluate_every']} steps, and stops after"
        f" {settings.base['patience']} validations without a better one; the trainings on the fairness queries take"
        f" {settings.going_on['epochs']:g} epochs. Nor does it give the kernel rankers' settings:"
        f" {_kernels(settings)}.",
        "blind masks the words of gender-en; all other rows use the published lexicon.",
    ]


def _kernels(settings: Settings) -> str:
    of = {
        f"batches of {one['training']['batch']}, {str(one['training'].get('optimizer', 'adamw')).capitalize()} at"
        f" {one['training'].get('learning_rate', 0.001):g}"
        for one in settings.baselines.values()
    }
    return "; ".join(sorted(of)) or "none are trained"


def _shift_notes(figures: Mapping[str, Figures]) -> list[str]:
    """By how much the ideal offset does better than TS, or worse."""
    found = []
    for encoder, own in figures.items():
        names = ("none", "TS best", *([DEV] if DEV in own.systems else []), "shift", "blind")
        rows = {name: own.row(name, ["mrr", "delta_aprf_abs"]) for name in names}
        if not all(len(row) == 2 for row in rows.values()):
            continue
        said = "; ".join(
            f"{name}: MRR {row['mrr'].mean:.4f}, |ΔA-PRF| {row['delta_aprf_abs'].mean:.4f}"
            for name, row in rows.items()
        )
        found.append(f"Frontier {encoder}: {said}.")
    return found


CONTROLS = ("base", "blind", "shift × 0.5", "shift", "random", "neutral-first")
OWN_HEADINGS = {CLICKED: "ΔA-PRF, clicks", **GROUP_HEADINGS}
_CLAMP = math.exp(5)


def _row(labels: tuple[str, ...], figures: Figures | None, system: str, columns: Sequence[str], **more: object) -> Row:
    measured = {} if figures is None else figures.row(system, columns)
    warning = figures.warning(system) if figures is not None and measured else ""
    return replace(Row(labels, measured, warning=warning), **more)  # type: ignore[arg-type]


def controls(figures: Figures, labels: int, columns: Sequence[str]) -> list[Row]:
    """The rows that every table has beside the paper's: yardsticks, and the ranker before the fairness queries."""
    rest = ("",) * (labels - 1)
    found = [name for name in CONTROLS if name in figures.systems]
    return [_row((name, *rest), figures, name, columns, control=True) for name in found]


def table1(
    settings: Settings, figures: Mapping[str, Figures], chosen: Mapping[tuple[str, str], float], words: str = ""
) -> Table:
    """Table 1 of the paper: without a term, and each term with the best and the trained weight. ``words``: the lexicon
    and tokens of the bias measures, if not the published ones; without published figures then."""
    printed = [name for name in HEADINGS if name != "delta_aprf_signed"]
    columns = [*HEADINGS, *(key for key in OWN_HEADINGS if _measured(figures, key))]
    rows = []
    for line in published("ibbr_table1"):
        system = "none" if line["ibbr"] == "none" else f"{line['ibbr']} {line['lambda']}"
        labels = (line["model"], line["ibbr"], line["lambda"])
        own = figures.get(line["model"])
        rows.append(_row(labels, own, system, columns, published={} if words else numbers(line, printed)))
    for encoder, own in figures.items():
        if DEV in own.systems:
            rows.append(_row((encoder, "TS", f"{settings.dev_weight:g} (dev)"), own, DEV, columns))
        rows += [replace(row, labels=(encoder, row.labels[0], "")) for row in controls(own, 3, columns)]
    best = ", ".join(f"{encoder} {term}: {weight:g}" for (encoder, term), weight in chosen.items())
    notes = [
        f"λ best, chosen on the development queries of seed {settings.seeds[0]} (0: none is): {best}.",
        "base: before the fairness queries. blind: group words masked throughout. shift: none's scores with the least"
        " offset between the groups that removes ΔA-PRF on the development queries; × 0.5: half of it.",
    ]
    if CLICKED in columns:
        notes.append("ΔA-PRF, clicks: on one unskewed click a query in place of every relevant passage.")
    headings = {key: {**HEADINGS, **OWN_HEADINGS}[key] for key in columns}
    name, title = _named("Table 1", "With and without the term", words)
    return Table(name, title, ("model", "IBBR", "λ"), headings, tuple(rows), tuple(notes))


def _named(name: str, title: str, words: str) -> tuple[str, str]:
    return (f"{name} ours", f"{title}: {words}") if words else (name, title)


def _measured(figures: Mapping[str, Figures], column: str) -> bool:
    return any(column in row for one in figures.values() for more in one.more for row in more.values())


def changes(figures: Mapping[str, Figures]) -> Table:
    """Every row against none: relative changes, and their p with Holm's correction over the rows of a column."""
    columns = [*QUERY_COLUMNS, "delta_aprf_abs", "rab_5", "rab_10"]
    headings: dict[str, str] = {}
    for key in columns:
        headings |= {key: f"{HEADINGS[key]} %", f"{key}_p": "p", f"{key}_holm": "Holm"}
    rows: list[Row] = []
    for encoder, own in figures.items():
        others = [name for name in own.systems if name not in ("none", "BM25", "random", "neutral-first")]
        found: dict[str, dict[str, Value]] = {name: {} for name in others}
        for key in columns:
            tests = [own.test(name, "none", key) for name in others]
            for name, test, corrected in zip(others, tests, holm([one.p for one in tests]), strict=True):
                part = relative(own.per_seed(name, key), own.per_seed("none", key))
                n = (test.n, test.limit) if own.same_queries else (test.seeds, "seeds")
                found[name] |= {
                    key: Value(part, *n),
                    f"{key}_p": Value(test.p, *n),
                    f"{key}_holm": Value(corrected, *n),
                }
        rows += [Row((encoder, name), found[name], control=name in CONTROLS) for name in others]
    notes = (
        "Change of the mean over seeds in % of none's. p: over queries nested in seeds (mixed view) for Recall, MRR and"
        " nDCG, a paired t-test over seeds for the others; where seeds share queries, both count in every test (n is of"
        " the one that the error mostly comes from). Holm's correction is over the rows of a column.",
    )
    return Table("Changes", "Against none", ("model", "row"), headings, tuple(rows), notes)


def relative(values: Sequence[float], baseline: Sequence[float]) -> float | None:
    """The change of the mean in % of the baseline's; None if that is 0 or unknown."""
    before = sum(baseline) / len(baseline)
    found = 100 * (sum(values) / len(values) - before) / abs(before) if before else math.nan
    return None if math.isnan(found) else found


def table2(figures: Mapping[str, Figures], baselines: Figures, words: str = "") -> Table:
    """Table 2: rankers without the term; ``words`` as in :func:`table1`."""
    printed = [name for name in HEADINGS if name != "delta_aprf_abs"]
    columns = [*HEADINGS, *(key for key in OWN_HEADINGS if _measured(figures, key))]
    rows = []
    for line in published("ibbr_table2"):
        name = line["model"]
        own = figures.get(name.replace("DPR-", "BERT-")) if name.startswith("DPR-") else baselines
        system = "none" if name.startswith("DPR-") else name
        rows.append(_row((name,), own, system, columns, published={} if words else numbers(line, printed)))
    rows += controls(next(iter(figures.values())), 1, columns)
    headings = {key: {**HEADINGS, **OWN_HEADINGS}[key] for key in columns}
    notes = ("BM25, RM3 and kernel rankers: one seed, interval over queries.",)
    return Table(*_named("Table 2", "Rankers without the term", words), ("ranker",), headings, tuple(rows), notes)


def retrieval_table(settings: Settings, figures: Mapping[str, Figures]) -> Table:
    """The rows that search the whole collection themselves, beside BM25."""
    columns = list(HEADINGS)
    rows = []
    for encoder, own in figures.items():
        rows += [_row((encoder, name), own, name, columns) for name in (FIRST, *settings.retrieved)]
        rows += [
            replace(row, labels=(encoder, row.labels[0]))
            for row in controls(own, 1, columns)
            if row.labels[0] not in settings.retrieved
        ]
    notes = (
        f"The first {settings.listed} passages of the whole collection by the ranker's own vectors (exact search),"
        " where Table 1 re-ranks lists that always have the clicked passage. random and neutral-first order BM25's"
        " lists.",
    )
    return Table("Retrieval", "The same rankers as first stages", ("model", "ranking"), HEADINGS, tuple(rows), notes)


def table3(data: Data) -> Table:
    """Table 3: the numbers of queries."""
    parts = {name: float(part.count) for name, part in data.parts.items()}
    counts = {
        "DPR": {"train": parts["dpr"], "dev": parts["dpr_dev"], "test": parts["test"]},
        "Fairness": {"train": parts["train"], "dev": parts["dev"], "test": parts["test"]},
    }
    columns = ["train", "dev", "test", "total"]
    rows = []
    for line in published("ibbr_table3"):
        own = counts[line["data"]]
        own |= {"total": sum(own.values())}
        measured = {key: Value(value, 1, "count") for key, value in own.items()}
        rows.append(Row((line["data"],), measured, numbers(line, columns)))
    return Table("Table 3", "Queries", ("data",), {key: key for key in columns}, tuple(rows))


def grid_table(
    encoder: str,
    figures: Figures,
    grids: Mapping[tuple[str, str], Mapping[float, Trained]],
    chosen: Mapping[tuple[str, str], float],
) -> Table:
    """Every weight on one seed's test queries, with what validation chose by."""
    columns = list(COLUMNS)
    rows = []
    for term in TERMS:
        for weight, trained in grids[encoder, term].items():
            system = f"{term} {weight:g}" if weight else "none"
            mark = " (best)" if chosen[encoder, term] == weight else ""
            row = _row((term, f"{weight:g}{mark}"), figures, system, columns)
            rows.append(replace(row, measured={**row.measured, **_validation(trained)}))
    rows += controls(figures, 2, columns)
    headings = HEADINGS | {"valid_mrr": "valid. MRR", "valid_bias": "valid. |ΔA-PRF|"}
    notes = (
        "One seed, intervals over test queries. Best: lowest validation |ΔA-PRF| among those with at least 0.95 of the"
        " MRR at λ 0.",
    )
    return Table(f"Grid {encoder}", "Every weight", ("term", "λ"), headings, tuple(rows), notes)


def _validation(trained: Trained) -> dict[str, Value]:
    return {"valid_mrr": Value(trained.value, 1), "valid_bias": Value(trained.bias, 1)}


def score_table(experiment: Experiment, grids: Mapping[tuple[str, str], Mapping[float, Trained]]) -> Table:
    """R in nPRF: TS with each, on the validation queries of one seed."""
    settings = experiment.settings
    encoder, first = next(iter(settings.encoders)), settings.seeds[0]
    found: list[tuple[str, float, Trained]] = [
        (settings.score, weight, trained) for weight, trained in grids[encoder, "TS"].items()
    ]
    for score, weights in settings.scores.items():
        found += [(score, w, experiment.fair(first, encoder, "TS", w, score)) for w in weights]  # type: ignore[arg-type]
    blind = experiment.blind(first, encoder)
    rows = [Row((score if w else "any", f"{w:g}"), _validation(trained)) for score, w, trained in found]
    rows.append(Row(("blind", ""), {"valid_mrr": Value(blind.value, 1)}, control=True))
    headings = {"valid_mrr": "valid. MRR", "valid_bias": "valid. |ΔA-PRF|"}
    notes = ("TS, one seed, validation queries: which R has the lowest |ΔA-PRF| for the MRR that it costs.",)
    return Table("Score R", "R in nPRF: softmax, sigmoid or identity", ("R", "λ"), headings, tuple(rows), notes)


def auto_table(experiment: Experiment) -> Table:
    """The trained weights at the end of training, beside their optimum for the losses of the last steps."""
    rows = []
    for encoder in experiment.settings.encoders:
        for term in TERMS:
            trained = experiment.fair(experiment.settings.seeds[0], encoder, term, "auto", experiment.settings.score)
            rows.append(Row((encoder, term), auto_weights(experiment.log(trained), experiment.auto_state(trained))))
    headings = {
        "fair": "L_fair",
        "weight": "e^−b",
        "optimum": "1/L_fair",
        "rank": "L_rank",
        "rank_weight": "e^−a",
        "rank_optimum": "1/L_rank",
        "ratio": "λ = e^−b / e^−a",
    }
    notes = (
        "One seed. Losses: means over the last tenth of the training. The optimum is kept within e^−5 and e^5, as the"
        " trained weights are.",
    )
    return Table(
        "Auto", "The trained weight and its optimum in closed form", ("model", "term"), headings, tuple(rows), notes
    )


def auto_weights(log: Sequence[Mapping[str, object]], state: str) -> dict[str, Value]:
    """The columns of :func:`auto_table` from a training's log and the state of its last checkpoint (JSON)."""
    lines = _steps(log)
    last = lines[-max(1, len(lines) // 10) :]
    values = json.loads(state)["values"] if state else {}
    found: dict[str, Value] = {}
    for name, key, number in (("fair", "fair_loss_gender", "0"), ("rank", "rank_loss", "rank")):
        # A line is the mean of its steps; the term has no loss in batches that lack a group.
        lacking = "lacking_a_group_gender" if name == "fair" else ""
        known = [(_number(line, key), steps - _number(line, lacking, 0)) for line, steps in last if key in line]
        known = [(loss, steps) for loss, steps in known if steps > 0]
        steps = sum(count for _, count in known)
        if not steps:
            continue
        loss = sum(mean * count for mean, count in known) / steps
        best = min(max(1 / loss, 1 / _CLAMP), _CLAMP) if loss > 0 else _CLAMP
        prefix = "" if name == "fair" else "rank_"
        found |= {name: Value(loss, round(steps), "steps"), f"{prefix}optimum": Value(best, 1)}
        if number in values:
            found[f"{prefix}weight"] = Value(math.exp(-values[number][0]), 1)
    one, other = found.get("weight"), found.get("rank_weight")
    if one is not None and other is not None and one.mean is not None and other.mean:
        found["ratio"] = Value(one.mean / other.mean, 1)
    return found


def _steps(log: Sequence[Mapping[str, object]]) -> list[tuple[Mapping[str, object], float]]:
    """The lines of a log with losses, and over how many steps each is the mean."""
    found, before = [], 0.0
    for line in log:
        if "rank_loss" in line:
            step = _number(line, "step")
            found.append((line, step - before))
            before = step
    return found


def _number(line: Mapping[str, object], key: str, default: float = math.nan) -> float:
    value = line.get(key, default)
    return float(value) if isinstance(value, int | float) else math.nan


def systems_plane(
    encoder: str, figures: Figures, what: str = "means over seeds", curves: Curves | None = None
) -> Drawing:
    """MRR against |ΔA-PRF|; ``curves``: none's runs reordered."""
    names = [name for name in figures.systems if name not in ("random", "neutral-first", "BM25")]
    points = {}
    for name in names:
        found = figures.row(name, ["mrr", "delta_aprf_abs"])
        if len(found) == 2:
            points[name] = (found["mrr"], found["delta_aprf_abs"])
    return plane(
        f"Plane {encoder}",
        f"MRR against |ΔA-PRF|: {what}",
        points,
        "MRR (higher is better)",
        "|ΔA-PRF| (nearer 0 is better)",
        ("none", "blind"),
        curves,
    )


def none_curve(experiment: Experiment, encoder: str) -> Drawing:
    """How none's loss, MRR and ΔA-PRF went in training, so that a reader sees whether it converged."""
    names = {"rank_loss": "loss in training", "eval_validation": "validation MRR", "eval_delta_aprf_gender": "ΔA-PRF"}
    log = experiment.curve(experiment.settings.seeds[0], encoder)
    rows = [
        {"x": line["step"], "measure": title, "value": line[key], "low": line[key], "high": line[key]}
        for line in log
        for key, title in names.items()
        if line.get(key) is not None
    ]
    hint = "The first seed's training on the fairness queries without a term."
    return curve(f"Curve {encoder}", "none in training", rows, "step", hint)


RUN, BASE, BLIND = "none", "base", "blind"
UTILITY = "mrr"
AXIS = Axis("delta_aprf_signed", "|ΔA-PRF|")
CELLS = {key: ("delta_aprf_signed", True) if key == "delta_aprf_abs" else (key, False) for key in HEADINGS}
_MEASURED = [column for column in COLUMNS if column != "delta_aprf_abs"]


@dataclass(frozen=True)
class Untrained:
    """The frontier of each model, and how each trained mitigation compares with it."""

    frontiers: Mapping[str, Frontier]
    lines: tuple[Line, ...]

    def tables(self) -> list[Table]:
        """The frontier, and the trained mitigations beside it."""
        rows = [row for name, one in self.frontiers.items() for row in frontier_rows(one, CELLS, AXIS, (name,))]
        return [
            frontier_table(rows, HEADINGS, ("model",), RUN),
            against_table(self.lines, ("model",), HEADINGS[UTILITY]),
        ]

    def curves(self, encoder: str) -> Curves:
        """For the plane of the trained rows."""
        return drawn(self.frontiers[encoder], AXIS)

    def claim(self, figures: Mapping[str, Figures]) -> Claim | None:
        """Whether reordering beats or equals every trained mitigation, of rankers above BM25."""
        alive = [above(one.difference(RUN, FIRST, UTILITY)) for one in figures.values()]
        return rebalance_claim(PAPER, self.lines, *alive)


def untrained(experiment: Experiment, chosen: Mapping[tuple[str, str], float], scoring: Scoring) -> Untrained:
    """Measures and compares, for every model. A row of "best" without a weight that qualified is none's, and no
    mitigation."""
    frontiers, lines = {}, []
    for encoder in experiment.settings.encoders:
        weights = {term: chosen[encoder, term] for term in TERMS}
        frontiers[encoder] = frontier = _frontier(experiment, encoder, weights, scoring)
        rows = [f"{term} best" for term, weight in weights.items() if weight] + [f"{term} auto" for term in TERMS]
        rows += [*([DEV] if experiment.settings.dev_weight is not None else []), BLIND]
        lines += [compare(frontier, row, AXIS, (encoder,), control=row == BLIND) for row in rows]
    return Untrained(frontiers, tuple(lines))


def _frontier(experiment: Experiment, encoder: str, weights: Mapping[str, float], scoring: Scoring) -> Frontier:
    """The rows of all seeds' test queries, and of the first seed's development queries."""
    settings, first = experiment.settings, experiment.settings.seeds[0]
    shared = settings.planted is None
    dev, test = Rows(same_queries=shared), Rows(same_queries=shared)
    for seed in settings.seeds:
        trained = _mitigations(experiment, seed, encoder, weights)
        runs = {row: experiment.test(seed, one) for row, one in trained.items()}
        _add(experiment, seed, "test", runs, development(trained[RUN]), scoring, test)
    trained = _mitigations(experiment, first, encoder, weights)
    runs = {row: development(one) for row, one in trained.items()}
    _add(experiment, first, "dev", runs, runs[RUN], scoring, dev)
    return Frontier(RUN, curves_of(settings.strengths), dev, test, UTILITY)


def _mitigations(experiment: Experiment, seed: int, encoder: str, weights: Mapping[str, float]) -> dict[str, Trained]:
    """None and the rows that continue as it does: "base" was validated on other queries."""
    return {row: one for row, one in experiment.rows(seed, encoder, weights).items() if row != BASE}


def _add(
    experiment: Experiment, seed: int, part: str, runs: Mapping[str, Run], learn: Run, scoring: Scoring, into: Rows
) -> None:
    """Measures a seed's runs of one part and the reorderings of none; the documents are read and scored once.

    ``learn``: none's run of the seed's development queries.
    """
    data = experiment.of(seed)
    documents = pl.concat([learn.table["doc_id"], runs[RUN].table["doc_id"]]).unique(maintain_order=True)
    table = score_in_memory(read_texts(data.collection, documents), scoring)
    every = {**runs, **reorderings(runs[RUN], table, experiment.settings.strengths, learn)}
    qrels, queries = read_qrels(data.parts[part].qrels), runs[RUN].queries.to_list()
    into.seeds.append({row: parts_of(run, table, qrels, queries, _MEASURED) for row, run in every.items()})
    into.queries.append(queries)


OURS = "gender-en, word tokens"


def run(settings: Settings, folder: Path, say: Callable[[str], None] = lambda _: None, jobs: int = 1) -> ExperimentPage:
    """Runs the whole experiment, resuming finished trainings; returns its tables and figures."""
    work.write_settings(folder, {k: v for k, v in asdict(settings).items() if k not in ("seeds", "strengths", "given")})
    experiment = Experiment(settings, folder, say)
    if jobs > 1:
        experiment.everything_ahead(jobs)
    first, main = settings.seeds[0], next(iter(settings.encoders))
    chosen: dict[tuple[str, str], float] = {}
    trained: dict[tuple[str, str], dict[float, Trained]] = {}
    for encoder in settings.encoders:
        for term in TERMS:
            chosen[encoder, term], trained[encoder, term] = experiment.best(encoder, term)
    scoring = experiment.scoring(first)
    figures, grids, baselines = measured(experiment, chosen, trained, scoring)
    without = untrained(experiment, chosen, scoring)
    tables = [table1(settings, figures, chosen), changes(figures), table2(figures, baselines), *without.tables()]
    if experiment.of(first).lexicon != LEXICON or scoring.tokens != "word":
        own, _, others = measured(experiment, chosen, trained, Scoring(load_lexicon(LEXICON)))
        tables += [table1(settings, own, chosen, OURS), table2(own, others, OURS)]
    if settings.retrieved:
        tables.append(retrieval_table(settings, retrieved(experiment, chosen, scoring)))
    tables += [
        table3(experiment.of(first)),
        *(grid_table(encoder, grids[encoder], trained, chosen) for encoder in settings.encoders),
        auto_table(experiment),
        *([score_table(experiment, trained)] if settings.scores else []),
    ]
    drawings = [systems_plane(one, figures[one], curves=without.curves(one)) for one in settings.encoders]
    drawings += [systems_plane(encoder, grids[encoder], "every weight, one seed") for encoder in settings.encoders]
    drawings += [none_curve(experiment, encoder) for encoder in settings.encoders]
    ours = without.claim(figures)
    found = (*claims(figures, baselines, chosen, settings.dev_weight), *([] if ours is None else [ours]))
    return ExperimentPage(
        "ibbr",
        "In-batch balancing regularization",
        SOURCE,
        (
            ("scale", settings.scale),
            ("seeds", ", ".join(map(str, settings.seeds))),
            ("development seeds", ", ".join(map(str, settings.development)) or "no"),
            ("test queries", str(settings.sizes["test"])),
        ),
        found,
        tuple(tables),
        tuple(drawings),
        (*notes(settings, chosen, figures, scoring), *why(found, figures[main], grids[main], main)),
    )


Measured = tuple[dict[str, Figures], dict[str, Figures], Figures]


def measured(
    experiment: Experiment,
    chosen: Chosen,
    trained: Mapping[tuple[str, str], Mapping[float, Trained]],
    scoring: Scoring,
) -> Measured:
    """The rows of all seeds by encoder, every weight of the first seed by encoder, and the baselines."""
    settings, first = experiment.settings, experiment.settings.seeds[0]
    # A built-in collection is generated for each seed; published test queries are the same, drawn ones overlap.
    shared = settings.planted is None
    figures, grids = ({one: Figures(same_queries=shared) for one in settings.encoders} for _ in range(2))
    for encoder in settings.encoders:
        of_encoder = {term: chosen[encoder, term] for term in TERMS}
        for seed in settings.seeds:
            measure(experiment, seed, experiment.systems(seed, encoder, of_encoder), figures[encoder], scoring)
        measure(experiment, first, _every_weight(experiment, encoder, trained), grids[encoder], scoring)
    baselines = Figures(same_queries=shared)
    others = {name: experiment.test(first, experiment.baseline(name)) for name in settings.baselines}
    measure(experiment, first, others | {"RM3": experiment.rm3(first)}, baselines, scoring)
    return figures, grids, baselines


def retrieved(experiment: Experiment, chosen: Chosen, scoring: Scoring) -> dict[str, Figures]:
    """The rows that search the whole collection, of all seeds by encoder."""
    settings = experiment.settings
    found = {encoder: Figures(same_queries=settings.planted is None) for encoder in settings.encoders}
    for encoder, figures in found.items():
        rows = experiment.retrievals(encoder, {term: chosen[encoder, term] for term in TERMS})
        for seed in settings.seeds:
            runs = {row[1]: experiment.retrieved(seed, *row) for row in rows}
            measure(experiment, seed, runs, figures, scoring)
    return found


def _every_weight(
    experiment: Experiment, encoder: str, trained: Mapping[tuple[str, str], Mapping[float, Trained]]
) -> dict[str, Run]:
    """The first seed's test lists under each weight, and the yardsticks."""
    first = experiment.settings.seeds[0]
    grid = {f"{term} {w:g}": one for term in TERMS for w, one in trained[encoder, term].items() if w}
    every = grid | {
        "none": trained[encoder, "TS"][0.0],
        "base": experiment.base(first, encoder),
        "blind": experiment.blind(first, encoder),
    }
    if experiment.settings.dev_weight is not None:
        score = experiment.settings.score
        every[DEV] = experiment.fair(first, encoder, "TS", experiment.settings.dev_weight, score)
    runs = {name: experiment.test(first, one) for name, one in every.items()}
    return runs | {
        "shift" if share == 1 else f"shift × {share:g}": run for share, run in experiment.shifts(first, encoder).items()
    }
