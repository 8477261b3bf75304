"""Collections and queries: an id and a text a row, from TSV, CSV, JSONL, Parquet, Markdown or ir_datasets."""

from __future__ import annotations

import functools
import itertools
import json
import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from . import irds
from .arguments import checked
from .convert import TEXT_COLUMNS, text_table
from .errors import InputError, arg, quoted
from .markdown import MARKDOWN, is_text_folder, passages
from .reading import Block, exists, files_of, joined, line_blocks, open_parquet, refuse_pipe
from .runs import read_qrels
from .tables import (
    DOCUMENT,
    QUERY,
    IdIndex,
    csv_drops,
    csv_parts,
    first_repeat,
    is_parquet,
    lines_of,
    names_in,
    separator_of,
)
from .threads import in_order


@dataclass(frozen=True)
class TextFile(os.PathLike[str]):
    """A collection, or queries, whose columns have other names than the usual ones; a path wherever texts are read.

    ``path``: a file, folder, pattern or URL. ``id_column``, ``text_column``: its columns of ids and texts (CSV, TSV
    with a heading, JSONL or Parquet); None: by the usual names. Several columns of texts, ``"title,body"``, are joined.
    ``judged``: of queries, those that these qrels judge. Reading it raises InputError if it has no such column.
    """

    path: str | os.PathLike[str]
    id_column: str | None = None
    text_column: str | None = None
    judged: str | os.PathLike[str] | None = None

    def __fspath__(self) -> str:
        return os.fspath(self.path)

    def __str__(self) -> str:
        return os.fspath(self.path)


class Names(NamedTuple):
    """What the columns of a file's ids and texts may be called.

    ``joined``: all of ``texts`` are read, one behind another; else the first that is there, behind a ``title``.
    """

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    joined: bool = False
    asked_for: bool = False
    kind: str = "doc_id"

    @classmethod
    def of(cls, path: object, id_column: str) -> Names:
        """Those of a path, which may be a :class:`TextFile`, to documents (``doc_id``) or queries (``query_id``)."""
        ids, texts = TEXT_COLUMNS[id_column].values()
        if not isinstance(path, TextFile):
            return cls(ids, texts, kind=id_column)
        columns = () if path.text_column is None else tuple(path.text_column.split(","))
        return cls(
            ids if path.id_column is None else (path.id_column,),
            columns or texts,
            len(columns) > 1,
            bool(columns) or path.id_column is not None,
            id_column,
        )

    @property
    def expected(self) -> str:
        """The columns, for a message."""
        texts = f"those of {' and '.join(self.texts)}" if self.joined else f"one of {', '.join(self.texts)}"
        return f"expected a column of {', '.join(self.ids)} and {texts}{self.others}"

    @property
    def others(self) -> str:
        """What gives them other names, for a message."""
        queries = self.kind == "query_id"
        options = ("query_id_column", "query_text_column") if queries else ("id_column", "text_column")
        return "" if self.asked_for else f" ({arg(options[0])} and {arg(options[1])} name others)"

    def found(self, names: Container[str]) -> tuple[str, list[str]] | None:
        """The columns of ids and of texts among ``names``, in the order in which the texts are joined."""
        row_id = next((name for name in self.ids if name in names), None)
        texts = [name for name in self.texts if name in names]
        if row_id is None or not texts or (self.joined and len(texts) < len(self.texts)):
            return None
        if self.joined:
            return row_id, texts
        return row_id, ["title", texts[0]] if "title" in names and texts[0] != "title" else texts[:1]


def beir(folder: str | os.PathLike[str], split: str = "test") -> dict[str, str]:
    """A folder in BEIR's form as ``collection``, ``queries`` (all: ``TextFile(…, judged=…)`` has those that are judged)
    and ``qrels``.

    ``folder``, a path or URL, holds ``corpus``, ``queries`` and ``qrels/SPLIT``, each a file (``corpus.jsonl``,
    ``.jsonl.gz``, ``.parquet``, ``.tsv`` …) or a folder of such. Raises InputError for one that lacks one of them::

        evenrank.audit("bm25.run", **evenrank.beir("scifact"))
    """
    return {role: beir_part(folder, role, split) for role in BEIR}


BEIR = {"collection": "corpus", "queries": "queries", "qrels": "qrels/{split}"}
"""What is where in a folder in BEIR's form."""


