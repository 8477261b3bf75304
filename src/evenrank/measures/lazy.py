"""Values of the documents of ranked lists, computed only where a measure looks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from evenrank.io.types import Array

from .ranked_lists import RankedLists

_KEPT_DEPTH = 100


class Column:
    """A value of each document of ranked lists [N], computed only for the rows asked for.

    ``document`` [N]: the documents' rows in the group table, which ``values`` maps to their values; −1 for a document
    without a row, whose value is ``missing``. ``complete``: whether all have one, if that is known.
    """

    def __init__(
        self, values: Callable[[Array], Array], document: Array, missing: float, *, complete: bool | None = None
    ) -> None:
        self._values = values
        self._document = document
        self._missing = missing
        self._first: Array | None = None
        self._means: Array | None = None
        self._complete = not len(document) or int(document.min()) >= 0 if complete is None else complete

    def __len__(self) -> int:
        return len(self._document)

    def first(self, lists: RankedLists, depth: int) -> Array:
        """The values of the first ``depth`` documents of each list [Q, depth], cached for the next measure."""
        if self._first is None or self._first.shape[1] < depth:
            deepest = max(depth, min(_KEPT_DEPTH, int(lists.lengths.max(initial=1))))
            self._first = lists.top(self, deepest)
        return self._first[:, :depth]

    def means(self, lists: RankedLists) -> Array:
        """The mean of each list [Q], cached for the next measure."""
        if self._means is None:
            self._means = lists.means(self)
        return self._means

    def expected_at(self, rows: Array) -> Array:
        """The values of some rows as :meth:`means` counts them: of a drawn label its expectation."""
        return self[rows]

    def __getitem__(self, rows: Array | slice) -> Array:
        document = self._document[rows]
        if self._complete:
            return self._values(document)
        known = document >= 0
        found: Array = np.full(document.shape, self._missing)
        found[known] = self._values(document[known])
        return found
