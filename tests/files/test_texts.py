"""Collections and queries: TSV, JSONL and Parquet."""

from __future__ import annotations

import gzip
import io
import json
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import InputError, read_queries, read_texts, reading, scan_collection
from evenrank.files.convert import TEXT_COLUMNS, text_table
from evenrank.files.tables import IdIndex, first_repeat

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


@pytest.mark.parametrize("size", [1 << 24, 1, 12])
@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ("1\tone\n0\ttwo words\n", [("1", "one"), ("0", "two words")]),
        ("1\tone\n0\ttwo", [("1", "one"), ("0", "two")]),
        ("1\tone\r\n0\ttwo\r\n", [("1", "one"), ("0", "two")]),
        ("\ufeff1\tone\n", [("1", "one")]),
        ("1\tone\ttab\n2\t\tfirst\n3\tlast\t\n", [("1", "one\ttab"), ("2", "\tfirst"), ("3", "last\t")]),
        ("1\t\n2\ttwo\n", [("1", ""), ("2", "two")]),
        ("1\ttwo\n2\t\n", [("1", "two"), ("2", "")]),
        ("1\t\n2\ttab\ttab\n", [("1", ""), ("2", "tab\ttab")]),
        ("1\tone\n\n2\ttwo\n\n", [("1", "one"), ("2", "two")]),
        ("1\t  kept blanks \n", [("1", "  kept blanks ")]),
        ('1\t"quoted" and "\n2\t""\n', [("1", '"quoted" and "'), ("2", '""')]),
        ("a b\tan id with a blank\n", [("a b", "an id with a blank")]),
        ("007\t1\n1e3\t2\n", [("007", "1"), ("1e3", "2")]),
        ("ä\t𝔘ni\u2028code\x0b\n", [("ä", "𝔘ni\u2028code\x0b")]),
        ("null\tNA\n", [("null", "NA")]),
    ],
)
def test_tsv(tmp_path: Path, block_bytes: Callable[[int], None], content: str, rows: Rows, size: int) -> None:
    block_bytes(size)
    assert collection(written(tmp_path, content)) == rows
    assert collection(written(tmp_path, gzip.compress(content.encode()))) == rows


@pytest.mark.parametrize("size", [1 << 24, 1])
@pytest.mark.parametrize(
    "header", ["id\ttext", "doc_id\ttext", "DocNo\tBody", "pid\tpassage", "qid\tquery", "_id\tcontents"]
)
def test_a_header_names_columns(tmp_path: Path, block_bytes: Callable[[int], None], header: str, size: int) -> None:
    block_bytes(size)
    assert collection(written(tmp_path, f"{header}\n1\tone\n")) == [("1", "one")]
    assert collection(written(tmp_path, f"{header}\n1\tone\tand a tab\n")) == [("1", "one\tand a tab")]


def test_what_looks_like_a_header_is_one_in_the_first_line_only(
    tmp_path: Path, block_bytes: Callable[[int], None]
) -> None:
    content = "1\tone\nid\ttext\n"
    for size in (1 << 24, 1):
        block_bytes(size)
        assert collection(written(tmp_path, content)) == [("1", "one"), ("id", "text")]
    # The second block holds the other two lines, and a tab in a text.
    block_bytes(18)
    rows = [("1", "one one one one"), ("id", "text"), ("2", "a\tb")]
    assert collection(written(tmp_path, "".join(f"{name}\t{text}\n" for name, text in rows))) == rows
    assert collection(written(tmp_path, "id\tof something\n")) == [("id", "of something")]
    assert collection(written(tmp_path, "7\ttext\n")) == [("7", "text")]


@pytest.mark.parametrize("size", [1 << 24, 1])
@pytest.mark.parametrize(
    ("content", "rows"),
    [
        ('{"id": "1", "text": "one"}\n{"id": "0", "text": ""}\n', [("1", "one"), ("0", "")]),
        ('{"id": 7, "text": "a number"}', [("7", "a number")]),
        ('{"docid": "1", "contents": "one"}', [("1", "one")]),
        ('{"_id": "1", "title": "A title", "text": "one"}', [("1", "A title one")]),
        ('{"_id": "1", "title": "", "text": "one", "metadata": {}}', [("1", "one")]),
        ('{"_id": "1", "title": null, "text": "one"}', [("1", "one")]),
        (
            '\n {"id": "1", "text": "one"}\r\n\n{"id": "2", "text": "two\\nlines\\ta tab"}\n',
            [("1", "one"), ("2", "two\nlines\ta tab")],
        ),
        ('{"id": "1", "text": "\\ud835\\udd18"}', [("1", "𝔘")]),
        ('{"doc_id": "right", "id": "wrong", "text": "right", "query": "wrong"}', [("right", "right")]),
    ],
)
def test_jsonl(tmp_path: Path, block_bytes: Callable[[int], None], content: str, rows: Rows, size: int) -> None:
    block_bytes(size if not content.startswith("\n") else 1 << 24)
    assert collection(written(tmp_path, content)) == rows
    assert collection(written(tmp_path, gzip.compress(content.encode()))) == rows


