"""A collection as a folder of files, which every command reads."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from .written import atomic_path, make_folder

SPLITS = ("train", "valid", "test")
FILES = ("collection.tsv", "queries.tsv", *(f"queries.{split}.tsv" for split in SPLITS))
"""What :func:`write_collection` writes, or removes, beside the judgements."""


def write_collection(
    folder: str | os.PathLike[str], collection: pl.DataFrame, queries: pl.DataFrame, **judgements: pl.DataFrame
) -> Path:
    """Writes collection.tsv, queries.tsv, queries.SPLIT.tsv of splits that have queries, NAME.txt (TREC) of judgements.

    ``collection``: ``doc_id``, ``text``; ``queries``: ``query_id``, ``text``, ``split``; judgements: ``query_id``,
    ``doc_id``, ``relevance``. Texts without tabs and line ends. Each file appears whole or not at all. Returns the
    folder, which is made where it does not exist. Raises InputError where it cannot be written.
    """
    target = make_folder(folder)
    _write_lines(collection, target / "collection.tsv", "\t")
    texts = queries.select("query_id", "text")
    _write_lines(texts, target / "queries.tsv", "\t")
    for split in SPLITS:
        of_split, path = texts.filter(queries["split"] == split), target / f"queries.{split}.tsv"
        if of_split.height:
            _write_lines(of_split, path, "\t")
        else:
            path.unlink(missing_ok=True)
    for name, table in judgements.items():
        lines = table.select("query_id", pl.lit("0").alias("iteration"), "doc_id", "relevance")
        _write_lines(lines, target / f"{name}.txt", " ")
    return target


def _write_lines(table: pl.DataFrame, path: Path, separator: str) -> None:
    with atomic_path(path) as part:
        table.write_csv(part, include_header=False, separator=separator, quote_style="never")
