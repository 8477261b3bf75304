"""What Python callers give, as one kind of table: dicts, frames of polars and pandas, Arrow tables, records.

The one place that asks what kind of thing it was given. ``what`` is the argument in the caller's words; every error
begins with it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import polars as pl

from .errors import EvenrankError, shown
from .tables import first_repeat

_QUERY = ("query_id", "qid", "query-id")
_DOCUMENT = ("doc_id", "docno", "docid", "corpus-id")
_RUN = {"query_id": _QUERY, "doc_id": _DOCUMENT, "score": ("score",)}
_QRELS = {"query_id": _QUERY, "doc_id": _DOCUMENT, "relevance": ("relevance", "label", "rel")}
_TEXTS = {
    "doc_id": {"doc_id": (*_DOCUMENT, "pid", "id", "_id"), "text": ("text", "contents", "body", "passage")},
    # The rows of a ranking hold the texts of both: a query's own comes first.
    "query_id": {"query_id": (*_QUERY, "id", "_id"), "text": ("query", "text", "contents", "body")},
}
_WHOLE = pl.Int64


def run_table(given: Any, what: str) -> pl.DataFrame:
    """A run as ``query_id``, ``doc_id`` and ``score``, in the order given; each document once for a query.

    ``given``: ``{query: {document: score}}``, a frame (columns also as PyTerrier names them: ``qid``, ``docno``), or
    records with these attributes, such as ``ir_measures.ScoredDoc``. Raises EvenrankError for anything else.
    """
    table = _table(given, _RUN, what, "a path, a Run, {query: {document: score}}")
    score = table["score"]
    number = _as(score, pl.Float64, float)
    bad = ~number.is_finite().fill_null(False)
    if bad.any():
        _refuse(table, score, bad, "a finite number", what)
    table = table.with_columns(number)
    _no_repeat(table, what)
    return table


def qrels_table(given: Any, what: str) -> pl.DataFrame:
    """Judgements as ``query_id``, ``doc_id`` and ``relevance`` (whole numbers).

    ``given``: ``{query: {document: grade}}``, a frame (the grade also as ``label`` or ``rel``), or records, such as
    ``ir_measures.Qrel``. A judgement that is there twice counts once. Raises EvenrankError for anything else, and for
    a document that is judged twice with different grades.
    """
    table = _table(given, _QRELS, what, "a path, {query: {document: grade}}")
    relevance = table["relevance"]
    number = _as(relevance, pl.Float64, float)
    grade = number.cast(_WHOLE, strict=False)
    bad = grade.is_null() | (grade.cast(pl.Float64) != number).fill_null(True)
    if bad.any():
        _refuse(table, relevance, bad, "a whole number", what)
    table = table.with_columns(grade)
    if first_repeat(table, ["query_id", "doc_id"]) is not None:
        table = table.unique(maintain_order=True)
        _no_repeat(table, what, "is judged twice, with different grades,")
    return table


def text_table(given: Any, what: str, id_column: str = "doc_id") -> pl.DataFrame:
    """Texts as ``id_column`` (``doc_id`` or ``query_id``) and ``text``, each id once.

    ``given``: ``{id: text}``, a frame (also with ``docno``, ``qid``, ``id``, ``_id``; ``contents``, ``query`` …), or
    records. A row that is there twice counts once. Raises EvenrankError for anything else, an id without a text and an
    id with two.
    """
    noun = "document" if id_column == "doc_id" else "query"
    if isinstance(given, Mapping):
        given = pl.DataFrame({id_column: _series(list(given)), "text": _series(list(given.values()))})
    table = _table(given, _TEXTS[id_column], what, f"a path, {{{noun}: text}}")
    text = table["text"]
    if text.dtype != pl.String:
        strings = isinstance(text.dtype, pl.Categorical | pl.Enum)
        table = table.with_columns(text.cast(pl.String) if strings else _as(text, pl.String, _string).alias("text"))
    bad = table["text"].is_null()
    if bad.any():
        _refuse(table, text, bad, "a text", what)
    if (table[id_column] == "").any():
        raise EvenrankError(f"{what}: expected a text or a whole number as {id_column}, found ''")
    if first_repeat(table, [id_column]) is not None:
        table = table.unique(maintain_order=True)
        repeat = first_repeat(table, [id_column])
        if repeat is not None:
            raise EvenrankError(f"{what}: the id {shown(table[id_column][repeat[1]])} stands twice, with two texts")
    return table


def is_run(given: Any) -> bool:
    """Whether a mapping is a run, ``{query: {document: score}}``, rather than runs by name."""
    for documents in given.values():
        if not isinstance(documents, Mapping) or any(isinstance(value, Mapping) for value in documents.values()):
            return False
    return bool(given)


def frame_of(given: Any, what: str) -> pl.DataFrame | None:
    """A frame of polars or pandas, or an Arrow table, as a polars frame; None for anything else."""
    if isinstance(given, pl.DataFrame):
        return given
    if isinstance(given, pl.LazyFrame):
        return given.collect()
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(given, pandas.DataFrame):
        names = [name for name in given.columns if isinstance(name, str)]
        repeated = next((name for name in names if names.count(name) > 1), None)
        if repeated is not None:
            raise EvenrankError(f"{what}: the table has two columns {shown(repeated)}")
        return pl.DataFrame([_of_pandas(given[name]).alias(name) for name in names])
    if hasattr(given, "__arrow_c_stream__") and not isinstance(given, pl.Series):
        return pl.DataFrame(given)
    return None


def _of_pandas(column: Any) -> pl.Series:
    try:
        return pl.Series(pl.from_pandas(column, nan_to_null=False))
    except Exception:  # pyarrow has errors of its own for a column of mixed types
        return _series(column.tolist())


def _table(given: Any, fields: Mapping[str, Sequence[str]], what: str, forms: str) -> pl.DataFrame:
    """``fields`` of what was given: ids as text, the last field as it is."""
    forms = f"{forms} or a table with {', '.join(list(fields)[:-1])} and {list(fields)[-1]}"
    frame = frame_of(given, what)
    if frame is None:
        frame = _nested(given, fields, what, forms) if isinstance(given, Mapping) else _records(given, what, forms)
    found = {field: next((name for name in names if name in frame.columns), None) for field, names in fields.items()}
    missing = [field for field, name in found.items() if name is None]
    if missing and frame.height + frame.width:
        has = ", ".join(map(str, frame.columns[:10])) or "none"
        raise EvenrankError(f"{what}: the table has no column {', '.join(missing)} (its columns are {has})")
    if not frame.height:
        raise EvenrankError(f"{what}: expected at least one row, found none")
    *ids, value = fields
    return pl.DataFrame(
        [id_column(frame[str(found[field])], field, what) for field in ids] + [frame[str(found[value])].alias(value)]
    )


def _nested(given: Mapping[Any, Any], fields: Mapping[str, Any], what: str, forms: str) -> pl.DataFrame:
    """``{query: {document: value}}`` as a table."""
    queries: list[Any] = []
    documents: list[Any] = []
    values: list[Any] = []
    for query, inner in given.items():
        if not isinstance(inner, Mapping):
            raise EvenrankError(f"{what}: expected {forms}, found {_kind(inner)} for {shown(query)}")
        queries += [query] * len(inner)
        documents += inner
        values += inner.values()
    return pl.DataFrame(
        [_series(column).alias(name) for name, column in zip(fields, (queries, documents, values), strict=True)]
    )


def _records(given: Any, what: str, forms: str) -> pl.DataFrame:
    """Objects with attributes, such as named tuples, as a table."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes | pl.Series):
        raise EvenrankError(f"{what}: expected {forms}, found {_kind(given)}")
    rows = list(given)
    names = getattr(type(rows[0]), "_fields", None) if rows else ()
    if names is None or any(type(row) is not type(rows[0]) for row in rows):
        odd = next((row for row in rows if getattr(row, "_fields", None) is None), rows[-1])
        raise EvenrankError(f"{what}: expected {forms}, found a {type(given).__name__} with {_kind(odd)} in it")
    return pl.DataFrame([_series([getattr(row, name) for row in rows]).alias(name) for name in names])


