"""The first documents of a run as lists with their groups, and how far they move in another order."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from evenrank.files import Provenance
from evenrank.files.convert import is_path
from evenrank.files.errors import EvenrankError, arg
from evenrank.files.json_values import LEFT_OUT, named
from evenrank.files.runs import Run
from evenrank.files.tables import IdIndex
from evenrank.files.types import Array
from evenrank.files.wording import counted, percent
from evenrank.groups import GroupSource, GroupTable
from evenrank.groups.table import NO_GROUP, largest_groups
from evenrank.measures import JoinedRun, OfMissing, RankedLists, Target, as_target
from evenrank.measures.joined import refuse_all
from evenrank.measures.ranked_lists import expand
from evenrank.mitigation.reorderings import GroupedLists

DEPTH, SHOWN = 100, 10


@dataclass(frozen=True, slots=True)
class Changes:
    """How far documents moved: sums over the queries of a run, or of a part of it.

    Attributes:
        queries: Number of queries.
        kept: Mean share of the first 10 documents that are still among the first 10.
        changed: Queries in which a document moved; ``first``: those with another document at rank 1.
        documents: Documents that could move; ``moved``: that did, ``entered``: into the first ranks; ``distance``: by
            how many ranks, on average.
        total, lacking, tied: As in :class:`RunLists`, of all queries, even if only some are looked at.
    """

    queries: int
    kept: float = field(metadata=named("kept_of_first_10"))
    changed: int = field(metadata=named("queries_changed"))
    first: int = field(metadata=named("first_documents_changed"))
    documents: int
    moved: int = field(metadata=named("documents_moved"))
    entered: int = field(metadata=LEFT_OUT)
    distance: float = field(metadata=named("mean_ranks_moved"))
    total: int = field(metadata=named("rows"))
    lacking: int = field(metadata=named("unknown_rows"))
    tied: int = field(metadata=named("tied_rows"))

    def sentence(self) -> str:
        """The changes in words."""
        return (
            f"{percent(self.kept, 1)} of the first {SHOWN} documents are still among the first {SHOWN} (mean over"
            f" {counted(self.queries, 'query')}); {counted(self.first, 'query')}"
            f" {'has' if self.first == 1 else 'have'} a different first document, {self.changed:,} a different order;"
            f" {self.moved:,} of {counted(self.documents, 'document')} moved, by {self.distance:.1f} ranks on average."
        )


@dataclass(frozen=True, slots=True)
class RunLists:
    """The first documents of a run, ready for a :class:`Reordering`.

    Attributes:
        run: The run.
        lists: Its first documents, or the known ones of them [N].
        rows: The row of the run's table of each of these documents [N].
        total: How many documents are among the first ones; ``lacking``: of these, those that the group table lacks;
            ``tied``: those with the same score as a neighbour.
    """

    run: Run
    lists: GroupedLists
    rows: Array
    total: int
    lacking: int
    tied: int

    def reordered(self, order: Array) -> Run:
        """The run with its first documents in a new order: ``order`` [N] as a :class:`Reordering` returns it.

        Scores fall strictly: n, n − 1, …, 1 over the n documents of a query.
        """
        table = self.run.table
        documents = table["doc_id"]
        moved = np.flatnonzero(order != np.arange(len(order)))
        if len(moved):
            rows = np.arange(table.height)
            rows[self.rows[moved]] = self.rows[order[moved]]
            documents = documents.gather(rows)
        new_table = pl.DataFrame([table["query_id"], documents, _falling_scores(table), table["rank"]])
        return replace(self.run, table=new_table, notes=(), source=None, card=None)

    def cut(self, depth: int) -> RunLists:
        """The same lists of the run's first ``depth`` documents of each query, which must include theirs."""
        mask = self.run.table["rank"].to_numpy() <= depth
        run = replace(self.run, table=self.run.table.filter(pl.Series(mask)))
        return replace(self, run=run, rows=np.cumsum(mask)[self.rows] - 1)

    def changes(self, order: Array, among: Array | None = None, top: int = SHOWN) -> Changes:
        """How far documents moved in an ``order`` [N]; ``among`` [Q]: only in these queries; ``top``: first ranks."""
        rank = self.run.table["rank"].to_numpy().astype(np.int64)
        new, old = rank[self.rows], rank[self.rows[order]]
        queries = np.repeat(np.arange(len(self.lists.lengths)), self.lists.lengths)
        lengths = np.diff(_starts(self.run.table))
        counts = np.ones(len(lengths), dtype=bool) if among is None else among
        lost = np.bincount(queries[(old <= SHOWN) & (new > SHOWN)], minlength=len(lengths))
        moved = (new != old) & counts[queries]
        return Changes(
            queries=int(counts.sum()),
            kept=float((1 - lost / np.minimum(lengths, SHOWN))[counts].sum()) / max(int(counts.sum()), 1),
            changed=len(np.unique(queries[moved])),
            first=int((moved & (new == 1)).sum()),
            documents=int(counts[queries].sum()),
            moved=int(moved.sum()),
            entered=int((moved & (old > top) & (new <= top)).sum()),
            distance=float(np.abs(new - old)[moved].sum()) / max(int(moved.sum()), 1),
            total=self.total,
            lacking=self.lacking,
            tied=self.tied,
        )


