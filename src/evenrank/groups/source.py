"""What says which groups documents are of, in the forms that every function takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace

import polars as pl

from evenrank.io import EvenrankError, Provenance, as_collection
from evenrank.io.convert import Strings, is_path
from evenrank.io.ranges import check_ranges
from evenrank.io.texts import select_texts

from .labels import as_labels, check_labels
from .lexicon import LexiconLike, note_lexicon
from .scoring import Scoring, score_batches, scores_as_asked, scoring_of
from .table import GroupTable, as_group_table
from .tokens import Tokens


@dataclass(frozen=True)
class GroupSource:
    """The documents' texts and :class:`evenrank.options.GroupOptions`: ``GroupSource(texts, **groups)``.

    Groups are those of ``labels``, of the table ``scores``, or of the words of ``lexicon`` in the ``collection``.
    """

    collection: object = None
    scores: object = None
    labels: object = None
    neutral: Strings | None = None
    group_column: str | None = None
    lexicon: LexiconLike | None = None
    poles: str | None = None
    tokens: Tokens | None = None
    threshold: float | None = None

    @property
    def described(self) -> bool:
        """Whether groups are known without counting words."""
        return self.scores is not None or self.labels is not None

    def check(self) -> None:
        """Raises EvenrankError for what contradicts itself, before anything is read."""
        check_ranges(threshold=self.threshold)
        words = {"lexicon": self.lexicon, "tokens": self.tokens, "threshold": self.threshold}
        check_labels(self.labels, self.neutral, self.group_column, scores=self.scores, **words)

    def note(self, provenance: Provenance) -> None:
        """Records the inputs, before they are read."""
        for role in ("collection", "scores", "labels"):
            provenance.add(role, getattr(self, role))
        default = None if self.described else "gender-en"
        note_lexicon(provenance, default if self.lexicon is None else self.lexicon)

    def scoring(self) -> Scoring:
        """How words are counted."""
        return scoring_of(self.lexicon, self.poles, self.tokens, self.threshold)

    def known(self, ids: Sequence[pl.Series] | None = None) -> GroupTable:
        """The table of labels or scores, of these documents or of all."""
        if self.labels is not None:
            return as_labels(self.labels, ids, neutral=self.neutral, group_column=self.group_column, poles=self.poles)
        return scores_as_asked(
            as_group_table(self.scores, ids),
            lexicon=self.lexicon,
            poles=self.poles,
            tokens=self.tokens,
            threshold=self.threshold,
        )

    def table(self, ids: Sequence[pl.Series]) -> GroupTable:
        """What is known of these documents. Raises EvenrankError for what cannot be used, and if none is found."""
        if self.described:
            return self.known(ids)
        collection = as_collection(self.collection)
        scoring = self.scoring()
        parts = [part for part in score_batches(select_texts(collection, ids), scoring) if part.height]
        source = f"the collection {os.fspath(collection)}" if is_path(collection) else "the collection"
        if not parts:
            raise EvenrankError(f"none of the run's documents is in {source}")
        return replace(GroupTable.of(pl.concat(parts), scoring.describe()), source=source)
