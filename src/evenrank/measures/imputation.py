"""Labels for documents without one, drawn again and again from labelled documents at like ranks.

Labels are taken to be missing at random given query and rank stratum (1–5, 6–10, 11–20, 21–50, 51–; our design). A
draw gives each unknown document the label of a known one of its stratum: of its query where that has five or more, else
of all queries, in the first ten ranks those at near ranks more often, since labels and weights both change fast there.
The documents of one query are few, so two of all queries count among them: five of one group do not show that a sixth
cannot be of another. Each draw weighs the known documents anew (the Bayesian bootstrap), since they are themselves a
sample: without that, intervals are too narrow [Rubin & Schenker 1986]. The weights and the chance that chooses belong
to the document: in several lists or runs it mostly has one label in a draw, always where it is drawn from the same
documents, so that runs differ by their documents rather than by chance.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable

import numpy as np
import polars as pl

from evenrank.groups.chances import chances
from evenrank.groups.table import GroupTable
from evenrank.io.types import Array

from .donors import Donors, Places
from .lazy import Column, TableRows
from .ranked_lists import RankedLists, expand

IMPUTATIONS = 50
FEW_IMPUTATIONS = 5
"""For what is costly in each: the orders of ties, and random orders of measures that are not linear."""
STRATA = (0, 5, 10, 20, 50)
"""The ranks before each stratum's first."""
_FEWEST_DONORS = 5
_BY_RANK = 2
"""The strata whose ranks have sets of their own."""
_MOST_PRIOR = 100
_NEARER = 3
_MOST_KEPT = 50_000


