"""One run, joined with what is known of its documents: every measure's value for each query, and what ties do to it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank._wording import are, counted
from evenrank.io.errors import EvenrankError, shown
from evenrank.io.runs import Run
from evenrank.io.scores import REST, Magnitude, Scores, bias_labels
from evenrank.io.tables import IdIndex, pick

from . import exposure, native, neutrality, pairwise, registry, utility
from .background import BACKGROUND_DEPTH, Background
from .column import Column
from .lists import Array, RankedLists, expand
from .passed_through import PassedThrough

Missing = Literal["error", "skip", "neutral"]
MISSING_LIMIT = 0.1
"""The largest share of documents without text that an audit puts up with, unless it is told otherwise."""
TIE_DRAWS = 200
_PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Lacking:
    """The documents without scores where a run lacks most of them.

    ``documents`` of the ``total`` in the first ``depth`` ranks of all queries together (None: in the whole lists) have
    none; ``first``: their first ids, no more than six; ``queries``: so many have no document with scores at all.
    """

    documents: int
    total: int
    depth: int | None
    queries: int
    first: tuple[str, ...]

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


class Evaluation:
    """A run with the scores of its documents, its judgements and a background.

    Values of a bias measure are over the run's queries (``queries`` [Q]), of a utility measure over the judged ones
    (``judged`` [J]): judged queries that the run lacks count 0. NaN is undefined.
    """

    def __init__(
        self,
        run: Run,
        scores: Scores | None = None,
        qrels: pl.DataFrame | None = None,
        *,
        missing: Missing = "error",
        background: Background | None = None,
        seed: int = 0,
    ) -> None:
        self.run = run
        self.scores = scores
        self.qrels = qrels
        self.missing = missing
        self.background = background
        self.seed = seed
        self._magnitudes: dict[tuple[Magnitude, str | None], Column] = {}
        self._wins: dict[int, tuple[pairwise.Wins, Array]] = {}
        self.queries = run.queries
        starts = np.flatnonzero(run.table["rank"].to_numpy() == 1)
        self.lists = RankedLists(np.append(starts, run.table.height), run.table["score"].to_numpy())
        # The row of the run's table that stands at each place of the lists; None where they are the same.
        self.rows: Array | None = None
        # The queries [Q] whose order is not known, and so no utility: a reference ranking's without a known document.
        self.undecided: Array | None = None

    def neutral_first(self) -> Evaluation:
        """The same candidates by falling neutrality, then in the run's own order: a reference ranking."""
        lists = self.lists
        # Neutralities as their rank among all, worked out once a document rather than once a row. The last code is
        # that of a document without scores: neutral, or behind all others where it is skipped.
        known = self._scores.table["neutrality"].to_numpy()
        _, code = np.unique(np.append(known, -1.0 if self._kept is not None else 1.0), return_inverse=True)
        order = lists.falling(code.astype(np.int32)[self.document])
        other = Evaluation(
            self.run, self.scores, self.qrels, missing=self.missing, background=self.background, seed=self.seed
        )
        other.rows = order
        other.lists = RankedLists(lists.offsets, -lists.places().astype(np.float64))
        other.document = self.document[order]
        other.undecided = self.scored_lists.lengths == 0
        if self.qrels is not None:
            place_of_row = np.full(self.run.table.height, -1, dtype=np.int32)
            place_of_row[other.rows] = np.arange(len(order), dtype=np.int32)
            graded = self._graded_rows.with_columns(pl.Series("row", place_of_row[self._graded_rows["row"].to_numpy()]))
            other._graded_rows = graded.filter(pl.col("row") >= 0).sort("row")
        return other

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
            pl.Series("score", self.lists.scores[places]),
            pl.Series("tied", self.lists.tie_of(places)[1] > 1),
        )

    # --- what is known of the documents ------------------------------------------------------------------------------

    @functools.cached_property
    def document(self) -> Array:
        """The row [N] of each document in the score table, −1 where it has none."""
        return IdIndex([self._scores.table["doc_id"]]).places(self.run.table["doc_id"])

    @functools.cached_property
    def _kept(self) -> Array | None:
        """The documents [N'] that bias measures look at: all (None), or with ``missing="skip"`` those with scores."""
        if self.scores is None:
            return None
        lost = self.document < 0
        if self.missing == "error" and lost.any():
            absent = self.run.table["doc_id"].filter(pl.Series(lost)).unique(maintain_order=True)
            raise EvenrankError(
                f"{self.run.described}: {len(absent)} of its {self.run.table['doc_id'].n_unique()} documents are not in"
                f" {self._scores.source}: {', '.join(map(shown, absent[:5]))}{', …' if len(absent) > 5 else ''}"
                " (`missing='skip'` or `missing='neutral'` goes on)"
            )
        return np.flatnonzero(~lost) if self.missing == "skip" and lost.any() else None

    def lacking(self, measures: Sequence[Measure] = (), depths: Sequence[int] = ()) -> Lacking | None:
        """The documents without scores, where their share is largest; None where every document has scores.

        Looked at are the first ranks down to the cutoff of each bias measure and to ``depths``, and the whole lists: a
        first page without texts is none the better for a well-known tail.
        """
        if self.scores is None:
            return None
        lost = self.document < 0
        if not lost.any():
            return None
        cutoffs = {m.params["cutoff"] for m in measures if registry.is_bias(m) and "cutoff" in m.params}
        ids = self.run.table["doc_id"] if self.rows is None else self.run.table["doc_id"].gather(self.rows)
        found = []
        for depth in [None, *sorted({*cutoffs, *depths})]:
            if depth is None:
                places = np.arange(len(lost))
            else:
                places, _ = expand(self.lists.offsets[:-1], np.minimum(self.lists.lengths, depth))
            found.append((int(lost[places].sum()), len(places), depth, places))
        count, total, depth, places = max(found, key=lambda one: one[0] / one[1])
        known = np.add.reduceat(~lost, self.lists.offsets[:-1], dtype=np.int64)
        first = ids.gather(places[lost[places]]).unique(maintain_order=True)[:6]
        return Lacking(count, total, depth, int((known == 0).sum()), tuple(first))

    def check_missing(
        self, limit: float = MISSING_LIMIT, measures: Sequence[Measure] = (), depths: Sequence[int] = ()
    ) -> Lacking | None:
        """:meth:`lacking`; raises EvenrankError where their share is above ``limit``."""
        # Accessed for its error: with missing="error" no document may lack scores.
        _ = self._kept
        lacking = self.lacking(measures, depths)
        if lacking is None or lacking.share <= limit:
            return lacking
        lost = f"{lacking.documents:,} of {counted(lacking.total, 'document')} {lacking.place}"
        first = f"{', '.join(map(shown, lacking.first[:5]))}{', …' if len(lacking.first) > 5 else ''}"
        raise EvenrankError(
            f"{self.run.described}: {lost} ({_percent(lacking.share)}) {are(lacking.documents)} not in"
            f" {self._scores.source}: {first} (`missing='{self.missing}'` puts up with {_percent(limit)};"
            " `missing_limit` sets that share)"
        )

    @functools.cached_property
    def scored_lists(self) -> RankedLists:
        """The lists that bias measures look at; lists close up over documents left out."""
        if self._kept is None:
            return self.lists
        return RankedLists(np.searchsorted(self._kept, self.lists.offsets), self.lists.scores[self._kept])

    @functools.cached_property
    def neutrality(self) -> Column:
        """Neutrality [N'] of the kept documents; 1 for one without scores."""
        values = self._scores.table["neutrality"].to_numpy()
        return Column(lambda rows: values[rows], self._kept_documents, 1.0)

    def magnitude(self, kind: Magnitude, poles: str | None = None) -> Column:
        """Signed magnitude [N'] of the kept documents; 0 for one without scores."""
        if (kind, poles) not in self._magnitudes:
            pair = _pair(poles)
            column = Column(lambda rows: self._scores.signed_magnitude(kind, pair, rows), self._kept_documents, 0.0)
            self._magnitudes[kind, poles] = column
        return self._magnitudes[kind, poles]

    @property
    def _kept_documents(self) -> Array:
        kept: Array = self.document if self._kept is None else self.document[self._kept]
        return kept

    @property
    def _scores(self) -> Scores:
        if self.scores is None:
            raise EvenrankError("bias measures need a score table: give `collection` or `scores`")
        return self.scores

    def as_background(self, name: str, depth: int = BACKGROUND_DEPTH) -> Background:
        """The background that this run's first ``depth`` documents a query give."""
        lists = self.scored_lists
        deepest = min(depth, int(lists.lengths.max(initial=1)))
        top = self.neutrality.first(lists, deepest)
        return Background(name, self.queries, top, np.minimum(lists.lengths, deepest), self.run, depth)

    # --- what is known of the queries --------------------------------------------------------------------------------

    @functools.cached_property
    def judged(self) -> pl.Series:
        """The judged queries [J], those of the run first and in its order."""
        judged = self.judgements["query_id"].unique(maintain_order=True)
        in_run = self.queries.filter(self.queries.is_in(judged.implode()))
        rest = judged.filter(~judged.is_in(self.queries.implode()))
        return pl.concat([in_run, rest]).alias("query_id")

    @property
    def judgements(self) -> pl.DataFrame:
        """``query_id``, ``doc_id`` and ``relevance``. Raises EvenrankError where there are none."""
        if self.qrels is None:
            raise EvenrankError("utility and pairwise measures need `qrels`")
        return self.qrels

    @functools.cached_property
    def hits(self) -> utility.Hits:
        """The graded documents of the judged queries' lists."""
        graded = self.judgements.filter(pl.col("relevance") > 0)
        number = pl.DataFrame({"query_id": self.judged}).with_row_index("number")
        ideal = graded.join(number, on="query_id", how="inner")
        found = self._graded_rows.join(number, on="query_id", how="inner")
        return utility.find_hits(
            self.lists,
            found["row"].cast(pl.Int64).to_numpy(),
            found["number"].cast(pl.Int64).to_numpy(),
            found["relevance"].to_numpy(),
            ideal["number"].cast(pl.Int64).to_numpy(),
            ideal["relevance"].to_numpy(),
            len(self.judged),
        )

    @functools.cached_property
    def _graded_rows(self) -> pl.DataFrame:
        """The run's rows (``row``) with a positive grade."""
        graded = self.judgements.filter(pl.col("relevance") > 0)
        if not graded.height:
            return graded.with_columns(pl.lit(0, dtype=pl.UInt32).alias("row"))
        # Few documents are judged: the join need not see the others.
        perhaps = IdIndex([graded["doc_id"]]).among(self.run.table["doc_id"])
        rows = self.run.table.select("query_id", "doc_id").filter(perhaps)
        rows = rows.with_columns(perhaps.arg_true().alias("row"))
        return rows.join(graded, on=["query_id", "doc_id"], how="inner").sort("row")

    def wins(self, relevance: int = 1) -> tuple[pairwise.Wins, Array]:
        """How the clicked documents fare, and their rows [H] in the run."""
        if relevance not in self._wins:
            clicked = self._graded_rows.filter(pl.col("relevance") >= relevance)["row"].cast(pl.Int64).to_numpy()
            self._wins[relevance] = pairwise.pairwise_wins(self.lists, clicked), clicked
        return self._wins[relevance]

    def labels(self, rows: Array, kind: Magnitude, poles: tuple[str, str] | None) -> Array:
        """Bias labels (+1, −1, 0) of documents given by their rows [H] in the run; 0 for one without scores."""
        magnitude = Column(lambda rows: self._scores.signed_magnitude(kind, poles, rows), self.document, 0.0)
        return bias_labels(magnitude[rows])

    # --- values ------------------------------------------------------------------------------------------------------

    def axis(self, measure: Measure) -> pl.Series:
        """The queries that a measure's values belong to."""
        return self.queries if registry.is_bias(measure) else self.judged

    def values(self, measure: Measure) -> Array:
        """The measure for each query of its axis [Q] or [J]. For ΔA-PRF, the first pole's PRF minus the second's."""
        if _adds_up(measure):
            weights, scale, values = self._linear(measure)
            value = _sums(weights, values.first(self.scored_lists, weights.shape[1])) * scale
            if measure.NAME == "AbsARaB":
                value = np.abs(value)
            return value
        if measure.NAME == "APRF":
            return self.group_prf(measure, measure["group"])
        if measure.NAME in DELTA:
            first, second = self.poles_prf(measure)
            return first - second
        exact = native.in_run_order(measure)
        return self._decided(exact(self.hits) if exact else self._elsewhere.values(measure))

    def _decided(self, utility: Array) -> Array:
        """Values [J] of utility, NaN for the queries whose order is not known."""
        if self.undecided is None or not self.undecided.any():
            return utility
        unknown = self.queries.filter(pl.Series(self.undecided))
        return np.where(self.judged.is_in(unknown.implode()).to_numpy(), np.nan, utility)

    def _linear(self, measure: Measure) -> tuple[Array, Array, Column]:
        """Weights [Q or 1, k] of the ranks, a factor [Q], and the documents' values [N'], of a measure that adds up."""
        lengths = self.scored_lists.lengths
        # No list is longer than the longest, so no weight beyond it is needed; ARaB's do not change by the cut.
        depth = max(1, min(measure["cutoff"], int(lengths.max(initial=1))))
        defined = np.where(lengths > 0, 1.0, np.nan)
        # Where all lists reach the cutoff, their weights are the same.
        same = int(lengths.min(initial=depth)) >= depth
        weighed = lengths[:1] if same else lengths
        if isinstance(measure, registry.LinearMeasure):
            own = Column(lambda rows: measure.documents(self._scores, rows), self._kept_documents, measure.unknown)
            return measure.weights(weighed, depth), defined, own
        if measure.NAME in ("FaiRR", "NFaiRR"):
            weights = neutrality.discount_weights(weighed, depth)
            if measure.NAME == "NFaiRR":
                if self.background is None:
                    raise EvenrankError("NFaiRR needs a background run")
                defined = neutrality.nfairr(defined, self.background.ideal(self.queries, measure["cutoff"]))
            return weights, defined, self.neutrality
        form = exposure.rab_weights if measure.NAME == "RaB" else exposure.arab_weights
        return form(weighed, depth), defined, self.magnitude(measure["magnitude"], measure["poles"])

    def document_weights(self, measure: Measure, *, random: bool = False) -> Array:
        """What each document [D] of the score table weighs in a measure that adds up: the measure of the whole run is
        Σ weight × value of the document, over documents with scores.

        ``random``: in the expectation over random orders of the same candidates.
        """
        weights, scale, _ = self._linear(measure)
        defined = ~np.isnan(scale)
        # An average over the queries that have a value, as the run's figure is.
        weights = weights * np.where(defined, scale, 0.0)[:, None] / max(1, int(defined.sum()))
        return self._spread(weights, random=random)

    def appearances(self, cutoff: int, *, random: bool = False) -> Array:
        """How often each document [D] of the score table stands in the first ``cutoff`` ranks of the scored lists."""
        lengths = self.scored_lists.lengths
        depth = max(1, min(cutoff, int(lengths.max(initial=1))))
        return self._spread((np.arange(depth) < lengths[:, None]).astype(np.float64), random=random)

    def _spread(self, weights: Array, *, random: bool) -> Array:
        """The sum [D] of the ``weights`` [Q, k] of the ranks that each document of the score table holds."""
        lists, documents = self.scored_lists, self._kept_documents
        total = np.zeros(self._scores.table.height)
        if random:
            # Every document of a list holds every rank as often. In pieces, as the lists may be millions of rows.
            of_list = weights.sum(axis=1) / np.maximum(lists.lengths, 1)
            rows = (np.arange(start, min(start + _PIECE, len(documents))) for start in range(0, len(documents), _PIECE))
            parts: Iterable[tuple[Array, Array]] = ((places, of_list[lists.query_of(places)]) for places in rows)
        else:
            places, query = expand(lists.offsets[:-1], np.minimum(lists.lengths, weights.shape[1]))
            parts = [(places, weights[query, places - lists.offsets[query]])]
        for places, of_row in parts:
            known = documents[places] >= 0
            total += np.bincount(documents[places][known], of_row[known], minlength=len(total))
        return total

    def group_prf(self, measure: Measure, group: str, *, tie_weight: float = 1.0) -> Array:
        """PRF [Q] of one group's clicked documents."""
        scores = self._scores
        if group not in scores.groups:
            raise EvenrankError(f"no group {shown(group)} in the score table, which has {', '.join(scores.groups)}")
        other = scores.groups[1 - scores.groups.index(group)] if len(scores.groups) == 2 else REST
        return self._pole_prf(measure, (group, other), 1, tie_weight)

    def poles_prf(self, measure: Measure, weights: tuple[float, float] = (1.0, 1.0)) -> tuple[Array, Array]:
        """PRF [Q] of the first and of the second pole, with the weight of a tie in each."""
        pair = _pair(measure["poles"]) or self._scores.poles
        return self._pole_prf(measure, pair, 1, weights[0]), self._pole_prf(measure, pair, -1, weights[1])

    def _pole_prf(self, measure: Measure, pair: tuple[str, str] | None, sign: int, tie_weight: float) -> Array:
        wins, rows = self.wins(measure["rel"])
        labels = self.labels(rows, measure["magnitude"], pair)
        return pairwise.prf(wins, labels == sign, len(self.queries), tie_weight=tie_weight)

    # --- ties --------------------------------------------------------------------------------------------------------

    def tie_values(self, measure: Measure) -> Array:
        """The expectation of each query's value over the orders of tied documents.

        Exact, but for AbsARaB and measures that only ir_measures has: there the mean of 200 seeded draws.
        """
        return self._expected(measure, random=False)

    def random_values(self, measure: Measure) -> Array:
        """The expectation of each query's value over random orders of the same candidates, as :meth:`tie_values`."""
        return self._expected(measure, random=True)

    def _expected(self, measure: Measure, *, random: bool) -> Array:
        if measure.NAME == "AbsARaB":
            expected: Array = np.mean([np.abs(draw) for draw in self._draws(measure, random=random)], axis=0)
            return expected
        if _adds_up(measure):
            weights, scale, values = self._linear(measure)
            lists = self.scored_lists
            if random:
                # Every rank's expectation is the mean of the list.
                averaged: Array = weights.sum(axis=1) * values.means(lists) * scale
            else:
                averaged = _sums(weights, lists.tie_average(values, weights.shape[1])) * scale
            return averaged
        if measure.NAME == "APRF" or measure.NAME in DELTA:
            first, second = self._tie_prf(measure, 0.5)
            if random:
                first, second = np.where(np.isnan(first), first, 0.5), np.where(np.isnan(second), second, 0.5)
            return first if measure.NAME == "APRF" else first - second
        expectation = native.expected(measure)
        if expectation is None:
            return self._decided(self._elsewhere.mean(measure, TIE_DRAWS, random=random))
        return self._decided(expectation(self._all_tied_hits if random else self.hits))

    @property
    def _all_tied_hits(self) -> utility.Hits:
        """The hits of the run with all candidates tied: a random order is an order of this tie."""
        place = IdIndex([self.queries]).places(self.judged)
        length = np.where(place >= 0, self.lists.lengths[place], 0)
        hits = self.hits
        return replace(hits, before=np.zeros_like(hits.before), size=length[hits.query])

    def _tie_prf(self, measure: Measure, weight: float) -> tuple[Array, Array]:
        if measure.NAME == "APRF":
            value = self.group_prf(measure, measure["group"], tie_weight=weight)
            return value, value
        return self.poles_prf(measure, (weight, weight))

    def drawn_poles_prf(self, measure: Measure, *, random: bool = False) -> list[tuple[Array, Array]]:
        """PRF [Q] of both poles in each of 200 random orders of tied documents (of all candidates)."""
        wins, rows = self.wins(measure["rel"])
        lists = self.lists.all_tied() if random else self.lists
        if random:
            wins = pairwise.pairwise_wins(lists, rows)
        labels = self.labels(rows, measure["magnitude"], _pair(measure["poles"]) or self._scores.poles)
        rng = np.random.default_rng(self.seed)
        draws = []
        for _ in range(TIE_DRAWS if wins.tied.any() else 1):
            drawn = pairwise.break_ties(wins, lists.tie_of(rows)[0], rng)
            draws.append(tuple(pairwise.prf(drawn, labels == sign, len(self.queries)) for sign in (1, -1)))
        return draws  # type: ignore[return-value]

    def tie_bounds(self, measure: Measure) -> tuple[Array, Array]:
        """The smallest and the largest value of each query over the orders of its tied documents.

        For ΔA-PRF the values are per query what :meth:`values` gives; the run's range is that of the difference of
        means. All NaN for a measure that only ir_measures has, where documents are tied.
        """
        if _adds_up(measure):
            weights, scale, values = self._linear(measure)
            depth = weights.shape[1]
            low, high = (
                _sums(weights, self.scored_lists.tie_sorted(values, depth, largest_first=largest)) * scale
                for largest in (False, True)
            )
            if measure.NAME == "AbsARaB":
                nearest = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
                return nearest, np.maximum(np.abs(low), np.abs(high))
            return low, high
        if measure.NAME == "APRF":
            low, high = (self.group_prf(measure, measure["group"], tie_weight=w) for w in (0.0, 1.0))
            return low, high
        if measure.NAME in DELTA:
            lose, win = self.poles_prf(measure, (0.0, 1.0)), self.poles_prf(measure, (1.0, 0.0))
            return lose[0] - lose[1], win[0] - win[1]
        exact = native.of_order(measure)
        if exact is not None:
            low, high = (exact(self.hits.ties_broken(best=best)) for best in (False, True))
        else:
            low, high = self._elsewhere.bounds(measure)
        return self._decided(low), self._decided(high)

    @property
    def _elsewhere(self) -> PassedThrough:
        table = self.run.table if self.rows is None else self.run.table[self.rows]
        return PassedThrough(table, self.lists, self.judgements, self.judged, self.seed)

    def _draws(self, measure: Measure, *, random: bool) -> list[Array]:
        """Values [Q] in each of 200 random orders of tied documents (of all candidates), before any absolute value."""
        weights, scale, values = self._linear(measure)
        lists = self.scored_lists.all_tied() if random else self.scored_lists
        rng = np.random.default_rng(self.seed)
        draws = TIE_DRAWS if lists.tied else 1
        return [_sums(weights, lists.tie_draw(values, weights.shape[1], rng)) * scale for _ in range(draws)]

    def mean_draws(self, measure: Measure, *, random: bool = False) -> Array:
        """The run's mean value in each of 200 random orders of tied documents (of all candidates)."""
        return np.array([np.nanmean(draw) for draw in self._draws(measure, random=random)])


def _percent(share: float) -> str:
    return f"{100 * share:.3g}%"


def _sums(weights: Array, values: Array) -> Array:
    """Σ over ranks of weight × value: [Q] from weights [Q, k] or [1, k] and values [Q, k]."""
    # One way for both: sums that differ in the last bit would look like differences between runs.
    sums: Array = np.einsum("qk,qk->q", np.broadcast_to(weights, values.shape), values)
    return sums


_LINEAR = frozenset({"RaB", "ARaB", "AbsARaB", "|ARaB|", "FaiRR", "NFaiRR"})


def _adds_up(measure: Measure) -> bool:
    """Whether a measure's value is a weighted sum over ranks of a value of each document."""
    return measure.NAME in _LINEAR or isinstance(measure, registry.LinearMeasure)


DELTA = frozenset({"DeltaAPRF", "|DeltaAPRF|"})
"""Measures of the difference of two groups' PRF."""


def _pair(poles: str | None) -> tuple[str, str] | None:
    if poles is None:
        return None
    first, _, second = (part.strip() for part in poles.partition(","))
    return first, second
