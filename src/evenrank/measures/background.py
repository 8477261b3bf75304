"""What NFaiRR is normalised by."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.io.errors import EvenrankError, shown
from evenrank.io.runs import Run
from evenrank.io.tables import IdIndex

from . import neutrality
from .lists import Array

BACKGROUND_DEPTH = 200
_KEPT_DEPTH = 100


@dataclass(frozen=True)
class Background:
    """The documents against which NFaiRR is normalised: a run's first ``depth`` per query.

    ``neutrality`` [Q, depth] of them, ``lengths`` [Q] how many there are.
    """

    name: str
    queries: pl.Series
    neutrality: Array
    lengths: Array
    run: Run
    depth: int

    @property
    def all_neutral(self) -> bool:
        """Whether every document counts as neutral: then NFaiRR is 1 in any order of them."""
        documents = np.arange(self.neutrality.shape[1]) < self.lengths[:, None]
        return bool((self.neutrality[documents] >= 1).all())

    @property
    def table(self) -> pl.DataFrame:
        """The background documents: ``query_id`` and ``doc_id``."""
        return self.run.table.filter(pl.col("rank") <= self.depth).select("query_id", "doc_id")

    def ideal(self, queries: pl.Series, cutoff: int) -> Array:
        """IFaiRR@cutoff for each of ``queries``. Raises EvenrankError naming a query the background lacks."""
        same = queries.equals(self.queries)
        place = np.arange(len(queries)) if same else IdIndex([self.queries]).places(queries)
        if (place < 0).any():
            lacking = queries.gather(np.flatnonzero(place < 0))
            raise EvenrankError(
                f"{self.run.described}, the background, has no documents for the query {shown(lacking[0])}"
                f" ({len(lacking)} of {len(queries)} queries are missing)"
            )
        ordered = self._ordered if cutoff <= _KEPT_DEPTH else self._best(cutoff)
        ideal: Array = neutrality.fairr(ordered, self.lengths, min(cutoff, ordered.shape[1]))[place]
        return ideal

    @functools.cached_property
    def _ordered(self) -> Array:
        # Sorted once for all the usual cutoffs.
        return self._best(_KEPT_DEPTH)

    def _best(self, depth: int) -> Array:
        return neutrality.ideal_order(self.neutrality, self.lengths, depth)
