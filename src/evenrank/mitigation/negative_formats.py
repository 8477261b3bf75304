"""Sampled lists as the tables that are written: by id, or with texts of the collection."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from evenrank.engines.streams import TableWriter
from evenrank.io.tables import IdIndex
from evenrank.io.types import Array

from .negative_documents import Documents
from .negative_lists import SampledLists
from .negative_texts import TextFile

if TYPE_CHECKING:
    import pyarrow as pa

_TEXTS = 1 << 15


def id_table(lists: SampledLists, documents: Documents) -> pa.Table:
    """The format ``groups``; the group of a document without a label is null."""
    import pyarrow as pa

    values = {"doc_id": _arrow(lists.doc_id), "label": _numbers(lists.relevance.astype(np.int32, copy=False))}
    if documents.sides is not None:
        sides = pl.Series(documents.sides[lists.place].astype(np.int8, copy=False))
        if documents.labelled:
            sides = sides.set(pl.Series(np.isnan(documents.bias(lists.place))), None)
        values["group"] = sides.to_arrow()
    starts = _numbers(lists.starts.astype(np.int32))
    columns = {name: pa.ListArray.from_arrays(starts, column) for name, column in values.items()}
    return pa.table({"query_id": _arrow(lists.query_id), **columns})


def _arrow(texts: pl.Series) -> pa.Array:
    import pyarrow as pa

    return texts.rechunk().to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())


def _numbers(values: Array) -> pa.Array:
    # By way of polars: pyarrow.array would import pandas.
    return pl.Series(values).to_arrow()


def write_texts(
    lists: list[SampledLists], writer: TableWriter, format: str, n: int, texts: TextFile, queries: pl.DataFrame
) -> None:
    """The formats that contain texts."""
    import pyarrow as pa

    known = IdIndex([queries["query_id"].cast(pl.String)])
    query_texts = queries["text"]
    for chunk in lists:
        asked = query_texts.gather(known.places(chunk.query_id))
        # Parts of whole queries with some ten thousand texts.
        cuts = np.unique(np.searchsorted(chunk.starts, np.arange(0, chunk.starts[-1] + _TEXTS, _TEXTS)))
        cuts = cuts.clip(max=len(chunk.query_id))
        for start, end in itertools.pairwise(np.unique(np.append(0, cuts)).tolist()):
            first, last = chunk.starts[start], chunk.starts[end]
            starts, place = chunk.starts[start : end + 1] - first, chunk.place[first:last]
            relevance, query = chunk.relevance[first:last], _arrow(asked[start:end])
            if format == "labeled-list":
                offsets = pa.array(starts, pa.int32())
                docs = pa.ListArray.from_arrays(offsets, texts.take(place))
                labels = pa.ListArray.from_arrays(offsets, pa.array(relevance, pa.int32()))
                writer.write(pa.table({"query": query, "docs": docs, "labels": labels}))
            elif format == "labeled-pair":
                of_query = np.repeat(np.arange(end - start), np.diff(starts))
                relevant = pa.array((relevance >= 1).astype(np.float32), pa.float32())
                columns = {"query": query.take(pa.array(of_query)), "passage": texts.take(place), "label": relevant}
                writer.write(pa.table(columns))
            else:
                writer.write(_tuples(query, starts, chunk.positives[start:end], place, n, texts))


def _tuples(query: pa.Array, starts: Array, positives: Array, place: Array, n: int, texts: TextFile) -> pa.Table:
    import pyarrow as pa

    enough = np.flatnonzero(np.diff(starts) - positives == n)
    of_query = np.repeat(enough, positives[enough])
    begins = np.cumsum(positives[enough]) - positives[enough]
    nth = np.arange(len(of_query)) - np.repeat(begins, positives[enough])
    columns = {"anchor": query.take(pa.array(of_query)), "positive": texts.take(place[starts[of_query] + nth])}
    first = starts[of_query] + positives[of_query]
    for number in range(n):
        columns[f"negative_{number + 1}"] = texts.take(place[first + number])
    return pa.table(columns)
