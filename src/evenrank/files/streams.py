"""Streams of batches, written to one file."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

import polars as pl

from .errors import InputError, quoted, require_fast
from .outputs import PARTS
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


def arrow_table(table: pl.DataFrame, metadata: Mapping[str, str] | None = None) -> pa.Table:
    """A table as pyarrow's, with metadata in its schema."""
    return table.to_arrow(compat_level=pl.CompatLevel.oldest()).replace_schema_metadata(metadata)


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
