"""Which documents to label, so that a hundred labels say what a figure of all of them would be."""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank import options as opt
from evenrank.files import EvenrankError, InputError, Run, arg, as_collection, as_queries, write_text
from evenrank.files.arguments import checked
from evenrank.files.convert import Strings, TextsLike
from evenrank.files.json_values import LEFT_OUT, json_text
from evenrank.files.outputs import (
    atomic_path,
    exclusive,
    for_spreadsheets,
    ids_for_spreadsheets,
    ids_from_spreadsheets,
)
from evenrank.files.provenance import SUFFIX
from evenrank.files.runs import RunsLike
from evenrank.files.tables import read_columns
from evenrank.files.texts import select_texts
from evenrank.files.types import Array
from evenrank.files.wording import counted
from evenrank.groups import GroupTable, as_labels
from evenrank.groups.labels import DRAWN, FRAME, NO_LABEL, PROBABILITY, SampleCard
from evenrank.measures import Evaluation, MeasuresLike, is_bias, linear_form, not_estimable, parse_measures
from evenrank.results.finding import phrases
from evenrank.results.page import Page
from evenrank.results.result import Result
from evenrank.results.table import COUNT, Column, Table, shorts
from evenrank.stats.planning import expected_half_width
from evenrank.stats.sampling import LEAST_LABELS

from .inputs import load_runs, name_runs, only_queries
from .judgements import GRADE, as_pairs, pair_ids, split_pairs

_FLOOR = 4
"""The smallest probability is that of a document with a quarter of the mean weight."""
_SIZES = (50, 100, 200, 400)
_IDS = ("query_id", "doc_id")
_IN_FILE = ("query_id", "query", "doc_id", "text")
_PHRASES = phrases("labels")
GROUP = "group"


@dataclass(frozen=True, slots=True)
class Expected:
    """Largest half-width to expect of an interval for these queries, by number of labels, without a guess.

    ``figure``: of the run and measure that has the widest; ``difference``: of the two runs whose difference has, None
    for one run, and where the figures are differences.
    """

    labels: int
    figure: float
    difference: float | None = None


