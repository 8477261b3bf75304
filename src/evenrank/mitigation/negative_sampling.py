"""The method: the bias of a document, the documents that may be negatives, and the draw."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import polars as pl

from evenrank.groups import GroupTable
from evenrank.io import EvenrankError
from evenrank.io.errors import quoted
from evenrank.io.ranges import check_ranges
from evenrank.io.tables import text_bytes
from evenrank.io.types import Array

Beta = Literal["abs_tf", "count", "one_minus_neutrality"]
_PART = 1 << 19


def beta(scores: GroupTable, measure: Beta = "abs_tf") -> Array:
    """The bias β ≥ 0 of each document [D] of a group table [BAS].

    ``abs_tf``: |mag_a − mag_b| under ``tf``, a and b the poles; ``count``: the number of words of any group;
    ``one_minus_neutrality``: 1 − neutrality. Of labels, whose magnitude is their weight, ``abs_tf`` is |w_a − w_b| and
    ``count`` the sum of all weights. Rounded to nine digits, so that ln 6 − ln 3 and ln 2 are the same bias.
    Raises EvenrankError for an unknown measure, and for ``abs_tf`` without poles.
    """
    if measure == "abs_tf":
        value = np.abs(scores.signed_magnitude(scores.usual_kind))
    elif measure == "count":
        value = np.sum([scores.magnitude("count", group) for group in scores.groups], axis=0)
    elif measure == "one_minus_neutrality":
        value = 1 - scores.table["neutrality"].to_numpy()
    else:
        raise EvenrankError(f"`beta`: expected one of {', '.join(get_args(Beta))}, found {quoted(measure)}")
    rounded: Array = np.round(value, 9)
    return rounded


def candidates(run: pl.DataFrame, qrels: pl.DataFrame, depth: int = 1000) -> pl.DataFrame:
    """D_q: the rows of a run's first ``depth`` ranks whose document is not judged for the query [BAS].

    ``run``: ``query_id``, ``doc_id``, ``rank``, in rank order, as ``Run.table``; ``qrels``: ``query_id``, ``doc_id``.
    """
    top = run.filter(pl.col("rank") <= depth)
    return top.join(qrels, on=["query_id", "doc_id"], how="anti", maintain_order="left")


def sample(
    table: pl.DataFrame, *, n: int = 20, share: float = 0.6, gendered_only: bool = False, seed: int = 0
) -> pl.DataFrame:
    """Draws up to ``n`` negatives for each query from its candidates [BAS].

    ``table``: ``query_id``, ``doc_id`` (each document once a query) and ``beta`` (≥ 0; null: unknown), the rows of a
    query together and in first-stage order. Returns the rows drawn, with ``biased``: a query's biased part first, the
    ⌊share · n⌋ rows of largest β, ties by position; then its random part, uniform without replacement from all others.
    Of at most ``n`` rows, all are drawn. With ``gendered_only`` rows with β = 0 are left to the random part; those of
    unknown β always are.

    Rows are drawn by a random key of the seed, the query's id and the document's id alone: the negatives of a query do
    not depend on other queries, and what ``share`` 0.6 draws at random, 0.4 draws too.

    Raises EvenrankError for a setting out of range, a β below 0 or not finite, and a query whose rows are not
    together.
    """
    settings = Settings(n, share, gendered_only, seed)
    values = table["beta"].cast(pl.Float64).to_numpy()
    if not (np.isfinite(values) & (values >= 0) | table["beta"].is_null().to_numpy()).all():
        raise EvenrankError("expected finite numbers from 0 as beta")
    query = table["query_id"].cast(pl.String)
    starts = _spell_starts(query)
    if query.gather(starts[:-1]).n_unique() < len(starts) - 1:
        raise EvenrankError("the rows of a query are not together: sort the table by query_id")
    rows, biased = draw(query, table["doc_id"].cast(pl.String), starts, values, settings)
    return table[rows].with_columns(pl.Series("biased", biased))


def _spell_starts(query: pl.Series) -> Array:
    """The start of each stretch of equal values, and the total length at the end [Q + 1]."""
    number = query.rle_id().to_numpy().astype(np.int64)
    return np.append(np.flatnonzero(np.diff(number, prepend=-1)), len(query))


def whole_queries(table: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """The table of a run in parts of whole queries, each of about half a million rows."""
    starts = _spell_starts(table["query_id"])
    cuts = starts[np.unique(np.searchsorted(starts, np.arange(0, table.height, _PART)))]
    for start, end in itertools.pairwise([*cuts.tolist(), table.height]):
        if end > start:
            yield table[start:end]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of :func:`sample`. Raises EvenrankError for one out of range."""

    n: int
    share: float
    gendered_only: bool
    seed: int
    depth: int = 1

    def __post_init__(self) -> None:
        check_ranges(n=self.n, depth=self.depth, seed=self.seed, share=self.share)

    @property
    def quota(self) -> int:
        """⌊λN + 1e-9⌋, the size of the biased part."""
        return math.floor(self.share * self.n + 1e-9)


def draw(query: pl.Series, doc: pl.Series, starts: Array, values: Array, settings: Settings) -> tuple[Array, Array]:
    """The rows drawn [T], and whether each is in the biased part [T]; query q has the rows from ``starts[q]``.

    ``values``: β of each row, NaN if it is unknown.
    """
    # The compiler takes half a second to import.
    from evenrank._jit import unwritable

    from . import _drawing as _kernel

    ids = unwritable(*text_bytes(doc), *text_bytes(query.gather(starts[:-1])))
    keys = _kernel.random_keys(*ids, starts, np.uint64(settings.seed))
    (values,) = unwritable(values)
    drawn: tuple[Array, Array] = _kernel.draw(starts, values, keys, settings.n, settings.quota, settings.gendered_only)
    return drawn


def candidate_totals(starts: Array, values: Array) -> tuple[Array, Array, Array]:
    """Of each query's candidates [Q]: how many have a β above 0, how many a known one, and the sum of those."""
    from . import _drawing as _kernel

    found: tuple[Array, Array, Array] = _kernel.totals(starts, values)
    return found
