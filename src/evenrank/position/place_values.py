"""Rank and nDCG of a query whose relevant passage gets another score, all other candidates as they are."""

from __future__ import annotations

import numpy as np
import polars as pl

from evenrank.io import Run

from .resampling import Floats, Ints

DEPTH = 10
_CHUNK = 4_000_000


def ranks_and_values(scores: Floats, own: pl.DataFrame, ranked: Run, judged: pl.DataFrame) -> tuple[Floats, Floats]:
    """Ranks [M, K] from 1 and nDCG@10 [M, K] of the versions of M passages with ``scores`` [M, K] (NaN: none).

    ``own``: ``query_id``, ``doc_id`` of the passage that the versions stand in for. nDCG as trec_eval computes it, with
    grades as gains. Both are means over the orders of candidates with equal scores.
    """
    others, gains = _others(own, ranked, judged)
    grade, ideal = _own_grades(own, judged)
    padded = np.concatenate([gains, np.zeros((len(own), 1))], axis=1)
    ranks, values = np.full(scores.shape, np.nan), np.full(scores.shape, np.nan)
    step = max(1, _CHUNK // max(1, scores.shape[1] * others.shape[1]))
    for start in range(0, len(scores), step):
        part = slice(start, start + step)
        of, at = scores[part], others[part]
        before = (at[:, None, :] > of[:, :, None]).sum(axis=2)
        equal = (at[:, None, :] == of[:, :, None]).sum(axis=2)
        known = ~np.isnan(of)
        ranks[part] = np.where(known, 1 + before + equal / 2, np.nan)
        mean = _mean_dcg(padded[part], grade[part], before, equal)
        values[part] = np.where(known, mean / ideal[part][:, None], np.nan)
    return ranks, values


def _mean_dcg(gains: Floats, grade: Floats, before: Ints, equal: Ints) -> Floats:
    """DCG [M, K] of the own passage behind ``before`` others, its mean over the places among ``equal`` others."""
    place = np.arange(1, gains.shape[1] + 1)
    # The last place is that of the own passage behind all others; the discount beyond it is needed for none.
    discount = np.where(place <= DEPTH, 1 / np.log2(1 + place), 0.0)
    shifted = np.append(discount[1:], 0.0)
    none = np.zeros((len(gains), 1))
    kept = np.concatenate([none, np.cumsum(gains * discount, axis=1)[:, :-1]], axis=1)
    pushed = np.cumsum((gains * shifted)[:, ::-1], axis=1)[:, ::-1]
    totals = np.concatenate([none, np.cumsum(grade[:, None] * discount + kept + pushed, axis=1)], axis=1)
    upto = np.take_along_axis(totals, before + equal + 1, axis=1)
    found: Floats = (upto - np.take_along_axis(totals, before, axis=1)) / (equal + 1)
    return found


def _others(own: pl.DataFrame, ranked: Run, judged: pl.DataFrame) -> tuple[Floats, Floats]:
    """Scores (−∞ beyond a query's last) and gains [M, C] of each query's other candidates, best first."""
    numbered = own.select("query_id", pl.col("doc_id").alias("own")).with_row_index("row")
    table = numbered.join(ranked.table, on="query_id", how="inner").filter(pl.col("doc_id") != pl.col("own"))
    gains = judged.select("query_id", "doc_id", pl.col("relevance").clip(0).cast(pl.Float64).alias("gain"))
    table = table.join(gains, on=["query_id", "doc_id"], how="left", maintain_order="left").sort("row", "rank")
    row = table["row"].to_numpy().astype(np.int64)
    count = np.bincount(row, minlength=own.height)
    column = np.arange(len(row)) - (np.cumsum(count) - count)[row]
    size = own.height, int(count.max(initial=0))
    scores, grades = np.full(size, -np.inf), np.zeros(size)
    scores[row, column] = table["score"].to_numpy()
    grades[row, column] = table["gain"].fill_null(0.0).to_numpy()
    return scores, grades


def _own_grades(own: pl.DataFrame, judged: pl.DataFrame) -> tuple[Floats, Floats]:
    """The gain of each own passage [M], and the DCG@10 of the query's ideal order [M]."""
    gains = judged.with_columns(pl.col("relevance").clip(0).cast(pl.Float64).alias("gain"))
    best = gains.sort("gain", descending=True).with_columns(pl.int_range(1, pl.len() + 1).over("query_id").alias("at"))
    best = best.filter(pl.col("at") <= DEPTH)
    discounted = pl.col("gain") / (1 + pl.col("at")).cast(pl.Float64).log(2)
    ideal = best.group_by("query_id").agg(discounted.sum().alias("ideal"))
    table = own.select("query_id", "doc_id").join(ideal, on="query_id", how="left", maintain_order="left")
    table = table.join(gains, on=["query_id", "doc_id"], how="left", maintain_order="left")
    return table["gain"].to_numpy(), table["ideal"].to_numpy()
