"""How well a lexicon fits a collection: coverage, words, contexts, agreement with labels; as tables and a page."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.groups import (
    GroupTable,
    Lexicon,
    LexiconLike,
    Scoring,
    WordCounts,
    as_labels,
    load_lexicon,
    note_lexicon,
    score_with_words,
)
from evenrank.groups.occurrences import EXAMINED, Occurrences, WordUse
from evenrank.io import EvenrankError, Provenance
from evenrank.io.arguments import checked
from evenrank.io.errors import readable
from evenrank.io.json_values import LEFT_OUT, named
from evenrank.io.texts import as_batches
from evenrank.io.types import Array
from evenrank.io.wording import are, counted, percent
from evenrank.measures.inference import Estimate
from evenrank.results.finding import Finding, phrases
from evenrank.results.format import COUNT, TEXT, digits, intervals, percents
from evenrank.results.page import Page, Section
from evenrank.results.result import Result
from evenrank.results.table import Column, Table

from .agreement import NEUTRAL, SEVERAL, Agreement, LabelComparison

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
    lexicon: Lexicon = field(metadata=LEFT_OUT)
    coverage: Coverage
    words: tuple[WordUse, ...] = field(metadata=LEFT_OUT)
    agreement: Agreement | None = field(metadata=named("labels"))
    settings: Mapping[str, object]

    def never(self, group: str) -> tuple[str, ...]:
        """The words of a group that do not occur, in the lexicon's order."""
        return tuple(use.word for use in self.words if use.group == group and not use.occurrences)

    def ambiguous(self) -> tuple[WordUse, ...]:
        """The words used in several ways, the most doubtful occurrences first (see :class:`WordUse`).

        Those that occur at least 5 times, with a doubt of at least 0.1.
        """
        found = [use for use in self.words if use.occurrences >= FEW and use.doubt >= DOUBTFUL]
        return tuple(sorted(found, key=lambda use: -use.doubt * use.occurrences))

    def _beside(self) -> Mapping[str, object]:
        return {
            "words": [use for use in self.words if use.occurrences],
            "never": {group: self.never(group) for group in self.lexicon.groups},
            "ambiguous": [use.word for use in self.ambiguous()],
        }

    def page(self) -> Page:
        """The figures as a page."""
        return lexicon_page(self)