@dataclass(frozen=True, repr=False)
class LabelSample(Result):
    """Documents that were drawn for labelling.

    Attributes:
        measures: The measures whose figures the labels are for; ``runs``: the runs' names, the ``baseline``'s too.
        documents: ``doc_id``, ``text`` (if there is a collection) and ``probability`` [n], in random order: the first
            of them, however many, are a sample as well. ``drawn``: n.
        could_be_drawn: The ids of all documents that could have been drawn.
        expected: What interval to expect for which number of labels.
    """

    measures: tuple[str, ...]
    runs: tuple[str, ...]
    baseline: str | None
    documents: pl.DataFrame = field(repr=False, metadata=LEFT_OUT)
    could_be_drawn: pl.Series = field(repr=False, metadata=LEFT_OUT)
    expected: tuple[Expected, ...]
    drawn: int = 0

    @property
    def column(self) -> str:
        """The column to fill in: ``group`` for documents, ``grade`` for pairs."""
        return GRADE if "query_id" in self.documents.columns else GROUP

    @property
    def ids(self) -> pl.Series:
        """The ids of the documents, or pairs, drawn [n]."""
        documents = self.documents
        return pair_ids(documents["query_id"], documents["doc_id"]) if self.column == GRADE else documents["doc_id"]

    @property
    def grades(self) -> int:
        """The highest grade that the measures distinguish from lower ones."""
        params = [parse_measures(measure)[0].params for measure in self.measures]
        return max(int(p.get("max_rel", p.get("rel", 1))) for p in params)

    def write(self, path: opt.File) -> None:
        """Writes the documents as CSV with an empty column, ``group`` or ``grade``, to fill in from the top down.

        A card beside it (``.card.json``) says what was drawn and what could have been; it has to stay beside it. Raises
        EvenrankError for a file with labels, which would be lost.
        """
        if os.path.isfile(path) and os.path.getsize(path):
            labels = read_columns(path).table
            filled = [labels[name].cast(pl.String).fill_null("") for name in (GROUP, GRADE) if name in labels.columns]
            if any((column.str.strip_chars() != "").any() for column in filled):
                raise EvenrankError(f"{os.fspath(path)}: has labels already: name another file")
        ids = [ids_for_spreadsheets(self.documents[name]) for name in _IDS if name in self.documents.columns]
        texts = [*for_spreadsheets(self.documents.drop(*(column.name for column in ids), PROBABILITY))]
        table = self.documents.with_columns(*ids, *texts, pl.lit("").alias(self.column))
        order = ("doc_id", self.column, "text") if self.column == GROUP else (*_IN_FILE, self.column)
        write_labels(path, table.select(name for name in (*order, PROBABILITY) if name in table.columns))
        card = {
            "made_by": {"stage": "labels sample", "measures": self.measures, "runs": self.runs},
            DRAWN: self.ids.to_list(),
            PROBABILITY: self.documents[PROBABILITY].to_list(),
            FRAME: self.could_be_drawn.to_list(),
        }
        write_text(f"{os.fspath(path)}{SUFFIX}", json_text(card) + "\n")

    def labels(self, groups: Mapping[str, str], *, neutral: Strings = (), poles: str | None = None) -> GroupTable:
        """Labels for :func:`evenrank.audit`, from the groups of the first documents of the sample.

        ``groups``: the group of each document, ``none`` for no group; the others as :func:`evenrank.as_labels` takes
        them.

        Raises:
            EvenrankError: For a document without a group among those with one, and for pairs, whose grades
                :func:`evenrank.audit` takes as ``qrels``: ``documents`` with a column ``grade``.
        """
        if self.column == GRADE:
            raise EvenrankError("pairs have grades, not groups: give `qrels` the documents with a column grade")
        group = self.documents["doc_id"].replace_strict(dict(groups), default=None, return_dtype=pl.String)
        table = self.documents.with_columns(group.alias("group")).select("doc_id", "group", PROBABILITY)
        card = SampleCard(self.documents["doc_id"], self.documents[PROBABILITY], self.could_be_drawn)
        return as_labels(table, neutral=neutral, poles=poles, card=card, what=arg.groups)

    def page(self) -> Page:
        """How many were drawn, and what interval to expect."""
        columns = [Column("labels", COUNT), Column("figure", shorts(3), "difference" if self.baseline else "a run")]
        columns += [Column("difference", shorts(3), "two runs")] if self.expected[0].difference is not None else []
        of = f"difference from {self.baseline}" if self.baseline is not None else "figures"
        answer = _PHRASES.finding(
            "sampled" if self.column == GROUP else "sampled_pairs",
            place="answer",
            n=self.drawn,
            of=len(self.could_be_drawn),
            figures=of,
            measures=", ".join(self.measures),
            runs=[run for run in self.runs if run != self.baseline],
        )
        notes = [_PHRASES.finding("expected", place="note")]
        if self.drawn < LEAST_LABELS:
            notes.append(_PHRASES.finding("too_few", level="cannot be told", place="note", least=LEAST_LABELS))
        elif self.drawn > LEAST_LABELS:
            of_what = "documents" if self.column == GROUP else "pairs"
            notes.append(_PHRASES.finding("any_first", place="note", least=LEAST_LABELS, of=of_what))
        title = "Half the width of the interval to expect"
        return Page("labels", "A sample to label", (answer, *notes), Table(title, tuple(columns), self.expected))


def write_labels(path: opt.File, table: pl.DataFrame) -> None:
    """Writes a sample as CSV, for spreadsheets; the file appears whole or not at all."""
    with atomic_path(path) as part:
        table.write_csv(part)


COMMANDS = ("undo", "quit")
"""What somebody who labels can say instead of a label."""


