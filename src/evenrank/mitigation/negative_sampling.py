"""The draw of negatives [BAS]: the bias of documents, candidates, and which of them are taken."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal, get_args

import numpy as np
import polars as pl

from evenrank import options as opt
from evenrank.files import (
    EvenrankError,
)
from evenrank.files.arguments import checked
from evenrank.files.errors import arg, quoted
from evenrank.files.hashing import GOLDEN, MASK, fnv_of_texts, mix
from evenrank.files.types import Array
from evenrank.files.wording import percent
from evenrank.groups import GroupTable

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
        raise EvenrankError(f"{arg.beta}: expected one of {', '.join(get_args(Beta))}, found {quoted(measure)}")
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
    settings = NegativeSettings(n, share, gendered_only, seed)
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


def whole_queries(table: pl.DataFrame, rows: int | None = None) -> Iterator[pl.DataFrame]:
    """A table in parts of whole queries, each of about so many rows (by default half a million)."""
    starts = _spell_starts(table["query_id"])
    cuts = starts[np.unique(np.searchsorted(starts, np.arange(0, table.height, rows or _PART)))]
    for start, end in itertools.pairwise([*cuts.tolist(), table.height]):
        if end > start:
            yield table[start:end]


@checked
@dataclass(frozen=True, slots=True)
class NegativeSettings:
    """The settings of :func:`sample`. Raises EvenrankError for one out of range."""

    n: Annotated[int, opt.COUNT]
    share: Annotated[float, opt.SHARE]
    gendered_only: bool
    seed: Annotated[int, opt.SEED]
    depth: Annotated[int, opt.COUNT] = 1

    @property
    def quota(self) -> int:
        """⌊λN + 1e-9⌋, the size of the biased part."""
        return math.floor(self.share * self.n + 1e-9)

    @property
    def notes(self) -> list[str]:
        """That a share cannot be had of so few negatives, if so."""
        if abs(self.quota - self.share * self.n) < 1e-6:
            return []
        had = f"{self.quota} of {self.n} ({percent(self.quota / self.n)})"
        return [f"a share of {self.share:g} is rounded down to {had} of a query's negatives"]


def draw(
    query: pl.Series, doc: pl.Series, starts: Array, values: Array, settings: NegativeSettings
) -> tuple[Array, Array]:
    """The rows drawn [T], and whether each is in the biased part [T]; query q has the rows from ``starts[q]``.

    ``values``: β of each row, NaN if it is unknown. The key of a row at random, where h(id) = mix(FNV-1a of its bytes):
    mix(mix(mix(seed + GOLDEN) ^ h(query)) ^ h(document)).
    """
    query_ids, number = query.gather(starts[:-1]), np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    of_query = mix(mix((settings.seed + GOLDEN) & MASK) ^ mix(fnv_of_texts(query_ids)))
    keys = mix(of_query[number] ^ mix(fnv_of_texts(doc)))
    chosen = ~np.isnan(values) & ((values > 0) | (not settings.gendered_only))
    table = pl.DataFrame({"query": number, "falling": -values, "chosen": chosen, "key": keys}).with_row_index("row")
    place = pl.when("chosen").then("falling").rank("ordinal").over("query")
    table = table.with_columns((place <= settings.quota).fill_null(False).alias("biased"), place.alias("place"))
    of_rest = pl.when(~pl.col("biased")).then("key").rank("ordinal").over("query")
    wanted = settings.n - pl.col("biased").sum().over("query")
    place = pl.when("biased").then("place").otherwise(of_rest)
    table = table.with_columns(place.alias("place")).filter(pl.col("biased") | (of_rest <= wanted))
    table = table.sort("query", ~pl.col("biased"), "place")
    return table["row"].to_numpy().astype(np.int64), table["biased"].to_numpy()