@dataclass(frozen=True)
class Grouping:
    """What is known of the documents of runs, and how their lists are made.

    ``table``: the documents' groups; ``depth``: how many documents of each query are put into a new order; ``target``:
    the groups' shares of the documents that have a group, by default the ones of the lexicon; ``missing``: what happens
    to documents that ``table`` lacks. ``drawn``: labels that were drawn, which figures are estimated from, where
    ``table`` is a guess.
    """

    table: GroupTable
    depth: int = DEPTH
    target: Target | None = None
    missing: OfMissing = "error"
    drawn: GroupTable | None = None

    def __post_init__(self) -> None:
        if self.target is not None and self.target.kind == "relevant":
            raise EvenrankError(
                f"{arg.target}: expected uniform, candidates or a file: which documents are relevant is not"
                " known where a"
                " run is put into another order"
            )

    @functools.cached_property
    def _index(self) -> IdIndex:
        return IdIndex([self.table.table["doc_id"]])

    def lists(self, run: Run) -> RunLists:
        """The first documents of a run. Raises EvenrankError for documents that must not be missing."""
        table = run.table
        starts = _starts(table)
        ranked = RankedLists(starts, table["score"].to_numpy())
        rows, query = expand(starts[:-1], np.minimum(ranked.lengths, self.depth))
        document = self._index.places(table["doc_id"].gather(rows))
        lost = document < 0
        lacking = int(lost.sum())
        if lacking and self.missing == "error":
            first = replace(run, table=table[rows])
            raise refuse_all(first, lost, self.table.source)
        total, tied = len(rows), int(ranked.ties_within(self.depth)[2].sum())
        if lacking and self.missing == "skip":
            rows, query, document = rows[~lost], query[~lost], document[~lost]
        offsets = np.searchsorted(query, np.arange(len(starts)))
        scores = _scaled(ranked, rows, query)
        signed, neutrality, group = self._of_documents(document)
        targets = self._targets(run, query, group, len(starts) - 1)
        lists = GroupedLists(offsets, scores, signed, neutrality, group, self.table.groups, targets)
        return RunLists(run, lists, rows, total, lacking, tied)

    def _of_documents(self, document: Array) -> tuple[Array, Array, Array]:
        """Signed magnitude, neutrality and group [N] of documents given by their rows; 0, 1 and −1 where it is −1."""
        table, known = self.table, document >= 0
        rows = document[known]
        signed, neutrality = np.zeros(len(document)), np.ones(len(document))
        if table.poles is not None:
            signed[known] = table.signed_magnitude(table.usual_kind, rows=rows)
        neutrality[known] = table.table["neutrality"].to_numpy()[rows]
        group = np.full(len(document), NO_GROUP)
        group[known] = largest_groups(table, rows)
        return signed, neutrality, group

    def _targets(self, run: Run, query: Array, group: Array, queries: int) -> Array:
        """The share of each group, and last of none, in each list [Q, G + 1]."""
        groups = len(self.table.groups)
        number = np.bincount(query, minlength=queries)
        counts = np.bincount(query * (groups + 1) + group % (groups + 1), minlength=queries * (groups + 1))
        shares = counts.reshape(queries, groups + 1) / np.maximum(number, 1)[:, None]
        grouped = shares[:, :groups].sum(axis=1)
        if self.target is None:
            shares[:, :groups] = grouped[:, None] * np.array(self.table.shares) / sum(self.table.shares)
        elif self.target.kind != "candidates":
            shares[:, :groups] = grouped[:, None] * self.target.shares_for(JoinedRun(run, self.table))
        shares[:, groups] = 1 - grouped
        return shares