@dataclass
class Labelling:
    """A sample being labelled. Every answer is saved immediately, so labelling can stop and resume.

    Several people may label one file at a time: each answer is written into the file as it then is.

    Attributes:
        path: The file that ``evenrank labels sample`` wrote; ``choices``: the groups, beside ``none``, or the grades.
        column: The column of labels: ``group``, or ``grade`` of pairs.
    """

    path: str
    choices: tuple[str, ...]
    column: str = GROUP

    def __post_init__(self) -> None:
        if self.column == GRADE:
            odd = next((choice for choice in self.choices if not choice.lstrip("-").isdecimal()), None)
            if odd is not None:
                raise EvenrankError(f"{arg.grades}: expected whole numbers, found {odd}")
        names = [choice.casefold() for choice in self.choices]
        if len(names) < 2 or len(set(names)) < len(names) or not {*names}.isdisjoint((NO_LABEL, *COMMANDS)):
            taken, given = ", ".join((NO_LABEL, *COMMANDS)), ", ".join(self.choices)
            raise EvenrankError(f"{arg.groups}: expected two or more names that differ, none of {taken}; found {given}")
        self._own: list[int] = []
        self._table = self._read()

    def _read(self) -> pl.DataFrame:
        """The file as it is."""
        columns = read_columns(self.path)
        lacking = [name for name in ("doc_id", self.column, PROBABILITY) if name not in columns.table.columns]
        if lacking == [GROUP] and GRADE in columns.table.columns:
            raise columns.error(f"holds pairs, which get grades: {arg.grades} names them")
        if lacking:
            raise columns.error(f"no sample to label: it has no column {lacking[0]}")
        if not columns.table.height:
            raise columns.error("has no documents to label")
        return columns.table.with_columns(pl.col(self.column).fill_null("").str.strip_chars())

    def __len__(self) -> int:
        return self._table.height

    @property
    def done(self) -> int:
        """How many documents have a label, from the first on."""
        labelled = (self._table[self.column] != "").to_numpy()
        return len(labelled) if labelled.all() else int(np.argmin(labelled))

    @property
    def document(self) -> tuple[str, str]:
        """The id and the text of the next document, under its query if it is a pair; "" where the file has no text."""
        self._refresh()
        row = self._table[self.done].row(0, named=True)
        ids = ids_from_spreadsheets(pl.Series([row[name] for name in _IDS if row.get(name) is not None]))
        return "  ".join(ids), "\n".join(row[name] for name in ("query", "text") if row.get(name))

    @property
    def answers(self) -> tuple[str, ...]:
        """The labels that there are: the choices and, of documents, ``none``."""
        return self.choices if self.column == GRADE else (*self.choices, NO_LABEL)

    def meant(self, answer: str) -> str | None:
        """The label, or one of ``COMMANDS``, that an answer names, or begins as no other does; else None."""
        wanted = answer.strip().casefold()
        every = (*self.answers, *COMMANDS)
        exact = [word for word in every if word.casefold() == wanted]
        matches = exact or [word for word in every if wanted and word.casefold().startswith(wanted)]
        return matches[0] if len(matches) == 1 else None

    @property
    def counts(self) -> dict[str, int]:
        """How many documents have each label."""
        labels = self._table[self.column]
        return dict(labels.filter(labels != "").value_counts(sort=True).iter_rows())

    def label(self, choice: str) -> None:
        """Writes the label of the document that was shown."""
        row = self.done
        self._write(row, choice)
        self._own.append(row)

    def undo(self) -> None:
        """Takes the last label back: one's own, if one has given any since the start."""
        if self._own or self.done:
            self._write(self._own.pop() if self._own else self.done - 1, "")

    def _write(self, row: int, label: str) -> None:
        with exclusive(self.path):
            self._refresh()
            here = pl.int_range(pl.len()) == row
            written = pl.when(here).then(pl.lit(label)).otherwise(self.column).alias(self.column)
            self._table = self._table.with_columns(written)
            write_labels(self.path, self._table)

    def _refresh(self) -> None:
        """Reads the file again: somebody else may have written it. Raises InputError if it holds other documents."""
        table = self._read()
        if any(not table[name].equals(self._table[name]) for name in _IDS if name in table.columns):
            raise InputError(self.path, "holds other documents than when labelling began: start again")
        self._table = table


