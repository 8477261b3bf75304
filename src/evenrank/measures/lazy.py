"""Values of the documents of ranked lists, computed only where a measure looks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenrank.io.types import Array

from .ranked_lists import RankedLists

_KEPT_DEPTH = 100


class TableRows:
    """The rows [N] in the group table of the documents of ranked lists, −1 for a document without one.

    ``height``: how many rows the table has.
    """

    def __init__(self, rows: Array | Picked, height: int) -> None:
        self.rows = rows
        self.height = height
        self._first: Array | None = None

    def first(self, lists: RankedLists, depth: int) -> Array:
        """The rows of the first ``depth`` documents of each list [Q, depth], −1 past its end; columns share it."""
        if self._first is None or self._first.shape[1] < depth:
            places = lists.offsets[:-1, None] + np.arange(depth)
            if int(lists.lengths.min(initial=depth)) >= depth:
                self._first = self.rows[places]
            else:
                inside = np.arange(depth) < lists.lengths[:, None]
                self._first = np.full(places.shape, -1, dtype=np.int32)
                self._first[inside] = self.rows[places[inside]]
        return self._first[:, :depth]


class Column:
    """A value of each document of ranked lists [N], computed only for the rows asked for.

    ``values``: from rows of the group table to their values; ``missing``: the value of a document without a row.
    """

    def __init__(self, values: Callable[[Array], Array], documents: TableRows, missing: float) -> None:
        self._values = values
        self._documents = documents
        self._missing = missing
        self._first: Array | None = None
        self._means: Array | None = None

    def __len__(self) -> int:
        return len(self._documents.rows)

    def first(self, lists: RankedLists, depth: int) -> Array:
        """The values of the first ``depth`` documents of each list [Q, depth], cached for the next measure."""
        if self._first is None or self._first.shape[1] < depth:
            deepest = max(depth, min(_KEPT_DEPTH, int(lists.lengths.max(initial=1))))
            found = self._of(self._documents.first(lists, deepest))
            short = int(lists.lengths.min(initial=deepest)) < deepest
            self._first = np.where(np.arange(deepest) < lists.lengths[:, None], found, 0.0) if short else found
        return self._first[:, :depth]

    def means(self, lists: RankedLists) -> Array:
        """The mean of each list [Q], cached for the next measure."""
        if self._means is None:
            height = self._documents.height
            if len(self) <= height:
                self._means = lists.means(self)
            else:
                # Most documents are in several lists: each value is computed once. A row of −1 is the last.
                of_table = np.append(self._values(np.arange(height)), self._missing)
                self._means = lists.means(Picked(of_table, self._documents.rows))
        return self._means

    def expected_at(self, rows: Array) -> Array:
        """The values of some rows as :meth:`means` counts them: of a drawn label its expectation."""
        return self[rows]

    def __getitem__(self, rows: Array | slice) -> Array:
        return self._of(self._documents.rows[rows])

    def _of(self, document: Array) -> Array:
        """The values of documents by their rows in the group table."""
        known = document >= 0
        if known.all():
            return self._values(document)
        found: Array = np.full(document.shape, self._missing)
        found[known] = self._values(document[known])
        return found


class Picked:
    """Values of places [N]: those of a table by the number of the row that each place has."""

    def __init__(self, of_table: Array, rows: Array | Picked) -> None:
        self._of_table = of_table
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, rows: Array | slice) -> Array:
        found: Array = self._of_table[self._rows[rows]]
        return found
