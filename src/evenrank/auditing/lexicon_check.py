"""How well a lexicon fits a collection: coverage, ambiguous words, precision and recall; as tables and a page."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.files import EvenrankError, Provenance
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted, readable
from evenrank.files.json_values import LEFT_OUT, named
from evenrank.files.tables import IdIndex
from evenrank.files.texts import as_batches
from evenrank.files.tokens import tokenize
from evenrank.files.types import Array
from evenrank.files.wording import are, counted, percent
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
from evenrank.groups.scoring import gendered_spans
from evenrank.results.finding import Finding, phrases
from evenrank.results.page import Page, Section
from evenrank.results.result import Result
from evenrank.results.table import COUNT, Column, Table, digits, intervals, percents
from evenrank.stats.ratios import proportion

EXAMINED = 100
"""How a word is used is read at its first occurrences in the collection, at most so many."""
_NEAR = 60
_OPENING = " \t\"'“”„‘’«»‹›([{¿¡*_"
_ENDS = ".!?:;…\n\r|"
_HYPHENS = "-\u2010\u2011"
_SENTENCE = re.compile(rf"[{re.escape(_ENDS)}]")
_LOWER = re.compile(r"[^\W\d_]{4,}")
_BEFORE = re.compile(r"([\w'’]+)[^\w'’]*$")
_AFTER = re.compile(r"[^\w'’]*([\w'’]+)")


@dataclass(frozen=True, slots=True)
class WordUse:
    """How one word of a lexicon is used in a collection.

    Attributes:
        word: As the tokenisation reads it (``ex wife``); ``group``: its group.
        occurrences: In all documents; ``documents``: how many documents contain the word.
        examined: How many of the occurrences, the first ones, the other attributes are of.
        capitalised: Of those within running text, the share that begins with a capital. None where there are none.
            Running text: not the first word of a sentence, not in capitals throughout, and near another word of the
            sentence with four or more letters and no capital, so that headings do not count.
        hyphenated: The share joined to another word by a hyphen.
        in_name: The share that is part of a name: capitalised within running text, beside another capitalised word.
    """

    also: ClassVar = ("doubt",)
    word: str
    group: str
    occurrences: int
    documents: int
    examined: int
    capitalised: float | None
    hyphenated: float
    in_name: float

    @property
    def doubt(self) -> float:
        """How far one form is used in several ways, from 0 to 1; our definition.

        The largest of the share in names, the share with a hyphen, and the share of the less frequent of the two
        spellings, with a capital and without.
        """
        spelling = 0.0 if self.capitalised is None else min(self.capitalised, 1 - self.capitalised)
        return max(self.in_name, self.hyphenated, spelling)


@dataclass(slots=True)
class _Tally:
    """What is counted of one word while texts are read."""

    examined: int = 0
    within: int = 0
    capitalised: int = 0
    hyphenated: int = 0
    in_names: int = 0

    def add(self, text: str, start: int, end: int) -> None:
        """One occurrence, from ``start`` to ``end``."""
        self.examined += 1
        within = _is_running(text, start, end)
        capital = within and text[start].isupper()
        self.within += within
        self.capitalised += capital
        self.hyphenated += _is_joined(text, start - 1, -1) or _is_joined(text, end, 1)
        self.in_names += capital and _is_in_name(text, start, end)


def _begins_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 20) : start].rstrip(_OPENING)
    return not before or before[-1] in _ENDS


def _is_running(text: str, start: int, end: int) -> bool:
    """Whether a word stands within running text; see :class:`WordUse`."""
    if _begins_sentence(text, start) or (end - start > 1 and text[start:end].isupper()):
        return False
    near = (_SENTENCE.split(text[max(0, start - _NEAR) : start])[-1], _SENTENCE.split(text[end : end + _NEAR])[0])
    return any(word.islower() for part in near for word in _LOWER.findall(part))


def _is_joined(text: str, place: int, step: int) -> bool:
    """Whether the character at ``place`` is a hyphen with a letter or digit beyond it."""
    beyond = place + step
    return 0 <= place < len(text) and 0 <= beyond < len(text) and text[place] in _HYPHENS and text[beyond].isalnum()


def _is_in_name(text: str, start: int, end: int) -> bool:
    """Whether a capitalised word is right before or after the word, one space apart."""
    before, after = _BEFORE.search(text, max(0, start - _NEAR), start), _AFTER.match(text, end)
    if after and after.start(1) == end + 1 and text[end] == " " and after[1][0].isupper():
        return True
    beside = before is not None and before.end(1) == start - 1 and text[start - 1] == " "
    return bool(before and beside and before[1][0].isupper() and not _begins_sentence(text, before.start(1)))


class Occurrences:
    """Counts the words of a lexicon in batches of documents, and reads how the first ones are used."""

    def __init__(self, scoring: Scoring) -> None:
        self._scoring = scoring
        entries = scoring.lexicon.entries(scoring.tokens)
        self._groups = tuple(entries.values())
        self._words = tuple(map(" ".join, entries))
        self._place = {key: place for place, key in enumerate(entries)}
        self._tallies = [_Tally() for _ in entries]
        self._occurrences = np.zeros(len(entries), dtype=np.int64)
        self._documents = np.zeros(len(entries), dtype=np.int64)

    def add(self, texts: pl.Series, found: WordCounts) -> None:
        """A batch of documents and the words found in it, whose ``document`` is a row of ``texts``."""
        size = len(self._words)
        self._occurrences += np.bincount(found.word, weights=found.count, minlength=size).astype(np.int64)
        self._documents += np.bincount(found.word, minlength=size)
        open_ = np.array([tally.examined < EXAMINED for tally in self._tallies], dtype=bool)
        wanted = open_[found.word] if size else np.zeros(0, dtype=bool)
        last = -1
        for document, word in zip(found.document[wanted].tolist(), found.word[wanted].tolist(), strict=True):
            if document != last and self._tallies[word].examined < EXAMINED:
                self._read(texts[document])
                last = document

    def _read(self, text: str) -> None:
        for start, end, key in _spans(text, self._scoring):
            tally = self._tallies[self._place[key]]
            if tally.examined < EXAMINED:
                tally.add(text, start, end)

    def words(self) -> tuple[WordUse, ...]:
        """Every word of the lexicon, the most frequent first."""
        order = np.argsort(-self._occurrences, kind="stable")
        return tuple(self._use(int(place)) for place in order)

    def _use(self, place: int) -> WordUse:
        tally = self._tallies[place]
        return WordUse(
            self._words[place],
            self._groups[place],
            int(self._occurrences[place]),
            int(self._documents[place]),
            tally.examined,
            tally.capitalised / tally.within if tally.within else None,
            tally.hyphenated / max(tally.examined, 1),
            tally.in_names / max(tally.examined, 1),
        )


def _spans(text: str, scoring: Scoring) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Where the lexicon's entries are in a text: start, end, and the entry's tokens."""
    if scoring.tokens == "word":
        for start, end, _ in gendered_spans(text, scoring.lexicon):
            yield start, end, tuple(tokenize(text[start:end]))
        return
    entries = scoring.lexicon.entries(scoring.tokens)
    for match in re.finditer("[^ ]+", text):
        key = tuple(tokenize(match[0], scoring.tokens))
        if key in entries:
            yield *match.span(), key


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
    """Agreement of documents' labels with their words: a word count predicts the group with most words, if any.

    Attributes:
        documents: Number of documents with a label.
        unlabelled: Number of documents of the collection without a label, which are left out.
        absent: Number of labelled documents that the collection does not have.
        groups: By group of the lexicon, ``precision``: of the documents whose words say the group, the share whose
            label does; and ``recall``: of those whose label says it, the share whose words do.
    """

    documents: int
    unlabelled: int
    absent: int
    groups: Mapping[str, Mapping[str, Proportion]]


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
                f"{arg.labels}: their groups are {', '.join(labels.groups)}, those of the lexicon {', '.join(groups)}"
            )
        if len(set(names)) < len(names):
            raise EvenrankError(f"{arg.labels}: two of their groups have one name: {', '.join(labels.groups)}")
        # A label of another group is of none of the lexicon's.
        places = [groups.index(name) if name in groups else len(groups) for name in names]
        self._place = np.array([*places, len(groups)])
        self._index = IdIndex([labels.table["doc_id"]])
        self._known = np.zeros(labels.table.height, dtype=bool)
        self._said, self._labelled, self._both = np.zeros((3, len(groups) + 1), dtype=np.int64)
        self._first: list[str] = []
        self._documents = 0

    def add(self, ids: pl.Series, counts: Array) -> None:
        """A batch of documents: their ``ids`` [N] and the ``counts`` [N, G] of each group's words."""
        places = self._index.places(ids)
        labelled = places >= 0
        self._documents += len(ids)
        self._first += ids[: 5 - len(self._first)].to_list() if len(self._first) < 5 else []
        self._known[places[labelled]] = True
        weights = [self._labels.table[f"count_{group}"].to_numpy()[places[labelled]] for group in self._labels.groups]
        label = self._place[_largest(np.stack(weights, axis=1))]
        words = _largest(counts[labelled])
        size = len(self.groups) + 1
        self._said += np.bincount(words, minlength=size)
        self._labelled += np.bincount(label, minlength=size)
        self._both += np.bincount(words[words == label], minlength=size)

    def result(self) -> Agreement:
        """The comparison. Raises EvenrankError if no document of the collection has a label."""
        if not self._known.any():
            named = self._labels.table["doc_id"][:5]
            raise EvenrankError(
                f"{arg.labels}: no document of the collection has one; labels are of {', '.join(map(quoted, named))}, "
                f"documents are {', '.join(map(quoted, self._first))}"
            )
        known, documents = int(self._known.sum()), int(self._said.sum())
        shares = {
            group: {"precision": Proportion(both, predicted), "recall": Proportion(both, labelled)}
            for group, both, predicted, labelled in zip(
                self.groups,
                *(counts[:-1].tolist() for counts in (self._both, self._said, self._labelled)),
                strict=True,
            )
        }
        return Agreement(documents, self._documents - documents, len(self._known) - known, shares)


