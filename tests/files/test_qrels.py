"""TREC qrels: their forms and their mistakes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenrank.files import InputError, read_qrels, reading
from trec_forms import FIELD, FORMS, written

QRELS = "q1 Q0 d1 0\nq1 Q0 0 2\n0 Q0 d1 -1\n"


@pytest.mark.parametrize("size", [1 << 24, 20])
@pytest.mark.parametrize("form", [form for form in FORMS if form == "spaces" or FORMS[form](QRELS) != QRELS])
def test_forms_of_qrels(tmp_path: Path, block_bytes: Callable[[int], None], form: str, size: int) -> None:
    block_bytes(size)
    table = read_qrels(written(tmp_path, FORMS[form](QRELS)))
    assert table.schema == {"query_id": pl.String, "doc_id": pl.String, "relevance": pl.Int64}
    assert table.rows() == [("q1", "d1", 0), ("q1", "0", 2), ("0", "d1", -1)]


@pytest.mark.parametrize("size", [1 << 24, 1])
@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 0 c 1.0", "expected a whole number as relevance, found '1.0'"),
        ("1 0 c yes", "expected a whole number as relevance, found 'yes'"),
        ("1 0 c 99999999999999999999", "expected a whole number as relevance, found '99999999999999999999'"),
        ("1 0 c", "expected 4 fields (query_id, iteration, doc_id, relevance) of TREC qrels, found 3: '1 0 c'"),
        ("1 0 b 2", "the document 'b' is judged twice for the query '1', with different grades"),
    ],
)
def test_mistakes_in_qrels(
    tmp_path: Path, block_bytes: Callable[[int], None], size: int, line: str, message: str
) -> None:
    block_bytes(size)
    path = written(tmp_path, f"1 0 a 0\n1 0 b 1\n{line}\n2 0 b 0\n")
    with pytest.raises(InputError) as caught:
        read_qrels(path)
    assert str(caught.value) == f"{path}, line 3: {message}"


def test_the_same_judgement_twice_counts_once(tmp_path: Path, block_bytes: Callable[[int], None]) -> None:
    path = written(tmp_path, "1 0 b 1\n1 0 a 0\n1 0 b 1\n2 0 b 3\n1 Q0 a 0\n")
    for size in (1 << 24, 1):
        block_bytes(size)
        assert read_qrels(path).rows() == [("1", "b", 1), ("1", "a", 0), ("2", "b", 3)]


@given(
    st.dictionaries(st.tuples(FIELD, FIELD), st.integers(-2, 3), min_size=1, max_size=20),
    st.sampled_from([" ", "\t", "  "]),
    st.sampled_from([5, 1 << 20]),
)
def test_any_qrels(
    tmp_path_factory: pytest.TempPathFactory, judged: dict[tuple[str, str], int], gap: str, size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.qrels"
    lines = [gap.join((query, "0", doc, str(grade))) for (query, doc), grade in judged.items()]
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(reading.line_blocks.__kwdefaults__, "block_bytes", size)
        assert read_qrels(path).rows() == [(query, doc, grade) for (query, doc), grade in judged.items()]
