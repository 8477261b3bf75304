"""Reading group tables: Parquet files, folders of them, and frames."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from evenrank.io.convert import frame_of, id_column
from evenrank.io.errors import EvenrankError, InputError, quoted
from evenrank.io.files import open_parquet, polars_table, reading_parquet
from evenrank.io.folders import files_of
from evenrank.io.tables import IdIndex, first_repeat

from .table import REST, GroupTable

if TYPE_CHECKING:
    import pyarrow as pa

METADATA_KEY = b"evenrank"
_UNREADABLE = "no Parquet file that can be read"


def read_group_table(path: str | os.PathLike[str], ids: Sequence[pl.Series] | None = None) -> GroupTable:
    """A file that ``evenrank score`` wrote or a folder of them, whole or for the documents in ``ids``.

    It is read whole if it is no longer than ``ids``. Raises InputError for a file that is no group table: not Parquet,
    a column missing, a repeated id.
    """
    scores = _read(path, ids)
    _release_memory()
    return scores


def _read(path: str | os.PathLike[str], ids: Sequence[pl.Series] | None) -> GroupTable:
    parts: list[pl.DataFrame] = []
    kept: set[bytes | None] = set()
    files = files_of(path)
    rows = 0
    for name in files:
        with open_parquet(name, _UNREADABLE) as file:
            rows += file.metadata.num_rows
            kept.add((file.metadata.metadata or {}).get(METADATA_KEY))
    index = IdIndex(ids) if ids is not None and sum(map(len, ids)) < rows else None
    for name in files:
        with open_parquet(name, _UNREADABLE) as file:
            columns = [column for column in file.schema_arrow.names if _is_known(column)]
            if "doc_id" not in columns:
                raise InputError(name, "no group table: it has no column doc_id")
            parts += [_batch(name, batch, index) for batch in file.iter_batches(batch_size=1 << 18, columns=columns)]
    if not parts:
        raise InputError(path, "no group table: it has no rows")
    if len(kept) > 1:
        raise InputError(path, "its files were scored with different settings")
    stored = kept.pop()
    try:
        settings = json.loads(stored) if stored else None
    except (ValueError, RecursionError):
        settings = ()
    if settings is not None and not isinstance(settings, dict):
        raise InputError(path, "damaged: its settings are no JSON object")
    with reading_parquet(path, _UNREADABLE):
        table = pl.concat(parts)
        try:
            scores = GroupTable.of(table, _checked(path, settings), source=f"the scores {os.fspath(path)}")
        except InputError:
            raise
        except EvenrankError as error:
            raise InputError(path, str(error)) from None
        if len(scores.shares) != len(scores.groups) or not {*(scores.poles or ())} <= {*scores.groups, REST}:
            raise InputError(path, "damaged: its settings do not fit its groups")
        repeat = first_repeat(table, ["doc_id"])
        if repeat is not None:
            raise InputError(path, f"the document {quoted(table['doc_id'][repeat[1]])} is repeated")
    return scores


def _release_memory() -> None:
    """Gives back what pyarrow keeps for more files."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


def _is_known(column: str) -> bool:
    return column in ("doc_id", "tokens", "neutrality") or column.startswith(("count_", "magnitude_"))


def scan_ids(path: str | os.PathLike[str]) -> Iterator[pl.DataFrame]:
    """The ids of a group table's documents, ``doc_id``, in batches. Raises InputError for what is no Parquet file."""
    for name in files_of(path):
        with open_parquet(name, _UNREADABLE) as file:
            for batch in file.iter_batches(batch_size=1 << 18, columns=["doc_id"]):
                yield _batch(name, batch, None)


def as_group_table(given: object, ids: Sequence[pl.Series] | None = None, what: str = "`scores`") -> GroupTable:
    """A group table from a path (see :func:`read_group_table`), a frame, or a :class:`GroupTable` as it is.

    Raises EvenrankError, which begins with ``what``, for a frame that is no group table and for anything else.
    """
    if isinstance(given, GroupTable):
        return given
    if isinstance(given, str | os.PathLike):
        return read_group_table(given, ids)
    table = frame_of(given, what)
    if table is None:
        raise EvenrankError(f"{what}: expected a path, a GroupTable or a frame, found {type(given).__name__}")
    if "doc_id" in table.columns:
        table = table.with_columns(id_column(table["doc_id"], "doc_id", what))
    try:
        scores = GroupTable.of(table)
    except EvenrankError as error:
        raise EvenrankError(f"{what}: {error}") from None
    repeat = first_repeat(table, ["doc_id"])
    if repeat is not None:
        raise EvenrankError(f"{what}: the document {quoted(table['doc_id'][repeat[1]])} is repeated")
    return scores


def _checked(path: str | os.PathLike[str], settings: dict[str, object] | None) -> dict[str, object] | None:
    """The settings; raises InputError if those that are used have the wrong form."""
    shares, poles = (settings or {}).get("shares") or [], (settings or {}).get("poles") or []
    numbers = isinstance(shares, list) and all(type(share) in (int, float) and 0 <= share <= 1 for share in shares)
    pair = isinstance(poles, list) and all(isinstance(pole, str) for pole in poles) and len(poles) in (0, 2)
    if not (numbers and pair):
        raise InputError(
            path, "damaged: expected numbers from 0 to 1 as shares and two groups as poles in its settings"
        )
    return settings


def _batch(path: str, batch: pa.RecordBatch, ids: IdIndex | None) -> pl.DataFrame:
    table = polars_table(path, batch).with_columns(pl.col("doc_id").cast(pl.String))
    return table if ids is None else table.filter(ids.among(table["doc_id"]))
