"""Files with named columns: every form gives the same table, and every row knows its line."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.files import InputError
from evenrank.files.tables import DOCUMENT, Columns, column_named, read_columns


def read(folder: Path, content: str | bytes) -> Columns:
    path = folder / "columns"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_columns(path)


def rows(found: Columns) -> list[tuple[object, ...]]:
    return found.table.rows()


PLAIN = "doc_id,group\na,m\nb,f\nc,\n"


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("doc_id,group\n\na,m\n\n\nb,f\n", [3, 6]),
        # Spreadsheets leave lines of separators.
        ('doc_id,group\n,\na,"m"\nb,f\n,\n', [3, 4]),
        # Of a row with line breaks, the first line.
        ('doc_id,"group\nof"\n\n"a",m\nb,f\n', [4, 5]),
        ('\n{"doc_id": "a", "group": "m"}\n\n{"doc_id": "b", "group": "f"}\n', [2, 4]),
    ],
)
def test_blank_lines_are_counted_and_no_rows(content: str, lines: list[int], tmp_path: Path) -> None:
    found = read(tmp_path, content)
    assert rows(found) == [("a", "m"), ("b", "f")]
    assert found.lines is not None
    assert found.lines.tolist() == lines


@given(
    st.lists(st.text("ab ,\"\n\t'é0", max_size=4), min_size=2, max_size=3, unique_by=str.strip),
    st.lists(st.lists(st.text("ab ,\"\n\t'é0", max_size=4), min_size=3, max_size=3), max_size=4),
    st.sampled_from([",", "\t"]),
    st.booleans(),
)
@example(["a", "b"], [["", "", ""], ["x", "", ""]], ",", False)
def test_what_csv_writes_is_read(place: Path, names: list[str], values: list[list[str]], by: str, always: bool) -> None:
    # A tab in the first line is the separator, whatever else there is; a name is stripped.
    names = [name.strip().replace("\t", " ").replace("\n", " ") or "x" for name in names]
    values = [row[: len(names)] for row in values]
    buffer = io.StringIO()
    writer = csv.writer(
        buffer, delimiter=by, lineterminator="\n", quoting=csv.QUOTE_ALL if always else csv.QUOTE_MINIMAL
    )
    if by == "\t":
        # In TSV, quotes are as any other character: values have neither tabs nor line ends.
        values = [[value.replace("\t", " ").replace("\n", " ") for value in row] for row in values]
        buffer.writelines("\t".join(row) + "\n" for row in [names, *values])
    else:
        writer.writerows([names, *values])
    if len(set(names)) < len(names):
        with pytest.raises(InputError, match="two columns are named"):
            read(place, buffer.getvalue())
        return
    found = read(place, buffer.getvalue())
    assert found.table.columns == [name.strip() for name in names]
    kept = [tuple(row) for row in values if any(value.strip() for value in row)]
    assert [row for row in rows(found) if any(str(value).strip() for value in row)] == kept


def test_json_of_any_kind_is_a_column(tmp_path: Path) -> None:
    found = read(tmp_path, '{"doc_id": 1, "m": 1}\n{"doc_id": "b", "m": 0.25}\n{"doc_id": "\\ud83d\\ude00"}\n')
    # JSON writes 1.0 as 1; a pair of halves is one character.
    assert found.table.to_dict(as_series=False) == {"doc_id": [1, "b", "😀"], "m": [1.0, 0.25, None]}
    assert found.table["m"].dtype == pl.Float64
    deep = [f"{'[' * depth}1{']' * depth}" for depth in (50, 400, 700)]
    plain = ['{"a": [1, {"b": 2}]}', "[[1], 2]", "true", "1e400", f"{10**30}", f"{10**400}", "null", '[null, "x"]']
    for value in [*plain, *deep]:
        for other in ('"text"', "3", "[]"):
            found = read(tmp_path, f'{{"doc_id": 1, "x": {value}}}\n{{"doc_id": 2, "x": {other}}}\n')
            assert found.table.columns == ["doc_id", "x"]
            assert found.table["doc_id"].to_list() == [1, 2]


def test_names_of_id_columns(tmp_path: Path) -> None:
    # In this order, whichever comes first in the file.
    for content, names, name in (
        *((f"group,{name}\nm,a\n", DOCUMENT, name) for name in DOCUMENT),
        ("id,pid,doc_id\n1,2,3\n", DOCUMENT, "doc_id"),
        ("qid,id\n1,2\n", ("query_id", "qid"), "qid"),
    ):
        assert column_named(read(tmp_path, content), names) == name
    for content, message in (
        ("a,b\n1,2\n", r"columns, line 1: expected a column doc_id, found the columns a, b \(so\)$"),
        ("{}\n", r"found the columns none \(so\)$"),
    ):
        with pytest.raises(InputError, match=message):
            column_named(read(tmp_path, content), DOCUMENT, " (so)")


SHORT = "expected 2 values (doc_id, group), found"
UTF_16 = "expected UTF-8, found what looks like UTF-16 (save the file as UTF-8)"
HALF = "expected Unicode, found half a surrogate pair:"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("doc_id,group\na,m\nb\nc,f\n", f", line 3: {SHORT} 1: 'b'"),
        ("doc_id,group\na,m\nb,f,x\n", f", line 3: {SHORT} 3: 'b,f,x'"),
        ('doc_id,group\n"a\n",m\n"b"\n', f", line 4: {SHORT} 1: 'b'"),
        ('doc_id,group\na,m\nb,"f\nc,f\nd,m\n', ", line 3: no valid CSV: unexpected end of data"),
        ('doc_id,group\na,"m"x\n', ", line 2: no valid CSV: ',' expected after '\"'"),
        ("doc_id,group, group\na,m,f\n", ", line 1: two columns are named 'group'"),
        ("", ": the file is empty"),
        ("\n \n\n", ": the file contains no rows"),
        (b"doc_id,group\na,m\nb,\xff\n", ", line 3: expected UTF-8, found the byte 0xff (save the file as UTF-8)"),
        ("doc_id,group\n".encode("utf-16"), f", line 1: {UTF_16}"),
        (gzip.compress(PLAIN.encode(), mtime=0)[:-9], ": damaged gzip file (Compressed file ended"),
        ('{"doc_id": 1}\n\n{"doc_id"\n', ", line 3: expected a JSON object, found '{\"doc_id\"'"),
        ('{"x": "\\ud83d\\ude00"}\n{"x": ["\\ud83d"]}\n', f', line 2: {HALF} \'{{"x": ["\\\\ud83d"]}}\''),
        ('{"x": ' + "[" * 100_000, ', line 1: expected a JSON object, found \'{"x": [[['),
        (b"PAR1", ": damaged Parquet file ("),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_bad_files(content: str | bytes, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError) as error:
        read(tmp_path, content)
    assert str(error.value).startswith(f"{tmp_path / 'columns'}{message}")
    assert "\n" not in str(error.value)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from("abc"),
            # Beside a float an integer is one, and exact to 2**53.
            st.none()
            | st.integers(-(2**53), 2**53)
            | st.floats(allow_nan=False)
            | st.text("xy")
            | st.lists(st.text("xy")),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_json_values_stay(place: Path, records: list[dict[str, object]]) -> None:
    found = read(place, "".join(json.dumps(record) + "\n" for record in records))
    for name in found.table.columns:
        values = [record.get(name) for record in records]
        wrapped = [[value] if isinstance(value, str) else value for value in values]
        # A number among numbers is one number, a text among lists a list of one.
        assert found.table[name].to_list() in (values, wrapped)
