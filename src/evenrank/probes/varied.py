"""What was changed to make a variant."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank.engines.ray import Report
from evenrank.io.wording import counted

_MOST = 10
"""Passages of this many edits or more are counted together."""
_NAMED = 20
"""At most this many of the words that were left are named."""
SHORT = 1.5
"""A padded passage with fewer times its words than this is said to be short."""


@dataclass(frozen=True, slots=True)
class Varied:
    """A variant of a collection: its kind, and what was changed.

    ``documents``: texts written (of a pair variant: pairs of a query and a passage); ``changed``: those that differ
    from their original; ``edits``: changed places in all; ``histogram``: texts by their number of edits ("0" … "10+");
    ``left``: group words without a counterpart, and how often; ``verbs_left``: verbs after *they* that were left.
    ``table``: the variant (``query_id`` of a pair variant, ``doc_id``, ``text``, ``edits``) if no file was written.
    """

    kind: str
    pairs: bool
    settings: Mapping[str, object]
    documents: int
    changed: int
    edits: int
    histogram: Mapping[str, int]
    left: Mapping[str, int]
    verbs_left: int = 0
    notes: tuple[str, ...] = ()
    table: pl.DataFrame | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, object]:
        """As JSON values, without the table; of the words that were left, the number and the most frequent ones."""
        most = sorted(self.left.items(), key=lambda item: (-item[1], item[0]))[:_NAMED]
        return {
            "kind": self.kind,
            **self.settings,
            "pairs": self.pairs,
            "documents": self.documents,
            "changed": self.changed,
            "edits": self.edits,
            "histogram": dict(self.histogram),
            "left": {"total": sum(self.left.values()), "words": dict(most)},
            "verbs_left": self.verbs_left,
            "notes": list(self.notes),
        }

    def summary(self) -> str:
        """What was changed, in one line."""
        noun = "pair" if self.pairs else "document"
        edits = counted(self.edits, "edit")
        return f"{counted(self.documents, noun)}: {self.changed:,} changed ({edits}), {self.unchanged:,} unchanged"

    @property
    def unchanged(self) -> int:
        """How many texts equal their original."""
        return self.documents - self.changed


@dataclass(slots=True)
class Tally:
    """Counts edits batch by batch. ``histogram`` [11]; ``short``: passages of which less was changed than should be."""

    histogram: NDArray[np.int64] = field(default_factory=lambda: np.zeros(_MOST + 1, np.int64))
    edits: int = 0
    verbs: int = 0
    short: int = 0
    left: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(
        cls, edits: NDArray[np.int64], left: Mapping[str, int] | None = None, verbs: int = 0, short: int = 0
    ) -> Tally:
        """The counts of texts with ``edits`` [N]."""
        histogram = np.bincount(np.minimum(edits, _MOST), minlength=_MOST + 1)
        return cls(histogram, int(edits.sum()), verbs, short, Counter(left))

    def to_dict(self) -> dict[str, object]:
        """As JSON values, for :meth:`from_dict`."""
        counts = {"edits": self.edits, "verbs": self.verbs, "short": self.short}
        return {**counts, "histogram": self.histogram.tolist(), "left": dict(self.left)}

    @classmethod
    def from_dict(cls, values: Report) -> Tally:
        """The counts that :meth:`to_dict` wrote."""
        edits, verbs, short = (values[name] for name in ("edits", "verbs", "short"))
        return cls(np.array(values["histogram"], np.int64), edits, verbs, short, Counter(values["left"]))

    def merge(self, other: Tally) -> None:
        """Adds the counts of a part."""
        self.histogram += other.histogram
        self.edits += other.edits
        self.verbs += other.verbs
        self.short += other.short
        self.left.update(other.left)

    @property
    def rows(self) -> int:
        """How many texts were counted."""
        return int(self.histogram.sum())

    @property
    def changed(self) -> int:
        """How many texts have edits."""
        return int(self.histogram[1:].sum())

    def varied(
        self,
        kind: str,
        pairs: bool,
        settings: Mapping[str, object],
        notes: tuple[str, ...] = (),
        table: pl.DataFrame | None = None,
    ) -> Varied:
        """The result, with the notes that the counts ask for."""
        if self.left:
            most = ", ".join(f"{word} {count:,}" for word, count in _most_frequent(self.left, 5))
            words = counted(self.left.total(), "group word")
            notes += (f"Left, as the lexicon has no counterpart: {words} ({most}{', …' * (len(self.left) > 5)}).",)
        if self.verbs:
            verbs, stay = counted(self.verbs, "verb"), "stays as it is" if self.verbs == 1 else "stay as they are"
            notes += (f"{verbs} after *they* {stay} (*they is*).",)
        if self.short:
            lack = f"Less than {SHORT} times as long, for lack of other sentences"
            what = lack if kind == "padded" else "Fewer edits than its variant, for lack of places"
            notes += (f"{what}: {counted(self.short, 'passage')}.",)
        names = [*map(str, range(_MOST)), f"{_MOST}+"]
        histogram = dict(zip(names, self.histogram.tolist(), strict=True))
        left = dict(_most_frequent(self.left, len(self.left)))
        counts = (self.rows, self.changed, self.edits, histogram, left, self.verbs)
        return Varied(kind, pairs, settings, *counts, notes, table)


def _most_frequent(words: Mapping[str, int], count: int) -> list[tuple[str, int]]:
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))[:count]