class Imputation:
    """The unknown documents of a run, and the sets of known ones that their labels are drawn from.

    ``document`` [N]: the row of each document in the group table, −1 if it has none; ``ids`` [N]: the documents' ids.
    """

    def __init__(self, lists: RankedLists, document: Array, ids: pl.Series, table: GroupTable, seed: int) -> None:
        self.lists = lists
        self.document = document
        self.table = table
        self.seed = seed
        self._ids = ids
        self._donors: dict[int, Donors] = {}
        self._places: dict[tuple[int, int], tuple[Array | None, Places]] = {}
        self._completions: dict[int | None, Completion] = {}
        self._totals: dict[Hashable, Array] = {}
        self.shares: dict[tuple[int | None, int], Array] = {}

    @functools.cached_property
    def labels(self) -> tuple[Array, Array]:
        """The number [D] of each known document's label, and a row [P] of the group table that has it."""
        code = np.zeros(self.table.table.height, dtype=np.int64)
        for group in sorted(self.table.groups):
            _, own = np.unique(self.table.table[f"count_{group}"].to_numpy(), return_inverse=True)
            _, code = np.unique(code * (int(own.max(initial=0)) + 1) + own, return_inverse=True)
        # Of the rows with a label one that does not depend on their order: a draw weighs it.
        order = np.argsort(self.known_hashes, kind="stable")
        _, first = np.unique(code[order], return_index=True)
        return code, order[first]

    @property
    def neutrality(self) -> Array:
        """The neutrality [D] of the known documents."""
        found: Array = self.table.table["neutrality"].to_numpy()
        return found

    @functools.cached_property
    def hashes(self) -> Array:
        """A number [N] for each document that depends on its id alone."""
        return self._ids.hash().to_numpy()

    @functools.cached_property
    def known_hashes(self) -> Array:
        """The same number [D] for each document of the group table."""
        return self.table.table["doc_id"].hash().to_numpy()

    @functools.cached_property
    def sources(self) -> float:
        """How many documents the labels of the first ranks are drawn from; intervals have their degrees of freedom."""
        return float(self.donors(0).sizes[0])

    def completion(self, draw: int | None) -> Completion:
        """The labels of one draw; None: their expectation."""
        if draw not in self._completions:
            # One at a time: a draw's labels are not needed again.
            self._completions = {None: self._completions[None]} if None in self._completions else {}
            self._completions[draw] = Completion(self, draw)
        return self._completions[draw]

    def donors(self, stratum: int) -> Donors:
        """The sets of a stratum."""
        if stratum not in self._donors:
            self._donors[stratum] = self._find_donors(stratum)
        return self._donors[stratum]

    def _span(self, stratum: int) -> tuple[int, int]:
        """The ranks before a stratum's first, and its last."""
        deepest = int(self.lists.lengths.max(initial=0))
        return STRATA[stratum], STRATA[stratum + 1] if stratum + 1 < len(STRATA) else deepest

    def stratum_of(self, rank: Array) -> Array:
        """The stratum of each rank, counted from 0."""
        return np.searchsorted(STRATA, rank, side="right") - 1

    @property
    def strata(self) -> range:
        """The strata that the longest list reaches into."""
        return range(sum(int(self.lists.lengths.max(initial=0)) > first for first in STRATA))

    def _find_donors(self, stratum: int) -> Donors:
        labels, patterns = self.labels
        queries, count = len(self.lists.lengths), len(patterns)
        first, last = self._span(stratum)
        sizes = np.clip(self.lists.lengths - first, 0, last - first)
        places, query = expand(self.lists.offsets[:-1] + first, sizes)
        document = self.document[places]
        known = document >= 0
        document, query = document[known], query[known]
        per_query = np.bincount(query, minlength=queries)
        unknown = sizes - per_query
        rank = places[known] - self.lists.offsets[query] + 1
        ranks = np.arange(first + 1, last + 1) if stratum < _BY_RANK and len(document) else np.zeros(0, dtype=np.int64)
        set_at = np.arange(1, len(ranks) + 1) if len(ranks) else np.zeros(max(0, last - first), dtype=np.int64)
        own = (per_query >= _FEWEST_DONORS) & (unknown > 0)
        set_of = np.where(own, len(ranks) + np.cumsum(own), 0)
        # Where no document of the stratum is known: all of the run.
        pooled = document if len(document) else self.document[self.document >= 0]
        chosen = own[query]
        # At each rank all of the stratum, those at near ranks more.
        nearness = np.minimum(ranks[:, None] / rank, rank / ranks[:, None]) ** _NEARER
        shared = len(ranks) + 1
        # One document more, of any label alike [Perks 1947]: a label that was not met may still be there.
        prior = patterns if count <= _MOST_PRIOR else patterns[:0]
        sets = [np.zeros(len(pooled), np.int64), np.repeat(np.arange(1, shared), len(rank)), set_of[query[chosen]]]
        sets.append(np.repeat(np.arange(shared), len(prior)))
        donors = np.concatenate([pooled, np.tile(document, len(ranks)), document[chosen], np.tile(prior, shared)])
        weight = np.concatenate([np.ones(len(pooled)), nearness.ravel(), np.ones(int(chosen.sum()))])
        weight = np.append(weight, np.full(shared * len(prior), 1 / count))
        entries, entry = np.unique(np.concatenate(sets) * count + labels[donors], return_inverse=True)
        last_set = max(len(ranks), int(set_of.max(initial=0)))
        starts = np.searchsorted(entries, np.arange(last_set + 2) * count)
        return Donors(set_of, set_at, unknown, starts, entries % count, donors, entry, weight)

    def neutral_codes(self) -> Array:
        """A number [N] for each document that rises with its neutrality, or with the expected one if it is unknown."""
        known = np.round(self.neutrality, 12)
        expected = {}
        for stratum in self.strata:
            means = self.completion(None).means(stratum, self.neutrality[self.labels[1]])
            expected[stratum] = np.round(means, 12)
        levels = np.unique(np.concatenate([known, *expected.values()]))
        codes = np.searchsorted(levels, known)[self.document].astype(np.int32)
        rank = self.lists.places()
        query = np.repeat(np.arange(len(self.lists.lengths)), self.lists.lengths)
        for stratum, means in expected.items():
            first, last = self._span(stratum)
            places = np.flatnonzero((self.document < 0) & (rank >= first) & (rank < last))
            of_set = self.donors(stratum).set_for(query[places], rank[places] - first)
            codes[places] = np.searchsorted(levels, means)[of_set]
        return codes

    @functools.cached_property
    def _known(self) -> tuple[Array, Array]:
        """The list and the row in the group table of each known document."""
        places = np.flatnonzero(self.document >= 0)
        return self.lists.query_of(places), self.document[places]

    def known_totals(self, values: Callable[[Array], Array], key: Hashable | None) -> Array:
        """The sum [Q] of a value over the known documents of each list; kept under its key."""
        if key is None or key not in self._totals:
            query, document = self._known
            found = np.bincount(query, values(document), minlength=len(self.lists.lengths)).astype(np.float64)
            if key is None:
                return found
            self._totals[key] = found
        return self._totals[key]

    def first(self, depth: int, order: Array | None = None) -> Places:
        """The first ``depth`` places [Q, depth] of each list, or of the lists in another ``order`` [N] of places."""
        # With the order, which must live as long as its number stands for it.
        key = depth, id(order)
        if key not in self._places:
            ranks = np.arange(depth)
            places = np.minimum(self.lists.offsets[:-1, None] + ranks, len(self.document) - 1)
            inside = ranks < self.lists.lengths[:, None]
            self._places[key] = order, self.at(places if order is None else order[places], inside)
        return self._places[key][1]

    def at(self, places: Array, inside: Array | None = None) -> Places:
        """Some places [...] of the lists; ``inside`` [...]: those that are no filling."""
        document = self.document[places]
        lost = document < 0 if inside is None else (document < 0) & inside
        unknown = np.flatnonzero(lost)
        own = places.reshape(-1)[unknown]
        query = self.lists.query_of(own)
        rank = own - self.lists.offsets[query]
        stratum = self.stratum_of(rank)
        found = []
        for number in np.flatnonzero(np.bincount(stratum, minlength=1)).tolist():
            here, donors = np.flatnonzero(stratum == number), self.donors(number)
            of_set = donors.set_for(query[here], rank[here] - STRATA[number])
            found.append((number, unknown[here], of_set, self.hashes[own[here]]))
        return Places(self.labels[0][np.maximum(document, 0)], found)


