"""TREC runs and qrels: their forms, their order, their mistakes."""

from __future__ import annotations

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
QRELS = "q1 Q0 d1 0\nq1 Q0 0 2\n0 Q0 d1 -1\n"


@pytest.mark.parametrize("size", [1 << 24, 1, 20, 50])
@pytest.mark.parametrize("form", FORMS)
def test_forms(tmp_path: Path, block_bytes: Callable[[int], None], form: str, size: int) -> None:
    block_bytes(size)
    run = read_run(written(tmp_path, FORMS[form](RUN)))
    assert run.table.columns == COLUMNS
    assert run.table.dtypes[:3] == [pl.String, pl.String, pl.Float64]
    assert run.table.rows() == RANKED == slow_run(RUN)
    qrels = read_qrels(written(tmp_path, FORMS[form](QRELS)))
    assert qrels.schema == {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    assert qrels.rows() == [("q1", "d1", 0), ("q1", "0", 2), ("0", "d1", -1)]


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
@example("1 Q0 a 1 1e-320 t\n1 Q0 b 2 1e-321 t\n2 Q0 a 1 0.30000000000000004 t", "score", 1 << 20)
# Ties fall by the bytes of the id, and 0 ties with −0.
@example("1 Q0 𝔘 1 7 t\n1 Q0 \uff5e 1 7 t\n2 Q0 a 1 0 t\n2 Q0 b 2 -0.0 t\n2 Q0 c 3 0.0 t", "score", 1 << 20)
# Other spaces, and ids that read the same when they are put together.
@example("1\u00a02 Q0 a\u2003b 1 1 t\n1 Q0 1a 1 2 t\n11 Q0 a 1 1 t", "score", 1 << 20)
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


@pytest.mark.parametrize(
    ("ranks", "scores", "count"),
    [
        ([1, 2, 3], [3, 2, 1], 0),
        ([0, 1, 2], [3, 2, 1], 0),
        ([1, 2, 3], [3, 3, 3], 0),
        ([1, 1, 1], [1, 2, 3], 0),
        ([3, 1, 2], [1, 3, 2], 0),
        (["-", "x", 99999999999, 0], [1, 2, 3, 4], 0),
        ([1, 2, 3], [1, 2, 3], 2),
        ([1, 2, 3], [3, 1, 2], 1),
        ([2, 1, 3], [3, 2, 1], 1),
    ],
)
def test_rank_column_against_scores(tmp_path: Path, ranks: list[object], scores: list[float], count: int) -> None:
    lines = [f"1 Q0 d{i} {rank} {score} t\n" for i, (rank, score) in enumerate(zip(ranks, scores, strict=True))]
    # The same again for another query: rows of different queries are not compared.
    path = written(tmp_path, "".join(lines) + "".join(lines).replace("1 Q0", "2 Q0"), "model.run")
    by_score, by_file = read_run(path), read_run(path, name="mine", order="file")
    says = f"the rank column contradicts the scores of {2 * count} rows; the"
    assert by_score.notes == ((f"model.run: {says} scores decided",) if count else ())
    assert by_file.notes == ((f"mine: {says} order of the file decided",) if count else ())
    assert by_score.table["score"].to_list() == sorted(scores, reverse=True) * 2


# --- writing -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "tag"),
    [("my  new run", "my_new_run"), ("", "run"), (" ", "run"), ("a\tb", "a_b"), ("a\nb", "a_b")],
)
def test_written_form(tmp_path: Path, name: str, tag: str) -> None:
    write_run(read_run(written(tmp_path, RUN), name=name), tmp_path / "out.run")
    assert (tmp_path / "out.run").read_text() == (
        f"0 Q0 d9 1 2.5 {tag}\n0 Q0 d10 2 2.5 {tag}\n0 Q0 d1 3 1.5 {tag}\n"
        f"q2 Q0 d1 1 -0.001 {tag}\nq2 Q0 0 2 -2.0 {tag}\n"
    )


@pytest.mark.parametrize("bad", ["", "a b", "a\tb", "a\nb"])
@pytest.mark.parametrize("column", ["query_id", "doc_id"])
def test_an_id_that_the_form_cannot_carry(tmp_path: Path, column: str, bad: str) -> None:
    run = Run.from_table(pl.DataFrame({"query_id": ["1"], "doc_id": ["2"], "score": [1.0], column: [bad]}))
    with pytest.raises(InputError, match="is empty or contains white space"):
        write_run(run, tmp_path / "out.run")
    assert list(tmp_path.iterdir()) == []


