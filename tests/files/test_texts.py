"""Collections and queries: TSV, JSONL and Parquet."""

from __future__ import annotations

import io
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import InputError, read_queries, scan_collection
from evenrank.files.tables import IdIndex, first_repeat, text_bytes

Rows = list[tuple[str, str]]


def collection(path: Path) -> Rows:
    """All documents of a collection."""
    table = pl.concat(list(scan_collection(path)))
    assert table.schema == {"doc_id": pl.String, "text": pl.String}
    return [(doc, text) for doc, text in table.iter_rows()]


def written(tmp_path: Path, content: str | bytes, name: str = "file") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def parquet(**columns: object) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, row_group_size=2)
    return buffer.getvalue()


# --- forms ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1 << 24, 1])
@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("doc_id\ttext\n1\tone\n", [("1", "one")]),
        ("DocNo\tBody\n1\tone\n", [("1", "one")]),
        ("title\tdoc_id\ttext\nT\td1\ta ship\n", [("d1", "T a ship")]),
        # In the first line only, and of both names.
        ("1\tone\nid\ttext\n2\ta\tb\n", [("1", "one"), ("id", "text"), ("2", "a\tb")]),
        ("id\tof something\n", [("id", "of something")]),
        ('{"id": 7, "text": "a number"}\n{"id": "0", "text": ""}', [("7", "a number"), ("0", "")]),
        ('{"_id": "1", "title": "A title", "text": "one"}', [("1", "A title one")]),
        ('\n {"id": "1", "text": "\\ud835\\udd18"}\r\n\n', [("1", "𝔘")]),
        ('{"doc_id": "right", "id": "wrong", "text": "right", "query": "wrong"}', [("right", "right")]),
    ],
)
def test_columns(tmp_path: Path, block_bytes: Callable[[int], None], content: str, rows: Rows, size: int) -> None:
    block_bytes(1 << 24 if content.startswith("\n") else size)
    assert collection(written(tmp_path, content)) == rows


def test_parquet(tmp_path: Path) -> None:
    titled = parquet(text=["one", "two", "three", ""], title=["A", None, "", "E"], id=range(4), url=["u"] * 4)
    assert collection(written(tmp_path, titled)) == [("0", "A one"), ("1", "two"), ("2", "three"), ("3", "E")]
    assert collection(written(tmp_path, parquet(id=[b"1"], text=["\u00fc".encode()], title=[None]))) == [("1", "ü")]


# --- some of the texts ---------------------------------------------------------------------------------------------


@given(
    st.lists(st.lists(st.sampled_from("abcdefghij"), max_size=6), min_size=1, max_size=3),
    st.lists(st.text(max_size=2)),
)
def test_id_index(parts: list[list[str]], asked: list[str]) -> None:
    index = IdIndex([pl.Series(part, dtype=pl.String) for part in parts])
    known = [name for part in parts for name in part]
    asked += ["a", "b"]
    places = index.places(pl.Series(asked, dtype=pl.String)).tolist()
    assert places == [known.index(name) if name in known else -1 for name in asked]
    assert index.among(pl.Series(asked, dtype=pl.String)).to_list() == [name in known for name in asked]


def test_bytes_of_texts() -> None:
    data, begins = text_bytes(pl.Series(["x", "né", "", "b"])[1:])
    assert [bytes(data[start:end]).decode() for start, end in pairwise(begins)] == ["né", "", "b"]
    assert [part.tolist() for part in text_bytes(pl.Series([""]))] == [[], [0, 0]]


def test_an_id_index_of_many() -> None:
    # So many that places of the table are shared.
    known = [str(i % 5000) for i in range(7000)]
    places = IdIndex([pl.Series(known[:100]), pl.Series(known[100:])]).places(pl.Series(map(str, range(9000))))
    assert places.tolist() == [*range(5000), *[-1] * 4000]


