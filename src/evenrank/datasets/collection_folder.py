"""A collection as a folder of the files that every command reads."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from evenrank.io.outputs import atomic_path, make_folder

SPLITS = ("train", "valid", "test")
FILES = ("collection.tsv", "queries.tsv", *(f"queries.{split}.tsv" for split in SPLITS))
"""Files that :func:`write_collection` writes or removes, apart from the judgements."""


def write_collection(
    folder: str | os.PathLike[str], collection: pl.DataFrame, queries: pl.DataFrame, **judgements: pl.DataFrame
) -> Path:
    """Writes collection.tsv, queries.tsv, queries.SPLIT.tsv for splits with queries, and judgements as NAME.txt (TREC).

    ``collection``: ``doc_id``, ``text``; ``queries``: ``query_id``, ``text``, ``split``; judgements: ``query_id``,
    ``doc_id``, ``relevance``. Texts must not contain tabs or line ends. Each file is written whole or not at all.
    Creates the folder if needed and returns it. Raises InputError if it cannot be written.
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