def _series(values: Sequence[Any]) -> pl.Series:
    """Values of whatever types as a column: of one type where they are, else of objects."""
    try:
        return pl.Series(values, strict=True)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return pl.Series(values, dtype=pl.Object)


def id_column(values: pl.Series, name: str, what: str) -> pl.Series:
    """Ids as text, under ``name``. Raises EvenrankError for one that is missing, or neither text nor whole number."""
    text = values
    if isinstance(values.dtype, pl.Categorical | pl.Enum) or values.dtype.is_integer():
        text = values.cast(pl.String)
    elif values.dtype != pl.String:
        text = _as(values, pl.String, _id)
    bad = text.is_null()
    if bad.any():
        found = _value(values[int(bad.arg_max() or 0)])
        raise EvenrankError(f"{what}: expected a text or a whole number as {name}, found {found}")
    return text.alias(name)


def _id(value: Any) -> str:
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, bool):
        raise TypeError
    if isinstance(value, float) and value.is_integer():
        # Whole numbers become floats in a column of pandas that lacks some.
        return str(int(value))
    return str(operator.index(value))


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    # Half a surrogate pair is no text that a table holds.
    value.encode()
    return str(value)


def _as(values: pl.Series, dtype: type[pl.DataType], convert: Callable[[Any], Any]) -> pl.Series:
    """A column with its values converted, null where they cannot be."""
    if dtype == pl.Float64 and (values.dtype.is_numeric() or values.dtype in (pl.String, pl.Boolean)):
        return values.cast(dtype, strict=False)
    converted = []
    for value in values.to_list():
        try:
            converted.append(convert(value))
        except (TypeError, ValueError, OverflowError, ArithmeticError):
            converted.append(None)
    return pl.Series(values.name, converted, dtype)


def _refuse(table: pl.DataFrame, values: pl.Series, bad: pl.Series, noun: str, what: str) -> None:
    row = int(bad.arg_max() or 0)
    ids = [f"{name.removesuffix('_id')} {shown(table[name][row])}" for name in table.columns if name.endswith("_id")]
    place = ", ".join(ids).replace("doc ", "document ")
    raise EvenrankError(f"{what}: expected {noun} as {values.name}, found {_value(values[row])} ({place})")


def _no_repeat(table: pl.DataFrame, what: str, how: str = "stands twice") -> None:
    repeat = first_repeat(table, ["query_id", "doc_id"])
    if repeat is not None:
        query, document = table.row(repeat[1])[:2]
        raise EvenrankError(f"{what}: the document {shown(document)} {how} for the query {shown(query)}")


def _value(value: Any) -> str:
    if isinstance(value, pl.Series):
        value = value.to_list()
    return shown(value) if isinstance(value, str) else shown(value)[1:-1]


def _kind(value: Any) -> str:
    name = "None" if value is None else type(value).__name__
    return f"{name} {_value(value)}" if isinstance(value, str | int | float) else name
