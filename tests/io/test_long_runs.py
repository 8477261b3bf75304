"""Long runs: compiled loops read them as the general way does, or leave them to it."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from evenrank.io import InputError, Order, Run, files, long_runs, read_run, runs
from evenrank.io.long_runs import IrregularError, ranked_parts
from evenrank.io.run_chunks import run_chunks
from trec_forms import COLUMNS, FORMS, RUN, slow_run, written

SIZES = (3, 40, 1 << 20)


@pytest.fixture(autouse=True, scope="module")
def every_file_is_long() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_LONG", 0)
        yield


def in_blocks(patch: pytest.MonkeyPatch, size: int) -> None:
    for reader in (files.line_blocks, long_runs._query_parts):
        patch.setitem(reader.__kwdefaults__, "block_bytes", size)


def compiled(path: Path, order: Order = "score") -> Run | None:
    """The run as the compiled loops alone read it."""
    read = runs._read_long(path, order)
    return None if read is None else Run("any", read[0])


def exact(table: pl.DataFrame) -> list[tuple[object, ...]]:
    """Rows with scores to the last bit."""
    return table.with_columns(pl.col("score").map_elements(float.hex, return_dtype=pl.String)).rows()


def failure(of: Path, order: Order = "score", *, long: bool) -> str | list[tuple[object, ...]]:
    """What reading a file says: its error, or its rows and notes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_LONG", 0 if long else 1 << 60)
        try:
            run = read_run(of, order=order)
        except InputError as error:
            return str(error)
    return [*exact(run.table), run.notes]


# --- forms ---------------------------------------------------------------------------------------------------------

REGULAR = """\
q2 Q0 d1 1 -1e-3 tag
q2 Q0 0 2 -2 tag
0 Q0 d1 1 1.5 tag
0 Q0 a-document-of-a-long-name 2 2.5 tag
0 Q0 a-document-of-another-name 3 2.5 tag
a-query-of-a-long-name Q0 d1 1 0.1 tag
"""


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("form", FORMS)
def test_forms_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, size: int) -> None:
    in_blocks(monkeypatch, size)
    path = written(tmp_path, FORMS[form](REGULAR))
    expected = slow_run(REGULAR)
    assert read_run(path).table.rows() == expected
    found = compiled(path)
    irregular = form in ("a byte-order mark", "blank lines")
    assert (found is None) == irregular
    if found is not None:
        assert found.table.rows() == expected


def test_empty_lines_at_the_end(tmp_path: Path) -> None:
    found = compiled(written(tmp_path, REGULAR + "\n\n"))
    assert found is not None
    assert found.table.rows() == slow_run(REGULAR)


def test_a_long_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, REGULAR)
    assert runs.is_long(path)
    monkeypatch.setattr(runs, "_LONG", 1 << 25)
    assert not runs.is_long(path)
    assert not runs.is_long(tmp_path)
    assert not runs.is_long("memory://run")


def test_queries_that_are_not_together_are_left_to_the_general_way(tmp_path: Path) -> None:
    path = written(tmp_path, RUN)
    assert compiled(path) is None
    assert read_run(path).table.rows() == slow_run(RUN)


@pytest.mark.parametrize(
    "content",
    ["", "\n", "\0 Q0 d 1 1 t\n", "1 Q0 d 1 -0 t\n", "1 Q0 d 1 nan t\n", "1 Q0 d 1 1e999 t\n", "1 Q0 d 1 1,5 t\n",
     "1 Q0 d 1 1_0 t\n", "1 Q0 d 1 1\n", "1 Q0 d 1 1 t t\n", "1 Q0 d 1 1 t\n1 Q0 d 2 1 t\n",
     "1 Q0 a-long-document 1 1 t\n" * 2],
)  # fmt: skip
def test_what_is_left_to_the_general_way(tmp_path: Path, content: str) -> None:
    path = written(tmp_path, content)
    assert compiled(path) is None
    assert failure(path, long=True) == failure(path, long=False)


