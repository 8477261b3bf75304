"""The check of a lexicon as tables and a page."""

from __future__ import annotations

from collections.abc import Iterator

from evenrank.groups.agreement import NEUTRAL, SEVERAL, Agreement, Proportion
from evenrank.groups.occurrences import EXAMINED
from evenrank.io.wording import are, counted, percent
from evenrank.reports.format import interval, number
from evenrank.reports.page import Page, Table

from .lexicon_check import DOUBTFUL, FEW, LexiconCheck

_MOST = 10
_LISTED = 20
_SOURCE = "evenrank's own definitions; intervals of shares: Wilson, 95%"


def lexicon_page(found: LexiconCheck) -> Page:
    """The figures of a check."""
    coverage, lexicon = found.coverage, found.lexicon
    facts = (("documents", f"{coverage.documents:,}"), ("words of the lexicon", f"{len(found.words):,}"))
    tables = [_coverage(found), _most_frequent(found), *_ambiguous(found)]
    if found.agreement is not None:
        tables += [_agreement(found.agreement), _confusion(found.agreement)]
    title = f"Lexicon {lexicon.name}" + (f" on {found.settings['collection']}" if found.settings["collection"] else "")
    return Page("lexicon check", title, _SOURCE, facts, tuple(tables), (), tuple(_notes(found)), tuple(_summary(found)))


def _summary(found: LexiconCheck) -> Iterator[str]:
    coverage = found.coverage
    yield (
        f"{percent(coverage.covered / coverage.documents, 1)} of the documents have a group word, "
        f"{percent(coverage.above / coverage.documents, 1)} more than {found.settings['threshold']:g}."
    )
    if found.agreement is not None:
        correct = found.agreement.correct
        yield (
            f"Words and labels say the same of {percent(correct.value or 0, 1)} "
            f"{interval(correct.ci95)} of {counted(correct.n, 'labelled document')}."
        )
    if found.lexicon.misses:
        yield f"Not seen: {found.lexicon.misses}"


def _coverage(found: LexiconCheck) -> Table:
    coverage = found.coverage

    def row(name: str, documents: int, occurrences: int | None) -> tuple[str, ...]:
        words = "" if occurrences is None else f"{occurrences:,}"
        return (name, f"{documents:,}", percent(documents / coverage.documents, 1), words)

    rows = [row(group, count, coverage.occurrences[group]) for group, count in coverage.by_group.items()]
    rows += [
        row("any group", coverage.covered, sum(coverage.occurrences.values())),
        row(f"more than {found.settings['threshold']:g}", coverage.above, None),
    ]
    return Table("Documents with words of", ("group", "documents", "share", "occurrences"), tuple(rows))


def _most_frequent(found: LexiconCheck) -> Table:
    rows = []
    for group in found.lexicon.groups:
        total = found.coverage.occurrences[group]
        words = [use for use in found.words if use.group == group and use.occurrences]
        rows += [
            (group, use.word, f"{use.occurrences:,}", f"{use.documents:,}", percent(use.occurrences / total, 1))
            for use in words[:_MOST]
        ]
    headings = ("group", "word", "occurrences", "documents", "of the group's")
    return Table("Most frequent words", headings, tuple(rows), left=2)


def _ambiguous(found: LexiconCheck) -> Iterator[Table]:
    words = found.ambiguous()
    if not words:
        return
    rows = tuple(
        (
            *(use.group, use.word, use.name or "", f"{use.occurrences:,}", number(use.capitalised, 2)),
            *(number(use.hyphenated, 2), number(use.in_name, 2), number(use.neighbours, 1)),
        )
        for use in words[:_LISTED]
    )
    headings = ("group", "word", "as in", "occurrences", "capital", "hyphen", "in names", "neighbours")
    notes = (f"The first {_LISTED} of {len(words)}; the JSON has all.",) if len(words) > _LISTED else ()
    yield Table("Words used in several ways", headings, rows, notes, left=3)
    examples = tuple((use.word, context) for use in words[:_LISTED] for context in use.contexts)
    yield Table("Examples of them", ("word", "context"), examples, left=2)


def _agreement(found: Agreement) -> Table:
    def cells(share: Proportion) -> tuple[str, ...]:
        return (number(share.value), interval(share.ci95), f"{share.n:,}")

    rows = tuple((group, *cells(found.precision(group)), *cells(found.recall(group))) for group in found.groups)
    headings = ("group", "precision", "95% interval", "words say so", "recall", "95% interval", "labels say so")
    return Table("Agreement with the labels", headings, rows)


def _confusion(found: Agreement) -> Table:
    rows = tuple(
        (row, *(f"{count:,}" for count in counts))
        for row, counts in zip(found.rows, found.confusion.tolist(), strict=True)
        if row in (*found.groups, NEUTRAL) or any(counts)
    )
    headings = ("the label says", *(f"words: {column}" for column in found.columns))
    return Table("Labels and words", headings, rows)


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
