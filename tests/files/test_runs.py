"""TREC runs: their forms, their order, their mistakes."""

from __future__ import annotations

import gzip
import math
import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evenrank.files import EvenrankError, InputError, Order, Run, read_qrels, read_run, reading, write_run
from trec_forms import COLUMNS, FIELD, FORMS, RUN, slow_run, written

RANKED = [
    ("0", "d9", 2.5, 1),
    ("0", "d10", 2.5, 2),
    ("0", "d1", 1.5, 3),
    ("q2", "d1", -0.001, 1),
    ("q2", "0", -2.0, 2),
]


@pytest.mark.parametrize("size", [1 << 24, 1, 20, 50])
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_run(tmp_path: Path, block_bytes: Callable[[int], None], form: str, size: int) -> None:
    block_bytes(size)
    run = read_run(written(tmp_path, FORMS[form](RUN)))
    assert run.table.columns == COLUMNS
    assert run.table.dtypes[:3] == [pl.String, pl.String, pl.Float64]
    assert run.table.rows() == RANKED == slow_run(RUN)


def test_gzip_is_told_by_content(tmp_path: Path) -> None:
    assert read_run(written(tmp_path, RUN, "plain.gz")).table.rows() == RANKED
    assert read_run(written(tmp_path, gzip.compress(RUN.encode()), "packed.run")).table.rows() == RANKED


def test_ids_stay_text(tmp_path: Path) -> None:
    rows = read_run(written(tmp_path, "007 Q0 1e3 1 2 t\n007 Q0 0x1F 2 1 t\n007 Q0 nan 3 0 t\nnull 0 true 1 1 t\n"))
    assert rows.table.select("query_id", "doc_id").rows() == [
        ("007", "1e3"),
        ("007", "0x1F"),
        ("007", "nan"),
        ("null", "true"),
    ]


def test_name(tmp_path: Path) -> None:
    path = written(tmp_path, RUN, "bm25.run")
    assert read_run(path).name == "bm25.run"
    assert read_run(path, name="BM25").name == "BM25"


# --- order ---------------------------------------------------------------------------------------------------------


def test_order_of_the_file(tmp_path: Path) -> None:
    assert read_run(written(tmp_path, RUN), order="file").table.rows() == [
        ("0", "d1", -1.0, 1),
        ("0", "d10", -2.0, 2),
        ("0", "d9", -3.0, 3),
        ("q2", "0", -1.0, 1),
        ("q2", "d1", -2.0, 2),
    ]


def test_ties_fall_by_the_bytes_of_the_id(tmp_path: Path) -> None:
    ids = ["b", "B", "10", "9", "é", "z", "𝔘", "\uff5e", "a", "aa"]
    table = read_run(written(tmp_path, "".join(f"1 Q0 {doc} 1 7 t\n" for doc in ids))).table
    assert table["doc_id"].to_list() == ["𝔘", "\uff5e", "é", "z", "b", "aa", "a", "B", "9", "10"]


def test_zero_ties_with_minus_zero(tmp_path: Path) -> None:
    table = read_run(written(tmp_path, "1 Q0 a 1 0 t\n1 Q0 b 2 -0.0 t\n1 Q0 c 3 0.0 t\n")).table
    assert table["doc_id"].to_list() == ["c", "b", "a"]


def test_queries_keep_their_first_place(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, "b Q0 x 1 1 t\na Q0 x 1 9 t\nc Q0 x 1 5 t\nb Q0 y 2 3 t\na Q0 y 2 8 t\n"))
    assert run.queries.to_list() == ["b", "a", "c"]
    assert run.table["query_id"].to_list() == ["b", "b", "a", "a", "c"]


SCORE = st.one_of(
    st.integers(-2, 2).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["1e3", "-1E-2", ".5", "5.", "+2", "0", "-0", "1000"]),
)


