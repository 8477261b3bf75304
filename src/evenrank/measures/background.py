"""The documents that NFaiRR is normalised by."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.runs import Run
from evenrank.io.tables import IdIndex
from evenrank.io.types import Array

from .lazy import parts

BACKGROUND_DEPTH = 200
_KEPT_DEPTH = 100


@dataclass(frozen=True)
class Background:
    """The documents that NFaiRR is normalised by: the first ``depth`` of a run for each query.

    ``neutrality`` [Q, depth]: their neutrality; ``documents`` [Q, depth]: their rows in the group table, −1 for none;
    ``lengths`` [Q]: how many there are.
    """

    name: str
    queries: pl.Series
    neutrality: Array
    documents: Array
    lengths: Array
    run: Run
    depth: int

    @property
    def lacks_labels(self) -> bool:
        """Whether the group table lacks one of the documents."""
        inside = np.arange(self.documents.shape[1]) < self.lengths[:, None]
        return bool((self.documents[inside] < 0).any())

    @property
    def all_neutral(self) -> bool:
        """Whether every document counts as neutral: then NFaiRR is 1 in any order of them."""
        documents = np.arange(self.neutrality.shape[1]) < self.lengths[:, None]
        return bool((self.neutrality[documents] >= 1).all())

    @property
    def table(self) -> pl.DataFrame:
        """The background documents: ``query_id`` and ``doc_id``."""
        return self.run.table.filter(pl.col("rank") <= self.depth).select("query_id", "doc_id")

    def rows(self, queries: pl.Series) -> Array:
        """The row of each of ``queries``. Raises EvenrankError, which names the first that the background lacks."""
        same = queries.equals(self.queries)
        rows = np.arange(len(queries)) if same else IdIndex([self.queries]).places(queries)
        if (rows < 0).any():
            lacking = queries.gather(np.flatnonzero(rows < 0))
            raise EvenrankError(
                f"{self.run.described}, the background, has no documents for the query {quoted(lacking[0])}"
                f" ({len(lacking)} of {len(queries)} queries are missing)"
            )
        return rows

    def most_neutral(self, depth: int) -> Array:
        """The ``depth`` largest neutralities of each query in falling order [Q, ≥ min(depth, D)]; −1 past the end."""
        return self._most_neutral if depth <= _KEPT_DEPTH else ideal_order(self.neutrality, self.lengths, depth)

    @functools.cached_property
    def _most_neutral(self) -> Array:
        # Sorted once for all the usual cutoffs.
        return ideal_order(self.neutrality, self.lengths, _KEPT_DEPTH)


def ideal_order(background: Array, lengths: Array, depth: int) -> Array:
    """The ``depth`` largest of the neutralities [Q, D] of each list, falling [Q, ≤ depth]; −1 past its end.

    ``lengths`` [Q]: how many of the D columns are documents.
    """
    depth = min(depth, background.shape[1])
    ordered = np.empty((len(background), depth))
    place = np.arange(background.shape[1])
    for part in parts(background):
        # Places without a document come last: no neutrality is below 0.
        falling = np.where(place < lengths[part, None], np.negative(background[part], dtype=np.float64), 1.0)
        if depth < len(place):
            falling.partition(depth, axis=1)
        first = falling[:, :depth]
        first.sort(axis=1)
        np.negative(first, out=ordered[part])
    return ordered
