"""Ties: how many are equal scores of different texts, and what rounded the scores."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import polars as pl

from evenrank.io import Run
from evenrank.io.tables import IdIndex, pick
from evenrank.io.types import Array
from evenrank.io.wording import are, counted
from evenrank.measures import Evaluation
from evenrank.measures.graded import lists_of
from evenrank.measures.ranked_lists import RankedLists, expand

from .figures import SHOWN_DEPTH

_LOW_PRECISION = ("bfloat16", "float16")
_FEW_DECIMALS = 4
# Of fewer distinct scores, many are round by chance.
_FEWEST_SCORES = 20


class TiedTexts:
    """Hashes of the texts of tied documents, taken while a collection is read.

    Documents count as tied if another document of their query has the same score, and one of those with it is in the
    first ranks of a run.
    """

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = tuple(runs)
        self._parts: list[pl.DataFrame] = []

    def watching(self, batches: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
        """The batches (``doc_id``, ``text``), unchanged."""
        tied_ids = [tied_documents(run, lists_of(run))["doc_id"].unique() for run in self._runs]
        wanted = IdIndex(tied_ids) if any(map(len, tied_ids)) else None
        for batch in batches:
            if wanted is not None:
                tied = batch.filter(wanted.among(batch["doc_id"]))
                self._parts.append(tied.select("doc_id", pl.col("text").hash().alias("text")))
            yield batch

    @property
    def hashes(self) -> pl.DataFrame | None:
        """``doc_id`` and ``text``, a hash; None if no texts were read."""
        return pl.concat(self._parts).unique("doc_id") if self._parts else None


def tied_documents(run: Run, lists: RankedLists) -> pl.DataFrame:
    """The rows of ties that reach into the first ranks: ``query_id``, ``doc_id``, ``score``, and whether the row itself
    is one of the first ranks, ``top``. ``lists``: the run's."""
    starts, sizes, _, _ = lists.ties_within(SHOWN_DEPTH)
    rows, _ = expand(starts, sizes)
    table = pick(run.table, rows)
    return table.select("query_id", "doc_id", "score", top=pl.col("rank") <= SHOWN_DEPTH)


def pairs_of_ties(tied: pl.DataFrame, hashes: pl.DataFrame) -> tuple[int, int]:
    """Of the pairs of :func:`tied_documents` with texts, one or both in the first ranks, how many have different texts;
    and all of them."""
    tied = tied.join(hashes, on="doc_id")

    def pairs(*keys: str) -> int:
        sizes = tied.group_by(*keys).agg(every=pl.len().cast(pl.Int64), below=(~pl.col("top")).sum().cast(pl.Int64))
        every, below = sizes["every"], sizes["below"]
        return int((every * (every - 1) // 2 - below * (below - 1) // 2).sum())

    every = pairs("query_id", "score")
    return every - pairs("query_id", "score", "text"), every


def tie_notes(evaluations: Iterable[Evaluation], hashes: pl.DataFrame | None) -> list[str]:
    """Notes on runs with ties in their first ranks, unless all of those are known to be of equal texts."""
    notes = []
    for evaluation in evaluations:
        run = evaluation.run
        tied = tied_documents(run, evaluation.lists)
        if not tied.height:
            continue
        parts: list[str] = []
        if hashes is not None:
            different, every = pairs_of_ties(tied, hashes)
            if every and not different:
                continue
            if every:
                parts.append(
                    f"of {counted(every, 'pair')} of tied documents that reach into the first {SHOWN_DEPTH} ranks,"
                    f" {different:,} {are(different)} of different texts"
                )
        parts += _rounding(run, evaluation.lists)
        if parts:
            notes.append(f"{run.name}: {'; '.join(parts)}.")
    return notes


def _rounding(run: Run, lists: RankedLists) -> list[str]:
    """What is known to have rounded the scores, unless their ties were resolved."""
    card = run.card or {}
    if card.get("resolved_ties"):
        return []
    ranker = card.get("ranker")
    precision = ranker.get("precision") if isinstance(ranker, dict) else None
    if precision in _LOW_PRECISION:
        return [f"it was computed in {precision}, which makes close scores equal (evenrank rerank --resolve-ties)"]
    first, _ = expand(lists.offsets[:-1], np.minimum(lists.lengths, SHOWN_DEPTH))
    grid = grid_of(lists.scores[first])
    return [f"its top scores {grid}, so that close ones are equal"] if grid is not None else []


def grid_of(scores: Array) -> str | None:
    """What scores [N] are rounded to, as ``have at most 3 decimals``; None if nothing shows, or for whole numbers."""
    distinct = np.unique(scores)
    if len(distinct) < _FEWEST_SCORES or (distinct == np.rint(distinct)).all():
        return None
    for decimals in range(1, _FEW_DECIMALS + 1):
        # The nearest number of float64, as a reader of the file has it.
        if (np.round(distinct, decimals) == distinct).all():
            return f"have at most {counted(decimals, 'decimal')}"
    if np.abs(distinct).max() > np.finfo(np.float32).max:
        return None
    single = distinct.astype(np.float32)
    if (single != distinct).any():
        return None
    if not (single.view(np.uint32) & 0xFFFF).any():
        return "are numbers of bfloat16"
    if np.abs(distinct).max() <= np.finfo(np.float16).max and (distinct.astype(np.float16) == distinct).all():
        return "are numbers of float16"
    return None
