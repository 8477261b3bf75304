"""Pairwise ranking fairness: do clicked documents of each group win as often against the others (PRF, ΔA-PRF)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .lists import Array, RankedLists


@dataclass(frozen=True)
class Wins:
    """How often each clicked document wins against its list's documents that are not clicked.

    Each array is [H], one entry a clicked document: ``query``; ``strict``: documents that score lower; ``tied``:
    documents that score the same; ``others``: all of the list that are not clicked; ``score``: its own.
    """

    query: Array
    strict: Array
    tied: Array
    others: Array
    score: Array


def pairwise_wins(lists: RankedLists, clicked: Array) -> Wins:
    """Wins of the clicked documents, given by their rising places [H] in the lists' flat arrays."""
    query = lists.query_of(clicked)
    first_click = np.searchsorted(clicked, lists.offsets[:-1])
    clicks = np.diff(np.append(first_click, len(clicked)))[query]
    start, size = lists.tie_of(clicked)
    # Clicked documents ahead of each tie group, and within it.
    ahead = np.searchsorted(clicked, start) - first_click[query]
    within = np.searchsorted(clicked, start + size) - first_click[query] - ahead
    below = lists.offsets[query + 1] - start - size - (clicks - ahead - within)
    return Wins(
        query,
        below.astype(np.float64),
        (size - within).astype(np.float64),
        (lists.lengths[query] - clicks).astype(np.float64),
        lists.scores[clicked],
    )


def break_ties(wins: Wins, group: Array, rng: np.random.Generator) -> Wins:
    """The wins in one random order of tied documents; ``group`` [H]: each clicked document's tie group, rising."""
    _, group, clicked = np.unique(group, return_inverse=True, return_counts=True)
    size = wins.tied + clicked[group]
    # Distinct random places for a tie's clicked documents; those behind them that are not clicked are beaten.
    place = np.zeros(len(group))
    left = np.arange(len(group))
    while len(left):
        place[left] = np.floor(rng.random(len(left)) * size[left])
        order = np.lexsort((place, group))
        again = np.zeros(len(group), dtype=bool)
        again[order[1:]] = (group[order[1:]] == group[order[:-1]]) & (place[order[1:]] == place[order[:-1]])
        left = np.flatnonzero(again)
    order = np.lexsort((place, group))
    last = np.searchsorted(group, group, side="right") - 1
    clicked_behind = np.empty(len(group))
    clicked_behind[order] = last[order] - np.arange(len(group))
    beaten = size - 1 - place - clicked_behind
    return Wins(wins.query, wins.strict + beaten, np.zeros_like(wins.tied), wins.others, wins.score)


def prf(wins: Wins, in_group: Array, queries: int, *, tie_weight: float = 1.0) -> Array:
    """PRF of one group for each query [Q]: the share of (clicked of the group, not clicked) pairs that are won.

    ``in_group`` [H]: which clicked documents belong to the group. As published, a tie counts as a win
    (``tie_weight`` 1); ½ gives the expectation over orders of tied documents. NaN without a clicked document of the
    group or without another document [BEU19; IBBR, eq. 2].
    """
    won = wins.strict + tie_weight * wins.tied
    return _mean_share(wins, in_group, queries, won)


def nprf(wins: Wins, in_group: Array, queries: int) -> Array:
    """nPRF of one group for each query [Q]: sqrt of the mean of R_j² 1[R_j ≥ R_k] over its pairs [IBBR, eq. 3]."""
    return np.sqrt(_mean_share(wins, in_group, queries, wins.score**2 * (wins.strict + wins.tied)))


def _mean_share(wins: Wins, in_group: Array, queries: int, won: Array) -> Array:
    chosen = in_group & (wins.others > 0)
    total = np.bincount(wins.query[chosen], weights=won[chosen], minlength=queries)
    pairs = np.bincount(wins.query[chosen], weights=wins.others[chosen], minlength=queries)
    share: Array = np.divide(total, pairs, out=np.full(queries, np.nan), where=pairs > 0)
    return share


def tied_pair_share(wins: Wins) -> float:
    """Share of all (clicked, not clicked) pairs that are tied; NaN without a pair."""
    pairs = wins.others.sum()
    return float(wins.tied.sum() / pairs) if pairs else float("nan")


def delta_aprf(first: Array, second: Array) -> float:
    """ΔA-PRF = mean of the first pole's PRF − mean of the second's, each over the queries that have it; NaN if none."""
    if np.isnan(first).all() or np.isnan(second).all():
        return float("nan")
    return float(np.nanmean(first) - np.nanmean(second))
