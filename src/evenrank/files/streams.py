"""Streams of batches: parts of files read independently, worked on, written to one file."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

import polars as pl

from .errors import EvenrankError, InputError, arg, quoted, require_fast
from .markdown import is_text_folder
from .outputs import PARTS
from .reading import files_of, is_packed, open_parquet, open_raw, refuse_pipe
from .texts import Names, file_batches, has_heading
from .threads import in_order

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


Form = Literal["parquet", "jsonl", "tsv"]


def form_of(out: str | os.PathLike[str]) -> Form:
    """The form that a file's or a folder's name asks for: JSONL, Parquet, or else TSV. Raises InputError for gzip."""
    name = os.fspath(out).rstrip("/")
    if name.endswith(".gz"):
        raise InputError(out, "expected a TSV, .jsonl or .parquet to write, found .gz")
    return "jsonl" if name.endswith(".jsonl") else "parquet" if name.endswith(".parquet") else "tsv"


def check_tsv_ids(ids: pl.Series, out: str | os.PathLike[str]) -> None:
    """Raises InputError, naming the output, for an id that a TSV cannot hold."""
    bad = ids.filter(ids.str.contains(r"[\t\r\n]"))
    if len(bad):
        raise InputError(out, f"a TSV cannot hold the id {quoted(bad[0])}: write .jsonl or .parquet")


class TableWriter:
    """Appends tables (polars or pyarrow, all with the same columns) to a Parquet, JSONL or headerless TSV file.

    ``rows``: number of rows written.
    """

    def __init__(self, path: Path, form: Form) -> None:
        if form == "parquet":
            require_fast("Parquet written part by part")
        self.path, self.form = path, form
        self.rows = 0
        self._file: IO[bytes] | None = None
        self._parquet: pq.ParquetWriter | None = None

    def __enter__(self) -> TableWriter:
        if self.form != "parquet":
            self._file = self.path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        for opened in (self._file, self._parquet):
            if opened is not None:
                opened.close()

    def encode(self, table: pl.DataFrame | pa.Table) -> pa.Table | memoryview:
        """A table encoded for :meth:`append`; can be called from any thread."""
        if self.form == "parquet":
            return table.to_arrow(compat_level=pl.CompatLevel.oldest()) if isinstance(table, pl.DataFrame) else table
        frame = table if isinstance(table, pl.DataFrame) else pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        stream = io.BytesIO()
        if self.form == "jsonl":
            frame.write_ndjson(stream)
        else:
            frame.write_csv(stream, include_header=False, separator="\t", quote_style="never")
        return stream.getbuffer()

    def append(self, encoded: pa.Table | memoryview, rows: int) -> None:
        """Writes a table of ``rows`` rows that :meth:`encode` returned."""
        self.rows += rows
        if not rows:
            return
        if isinstance(encoded, memoryview):
            assert self._file is not None
            self._file.write(encoded)
            return
        import pyarrow.parquet as pq

        if self._parquet is None:
            self._parquet = pq.ParquetWriter(self.path, encoded.schema, compression="zstd")
        self._parquet.write_table(encoded)

    def write(self, table: pl.DataFrame | pa.Table) -> None:
        """Appends a table."""
        self.append(self.encode(table), table.height if isinstance(table, pl.DataFrame) else table.num_rows)


def write_parquet(tables: Iterable[pl.DataFrame], path: Path, metadata: dict[str, str]) -> Iterator[int]:
    """Writes tables with the same columns as one Parquet file with ``metadata``; yields the rows of each.

    Memory holds a few of them. They are first written one by one to the folder ``path.parts``.
    """
    folder = Path(f"{path}{PARTS}")
    folder.mkdir()

    def write(numbered: tuple[int, pl.DataFrame]) -> int:
        number, table = numbered
        table.write_parquet(folder / f"{number:08}", compression="lz4", statistics=False)
        return table.height

    try:
        # Beside the making of the next ones.
        yield from in_order(write, enumerate(tables), 1)
        parts = sorted(folder.iterdir())
        if parts:
            pl.scan_parquet(parts, glob=False).sink_parquet(path, metadata=metadata, row_group_size=_ROW_GROUP)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_ROW_GROUP = 1 << 18
SHARD_BYTES = 1 << 26


@dataclass(frozen=True, slots=True)
class Shard:
    """A part of a file that can be read independently.

    ``start`` to ``stop`` (−1: all) are byte offsets of whole lines, or Parquet rows.
    """

    path: str
    start: int
    stop: int
    names: Names


def shards_of(path: object, size: int = SHARD_BYTES) -> list[Shard]:
    """The files of a path in shards of about ``size`` bytes; packed files and CSV are not split.

    Raises InputError for a file that cannot be read, and EvenrankError for a data set of ir_datasets.
    """
    if not isinstance(path, str | os.PathLike) or os.fspath(path).startswith("irds:") or is_text_folder(path):
        name = os.fspath(path) if isinstance(path, str | os.PathLike) else arg.collection
        raise EvenrankError(f"{name}: {arg('engine', 'ray')} reads files: TSV, CSV, JSONL or Parquet")
    found: list[Shard] = []
    names = Names.of(path, "doc_id")
    for file in files_of(path):
        refuse_pipe(file)
        with open_raw(file) as stream:
            if is_packed(stream):
                found.append(Shard(file, 0, -1, names))
                continue
            if stream.read(4) == b"PAR1":
                found += _row_shards(file, max(1, round(stream.seek(0, os.SEEK_END) / size)), names)
                continue
            end = stream.seek(0, os.SEEK_END)
            if end and has_heading(file, names):
                found.append(Shard(file, 0, -1, names))
                continue
            start = 0
            while start < end or end == 0:
                # Shards end at the end of a line.
                stream.seek(min(start + size, end))
                while (part := stream.readline(1 << 20)) and not part.endswith(b"\n"):
                    pass
                stop = min(stream.tell(), end)
                found.append(Shard(file, start, stop, names))
                start = stop
                if end == 0:
                    break
    if not found:
        raise InputError(path, "the file contains no texts")
    return found


def _row_shards(file: str, parts: int, names: Names) -> Iterator[Shard]:
    with open_parquet(file) as opened:
        rows = opened.height
    step = max(1, -(-rows // parts))
    yield from (Shard(file, start, min(start + step, rows), names) for start in range(0, rows, step))


def shard_batches(shard: Shard) -> Iterator[pl.DataFrame]:
    """The documents of a shard, as :func:`evenrank.files.scan_collection` returns those of a file.

    Line numbers in errors count from the start of the file.
    """
    span = None if shard.stop < 0 else (shard.start, shard.stop)
    try:
        yield from (batch for batch in file_batches(shard.path, "doc_id", shard.names, span) if batch.height)
    except InputError as error:
        if error.line is None or shard.start == 0:
            raise
        before = 0
        with open_raw(shard.path) as stream:
            for _ in range(0, shard.start, 1 << 20):
                before += stream.read(min(1 << 20, shard.start - stream.tell())).count(b"\n")
        raise InputError(error.path, error.message, line=before + error.line - 1) from None