def _largest(values: Array) -> Array:
    """The column [N] of the largest of ``values`` [N, C]; C where all are 0, and where several are."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    most = values.max(axis=1)
    several = (values == most[:, None]).sum(axis=1) > 1
    column: Array = np.where((most == 0) | several, values.shape[1], values.argmax(axis=1))
    return column


FEW = 5
DOUBTFUL = 0.1
"""A word is listed as ambiguous from so many occurrences and so much doubt on."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Coverage of a collection by a lexicon: numbers of documents and of words.

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
        agreement: Precision and recall of the words against labels of the same documents; None without labels.
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
        uses = [use for use in self.words if use.occurrences >= FEW and use.doubt >= DOUBTFUL]
        return tuple(sorted(uses, key=lambda use: -use.doubt * use.occurrences))

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
    """Check a lexicon on a collection. The screen has coverage and, with labels, precision and recall; unused and
    ambiguous words are listed with --full.

    In one pass over the collection.

    ``collection``: a path, ``irds:NAME``, ``{document: text}``, or a frame. ``labels``: a path, a frame, a dict or a
    group table of labels; ``neutral`` and ``group_column`` say how to read them (see
    :func:`evenrank.groups.labels.as_labels`). What the words say of a document is the group with the most words,
    whatever the threshold. ``threshold``: a document with at most this many group words is neutral.
    Raises EvenrankError for a collection without documents, and for labels of other groups or other documents.
    """
    provenance = Provenance("evenrank.check_lexicon")
    note_lexicon(provenance, lexicon)
    provenance.add("collection", collection).add("labels", labels).ahead()
    chosen = load_lexicon(lexicon)
    scoring = Scoring(chosen, tokens, (), threshold)
    table = None if labels is None else as_labels(labels, neutral=neutral, group_column=group_column)
    if table is not None and table.sample is not None:
        raise EvenrankError(
            f"{arg.labels} were drawn, some documents rather than others: agreement needs them as they come"
        )
    groups, words = chosen.groups, Occurrences(scoring)
    compared = None if table is None else LabelComparison(groups, table)
    documents = covered = above = 0
    by_group, occurrences = np.zeros((2, len(groups)), dtype=np.int64)
    for batch in as_batches(collection):
        scores, word_counts = score_with_words([batch], scoring)
        counts = np.stack([scores.table[f"count_{group}"].to_numpy() for group in groups], axis=1)
        total = counts.sum(axis=1)
        documents += batch.height
        covered += int((total > 0).sum())
        above += int((total > threshold).sum())
        by_group += (counts > 0).sum(axis=0)
        occurrences += counts.sum(axis=0, dtype=np.int64)
        words.add(batch["text"], word_counts)
        if compared is not None:
            compared.add(batch["doc_id"], counts)
    if not documents:
        raise EvenrankError(f"{arg.collection}: expected documents, found none")
    sums = (dict(zip(groups, of_groups.tolist(), strict=True)) for of_groups in (by_group, occurrences))
    coverage = Coverage(documents, covered, above, *sums)
    settings: dict[str, object] = {
        **scoring.describe(),
        "collection": readable(os.fspath(collection)) if isinstance(collection, str | os.PathLike) else None,
        "labels": None if table is None else table.settings.get("labels"),
    }
    agreement = None if compared is None else compared.result()
    return LexiconCheck(chosen.name, chosen, coverage, words.words(), agreement, settings, provenance=provenance)


