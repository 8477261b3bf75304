"""Shards: parts of a collection's files that can be read independently."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

import polars as pl

from evenrank.io.errors import EvenrankError, InputError
from evenrank.io.files import files_of, is_gzip, open_parquet, open_raw, refuse_pipe
from evenrank.io.texts import file_batches

SHARD_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a file that can be read independently.

    ``start`` to ``stop`` (−1: all) are byte offsets of whole lines, or Parquet row groups.
    """

    path: str
    start: int
    stop: int


def shards_of(path: object, size: int = SHARD_BYTES) -> list[Shard]:
    """The files of a path in shards of about ``size`` bytes; gzip files are not split.

    Raises InputError for a file that cannot be read, and EvenrankError for a data set of ir_datasets.
    """
    if not isinstance(path, str | os.PathLike) or os.fspath(path).startswith("irds:"):
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else "`collection`"
        raise EvenrankError(f"{name}: `engine='ray'` reads files: TSV, JSONL or Parquet")
    found = []
    for file in files_of(path):
        refuse_pipe(file)
        with open_raw(file) as stream:
            if is_gzip(stream):
                found.append(Shard(file, 0, -1))
                continue
            if stream.read(4) == b"PAR1":
                found += _row_groups(file, size)
                continue
            end = stream.seek(0, os.SEEK_END)
            start = 0
            while start < end or end == 0:
                # Shards end at the end of a line.
                stream.seek(min(start + size, end))
                while (part := stream.readline(1 << 20)) and not part.endswith(b"\n"):
                    pass
                stop = min(stream.tell(), end)
                found.append(Shard(file, start, stop))
                start = stop
                if end == 0:
                    break
    if not found:
        raise InputError(path, "the file contains no texts")
    return found


def _row_groups(file: str, size: int) -> Iterator[Shard]:
    with open_parquet(file) as opened:
        metadata = opened.metadata
    start = total = 0
    for group in range(metadata.num_row_groups):
        total += metadata.row_group(group).total_byte_size
        if total >= size or group == metadata.num_row_groups - 1:
            yield Shard(file, start, group + 1)
            start, total = group + 1, 0


def shard_batches(shard: Shard) -> Iterator[pl.DataFrame]:
    """The documents of a shard, as :func:`evenrank.io.scan_collection` returns those of a file.

    Line numbers in errors count from the start of the file.
    """
    span = None if shard.stop < 0 else (shard.start, shard.stop)
    try:
        yield from (batch for batch in file_batches(shard.path, "doc_id", span) if batch.height)
    except InputError as error:
        if error.line is None or shard.start == 0:
            raise
        before = 0
        with open_raw(shard.path) as stream:
            for _ in range(0, shard.start, 1 << 20):
                before += stream.read(min(1 << 20, shard.start - stream.tell())).count(b"\n")
        raise InputError(error.path, error.message, line=before + error.line - 1) from None
