"""The candidates by falling grade: what a perfect ranker would show, whatever the order of equal grades.

Few documents are graded, so most of a list is one block whose order nobody knows: in expectation each of its ranks has
the mean of the block. The sorted lists themselves are made for measures that are not linear alone.
"""

from __future__ import annotations

import numpy as np
import polars as pl

from evenrank.io.types import Array

from .hits import count_within, number_within
from .joined import JoinedRun
from .lazy import Column


def means_by_relevance(run: JoinedRun, column: Column, depth: int) -> Array:
    """The expected value [Q, depth] at the first ranks of each list by falling grade; 0 where a list is shorter.

    ``column``: the values of the documents that bias measures look at. A document without a positive grade has grade 0.
    """
    lists = run.scored_lists
    place, query, grade = _graded(run)
    order = np.lexsort((-grade, query))
    place, query, grade = place[order], query[order], grade[order]
    left = lists.lengths - np.bincount(query, minlength=len(lists.lengths))
    others = column.means(lists) * lists.lengths - np.bincount(query, column[place], minlength=len(lists.lengths))
    rest = np.divide(others, left, out=np.zeros(len(left)), where=left > 0)
    top = np.where(np.arange(depth) < lists.lengths[:, None], rest[:, None], 0.0)
    if not len(place):
        return top
    rank = number_within(query)
    block = np.cumsum(number_within(query, grade) == 0) - 1
    mean = np.bincount(block, column[place])[block] / count_within(query, grade)
    inside = rank < depth
    top[query[inside], rank[inside]] = mean[inside]
    return top


def _graded(run: JoinedRun) -> tuple[Array, Array, Array]:
    """Place, list and grade of the documents with a positive grade, among those that bias measures look at."""
    place, grade = run.graded_rows["row"].cast(pl.Int64).to_numpy(), run.graded_rows["relevance"].to_numpy()
    if run.kept is not None:
        new = np.searchsorted(run.kept, place)
        known = np.searchsorted(run.kept, place, side="right") > new
        place, grade = new[known], grade[known]
    return place, run.scored_lists.query_of(place), grade


def relevance_first(run: JoinedRun) -> JoinedRun:
    """The same candidates by falling grade, those of equal grade tied."""
    if run.by_relevance is None:
        of_place = np.zeros(len(run.lists.scores))
        of_place[run.graded_rows["row"].to_numpy()] = run.graded_rows["relevance"].to_numpy()
        order = run.lists.falling(np.unique(of_place, return_inverse=True)[1].astype(np.int32))
        run.by_relevance = run.in_order(order, of_place[order])
    return run.by_relevance
