"""Tables from lines of text and from files with named columns; errors have the line number."""

from __future__ import annotations

import csv
import functools
import io
import itertools
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from .errors import EvenrankError, InputError, arg, quoted, quoted_number, require_fast
from .reading import BOM, LINE_BYTES, Block, Headed, line_blocks, open_binary, open_parquet, read_bytes, refuse_pipe
from .types import Array

Picked = TypeVar("Picked", pl.DataFrame, pl.Series)
_PIECE = 1 << 17
_NUMBERS = (pl.Float64, pl.Int64)


@dataclass(frozen=True, slots=True)
class Layout:
    """The fields of a line, in order: name and type. A field whose name starts with ``_`` is checked and dropped.

    ``lenient``: fields that become null, instead of an error, if their value is not of their type.
    """

    what: str
    fields: dict[str, type[pl.DataType]]
    lenient: tuple[str, ...] = ()

    @property
    def kept(self) -> list[str]:
        """The fields that become columns."""
        return [name for name in self.fields if not name.startswith("_")]

    def expected(self) -> str:
        """The fields, for a message."""
        return f"expected {len(self.fields)} fields ({', '.join(name.lstrip('_') for name in self.fields)})"


def parse_block(path: str | os.PathLike[str], block: Block, layout: Layout) -> pl.DataFrame:
    """A block of lines, separated by spaces, tabs or both, as a table with a ``line`` column.

    Files with exactly one space or one tab between fields are parsed by polars; all others by a slower parser that
    returns the same table, or raises InputError with the line number.
    """
    table = _parse_regular(block, layout)
    if table is None:
        table = _parse_any(path, block, layout)
    return table


def _parse_regular(block: Block, layout: Layout) -> pl.DataFrame | None:
    head = block.data[: block.data.find(b"\n")]
    separator, other = ("\t", b" ") if b"\t" in head else (" ", b"\t")
    if head.count(separator.encode()) != len(layout.fields) - 1 or other in block.data or csv_drops(block.data):
        return None
    table = _read_csv(block, layout.fields, separator)
    if table is None and layout.lenient:
        loose = {name: pl.String if name in layout.lenient else kind for name, kind in layout.fields.items()}
        table = _read_csv(block, loose, separator)
    # A null is an empty field (two separators in a row) or a short line.
    if table is None or table.height != block.lines or any(table.null_count().row(0)):
        return None
    table = table.with_columns(pl.col(name).cast(layout.fields[name], strict=False) for name in layout.lenient)
    floats = [pl.col(name).is_finite().all() for name, kind in layout.fields.items() if kind is pl.Float64]
    if floats and not all(table.select(pl.all_horizontal(floats)).row(0)):
        return None
    return table.select(
        *layout.kept, pl.int_range(block.first_line, block.first_line + table.height, dtype=pl.UInt32).alias("line")
    )


def csv_drops(data: bytes) -> bool:
    """Whether polars' CSV reader would drop some bytes: a carriage return at a field's end, or a byte-order mark."""
    return b"\r" in data or data.startswith(BOM)


def _read_csv(block: Block, schema: Mapping[str, type[pl.DataType]], separator: str) -> pl.DataFrame | None:
    try:
        return pl.read_csv(block.data, has_header=False, separator=separator, quote_char=None, schema=schema)
    except pl.exceptions.PolarsError:
        return None


def lines_of(block: Block) -> pl.DataFrame:
    """The block's lines that are not blank, as ``line`` (number) and ``content``."""
    content = pl.Series("content", [block.data[:-1].decode()]).str.split("\n").explode()
    numbered = pl.DataFrame({"content": content}).with_row_index("line", offset=block.first_line)
    return numbered.filter(pl.col("content").str.strip_chars() != "")


