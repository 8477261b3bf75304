"""Every measure of one run: its values, its expectation and bounds over ties, and its figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np
import polars as pl
from ir_measures import Measure

from evenrank.io.types import Array

from .base import BiasMeasure
from .joined import MISSING_LIMIT, JoinedRun, Lacking, find_lacking, refuse_share, refuse_unlabelled
from .ranked_lists import gathered
from .registry import resolve


class Evaluation(JoinedRun):
    """Measures of a run, given the group table of its documents, judgements and a background.

    Values of a bias measure are over the run's queries (``queries`` [Q]), those of a utility measure over the judged
    ones (``judged`` [J]), of which those that the run lacks count 0. NaN is undefined.
    """

    def queries_of(self, measure: Measure) -> pl.Series:
        """The ids of the queries that a measure's values belong to."""
        return resolve(measure).queries(self)

    def values(self, measure: Measure) -> Array:
        """The measure of each query, [Q] or [J]. For ΔA-PRF, the first pole's PRF minus the second's."""
        return resolve(measure).values(self)

    def figure(self, measure: Measure) -> float:
        """The measure of the run: for most the mean over its queries; NaN if no query (of a pole) has a value."""
        how = resolve(measure)
        return how.figure(how.parts(self))

    def relevance_values(self, measure: Measure) -> Array:
        """The expectation of each query's value with its candidates by falling grade, equal grades in any order."""
        return resolve(measure).by_relevance(self)

    def tie_values(self, measure: Measure) -> Array:
        """The expectation of each query's value over the orders of its tied documents.

        Exact, except for AbsARaB and measures that only ir_measures has: the mean of 200 seeded draws.
        """
        return resolve(measure).expected(self)

    def random_values(self, measure: Measure) -> Array:
        """The expectation of each query's value over random orders of the same candidates, as :meth:`tie_values`."""
        return resolve(measure).expected(self, random=True)

    def neutral_first(self) -> Self:
        """The same candidates by descending neutrality, then in the run's own order: a reference ranking."""
        lists = self.lists
        # As ranks among all: once per document rather than per row. An unknown one is neutral, or skipped.
        known = np.round(self.required_table.table["neutrality"].to_numpy(), 12)
        values = np.append(known, -1.0 if self.kept is not None else 1.0)
        code = np.searchsorted(np.unique(values), values).astype(np.int32)
        order = lists.falling(gathered(code, self.document))
        places = lists.places()
        other = self.in_order(order, np.negative(places, out=places))
        other.undecided = self.scored_lists.lengths == 0
        return other

    def tie_bounds(self, measure: Measure) -> tuple[Array, Array]:
        """The smallest and the largest value of each query over the orders of its tied documents.

        NaN for a measure that only ir_measures has, if documents are tied.
        """
        return resolve(measure).bounds(self)

    def lacking(self, measures: Sequence[Measure] = (), depths: Sequence[int] = ()) -> Lacking | None:
        """The documents that the group table lacks, over the ranks where their share is largest; None without any.

        Compares the first ranks down to the cutoff of each bias measure and to ``depths``, and the whole lists.
        """
        if self.group_table is None:
            return None
        cutoffs = [m.params["cutoff"] for m in measures if isinstance(m, BiasMeasure) and "cutoff" in m.params]
        return find_lacking(self.ranked_ids, self.lists, self.document < 0, [*cutoffs, *depths])

    def check_missing(
        self, limit: float = MISSING_LIMIT, measures: Sequence[Measure] = (), depths: Sequence[int] = ()
    ) -> Lacking | None:
        """:meth:`lacking`; raises EvenrankError if their share is above ``limit``.

        Labels are seldom complete: for them there is no limit, but one document at least must have one.
        """
        self.check_known()
        if self.group_table is not None and self.group_table.labelled:
            if (self.document < 0).all():
                raise refuse_unlabelled(self.run, self.group_table)
            return None
        lacking = self.lacking(measures, depths)
        if lacking is not None and lacking.share > limit:
            raise refuse_share(self.run, lacking, self.required_table.source, self.missing, limit)
        return lacking
