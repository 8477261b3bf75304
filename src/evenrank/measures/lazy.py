"""Values of the documents of ranked lists, computed only where a measure looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from evenrank.io.types import Array

from .ranked_lists import RankedLists

_KEPT_DEPTH = 100
_PIECE = 1 << 16


def parts(values: Array) -> Iterator[slice]:
    """Slices of the first axis of ``values`` [N] or [Q, k] of about as many values as the processor's cache holds."""
    step = max(1, _PIECE // max(1, values[:1].size))
    return (slice(start, start + step) for start in range(0, len(values), step))


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
            place = np.arange(depth)
            short = int(lists.lengths.min(initial=depth)) < depth
            found = np.empty((len(lists.lengths), depth), dtype=np.int32)
            for part in parts(found):
                places = lists.offsets[:-1][part, None] + place
                if short:
                    inside = place < lists.lengths[part, None]
                    found[part] = -1
                    found[part][inside] = self.rows[places[inside]]
                else:
                    found[part] = self.rows[places]
            self._first = found
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

    def __getitem__(self, rows: Array | slice) -> Array:
        return self._of(self._documents.rows[rows])

    def _of(self, document: Array) -> Array:
        """The values of documents by their rows in the group table, float64 whatever the table has."""
        found = np.empty(document.shape)
        for part in parts(document):
            # Looked up in several columns, which would each have to make these of narrower numbers.
            rows = document[part].astype(np.intp).reshape(-1)
            known = rows >= 0
            if known.all():
                values = np.asarray(self._values(rows), dtype=np.float64)
            else:
                values = np.full(len(rows), self._missing)
                values[known] = self._values(rows[known])
            found[part] = values.reshape(found[part].shape)
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