def _parse_any(path: str | os.PathLike[str], block: Block, layout: Layout) -> pl.DataFrame:
    lines = lines_of(block)
    pattern = r"^[ \t]*" + r"[ \t]+".join(f"(?<f{i}>[^ \t]+)" for i in range(len(layout.fields))) + r"[ \t]*$"
    parsed = lines.with_columns(pl.col("content").str.extract_groups(pattern).alias("g")).unnest("g")
    bad = parsed.filter(pl.col("f0").is_null())
    if bad.height:
        line, content = bad.row(0)[:2]
        count = len(re.split(r"[ \t]+", content.strip(" \t")))
        raise InputError(path, f"{layout.expected()} of {layout.what}, found {count}: {quoted(content)}", line=line)
    columns: list[pl.Expr] = []
    for i, (name, kind) in enumerate(layout.fields.items()):
        column = pl.col(f"f{i}")
        if name in layout.lenient:
            column = column.cast(kind, strict=False)
        elif kind in _NUMBERS:
            number = column.cast(kind, strict=False)
            wrong = number.is_null() if kind is pl.Int64 else ~number.is_finite().fill_null(False)
            bad = parsed.filter(wrong)
            if bad.height:
                noun = "a whole number" if kind is pl.Int64 else "a finite number"
                value = quoted_number(bad[f"f{i}"][0])
                raise InputError(path, f"expected {noun} as {name.lstrip('_')}, found {value}", line=bad["line"][0])
            column = number
        columns.append(column.alias(name))
    return parsed.select(*columns, pl.col("line").cast(pl.UInt32)).select(*layout.kept, "line")


def first_repeat(table: pl.DataFrame, keys: list[str]) -> tuple[int, int] | None:
    """The rows of the first repeated combination of ``keys`` (text columns), (earlier, repeated), or None.

    Only rows with equal hashes are compared exactly.
    """
    hashes = table.select(keys).hash_rows()
    if hashes.n_unique() == len(hashes):
        return None
    rows = table.select(keys).with_row_index("row").filter(hashes.is_duplicated())
    again = rows.filter(~pl.struct(keys).is_first_distinct())
    if not again.height:
        return None
    repeat = again.row(0, named=True)
    earlier = rows.filter(*[pl.col(key) == repeat[key] for key in keys])["row"][0]
    return int(earlier), int(repeat["row"])


def pick(values: Picked, rows: Array) -> Picked:
    """``values[rows]`` of a long table or column, for a few distinct rows.

    Selected by mask and then sorted: selecting by number would make polars first copy all chunks into one.
    """
    wanted = np.zeros(len(values), dtype=bool)
    wanted[rows] = True
    return values.filter(pl.Series(wanted))[np.searchsorted(np.sort(rows), rows)]


def text_bytes(texts: pl.Series) -> tuple[Array, Array]:
    """The UTF-8 bytes [B] of texts [N], and the offsets [N + 1] of each text's start and the last one's end."""
    require_fast("reading the bytes of texts")
    # The oldest form of Arrow that polars writes has offsets of 64 bits.
    column = texts.cast(pl.String).rechunk().to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = column.buffers()
    begins = np.frombuffer(offsets, dtype=np.int64)[column.offset : column.offset + len(column) + 1]
    return np.frombuffer(data, dtype=np.uint8) if data else np.zeros(0, dtype=np.uint8), begins