@st.composite
def run_files(draw: st.DrawFn) -> str:
    pairs = draw(st.lists(st.tuples(st.sampled_from(["0", "q", "10"]), FIELD), min_size=1, max_size=25, unique=True))
    gap = st.sampled_from([" "]) if draw(st.booleans()) else st.sampled_from([" ", "\t", "  ", " \t"])
    lines = []
    for query, doc in pairs:
        fields = [query, "Q0", doc, draw(st.sampled_from(["1", "2", "x"])), draw(SCORE), "t"]
        lines.append("".join(field + draw(gap) for field in fields[:-1]) + fields[-1])
        if draw(st.integers(0, 9)) == 0:
            lines.append(draw(st.sampled_from(["", " ", "\t"])))
    return "\n".join(lines) + "\n" * draw(st.integers(0, 1))


@given(run_files(), st.sampled_from(["score", "file"]), st.sampled_from([3, 40, 1 << 20]))
@example("1 Q0 a 1 1e-320 t\n1 Q0 b 2 1e-321 t", "score", 1 << 20)
def test_any_run(tmp_path_factory: pytest.TempPathFactory, content: str, order: Order, size: int) -> None:
    path = tmp_path_factory.getbasetemp() / "any.run"
    path.write_text(content, encoding="utf-8", newline="")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(reading.line_blocks.__kwdefaults__, "block_bytes", size)
        run = read_run(path, name="any", order=order)
    assert run.table.rows() == slow_run(content, order)
    # A table of the same rows gives the same run, and so does the run written and read again.
    rows = [re.split("[ \t]+", line.strip()) for line in content.split("\n") if line.strip()]
    table = pl.DataFrame([(row[0], row[2], float(row[4])) for row in rows], schema=COLUMNS[:3], orient="row")
    assert Run.from_table(table, "any", order=order).table.equals(run.table)
    write_run(run, path)
    assert read_run(path).table.equals(run.table)
    assert read_run(path).notes == ()


# --- the rank column -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "scores", "count"),
    [
        ([1, 2, 3], [3, 2, 1], 0),
        ([0, 1, 2], [3, 2, 1], 0),
        ([1, 2, 3], [3, 3, 3], 0),
        ([1, 1, 1], [1, 2, 3], 0),
        ([3, 1, 2], [1, 3, 2], 0),
        ([1, 2, 3], [1, 2, 3], 2),
        ([1, 2, 3], [3, 1, 2], 1),
        ([2, 1, 3], [3, 2, 1], 1),
    ],
)
def test_rank_column_against_scores(tmp_path: Path, ranks: list[int], scores: list[float], count: int) -> None:
    lines = [f"1 Q0 d{i} {rank} {score} t\n" for i, (rank, score) in enumerate(zip(ranks, scores, strict=True))]
    # The same again for another query: rows of different queries are not compared.
    path = written(tmp_path, "".join(lines) + "".join(lines).replace("1 Q0", "2 Q0"), "model.run")
    by_score, by_file = read_run(path), read_run(path, name="mine", order="file")
    if not count:
        assert by_score.notes == by_file.notes == ()
        return
    says = f"the rank column contradicts the scores of {2 * count} rows; the"
    assert by_score.notes == (f"model.run: {says} scores decided",)
    assert by_file.notes == (f"mine: {says} order of the file decided",)
    assert by_score.table["score"].to_list() == sorted(scores, reverse=True) * 2


def test_ranks_that_are_no_numbers_contradict_nothing(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, "1 Q0 a - 1 t\n1 Q0 b x 2 t\n1 Q0 c 99999999999 3 t\n1 Q0 d 0 4 t\n"))
    assert run.notes == ()
    assert run.table["doc_id"].to_list() == ["d", "c", "b", "a"]


