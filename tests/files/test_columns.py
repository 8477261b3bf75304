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
FORMS = {
    "csv": PLAIN,
    "tsv": PLAIN.replace(",", "\t"),
    "gzip": gzip.compress(PLAIN.encode()),
    "BOM": "\ufeff" + PLAIN,
    "CRLF": PLAIN.replace("\n", "\r\n"),
    "BOM and CRLF": "\ufeff" + PLAIN.replace("\n", "\r\n"),
    "no last line end": PLAIN[:-1],
    "spaces in the header": PLAIN.replace("doc_id,group", " doc_id ,  group "),
    "quotes": '"doc_id","group"\n"a","m"\n"b",f\nc,""\n',
    "gzip, quotes, CRLF": gzip.compress(b'doc_id,"group"\r\na,m\r\nb,f\r\nc,\r\n'),
}


@pytest.mark.parametrize("form", FORMS)
def test_forms(form: str, tmp_path: Path) -> None:
    found = read(tmp_path, FORMS[form])
    assert found.table.to_dict(as_series=False) == {"doc_id": ["a", "b", "c"], "group": ["m", "f", ""]}
    assert found.lines is not None
    assert found.lines.tolist() == [2, 3, 4]
    assert found.line(2) == "line 4"


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("doc_id,group\n\na,m\n\n\nb,f\n", [3, 6]),
        ("\n\ndoc_id,group\na,m\nb,f\n", [4, 5]),
        ("doc_id\tgroup\na\tm\n  \nb\tf\n\n", [2, 4]),
        # Spreadsheets leave lines of separators.
        ("doc_id,group\n,\na,m\nb,f\n,\n,\n", [3, 4]),
        ('doc_id,group\n,\na,"m"\nb,f\n,\n', [3, 4]),
        ('doc_id,group\n"a",m\n\nb,f\n', [2, 4]),
        ('\n{"doc_id": "a", "group": "m"}\n\n{"doc_id": "b", "group": "f"}\n', [2, 4]),
    ],
)
def test_blank_lines_are_counted_and_no_rows(content: str, lines: list[int], tmp_path: Path) -> None:
    found = read(tmp_path, content)
    assert rows(found) == [("a", "m"), ("b", "f")]
    assert found.lines is not None
    assert found.lines.tolist() == lines


def test_quoted_fields(tmp_path: Path) -> None:
    found = read(tmp_path, 'doc_id,title,group\n"a, 1","two\nlines, and ""quotes""",m\n\nb,tab\there,f\nc,5" disk,f\n')
    assert rows(found) == [
        ("a, 1", 'two\nlines, and "quotes"', "m"),
        ("b", "tab\there", "f"),
        ("c", '5" disk', "f"),
    ]
    # Of a row with line breaks, the first line.
    assert [found.line(row) for row in range(3)] == ["line 2", "line 5", "line 6"]
    found = read(tmp_path, 'doc_id,"a\nname"\na,"x\ty"\n')
    assert found.table.to_dict(as_series=False) == {"doc_id": ["a"], "a\nname": ["x\ty"]}
    assert found.line(0) == "line 3"


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


def test_json(tmp_path: Path) -> None:
    found = read(tmp_path, '{"doc_id": 1, "group": "f"}\n{"doc_id": "b", "group": "m"}\n{"doc_id": "c"}\n')
    assert found.table["doc_id"].to_list() == [1, "b", "c"]
    assert found.table["group"].to_list() == ["f", "m", None]
    # JSON writes 1.0 as 1.
    found = read(tmp_path, '{"doc_id": "a", "m": 1, "f": 0}\n{"doc_id": "b", "m": 0.25, "f": 0.75}\n{"doc_id": "c"}\n')
    assert found.table.to_dict(as_series=False) == {
        "doc_id": ["a", "b", "c"],
        "m": [1.0, 0.25, None],
        "f": [0.0, 0.75, None],
    }
    assert found.table["m"].dtype == found.table["f"].dtype == pl.Float64
    # A pair of halves is one character.
    assert read(tmp_path, '{"doc_id": "\\ud83d\\ude00"}\n').table["doc_id"][0] == "😀"


def test_json_of_any_kind_is_a_column(tmp_path: Path) -> None:
    for value in (
        '{"a": [1, {"b": 2}]}',
        "[[1], 2]",
        "true",
        "1e400",
        f"{10**30}",
        f"{10**400}",
        "null",
        '[null, "x"]',
    ):
        for other in ('"text"', "3", "[]"):
            found = read(tmp_path, f'{{"doc_id": 1, "x": {value}}}\n{{"doc_id": 2, "x": {other}}}\n')
            assert found.table.columns == ["doc_id", "x"]
            assert found.table.height == 2
    for depth in (50, 400, 700):
        found = read(tmp_path, f'{{"doc_id": "a", "x": {"[" * depth}1{"]" * depth}}}\n{{"doc_id": "b", "x": "y"}}\n')
        assert found.table["doc_id"].to_list() == ["a", "b"]