class IdIndex:
    """The positions of ids in a list of ids, looked up by 64-bit hash: millions per second, some twenty bytes per id.

    Among millions of ids, the chance that two have the same hash, and are taken for one, is about one in a million.
    """

    def __init__(self, ids: Iterable[pl.Series]) -> None:
        self._ids = pl.concat([part.rename("id") for part in ids], rechunk=False)
        self._hashes = self._ids.hash().to_numpy()

    @functools.cached_property
    def _slots(self) -> tuple[Array, Array, Array]:
        """A row for the last bits of a hash; the rows whose slot another one has, and their hashes, which rise."""
        size = 1 << min(24, max(10, (4 * len(self._hashes)).bit_length()))
        slots = np.full(size, -1, dtype=np.int32)
        rows = np.arange(len(self._hashes), dtype=np.int32)
        slot = self._hashes & np.uint64(size - 1)
        # One id gets each slot; other ids of that slot, unless they repeat it, are found by binary search.
        slots[slot[::-1]] = rows[::-1]
        others = rows[self._hashes != self._hashes[slots[slot]]]
        others = others[np.argsort(self._hashes[others], kind="stable")]
        return slots, others, self._hashes[others]

    def places(self, ids: pl.Series) -> NDArray[np.int32]:
        """The first position [N] in the list of each of ``ids``, −1 for ids that are not in it."""
        # In pieces: intermediate arrays take several times the memory of the result.
        pieces = [self.hashed_places(ids[start : start + _PIECE].hash()) for start in range(0, len(ids), _PIECE)]
        return np.concatenate(pieces) if pieces else np.zeros(0, dtype=np.int32)

    def hashed_places(self, hashes: pl.Series) -> NDArray[np.int32]:
        """:meth:`places` of ids by their :meth:`polars.Series.hash`, if several lists are asked about the same ids."""
        wanted = hashes.to_numpy()
        slots, others, other_hashes = self._slots
        place: NDArray[np.int32] = slots[wanted & np.uint64(len(slots) - 1)]
        if not len(self._hashes):
            return place
        rows = np.flatnonzero((place >= 0) & (self._hashes[place] != wanted))
        place[rows] = -1
        if len(others) and len(rows):
            at = np.minimum(np.searchsorted(other_hashes, wanted[rows]), len(others) - 1)
            same = other_hashes[at] == wanted[rows]
            place[rows[same]] = others[at[same]]
        return place

    def among(self, ids: pl.Series) -> pl.Series:
        """Whether each of ``ids`` is in the list."""
        return pl.Series(self.places(ids) >= 0)


DOCUMENT = ("doc_id", "docno", "docid", "corpus-id", "pid", "id", "_id")
"""What the column of document ids may be called."""
QUERY = ("query_id", "qid", "query-id")
"""The same of query ids."""
_PARQUET_MAGIC = b"PAR1"
MIXED = (TypeError, ValueError, OverflowError, RecursionError, pl.exceptions.PolarsError)
"""What polars and pyarrow raise for values without a common type."""


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
            return Columns(file.read(), name)
    return columns_in(name, b"".join(block.data for block in line_blocks(path)))


def columns_in(path: str, data: bytes) -> Columns:
    """The columns of the text of such a file."""
    if not data.strip():
        raise InputError(path, "the file contains no rows")
    if data.lstrip()[:1] == b"{":
        return _from_json(path, data)
    parts = list(csv_parts(path, [Block(data, 1, data.count(b"\n"))]))
    if not parts:
        raise InputError(path, "the file contains no rows")
    lines = np.concatenate([part.lines for part in parts if part.lines is not None])
    return Columns(pl.concat([part.table for part in parts]), path, "", lines)


def separator_of(head: str) -> str:
    """What separates the names in the heading of a CSV or TSV file: spreadsheets in many languages write semicolons."""
    return "\t" if "\t" in head else ";" if ";" in head and "," not in head else ","


def names_in(head: str) -> list[str]:
    """The names in what may be the heading of a CSV or TSV file."""
    try:
        return [name.strip() for name in next(csv.reader([head], delimiter=separator_of(head)), [])]
    except csv.Error:
        return []


