"""Ties that a ranker's precision made: equal scores of different texts, computed again in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from evenrank.io import EvenrankError
from evenrank.io.types import Array
from evenrank.io.wording import counted

from .load import StoredRanker
from .pairs import TextPairs
from .scorers import Scorer, Scores


@dataclass(frozen=True, slots=True)
class Resolved:
    """What became of ties: numbers of pairs of different texts with equal scores for a query, and ``precision`` of
    the first scores (None: not known)."""

    pairs: int
    remaining: int
    precision: str | None

    def note(self, name: str) -> str:
        """What a run's notes say."""
        if self.precision == "float32":
            return f"{name} computes in float32 already: none of its ties was scored again"
        if not self.pairs:
            return f"{name}: no two texts have equal scores for a query, so no tie was scored again"
        return (
            f"{name}: of {counted(self.pairs, 'pair')} of different texts with equal scores, float32 put"
            f" {self.pairs - self.remaining:,} in order; {self.remaining:,} remain equal"
        )

    def to_dict(self) -> dict[str, object]:
        """As JSON values."""
        return {"pairs": self.pairs, "remaining": self.remaining, "from": self.precision, "in": "float32"}


def check_resolvable(ranker: StoredRanker | Scorer) -> None:
    """Raises EvenrankError for a ranker that can neither be loaded in float32 nor computes in it."""
    if isinstance(ranker, Scorer) and ranker.facts().get("precision") != "float32":
        raise EvenrankError(
            "`resolve_ties`: expected a model given by its folder or its name on the hub, which can be loaded in"
            f" float32, found {ranker.name}"
        )


def resolve_ties(
    ranker: StoredRanker | Scorer,
    facts: Mapping[str, object],
    pairs: TextPairs,
    scores: Scores,
    score_again: Callable[[Scorer, TextPairs], Scores],
) -> tuple[Scores, Resolved]:
    """Scores in which ties of different texts are ordered by the model's scores in float32.

    ``facts``: those of the ranker as it was loaded; ``score_again``: the scores of some pairs.
    """
    known = facts.get("precision")
    precision = known if isinstance(known, str) else None
    if precision == "float32" or isinstance(ranker, Scorer):
        return scores, Resolved(0, 0, "float32")
    tied = tied_pairs(pairs, scores)
    if not tied.height:
        return scores, Resolved(0, 0, precision)
    exact = replace(ranker, precision="float32", backend="torch").load()
    rows = tied["row"].to_numpy()
    again = score_again(exact, replace(pairs, query=pairs.query[rows], document=pairs.document[rows]))
    below = _next_below(pairs.query, scores)
    tied = tied.with_columns(again=pl.Series(again))
    tied = ordered(tied.join(below, on=["query", "score"], how="left", maintain_order="left"))
    result = scores.copy()
    result[tied["row"].to_numpy()] = tied["written"].to_numpy()
    return result, Resolved(pairs_of_texts(tied, "score"), pairs_of_texts(tied, "written"), precision)


def tied_pairs(pairs: TextPairs, scores: Scores) -> pl.DataFrame:
    """``query``, ``score``, ``text`` (equal for equal texts) and ``row`` of the pairs whose score for their query
    another text has too."""
    table = pl.DataFrame({"query": pairs.query, "score": scores, "document": pairs.document}).with_row_index("row")
    table = table.filter(pl.len().over("query", "score") > 1)
    documents = table["document"].unique()
    texts = pl.DataFrame({"document": documents, "text": pairs.documents.gather(documents).rank("dense")})
    table = table.join(texts, on="document", maintain_order="left")
    return table.filter(pl.col("text").n_unique().over("query", "score") > 1).drop("document")


def pairs_of_texts(table: pl.DataFrame, score: str) -> int:
    """How many pairs of rows have the same ``query`` and score and another ``text``."""

    def pairs(*keys: str) -> int:
        sizes = table.group_by(*keys).len()["len"].cast(pl.Int64)
        return int((sizes * (sizes - 1) // 2).sum())

    return pairs("query", score) - pairs("query", score, "text")


def _next_below(query: Array, scores: Scores) -> pl.DataFrame:
    """``query``, ``score`` and ``below``: the next lower score of each query, −∞ below the lowest."""
    table = pl.DataFrame({"query": query, "score": scores}).unique().sort("query", "score")
    return table.with_columns(below=pl.col("score").shift(1).over("query").fill_null(-np.inf))


def ordered(tied: pl.DataFrame) -> pl.DataFrame:
    """Tied rows with the scores to write, ``written``: those of a block fall in the order of ``again``.

    The first keeps the block's score, and each next text has the next smaller number of float32, which trec_eval reads
    scores as; where the gap ``below`` the block is too narrow for that, of float64; a block that does not fit that
    either keeps its score. Equal texts, and texts that are equal in float32 too, remain tied.
    """
    # Padding may change the last digits of a text's score: one of them counts.
    tied = tied.with_columns(pl.col("again").first().over("query", "score", "text"))
    place = pl.col("again").rank("dense", descending=True).over("query", "score").cast(pl.Int64) - 1
    tied = tied.with_columns(place=place).with_columns(last=pl.col("place").max().over("query", "score"))
    score, place_, last, below = (tied[name].to_numpy() for name in ("score", "place", "last", "below"))
    written = score.copy()
    fine = _stepped(score, last, "f8") > below
    written[fine] = _stepped(score, place_, "f8")[fine]
    coarse = (score.astype(np.float32) == score) & (_stepped(score, last, "f4") > below)
    written[coarse] = _stepped(score, place_, "f4")[coarse]
    return tied.with_columns(written=pl.Series(written))


def _stepped(values: Array, steps: Array, kind: Literal["f4", "f8"]) -> Array:
    """The numbers of float32 or float64 that are so many ``steps`` [N] below ``values`` [N]."""
    whole = np.int32 if kind == "f4" else np.int64
    least = int(np.iinfo(whole).min)
    bits = values.astype(kind).view(whole).astype(np.int64)
    # In the order of the numbers: negative ones have the sign bit and then grow away from 0.
    rank = np.where(bits < 0, least - bits, bits) - steps
    back = np.where(rank < 0, least - rank, rank)
    stepped: Array = back.astype(whole).view(kind).astype(np.float64)
    return stepped