@checked
def check_lexicon(
    lexicon: Annotated[LexiconLike, opt.Option(opt.LEXICON, metavar="LEXICON", reads=True)],
    *,
    collection: opt.Collection,
    labels: Annotated[
        object,
        opt.Option("Labels of documents to compare with: CSV, TSV, JSONL or Parquet.", reads=True, panel="Groups"),
    ] = None,
    neutral: opt.Neutral = None,
    group_column: Annotated[
        str | None, opt.Option("The labels' column with the group (default: group).", panel="Groups", rare=True)
    ] = None,
    tokens: opt.Tokens = "word",
    threshold: opt.Threshold = 1,
) -> LexiconCheck:
    """Check a lexicon on a collection. The table has coverage, frequent, unused and ambiguous words, and agreement with
    labels.

    In one pass over the collection.

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
    chosen = load_lexicon(lexicon)
    scoring = Scoring(chosen, tokens, (), threshold)
    table = None if labels is None else as_labels(labels, neutral=neutral, group_column=group_column)
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
    return LexiconCheck(chosen.name, chosen, coverage, counting.words.words(), agreement, settings, provenance=made)


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


_SAYS = phrases("lexicon")
_MOST = 10
_LISTED = 20
_SOURCE = "evenrank's own definitions; intervals of shares: Wilson, 95%"


def lexicon_page(found: LexiconCheck) -> Page:
    """The figures of a check."""
    coverage, lexicon = found.coverage, found.lexicon
    facts = (("documents", f"{coverage.documents:,}"), ("words of the lexicon", f"{len(found.words):,}"))
    sections = [Section("Most frequent words", (_most_frequent(found),))]
    if found.ambiguous():
        sections.append(Section("Words used in several ways", tuple(_ambiguous(found))))
    if found.agreement is not None:
        sections.append(Section("Words and labels", (_agreement(found.agreement), _confusion(found.agreement))))
    title = f"Lexicon {lexicon.name}" + (f" on {found.settings['collection']}" if found.settings["collection"] else "")
    return Page(
        "lexicon check",
        title,
        tuple(_findings(found)),
        _coverage(found),
        aside=counted(coverage.documents, "document"),
        next=(("evenrank audit", "with this lexicon"),) if coverage.covered else (),
        sections=tuple(sections),
        facts=facts,
        source=_SOURCE,
        notes=tuple(_notes(found)),
        provenance=found.provenance,
    )


def _findings(found: LexiconCheck) -> Iterator[Finding]:
    """How many documents have a word, whether labels agree, what is not seen, and which words mislead."""
    coverage, lexicon = found.coverage, found.lexicon
    documents = counted(coverage.documents, "document")
    if not coverage.covered:
        yield _SAYS.find("none", lexicon.name, "shown", None, "answer", name=lexicon.name)
    else:
        share, above = coverage.covered / coverage.documents, coverage.above / coverage.documents
        values = {"covered": share, "above": above, "threshold": f"{found.settings['threshold']:g}"}
        yield _SAYS.find(
            "coverage", lexicon.name, "shown", None, "answer", name=lexicon.name, documents=documents, **values
        )
    if found.agreement is not None:
        correct = found.agreement.correct
        estimate = Estimate(correct.value, correct.ci95, correct.n, "documents")
        yield _SAYS.find("agreement", "", "shown", estimate, "answer", correct=estimate)
    if lexicon.misses:
        yield _SAYS.find("misses", misses=lexicon.misses)
    several = found.ambiguous()
    if several:
        words, more = [use.word for use in several[:3]], len(several) - 3
        rest = f" and {counted(more, 'more word')}" if more > 0 else ""
        yield _SAYS.find("ambiguous", place="note", words=", ".join(words), more=rest)


def _coverage(found: LexiconCheck) -> Table:
    coverage, threshold = found.coverage, found.settings["threshold"]
    rows: list[tuple[str, int, int | None]] = [
        *((group, count, coverage.occurrences[group]) for group, count in coverage.by_group.items()),
        ("any group", coverage.covered, sum(coverage.occurrences.values())),
        (f"more than {threshold:g} word{'s' * (threshold != 1)}", coverage.above, None),
    ]
    columns = (
        Column("group"),
        Column("documents", COUNT),
        Column("share", percents(1), of=lambda row: row[1] / coverage.documents),
        Column("occurrences", COUNT, of=lambda row: "" if row[2] is None else row[2]),
    )
    return Table("Documents with words of", columns, rows)


def _most_frequent(found: LexiconCheck) -> Table:
    totals = found.coverage.occurrences
    columns = (
        Column("group"),
        Column("word"),
        Column("occurrences", COUNT),
        Column("documents", COUNT),
        Column("share", percents(1), "of the group's", lambda use: use.occurrences / totals[use.group]),
    )
    words = [
        [use for use in found.words if use.group == group and use.occurrences][:_MOST] for group in found.lexicon.groups
    ]
    return Table("Most frequent words", columns, [use for of_group in words for use in of_group])


def _ambiguous(found: LexiconCheck) -> Iterator[Table]:
    words = found.ambiguous()
    if not words:
        return
    columns = (
        Column("group"),
        Column("word"),
        Column("name", TEXT, "as in", lambda use: use.name or ""),
        Column("occurrences", COUNT),
        Column("capitalised", digits(2), "capital"),
        Column("hyphenated", digits(2), "hyphen"),
        Column("in_name", digits(2), "in names"),
        Column("neighbours", digits(1)),
    )
    notes = (f"The first {_LISTED} of {len(words)}; the JSON has all.",) if len(words) > _LISTED else ()
    yield Table("Words used in several ways", columns, words[:_LISTED], notes)
    examples = [(use.word, context) for use in words[:_LISTED] for context in use.contexts]
    yield Table("Examples of them", (Column("word"), Column("context")), examples)


def _agreement(found: Agreement) -> Table:
    def share(name: str, place: int, heading: str) -> tuple[Column, ...]:
        ends = (f"{name}_low", f"{name}_high")
        return (
            Column(name, digits(3), of=f"{place}.value"),
            Column(ends, intervals(3), "95% interval", f"{place}.ci95"),
            Column(f"{name}_n", COUNT, heading, f"{place}.n"),
        )

    columns = (Column("group"), *share("precision", 1, "words say so"), *share("recall", 2, "labels say so"))
    rows = [(group, found.precision(group), found.recall(group)) for group in found.groups]
    return Table("Agreement with the labels", columns, rows)


def _confusion(found: Agreement) -> Table:
    rows = [
        (row, *counts)
        for row, counts in zip(found.rows, found.confusion.tolist(), strict=True)
        if row in (*found.groups, NEUTRAL) or any(counts)
    ]
    columns = (Column("label", TEXT, "the label says"), *(Column(f"words: {name}", COUNT) for name in found.columns))
    return Table("Labels and words", columns, rows)


def _notes(found: LexiconCheck) -> Iterator[str]:
    for group in found.lexicon.groups:
        never = found.never(group)
        if never:
            total = sum(use.group == group for use in found.words)
            listed = ", ".join(never[:_LISTED]) + (", …" if len(never) > _LISTED else "")
            yield f"{group}: {len(never)} of {counted(total, 'word')} never occur: {listed}."
    phrases = len({*found.lexicon.words}) - len(found.words)
    if phrases and found.settings["tokens"] == "whitespace":
        yield f"{counted(phrases, 'entry')} of several words {are(phrases)} left out: whitespace tokens hold no space."
    yield (
        f"Words used in several ways: at least {FEW} times, and at least {percent(DOUBTFUL)} of them in a name (with a"
        " capital, beside another word with one), with a hyphen, or in the rarer of two spellings (with a capital and"
        " without). Capitals count in running text only, not in headings. Neighbours: how many different words stand"
        f" beside it, as e to the entropy. Read at the first {EXAMINED} occurrences of a word."
    )
    if found.agreement is not None:
        agreement = found.agreement
        yield (
            "The words of a document say the group that has the most of them; tied and no word are neutral. Precision: "
            "of the documents whose words say the group, the share whose label does; recall: the reverse."
        )
        if agreement.unlabelled:
            yield f"{counted(agreement.unlabelled, 'document')} without a label {are(agreement.unlabelled)} left out."
        if agreement.absent:
            yield f"{counted(agreement.absent, 'labelled document')} {are(agreement.absent)} not in the collection."
        several = int(agreement.confusion[agreement.rows.index(SEVERAL)].sum())
        if several:
            yield f"{counted(several, 'document')} {are(several)} labelled with several groups of equal weight."