# --- writing -------------------------------------------------------------------------------------------------------


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@example([0.1 + 0.2, 1 / 3, 5e-324, -1.7976931348623157e308, 1e22, 123456789.123456789, -0.0])
def test_scores_keep_their_precision(tmp_path_factory: pytest.TempPathFactory, scores: list[float]) -> None:
    path = tmp_path_factory.getbasetemp() / "precise.run"
    table = pl.DataFrame({"query_id": ["1"] * len(scores), "doc_id": map(str, range(len(scores))), "score": scores})
    run = Run.from_table(table.with_columns(pl.col("doc_id").cast(pl.String)), "precise")
    write_run(run, path)
    again = read_run(path).table
    assert again.equals(run.table)
    assert list(map(math.copysign, [1.0] * again.height, again["score"])) == list(
        map(math.copysign, [1.0] * again.height, run.table["score"])
    )


def test_written_form(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, RUN), name="my  new run")
    write_run(run, tmp_path / "out.run")
    assert (tmp_path / "out.run").read_text() == (
        "0 Q0 d9 1 2.5 my_new_run\n0 Q0 d10 2 2.5 my_new_run\n0 Q0 d1 3 1.5 my_new_run\n"
        "q2 Q0 d1 1 -0.001 my_new_run\nq2 Q0 0 2 -2.0 my_new_run\n"
    )


@pytest.mark.parametrize("name", ["", " ", "a\tb", "a\nb"])
def test_no_name_breaks_the_form(tmp_path: Path, name: str) -> None:
    write_run(read_run(written(tmp_path, RUN), name=name), tmp_path / "out.run")
    assert read_run(tmp_path / "out.run").table.rows() == RANKED


@pytest.mark.parametrize("bad", ["", "a b", "a\tb", "a\nb"])
@pytest.mark.parametrize("column", ["query_id", "doc_id"])
def test_an_id_that_the_form_cannot_carry(tmp_path: Path, column: str, bad: str) -> None:
    run = Run.from_table(pl.DataFrame({"query_id": ["1"], "doc_id": ["2"], "score": [1.0], column: [bad]}))
    with pytest.raises(InputError, match="is empty or contains white space"):
        write_run(run, tmp_path / "out.run")
    assert list(tmp_path.iterdir()) == []


def test_an_id_with_other_spaces_is_carried(tmp_path: Path) -> None:
    run = read_run(written(tmp_path, "1\u00a02 Q0 a\u2003b 1 1 t\n"))
    write_run(run, tmp_path / "out.run")
    assert read_run(tmp_path / "out.run").table.rows() == [("1\u00a02", "a\u2003b", 1.0, 1)]


# --- runs from tables ----------------------------------------------------------------------------------------------


def test_from_table_takes_numbers_as_ids() -> None:
    table = pl.DataFrame({"doc_id": [10, 9], "query_id": [0, 0], "score": [1, 1], "other": ["x", "y"]})
    assert Run.from_table(table).table.rows() == [("0", "9", 1.0, 1), ("0", "10", 1.0, 2)]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"query_id": ["1"], "score": [1.0]}, "run r: the table has no column doc_id"),
        ({"query_id": [], "doc_id": [], "score": []}, "run r: expected at least one row, found none"),
        (
            {"query_id": ["1"], "doc_id": ["2"], "score": [float("nan")]},
            "run r: expected a finite number as score, found nan",
        ),
        (
            {"query_id": ["1"], "doc_id": ["2"], "score": [float("inf")]},
            "run r: expected a finite number as score, found inf",
        ),
        (
            {"query_id": ["1"], "doc_id": ["2"], "score": ["high"]},
            "run r: expected a finite number as score, found 'high'",
        ),
        ({"query_id": ["1"], "doc_id": [None], "score": [1.0]}, "run r: expected a string or a whole number as doc_id"),
        (
            {"query_id": ["1", "2", "1"], "doc_id": ["2", "2", "2"], "score": [1.0, 2.0, 3.0]},
            "run r: the document '2' appears twice for the query '1'",
        ),
    ],
)
def test_tables_that_are_no_run(columns: dict[str, list[object]], message: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        Run.from_table(pl.DataFrame(columns), "r")
    assert str(caught.value).startswith(message)


# --- mistakes ------------------------------------------------------------------------------------------------------

GOOD = "1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n"


FIELDS = "expected 6 fields (query_id, Q0, doc_id, rank, score, tag) of a TREC run"


@pytest.mark.parametrize("size", [1 << 24, 1])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 Q0 c 3 1", f"{FIELDS}, found 5: '1 Q0 c 3 1'"),
        ("1\tQ0\tc\t3\t1", f"{FIELDS}, found 5: '1\\tQ0\\tc\\t3\\t1'"),
        ("1 Q0 c 3 1 t t", f"{FIELDS}, found 7: '1 Q0 c 3 1 t t'"),
        ("1 Q0\tc 3 4 1 t", f"{FIELDS}, found 7: '1 Q0\\tc 3 4 1 t'"),
        ("c", f"{FIELDS}, found 1: 'c'"),
        ("1 Q0 c 3 nan t", "expected a finite number as score, found 'nan'"),
        ("1 Q0 c 3 -inf t", "expected a finite number as score, found '-inf'"),
        ("1 Q0 c 3 1e999 t", "expected a finite number as score, found '1e999'"),
        ("1 Q0 c 3 1,5 t", "expected a finite number as score, found '1,5' (the decimal sign is a point)"),
        ("1 Q0 c 3 high t", "expected a finite number as score, found 'high'"),
        ("1 Q0 b 3 0 t", "the document 'b' appears twice for the query '1' (first in line 2)"),
    ],
)
def test_mistakes_in_a_run(
    tmp_path: Path, block_bytes: Callable[[int], None], size: int, line: str, message: str
) -> None:
    block_bytes(size)
    path = written(tmp_path, GOOD + "\n" + line + "\n2 Q0 b 1 1 t\n")
    with pytest.raises(InputError) as caught:
        read_run(path)
    assert str(caught.value) == f"{path}, line 4: {message}"
    assert caught.value.line == 4


