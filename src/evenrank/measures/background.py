"""The documents that NFaiRR is normalised by."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.runs import Run
from evenrank.io.tables import IdIndex
from evenrank.io.types import Array

from .donors import Places
from .imputation import Completion, Imputation
from .lazy import parts

BACKGROUND_DEPTH = 200
_KEPT_DEPTH = 100

KnownOrder = tuple[Array, tuple[Array, Array, Places] | None]
"""The order of the known documents; the queries that unknown ones may change, which places are documents, and these."""


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
    imputation: Imputation | None = None
    completion: Completion | None = None
    orders: dict[tuple[int | None, int], Array] = field(default_factory=dict, repr=False, compare=False)
    known_orders: dict[int, KnownOrder] = field(default_factory=dict, repr=False, compare=False)

    def completed(self, draw: int | None) -> Background:
        """The background with labels for its unknown documents: of one draw, or, for None, their expectation."""
        if self.imputation is None:
            return self
        return replace(self, completion=self.imputation.completion(draw))

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
        if self.completion is not None:
            return self._drawn(self.completion, depth)
        return self._most_neutral if depth <= _KEPT_DEPTH else ideal_order(self.neutrality, self.lengths, depth)

    def _drawn(self, completion: Completion, depth: int) -> Array:
        """:meth:`most_neutral` with unknown documents filled in."""
        key = completion.draw, depth
        if key not in self.orders:
            known, places = self._known(depth)
            ordered = known.copy()
            if places is not None:
                of_table = completion.of.neutrality
                open_, inside, looked = places
                found = np.where(inside, completion.values_at(looked, lambda rows: of_table[rows]), -1.0)
                ordered[open_] = ideal_order(found, self.lengths[open_], depth)
            self.orders[key] = ordered
        return self.orders[key]

    def _known(self, depth: int) -> KnownOrder:
        """The order of the known documents alone, and the queries that others may change, with their places.

        Where as many documents as are looked at are known to be as neutral as any, the others change nothing.
        """
        imputation = self.imputation
        assert imputation is not None
        neutrality = imputation.neutrality
        if depth not in self.known_orders:
            width = self.neutrality.shape[1]
            inside = np.arange(width) < self.lengths[:, None]
            places = np.minimum(imputation.lists.offsets[:-1, None] + np.arange(width), len(imputation.document) - 1)
            document = imputation.document[places]
            known = np.where(inside & (document >= 0), neutrality[np.maximum(document, 0)], -1.0)
            ordered = ideal_order(known, self.lengths, depth)
            best = float(neutrality.max(initial=0.0))
            open_ = np.flatnonzero((ordered[:, -1] < best) & (inside & (document < 0)).any(axis=1))
            looked = imputation.at(places[open_], inside[open_]) if len(open_) else None
            self.known_orders[depth] = ordered, None if looked is None else (open_, inside[open_], looked)
        return self.known_orders[depth]

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
