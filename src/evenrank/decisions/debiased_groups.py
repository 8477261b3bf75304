"""What is known of the groups of an index's passages: from the words of their texts, a group table, or labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import polars as pl

from evenrank.groups import GroupTable, Lexicon, lexicon_of, score_batches, scoring_of
from evenrank.groups.largest import largest_groups
from evenrank.io import EvenrankError, as_batches
from evenrank.retrieval.erased_index import PassageNumbers
from evenrank.retrieval.vector_index import VectorIndex

from .group_sources import GroupSource


@dataclass(frozen=True)
class PassageGroups:
    """Where groups are known from: ``source``, whose lexicon, with labels or scores, only gives pairs of words."""

    source: GroupSource

    def check(self, method: str) -> None:
        """Raises EvenrankError for settings that do not go together."""
        if not self._counts and self.source.lexicon is not None and method != "hard":
            raise EvenrankError("`lexicon`: groups are known from `labels` or `scores`, and only hard needs its pairs")
        self._asked.check()

    @property
    def _counts(self) -> bool:
        """Whether words are counted in texts."""
        return self.source.scores is None and self.source.labels is None

    @property
    def _asked(self) -> GroupSource:
        return self.source if self._counts else replace(self.source, lexicon=None)

    @cached_property
    def _words(self) -> Lexicon:
        return lexicon_of(self.source.lexicon)

    @property
    def pairs(self) -> tuple[tuple[str, str], ...]:
        """The lexicon's pairs of counterparts; none where groups are known otherwise and no lexicon is given."""
        return self._words.pairs if self._counts or self.source.lexicon is not None else ()

    def numbers(self, index: VectorIndex) -> PassageNumbers:
        """The group of each of the index's passages. Raises EvenrankError where nothing is known of any."""
        if not self._counts:
            table = self.table([index.ids])
            return PassageNumbers.of(index, table.groups, _numbered(table), table.settings)
        source = self.source
        # Groups are told by counts alone.
        scoring = replace(scoring_of(self._words, source.poles, source.tokens, source.threshold), magnitudes=())
        # A batch at a time: a passage's number is kept, and not its counts.
        tables = score_batches(as_batches(source.collection), scoring)
        known = [_numbered(GroupTable.of(table, scoring.describe())) for table in tables]
        if not known:
            raise EvenrankError("the collection has no document")
        return PassageNumbers.of(index, self._words.groups, pl.concat(known), scoring.describe())

    def table(self, ids: Sequence[pl.Series]) -> GroupTable:
        """The group table of some documents."""
        return self._asked.grouping(ids).table


def _numbered(table: GroupTable) -> pl.DataFrame:
    return pl.DataFrame({"doc_id": table.table["doc_id"], "group": pl.Series(largest_groups(table)).cast(pl.Int16)})
