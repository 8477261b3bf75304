"""Converts what Python callers pass (dicts, polars and pandas frames, Arrow tables, records) into polars tables.

``what`` names the argument in the caller's terms; every error message begins with it.
"""

from __future__ import annotations

import dataclasses
import operator
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, Protocol, SupportsFloat, SupportsIndex, TypeGuard

import polars as pl

from .answers import NO_SCORES, Answers, run_in
from .errors import EvenrankError, arg, quoted, quoted_number, shown
from .tables import DOCUMENT, MIXED, QUERY, Columns, first_repeat, read_columns, series

if TYPE_CHECKING:
    from typing_extensions import TypeIs

_DOCUMENT = ("doc_id", "docno", "docid", "corpus-id", "_id", "document_id", "document")
_OF_PAIRS = {"query_id": (*QUERY, "q_id", "query"), "doc_id": _DOCUMENT}
RUN_COLUMNS = {**_OF_PAIRS, "score": ("score", "_score"), "rank": ("rank", "position", "_rank")}
"""What the columns of a run may be called."""
# BEIR calls grades scores.
QRELS_COLUMNS = {**_OF_PAIRS, "relevance": ("relevance", "label", "rel", "rating", "grade", "score")}
"""The same of judgements."""
TEXT_COLUMNS = {
    "doc_id": {"doc_id": DOCUMENT, "text": ("text", "contents", "body", "passage")},
    # The rows of a ranking hold the texts of both: a query's own comes first.
    "query_id": {"query_id": (*QUERY, "id", "_id"), "text": ("query", "text", "contents", "body")},
}
"""What the columns of ids and texts may be called, in files and in frames: of documents and of queries."""

PathLike = str | os.PathLike[str]
Strings = str | Sequence[str]
"""A string, or a list of them."""


class ArrowStream(Protocol):
    """A table that exports itself as an Arrow stream, as those of pandas and pyarrow do."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


Frame = pl.DataFrame | pl.LazyFrame | ArrowStream
"""A table: polars, pandas or Arrow."""
QrelsLike = PathLike | Frame | Mapping[str, Mapping[str, int] | Collection[str]] | Iterable[object]
"""Relevance judgements: a file, ``irds:NAME``, a frame with ``query_id``, ``doc_id`` and ``relevance`` (or PyTerrier's
names), ``{query: {document: grade}}``, ``{query: relevant documents}`` or records such as ``ir_measures.Qrel``."""
TextsLike = PathLike | Frame | Mapping[str, str] | Iterable[object]
"""Documents, or queries: a file, ``irds:NAME``, a frame with ``doc_id`` (``query_id``) and ``text`` (or PyTerrier's
names), a Series by id, ``{id: text}`` or records with such attributes."""


def strings(given: Strings | None) -> tuple[str, ...]:
    """One string, a list of them, or none, as a tuple."""
    return (given,) if isinstance(given, str) else tuple(given or ())


def first_of(ids: Sequence[str] | pl.Series) -> str:
    """The first five ids for a message, with "…" where there are more."""
    return f"{', '.join(map(quoted, ids[:5]))}{', …' if len(ids) > 5 else ''}"


def is_path(given: object) -> TypeIs[PathLike]:
    """Whether an argument names a file (or ``irds:NAME``) rather than being data in memory."""
    return isinstance(given, str | os.PathLike)


def run_table(
    given: object,
    what: str,
    columns: Mapping[str, Sequence[str]] = RUN_COLUMNS,
    queries: Sequence[str] | None = None,
) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A run as a table with ``query_id``, ``doc_id`` and ``score``, rows in the order given, and what is said of it.

    ``given`` is any form of :data:`evenrank.files.RunLike` but a path or a Run; ``columns``: what its columns may be
    called; ``queries``: the ids of the queries that answers without names answer, in this order. A table of ranks
    alone has minus the rank as score. Raises EvenrankError for anything else, for a score that is not finite and for a
    document that is repeated for a query.
    """
    answers = run_in(given, queries)
    notes = () if answers is None else answers.notes
    accepted = "a path, a Run, {query: {document: score}}, {query: documents, best first}"
    fields = {name: columns[name] for name in ("query_id", "doc_id", "score")}
    frame = _frame(given if answers is None else answers, fields, what, accepted)
    ranked = [name for name in columns["rank"] if name in frame.columns]
    unscored = bool(ranked) and not any(name in frame.columns for name in columns["score"])
    if unscored:
        fields = {"query_id": columns["query_id"], "doc_id": columns["doc_id"], "rank": ranked}
        notes = (NO_SCORES,)
    table = _with_columns(frame, fields, what)
    value = table[:, 2]
    number = _as(value, pl.Float64, _float)
    bad = ~number.is_finite().fill_null(False)
    if bad.any():
        _reject(table, value, bad, "a finite number", what)
    table = table.select("query_id", "doc_id", (-number if unscored else number).alias("score"))
    _no_repeat(table, what)
    return table, notes