_PHRASES = phrases("lexicon")
_LISTED = 20
_SOURCE = "evenrank's own definitions; intervals of shares: Wilson, 95%"


def lexicon_page(found: LexiconCheck) -> Page:
    """The figures of a check."""
    coverage, lexicon = found.coverage, found.lexicon
    facts = (("documents", f"{coverage.documents:,}"), ("words of the lexicon", f"{len(found.words):,}"))
    sections = []
    if found.ambiguous():
        sections.append(Section("Words used in several ways", (_ambiguous(found),)))
    if found.agreement is not None:
        sections.append(Section("Words and labels", (_agreement(found.agreement),)))
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
    """How many documents have a word, precision and recall against labels, what is not seen, which words mislead."""
    coverage, lexicon = found.coverage, found.lexicon
    documents = counted(coverage.documents, "document")
    if not coverage.covered:
        yield _PHRASES.finding("none", lexicon.name, "shown", None, "answer", name=lexicon.name)
    else:
        share, above = coverage.covered / coverage.documents, coverage.above / coverage.documents
        values: dict[str, Any] = {"covered": share, "above": above, "threshold": f"{found.settings['threshold']:g}"}
        yield _PHRASES.finding(
            "coverage", lexicon.name, "shown", None, "answer", name=lexicon.name, documents=documents, **values
        )
    agreement = {} if found.agreement is None else found.agreement.groups
    for group, shares in agreement.items():
        if all(share.n for share in shares.values()):
            values = {name: share.value for name, share in shares.items()}
            values |= {f"{name}_interval": share.ci95 for name, share in shares.items()}
            yield _PHRASES.finding("precision_recall", group, **values)
    if lexicon.misses:
        yield _PHRASES.finding("misses", misses=lexicon.misses)
    several = found.ambiguous()
    if several:
        words, more = [use.word for use in several[:3]], len(several) - 3
        rest = f" and {counted(more, 'more word')}" if more > 0 else ""
        yield _PHRASES.finding("ambiguous", place="note", words=", ".join(words), more=rest)


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


