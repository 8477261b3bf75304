"""Training lists from a file: Parquet or JSONL."""

from __future__ import annotations

import json
import os

import polars as pl
import pyarrow as pa

from evenrank.io import InputError
from evenrank.io.errors import quoted
from evenrank.io.files import line_blocks, open_binary, open_parquet, polars_table, read_bytes, refuse_pipe
from evenrank.io.tables import lines_of


def read_list_file(path: str | os.PathLike[str]) -> pl.DataFrame:
    """Training lists from a file (Parquet or JSONL): ``query_id``, ``doc_id`` (list), ``label`` (list).

    Raises InputError, with the row, for a list without a positive (label ≥ 1), one whose labels are all equal, and
    one whose columns differ in length.
    """
    refuse_pipe(path)
    with open_binary(path) as stream:
        is_parquet = read_bytes(path, stream, 4) == b"PAR1"
    table = _parquet_lists(path) if is_parquet else _json_lists(path)
    numbers = pl.col("label").list
    problems = {
        "a query_id, a doc_id or a label is missing": pl.any_horizontal(
            pl.col("query_id", "doc_id", "label").is_null(),
            pl.col("doc_id").list.eval(pl.element().is_null()).list.any(),
            numbers.eval(pl.element().is_null()).list.any(),
        ),
        "a label is no finite number": ~numbers.eval(pl.element().is_finite()).list.all(),
        "the lists of doc_id and label differ in length": pl.col("doc_id").list.len() != pl.col("label").list.len(),
        "all labels are equal: there is nothing to learn": pl.col("label").list.n_unique() < 2,
        "there is no positive (a label of 1 or more)": pl.col("label").list.max() < 1,
    }
    for problem, wrong in problems.items():
        bad = table.filter(wrong.fill_null(True))
        if bad.height:
            raise InputError(path, f"query {quoted(bad['query_id'][0])}: {problem}", line=int(bad["line"][0]))
    return table.drop("line")


_COLUMNS: dict[str, pl.DataType | type[pl.DataType]] = {
    "query_id": pl.String,
    "doc_id": pl.List(pl.String),
    "label": pl.List(pl.Float64),
}


def _parquet_lists(path: str | os.PathLike[str]) -> pl.DataFrame:
    with open_parquet(path) as file:
        if not {*_COLUMNS} <= {*file.schema_arrow.names}:
            raise InputError(path, "expected query_id, and lists under doc_id and label")
        arrow = file.read(columns=[*_COLUMNS])
        table = polars_table(path, arrow)
        if not all(isinstance(table.schema[name], pl.List) for name in ("doc_id", "label")):
            raise InputError(path, "expected query_id, and lists under doc_id and label")
        return table.select(pl.col(name).cast(kind) for name, kind in _COLUMNS.items()).with_row_index("line", offset=1)


def _json_lists(path: str | os.PathLike[str]) -> pl.DataFrame:
    parts = []
    for block in line_blocks(path):
        queries, docs, labels, lines = [], [], [], []
        for line, content in lines_of(block).iter_rows():
            try:
                query, of_query, grades = _json_list(json.loads(content))
            except (ValueError, RecursionError):
                expected = "expected a JSON object with query_id, and lists under doc_id and label (numbers)"
                raise InputError(path, f"{expected}, found {quoted(content)}", line=line) from None
            queries.append(query)
            docs.append(of_query)
            labels.append(grades)
            lines.append(line)
        # Arrow makes lists of lists into columns several times faster than polars.
        columns = {
            "query_id": pa.array(queries, pa.large_string()),
            "doc_id": pa.array(docs, pa.large_list(pa.large_string())),
            "label": pa.array(labels, pa.large_list(pa.float64())),
            "line": pa.array(lines, pa.uint32()),
        }
        parts.append(pl.DataFrame(pa.table(columns)))
    table = pl.concat(parts)
    if not table.height:
        raise InputError(path, "the file has no line")
    return table


def _json_list(value: object) -> tuple[str, list[str], list[float]]:
    """The three values of a list. Raises ValueError if one has another form."""
    query_id, doc_ids, labels = (value.get(name) for name in _COLUMNS) if isinstance(value, dict) else (None,) * 3
    if not (isinstance(doc_ids, list) and isinstance(labels, list)):
        raise ValueError
    if type(query_id) not in _ID or not {*map(type, doc_ids)} <= _ID or not {*map(type, labels)} <= {int, float}:
        raise ValueError
    texts = [*map(str, doc_ids)]
    "".join([str(query_id), *texts]).encode()  # half a surrogate pair is a ValueError too
    try:
        return str(query_id), texts, [*map(float, labels)]
    except OverflowError:
        raise ValueError from None


_ID = {str, int}
