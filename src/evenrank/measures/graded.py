"""The lists of a run's table, and the rows of its graded documents."""

from __future__ import annotations

import numpy as np
import polars as pl

from evenrank.io.runs import Run
from evenrank.io.tables import IdIndex, pick
from evenrank.io.types import Array

from .hits import Hits, find_hits
from .ranked_lists import Pieces, RankedLists, gathered


def lists_of(run: Run) -> RankedLists:
    """The ranked lists of a run."""
    ranks, scores = ([part.to_numpy() for part in run.table[name].get_chunks()] for name in ("rank", "score"))
    starts = np.flatnonzero(np.concatenate([part == 1 for part in ranks]))
    return RankedLists(np.append(starts, run.table.height), scores[0] if len(scores) == 1 else Pieces(scores))


def find_rows(table: pl.DataFrame, graded: pl.DataFrame, known: tuple[pl.Series, Array] | None) -> pl.DataFrame:
    """The rows of a run's ``table`` [N] that are ``graded`` (``query_id``, ``doc_id``, …), with their number ``row``.

    ``known``: ids of documents [D], and which of them each row [N] is.
    """
    # Few documents are judged: the join need not see the others.
    judged = IdIndex([graded["doc_id"]])
    among = judged.places(table["doc_id"] if known is None else known[0]) >= 0
    places = np.flatnonzero(among if known is None else gathered(among, known[1]))
    rows = pick(table.select("query_id", "doc_id"), places)
    rows = rows.with_columns(pl.Series("row", places, dtype=pl.UInt32))
    return rows.join(graded, on=["query_id", "doc_id"], how="inner").sort("row")


def moved_rows(graded: pl.DataFrame, order: Array) -> pl.DataFrame:
    """Graded rows (``row`` and more) of lists in another ``order`` [N] of their places."""
    wanted = np.zeros(len(order), dtype=bool)
    wanted[graded["row"].to_numpy()] = True
    places = np.flatnonzero(gathered(wanted, order))
    moved = pl.DataFrame({"row": order[places].astype(np.uint32), "place": places.astype(np.int32)})
    found = graded.join(moved, on="row", how="inner")
    return found.with_columns(pl.col("place").alias("row")).drop("place").sort("row")


def hits_of(lists: RankedLists, judged: pl.Series, judgements: pl.DataFrame, rows: pl.DataFrame) -> Hits:
    """The hits of the ``judged`` queries [J] in the lists, by their graded ``rows`` and all ``judgements``."""
    graded = judgements.filter(pl.col("relevance") > 0)
    number = pl.DataFrame({"query_id": judged}).with_row_index("number")
    ideal = graded.join(number, on="query_id", how="inner")
    found = rows.join(number, on="query_id", how="inner")
    return find_hits(
        lists,
        found["row"].cast(pl.Int64).to_numpy(),
        found["number"].cast(pl.Int64).to_numpy(),
        found["relevance"].to_numpy(),
        ideal["number"].cast(pl.Int64).to_numpy(),
        ideal["relevance"].to_numpy(),
        len(judged),
    )