class Completion:
    """A run's labels with the unknown ones filled in: by one draw, or (``draw`` None) by their expectation."""

    def __init__(self, imputation: Imputation, draw: int | None) -> None:
        self.of = imputation
        self.draw = draw
        self._shares: dict[tuple[int | None, int], Array] = {}
        self._labels: dict[tuple[int, int], Array] = {}

    @functools.cached_property
    def _weights(self) -> Array | None:
        """The bootstrap weight [D] of each known document; None in expectation."""
        return None if self.draw is None else -np.log(self._uniform(self.of.known_hashes, 1))

    def _uniform(self, hashes: Array, stream: int) -> Array:
        """A number in (0, 1) for each of the hashes, in this draw."""
        return chances(hashes, self.of.seed, self.draw or 0, stream)

    def shares(self, stratum: int) -> Array:
        """Each label's share [E] of its set in this draw."""
        donors = self.of.donors(stratum)
        weighed = self.draw if donors.weighed else None
        key = weighed, stratum
        # What is small, or the same in all draws, is kept for the other rankings of these documents.
        kept = self.of.shares if weighed is None or len(donors.label) <= _MOST_KEPT else self._shares
        if key not in kept:
            kept[key] = donors.shares(None if weighed is None else self._weights)
        return kept[key]

    def first(self, depth: int, order: Array | None = None) -> Array:
        """The number [Q, depth] of the label of each list's first documents, drawn where it is unknown."""
        key = depth, id(order)
        if key not in self._labels:
            self._labels[key] = self.drawn(self.of.first(depth, order))
        return self._labels[key]

    def drawn(self, places: Places) -> Array:
        """The number [...] of the label of each of the places, drawn where it is unknown."""
        labels = places.label.copy()
        flat = labels.reshape(-1)
        for stratum, unknown, of_set, hashes in places.unknown:
            donors = self.of.donors(stratum)
            of_set = np.where(self._uniform(hashes, 3) < donors.pooled[of_set], 0, of_set)
            # Set s has the cumulative shares from s to s + 1: one search finds all.
            sums = np.cumsum(self.shares(stratum))
            found = np.searchsorted(sums, of_set + self._uniform(hashes, 2), side="left")
            found = np.clip(found, donors.starts[of_set], donors.starts[of_set + 1] - 1)
            flat[unknown] = donors.label[found]
        return labels

    def means(self, stratum: int, values: Array) -> Array:
        """The mean [S] of each set's labels, whose values are ``values`` [P]."""
        donors = self.of.donors(stratum)
        means = np.add.reduceat(self.shares(stratum) * values[donors.label], donors.starts[:-1])
        mixed: Array = means + donors.pooled * (means[0] - means)
        return mixed

    def column(
        self, values: Callable[[Array], Array], order: Array | None = None, key: Hashable | None = None
    ) -> Column:
        """A value of each document of the lists, from rows of the group table to their values.

        ``order`` [N]: the places of the documents in the lists, if they are looked at in another order. ``key``: a name
        of the values, under which what does not change between draws is kept.
        """
        return _Filled(values, self, order, key)

    def values_at(self, places: Places, values: Callable[[Array], Array]) -> Array:
        """The value [...] of each of the places: of its label, or of the mean over its set in expectation."""
        patterns = np.asarray(values(self.of.labels[1]), dtype=np.float64)
        if self.draw is not None:
            return patterns[self.drawn(places)]
        found = patterns[places.label]
        flat = found.reshape(-1)
        for stratum, unknown, of_set, _ in places.unknown:
            flat[unknown] = self.means(stratum, patterns)[of_set]
        return found