def untied(run: Run) -> Run:
    """The run in the order that methods start from, with scores that fall strictly; the run itself if they do.

    Pairwise measures count ties as wins, so that figures of a run with ties and of its new order would differ where no
    document moved.
    """
    table = run.table
    score = table["score"].to_numpy()
    tied = (score[1:] == score[:-1]) & (table["rank"].to_numpy()[1:] > 1)
    return replace(run, table=table.with_columns(_falling_scores(table))) if tied.any() else run


def _falling_scores(table: pl.DataFrame) -> pl.Series:
    """The scores n, n − 1, …, 1 over the n documents of each query of a run's table."""
    length = np.diff(_starts(table))
    return pl.Series("score", np.repeat(length, length) + 1.0 - table["rank"].to_numpy())


def _starts(table: pl.DataFrame) -> Array:
    """Where the list of each query starts in a run's table, and the end [Q + 1]."""
    return np.append(np.flatnonzero(table["rank"].to_numpy() == 1), table.height)


def _scaled(ranked: RankedLists, rows: Array, query: Array) -> Array:
    """The scores of ``rows`` [N], scaled to 0 … 1 over the whole list of their query; 0.5 in a constant list."""
    # Scores fall within a list. Halved first, so that no difference of two finite scores is infinite.
    ends = ranked.offsets[1:] - 1
    high, low = ranked.scores[ranked.offsets[:-1]] / 2, ranked.scores[ends] / 2
    width = high - low
    scaled: Array = np.divide(
        ranked.scores[rows] / 2 - low[query], width[query], out=np.full(len(rows), 0.5), where=width[query] > 0
    )
    return scaled


@dataclass(frozen=True)
class ListGroups(GroupSource):
    """What says which groups documents are of, and what a fair list is.

    ``missing``: what happens to documents that it does not know: "error", "skip" (they keep their rank) or "neutral";
    by default an error for words, and ``skip`` for labels, which are seldom complete.
    """

    target: object = None
    missing: OfMissing | None = None
    takes_drawn: bool = True

    @property
    def may_skip(self) -> bool:
        """Whether documents that it does not know may be skipped; what labels a table has is seen when it is read."""
        return self.missing == "skip" or (self.missing is None and self.described)

    def note(self, provenance: Provenance) -> None:
        """Records the inputs, before they are read."""
        super().note(provenance)
        if is_path(self.target) and os.path.exists(self.target):
            provenance.add("target", self.target)

    def grouping(self, ids: Sequence[pl.Series], depth: int = DEPTH) -> Grouping:
        """What is known of the documents ``ids``. Raises EvenrankError for what cannot be used."""
        table = self.table(ids)
        drawn = None if table.sample is None else table
        table = table if drawn is None else drawn.guessed()
        target: Target | None = None if self.target is None else as_target(self.target, table.groups)
        return Grouping(table, depth, target, self.missing or ("skip" if table.labelled else "error"), drawn)