@pytest.mark.parametrize(
    "content", [b"1 Q0 \xff 1 1 t\n", gzip.compress(b"1 Q0 a 1 1 t\n" * 9, mtime=0)[:-9], b"\xff\xfe1\0"]
)
def test_damage_is_left_to_the_general_way(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content)
    assert compiled(path) is None
    assert failure(path, long=True) == failure(path, long=False)


def test_a_low_limit_of_lines_is_left_to_the_general_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(files.LINE_LIMIT_VARIABLE, "10")
    with pytest.raises(InputError, match="expected lines of at most 10 bytes"):
        read_run(written(tmp_path, REGULAR))


def test_a_line_within_a_part_may_be_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "1 Q0 a 1 3 t\n" + f"1 Q0 {'b' * 90} 2 2 t\n" + "1 Q0 c 3 1 t\n")
    monkeypatch.setenv(files.LINE_LIMIT_VARIABLE, "60")
    assert failure(path, long=True) == failure(path, long=False)
    assert "line 2: expected lines of at most 60 bytes" in str(failure(path, long=True))


@pytest.mark.parametrize("long", [True, False])
def test_the_length_of_a_run_names_no_libraries(tmp_path: Path, long: bool) -> None:
    path = written(tmp_path, REGULAR)
    code = (
        "import sys\n"
        "from evenrank.io import provenance, read_run, runs\n"
        f"runs._LONG = {0 if long else 1 << 60}\n"
        f"read_run({str(path)!r})\n"
        f"assert ('numba' in sys.modules) is {long}\n"
        "print(sorted(provenance._versions()))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout == "['evenrank', 'numpy', 'polars', 'python']\n"


def test_a_query_longer_than_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_blocks(monkeypatch, 20)
    content = "".join(f"1 Q0 d{number} 1 {number} t\n" for number in range(30))
    path = written(tmp_path, content)
    assert len(list(ranked_parts(path, True))) == 1
    monkeypatch.setattr(long_runs, "_LONGEST_QUERY", 100)
    assert compiled(path) is None
    assert read_run(path).table.rows() == slow_run(content)


# --- any file ------------------------------------------------------------------------------------------------------

ID = st.text("01aZé𝔘\u00a0", min_size=1, max_size=2) | st.sampled_from(["a-document-of-a-", "x" * 12, "x" * 13])
SCORE = st.one_of(
    st.integers(-2, 2).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.decimals(-1000, 1000, places=6).map(str),
    st.sampled_from(["1e-5", "+2", ".5", "5.", "-.5", "007", "9007199254740993", "0.30000000000000004", "1E5"]),
    st.sampled_from(["123456789012345678", "1234567890123456789", "0.00000000000000000000001", "4.35", "1e23"]),
).filter(lambda score: float(score) != 0 or score[0] != "-")
RANK = st.one_of(
    st.integers(-3, 3).map(str), st.sampled_from(["x", "+2", "2147483647", "2147483648", "1.0", "-", "08"])
)


@st.composite
def regular_runs(draw: st.DrawFn) -> str:
    """Six fields in each line, each query's together, each document once a query."""
    gap, end = draw(st.sampled_from([" ", "\t", " \t "])), draw(st.sampled_from(["\n", "\r\n", " \n"]))
    lines = []
    for query in draw(st.lists(ID, min_size=1, max_size=4, unique=True)):
        docs = draw(st.lists(ID, min_size=1, max_size=8, unique=True))
        lines += [gap.join([query, "Q0", doc, draw(RANK), draw(SCORE), "t"]) for doc in docs]
    return end.join(lines) + draw(st.sampled_from(["", end]))


@st.composite
def odd_runs(draw: st.DrawFn) -> str:
    """Lines that may be anything."""
    field = st.sampled_from(["q", "1", "a", "-0", "0.0", "inf", "1e400", "\r", "\ufeff", "", " ", "\t", "\n", "\x0b"])
    lines = draw(regular_runs()).split("\n")
    for _ in range(draw(st.integers(0, 2))):
        row = draw(st.integers(0, len(lines) - 1))
        change = draw(st.sampled_from(["repeat", "swap", "field", "cut"]))
        if change == "repeat":
            lines.insert(draw(st.integers(0, len(lines))), lines[row])
        elif change == "swap":
            lines[row], lines[-1] = lines[-1], lines[row]
        else:
            fields = lines[row].split(" ")
            place = draw(st.integers(0, len(fields) - 1))
            lines[row] = " ".join(
                [*fields[:place], *([draw(field)] if change == "field" else []), *fields[place + 1 :]]
            )
    return "\n".join(lines)


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("long") / "any.run"


@given(regular_runs(), st.sampled_from(["score", "file"]), st.sampled_from(SIZES))
@example("1 Q0 a 1 1e-320 t\n1 Q0 b 2 1e-321 t", "score", 1 << 20)
def test_any_regular_run(path: Path, content: str, order: Order, size: int) -> None:
    path.write_bytes(content.encode())
    with pytest.MonkeyPatch.context() as patch:
        in_blocks(patch, size)
        found = compiled(path, order)
        chunks = pl.concat(run_chunks(path)[0])
    assert found is not None
    assert found.table.columns == COLUMNS
    expected = slow_run(content.replace("\r\n", "\n"), order)
    assert exact(found.table) == [(query, doc, float.hex(score), rank) for query, doc, score, rank in expected]
    general, contradictions = runs._read(path, order)
    assert found.table.schema == general.schema
    assert exact(found.table) == exact(general)
    assert sum(part.contradictions for part in ranked_parts(path, order == "score")) == contradictions
    if order == "score":
        assert exact(chunks) == exact(general)


@given(odd_runs(), st.sampled_from(["score", "file"]), st.sampled_from(SIZES))
@example("0 Q0 a 0 0 t\n\x0b\n0 Q0 b 0 0 t\n1 Q0 0 0 0 t\n1 Q0 b 0 0 t\n", "score", 3)
@example("0 Q0 a 0 0 t\n\u3000 \u3000\n0 Q0 b 0 0 t\n1 Q0 0 0 0 t\n", "score", 3)
@settings(max_examples=200)
def test_any_run_reads_or_fails_as_in_the_general_way(path: Path, content: str, order: Order, size: int) -> None:
    path.write_bytes(content.encode())
    with pytest.MonkeyPatch.context() as patch:
        in_blocks(patch, size)
        assert failure(path, order, long=True) == failure(path, order, long=False)
        assert streamed(path, long=True) == streamed(path, long=False)


def streamed(path: Path, *, long: bool) -> list[object]:
    """The rows of a run's chunks, and the error that ends them."""
    rows: list[object] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runs, "_LONG", 0 if long else 1 << 60)
        try:
            for chunk in run_chunks(path)[0]:
                rows += exact(chunk)
        except InputError as error:
            # Where a chunk ends depends on the way; which error there is does not.
            return [str(error)]
    return rows


def test_a_stream_goes_on_in_the_general_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_blocks(monkeypatch, 40)
    content = "".join(f"{query} Q0 d{number} 1 {number} t\n" for query in range(9) for number in range(3))
    path = written(tmp_path, content + "9 Q0 d0 1 0 t\n\n9 Q0 d1 1 -0 t\n")
    with pytest.raises(IrregularError):
        list(ranked_parts(path, True))
    chunks = list(run_chunks(path)[0])
    assert len(chunks) > 3
    assert [row for chunk in chunks for row in chunk.rows()] == read_run(path).table.rows()
    assert sum(chunk.height for chunk in chunks) == 29


def test_many_ties_and_a_reversed_run(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    lines = [
        f"{query} Q0 {'document-' * (query % 2)}{doc} 1 {score} t\n"
        for query in range(6)
        for doc, score in zip(rng.permutation(500), np.sort(rng.integers(0, 3 ** (query % 3), 500)), strict=True)
    ]
    content = "".join(lines)
    found = compiled(written(tmp_path, content))
    assert found is not None
    assert found.table.rows() == slow_run(content)
