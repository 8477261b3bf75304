"""TREC runs and qrels: their forms, their order, their mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from evenrank.files import InputError, Run, read_qrels, read_run, write_run


def written(tmp_path: Path, content: str | bytes, name: str = "file") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("ranks", "scores", "count"),
    [
        ([1, 2, 3], [3, 2, 1], 0),
        ([1, 2, 3], [3, 3, 3], 0),
        ([3, 1, 2], [1, 3, 2], 0),
        (["-", "x", 99999999999, 0], [1, 2, 3, 4], 0),
        ([1, 2, 3], [1, 2, 3], 2),
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


@pytest.mark.parametrize(("name", "tag"), [("my  new run", "my_new_run"), (" ", "run"), ("a\nb", "a_b")])
def test_written_form(tmp_path: Path, name: str, tag: str) -> None:
    # Two queries, the first not contiguous; 0 as an id; a tie; scores not sorted.
    lines = "0 Q0 d1 1 1.5 t\nq2 Q0 0 1 -2 t\nq2 Q0 d1 2 -1e-3 t\n0 Q0 d10 2 2.5 t\n0 Q0 d9 3 2.5 t\n"
    write_run(read_run(written(tmp_path, lines), name=name), tmp_path / "out.run")
    assert (tmp_path / "out.run").read_text() == (
        f"0 Q0 d9 1 2.5 {tag}\n0 Q0 d10 2 2.5 {tag}\n0 Q0 d1 3 1.5 {tag}\n"
        f"q2 Q0 d1 1 -0.001 {tag}\nq2 Q0 0 2 -2.0 {tag}\n"
    )


@pytest.mark.parametrize("bad", ["", "a b", "a\nb"])
@pytest.mark.parametrize("column", ["query_id", "doc_id"])
def test_an_id_that_the_form_cannot_carry(tmp_path: Path, column: str, bad: str) -> None:
    run = Run.from_table(pl.DataFrame({"query_id": ["1"], "doc_id": ["2"], "score": [1.0], column: [bad]}))
    with pytest.raises(InputError, match="is empty or contains white space"):
        write_run(run, tmp_path / "out.run")
    assert list(tmp_path.iterdir()) == []


# --- mistakes ------------------------------------------------------------------------------------------------------


GOOD = "1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n2 Q0 a 1 1 t\n\n"
JUDGED = "1 0 a 0\n1 0 b 1\n2 0 b 3\n\n"
FIELDS = "expected 6 fields (query_id, Q0, doc_id, rank, score, tag) of a TREC run"
SCORES = "expected a finite number as score"
GRADES = "expected a whole number as relevance"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 Q0 c 3 1", f"{FIELDS}, found 5: '1 Q0 c 3 1'"),
        ("1\tQ0 c 3 4 1 t", f"{FIELDS}, found 7: '1\\tQ0 c 3 4 1 t'"),
        ("1 Q0 c 3 1e999 t", f"{SCORES}, found '1e999'"),
        ("1 Q0 c 3 1,5 t", f"{SCORES}, found '1,5' (the decimal sign is a point)"),
        ("1 Q0 b 3 0 t", "the document 'b' appears twice for the query '1' (first in line 2)"),
        ("1 0 c 1.0", f"{GRADES}, found '1.0'"),
        ("1 0 c 99999999999999999999", f"{GRADES}, found '99999999999999999999'"),
        ("1 0 c", "expected 4 fields (query_id, iteration, doc_id, relevance) of TREC qrels, found 3: '1 0 c'"),
        ("1 0 b 2", "the document 'b' is judged twice for the query '1', with different grades"),
    ],
)
def test_mistakes(tmp_path: Path, block_bytes: Callable[[int], None], line: str, message: str) -> None:
    block_bytes(1)
    judged = re.match("1 0 ", line)
    for good in (JUDGED,) if judged else (GOOD, GOOD.replace(" ", "\t")):
        path = written(tmp_path, good + line + ("\n2 0 c 0\n" if judged else "\n2 Q0 b 1 1 t\n"))
        with pytest.raises(InputError) as caught:
            (read_qrels if judged else read_run)(path)
        assert str(caught.value) == f"{path}, line 5: {message}"
        assert caught.value.line == 5
