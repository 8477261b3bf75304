"""What NFaiRR is normalised by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evenrank.io.errors import EvenrankError, shown
from evenrank.io.runs import Run
from evenrank.io.tables import IdIndex

from . import neutrality
from .lists import Array

if TYPE_CHECKING:
    from .evaluate import Evaluation

BACKGROUND_DEPTH = 200


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

    @classmethod
    def of(cls, evaluation: Evaluation, name: str, depth: int = BACKGROUND_DEPTH) -> Background:
        """The background that a run gives."""
        lists = evaluation.scored_lists
        deepest = min(depth, int(lists.lengths.max(initial=1)))
        top = evaluation.neutrality.first(lists, deepest)
        return cls(name, evaluation.queries, top, np.minimum(lists.lengths, deepest), evaluation.run, depth)

    @property
    def table(self) -> pl.DataFrame:
        """The background documents: ``query_id`` and ``doc_id``."""
        return self.run.table.filter(pl.col("rank") <= self.depth).select("query_id", "doc_id")

    def ideal(self, queries: pl.Series, cutoff: int) -> Array:
        """IFaiRR@cutoff for each of ``queries``. Raises EvenrankError naming a query the background lacks."""
        place = IdIndex([self.queries]).places(queries)
        if (place < 0).any():
            lacking = queries.gather(np.flatnonzero(place < 0))
            raise EvenrankError(
                f"the background {self.name} has no documents for the query {shown(lacking[0])}"
                f" ({len(lacking)} of {len(queries)} queries are missing)"
            )
        ideal: Array = neutrality.ideal_fairr(self.neutrality, self.lengths, cutoff)[place]
        return ideal
