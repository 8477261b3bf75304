"""How well a lexicon fits a collection: coverage, words, contexts, and agreement with labels."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from evenrank.groups import (
    GroupTable,
    Lexicon,
    Scoring,
    Tokens,
    WordCounts,
    load_lexicon,
    note_lexicon,
    score_with_words,
)
from evenrank.groups.agreement import Agreement, LabelComparison
from evenrank.groups.occurrences import Occurrences, WordUse
from evenrank.io import EvenrankError, Provenance
from evenrank.io.errors import readable
from evenrank.io.texts import as_batches
from evenrank.io.types import Array
from evenrank.reports.page import Page
from evenrank.reports.result import Result

FEW = 5
DOUBTFUL = 0.1
"""A word is listed as ambiguous from so many occurrences and so much doubt on."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How much of a collection a lexicon has something to say of.

    Attributes:
        documents: Number of documents; ``covered``: with at least one group word; ``above``: with more group words
            than the threshold, and so not neutral.
        by_group: For each group the number of documents with one of its words.
        occurrences: For each group the number of its words in all documents.
    """

    documents: int
    covered: int
    above: int
    by_group: Mapping[str, int]
    occurrences: Mapping[str, int]

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        groups = {
            group: {"documents": count, "share": count / self.documents, "occurrences": self.occurrences[group]}
            for group, count in self.by_group.items()
        }
        return {
            "documents": self.documents,
            "covered": self.covered,
            "share": self.covered / self.documents,
            "above_threshold": self.above,
            "share_above_threshold": self.above / self.documents,
            "groups": groups,
        }


@dataclass(frozen=True, slots=True, repr=False)
class LexiconCheck(Result):
    """The result of :func:`evenrank.check_lexicon`; ``name`` is the lexicon's.

    Attributes:
        words: Every word of the lexicon, the most frequent first.
        agreement: What words and labels say of the same documents; None without labels.
    """

    name: str
    lexicon: Lexicon
    coverage: Coverage
    words: tuple[WordUse, ...]
    agreement: Agreement | None
    settings: Mapping[str, object]
    provenance: Provenance | None = field(default=None, repr=False, compare=False)

    def never(self, group: str) -> tuple[str, ...]:
        """The words of a group that do not occur, in the lexicon's order."""
        return tuple(use.word for use in self.words if use.group == group and not use.occurrences)

    def ambiguous(self) -> tuple[WordUse, ...]:
        """The words used in several ways, the most doubtful occurrences first (see :class:`WordUse`).

        Those that occur at least 5 times, with a doubt of at least 0.1.
        """
        found = [use for use in self.words if use.occurrences >= FEW and use.doubt >= DOUBTFUL]
        return tuple(sorted(found, key=lambda use: -use.doubt * use.occurrences))

    def to_dict(self) -> dict[str, object]:
        """The figures as JSON values."""
        return {
            "settings": self.settings,
            "coverage": self.coverage.to_dict(),
            "words": [use.to_dict() for use in self.words if use.occurrences],
            "never": {group: list(self.never(group)) for group in self.lexicon.groups},
            "ambiguous": [use.word for use in self.ambiguous()],
            "labels": None if self.agreement is None else self.agreement.to_dict(),
        }

    def page(self) -> Page:
        """The figures as a page."""
        from .lexicon_page import lexicon_page

        return lexicon_page(self)


def check_lexicon(
    lexicon: str | os.PathLike[str] | Lexicon,
    collection: object,
    *,
    labels: object = None,
    neutral: Sequence[str] = (),
    group_column: str | None = None,
    tokens: Tokens = "word",
    threshold: float = 1,
) -> LexiconCheck:
    """Checks how well a lexicon fits a collection, in one pass over it.

    ``collection``: a path, ``irds:NAME``, ``{document: text}``, or a frame. ``labels``: a path, a frame, a dict or a
    group table of labels; ``neutral`` and ``group_column`` say how to read them (see
    :func:`evenrank.groups.labels.as_labels`). What the words say of a document is the group with the most words,
    whatever the threshold. ``threshold``: a document with at most this many group words is neutral.
    Raises EvenrankError for a collection without documents, and for labels of other groups or other documents.
    """
    if labels is None and (neutral or group_column is not None):
        raise EvenrankError("`neutral` and `group_column` say how to read `labels`, which are not given")
    made = Provenance("evenrank.check_lexicon")
    note_lexicon(made, lexicon)
    made.add("collection", collection).add("labels", labels).ahead()
    chosen = lexicon if isinstance(lexicon, Lexicon) else load_lexicon(lexicon)
    scoring = Scoring(chosen, tokens, (), threshold)
    table = None if labels is None else _labels(labels, neutral, group_column)
    counting = _Counting(scoring, table)
    for batch in as_batches(collection):
        counting.add(batch, *score_with_words([batch], scoring))
    coverage = counting.coverage()
    settings: dict[str, object] = {
        **scoring.describe(),
        "collection": readable(os.fspath(collection)) if isinstance(collection, str | os.PathLike) else None,
        "labels": None if table is None else table.settings.get("labels"),
    }
    agreement = None if counting.labels is None else counting.labels.result()
    return LexiconCheck(chosen.name, chosen, coverage, counting.words.words(), agreement, settings, made)


def _labels(given: object, neutral: Sequence[str], group_column: str | None) -> GroupTable:
    if isinstance(given, GroupTable):
        if not given.labelled:
            raise EvenrankError("`labels`: expected labels, found a group table of counted words")
        return given
    from evenrank.groups.labels import as_labels

    return as_labels(given, neutral=neutral, group_column=group_column)


class _Counting:
    """What is summed over the batches of a collection."""

    def __init__(self, scoring: Scoring, labels: GroupTable | None) -> None:
        self._scoring = scoring
        self._groups = scoring.lexicon.groups
        self.words = Occurrences(scoring)
        self.labels = None if labels is None else LabelComparison(self._groups, labels)
        self._documents = self._covered = self._above = 0
        self._by_group: Array = np.zeros(len(self._groups), dtype=np.int64)
        self._occurrences: Array = np.zeros(len(self._groups), dtype=np.int64)

    def add(self, batch: pl.DataFrame, scores: GroupTable, found: WordCounts) -> None:
        counts = np.stack([scores.table[f"count_{group}"].to_numpy() for group in self._groups], axis=1)
        total = counts.sum(axis=1)
        self._documents += batch.height
        self._covered += int((total > 0).sum())
        self._above += int((total > self._scoring.threshold).sum())
        self._by_group += (counts > 0).sum(axis=0)
        self._occurrences += counts.sum(axis=0, dtype=np.int64)
        self.words.add(batch["text"], found)
        if self.labels is not None:
            self.labels.add(batch["doc_id"], counts)

    def coverage(self) -> Coverage:
        """Raises EvenrankError if there were no documents."""
        if not self._documents:
            raise EvenrankError("`collection`: expected documents, found none")
        by_group = dict(zip(self._groups, self._by_group.tolist(), strict=True))
        occurrences = dict(zip(self._groups, self._occurrences.tolist(), strict=True))
        return Coverage(self._documents, self._covered, self._above, by_group, occurrences)