class _Filled(Column):
    """A column whose unknown documents have the values of their drawn labels, or the mean over their set."""

    def __init__(
        self, values: Callable[[Array], Array], completion: Completion, order: Array | None, key: Hashable | None
    ) -> None:
        super().__init__(values, TableRows(completion.of.document, completion.of.table.table.height), np.nan)
        self._completion = completion
        self._order = order
        self._key = key

    def first(self, lists: RankedLists, depth: int) -> Array:
        """The values of the first ``depth`` documents of each list [Q, depth]."""
        if self._first is None or self._first.shape[1] < depth:
            inside = np.arange(depth) < lists.lengths[:, None]
            completion = self._completion
            if completion.draw is None:
                found = completion.values_at(completion.of.first(depth, self._order), self._values)
            else:
                found = self._values(completion.of.labels[1])[completion.first(depth, self._order)]
            self._first = np.where(inside, found, 0.0)
        return self._first[:, :depth]

    def means(self, lists: RankedLists) -> Array:
        """The mean of each list [Q]; of its unknown documents, the mean of the sets that they are drawn from."""
        if self._means is None:
            total = self._completion.of.known_totals(self._values, self._key).copy()
            patterns = self._values(self._completion.of.labels[1])
            for stratum in self._completion.of.strata:
                donors = self._completion.of.donors(stratum)
                if donors.unknown.any():
                    total += donors.unknown * self._completion.means(stratum, patterns)[donors.set_of]
            self._means = np.divide(total, lists.lengths, out=np.zeros(len(total)), where=lists.lengths > 0)
        return self._means

    def expected_at(self, rows: Array) -> Array:
        """The values of some rows, of an unknown one the mean that :meth:`means` counts for it, by list and stratum."""
        found, of = self[rows], self._completion.of
        places = rows if self._order is None else self._order[rows]
        query = of.lists.query_of(places)
        stratum = np.where(of.document[places] < 0, of.stratum_of(places - of.lists.offsets[query]), -1)
        for number in np.unique(stratum[stratum >= 0]).tolist():
            here, patterns = stratum == number, self._values(of.labels[1])
            found[here] = self._completion.means(number, patterns)[of.donors(number).set_of[query[here]]]
        return found

    def __getitem__(self, rows: Array | slice) -> Array:
        places = np.arange(len(self))[rows] if isinstance(rows, slice) else rows
        places = places if self._order is None else self._order[places]
        return self._completion.values_at(self._completion.of.at(places), self._values)
