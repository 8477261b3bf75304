"""How often clicked documents win against the documents of their list that are not clicked."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenrank.io.types import Array

from .ranked_lists import RankedLists


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
    """Wins of the clicked documents, given by their places [H] in the lists' flat arrays, in ascending order."""
    query = lists.query_of(clicked)
    first_click = np.searchsorted(clicked, lists.offsets[:-1])
    clicks = np.diff(np.append(first_click, len(clicked)))[query]
    start, size = lists.tie_of(clicked)
    # Clicked documents ahead of each tie block, and within it.
    ahead = np.searchsorted(clicked, start) - first_click[query]
    within = np.searchsorted(clicked, start + size) - first_click[query] - ahead
    below = lists.offsets[query + 1] - start - size - (clicks - ahead - within)
    return Wins(
        query,
        below.astype(np.float64),
        (size - within).astype(np.float64),
        (lists.lengths[query] - clicks).astype(np.float64),
        lists.scores[clicked].astype(np.float64),
    )


def break_ties(wins: Wins, block: Array, rng: np.random.Generator) -> Wins:
    """The wins in one random order of tied documents; ``block`` [H]: each clicked document's tie block, rising."""
    _, block, clicked = np.unique(block, return_inverse=True, return_counts=True)
    size = wins.tied + clicked[block]
    # Distinct random places for the clicked documents of a block; those behind them that are not clicked are beaten.
    place = np.zeros(len(block))
    left = np.arange(len(block))
    while len(left):
        place[left] = np.floor(rng.random(len(left)) * size[left])
        order = np.lexsort((place, block))
        again = np.zeros(len(block), dtype=bool)
        again[order[1:]] = (block[order[1:]] == block[order[:-1]]) & (place[order[1:]] == place[order[:-1]])
        left = np.flatnonzero(again)
    order = np.lexsort((place, block))
    last = np.searchsorted(block, block, side="right") - 1
    clicked_behind = np.empty(len(block))
    clicked_behind[order] = last[order] - np.arange(len(block))
    beaten = size - 1 - place - clicked_behind
    return Wins(wins.query, wins.strict + beaten, np.zeros_like(wins.tied), wins.others, wins.score)


def tied_pair_share(wins: Wins) -> float:
    """Share of all (clicked, not clicked) pairs that are tied; NaN without a pair."""
    pairs = wins.others.sum()
    return float(wins.tied.sum() / pairs) if pairs else float("nan")
