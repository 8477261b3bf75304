"""Whether a lexicon's words say of documents what labels say of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import polars as pl

from evenrank.groups.table import GroupTable
from evenrank.io.errors import EvenrankError, quoted
from evenrank.io.json_values import LEFT_OUT
from evenrank.io.tables import IdIndex
from evenrank.io.types import Array
from evenrank.measures.inference import proportion

NEUTRAL, SEVERAL, TIED, NONE = "neutral", "several", "tied", "no word"


@dataclass(frozen=True, slots=True)
class Proportion:
    """``part`` of ``n``, with the 95% interval of Wilson; value and interval are None where n is 0."""

    also: ClassVar = ("value", "ci95")
    part: int = field(metadata=LEFT_OUT)
    n: int

    @property
    def value(self) -> float | None:
        """The share."""
        return self.part / self.n if self.n else None

    @property
    def ci95(self) -> tuple[float, float] | None:
        """Wilson's interval; None where n is 0."""
        return proportion(self.part, self.n)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Labels of documents against what their words say.

    Attributes:
        groups: The lexicon's groups [G].
        rows: What the labels say: the lexicon's groups, the labels' other groups, and last ``neutral`` and ``several``
            (groups of equal weight).
        columns: What the words say: the lexicon's groups, ``tied`` (two groups have the most words) and ``no word``.
        confusion: Number of documents [rows, columns].
        unlabelled: Number of documents of the collection without a label, which are left out.
        absent: Number of labelled documents that the collection does not have.
    """

    groups: tuple[str, ...]
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    confusion: Array
    unlabelled: int
    absent: int

    @property
    def n(self) -> int:
        """Number of documents with a label."""
        return int(self.confusion.sum())

    def precision(self, group: str) -> Proportion:
        """Of the documents whose words say ``group``, the share whose label does."""
        place = self.groups.index(group)
        return Proportion(int(self.confusion[place, place]), int(self.confusion[:, place].sum()))

    def recall(self, group: str) -> Proportion:
        """Of the documents whose label says ``group``, the share whose words do."""
        place = self.groups.index(group)
        return Proportion(int(self.confusion[place, place]), int(self.confusion[place].sum()))

    @property
    def correct(self) -> Proportion:
        """The share of documents of which both say the same; ``tied`` and ``no word`` are neutral."""
        size = len(self.groups)
        same = int(np.trace(self.confusion[:size, :size])) + int(self.confusion[-2, size:].sum())
        return Proportion(same, self.n)

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {
            "documents": self.n,
            "unlabelled": self.unlabelled,
            "absent": self.absent,
            "correct": self.correct,
            "groups": {
                group: {"precision": self.precision(group), "recall": self.recall(group)} for group in self.groups
            },
            "confusion": {"labels": self.rows, "words": self.columns, "documents": self.confusion},
        }


class LabelComparison:
    """Compares labels with the words of batches of documents. Raises EvenrankError for labels without a common group.

    A group of the labels is the group of the lexicon with its name, in capitals or not.
    """

    def __init__(self, groups: tuple[str, ...], labels: GroupTable) -> None:
        self.groups, self._labels = groups, labels
        folded = {group.casefold(): group for group in groups}
        names = [group if group in groups else folded.get(group.casefold(), group) for group in labels.groups]
        if not set(names) & set(groups):
            raise EvenrankError(
                f"`labels`: their groups are {', '.join(labels.groups)}, those of the lexicon {', '.join(groups)}"
            )
        reserved = [name for name in names if name in (NEUTRAL, SEVERAL)]
        if reserved:
            raise EvenrankError(
                f"`labels`: a group is named {reserved[0]}, a word for documents of none or of several"
                f" (`neutral` names the values that mean no group)"
            )
        if len(set(names)) < len(names):
            raise EvenrankError(f"`labels`: two of their groups have one name: {', '.join(labels.groups)}")
        others = tuple(name for name in names if name not in groups)
        self.rows = (*groups, *others, NEUTRAL, SEVERAL)
        self.columns = (*groups, TIED, NONE)
        self._row_of = np.array([self.rows.index(name) for name in names])
        self._index = IdIndex([labels.table["doc_id"]])
        self._confusion = np.zeros((len(self.rows), len(self.columns)), dtype=np.int64)
        self._known = np.zeros(labels.table.height, dtype=bool)
        self._first: list[str] = []
        self._documents = 0

    def add(self, ids: pl.Series, counts: Array) -> None:
        """A batch of documents: their ``ids`` [N] and the ``counts`` [N, G] of each group's words."""
        places = self._index.places(ids)
        labelled = places >= 0
        self._documents += len(ids)
        self._first += ids[: 5 - len(self._first)].to_list() if len(self._first) < 5 else []
        self._known[places[labelled]] = True
        says = _largest(counts[labelled], len(self.groups), len(self.groups) + 1)
        np.add.at(self._confusion, (self._labels_say(places[labelled]), says), 1)

    def _labels_say(self, places: Array) -> Array:
        """The row of the confusion table that labels are of; ``places``: their rows in the labels' table."""
        weights = np.stack([self._labels.table[f"count_{g}"].to_numpy()[places] for g in self._labels.groups], axis=1)
        size = len(self._row_of)
        row_of = np.append(self._row_of, [len(self.rows) - 1, len(self.rows) - 2])
        rows: Array = row_of[_largest(weights, size, size + 1)]
        return rows

    def result(self) -> Agreement:
        """The comparison. Raises EvenrankError if no document of the collection has a label."""
        if not self._known.any():
            named = self._labels.table["doc_id"][:5]
            raise EvenrankError(
                f"`labels`: no document of the collection has one; labels are of {', '.join(map(quoted, named))}, "
                f"documents are {', '.join(map(quoted, self._first))}"
            )
        known = int(self._known.sum())
        unlabelled = self._documents - int(self._confusion.sum())
        return Agreement(self.groups, self.rows, self.columns, self._confusion, unlabelled, len(self._known) - known)


def _largest(values: Array, tied: int, none: int) -> Array:
    """The column [N] of the largest of ``values`` [N, C]; ``tied`` where several are, ``none`` where all are 0."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    most = values.max(axis=1)
    several = (values == most[:, None]).sum(axis=1) > 1
    column: Array = np.where(most == 0, none, np.where(several, tied, values.argmax(axis=1)))
    return column