def beir_part(folder: str | os.PathLike[str], role: str, split: str = "test") -> str:
    """One part of :func:`beir`. Raises InputError for a folder without it."""
    name = BEIR[role].format(split=split)
    path = next(filter(exists, (joined(folder, f"{name}{ending}") for ending in _ENDINGS)), None)
    if path is None and role == "qrels":
        # The Hub has judgements where other data sets have their rows.
        with suppress(InputError):
            shards = joined(folder, f"data/{split}-*")
            path = shards if files_of(shards) != [shards] else None
    if path is None:
        raise InputError(folder, f"expected a folder in BEIR's form, found no {name}.tsv or .jsonl in it")
    return path


_ENDINGS = [*(f".{form}{packed}" for form in ("jsonl", "tsv", "csv") for packed in ("", ".gz", ".zst")), ".parquet", ""]


def parse_jsonl(path: str | os.PathLike[str], block: Block, id_column: str, first: bool, names: Names) -> pl.DataFrame:
    try:
        rows = [json_row(value, names) for value in map(json.loads, filter(str.strip, block.data.decode().split("\n")))]
        return pl.DataFrame(rows, schema={id_column: pl.String, "text": pl.String}, orient="row")
    except (ValueError, RecursionError):
        for line, content in lines_of(block).iter_rows():
            try:
                "".join(json_row(json.loads(content), names)).encode()
            except UnicodeEncodeError:
                raise InputError(
                    path, f"expected Unicode, found half a surrogate pair: {quoted(content)}", line=line
                ) from None
            except (ValueError, RecursionError) as error:
                reason = str(error) if isinstance(error, _FieldError) else "expected a JSON object"
                raise InputError(path, f"{reason}, found {quoted(content)}", line=line) from None
        raise


class _FieldError(ValueError):
    pass


def json_row(value: object, names: Names) -> tuple[str, str]:
    if not isinstance(value, dict):
        raise _FieldError("expected a JSON object")
    row_id = next((value[name] for name in names.ids if name in value), None)
    if isinstance(row_id, bool) or not isinstance(row_id, str | int) or row_id == "":
        raise _FieldError(f"expected a string or an integer under one of {', '.join(names.ids)}{names.others}")
    keys = names.found(value)
    texts = [] if keys is None else [value[name] for name in keys[1]]
    # A title may be missing; of columns that were asked for, all but one.
    if not any(isinstance(text, str) for text in (texts if names.joined else texts[-1:])):
        under = " and ".join(names.texts) if names.joined else f"one of {', '.join(names.texts)}"
        raise _FieldError(f"expected a string under {under}{names.others}")
    return str(row_id), " ".join(text for text in texts if isinstance(text, str) and (text or len(texts) == 1))


Done = TypeVar("Done")
Batch = Callable[[], pl.DataFrame]
"""A batch still to be parsed."""
_LONE_CR = re.compile(rb"\t.*\r[^\t\r]+\t")
# White space as polars (and Unicode) defines it, for blank lines.
_WHITE = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_TEXT_TYPES = (pl.String, pl.Binary, pl.Categorical, pl.Enum, pl.Null)


@checked
def scan_collection(path: str | os.PathLike[str], *, unique: bool = True) -> Iterator[pl.DataFrame]:
    """The documents of a collection, in batches with ``doc_id`` and ``text``, in the collection's order.

    TSV (id, tab, text), CSV or TSV with a heading, JSONL (each plain, gzip or zst) or Parquet, by content, not by name;
    a folder of such files (also in partitions, ``year=2025/``) or a pattern (``shards/*.tsv``), sorted by name; a
    folder of Markdown or text files (a passage a heading, ``path#anchor``); a URL; or ``irds:NAME``. A
    column ``title`` is put before its text. Other names of columns: :class:`TextFile`.
    Memory: a batch a core, plus eight bytes per document for ``unique``, which raises InputError for a repeated id
    after the last batch. Raises InputError, with the line number, for a line that is not a document.
    """
    yield from _worked(path, "doc_id", lambda batch: batch, unique)


@checked
def read_queries(path: str | os.PathLike[str]) -> pl.DataFrame:
    """All queries of a file in one of the formats of :func:`scan_collection`: ``query_id`` and ``text``."""
    table = pl.concat(list(_worked(path, "query_id", lambda batch: batch)))
    if isinstance(path, TextFile) and path.judged is not None:
        table = table.filter(pl.col("query_id").is_in(read_qrels(path.judged)["query_id"].implode()))
    return table


@checked
def read_texts(path: str | os.PathLike[str], ids: pl.Series) -> pl.DataFrame:
    """The documents of a collection named by ``ids``: ``doc_id`` and ``text``, in the collection's order."""
    return pl.concat(list(scan_texts(path, [ids])))