def lines_or_columns(
    path: str | os.PathLike[str], layout: Layout, columns: Mapping[str, Sequence[str]]
) -> tuple[pl.DataFrame | None, object]:
    """The table of a file in this layout, with a ``line`` column, or None and what a file of another form holds.

    Another form: CSV, TSV, JSONL or Parquet with columns of queries and documents, whose names ``columns`` has; one
    JSON object of objects; other programs' answers. Each is told by the content, which is read once: it may be a
    pipe's.
    """
    name = os.fspath(path)
    with open_binary(path) as stream:
        head = read_bytes(path, stream, len(_PARQUET_MAGIC))
        if head == _PARQUET_MAGIC:
            return None, read_columns(path).table
        # JSON may be one line; what is packed could unpack to any length.
        is_json = head.removeprefix(BOM).lstrip()[:1] == b"{" and isinstance(stream, io.BufferedReader)
        blocks = line_blocks(path, stream=Headed(head, stream), limit=sys.maxsize if is_json else None)
        first = next(blocks)
        line = first.data.lstrip().partition(b"\n")[0].decode()
        if line.startswith("{"):
            data = b"".join(block.data for block in (first, *blocks))
            nested = _nested(name, data)
            if nested is not None:
                return None, nested
            table = columns_in(name, data).table
            # Answers of a search engine, one a line.
            return None, table.to_dicts() if "hits" in table.columns else table
        if line.startswith("["):
            expected = f"expected {layout.what}, CSV, TSV, JSONL or Parquet with named columns, or a JSON object"
            raise InputError(path, f"{expected}, found a list: {quoted(line)}", line=first.first_line)
        heading = {name.lower() for name in names_in(line)} | set(names_in(line))
        of_pairs = not (heading.isdisjoint(columns["query_id"]) or heading.isdisjoint(columns["doc_id"]))
        if of_pairs or not heading.isdisjoint(QUERY):
            table = columns_in(name, b"".join(block.data for block in (first, *blocks))).table
            return None, _known_names(table, {name for names in columns.values() for name in names})
        if len(heading) > 2 and "\t" not in line and len(re.split("[ \t]+", line.strip(" \t"))) < len(layout.fields):
            other = f" ({arg('run_columns', 'query=…,document=…,score=…')} names others)" if "rank" in columns else ""
            expected = f"expected {layout.what}, or columns {', '.join(list(columns)[:3])}{other}"
            raise InputError(path, f"{expected}, found {quoted(line)}", line=first.first_line)
        table = pl.concat([parse_block(path, block, layout) for block in itertools.chain([first], blocks)])
    return table, {}


def _known_names(table: pl.DataFrame, known: Set[str]) -> pl.DataFrame:
    """A table whose columns are called as known whatever their case, as spreadsheets write ``Query``."""
    lower = {name: name.lower() for name in table.columns if name not in known and name.lower() in known}
    return table.rename({name: to for name, to in lower.items() if to not in table.columns})