# --- mistakes ------------------------------------------------------------------------------------------------------


def test_a_table_that_is_no_run_is_named() -> None:
    with pytest.raises(EvenrankError, match=r"^run r: the document '2' appears twice for the query '1'"):
        Run.from_table(pl.DataFrame({"query_id": ["1", "2", "1"], "doc_id": ["2"] * 3, "score": [1, 2, 3]}), "r")


GOOD = "1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n2 Q0 a 1 1 t\n\n"
JUDGED = "1 0 a 0\n1 0 b 1\n2 0 b 3\n\n"
FIELDS = "expected 6 fields (query_id, Q0, doc_id, rank, score, tag) of a TREC run"
SCORES = "expected a finite number as score"
GRADES = "expected a whole number as relevance"


@pytest.mark.parametrize("size", [1 << 24, 1])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 Q0 c 3 1", f"{FIELDS}, found 5: '1 Q0 c 3 1'"),
        ("1\tQ0\tc\t3\t1", f"{FIELDS}, found 5: '1\\tQ0\\tc\\t3\\t1'"),
        ("1 Q0 c 3 1 t t", f"{FIELDS}, found 7: '1 Q0 c 3 1 t t'"),
        ("1 Q0\tc 3 4 1 t", f"{FIELDS}, found 7: '1 Q0\\tc 3 4 1 t'"),
        ("1\tQ0 c 3 4 1 t", f"{FIELDS}, found 7: '1\\tQ0 c 3 4 1 t'"),
        ("1 Q0 c 3 1 t\tt", f"{FIELDS}, found 7: '1 Q0 c 3 1 t\\tt'"),
        ("1\tQ0\tc\t3\t4\t1\tt", f"{FIELDS}, found 7: '1\\tQ0\\tc\\t3\\t4\\t1\\tt'"),
        ("c", f"{FIELDS}, found 1: 'c'"),
        ("1 Q0 c 3 nan t", f"{SCORES}, found 'nan'"),
        ("1 Q0 c 3 1e999 t", f"{SCORES}, found '1e999'"),
        ("1 Q0 c 3 1,5 t", f"{SCORES}, found '1,5' (the decimal sign is a point)"),
        ("1 Q0 b 3 0 t", "the document 'b' appears twice for the query '1' (first in line 2)"),
        ("1 0 c 1.0", f"{GRADES}, found '1.0'"),
        ("1 0 c 99999999999999999999", f"{GRADES}, found '99999999999999999999'"),
        ("1 0 c", "expected 4 fields (query_id, iteration, doc_id, relevance) of TREC qrels, found 3: '1 0 c'"),
        ("1 0 b 2", "the document 'b' is judged twice for the query '1', with different grades"),
    ],
)
def test_mistakes(tmp_path: Path, block_bytes: Callable[[int], None], size: int, line: str, message: str) -> None:
    block_bytes(size)
    judged = re.match("1 0 ", line)
    for good in (JUDGED,) if judged else (GOOD, GOOD.replace(" ", "\t")):
        path = written(tmp_path, good + line + ("\n2 0 c 0\n" if judged else "\n2 Q0 b 1 1 t\n"))
        with pytest.raises(InputError) as caught:
            (read_qrels if judged else read_run)(path)
        assert str(caught.value) == f"{path}, line 5: {message}"
        assert caught.value.line == 5


@pytest.mark.parametrize(("content", "message"), [("", "the file is empty"), ("\n \n", "the file has no lines")])
def test_nothing_in_the_file(tmp_path: Path, content: str, message: str) -> None:
    path = written(tmp_path, content)
    for reader in (read_run, read_qrels):
        with pytest.raises(InputError) as caught:
            reader(path)
        assert str(caught.value) == f"{path}: {message}"


def test_real_runs(shared_data: Path) -> None:
    for path in [*sorted((shared_data / "runs").glob("*.run"))[:2], shared_data / "grepbiasir" / "bm25.run"]:
        content = path.read_text()
        for order in ("score", "file"):
            assert read_run(path, order=order).table.rows() == slow_run(content, order)
