"""The yardstick ``shift``: one additive offset per side on a ranker's scores, the least that removes ΔA-PRF."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl

from evenrank.groups import Scoring, load_lexicon, sides_of_texts
from evenrank.io import Run, read_qrels, read_texts
from evenrank.io.types import Array

from .work import LEXICON

_STEPS = 40


def sides(run: Run, collection: str, scoring: Scoring | None = None) -> Array:
    """The side of each row of a run: 1 male, -1 female, 0 neither; ``scoring``: by default ours."""
    documents = run.table["doc_id"].unique(maintain_order=True)
    texts = read_texts(collection, documents)
    scoring = replace(scoring or Scoring(load_lexicon(LEXICON)), magnitudes=("tf_words",))
    known = texts.select("doc_id", side=pl.Series(sides_of_texts(texts["text"], scoring)).cast(pl.Float64))
    return run.table.join(known, on="doc_id", how="left", maintain_order="left")["side"].to_numpy()


def shifted(run: Run, collection: str, offset: float, scoring: Scoring | None = None) -> Run:
    """The run with ``offset / 2`` taken from every male passage's score and added to every female one's."""
    scores = run.table["score"].to_numpy() - offset / 2 * sides(run, collection, scoring)
    table = run.table.select("query_id", "doc_id").with_columns(score=pl.Series(scores))
    return Run.from_table(table, run.name)


def offset_of(run: Run, qrels: str, collection: str, scoring: Scoring | None = None) -> float:
    """The least offset that brings ΔA-PRF to 0 (negative where female passages win more often)."""
    table = run.table.with_columns(side=pl.Series(sides(run, collection, scoring)))
    judged = read_qrels(qrels).filter(pl.col("relevance") >= 1).select("query_id", "doc_id", clicked=pl.lit(True))
    marked = table.join(judged, on=["query_id", "doc_id"], how="left", maintain_order="left")
    rows = marked.select(
        "query_id", "score", "side", row=pl.int_range(pl.len()), clicked=pl.col("clicked").is_not_null()
    )
    pairs = rows.filter("clicked").join(rows.filter(~pl.col("clicked")), on="query_id", suffix="_other")
    pairs = pairs.filter(pl.col("side") != 0)
    ahead = (pairs["score"] - pairs["score_other"]).to_numpy()
    apart = (pairs["side"] - pairs["side_other"]).to_numpy() / 2
    male = pairs["side"].to_numpy() > 0
    query = pairs["query_id"].rank("dense").to_numpy().astype(np.int64) - 1

    def gap(offset: float) -> float:
        won = (ahead - offset * apart >= 0).astype(np.float64)
        return _mean_share(won[male], query[male]) - _mean_share(won[~male], query[~male])

    scores = table["score"].to_numpy()
    return least(gap, float(scores.max() - scores.min()))


def least(gap: Callable[[float], float], most: float) -> float:
    """The offset nearest 0 at which ``gap``, which falls as the offset grows, changes its sign; 0 if it never does."""
    start = gap(0.0)
    if np.isnan(start) or start == 0:
        return 0.0
    low, high = 0.0, float(np.copysign(most, start))
    if np.sign(gap(high)) == np.sign(start):
        return 0.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if np.sign(gap(middle)) == np.sign(start) else (low, middle)
    return high


def _mean_share(won: Array, query: Array) -> float:
    """The share of pairs won, mean over queries."""
    if not len(won):
        return float("nan")
    counts = np.bincount(query)
    return float((np.bincount(query, weights=won)[counts > 0] / counts[counts > 0]).mean())
