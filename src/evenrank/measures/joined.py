"""A run joined with the group table, the judgements and the background: everything that measures are computed from."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal, Self

import numpy as np
import polars as pl

from evenrank.files.convert import first_of
from evenrank.files.errors import EvenrankError, arg, quoted
from evenrank.files.json_values import LEFT_OUT
from evenrank.files.runs import Run
from evenrank.files.tables import IdIndex, pick
from evenrank.files.types import Array
from evenrank.files.wording import are, counted
from evenrank.groups.table import GroupTable, Magnitude, sides
from evenrank.stats.sampling import Estimates

from .ranked_lists import (
    Column,
    Hits,
    Picked,
    RankedLists,
    TableRows,
    Wins,
    expand,
    find_rows,
    hits_of,
    lists_of,
    moved_rows,
    pairwise_wins,
)
from .targets import Target, TargetKind, chosen_target

OfMissing = Literal["error", "skip", "neutral"]
Missing = OfMissing | Literal["bounds"]
"""What to do about documents that the group table lacks. Of labels only: "bounds"."""
MISSING_LIMIT = 0.1
"""The largest share of documents without text that an audit tolerates by default."""


@dataclass(frozen=True, slots=True)
class Lacking:
    """The documents that the group table lacks, over the ranks where their share is largest.

    ``documents`` of the ``total`` in the first ``depth`` ranks of all queries together (None: in the whole lists) are
    missing; ``first``: their first ids, no more than six; ``queries``: how many queries have no known document at all.
    """

    also: ClassVar = ("share",)
    documents: int
    total: int
    depth: int | None
    queries: int
    first: tuple[str, ...] = field(metadata=LEFT_OUT)

    @property
    def share(self) -> float:
        """Their share, from 0 to 1."""
        return self.documents / self.total

    @property
    def place(self) -> str:
        """Where they are, in words: ``in the first 10 ranks``."""
        if self.depth is None:
            return "in all lists"
        return f"in the first {self.depth} ranks" if self.depth > 1 else "at the first rank"


def find_lacking(doc_ids: pl.Series, lists: RankedLists, lost: Array, depths: Iterable[int]) -> Lacking | None:
    """The ``lost`` [N] ones of the documents ``doc_ids`` [N], over the ranks where their share is largest.

    Compares the first ranks down to each of ``depths`` and the whole lists: a first page without texts is no better for
    a well-known tail. Returns None if no document is lost.
    """
    if not lost.any():
        return None
    counts = []
    for depth in [None, *sorted(set(depths))]:
        if depth is None:
            places = np.arange(len(lost))
        else:
            places, _ = expand(lists.offsets[:-1], np.minimum(lists.lengths, depth))
        counts.append((int(lost[places].sum()), len(places), depth, places))
    count, total, depth, places = max(counts, key=lambda one: one[0] / one[1])
    known = np.add.reduceat(~lost, lists.offsets[:-1], dtype=np.int64)
    first = doc_ids.gather(places[lost[places]]).unique(maintain_order=True)[:6]
    return Lacking(count, total, depth, int((known == 0).sum()), tuple(first))


def refuse_all(run: Run, lost: Array, source: str) -> EvenrankError:
    """The error for documents of a run, ``lost`` [N], that ``source`` lacks although none may be missing."""
    absent = run.table["doc_id"].filter(pl.Series(lost)).unique(maintain_order=True)
    total = run.table["doc_id"].n_unique()
    lost_of = f"{len(absent)} of its {total} documents are not in"
    if len(absent) == total:
        lost_of = f"none of its {total} documents is in" if total > 1 else "its only document is not in"
    return EvenrankError(
        f"{run.described}: {lost_of} {source}: {first_of(absent)} ({arg('missing', 'skip')} or"
        f" {arg('missing', 'neutral')} continues)"
    )


def refuse_unlabelled(run: Run, labels: GroupTable) -> EvenrankError:
    """The error for labels that know none of a run's documents, with the first ids of each side."""
    own, theirs = run.table["doc_id"].unique(maintain_order=True), labels.table["doc_id"]
    return EvenrankError(
        f"{run.described}: none of its {counted(len(own), 'document')} is in {labels.source}: the run has"
        f" {first_of(own)}; the labels have {first_of(theirs)}"
    )


