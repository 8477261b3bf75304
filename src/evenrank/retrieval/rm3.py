"""RM3: a query is expanded with words of the first documents that it finds.

Lavrenko and Croft, SIGIR 2001, "Relevance-based language models" (RM1); Abdul-Jaleel et al., TREC 2004 (RM3: mixed with
the query's own words).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from evenrank import options as opt
from evenrank.io import EvenrankError
from evenrank.io.arguments import checked

Ints = NDArray[np.integer[Any]]


@checked
@dataclass(frozen=True, slots=True)
class RM3:
    """``fb_docs`` feedback documents, ``fb_terms`` of their terms, ``original_weight`` of the query's own terms.

    Raises EvenrankError for a number out of range.
    """

    fb_docs: Annotated[int, opt.Option("RM3: number of feedback documents.", rare=True)] = 10
    fb_terms: Annotated[int, opt.Option("RM3: number of feedback terms.", rare=True)] = 10
    original_weight: Annotated[float, opt.Option("RM3: weight of the original query (0 to 1).", rare=True)] = 0.5


@dataclass(frozen=True, slots=True)
class Forward:
    """The terms of each document: ``terms`` and ``tf`` [postings] by document, ``starts`` [documents + 1]."""

    starts: Ints
    terms: Ints
    tf: Ints

    def rows(self, documents: Ints) -> tuple[Ints, Ints, NDArray[np.float64]]:
        """For each posting of ``documents`` [n]: the row of the document, the term, and tf / |d|.

        Raises EvenrankError for arrays that do not fit each other, as those of a damaged file.
        """
        sizes = self.starts[documents + 1] - self.starts[documents]
        if (sizes < 0).any() or (self.starts[documents] < 0).any() or (self.starts[documents + 1] > len(self.tf)).any():
            raise EvenrankError("the index is damaged: the terms of a document are not in it")
        row = np.repeat(np.arange(len(documents)), sizes)
        place = np.arange(len(row)) + (self.starts[documents] - (np.cumsum(sizes) - sizes))[row]
        tf = self.tf[place].astype(np.float64)
        length = np.bincount(row, weights=tf, minlength=len(documents))
        # Frequencies of 0 are those of a damaged file: the search refuses the scores.
        with np.errstate(divide="ignore", invalid="ignore"):
            return row, self.terms[place], tf / length[row]


def relevance_model(
    queries: pl.DataFrame, feedback: pl.DataFrame, forward: Forward, order: Ints, settings: RM3
) -> pl.DataFrame:
    """The expanded queries: ``query``, ``term``, ``weight``, sorted; the weights of a query sum to 1.

    ``queries``: ``query``, ``term``, ``weight``, each query's weights summing to 1. ``feedback``: ``query``,
    ``document``, ``score``, in rank order; the first ``fb_docs`` of each query are used. ``order`` [terms]: the
    position of each term among the sorted terms, which breaks ties.

    p(w|R) ∝ Σ_d (tf(w,d) / |d|) · score(d) over the feedback documents, cut to the first ``fb_terms`` and renormalised;
    p'(w) = original_weight · p(w|q) + (1 − original_weight) · p(w|R). A query without feedback is unchanged.
    """
    first = feedback.filter(pl.int_range(pl.len()).over("query") < settings.fb_docs)
    row, term, share = forward.rows(first["document"].to_numpy())
    if ((term < 0) | (term >= len(order))).any():
        raise EvenrankError("the index is damaged: a document has a term without a number")
    weight = share * first["score"].to_numpy().astype(np.float64)[row]
    terms = _summed(first["query"].to_numpy()[row], term, weight)
    # Documents with score 0 add no words.
    terms = terms.filter(pl.col("weight") > 0)
    terms = terms.with_columns(pl.Series("order", order[terms["term"].to_numpy()]))
    terms = terms.sort(["query", "weight", "order"], descending=[False, True, False])
    terms = terms.filter(pl.int_range(pl.len()).over("query") < settings.fb_terms)
    terms = terms.with_columns(pl.col("weight") / pl.col("weight").sum().over("query"))
    alone = ~queries["query"].is_in(terms["query"].unique().implode())
    own = pl.when(alone).then(1.0).otherwise(settings.original_weight)
    both = pl.concat(
        [
            queries.select("query", "term", pl.col("weight") * own),
            terms.select("query", "term", pl.col("weight") * (1 - settings.original_weight)),
        ]
    )
    return _summed(both["query"].to_numpy(), both["term"].to_numpy(), both["weight"].to_numpy())


def _summed(query: Ints, term: Ints, weight: NDArray[np.float64]) -> pl.DataFrame:
    """The sum of the weights of each (query, term), added in their order, sorted."""
    packed = (query.astype(np.int64) << 32) | term
    order = np.argsort(packed, kind="stable")
    packed = packed[order]
    starts = np.flatnonzero(np.diff(packed, prepend=-1))
    sums = np.add.reduceat(weight[order], starts) if len(starts) else np.empty(0)
    once = packed[starts]
    return pl.DataFrame(
        {"query": (once >> 32).astype(np.int32), "term": (once & 0xFFFFFFFF).astype(np.int32), "weight": sums}
    )