NAMES = [
    (kind, column, name) for kind, columns in TEXT_COLUMNS.items() for column, of in columns.items() for name in of
]


@pytest.mark.parametrize(("kind", "column", "name"), NAMES)
def test_names_of_columns(tmp_path: Path, kind: str, column: str, name: str) -> None:
    read = {"doc_id": collection, "query_id": lambda path: read_queries(path).rows()}[kind]
    names = ("id", name) if column == "text" else (name, "text")
    rows = dict(zip(names, ("a", "one"), strict=True))
    for content in (json.dumps({"other": 1, **rows}), parquet(other=[1], **{key: [one] for key, one in rows.items()})):
        assert read(written(tmp_path, content)) == [("a", "one")]


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "parquet"])
def test_rows_of_documents_and_queries(tmp_path: Path, form: str) -> None:
    """The rows of a ranking hold the ids and texts of both; a file gives what the same frame does."""
    frame = pl.DataFrame({"query": ["who sails"], "docno": ["d1"], "text": ["a ship"], "qid": ["q1"]})
    write = {
        "csv": frame.write_csv,
        "tsv": lambda path: frame.write_csv(path, separator="\t"),
        "jsonl": frame.write_ndjson,
        "parquet": frame.write_parquet,
    }
    write[form](tmp_path / "file")
    assert collection(tmp_path / "file") == text_table(frame, "").rows() == [("d1", "a ship")]
    queries = read_queries(tmp_path / "file").rows()
    assert queries == text_table(frame, "", "query_id").rows() == [("q1", "who sails")]


@pytest.mark.parametrize("heading", ["title\tdoc_id\ttext", "text\tdoc_id", "title\ttext\tid", "doc_id\ttext\ttitle"])
def test_headings_of_tsv(tmp_path: Path, heading: str) -> None:
    row = {"title": "T", "doc_id": "d1", "id": "d1", "text": "a ship"}
    columns = heading.split("\t")
    found = collection(written(tmp_path, heading + "\n" + "\t".join(row[one] for one in columns) + "\n"))
    assert found == [("d1", "T a ship" if "title" in columns else "a ship")]


def test_parquet(tmp_path: Path) -> None:
    texts = ["one", "two", "three", "four", ""]
    plain = [(str(i), text) for i, text in enumerate(texts)]
    assert collection(written(tmp_path, parquet(id=range(5), text=texts))) == plain
    titled = parquet(text=texts, title=["A", None, "", "D", "E"], id=list("01234"), url=["u"] * 5)
    assert collection(written(tmp_path, titled)) == [
        ("0", "A one"),
        ("1", "two"),
        ("2", "three"),
        ("3", "D four"),
        ("4", "E"),
    ]
    assert collection(written(tmp_path, parquet(id=[b"1"], text=["\u00fc".encode()], title=[None]))) == [("1", "ü")]
    dictionary = pa.array(["a", "b", "a"]).dictionary_encode()
    assert collection(written(tmp_path, parquet(id=[1, 2, 3], text=dictionary))) == [("1", "a"), ("2", "b"), ("3", "a")]


def test_the_form_is_told_by_content(tmp_path: Path) -> None:
    assert collection(written(tmp_path, "1\tone\n", "c.jsonl")) == [("1", "one")]
    assert collection(written(tmp_path, '{"id": 1, "text": "one"}\n', "c.tsv")) == [("1", "one")]
    assert collection(written(tmp_path, parquet(id=["1"], text=["one"]), "c.tsv.gz")) == [("1", "one")]


def test_queries(tmp_path: Path) -> None:
    rows = [("10", "what is that"), ("9", "")]
    for content in (
        "10\twhat is that\n9\t\n",
        "qid\tquery\n10\twhat is that\n9\t\n",
        '{"qid": 10, "query": "what is that"}\n{"qid": "9", "query": ""}\n',
        parquet(query_id=[10, 9], text=["what is that", ""]),
    ):
        table = read_queries(written(tmp_path, content))
        assert table.schema == {"query_id": pl.String, "text": pl.String}
        assert table.rows() == rows


