"""What Python callers give: dicts, frames of polars and pandas, records; and what they are told where it is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ir_measures
import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError
from evenrank.files import as_batches, as_collection, as_qrels, as_queries, as_run, as_runs
from evenrank.groups import as_group_table
from given_data import FRAMES, JUDGED, QRELS, ROWS, RUN, TEXTS, frame

SAME = as_run(RUN).table


def test_columns_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    assert as_collection(pandas.DataFrame({"docno": [1, "x", 3.0], "text": list("abc")}))["doc_id"].to_list() == [
        "1",
        "x",
        "3",
    ]
    table = pandas.DataFrame({"docno": ["a", "b"], "text": ["x", "y"]}, index=[7, 7])
    for ids in (table["docno"], table["docno"].astype("category")):
        assert as_collection(table.assign(docno=ids)).rows() == [("a", "x"), ("b", "y")]
    assert as_collection(pandas.Series(TEXTS)).equals(as_collection(TEXTS))
    for read, given, message in (
        (
            as_collection,
            pandas.concat([table, table[["text"]]], axis=1),
            "`collection`: the table has two columns 'text'",
        ),
        (
            as_run,
            pandas.DataFrame({"qid": ["q"], "docno": ["d"], "score": [math.nan]}),
            f"{NUMBER}, found nan (query 'q', doc",
        ),
        (as_run, pandas.DataFrame({"qid": ["q"], "docno": [None], "score": [1.0]}), f"{NAME} as doc_id, found None"),
    ):
        with pytest.raises(EvenrankError, match=f"^{re.escape(message)}"):
            read(given)


NUMBER = "`run`: expected a finite number as score"
NAME = "`run`: expected a string or a whole number"
GRADE = "`qrels`: expected a whole number as relevance"
EMPTY = ": expected at least one row, found none"
TWICE = {"doc_id": ["d", "d"]}


@pytest.mark.parametrize(
    ("read", "given", "message"),
    [
        (as_run, None, "`run`: expected a path, a Run, {query: {document: score}}, {query: documents"),
        (as_run, 3, "found 3"),
        (as_run, {}, f"`run`{EMPTY}"),
        (as_run, pl.DataFrame(), f"`run`{EMPTY}"),
        (as_run, {"q": {"d"}}, "found a set for 'q'"),
        (as_run, {"q": ["d", "d"]}, "`run`: the document 'd' appears twice for the query 'q'"),
        (as_run, ["r.run"], "found a list that contains 'r.run'"),
        (as_run, {"q": {"d": math.nan}}, f"{NUMBER}, found nan (query 'q', document 'd')"),
        (as_run, {"q": {"c": 1.0, "d": "high"}}, "found 'high' (query 'q', document 'd')"),
        (as_run, {"q": {None: 1.0}}, f"{NAME} as doc_id, found None"),
        (as_run, {"q": {"\ud800": 1.0}}, f"{NAME} as doc_id, found '\\ud800'"),
        (as_run, {1.5: {"d": 1.0}}, f"{NAME} as query_id, found 1.5"),
        (as_run, {"q": {1: 1.0, "1": 2.0}}, "`run`: the document '1' appears twice for the query 'q'"),
        (as_run, pl.DataFrame({"asked": ["q"], "doc_id": ["d"]}),
         "`run`: the table has no column query_id, score (its columns are asked, doc_id)"),
        (as_run, [ir_measures.Qrel("q", "d", 1)], "the table has no column score (its columns are query_id, doc_id,"),
        (as_qrels, {"q": {"d": 0.5}}, f"{GRADE}, found 0.5 (query 'q', document"),
        (as_qrels, {"q": {"d": math.nan}}, f"{GRADE}, found nan"),
        (as_qrels, {"q": "d"}, "`qrels`: expected a path, {query: {document: grade}} or a table with query_id, doc_id"),
        (as_qrels, pl.DataFrame({"query_id": ["q"] * 2, **TWICE, "relevance": [1, 2]}),
         "`qrels`: the document 'd' is judged twice, with different grades, for the query 'q'"),
        (as_qrels, pl.Series([1]), "`qrels`: expected a table, found a Series"),
        (as_collection, {"": "a"}, "expected a string or a whole number as doc_id, found ''"),
        (as_collection, {"d": None}, "`collection`: expected a string as text, found None (document 'd')"),
        (as_collection, None, "`collection`: expected a path, {document: text} or a table with doc_id and text, found"),
        (as_collection, pl.DataFrame({**TWICE, "text": ["a", "b"]}),
         "`collection`: the id 'd' appears twice, with different texts"),
        (as_collection, [{"doc_id": "a", "text": "he"}, 3], "found a list that contains 3"),
        (as_collection, pl.Series(["she"]), "`collection`: expected a table, found a Series, which is a single"),
        (as_queries, pl.DataFrame({"qid": ["q"], "words": ["a"]}),
         "`queries`: the table has no column text (its columns are qid, words)"),
        (as_group_table, 5, "`scores`: expected a path, a GroupTable or a frame, found 5"),
        (as_group_table, pl.DataFrame({"doc_id": ["d"]}), "`scores`: no group table: it has no column neutrality"),
        (as_group_table, pl.DataFrame({**TWICE, "count_f": [1, 1], "neutrality": [1.0, 1.0]}),
         "`scores`: the document 'd' is repeated"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_the_callers_words(read: Callable[..., Any], given: Any, message: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        read(given)
    assert message in str(caught.value)
    assert str(caught.value).startswith("`")
    assert "\n" not in str(caught.value)


def test_records_are_dicts_named_tuples_or_dataclasses() -> None:
    @dataclass
    class Passage:
        doc_id: str
        text: str

    texts = as_collection(TEXTS)
    # What is given twice counts once.
    assert as_qrels(pl.DataFrame({"qid": ["q"] * 2, "docno": ["d"] * 2, "label": [1.0, 1.0]})).height == 1
    assert as_collection(pl.DataFrame({"docno": ["d"] * 2, "text": ["a", "a"]})).height == 1
    assert as_collection([{"_id": key, "title": "no", "text": text} for key, text in TEXTS.items()]).equals(texts)
    assert as_collection([Passage(key, text) for key, text in TEXTS.items()]).equals(texts)
    parts = [as_collection({key: text}) for key, text in TEXTS.items()]
    for given in (iter(parts), iter([Passage(key, text) for key, text in TEXTS.items()]), TEXTS):
        assert pl.concat(as_batches(given)).equals(texts)
    run = [dict(zip(("qid", "docno", "score"), row, strict=True)) for row in ROWS]
    assert as_run(run).table.equals(SAME)
    judged = [dict(zip(("query_id", "doc_id", "relevance"), row, strict=True)) for row in JUDGED]
    assert as_qrels(judged).equals(as_qrels(QRELS))


def test_a_run_goes_back_into_a_dict_and_a_file(tmp_path: Path) -> None:
    evenrank.write_run(RUN, tmp_path / "r.run")
    read = evenrank.read_run(tmp_path / "r.run")
    assert SAME.rows() == [("q1", "d1", 3.0, 1), ("q1", "d2", 2.0, 2), ("q2", "d2", 2.0, 1), ("q2", "d3", 1.0, 2)]
    assert read.table.equals(SAME)
    assert read.to_dict() == RUN
    assert [*read.to_dict()["q1"]] == ["d1", "d2"]
    frame_of_run = read.to_pandas()
    assert frame_of_run["doc_id"].tolist() == ["d1", "d2", "d2", "d3"]
    assert as_run(frame_of_run).table.equals(SAME)
    with pytest.raises(EvenrankError, match=r"^`run`: expected a path, a Run"):
        evenrank.write_run(5, tmp_path / "r.run")


@FRAMES
def test_whole_numbers_become_text(make: Any) -> None:
    rows = [(1, 10, 3.0), (1, 20, 2.0), (2, 20, 2.0), (2, 30, 1.0)]
    table = as_run({1: {10: 3.0, np.int64(20): 2}, 2: {20: 2, 30: 1}}).table
    assert table["query_id"].to_list() == ["1", "1", "2", "2"]
    assert table["doc_id"].to_list() == ["10", "20", "20", "30"]
    assert as_run(frame(rows, "query_id doc_id score", make)).table.equals(table)
    assert as_qrels({1: {10: True}}).rows() == [("1", "10", 1)]
    assert [run.name for run in as_runs([RUN, RUN])] == ["run 1", "run 2"]
    assert as_collection({1: "a", "x": "b"}).rows() == [("1", "a"), ("x", "b")]
    assert as_collection(frame([(1, "a"), (2, "b")], "id text", make)).rows() == [("1", "a"), ("2", "b")]