def qrels_table(given: object, what: str) -> pl.DataFrame:
    """Relevance judgements as a table with ``query_id``, ``doc_id`` and ``relevance`` (integers).

    ``given`` is any form of :data:`QrelsLike` but a path. Duplicate judgements are dropped. Raises EvenrankError for
    anything else and for a document that is judged twice with different grades.
    """
    answers = run_in(given)
    table = _table(given if answers is None else answers, QRELS_COLUMNS, what, "a path, {query: {document: grade}}")
    relevance = table["relevance"]
    number = _as(relevance, pl.Float64, _float)
    grade = number.cast(pl.Int64, strict=False)
    bad = grade.is_null() | (grade.cast(pl.Float64) != number).fill_null(True)
    if bad.any():
        _reject(table, relevance, bad, "a whole number", what)
    table = table.with_columns(grade)
    if first_repeat(table, ["query_id", "doc_id"]) is not None:
        table = table.unique(maintain_order=True)
        _no_repeat(table, what, "is judged twice, with different grades,")
    return table


def text_table(given: object, what: str, id_column: str = "doc_id") -> pl.DataFrame:
    """Texts as a table with ``id_column`` (``doc_id`` or ``query_id``) and ``text``, one row per id.

    ``given`` is any form of :data:`TextsLike` but a path. Duplicate rows are dropped. Raises EvenrankError for anything
    else, for an id without a text and for an id with two different texts.
    """
    noun = "document" if id_column == "doc_id" else "query"
    if isinstance(given, Mapping):
        given = pl.DataFrame([series(id_column, list(given)), series("text", list(given.values()))])
    table = _table(given, TEXT_COLUMNS[id_column], what, f"a path, {{{noun}: text}}")
    text = table["text"]
    if text.dtype != pl.String:
        strings = isinstance(text.dtype, pl.Categorical | pl.Enum)
        table = table.with_columns(text.cast(pl.String) if strings else _as(text, pl.String, _string).alias("text"))
    bad = table["text"].is_null()
    if bad.any():
        _reject(table, text, bad, "a string", what)
    if (table[id_column] == "").any():
        raise EvenrankError(f"{what}: expected a string or a whole number as {id_column}, found ''")
    if first_repeat(table, [id_column]) is not None:
        table = table.unique(maintain_order=True)
        repeat = first_repeat(table, [id_column])
        if repeat is not None:
            raise EvenrankError(
                f"{what}: the id {quoted(table[id_column][repeat[1]])} appears twice, with different texts"
            )
    return table


def runs_by_name(given: object) -> TypeGuard[Mapping[str, object]]:
    """Whether an argument is a mapping of names to runs, rather than one run, ``{query: {document: score}}``.

    Raises EvenrankError, which calls the argument ``runs``, for a name that is not a string.
    """
    if not isinstance(given, Mapping) or _is_run(given):
        return False
    odd = next((name for name in given if not isinstance(name, str)), None)
    if odd is not None:
        raise EvenrankError(f"{arg.runs}: expected names, found {odd!r}: one run is {{query: {{document: score}}}}")
    return True


def _is_run(given: Mapping[object, object]) -> bool:
    if run_in(given) is not None:
        return True
    for of in given.values():
        inner = of.values() if isinstance(of, Mapping) else of if isinstance(of, list | tuple) else [given]
        if any(isinstance(item, Mapping | list | tuple) or dataclasses.is_dataclass(item) for item in inner):
            return False
    return bool(given)