def test_parquet(tmp_path: Path) -> None:
    pl.DataFrame({"doc_id": [1, 2], "m": [0.5, 1.0]}).write_parquet(tmp_path / "labels.of.any.name")
    found = read_columns(tmp_path / "labels.of.any.name")
    assert rows(found) == [(1, 0.5), (2, 1.0)]
    assert found.lines is None
    assert found.line(1) == "row 2"
    assert str(found.error("bad", 1)) == f"{tmp_path / 'labels.of.any.name'}: row 2: bad"


def test_names_of_id_columns(tmp_path: Path) -> None:
    for name in DOCUMENT:
        assert column_named(read(tmp_path, f"group,{name}\nm,a\n"), DOCUMENT) == name
    # In this order, whichever comes first in the file.
    assert column_named(read(tmp_path, "id,pid,doc_id\n1,2,3\n"), DOCUMENT) == "doc_id"
    assert column_named(read(tmp_path, "qid,id\n1,2\n"), ("query_id", "qid")) == "qid"
    with pytest.raises(InputError, match=r"columns, line 1: expected a column doc_id, found the columns a, b \(so\)$"):
        column_named(read(tmp_path, "a,b\n1,2\n"), DOCUMENT, " (so)")
    with pytest.raises(InputError, match=r"found the columns none$"):
        column_named(read(tmp_path, "{}\n"), DOCUMENT)


SHORT = "expected 2 values (doc_id, group), found"
BAD = {
    "a short line": ("doc_id,group\na,m\nb\nc,f\n", f", line 3: {SHORT} 1: 'b'"),
    "a long line": ("doc_id,group\na,m\nb,f,x\n", f", line 3: {SHORT} 3: 'b,f,x'"),
    "a short and a long line": ("doc_id,group\na\nb,f,x\n", f", line 2: {SHORT} 1: 'a'"),
    "a short line among quotes": ('doc_id,group\n"a\n",m\n"b"\n', f", line 4: {SHORT} 1: 'b'"),
    "a quote that does not end": (
        'doc_id,group\na,m\nb,"f\nc,f\nd,m\n',
        ", line 3: no valid CSV: unexpected end of data",
    ),
    "a quote that ends early": ('doc_id,group\na,"m"x\n', ", line 2: no valid CSV: ',' expected after '\"'"),
    "two columns of one name": ("doc_id,group, group\na,m,f\n", ", line 1: two columns are named 'group'"),
    "two columns, quoted": ('\n"a","a"\n1,2\n', ", line 2: two columns are named 'a'"),
    "nothing": ("", ": the file is empty"),
    "blank lines": ("\n \n\n", ": the file contains no rows"),
    "separators alone": (",,\n,,\n", ": the file contains no rows"),
    "not UTF-8": (
        b"doc_id,group\na,m\nb,\xff\n",
        ", line 3: expected UTF-8, found the byte 0xff (save the file as UTF-8)",
    ),
    "UTF-16": (
        "doc_id,group\n".encode("utf-16"),
        ", line 1: expected UTF-8, found what looks like UTF-16 (save the file as UTF-8)",
    ),
    "half a gzip": (gzip.compress(PLAIN.encode())[:-9], ": damaged gzip file (Compressed file ended"),
    "no object": ('{"doc_id": 1}\n[1]\n', ", line 2: expected a JSON object, found '[1]'"),
    "broken JSON": ('{"doc_id": 1}\n\n{"doc_id"\n', ", line 3: expected a JSON object, found '{\"doc_id\"'"),
    "half a surrogate pair": (
        '{"x": "\\ud83d\\ude00"}\n{"x": ["\\ud83d"]}\n',
        ', line 2: expected Unicode, found half a surrogate pair: \'{"x": ["\\\\ud83d"]}\'',
    ),
    "half a pair in a name": (
        '{"\\udc00": 1}\n',
        ", line 1: expected Unicode, found half a surrogate pair: '{\"\\\\udc00\": 1}'",
    ),
    "deep JSON": ('{"x": ' + "[" * 100_000, ', line 1: expected a JSON object, found \'{"x": [[['),
    "deep JSON with an escape": (f'{{"x": "\\u0041", "y": {"[" * 100_000}', ", line 1: expected a JSON object, found"),
    "damaged Parquet": (b"PAR1xxxxPAR1", ": damaged Parquet file ("),
    "Parquet cut off": (b"PAR1", ": damaged Parquet file ("),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name: str, tmp_path: Path) -> None:
    content, message = BAD[name]
    with pytest.raises(InputError) as error:
        read(tmp_path, content)
    assert str(error.value).startswith(f"{tmp_path / 'columns'}{message}")
    assert "\n" not in str(error.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none: no such file"):
        read_columns(tmp_path / "none")
    with pytest.raises(InputError, match=r"Is a directory"):
        read_columns(tmp_path)


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
