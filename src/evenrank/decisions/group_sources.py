"""Where the groups of a run's documents come from: texts and a lexicon, scores, or labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from evenrank.auditing.inputs import select_texts
from evenrank.groups import (
    GroupTable,
    Lexicon,
    Tokens,
    as_group_table,
    as_labels,
    check_labels,
    note_lexicon,
    score_batches,
    scores_as_asked,
    scoring_of,
)
from evenrank.io import EvenrankError, Provenance, as_collection
from evenrank.io.convert import is_path
from evenrank.measures import Target, as_target

from .rebalance_lists import DEPTH, Grouping, OfMissing

_OF_MISSING = ("error", "skip", "neutral")


@dataclass(frozen=True, slots=True)
class GroupSource:
    """What says which groups documents are of, as :func:`evenrank.audit` takes it, and what a fair list is.

    ``missing``: what happens to documents that it does not know: "error", "skip" (they keep their rank) or "neutral";
    by default an error for words, and ``skip`` for labels, which are seldom complete.
    """

    collection: object = None
    scores: object = None
    labels: object = None
    neutral: Sequence[str] | str | None = None
    group_column: str | None = None
    lexicon: str | os.PathLike[str] | Lexicon | None = None
    poles: str | None = None
    tokens: Tokens | None = None
    threshold: float | None = None
    target: object = None
    missing: OfMissing | None = None

    def check(self) -> None:
        """Raises EvenrankError for what contradicts itself, before anything is read."""
        words = {"lexicon": self.lexicon, "tokens": self.tokens, "threshold": self.threshold}
        check_labels(self.labels, tuple(self.neutral or ()), self.group_column, scores=self.scores, **words)
        if self.missing not in (None, *_OF_MISSING):
            raise EvenrankError(f"`missing`: expected error, skip or neutral, found {self.missing!r}")
        if self.collection is None and self.scores is None and self.labels is None:
            raise EvenrankError("which groups are the documents of? give `scores`, `labels` or `collection`")

    def note(self, provenance: Provenance) -> None:
        """Records the inputs, before they are read."""
        for role in ("collection", "scores", "labels"):
            provenance.add(role, getattr(self, role))
        if is_path(self.target) and os.path.exists(self.target):
            provenance.add("target", self.target)
        described = self.scores is not None or self.labels is not None
        note_lexicon(provenance, self.lexicon or (None if described else "gender-en"))

    def grouping(self, ids: Sequence[pl.Series], depth: int = DEPTH) -> Grouping:
        """What is known of the documents ``ids``. Raises EvenrankError for what cannot be used."""
        table = self._table(ids)
        target: Target | None = None if self.target is None else as_target(self.target, table.groups)
        return Grouping(table, depth, target, self.missing or ("skip" if table.labelled else "error"))

    def _table(self, ids: Sequence[pl.Series]) -> GroupTable:
        if self.labels is not None:
            neutral = (self.neutral,) if isinstance(self.neutral, str) else self.neutral or ()
            return as_labels(self.labels, ids, neutral=neutral, group_column=self.group_column, poles=self.poles)
        if self.scores is not None:
            made = as_group_table(self.scores, ids)
            return scores_as_asked(
                made, lexicon=self.lexicon, poles=self.poles, tokens=self.tokens, threshold=self.threshold
            )
        collection = as_collection(self.collection)
        scoring = scoring_of(self.lexicon, self.poles, self.tokens, self.threshold)
        parts = [part for part in score_batches(select_texts(collection, ids), scoring) if part.height]
        source = f"the collection {os.fspath(collection)}" if is_path(collection) else "the collection"
        if not parts:
            raise EvenrankError(f"none of the run's documents is in {source}")
        return replace(GroupTable.of(pl.concat(parts), scoring.describe()), source=source)