def frame_of(given: object, what: str, of_series: tuple[str, str] | None = None) -> pl.DataFrame | None:
    """A polars or pandas frame, or an Arrow table, as a polars frame; None for anything else.

    ``of_series``: the columns that the index and the values of a pandas Series become, where one is accepted.
    """
    if isinstance(given, pl.DataFrame):
        return given
    if isinstance(given, pl.LazyFrame):
        return given.collect()
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(given, pandas.DataFrame):
        names = [name for name in given.columns if isinstance(name, str)]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise EvenrankError(f"{what}: the table has two columns {quoted(repeated)}")
        return pl.DataFrame([_from_pandas(given[name]).alias(name) for name in names])
    if pandas is not None and isinstance(given, pandas.Series) and of_series is not None:
        columns = zip((given.index.to_series(), given), of_series, strict=True)
        return pl.DataFrame([_from_pandas(column).alias(name) for column, name in columns])
    if _is_series(given):
        raise EvenrankError(f"{what}: expected a table, found a Series, which is a single column")
    if hasattr(given, "__arrow_c_stream__"):
        return pl.DataFrame(given)
    return None


def columns_of(given: object, what: str, of_series: tuple[str, str] | None = None) -> Columns | None:
    """The table of a path or of what :func:`frame_of` takes, with the lines of its file; None for anything else."""
    if is_path(given):
        return read_columns(given)
    frame = frame_of(given, what, of_series)
    return None if frame is None else Columns(frame, what=what)


def _is_series(given: object) -> bool:
    pandas = sys.modules.get("pandas")
    return isinstance(given, pl.Series) or (pandas is not None and isinstance(given, pandas.Series))


def _from_pandas(column: Any) -> pl.Series:
    try:
        return pl.Series(pl.from_pandas(column, nan_to_null=False))
    except (*MIXED, NotImplementedError):
        return series("", column.tolist())


def _table(given: object, fields: Mapping[str, Sequence[str]], what: str, accepted: str) -> pl.DataFrame:
    """A table with the columns ``fields``: ids as strings, the last column unconverted."""
    return _with_columns(_frame(given, fields, what, accepted), fields, what)


def _frame(given: object, fields: Mapping[str, Sequence[str]], what: str, accepted: str) -> pl.DataFrame:
    """A table of any form, with all its columns."""
    accepted = f"{accepted} or a table with {', '.join(list(fields)[:-1])} and {list(fields)[-1]}"
    if isinstance(given, Answers):
        return pl.DataFrame([series(name, [row[i] for row in given.rows]) for i, name in enumerate(fields)])
    frame = frame_of(given, what, None if len(fields) > 2 else (next(iter(fields)), "text"))
    if frame is None:
        if isinstance(given, Mapping):
            frame = _from_nested(given, list(fields), what, accepted)
        else:
            frame = _from_records(given, what, accepted)
    return frame


def _with_columns(frame: pl.DataFrame, fields: Mapping[str, Sequence[str]], what: str) -> pl.DataFrame:
    column = {field: next((name for name in names if name in frame.columns), None) for field, names in fields.items()}
    missing = [field for field, name in column.items() if name is None]
    if missing and frame.height + frame.width:
        has = ", ".join(map(str, frame.columns[:10])) or "none"
        raise EvenrankError(f"{what}: the table has no column {', '.join(missing)} (its columns are {has})")
    if not frame.height:
        raise EvenrankError(f"{what}: expected at least one row, found none")
    *ids, value = fields
    return pl.DataFrame(
        [id_column(frame[str(column[field])], field, what) for field in ids] + [frame[str(column[value])].alias(value)]
    )


def _from_nested(given: Mapping[object, object], fields: Sequence[str], what: str, accepted: str) -> pl.DataFrame:
    """``{query: {document: value}}``, or ``{query: documents}``, as a table."""
    queries: list[object] = []
    documents: list[object] = []
    values: list[object] = []
    for query, inner in given.items():
        ranked = fields[-1] == "score"
        if isinstance(inner, Mapping):
            values += inner.values()
        elif isinstance(inner, list | tuple) or (isinstance(inner, AbstractSet) and not ranked):
            # As ranks of a run in its own order, or all of the same grade.
            values += range(-1, -1 - len(inner), -1) if ranked else [1] * len(inner)
        else:
            raise EvenrankError(f"{what}: expected {accepted}, found {shown(inner)} for {quoted(query)}")
        queries += [query] * len(inner)
        documents += inner
    return pl.DataFrame([*map(series, fields, (queries, documents, values))])