def as_collection(given: object, what: str | None = None) -> str | os.PathLike[str] | pl.DataFrame:
    """A path unchanged; ``{id: text}``, a frame or records as a table with ``doc_id`` and ``text``.

    Raises EvenrankError, starting with ``what``, for anything else.
    """
    return given if isinstance(given, str | os.PathLike) else text_table(given, what or arg.collection)


def as_batches(given: object, what: str | None = None) -> Iterator[pl.DataFrame]:
    """The documents of a collection (see :func:`as_collection`), or of an iterable of frames, in batches."""
    if isinstance(given, str | os.PathLike):
        return scan_collection(given)
    what = what or arg.collection
    if isinstance(given, Iterable) and not isinstance(given, pl.DataFrame | Mapping):
        items = iter(given)
        first = next(items, None)
        if first is None or isinstance(first, pl.DataFrame):
            return (text_table(frame, what) for frame in ([] if first is None else itertools.chain([first], items)))
        # A pandas frame is iterable too; an iterator needs its first item back.
        given = itertools.chain([first], items) if items is given else given
    return iter([text_table(given, what)])


def as_queries(given: object, what: str | None = None) -> pl.DataFrame:
    """Queries, ``query_id`` and ``text``, from a path, ``{id: text}``, a frame or records.

    Raises EvenrankError, starting with ``what``, for anything else; InputError for a file that cannot be used.
    """
    return (
        read_queries(given)
        if isinstance(given, str | os.PathLike)
        else text_table(given, what or arg.queries, "query_id")
    )


@checked
def scan_texts(path: str | os.PathLike[str], ids: Sequence[pl.Series]) -> Iterator[pl.DataFrame]:
    """The documents of a collection named by ``ids``, in batches, so that memory does not have to hold all texts."""
    if irds.is_identifier(path):
        yield irds.texts(os.fspath(path), pl.concat(ids))
        return
    wanted = IdIndex(ids)
    for batch in scan_collection(path):
        yield batch.filter(wanted.among(batch["doc_id"]))


def map_passages(path: str | os.PathLike[str], work: Callable[[pl.DataFrame], Done]) -> Iterator[Done]:
    """``work`` applied to the batches of a collection, in order, on a thread for each core.

    They parse the batches, too. Raises the errors of :func:`scan_collection`.
    """
    return _worked(path, "doc_id", work)


def _worked(
    path: str | os.PathLike[str], id_column: str, work: Callable[[pl.DataFrame], Done], unique: bool = True
) -> Iterator[Done]:
    """``work`` applied to the batches of texts that are not empty; ``unique``: ids must not repeat."""

    def parsed(batch: Batch) -> tuple[NDArray[np.uint64], Done | None]:
        table = batch()
        return table[id_column].hash().to_numpy(), work(table) if table.height else None

    hashes, empty = [np.zeros(0, np.uint64)], True
    for of_batch, done in in_order(parsed, _batches(path, id_column)):
        if unique:
            hashes.append(of_batch)
        if done is not None:
            empty = False
            yield done
    if empty:
        raise InputError(path, "the file contains no texts")
    met = np.sort(np.concatenate(hashes))
    again = met[1:] == met[:-1]
    if again.any():
        _refuse_repeat(path, id_column, pl.Series("hash", np.unique(met[1:][again])))


def _refuse_repeat(path: str | os.PathLike[str], id_column: str, hashes: pl.Series) -> None:
    """Raises InputError for the first repeated id, if any: different ids can have equal hashes."""
    ids = pl.concat(batch().select(id_column) for batch in _batches(path, id_column)).with_row_index("row")
    suspects = ids.filter(pl.col(id_column).hash().is_in(hashes.implode()))
    repeat = first_repeat(suspects, [id_column])
    if repeat is not None:
        first, again = (suspects.row(row, named=True) for row in repeat)
        lines = _lines_with(path, id_column, again[id_column])
        if len(lines) > 1:
            message = f"the id {quoted(again[id_column])} appears twice (first in line {lines[0]})"
            raise InputError(path, message, line=lines[1])
        raise InputError(
            path, f"the id {quoted(again[id_column])} appears twice: texts {first['row'] + 1} and {again['row'] + 1}"
        )


def _lines_with(path: str | os.PathLike[str], id_column: str, wanted: str) -> list[int]:
    """The line numbers of a text file with the id ``wanted``; none for other formats and for several files."""
    if irds.is_identifier(path) or files_of(path) != [os.fspath(path)] or is_parquet(path):
        return []
    lines = []
    names = Names.of(path, id_column)
    for block in line_blocks(path):
        if _heading(block, names):
            return []
        for line, content in lines_of(block).iter_rows():
            of_line = content.partition("\t")[0] if "\t" in content else json_row(json.loads(content), names)[0]
            if of_line == wanted:
                lines.append(int(line))
    return lines