@checked
def sample_labels(
    runs: Annotated[RunsLike, opt.Option("TREC run files, with or without a name.", metavar="[NAME=]RUN…", typed=list)],
    *,
    collection: opt.MaybeCollection = None,
    n: Annotated[int, opt.Option("How many documents to draw.", range=opt.COUNT)] = 100,
    measures: Annotated[
        MeasuresLike, opt.Option("The measures whose figures are wanted.", metavar="LIST", flag="--measure")
    ] = "ARaB@10",
    baseline: Annotated[
        str | None,
        opt.Option("Draw for the differences from this run, not for each run's figure.", metavar="NAME"),
    ] = None,
    depth: Annotated[
        int | None,
        opt.Option(
            "Documents down to this rank may be drawn too, for what puts them into another order.",
            range=opt.COUNT,
            rare=True,
        ),
    ] = None,
    queries: Annotated[TextsLike | None, opt.Option("The queries to look at (default: all).", reads=True)] = None,
    seed: Annotated[int, opt.Option("Seed of what is drawn.", range=opt.SEED)] = 0,
) -> LabelSample:
    """Draw documents to label, or pairs to judge. A hundred such labels give figures with intervals that hold, however
    wrong a lexicon, a classifier or a language model is.

    A document is drawn with a probability proportional to its weight in the figures asked for, at least that of a
    quarter of the mean weight: π ∝ max(|W_d|, mean |W|/4), capped at 1, in a systematic draw of fixed size. W_d is the
    sum over queries of the weights of its ranks, over their number; of several figures, and of the orders of tied
    documents, the largest counts.

    Args:
        runs: One run, a list of run files, or runs by name, as :func:`evenrank.audit` takes them.
        collection: The documents' texts, for those who label.
        n: How many documents, or pairs, to draw.
        measures: The measures whose figures are wanted, which decide what is drawn. Of groups, sums over ranks (ARaB,
            RaB, Share, FaiRR): documents, to be given a group. Of effectiveness, P, RBP and SDCG: pairs of query and
            document, to be given a grade.
        baseline: A run whose difference from each of the others is wanted, rather than every run's own figure.
        depth: Documents down to this rank may be drawn as well, with the smallest probability, so that the labels hold
            for other orders of them: what rebalances or re-ranks a run, or an evaluator in training.
        queries: The texts of the queries to look at; by default all.
        seed: Seed of what is drawn.

    Returns:
        The sample; see :class:`LabelSample`.

    Raises:
        EvenrankError: For a measure that is no sum over ranks, fewer than 1 document, and runs that cannot be used.
    """
    named = name_runs(runs, "score")
    loaded = load_runs(named, "score")
    if queries is not None:
        ids = as_queries(queries)["query_id"]
        without = next((run for run in loaded if not run.queries.is_in(ids.implode()).any()), None)
        if without is not None:
            raise EvenrankError(f"{arg.queries}: {without.described} has none of them")
        loaded = [only_queries(run, ids) for run in loaded]
    names = [run.name for run in loaded]
    if baseline is not None and (baseline not in names or len(names) < 2):
        raise EvenrankError(
            f"{arg.baseline}: expected one of several runs, found {baseline} (there is {', '.join(names)})"
        )
    wanted = parse_measures(measures)
    pairs = not is_bias(wanted[0])
    if any(is_bias(measure) == pairs for measure in wanted):
        raise EvenrankError(f"{arg.measures}: expected measures of groups, or of effectiveness: draw a sample for each")
    if pairs:
        loaded = [as_pairs(run) for run in loaded]
    could, figures = weights_of(loaded, wanted, baseline, depth or 0)
    if n > len(could):
        raise EvenrankError(f"{arg.n}: these figures look at {counted(len(could), 'document')}, found {n}")
    chance = probabilities(largest_weights(figures), n)
    places = systematic(chance, n, seed)
    table = pl.DataFrame({"doc_id": could.gather(places), PROBABILITY: chance[places]})
    if pairs:
        table = split_pairs(table)
    if collection is not None:
        texts = pl.concat(list(select_texts(as_collection(collection), [table["doc_id"]])))
        table = table.join(texts.select("doc_id", "text"), on="doc_id", how="left", maintain_order="left")
        lacking = table["text"].null_count()
        if lacking:
            raise EvenrankError(f"the collection lacks the texts of {lacking} of the {n} documents drawn")
        flat = pl.col("text").str.replace_all(r"\s+", " ").str.strip_chars()
        table = table.with_columns(flat)
    if pairs and queries is not None:
        query_texts = as_queries(queries).select("query_id", pl.col("text").alias("query"))
        table = table.join(query_texts, on="query_id", how="left", maintain_order="left")
    table = table.select(name for name in (*_IN_FILE, PROBABILITY) if name in table.columns)
    expected = tuple(_expected(figures, count, baseline) for count in sorted({*_SIZES, n}) if count <= len(could))
    return LabelSample(tuple(map(str, wanted)), tuple(names), baseline, table, could, expected, n)