TEXT = st.text(alphabet=st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]), max_size=10)
# A file that begins with a NUL is taken for UTF-16.
ID = st.text(
    alphabet=st.characters(exclude_characters="\0\n\r\t\ufeff", exclude_categories=["Cs"]), min_size=1, max_size=4
)


@given(
    st.dictionaries(ID.filter(lambda name: name.strip() and name[0] != "{"), TEXT, min_size=1, max_size=12),
    st.sampled_from([1, 7, 30, 1 << 20]),
)
def test_any_collection_in_any_form_and_blocks(
    tmp_path_factory: pytest.TempPathFactory, documents: dict[str, str], size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any-collection"
    rows = list(documents.items())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(reading.line_blocks.__kwdefaults__, "block_bytes", size)
        path.write_text("".join(f"{name}\t{text}\n" for name, text in rows), encoding="utf-8", newline="")
        assert collection(path) == rows
        lines = [json.dumps({"id": name, "text": text}, ensure_ascii=size > 1) for name, text in rows]
        path.write_text("\n".join(lines), encoding="utf-8", newline="")
        assert collection(path) == rows
        path.write_bytes(parquet(id=list(documents), text=list(documents.values())))
        assert collection(path) == rows


def test_streaming_gives_batches(tmp_path: Path, block_bytes: Callable[[int], None]) -> None:
    content = "".join(f"{i}\ttext {i}\n" for i in range(500))
    block_bytes(256)
    batches = list(scan_collection(written(tmp_path, content)))
    assert len(batches) > 20
    assert max(batch.height for batch in batches) < 40
    assert pl.concat(batches).rows() == [(str(i), f"text {i}") for i in range(500)]


# --- some of the texts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1 << 24, 8])
def test_only_the_texts_that_are_wanted(tmp_path: Path, block_bytes: Callable[[int], None], size: int) -> None:
    block_bytes(size)
    path = written(tmp_path, "1\tone\n2\ttwo\n3\tthree\n4\tfour\n")

    def wanted(*ids: str) -> list[tuple[str, ...]]:
        return read_texts(path, pl.Series("doc_id", ids, dtype=pl.String)).rows()

    assert wanted("4", "2", "4", "none") == [("2", "two"), ("4", "four")]
    assert wanted("none") == []
    assert wanted() == []
    assert wanted("1", "2", "3", "4") == [("1", "one"), ("2", "two"), ("3", "three"), ("4", "four")]


def test_a_repeat_among_texts_that_are_not_wanted(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'2' appears twice"):
        read_texts(written(tmp_path, "1\tone\n2\ttwo\n2\tagain\n"), pl.Series(["1"]))


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


@pytest.mark.parametrize("size", [1 << 24, 1])
@pytest.mark.parametrize(
    ("content", "first", "again"),
    [
        ("1\tone\n2\ttwo\n3\tthree\n2\tagain\n", 2, 4),
        ("2\tone\n2\tone\n", 1, 2),
        ("2\ta\tb\n\n1\tx\n2\ty", 1, 3),
        ("id\ttext\n1\tone\n2\ttwo\n2\tagain\n", 2, 3),
        ('{"id": 2, "text": "one"}\n{"id": "2", "text": "two"}\n', 1, 2),
        (parquet(id=[2, 3, 4, 5, 2], text=list("abcde")), 1, 5),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_an_id_that_stands_twice(
    tmp_path: Path, block_bytes: Callable[[int], None], content: str | bytes, first: int, again: int, size: int
) -> None:
    block_bytes(size)
    path = written(tmp_path, content)
    for reader in (collection, read_queries):
        with pytest.raises(InputError) as caught:
            reader(path)
        if path.read_bytes()[:4] == b"PAR1":
            assert str(caught.value) == f"{path}: the id '2' appears twice: texts {first} and {again}"
        else:
            # Lines count header and blank lines too.
            assert re.fullmatch(
                rf"{re.escape(str(path))}, line \d+: the id '2' appears twice \(first in line \d+\)", str(caught.value)
            )
    assert sum(batch.height for batch in scan_collection(path, unique=False)) == again


@pytest.mark.parametrize("size", [1 << 24, 1])
@pytest.mark.parametrize(
    ("content", "line", "message"),
    [
        ("1\tone\n2 two\n3\tthree\n", 2, "expected an id, a tab and a text, found '2 two' and no tab"),
        ("1 one\n", 1, "expected an id, a tab and a text, found '1 one' and no tab"),
        ("1\tone\ttab\n2 two\n", 2, "expected an id, a tab and a text, found '2 two' and no tab"),
        ("1\tone\n\ttwo\n", 2, "expected an id before the tab, found none"),
        (
            '{"id": "1", "text": "a"}\n{"id": "2", "text": "b"\n',
            2,
            'expected a JSON object, found \'{"id": "2", "text": "b"\'',
        ),
        ('{"id": "1", "text": "a"}\n["2", "b"]\n', 2, 'expected a JSON object, found \'["2", "b"]\''),
        ('{"id": "1", "text": "a"}\n2\tb\n', 2, "expected a JSON object, found '2\\tb'"),
        ('\n{"text": "a"}\n', 2, "expected a string or an integer under one of doc_id, docno, docid,"),
        ('{"id": 1.5, "text": "a"}\n', 1, "expected a string or an integer under one of doc_id,"),
        ('{"id": true, "text": "a"}\n', 1, "expected a string or an integer under one of doc_id,"),
        ('{"id": "", "text": "a"}\n', 1, "expected a string or an integer under one of doc_id,"),
        ('{"id": 1}\n', 1, "expected a string under one of text, contents, body, passage (`id_column` and "),
        ('{"id": 1, "text": null}\n', 1, "expected a string under one of text,"),
        ('{"id": 1, "text": ["a"]}\n', 1, "expected a string under one of text,"),
        ('{"id": 1, "text": "a"}\n{"id": 2, "text": "\\ud800"}\n', 2, "expected Unicode, found half a surrogate pair"),
        ('{"id": 1, "text": "a"}\n{"id": ' + "[" * 100_000 + "\n", 2, 'expected a JSON object, found \'{"id": [[['),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_lines_that_are_no_text(
    tmp_path: Path, block_bytes: Callable[[int], None], content: str, line: int, message: str, size: int
) -> None:
    block_bytes(size if not content.startswith("\n") else 1 << 24)
    path = written(tmp_path, content)
    with pytest.raises(InputError) as caught:
        collection(path)
    assert str(caught.value).startswith(f"{path}, line {line}: {message}")
    assert caught.value.line == line
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file contains no texts"),
        ("id\ttext\n", "the file contains no texts"),
        (parquet(id=pa.array([], pa.string()), text=pa.array([], pa.string())), "the file contains no texts"),
        (parquet(name=["1"], text=["a"]), "expected a column of "),
        (parquet(id=["1", "2", "3", None], text=list("abcd")), "row 4: the id or the text is missing"),
        (parquet(id=["1", "2", "3"], text=["a", "b", None]), "row 3: the id or the text is missing"),
        (parquet(id=["1", ""], text=["a", "b"]), "row 2: the id or the text is missing"),
        (parquet(id=["1"], text=["a"])[:-1], "damaged Parquet file ("),
        (b"PAR1", "damaged Parquet file ("),
        (parquet(id=["1"], text=pa.array([b"\xff"])), "damaged Parquet file ("),
        (parquet(id=["1"], text=[{"a": 1}]), "expected text in the column text, found Struct("),
        (parquet(id=["1"], text=[1.5]), "expected text in the column text, found Float64"),
        (parquet(id=[1.0], text=["a"]), "expected text in the column id, found Float64"),
        (parquet(id=["1"], text=["a"], title=[["b"]]), "expected text in the column title, found List(String)"),
        (parquet(id=["1"], text=[None]), "row 1: the id or the text is missing"),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_files_without_texts(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = written(tmp_path, content)
    for reader in (collection, read_queries):
        with pytest.raises(InputError) as caught:
            reader(path)
        assert str(caught.value).startswith(f"{path}: {message}")
        assert "\n" not in str(caught.value)


# --- real files ----------------------------------------------------------------------------------------------------


def test_real_files(shared_data: Path) -> None:
    for path in sorted((shared_data / "grepbiasir").glob("*.tsv")):
        lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        assert collection(path) == [tuple(line.split("\t", 1)) for line in lines]


def test_the_lines_of_a_repeated_id_count_header_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "c.tsv"
    path.write_text("id\ttext\n7\tone\n\n8\ttwo\n7\tthree\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"c\.tsv, line 5: the id '7' appears twice \(first in line 2\)"):
        list(scan_collection(path))