def _from_records(given: object, what: str, accepted: str) -> pl.DataFrame:
    """An iterable of records (dicts, named tuples or dataclasses, all of the same type) as a table."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise EvenrankError(f"{what}: expected {accepted}, found {shown(given)}")
    rows = list(given)
    if rows and all(isinstance(row, Mapping) for row in rows):
        keys = [key for key in dict.fromkeys(key for row in rows for key in row) if isinstance(key, str)]
        return pl.DataFrame([series(key, [row.get(key) for row in rows]) for key in keys])
    names = _field_names(rows[0]) if rows else ()
    if names is None or any(type(row) is not type(rows[0]) for row in rows):
        odd = next((row for row in rows if _field_names(row) is None and not isinstance(row, Mapping)), rows[-1])
        raise EvenrankError(f"{what}: expected {accepted}, found a {type(given).__name__} that contains {shown(odd)}")
    return pl.DataFrame([series(name, [getattr(row, name) for row in rows]) for name in names])


def _field_names(row: object) -> tuple[str, ...] | None:
    """The fields of a named tuple or a dataclass; None for anything else."""
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return tuple(field.name for field in dataclasses.fields(row))
    names: tuple[str, ...] | None = getattr(type(row), "_fields", None)
    return names


def id_column(values: pl.Series, name: str, what: str) -> pl.Series:
    """Ids as strings, as the column ``name``.

    Raises EvenrankError for an id that is missing or neither a string nor an integer.
    """
    text = values
    if isinstance(values.dtype, pl.Categorical | pl.Enum) or values.dtype.is_integer():
        text = values.cast(pl.String)
    elif values.dtype != pl.String:
        text = _as(values, pl.String, _id)
    bad = text.is_null()
    if bad.any():
        value = _value(values[int(bad.arg_max() or 0)])
        raise EvenrankError(f"{what}: expected a string or a whole number as {name}, found {value}")
    return text.alias(name)


def _id(value: object) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, float) and value.is_integer():
        # pandas turns integers into floats in a column with missing values.
        return str(int(value))
    if not isinstance(value, SupportsIndex):
        raise TypeError
    return str(operator.index(value))


def _float(value: object) -> float:
    if not isinstance(value, str | SupportsFloat | SupportsIndex):
        raise TypeError
    return float(value)


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    # A table cannot store half a surrogate pair.
    value.encode()
    return str(value)


def _as(values: pl.Series, dtype: type[pl.DataType], convert: Callable[[object], object]) -> pl.Series:
    """A column with its values converted, null if they cannot be."""
    if dtype == pl.Float64 and (values.dtype.is_numeric() or values.dtype in (pl.String, pl.Boolean)):
        return values.cast(dtype, strict=False)
    converted = []
    for value in values.to_list():
        try:
            converted.append(convert(value))
        except (TypeError, ValueError, OverflowError, ArithmeticError):
            converted.append(None)
    return pl.Series(values.name, converted, dtype)


def _reject(table: pl.DataFrame, values: pl.Series, bad: pl.Series, noun: str, what: str) -> None:
    row = int(bad.arg_max() or 0)
    ids = [f"{name.removesuffix('_id')} {quoted(table[name][row])}" for name in table.columns if name.endswith("_id")]
    place = ", ".join(ids).replace("doc ", "document ")
    raise EvenrankError(f"{what}: expected {noun} as {values.name}, found {_value(values[row])} ({place})")


def _no_repeat(table: pl.DataFrame, what: str, how: str = "appears twice") -> None:
    repeat = first_repeat(table, ["query_id", "doc_id"])
    if repeat is not None:
        query, document = table.row(repeat[1])[:2]
        raise EvenrankError(f"{what}: the document {quoted(document)} {how} for the query {quoted(query)}")


def _value(value: object) -> str:
    if isinstance(value, pl.Series):
        value = value.to_list()
    return quoted_number(value) if isinstance(value, str) else quoted(value)[1:-1]