def _ambiguous(found: LexiconCheck) -> Table:
    words = found.ambiguous()
    columns = (
        Column("group"),
        Column("word"),
        Column("occurrences", COUNT),
        Column("capitalised", digits(2), "capital"),
        Column("hyphenated", digits(2), "hyphen"),
        Column("in_name", digits(2), "in names"),
    )
    notes = (f"The first {_LISTED} of {len(words)}; the JSON has all.",) if len(words) > _LISTED else ()
    return Table("Words used in several ways", columns, words[:_LISTED], notes)


def _agreement(found: Agreement) -> Table:
    def share(name: str, place: int, heading: str) -> tuple[Column, ...]:
        ends = (f"{name}_low", f"{name}_high")
        return (
            Column(name, digits(3), of=f"{place}.value"),
            Column(ends, intervals(3), "95% interval", f"{place}.ci95"),
            Column(f"{name}_n", COUNT, heading, f"{place}.n"),
        )

    columns = (Column("group"), *share("precision", 1, "words say so"), *share("recall", 2, "labels say so"))
    rows = [(group, shares["precision"], shares["recall"]) for group, shares in found.groups.items()]
    return Table("Agreement with the labels", columns, rows)


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
        f" without). Capitals count in running text only, not in headings. Read at the first {EXAMINED} occurrences."
    )
    if found.agreement is not None:
        agreement = found.agreement
        yield (
            "The words of a document say the group that has the most of them, and none if they are tied. Precision: "
            "of the documents whose words say the group, the share whose label does; recall: the reverse."
        )
        if agreement.unlabelled:
            yield f"{counted(agreement.unlabelled, 'document')} without a label {are(agreement.unlabelled)} left out."
        if agreement.absent:
            yield f"{counted(agreement.absent, 'labelled document')} {are(agreement.absent)} not in the collection."