def _nested(path: str, data: bytes) -> dict[str, object] | None:
    """One JSON object that holds objects or lists; None for JSONL. Raises InputError for a name that is repeated."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            repeated = next(name for name in names if names.count(name) > 1)
            raise InputError(path, f"the name {quoted(repeated)} appears twice in an object")
        return members

    try:
        value = json.loads(data, object_pairs_hook=once)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    nested = all(isinstance(member, dict | list) for member in value.values())
    return value if nested or "hits" in value or "responses" in value else None


def csv_parts(path: str, blocks: Iterable[Block]) -> Iterator[Columns]:
    """The rows of a CSV or TSV file with a heading in tables, as strings; in TSV, quotes are as any other character.

    polars parses the blocks; from the first one on that has quotes, blank lines or an error, a slower parser does.
    Raises InputError, with the line, for a line with too few or too many values and two columns of one name.
    """
    rest = itertools.dropwhile(lambda block: not block.data.strip(), blocks)
    names: list[str] | None = None
    separator = ","
    for block in rest:
        if names is None:
            separator = separator_of(block.data.lstrip(b"\n").partition(b"\n")[0].decode())
        table = _regular(block, separator, names)
        if table is None:
            yield from _odd_rows(path, itertools.chain([block], rest), separator, names)
            return
        lines = np.arange(block.first_line, block.first_line + block.lines)
        if names is None:
            names = _distinct(path, list(map(str, table.row(0))), block.first_line)
            table, lines = table[1:], lines[1:]
        yield _named(path, table.rename(dict(zip(table.columns, names, strict=True))), lines, separator)


def _odd_rows(path: str, blocks: Iterable[Block], separator: str, names: list[str] | None) -> Iterator[Columns]:
    """The rows of blocks, of which the first begins with the heading if ``names`` are None."""
    # The default is 128 KiB, and some texts are books.
    csv.field_size_limit(LINE_BYTES)
    start = 0

    def numbered() -> Iterator[str]:
        nonlocal start
        for block in blocks:
            start = start or block.first_line
            yield from (f"{line}\n" for line in block.data[:-1].decode().split("\n"))

    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    reader = csv.reader(numbered(), delimiter=separator, quoting=quoting, strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    before = 0
    try:
        for row in reader:
            # A row with line breaks in quotes is named by its first line.
            line, before = start + before, reader.line_num
            if not any(value.strip() for value in row):
                continue
            if names is None:
                names = _distinct(path, row, line)
                continue
            if len(row) != len(names):
                expected = f"expected {len(names)} values ({', '.join(names)}), found {len(row)}"
                raise InputError(path, f"{expected}: {quoted(separator.join(row))}", line=line)
            rows.append(row)
            lines.append(line)
            if len(rows) == _PIECE:
                yield _named(path, _strings(rows, names), np.array(lines), separator)
                rows, lines = [], []
    except csv.Error as error:
        raise InputError(path, f"no valid CSV: {error}", line=start + before) from None
    if names is not None:
        yield _named(path, _strings(rows, names), np.array(lines, dtype=np.int64), separator)


def _strings(rows: list[list[str]], names: list[str]) -> pl.DataFrame:
    return pl.DataFrame([pl.Series(name, [row[i] for row in rows], pl.String) for i, name in enumerate(names)])


def _regular(block: Block, separator: str, names: list[str] | None) -> pl.DataFrame | None:
    """The values of a TSV block, or a CSV block without quotes, whose lines all have as many; else None."""
    data = block.data
    separators = (len(names) - 1) if names else data.partition(b"\n")[0].count(separator.encode())
    # polars takes a line that is too short for one with empty values, and refuses one that is too long.
    if (
        not separators
        or (b'"' in data and separator != "\t")
        or csv_drops(data)
        or data.count(separator.encode()) != separators * block.lines
        or f"\n{separator * separators}\n".encode() in b"\n" + data
    ):
        return None
    schema = {f"column_{number}": pl.String for number in range(separators + 1)}
    table = _read_csv(block, schema, separator)
    return None if table is None or table.height != block.lines else table.with_columns(pl.all().fill_null(""))


def _distinct(path: str, names: list[str], line: int) -> list[str]:
    """The names of columns. Raises InputError for two of one name."""
    names = [name.strip() for name in names]
    if len(set(names)) < len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise InputError(path, f"two columns are named {quoted(repeated)}", line=line)
    return names


def _named(path: str, table: pl.DataFrame, lines: Array, separator: str) -> Columns:
    """The table of a file; where semicolons separate values, a decimal comma becomes a point."""
    if separator == ";":
        for name in set(table.columns) - {*DOCUMENT, *QUERY}:
            numbers = table[name].str.contains(r"^[+-]?\d*,?\d+(?:[eE][+-]?\d+)?$")
            if table.height and numbers.all():
                table = table.with_columns(pl.col(name).str.replace(",", ".", literal=True))
    return Columns(table, path, "", lines)


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
    columns = [series(name, [record.get(name) for record in records]) for name in names]
    return Columns(pl.DataFrame(columns), path, "", np.array(lines, dtype=np.int64))


def series(name: str, values: Sequence[object]) -> pl.Series:
    """Values as a column: of their common type if they have one, otherwise of objects."""
    # What is nested has no use here, and polars takes minutes for what is nested deeply.
    if any(isinstance(value, dict | list) for value in values):
        return pl.Series(name, values, dtype=pl.Object)
    with suppress(*MIXED):
        return pl.Series(name, values, strict=True)
    # JSON writes 1.0 as 1.
    if all(value is None or type(value) in (int, float) for value in values):
        with suppress(*MIXED):
            return pl.Series(name, [None if value is None else float(value) for value in values])  # type: ignore[arg-type]
    return pl.Series(name, values, dtype=pl.Object)


def column_named(given: Columns, names: tuple[str, ...], hint: str = "") -> str:
    """The name of the first of the columns ``names`` that the table has. Raises EvenrankError if it has none.

    ``hint``: how a column of a file gets another name.
    """
    column = next((name for name in names if name in given.table.columns), None)
    if column is None:
        has = ", ".join(map(str, given.table.columns[:10])) or "none"
        line = 0 if given.lines is not None else None
        message = f"expected a column {names[0]}, found the columns {quoted(has, 120)[1:-1]}"
        if line is None or given.path is None:
            raise given.error(message)
        raise InputError(given.path, message + hint, line=1)
    return column
