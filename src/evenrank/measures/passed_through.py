"""Measures that only ir_measures has: their values come from there, and what ties do to them from many orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from ir_measures import Measure

from evenrank.io.errors import EvenrankError

from .lists import Array, RankedLists, expand

if TYPE_CHECKING:
    from .evaluate import Evaluation

_MANY_ROWS = 100_000


def values(evaluation: Evaluation, measure: Measure, scores: Array | None = None) -> Array:
    """The measure for each judged query [J], with other scores [N] where given.

    Raises EvenrankError where ir_measures cannot compute it.
    """
    import ir_measures

    run = _run_dict(evaluation, evaluation.lists.scores if scores is None else scores)
    qrels: dict[str, dict[str, int]] = {}
    for query, doc, relevance in evaluation.judgements.iter_rows():
        qrels.setdefault(query, {})[doc] = relevance
    try:
        found = {value.query_id: value.value for value in ir_measures.iter_calc([measure], qrels, run)}
    except (ValueError, RuntimeError, TypeError, KeyError, AssertionError) as error:
        # Its providers raise whatever they meet in parameters that they do not check.
        raise EvenrankError(f"{measure}: ir_measures cannot compute it here: {error}") from None
    return np.array([found.get(query, 0.0) for query in evaluation.judged], dtype=np.float64)


def _run_dict(evaluation: Evaluation, scores: Array) -> dict[str, dict[str, float]]:
    run: dict[str, dict[str, float]] = {}
    table = evaluation.run.table if evaluation.rows is None else evaluation.run.table[evaluation.rows]
    for query, doc, score in zip(table["query_id"], table["doc_id"], scores.tolist(), strict=True):
        run.setdefault(query, {})[doc] = score
    return run


def mean(evaluation: Evaluation, measure: Measure, draws: int, *, random: bool) -> Array:
    """Mean over random orders of ties (of all candidates) [J]; all NaN where that would take too long."""
    lists = evaluation.lists.all_tied() if random else evaluation.lists
    if not lists.tied:
        return values(evaluation, measure)
    if len(lists.scores) > _MANY_ROWS:
        return np.full(len(evaluation.judged), np.nan)
    rng = np.random.default_rng(evaluation.seed)
    total = np.zeros(len(evaluation.judged))
    for _ in range(draws):
        total += values(evaluation, measure, _positions(lists, rng.random(len(lists.scores))))
    return total / draws


def bounds(evaluation: Evaluation, measure: Measure) -> tuple[Array, Array]:
    """The smallest and largest value [J]: which order of ties is best is not known for a measure that is not ours."""
    tied = evaluation.lists.tied
    value = np.full(len(evaluation.judged), np.nan) if tied else values(evaluation, measure)
    return value, value


def _positions(lists: RankedLists, keys: Array) -> Array:
    """Scores [N] that put tied documents in the order of their keys [N]."""
    order = np.arange(len(keys))
    rows, group = expand(*lists.ties)
    order[rows] = rows[np.lexsort((keys[rows], group))]
    positions = np.empty(len(keys))
    positions[order] = -np.arange(len(keys), dtype=np.float64)
    return positions
