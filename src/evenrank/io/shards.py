"""Collections of several files, and the parts of files that can be read apart."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import EvenrankError, InputError
from .files import file_system, is_gzip, open_parquet, open_raw

if TYPE_CHECKING:
    import polars as pl

SHARD_BYTES = 1 << 26
UNFINISHED = "_unfinished.json"
"""In a folder that a command is writing parts into; it goes when all are there."""


def files_of(path: str | os.PathLike[str]) -> list[str]:
    """The files that a path names: itself, those of a folder, or those that match a pattern, in the order of names.

    In a folder names that begin with ``.`` or ``_`` are left out, and manifests. Raises InputError for a folder that
    holds none, or that a command has not finished.
    """
    name = os.fspath(path)
    elsewhere = file_system(name)
    if elsewhere is None:
        if os.path.isdir(name):
            inside = sorted(entry.path for entry in os.scandir(name) if entry.is_file())
        elif os.path.lexists(name) or not glob.has_magic(name):
            return [name]
        else:
            inside = sorted(file for file in glob.glob(name) if os.path.isfile(file))
    else:
        system, place = elsewhere
        if glob.has_magic(place):
            inside = sorted(system.unstrip_protocol(file) for file in system.glob(place))
        elif system.isdir(place):
            inside = sorted(system.unstrip_protocol(file) for file in system.ls(place, detail=False))
        else:
            return [name]
    if any(os.path.basename(file) == UNFINISHED for file in inside):
        raise InputError(name, "unfinished: the command that writes it has to be run again")
    kept = [file for file in inside if not os.path.basename(file).startswith((".", "_"))]
    kept = [file for file in kept if not file.endswith(".manifest.json")]
    if not kept:
        raise InputError(name, "no file in it")
    return kept


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a file that can be read apart: bytes (whole lines) or row groups ``start`` to ``stop`` (−1: all)."""

    path: str
    start: int
    stop: int


def shards_of(path: str | os.PathLike[str], size: int = SHARD_BYTES) -> list[Shard]:
    """The files of a path in parts of about ``size`` bytes; gzip files whole.

    Raises InputError for a file that cannot be read, and EvenrankError for a data set of ir_datasets.
    """
    if os.fspath(path).startswith("irds:"):
        raise EvenrankError(f"{os.fspath(path)}: --engine ray reads files: TSV, JSONL or Parquet")
    found = []
    for file in files_of(path):
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
                # A cut stands behind the end of a line.
                stream.seek(min(start + size, end))
                stream.readline()
                stop = min(stream.tell(), end)
                found.append(Shard(file, start, stop))
                start = stop
                if end == 0:
                    break
    if not found:
        raise InputError(path, "the file holds no text")
    return found


def _row_groups(file: str, size: int) -> Iterator[Shard]:
    import pyarrow as pa

    try:
        with open_parquet(file) as opened:
            metadata = opened.metadata
    except (pa.ArrowException, OSError) as error:
        raise InputError(file, f"damaged Parquet file ({str(error).splitlines()[0]})") from None
    start = total = 0
    for group in range(metadata.num_row_groups):
        total += metadata.row_group(group).total_byte_size
        if total >= size or group == metadata.num_row_groups - 1:
            yield Shard(file, start, group + 1)
            start, total = group + 1, 0


def shard_batches(shard: Shard) -> Iterator[pl.DataFrame]:
    """The documents of a shard, as :func:`evenrank.io.scan_collection` gives those of a file.

    Raises InputError with the line in the whole file.
    """
    from .texts import _file_batches

    span = None if shard.stop < 0 else (shard.start, shard.stop)
    try:
        yield from (batch for batch in _file_batches(shard.path, "doc_id", span) if batch.height)
    except InputError as error:
        if error.line is None or shard.start == 0:
            raise
        before = 0
        with open_raw(shard.path) as stream:
            for _ in range(0, shard.start, 1 << 20):
                before += stream.read(min(1 << 20, shard.start - stream.tell())).count(b"\n")
        raise InputError(error.path, error.message, line=before + error.line - 1) from None


def part_name(number: int, form: str) -> str:
    """The name of a part: ``part-000012.parquet``."""
    return f"part-{number:06d}.{form}"


def joined(folder: str | os.PathLike[str], name: str) -> str:
    """A file in a folder, of this machine or a URL."""
    text = os.fspath(folder)
    return f"{text.rstrip('/')}/{name}" if "://" in text else str(Path(text) / name)