@pytest.mark.parametrize("line", ["1 Q0\tc 3 4 1 t", "1\tQ0 c 3 4 1 t", "1 Q0 c 3 1 t\tt", "1\tQ0\tc\t3\t4\t1\tt"])
def test_a_seventh_field_behind_the_other_kind_of_blank(tmp_path: Path, line: str) -> None:
    for good in (GOOD, GOOD.replace(" ", "\t")):
        path = written(tmp_path, good + line + "\n")
        with pytest.raises(InputError) as caught:
            read_run(path)
        assert str(caught.value) == f"{path}, line 3: {FIELDS}, found 7: {line!r}"


def test_the_same_document_for_different_queries_is_no_repeat(tmp_path: Path) -> None:
    # Nor are ids that read the same when they are put together.
    run = read_run(written(tmp_path, "1 Q0 1a 1 2 t\n11 Q0 a 1 1 t\n2 Q0 1a 1 1 t\n"))
    assert run.table.height == 3


def test_a_repeat_across_blocks_and_queries_that_stand_apart(
    tmp_path: Path, block_bytes: Callable[[int], None]
) -> None:
    block_bytes(1)
    path = written(tmp_path, GOOD + "2 Q0 a 1 1 t\n1 Q0 a 9 0 t\n")
    with pytest.raises(InputError, match=r"line 4: the document 'a' appears twice .* \(first in line 1\)"):
        read_run(path)


@pytest.mark.parametrize(
    ("reader", "content", "message"),
    [
        (read_run, "", "the file is empty"),
        (read_qrels, "", "the file is empty"),
        (read_run, "\n \n", "the file has no lines"),
        (read_qrels, "\n\n", "the file has no lines"),
    ],
)
def test_nothing_in_the_file(tmp_path: Path, reader: Callable[[Path], object], content: str, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError) as caught:
        reader(path)
    assert str(caught.value) == f"{path}: {message}"


# --- real files ----------------------------------------------------------------------------------------------------


def test_real_runs(shared_data: Path) -> None:
    for path in [*sorted((shared_data / "runs").glob("*.run"))[:2], shared_data / "grepbiasir" / "bm25.run"]:
        content = path.read_text()
        for order in ("score", "file"):
            assert read_run(path, order=order).table.rows() == slow_run(content, order)
