"""Files with named columns (CSV, TSV, JSONL, Parquet), read whole, with the line of each row for messages."""

from __future__ import annotations

import csv
import io
import json
import os
from contextlib import suppress
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from .errors import EvenrankError, InputError, quoted
from .files import line_blocks, open_binary, open_parquet, polars_table, read_bytes, refuse_pipe
from .types import Array

DOCUMENT = ("doc_id", "docno", "docid", "corpus-id", "pid", "id", "_id")
"""What the column of document ids may be called."""
_PARQUET_MAGIC = b"PAR1"
_MIXED = (TypeError, ValueError, OverflowError, RecursionError, pl.exceptions.PolarsError)


@dataclass(frozen=True, slots=True)
class Columns:
    """A table with named columns and where it is from: a ``path``, or an argument named by ``what``.

    ``lines`` [N]: the line of each row; None in memory and in Parquet.
    """

    table: pl.DataFrame
    path: str | None = None
    what: str = ""
    lines: Array | None = field(default=None, repr=False)

    def error(self, message: str, row: int | None = None) -> EvenrankError:
        """An error about the table, or about one of its rows, that says where that is."""
        if self.path is not None and (row is None or self.lines is not None):
            return InputError(self.path, message, line=None if row is None else int(self.lines[row]))  # type: ignore[index]
        place = "" if row is None else f"row {row + 1}: "
        if self.path is not None:
            return InputError(self.path, f"{place}{message}")
        return EvenrankError(f"{self.what}: {place}{message}")

    def line(self, row: int) -> str:
        """A row's place in words: ``line 3``, or ``row 2`` of what has no lines."""
        return f"row {row + 1}" if self.lines is None else f"line {int(self.lines[row])}"


def is_parquet(path: str | os.PathLike[str]) -> bool:
    """Whether a file is Parquet, by its first bytes."""
    with open_binary(path) as stream:
        return read_bytes(path, stream, 4) == _PARQUET_MAGIC


def read_columns(path: str | os.PathLike[str]) -> Columns:
    """The columns of a CSV or TSV file with a header line, of JSONL objects or of Parquet, by content; gzip too.

    Values of CSV and TSV are strings. Raises InputError, with the line, for a line with too few or too many values,
    two columns of one name, and what is no JSON object.
    """
    refuse_pipe(path)
    name = os.fspath(path)
    if is_parquet(path):
        with open_parquet(path) as file:
            return Columns(polars_table(path, file.read()), name)
    data = b"".join(block.data for block in line_blocks(path))
    if not data.strip():
        raise InputError(path, "the file contains no rows")
    return _from_json(name, data) if data.lstrip()[:1] == b"{" else _from_csv(name, data)


def _from_csv(path: str, data: bytes) -> Columns:
    head = data.lstrip(b"\n").partition(b"\n")[0].decode()
    # Spreadsheets in many languages write semicolons.
    separator = "\t" if "\t" in head else ";" if ";" in head and "," not in head else ","
    values = _regular(data, head, separator)
    if values is not None:
        return _named(path, head.split(separator), values, np.arange(1, len(values[0]) + 2))
    rows: list[list[str]] = []
    lines: list[int] = []
    reader = csv.reader(io.StringIO(data.decode(), newline=""), delimiter=separator, strict=True)
    line = 1
    try:
        for row in reader:
            if any(value.strip() for value in row):
                if rows and len(row) != len(rows[0]):
                    expected = f"expected {len(rows[0])} values ({', '.join(rows[0])}), found {len(row)}"
                    raise InputError(path, f"{expected}: {quoted(separator.join(row))}", line=line)
                rows.append(row)
                lines.append(line)
            # A row with line breaks in quotes is named by its first line.
            line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(path, f"no valid CSV: {error}", line=line) from None
    columns = [pl.Series([row[i] for row in rows[1:]], dtype=pl.String) for i in range(len(rows[0]))]
    return _named(path, rows[0], columns, np.array(lines, dtype=np.int64))


def _regular(data: bytes, head: str, separator: str) -> list[pl.Series] | None:
    """The columns of a CSV file without quotes, empty lines or lines of another length; None for any other."""
    lines, separators = data.count(b"\n"), head.count(separator)
    # polars takes a line that is too short for one with empty values, and refuses one that is too long.
    if not separators or b'"' in data or b"\r" in data or data.count(separator.encode()) != separators * lines:
        return None
    if f"\n{separator * separators}\n".encode() in data:
        return None
    try:
        table = pl.read_csv(
            data,
            has_header=False,
            skip_rows=1,
            separator=separator,
            infer_schema=False,
            empty_string_is_null=False,
            quote_char=None,
        )
    except pl.exceptions.PolarsError:
        return None
    fits = table.height == lines - 1 and table.width == separators + 1
    return table.get_columns() if fits else None


def _named(path: str, names: list[str], values: list[pl.Series], lines: Array) -> Columns:
    """Columns with these names; ``lines`` [N + 1]: of the names and of each row."""
    names = [name.strip() for name in names]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise InputError(path, f"two columns are named {quoted(repeated)}", line=int(lines[0]))
    columns = [column.alias(name) for name, column in zip(names, values, strict=True)]
    return Columns(pl.DataFrame(columns), path, "", lines[1:])


def _from_json(path: str, data: bytes) -> Columns:
    records: list[dict[str, object]] = []
    lines: list[int] = []
    for number, line in enumerate(data.decode().split("\n"), 1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
            if "\\u" in line:
                json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            message = f"expected Unicode, found half a surrogate pair: {quoted(line)}"
            raise InputError(path, message, line=number) from None
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise InputError(path, f"expected a JSON object, found {quoted(line)}", line=number)
        records.append(value)
        lines.append(number)
    names = list(dict.fromkeys(name for record in records for name in record))
    columns = [_series(name, [record.get(name) for record in records]) for name in names]
    return Columns(pl.DataFrame(columns), path, "", np.array(lines, dtype=np.int64))


def _series(name: str, values: list[object]) -> pl.Series:
    # What is nested has no use here, and polars takes minutes for what is nested deeply.
    if any(isinstance(part, dict | list) for v in values for part in ([v] if isinstance(v, dict) else _parts(v))):
        return pl.Series(name, values, dtype=pl.Object)
    with suppress(*_MIXED):
        return pl.Series(name, values, strict=True)
    # JSON writes 1.0 as 1, and one group as itself.
    if all(value is None or type(value) in (int, float) for value in values):
        with suppress(*_MIXED):
            return pl.Series(name, [None if value is None else float(value) for value in values])  # type: ignore[arg-type]
    with suppress(*_MIXED):
        return pl.Series(name, [[value] if isinstance(value, str) else value for value in values], strict=True)
    return pl.Series(name, values, dtype=pl.Object)


def _parts(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def column_named(given: Columns, names: tuple[str, ...]) -> str:
    """The name of the first of the columns ``names`` that the table has. Raises EvenrankError if it has none."""
    found = next((name for name in names if name in given.table.columns), None)
    if found is None:
        has = ", ".join(map(str, given.table.columns[:10])) or "none"
        line = 0 if given.lines is not None else None
        message = f"expected a column {names[0]}, found the columns {quoted(has, 120)[1:-1]}"
        if line is None or given.path is None:
            raise given.error(message)
        raise InputError(given.path, message, line=1)
    return found
