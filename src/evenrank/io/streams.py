"""Batches on their way through: worked on by threads, written to a file as they come."""

from __future__ import annotations

import io
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, TypeVar

import polars as pl

Given = TypeVar("Given")
Done = TypeVar("Done")
Form = Literal["parquet", "jsonl", "tsv"]


def in_order(work: Callable[[Given], Done], items: Iterable[Given], workers: int | None = None) -> Iterator[Done]:
    """What ``work`` makes of each item, in order, on ``workers`` threads (default: one a core)."""
    workers = workers or os.cpu_count() or 1
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Done]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            # Bounded: the reader must not run ahead of the work.
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


class TableWriter:
    """Appends tables (polars or pyarrow, all with the same columns) to a Parquet, JSONL or headerless TSV file.

    ``rows`` counts what was written. Of Parquet alone: ``metadata`` of the file, ``dictionary``: the columns to write
    by dictionary (True: all).
    """

    def __init__(
        self,
        path: Path,
        form: Form,
        *,
        metadata: dict[bytes, bytes] | None = None,
        dictionary: bool | Sequence[str] = True,
    ) -> None:
        self.path, self.form = path, form
        self.rows = 0
        self._metadata, self._dictionary = metadata, dictionary
        self._open: Any = None

    def __enter__(self) -> TableWriter:
        if self.form != "parquet":
            self._open = self.path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        if self._open is not None:
            self._open.close()

    def encode(self, table: Any) -> Any:
        """A table as it is written, which any thread may make."""
        if self.form == "parquet":
            arrow = table.to_arrow(compat_level=pl.CompatLevel.oldest()) if isinstance(table, pl.DataFrame) else table
            return arrow if self._metadata is None else arrow.replace_schema_metadata(self._metadata)
        frame = table if isinstance(table, pl.DataFrame) else pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        stream = io.BytesIO()
        if self.form == "jsonl":
            frame.write_ndjson(stream)
        else:
            frame.write_csv(stream, include_header=False, separator="\t", quote_style="never")
        return stream.getbuffer()

    def append(self, encoded: Any, rows: int) -> None:
        """Writes what :meth:`encode` made of a table of so many rows."""
        self.rows += rows
        if not rows:
            return
        if self.form != "parquet":
            self._open.write(encoded)
            return
        import pyarrow.parquet as pq

        if self._open is None:
            self._open = pq.ParquetWriter(
                self.path, encoded.schema, compression="zstd", use_dictionary=self._dictionary
            )
        self._open.write_table(encoded)

    def write(self, table: Any) -> None:
        """Appends a table."""
        self.append(self.encode(table), table.height if isinstance(table, pl.DataFrame) else table.num_rows)