@dataclass(frozen=True, slots=True)
class FigureWeights:
    """The weights [D] of documents in a run's figure, or in its difference from the baseline's.

    ``tied``: in the expectation over the orders of tied documents; ``variance``: the largest that values can have.
    """

    run: str
    measure: str
    tied: bool
    variance: float
    weights: Array


def weights_of(
    runs: Sequence[Run], measures: Sequence[Measure], baseline: str | None, depth: int = 0
) -> tuple[pl.Series, list[FigureWeights]]:
    """The documents [D] that figures look at, or that are not below a ``depth``, and their weights in each figure.

    Also in their expectations over the orders of tied documents.
    """
    could = pl.concat([run.table["doc_id"] for run in runs]).unique(maintain_order=True)
    place = {document: number for number, document in enumerate(could)}
    figures = []
    for run in runs:
        evaluation = Evaluation(run)
        of_place = np.array([place[document] for document in evaluation.ranked_ids], np.int64)
        for measure in measures:
            how = linear_form(measure)
            if how is None:
                raise not_estimable(measure)
            for tied in (False, True):
                _, weight = how.place_weights(evaluation, np.arange(len(of_place)), tied=tied)
                weights = np.bincount(of_place, weight, len(could)) / len(evaluation.queries)
                figures.append(FigureWeights(run.name, str(measure), tied, 1.0 if how.signed else 0.25, weights))
    looked_at = np.any([figure.weights > 0 for figure in figures], axis=0)
    for run in runs:
        above = run.table.filter(pl.col("rank") <= depth)["doc_id"].unique()
        looked_at[[place[document] for document in above]] = True
    if baseline is not None:
        base = {(figure.measure, figure.tied): figure.weights for figure in figures if figure.run == baseline}
        others = (figure for figure in figures if figure.run != baseline)
        figures = [replace(figure, weights=figure.weights - base[figure.measure, figure.tied]) for figure in others]
    return could.filter(pl.Series(looked_at)), [replace(f, weights=f.weights[looked_at]) for f in figures]


def largest_weights(figures: Sequence[FigureWeights]) -> Array:
    """Each document's largest weight [D] in any figure."""
    largest: Array = np.max(np.abs([figure.weights for figure in figures]), axis=0)
    return largest


def probabilities(weights: Array, n: int) -> Array:
    """Inclusion probabilities [D] that sum to ``n``, proportional to max(weight, mean weight/4), at most 1.

    >>> probabilities(np.array([8.0, 1.0, 1.0, 0.0]), 2).round(3).tolist()
    [1.0, 0.381, 0.381, 0.238]
    """
    weights = weights / weights.max() if weights.any() else np.ones(len(weights))
    size = np.maximum(weights, weights.mean() / _FLOOR)
    chance = np.zeros(len(size))
    certain = np.zeros(len(size), bool)
    while True:
        left = n - int(certain.sum())
        chance[certain] = 1.0
        chance[~certain] = left * size[~certain] / size[~certain].sum() if (~certain).any() else 0.0
        over = ~certain & (chance >= 1)
        if not over.any():
            return chance
        certain |= over


def systematic(chance: Array, n: int, seed: int) -> Array:
    """The places [n] of a systematic draw with these probabilities [D], which sum to ``n``, in random order."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(chance))
    ends = np.cumsum(chance[order])
    # Whatever rounding leaves, the last one ends at n.
    ends *= n / ends[-1]
    places = order[np.searchsorted(ends, np.arange(n) + rng.random(), side="right").clip(max=len(order) - 1)]
    return rng.permutation(places)


def _expected(figures: Sequence[FigureWeights], n: int, baseline: str | None) -> Expected:
    """The widest intervals to expect of ``n`` labels, where values are as far apart as they can be."""
    chance = probabilities(largest_weights(figures), n)
    own = [expected_half_width(figure.weights, chance, figure.variance) for figure in figures]
    between = [
        expected_half_width(figure.weights - other.weights, chance, figure.variance)
        for figure, other in itertools.combinations(figures, 2)
        if baseline is None and figure.measure == other.measure and figure.tied == other.tied
    ]
    return Expected(n, max(own), max(between) if between else None)
