"""Which queries are about the same thing, and so are no independent evidence: clusters of queries."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import numpy as np
import polars as pl

from evenrank.files.convert import is_path
from evenrank.files.errors import arg, quoted, readable
from evenrank.files.types import Array
from evenrank.files.wording import counted

from .query_groups import by_query, named, on_axis

ALIKE = 0.5
"""Queries share a cluster whose relevant documents are the same at least to this part (Jaccard)."""
_ROUNDING = 1e-9
_MARKS = re.compile(r"^[\W_]+(?=\w)|(?<=\w)[.,;:!?\"'’”)\]]+$")
"""Punctuation around a word; what is part of its name, as in C++ and C#, stays."""


@dataclass(frozen=True, slots=True)
class QueryClusters:
    """The clusters of an audit's queries.

    Attributes:
        numbers: The cluster [Q] of each query, as whole numbers from 0; None where no two share one.
        reason: What the queries of a cluster have in common, in words.
    """

    numbers: Array | None
    reason: str


def query_clusters(
    given: object, queries: pl.Series, texts: pl.DataFrame | None, qrels: pl.DataFrame | None
) -> QueryClusters:
    """The clusters of ``queries`` [Q].

    By default two queries share a cluster that have the same set of words, case folded, or relevant documents of which
    they share at least half (Jaccard), and so do those that are linked over others. Paraphrases without judgements are
    not found.

    Args:
        given: A file of ``query_id,cluster``, ``{query: cluster}``, a frame or a Series; a query that it lacks is a
            cluster of its own. "none": queries are independent. None: clusters are found.
        queries: The ids.
        texts: ``query_id`` and ``text``, where known.
        qrels: ``query_id``, ``doc_id`` and ``relevance``, where known.

    Raises EvenrankError for a file that cannot be used, or that knows none of the queries.
    """
    if given == "none":
        return QueryClusters(None, "none")
    if given is not None:
        columns, name = by_query(given, arg.query_clusters, "cluster")
        names = columns.table[name]
        names = named(names.fill_nan(None) if names.dtype.is_float() else names).alias("cluster")
        table = columns.table.select("query_id", names)
        labels = on_axis(table, queries)["cluster"]
        lacking = labels.null_count()
        if lacking == len(queries):
            raise columns.error(f"none of the {counted(len(queries), 'query')} is in it: {quoted(queries[0])}")
        own = pl.Series([f"\0{place}" for place in range(len(queries))])
        file = readable(os.path.basename(os.fspath(given))) if is_path(given) else "in memory"
        rest = f", which lacks {counted(lacking, 'query')}" if lacking else ""
        return QueryClusters(_numbers(labels.zip_with(labels.is_not_null(), own)), f"query clusters: {file}{rest}")
    links = {"same relevant documents": _same_relevant(queries, qrels), "same words": _same_words(queries, texts)}
    linked = {reason: pairs for reason, pairs in links.items() if pairs.size}
    if not linked:
        return QueryClusters(None, "none found")
    return QueryClusters(_connected(np.concatenate(list(linked.values()), axis=1), len(queries)), " or ".join(linked))


def _numbers(labels: pl.Series) -> Array | None:
    numbers: Array = np.unique(labels.rank("dense").to_numpy(), return_inverse=True)[1]
    return numbers if len(np.unique(numbers)) < len(numbers) else None


def _connected(pairs: Array, size: int) -> Array:
    """The connected component [size] of each query, numbered from 0, from pairs [2, P] of them.

    Each query takes the least label among its neighbours, and that one's own, until no pair differs. SciPy's function
    would be as short, but takes longer to import than most audits take.
    """
    labels = np.arange(size)
    while (labels[pairs[0]] != labels[pairs[1]]).any():
        least = labels[pairs].min(axis=0)
        np.minimum.at(labels, pairs[0], least)
        np.minimum.at(labels, pairs[1], least)
        labels = labels[labels]
    numbers: Array = np.unique(labels, return_inverse=True)[1]
    return numbers


def _same(keys: pl.Series) -> Array:
    """Each query [Q] with a key and the first one that has the same, as pairs [2, P]; null: no key."""
    rows = pl.DataFrame({"key": keys}).with_row_index("row").drop_nulls()
    rows = rows.with_columns(pl.col("row").min().over("key").alias("first")).filter(pl.col("row") != pl.col("first"))
    return rows.select("row", "first").to_numpy().T.astype(np.int64)


def _same_words(queries: pl.Series, texts: pl.DataFrame | None) -> Array:
    """Pairs [2, P] of queries with the same set of words."""
    if texts is None:
        return np.zeros((2, 0), np.int64)
    known = on_axis(texts.select("query_id", "text"), queries)["text"]
    keys = [None if text is None else " ".join(sorted(_words(text))) or None for text in known]
    return _same(pl.Series(keys, dtype=pl.String))


def _words(text: str) -> set[str]:
    """The words of a query, case folded, without the punctuation around them."""
    words = {_MARKS.sub("", word) for word in text.casefold().split()}
    return {word for word in words if any(letter.isalnum() for letter in word)}


def _same_relevant(queries: pl.Series, qrels: pl.DataFrame | None) -> Array:
    """Pairs [2, P] of queries whose relevant documents are alike."""
    if qrels is None:
        return np.zeros((2, 0), np.int64)
    relevant = qrels.filter(pl.col("relevance") > 0).select("query_id", "doc_id").unique()
    sets = relevant.group_by("query_id").agg(pl.col("doc_id").sort().str.join("\0").alias("set"))
    keys = on_axis(sets, queries)["set"]
    pairs = _same(keys)
    # Only one query of equal sets is compared with those of other sets.
    first = pl.DataFrame({"query_id": queries, "key": keys}).with_row_index("row").drop_nulls().unique("key")
    rows = relevant.join(first, "query_id").with_columns(
        pl.col("doc_id").rank("dense").alias("document"), pl.len().over("query_id").alias("size")
    )
    # Prefix filter: two sets that are alike share one of the rarest documents of each, whatever the popular ones are.
    rows = rows.with_columns(pl.len().over("document").alias("queries"))
    rows = rows.sort("row", "queries", "document").with_columns(pl.int_range(pl.len()).over("row").alias("place"))
    size, shared = pl.col("size"), 2 * ALIKE / (1 + ALIKE)
    smaller = rows.filter(pl.col("place") <= size - (shared * size - _ROUNDING).ceil())
    larger = rows.filter(pl.col("place") <= size - (ALIKE * size - _ROUNDING).ceil())
    candidates = (
        smaller.select("document", "row", "size")
        .join(larger.select("document", "row", "size"), "document", suffix="_other")
        .filter(
            (size < pl.col("size_other")) | ((size == pl.col("size_other")) & (pl.col("row") < pl.col("row_other"))),
            size >= ALIKE * pl.col("size_other"),
        )
        .select("row", "row_other", "size", "size_other")
        .unique()
    )
    of = rows.select("row", "document")
    both = (
        candidates.join(of, "row")
        .join(of.rename({"row": "row_other"}), ["row_other", "document"])
        .group_by("row", "row_other", "size", "size_other")
        .len("shared")
        .filter(pl.col("shared") >= ALIKE * (size + pl.col("size_other") - pl.col("shared")))
    )
    alike = both.select("row", "row_other").to_numpy().T.astype(np.int64)
    return np.concatenate([pairs, alike], axis=1)