def _batches(path: str | os.PathLike[str], id_column: str) -> Iterator[Batch]:
    if irds.is_identifier(path):
        for table in irds.batches(os.fspath(path), id_column):
            yield table.clone
        return
    of_texts = is_text_folder(path) or os.fspath(path).endswith(MARKDOWN)
    for file in files_of(path):
        if of_texts:
            yield functools.partial(_text_file, path, file, id_column)
        else:
            yield from _file_batches(file, id_column, Names.of(path, id_column))


def _text_file(path: str | os.PathLike[str], file: str, id_column: str) -> pl.DataFrame:
    """The sections of a file of a folder of Markdown or text."""
    rows = [(name, section.text) for name, section in passages(file, path)]
    return pl.DataFrame(rows, {id_column: pl.String, "text": pl.String}, orient="row")


def _file_batches(path: str | os.PathLike[str], id_column: str, names: Names) -> Iterator[Batch]:
    refuse_pipe(path)
    if is_parquet(path):
        for table in _parquet_batches(path, id_column, names):
            yield table.clone
        return
    if has_heading(path, names):
        for table in _csv_batches(path, id_column, names):
            yield table.clone
        return
    parse: Callable[..., pl.DataFrame] | None = None
    first = True
    for block in line_blocks(path):
        if first and b"\n" not in block.data[:-1] and _LONE_CR.search(block.data):
            raise InputError(path, "expected lines ending in a line feed, found only carriage returns", line=1)
        if parse is None:
            if not block.data.decode().strip(_WHITE):
                continue
            is_json = _first_line(block).startswith("{")
            parse = functools.partial(parse_jsonl, names=names) if is_json else _parse_tsv
        # A header can only be the first line that is not blank.
        yield functools.partial(parse, path, block, id_column, first)
        first = False


def has_heading(path: str | os.PathLike[str], names: Names) -> bool:
    """Whether a text file is CSV, or TSV with a heading that names more than an id and a text in this order.

    Raises InputError if it is no JSONL and has not the columns that were asked for, or others: CSV, or judgements.
    """
    for block in line_blocks(path, block_bytes=1 << 16):
        if block.data.decode().strip(_WHITE):
            heading = _heading(block, names)
            line = _first_line(block)
            if not heading and not line.startswith("{") and (names.asked_for or _is_other(path, line)):
                raise InputError(path, f"{names.expected}, found {quoted(line)}", line=1)
            return heading
    return False


def _is_other(path: str | os.PathLike[str], line: str) -> bool:
    """Whether a first line names columns of something else: in CSV, or of a run or judgements."""
    columns = set(names_in(line))
    named = ".csv" in os.path.basename(os.fspath(path)) and "\t" not in line
    return named or not (columns.isdisjoint(QUERY) or columns.isdisjoint(DOCUMENT))


def _first_line(block: Block) -> str:
    return block.data.decode().strip(_WHITE).partition("\n")[0]


def _heading(block: Block, names: Names) -> bool:
    line = _first_line(block)
    if line.startswith("{"):
        return False
    there = names_in(line)
    columns = names.found(there)
    if columns is None or names.asked_for or separator_of(line) != "\t":
        return columns is not None
    # An id and a text in this order may be a row; as a heading, it is dropped where it is met.
    return [columns[0], *columns[1]] != there


def _csv_batches(path: str | os.PathLike[str], id_column: str, names: Names) -> Iterator[pl.DataFrame]:
    """The batches of a CSV file, or of a TSV file with a heading."""
    for part in csv_parts(os.fspath(path), line_blocks(path)):
        columns = names.found(part.table.columns)
        assert columns is not None
        table = part.table.select(pl.col(columns[0]).alias(id_column), _joined(columns[1]).alias("text"))
        empty = table[id_column] == ""
        if empty.any():
            raise part.error(f"expected an id in the column {columns[0]}, found none", int(empty.arg_max() or 0))
        yield table


def _joined(columns: Sequence[str]) -> pl.Expr:
    """The texts of several columns, one behind another; of one, as they are, missing ones too."""
    if len(columns) == 1:
        return pl.col(columns[0]).cast(pl.String)
    texts = [pl.col(name).cast(pl.String) for name in columns]
    return pl.concat_str([pl.when(text != "").then(text) for text in texts], separator=" ", ignore_nulls=True)