@given(st.lists(st.tuples(st.sampled_from(["", "1", "11", "é"]), st.sampled_from(["", "1", "11", "x"])), max_size=14))
def test_first_repeat(pairs: list[tuple[str, str]]) -> None:
    expected = next(((pairs.index(pair), row) for row, pair in enumerate(pairs) if pair in pairs[:row]), None)
    table = pl.DataFrame(pairs, schema={"a": pl.String, "b": pl.String}, orient="row")
    assert first_repeat(table, ["a", "b"]) == expected


# --- mistakes ------------------------------------------------------------------------------------------------------


TAB = "expected an id, a tab and a text"
ID_OF = "expected a string or an integer under one of doc_id,"
TEXT_OF = "expected a string under one of text,"


@pytest.mark.parametrize("size", [1 << 24, 1])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        # Lines count header and blank lines too.
        ("id\ttext\n2\tone\n\n3\ttwo\n2\tthree\n", ", line 5: the id '2' appears twice (first in line 2)"),
        ('{"id": 2, "text": "a"}\n{"id": "2", "text": "b"}', ", line 2: the id '2' appears twice (first in line 1)"),
        (parquet(id=[2, 3, 4, 5, 2], text=list("abcde")), ": the id '2' appears twice: texts 1 and 5"),
        ("", ": the file is empty"),
        ("id\ttext\n", ": the file contains no texts"),
        ("1\tone\n2 two\n3\tthree\n", f", line 2: {TAB}, found '2 two' and no tab"),
        ("1\tone\ttab\n2 two\n", f", line 2: {TAB}, found '2 two' and no tab"),
        ("1\tone\n\ttwo\n", ", line 2: expected an id before the tab, found none"),
        ('{"id": "1", "text": "a"}\n2\tb\n', ", line 2: expected a JSON object, found '2\\tb'"),
        ('{"id": "1", "text": "a"}\n\n{"text": "a"}\n', f", line 3: {ID_OF} docno, docid,"),
        ('{"id": 1.5, "text": "a"}\n', f", line 1: {ID_OF}"),
        ('{"id": "", "text": "a"}\n', f", line 1: {ID_OF}"),
        ('{"id": 1}\n', f", line 1: {TEXT_OF} contents, body, passage (`id_column` and "),
        ('{"id": 1, "text": ["a"]}\n', f", line 1: {TEXT_OF}"),
        ('{"id": 1, "text": "\\ud800"}\n', ", line 1: expected Unicode, found half a surrogate pair"),
        (parquet(id=pa.array([], pa.string()), text=pa.array([], pa.string())), ": the file contains no texts"),
        (parquet(name=["1"], text=["a"]), ": expected a column of "),
        (parquet(id=["1", "2", "3", None], text=list("abcd")), ": row 4: the id or the text is missing"),
        (parquet(id=["1", "2", "3"], text=["a", "b", None]), ": row 3: the id or the text is missing"),
        (parquet(id=["1", ""], text=["a", "b"]), ": row 2: the id or the text is missing"),
        (b"PAR1", ": damaged Parquet file ("),
        (parquet(id=["1"], text=pa.array([b"\xff"])), ": damaged Parquet file ("),
        (parquet(id=["1"], text=[1.5]), ": expected text in the column text, found Float64"),
        (parquet(id=[1.0], text=["a"]), ": expected text in the column id, found Float64"),
        (parquet(id=["1"], text=["a"], title=[["b"]]), ": expected text in the column title, found List(String)"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_files_that_hold_no_texts(
    tmp_path: Path, block_bytes: Callable[[int], None], content: str | bytes, message: str, size: int
) -> None:
    block_bytes(size)
    path = written(tmp_path, content)
    # The names of columns are those of documents.
    for reader in (collection, read_queries) if " one of " not in message else (collection,):
        with pytest.raises(InputError) as caught:
            reader(path)
        assert str(caught.value).startswith(f"{path}{message}")
        assert "\n" not in str(caught.value)
        assert caught.value.line == (int(message[7:].partition(":")[0]) if message.startswith(",") else None)