def refuse_share(run: Run, lacking: Lacking, source: str, missing: Missing, limit: float) -> EvenrankError:
    """The error for a share of missing documents above ``limit``."""
    lost = f"{lacking.documents:,} of {counted(lacking.total, 'document')} {lacking.place}"
    return EvenrankError(
        f"{run.described}: {lost} ({_percent(lacking.share)}) {are(lacking.documents)} not in"
        f" {source}: {first_of(lacking.first)} ({arg('missing', missing)} tolerates {_percent(limit)};"
        f" {arg.missing_limit} sets that share)"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


BACKGROUND_DEPTH = 200
_KEPT_DEPTH = 100


@dataclass(frozen=True)
class Background:
    """The documents that NFaiRR is normalised by: the first ``depth`` of a run for each query.

    ``neutrality`` [Q, depth]: their neutrality; ``documents`` [Q, depth]: their rows in the group table, −1 for none;
    ``lengths`` [Q]: how many there are.
    """

    name: str
    queries: pl.Series
    neutrality: Array
    documents: Array
    lengths: Array
    run: Run
    depth: int
    skipped: bool = False
    """Whether documents of the run that the group table lacks are left out."""

    @property
    def lacks_labels(self) -> bool:
        """Whether the group table lacks one of the documents."""
        if self.skipped:
            return True
        inside = np.arange(self.documents.shape[1]) < self.lengths[:, None]
        return bool((self.documents[inside] < 0).any())

    @property
    def all_neutral(self) -> bool:
        """Whether every document counts as neutral: then NFaiRR is 1 in any order of them."""
        documents = np.arange(self.neutrality.shape[1]) < self.lengths[:, None]
        return bool((self.neutrality[documents] >= 1).all())

    @property
    def table(self) -> pl.DataFrame:
        """The background documents: ``query_id`` and ``doc_id``."""
        return self.run.table.filter(pl.col("rank") <= self.depth).select("query_id", "doc_id")

    def rows(self, queries: pl.Series) -> Array:
        """The row of each of ``queries``. Raises EvenrankError, which names the first that the background lacks."""
        same = queries.equals(self.queries)
        rows = np.arange(len(queries)) if same else IdIndex([self.queries]).places(queries)
        if (rows < 0).any():
            lacking = queries.gather(np.flatnonzero(rows < 0))
            raise EvenrankError(
                f"{self.run.described}, the background, has no documents for the query {quoted(lacking[0])}"
                f" ({len(lacking)} of {len(queries)} queries are missing): give a {arg.background} that has all of them"
            )
        return rows

    def most_neutral(self, depth: int) -> Array:
        """The ``depth`` largest neutralities of each query in falling order [Q, ≥ min(depth, D)]; −1 past the end."""
        return self._most_neutral if depth <= _KEPT_DEPTH else ideal_order(self.neutrality, self.lengths, depth)

    @functools.cached_property
    def _most_neutral(self) -> Array:
        # Sorted once for all the usual cutoffs.
        return ideal_order(self.neutrality, self.lengths, _KEPT_DEPTH)


def ideal_order(background: Array, lengths: Array, depth: int) -> Array:
    """The ``depth`` largest of the neutralities [Q, D] of each list, falling [Q, ≤ depth]; −1 past its end.

    ``lengths`` [Q]: how many of the D columns are documents.
    """
    depth = min(depth, background.shape[1])
    place = np.arange(background.shape[1])
    # Places without a document come last: no neutrality is below 0.
    falling = np.where(place < lengths[:, None], np.negative(background, dtype=np.float64), 1.0)
    if depth < len(place):
        falling.partition(depth, axis=1)
    return -np.sort(falling[:, :depth], axis=1)


TIE_DRAWS = 200
"""Random orders of tied documents that are drawn where there is no closed form."""


class JoinedRun:
    """A run with the group table of its documents, its judgements and a background; shared work is cached.

    Q queries (``queries``), N documents in all; J judged queries (``judged``). With ``missing="skip"`` bias measures
    see only the N' documents that the group table knows (``scored_lists``). ``target``: the shares of exposure that the
    groups should have, if not equal ones.
    """

    def __init__(
        self,
        run: Run,
        group_table: GroupTable | None = None,
        qrels: pl.DataFrame | None = None,
        *,
        missing: Missing = "error",
        background: Background | None = None,
        target: Target | None = None,
        seed: int = 0,
    ) -> None:
        self.run = run
        self.group_table = group_table
        self.qrels = qrels
        # Labels that were drawn stand for all documents.
        self.missing: Missing = missing if group_table is None or group_table.sample is None else "bounds"
        self.background = background
        self.target = target
        self.seed = seed
        self._target_shares: dict[TargetKind, tuple[Target, Background | None, Array]] = {}
        self._columns: dict[Hashable, Column] = {}
        # What measures estimate of the documents that could have been drawn for labelling.
        self.estimates: dict[Hashable, Estimates] = {}
        # The same with pairs as documents, where judgements were drawn.
        self.drawn_pairs: JoinedRun | None = None
        self._wins: dict[int, tuple[Wins, Array]] = {}
        # What was drawn over the orders of tied documents, by measure.
        self.over_orders: dict[Hashable, tuple[Array, Array, Array]] = {}
        # The row of the run's table at each place of the lists; None if they are the same.
        self.rows: Array | None = None
        # The queries [Q] of a reference ranking without a known document: their order, and so utility, is undefined.
        self.undecided: Array | None = None
        # Whose candidates these are in another order.
        self._of: JoinedRun | None = None
        # The same candidates by falling grade, once they were asked for.
        self.by_relevance: JoinedRun | None = None

    @functools.cached_property
    def lists(self) -> RankedLists:
        """The lists of all documents [N]."""
        return lists_of(self.run)

    @functools.cached_property
    def queries(self) -> pl.Series:
        """The ids [Q] of the queries."""
        return self.run.table["query_id"].gather(self.lists.offsets[:-1])

    def in_order(self, order: Array, scores: Array) -> Self:
        """The same candidates in another ``order`` [N] of their places, with other ``scores`` [N], falling."""
        other = type(self)(self.run, self.group_table, self.qrels, missing=self.missing, seed=self.seed)
        other.background, other.target = self.background, self.target
        other.rows = order
        other.lists, other.queries = RankedLists(self.lists.offsets, scores), self.queries
        if self.group_table is not None:
            other._of = self
        if self.qrels is not None:
            other.graded_rows = moved_rows(self.graded_rows, order)
        if self.drawn_pairs is not None:
            other.drawn_pairs = self.drawn_pairs.in_order(order, scores)
        return other

    def orders(self, *, random: bool = False) -> Iterator[Self]:
        """The run in 200 random orders of tied documents (``random``: of all candidates); as it is where none are."""
        lists = self.lists.all_tied() if random else self.lists
        if not lists.tied:
            yield self
            return
        rng, falling = np.random.default_rng(self.seed), np.negative(lists.places(), dtype=np.float64)
        for _ in range(TIE_DRAWS):
            yield self.in_order(lists.shuffled(rng), falling)

    def own_ranks(self, depth: int) -> Array:
        """The rank in the run of each of the first ``depth`` documents of each list."""
        places, _ = expand(self.lists.offsets[:-1], np.minimum(self.lists.lengths, depth))
        ranks: Array = self.run.table["rank"].to_numpy()[places if self.rows is None else self.rows[places]]
        return ranks

    def first(self, depth: int) -> pl.DataFrame:
        """The first ``depth`` documents of each list: ``query_id``, ``doc_id``, ``score``, ``rank`` and ``tied``."""
        places, query = expand(self.lists.offsets[:-1], np.minimum(self.lists.lengths, depth))
        rows = places if self.rows is None else self.rows[places]
        table = pick(self.run.table, rows)
        return table.with_columns(
            pl.Series("rank", places - self.lists.offsets[query] + 1, dtype=pl.UInt32),
            pl.Series("score", self.lists.scores[places].astype(np.float64)),
            pl.Series("tied", self.lists.tie_of(places)[1] > 1),
        )

    # --- documents ---------------------------------------------------------------------------------------------------

    @property
    def required_table(self) -> GroupTable:
        """The group table. Raises EvenrankError if there is none."""
        if self.group_table is None:
            raise EvenrankError(f"bias measures need a group table: give {arg.collection} or {arg.scores}")
        return self.group_table

    @functools.cached_property
    def document(self) -> Array:
        """The row [N] of each document in the group table, −1 if it has none."""
        if self._of is not None and self.rows is not None:
            document: Array = self._of.document[self.rows]
            return document
        return self.rows_of(self.run.table["doc_id"])

    def rows_of(self, documents: pl.Series) -> Array:
        """The row in the group table of each of ``documents``, −1 if it has none."""
        return IdIndex([self.required_table.table["doc_id"]]).places(documents)

    @functools.cached_property
    def kept(self) -> Array | None:
        """The places [N'] that bias measures look at: with ``missing="skip"`` the known documents; None means all."""
        if self.group_table is None or (self._of is not None and self._of.kept is None):
            return None
        if self.missing not in ("error", "skip") or int(self.document.min(initial=0)) >= 0:
            return None
        if self.missing == "error":
            raise refuse_all(self.run, self.document < 0, self.group_table.source)
        return np.flatnonzero(self.document >= 0)

    @property
    def ranked_ids(self) -> pl.Series:
        """The document ids [N] in the order of the lists."""
        ids = self.run.table["doc_id"]
        return ids if self.rows is None else ids.gather(self.rows)

    @functools.cached_property
    def scored_lists(self) -> RankedLists:
        """The lists that bias measures look at; lists close up over documents left out."""
        if self.kept is None:
            return self.lists
        return RankedLists(np.searchsorted(self.kept, self.lists.offsets), self.lists.scores[self.kept])

    @property
    def scored_documents(self) -> Array:
        """The row [N'] in the group table of each document that bias measures look at, −1 if it has none."""
        documents: Array = self.document if self.kept is None else self.document[self.kept]
        return documents

    @functools.cached_property
    def scored_rows(self) -> TableRows:
        """:attr:`scored_documents`, as the columns of their values share them."""
        height = self.required_table.table.height
        if self._of is not None and self.rows is not None and self.kept is None:
            # Few of another order's documents are looked at.
            return TableRows(Picked(self._of.document, self.rows), height)
        return TableRows(self.scored_documents, height)

    def column(
        self, key: Hashable, values: Callable[[Array], Array], missing: float, rows: TableRows | None = None
    ) -> Column:
        """A value [N'] of the documents, computed only where a measure looks and shared under ``key``.

        ``values``: from rows of the group table (or of what ``rows`` are of) to their values; ``missing``: the value of
        an unknown document.
        """
        if key not in self._columns:
            self._columns[key] = Column(values, self.scored_rows if rows is None else rows, missing)
        return self._columns[key]

    def without_guess(self) -> Self | None:
        """The same run with the labels that were drawn alone; None where there is no guess beside them."""
        table = self.group_table
        if table is None or table.sample is None or table.sample.guess is None:
            return None
        table = replace(table, sample=replace(table.sample, guess=None, guessed=None))
        return type(self)(self.run, table, self.qrels, missing=self.missing, seed=self.seed)

    @functools.cached_property
    def could_be_drawn(self) -> TableRows:
        """The place [N] of each document among those that could have been drawn for labelling, −1 of the others."""
        if self._of is not None and self.rows is not None:
            table_rows = self._of.could_be_drawn
            return TableRows(table_rows.rows[self.rows], table_rows.height)
        sample = self.required_table.sample
        assert sample is not None
        return TableRows(IdIndex([sample.documents]).places(self.run.table["doc_id"]), len(sample.documents))

    @property
    def neutrality(self) -> Column:
        """Neutrality [N'] of the documents; 1 for an unknown one."""
        values = self.required_table.table["neutrality"].to_numpy()
        return self.column("neutrality", lambda rows: values[rows], 1.0)

    def magnitude(self, kind: Magnitude | None = None, poles: tuple[str, str] | None = None) -> Column:
        """Signed magnitude [N'] of the documents, of the table's usual ``kind`` if none is asked for; 0 if unknown."""
        table = self.required_table
        kind = kind or table.usual_kind
        return self.column((kind, poles), lambda rows: table.signed_magnitude(kind, poles, rows), 0.0)

    def weight(self, group: str) -> Column:
        """Weight [N'] of a group in the documents, from 0 to 1; 0 for an unknown one."""
        table = self.required_table
        return self.column(("weight", group), lambda rows: table.weight(group, rows), 0.0)

    def sides(self, rows: Array, kind: Magnitude, poles: tuple[str, str] | None) -> Array:
        """Sides (+1, −1, 0) of documents given by their places [H] in the lists; 0 for an unknown one."""
        table = self.required_table
        documents = TableRows(self.document, table.table.height)
        column = Column(lambda known: table.signed_magnitude(kind, poles, known), documents, 0.0)
        return sides(column[rows])

    def as_background(self, name: str, depth: int = BACKGROUND_DEPTH) -> Background:
        """The background of this run's first ``depth`` documents for each query."""
        lists = self.scored_lists
        deepest = min(depth, int(lists.lengths.max(initial=1)))
        top = self.neutrality.first(lists, deepest)
        documents = self.scored_rows.first(lists, deepest)
        lengths = np.minimum(lists.lengths, deepest)
        return Background(name, self.queries, top, documents, lengths, self.run, depth, self.kept is not None)

    def target_shares(self, kind: TargetKind | None = None) -> Array:
        """The share [Q, G] of exposure that each group should have in each query; NaN where it is undefined.

        ``kind``: of which target; by default :attr:`target`, or uniform without one.
        """
        target = chosen_target(self.target, kind)
        cached = self._target_shares.get(target.kind)
        if cached is None or cached[0] is not target or cached[1] is not self.background:
            cached = self._target_shares[target.kind] = target, self.background, target.shares_for(self)
        return cached[2]

    def appearances(self, cutoff: int, *, random: bool = False) -> Array:
        """How often each document [D] of the group table is in the first ``cutoff`` ranks of the scored lists."""
        lengths = self.scored_lists.lengths
        depth = max(1, min(cutoff, int(lengths.max(initial=1))))
        return self.spread((np.arange(depth) < lengths[:, None]).astype(np.float64), random=random)

    def spread(self, weights: Array, *, random: bool) -> Array:
        """For each document [D] of the group table, the sum of the ``weights`` [Q, k] of the ranks that it has.

        ``random``: the expectation of that sum over random orders of the same candidates.
        """
        lists, documents = self.scored_lists, self.scored_documents
        if random:
            # Every document of a list has each rank equally often.
            of_row = np.repeat(weights.sum(axis=1) / np.maximum(lists.lengths, 1), lists.lengths)
        else:
            places, query = expand(lists.offsets[:-1], np.minimum(lists.lengths, weights.shape[1]))
            documents, of_row = documents[places], weights[query, places - lists.offsets[query]]
        known = documents >= 0
        return np.bincount(documents[known], of_row[known], minlength=self.required_table.table.height)

    # --- judgements --------------------------------------------------------------------------------------------------

    @functools.cached_property
    def judged(self) -> pl.Series:
        """The judged queries [J], those of the run first and in its order."""
        judged = self.judgements["query_id"].unique(maintain_order=True)
        in_run = self.queries.filter(self.queries.is_in(judged.implode()))
        rest = judged.filter(~judged.is_in(self.queries.implode()))
        return pl.concat([in_run, rest]).alias("query_id")

    @property
    def judgements(self) -> pl.DataFrame:
        """``query_id``, ``doc_id`` and ``relevance``. Raises EvenrankError if there are none."""
        if self.qrels is None:
            raise EvenrankError(f"utility and pairwise measures need {arg.qrels}")
        return self.qrels

    @functools.cached_property
    def hits(self) -> Hits:
        """The graded documents of the judged queries' lists."""
        return hits_of(self.lists, self.judged, self.judgements, self.graded_rows)

    @property
    def all_tied_hits(self) -> Hits:
        """:attr:`hits` with all candidates tied: a random order is one order of this tie."""
        place = IdIndex([self.queries]).places(self.judged)
        length = np.where(place >= 0, self.lists.lengths[place], 0)
        hits = self.hits
        return replace(hits, before=np.zeros_like(hits.before), size=length[hits.query])

    @functools.cached_property
    def graded_rows(self) -> pl.DataFrame:
        """The places (``row``) of documents with a positive grade."""
        graded = self.judgements.filter(pl.col("relevance") > 0)
        if not graded.height:
            return graded.with_columns(pl.lit(0, dtype=pl.UInt32).alias("row"))
        table = self.group_table
        # Each document is looked up once, however many lists it is in.
        again = table is not None and table.table.height < self.run.table.height and self.document.min() >= 0
        known = (table.table["doc_id"], self.document) if table is not None and again else None
        return find_rows(self.run.table, graded, known)

    def wins(self, relevance: int = 1) -> tuple[Wins, Array]:
        """The wins of the clicked documents, those graded ``relevance`` or more, and their places [H] in the lists."""
        if relevance not in self._wins:
            clicked = self.graded_rows.filter(pl.col("relevance") >= relevance)["row"].cast(pl.Int64).to_numpy()
            self._wins[relevance] = pairwise_wins(self.lists, clicked), clicked
        return self._wins[relevance]