def _parse_tsv(path: str | os.PathLike[str], block: Block, id_column: str, first: bool) -> pl.DataFrame:
    table = _parse_regular(block, id_column)
    if table is None:
        # A tab in a text, a blank line or an error: the slower parser distinguishes them.
        table = _parse_lines(path, block, id_column)
    return table[_header_rows(table) :] if first else table


def _parse_regular(block: Block, id_column: str) -> pl.DataFrame | None:
    """The documents of lines that all have an id and one tab; None if one may not have."""
    schema = {id_column: pl.String, "text": pl.String}
    try:
        table = pl.read_csv(block.data, has_header=False, separator="\t", quote_char=None, schema=schema).with_columns(
            pl.all().fill_null("")
        )
    except pl.exceptions.PolarsError:
        return None
    # polars reads a line without a tab as an id with an empty text, so tabs are counted.
    if csv_drops(block.data) or not table.height == block.lines == block.data.count(b"\t"):
        return None
    return None if (table[id_column].str.strip_chars() == "").any() else table


def _parse_lines(path: str | os.PathLike[str], block: Block, id_column: str) -> pl.DataFrame:
    lines = lines_of(block).with_columns(
        pl.col("content").str.splitn("\t", 2).struct.rename_fields([id_column, "text"])
    )
    lines = lines.unnest("content")
    bad = lines.filter(pl.col("text").is_null() | (pl.col(id_column) == ""))
    if bad.height:
        line, row_id = bad.row(0)[:2]
        raise InputError(
            path,
            f"expected an id, a tab and a text, found {quoted(row_id)} and no tab"
            if row_id
            else "expected an id before the tab, found none",
            line=line,
        )
    return lines.select(id_column, "text")


def _header_rows(table: pl.DataFrame) -> int:
    """1 if the first row is a header, otherwise 0."""
    if not table.height:
        return 0
    first, text = table.row(0)
    return int(first.lower() in _HEADINGS[0] and text.lower() in _HEADINGS[1])


_HEADINGS = [set(itertools.chain(*names)) for names in zip(*map(dict.values, TEXT_COLUMNS.values()), strict=True)]
"""The names of ids, and those of texts, whatever the texts are."""


def _parquet_batches(path: str | os.PathLike[str], id_column: str, wanted: Names) -> Iterator[pl.DataFrame]:
    with open_parquet(path) as file:
        start = 0
        for table in file.batches(1 << 16, text_columns(path, file.schema.names(), wanted)):
            yield texts_of_table(table, wanted, id_column=id_column, source=path, start=start)
            start += table.height


def text_columns(source: str | os.PathLike[str], columns: Sequence[str], names: Names) -> list[str]:
    """The columns that a table's ids and texts are read from: that of ids first.

    Raises InputError, which names ``source``, where there are none.
    """
    match = names.found(columns)
    if match is None:
        raise InputError(source, f"{names.expected}, found {', '.join(columns)}")
    return [match[0], *match[1]]


def texts_of_table(
    table: pl.DataFrame,
    names: Names,
    *,
    id_column: str = "doc_id",
    source: str | os.PathLike[str] = "the table",
    start: int = 0,
) -> pl.DataFrame:
    """A table's ids (``id_column``) and texts (``text``), as those of a Parquet file are read.

    ``start``: the rows before it, for messages. Raises InputError, which names ``source``, for a column that is missing
    or holds something else, and for a row without id or text.
    """
    row_id, *texts = text_columns(source, table.columns, names)
    table = table.select(row_id, *texts)
    for name, kind in table.schema.items():
        if not (isinstance(kind, _TEXT_TYPES) or (name == row_id and kind.is_integer())):
            raise InputError(source, f"expected text in the column {name}, found {kind}")
    missing = pl.all_horizontal(pl.col(texts if names.joined else texts[-1]).is_null())
    table = table.select(
        pl.col(row_id).cast(pl.String).alias(id_column),
        pl.when(~missing).then(_joined(texts)).alias("text"),
    )
    bad = table.with_row_index("row").filter(pl.any_horizontal(pl.all().is_null(), pl.col(id_column) == ""))
    if bad.height:
        raise InputError(source, f"row {start + bad['row'][0] + 1}: the id or the text is missing")
    return table


_BATCH = 1 << 15


def select_texts(collection: str | os.PathLike[str] | pl.DataFrame, ids: Sequence[pl.Series]) -> Iterator[pl.DataFrame]:
    """The documents of a collection with these ids, in batches with ``doc_id`` and ``text``."""
    if isinstance(collection, str | os.PathLike):
        return scan_texts(collection, ids)
    return iter(collection.filter(IdIndex(ids).among(collection["doc_id"])).iter_slices(_BATCH))
