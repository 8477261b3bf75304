"""Models as functions of a batch, Arrow in and Arrow out, for the engines that distribute them."""

from __future__ import annotations

import functools
import os
from typing import TYPE_CHECKING, Annotated, Literal, cast

import polars as pl

from evenrank import options as opt
from evenrank.files import EvenrankError, InputError
from evenrank.files.arguments import checked
from evenrank.files.streams import arrow_table
from evenrank.files.texts import Names, TextFile, texts_of_table

from .load import Kind, Precision, load_ranker
from .text_encoders import TextEncoder, find_encoder

if TYPE_CHECKING:
    from pyarrow import Table as ArrowTable


@checked
def rerank_batch(
    batch: ArrowTable,
    model: str | os.PathLike[str],
    *,
    query_column: str = "query",
    text_column: str = "text",
    kind: Kind | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    batch_size: Annotated[int, opt.COUNT] = 32,
) -> ArrowTable:
    """A batch of pairs of a query and a passage with the model's ``score`` of each, Arrow in and Arrow out.

    The model is loaded once a process and stays there. A pair's score is the same whatever batch it is in, to 1e-5 in
    float32. For the texts of a run on one machine, :func:`evenrank.rerank` is simpler: it looks the texts up, encodes
    each once and writes a run.

    Args:
        batch: An Arrow table with the texts of queries and of passages, and any other columns.
        model: The folder of a ranker or its name on the hub, as :func:`evenrank.rerank` takes it.
        query_column: The column of queries.
        text_column: The column of passages.
        kind: As :func:`evenrank.rerank` takes it.
        device: As :func:`evenrank.rerank` takes it.
        precision: As :func:`evenrank.rerank` takes it.
        batch_size: As :func:`evenrank.rerank` takes it.

    Returns:
        The batch with the column ``score`` (float64) behind its own.

    Raises:
        InputError: For a batch without these columns or with a text that is missing, and for a model that cannot be
            loaded.
        EvenrankError: For scores that are not finite.
    """
    table = pl.DataFrame(batch)
    queries, passages = (_texts(table, name) for name in (query_column, text_column))
    scorer = _ranker(os.fspath(model), kind=kind, device=device, precision=precision)
    scores = scorer.score(queries, passages, batch_size)
    return arrow_table(table.with_columns(pl.Series("score", scores, pl.Float64)))


@checked
def encode_batch(
    batch: ArrowTable,
    model: str | os.PathLike[str],
    *,
    of: Literal["documents", "queries"] = "documents",
    id_column: str | None = None,
    text_column: str | None = None,
    device: str | None = None,
    precision: Precision = "auto",
    batch_size: Annotated[int, opt.COUNT] = 32,
) -> ArrowTable:
    """The vectors of a batch of texts by a bi-encoder, Arrow in and Arrow out.

    The model is loaded once a process and stays there; it is the one that :func:`evenrank.build_index` encodes with,
    and where its similarity is the cosine, vectors have length 1. For an index on one machine, ``build_index`` is
    simpler: it resumes, and can be searched.

    Args:
        batch: An Arrow table with ids and texts.
        model: The folder of a bi-encoder or its name on the hub.
        of: Whose prompt the model puts before the texts.
        id_column: As :func:`evenrank.score_batch` takes it.
        text_column: As :func:`evenrank.score_batch` takes it.
        device: As :func:`evenrank.rerank` takes it.
        precision: As :func:`evenrank.rerank` takes it.
        batch_size: As :func:`evenrank.rerank` takes it.

    Returns:
        ``doc_id`` (or ``query_id``) and ``vector`` (float32, of fixed size), a row a text in the batch's order.

    Raises:
        InputError: For a batch without these columns, a row without id or text, and a model that cannot be loaded.
        EvenrankError: For a model that gives no vector of a text alone.
    """
    own_id = "doc_id" if of == "documents" else "query_id"
    names = Names.of(TextFile("", id_column, text_column), own_id)
    table = texts_of_table(pl.DataFrame(batch), names, id_column=own_id, source="the batch")
    encoder = _encoder(os.fspath(model), device, precision, batch_size)
    texts = table["text"].to_list()
    encode = encoder.documents if of == "documents" else encoder.queries
    # Some models refuse an empty batch, whose vectors have their width too.
    vectors = encode(texts or [""])[: len(texts)]
    return arrow_table(table.select(own_id, pl.Series("vector", vectors)))


def _texts(table: pl.DataFrame, column: str) -> list[str]:
    if column not in table.columns:
        raise InputError("the batch", f"expected a column {column}, found {', '.join(table.columns)}")
    missing = table[column].is_null()
    if missing.any():
        raise InputError("the batch", f"row {missing.to_list().index(True) + 1}: the {column} is missing")
    return cast(list[str], table[column].cast(pl.String).to_list())


_ranker = functools.lru_cache(maxsize=1)(load_ranker)
"""The ranker of this process."""


@functools.lru_cache(maxsize=1)
def _encoder(model: str, device: str | None, precision: Precision, batch_size: int) -> TextEncoder:
    """The encoder of this process."""
    encoder = find_encoder(model, device=device, precision=precision)
    if encoder.sparse:
        raise EvenrankError(f"{model}: its vectors are sparse: expected a bi-encoder")
    return encoder.load(batch_size)
