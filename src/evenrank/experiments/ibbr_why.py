"""Why a line of the IBBR experiment was missed: what was tried, and where the ideal offset loses utility."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evenrank.groups import Scoring, score_texts, sides_of_texts
from evenrank.io import read_qrels, read_queries

from .corpora import Part
from .paper_claims import Claim, above, below

if TYPE_CHECKING:
    from .ibbr_measured import Figures

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
    by_words = Scoring(scoring.lexicon, scoring.tokens, magnitudes=("tf_words",), threshold=scoring.threshold)
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
