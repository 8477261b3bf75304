"""What Python callers give: dicts, frames of polars and pandas, records; and what they are told where it is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError, Run
from evenrank.files import as_batches, as_collection, as_qrels, as_queries, as_run
from evenrank.files.convert import frame_of
from evenrank.groups import as_group_table
from given_data import FRAMES, JUDGED, QRELS, QUERIES, ROWS, RUN, TEXTS, frame


class Document(NamedTuple):
    """As ir_datasets has them."""

    doc_id: str
    title: str
    text: str


SAME = as_run(RUN).table


def test_the_forms_of_a_run(tmp_path: Path) -> None:
    assert SAME.rows() == [("q1", "d1", 3.0, 1), ("q1", "d2", 2.0, 2), ("q2", "d2", 2.0, 1), ("q2", "d3", 1.0, 2)]
    evenrank.write_run(as_run(RUN, "mine"), tmp_path / "r.run")
    records = [ir_measures.ScoredDoc(*row) for row in ROWS]
    for given in (
        tmp_path / "r.run",
        str(tmp_path / "r.run"),
        Run.from_table(RUN),
        records,
        iter(records),
        {query: {doc: np.float32(score) for doc, score in of.items()} for query, of in RUN.items()},
        {query: {doc: Decimal(score) for doc, score in of.items()} for query, of in RUN.items()},
        {"q0": {}, **RUN},
        frame(ROWS, "query_id doc_id score").lazy(),
        frame(ROWS, "query_id doc_id score").to_arrow(),
        frame(ROWS, "query_id doc_id score").with_columns(pl.col("query_id", "doc_id").cast(pl.Categorical)),
    ):
        assert as_run(given).table.equals(SAME)
    assert as_run(RUN, "mine").name == "mine"
    assert as_run(as_run(RUN, "mine")).name == "mine"
    assert as_run(RUN).name == "run"
    assert as_run(tmp_path / "r.run").name == "r.run"


@FRAMES
def test_frames_as_others_name_their_columns(make: Any) -> None:
    qrels, floats = as_qrels(QRELS), [(query, document, float(grade)) for query, document, grade in JUDGED]
    assert qrels.rows() == [("q1", "d1", 1), ("q2", "d3", 2)]
    for read, rows, same, names in (
        (lambda given: as_run(given).table, ROWS, SAME, "query_id doc_id score|qid docno score|qid docid score"),
        (as_qrels, JUDGED, qrels, "query_id doc_id relevance|qid docno label|query_id docid rel"),
        (as_qrels, floats, qrels, "query_id doc_id relevance"),
        (as_collection, TEXTS.items(), as_collection(TEXTS), "doc_id text|docno text|docid contents|_id text|id body"),
        (as_queries, QUERIES.items(), as_queries(QUERIES), "query_id text|qid query|_id text|id query"),
    ):
        for of in names.split("|"):
            assert read(frame(list(rows), of, make)).equals(same), of
    assert as_qrels([ir_measures.Qrel(*row) for row in JUDGED]).equals(qrels)
    # A ranking of PyTerrier has both texts, and a query for each of its documents.
    rows = [(query, QUERIES[query], document, TEXTS[document], score) for query, document, score in ROWS]
    ranking = frame(rows, "qid query docno text score", make)
    assert as_queries(ranking).equals(as_queries(QUERIES))
    assert as_collection(ranking).equals(as_collection(TEXTS))
    assert as_run(ranking).table.equals(SAME)


@FRAMES
def test_whole_numbers_become_text(make: Any) -> None:
    rows = [(1, 10, 3.0), (1, 20, 2.0), (2, 20, 2.0), (2, 30, 1.0)]
    table = as_run({1: {10: 3.0, np.int64(20): 2}, 2: {20: 2, 30: 1}}).table
    assert table["query_id"].to_list() == ["1", "1", "2", "2"]
    assert table["doc_id"].to_list() == ["10", "20", "20", "30"]
    assert as_run(frame(rows, "query_id doc_id score", make)).table.equals(table)
    assert as_qrels({1: {10: True}}).rows() == [("1", "10", 1)]
    assert as_collection({1: "a", "x": "b"}).rows() == [("1", "a"), ("x", "b")]
    assert as_collection(frame([(1, "a"), (2, "b")], "id text", make)).rows() == [("1", "a"), ("2", "b")]


@pytest.mark.parametrize(
    "values", [[1, "a"], [1, 2**70], [2**63, -1], [object(), 1], [1j, 2j], [[1], ["a"]], [{"a": 1}, {"a": "b"}]]
)
def test_columns_of_pandas_without_a_common_type(values: list[Any]) -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(EvenrankError):
        as_queries(pandas.DataFrame({"query_id": ["1", "2"], "text": pandas.Series(values, dtype=object)}))
    table = frame_of(pandas.DataFrame({"a": pandas.Series(values, dtype=object)}), "x")
    assert table is not None
    assert table["a"].to_list() == values


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
        (as_run, pandas.Series({"a": 1}), "`run`: expected a table, found a Series"),
        (as_qrels, pandas.Series({"a": 1}), "`qrels`: expected a table, found a Series"),
    ):
        with pytest.raises(EvenrankError, match=f"^{re.escape(message)}"):
            read(given)


def test_documents_of_ir_datasets_and_batches() -> None:
    records = [Document(key, "title", text) for key, text in TEXTS.items()]
    assert as_collection(records).equals(as_collection(TEXTS))
    for given in (records, iter(records), TEXTS, as_collection(TEXTS)):
        assert [batch.rows() for batch in as_batches(given)] == [list(TEXTS.items())]
    parts = [as_collection({key: text}) for key, text in TEXTS.items()]
    assert [batch.rows() for batch in as_batches(iter(parts))] == [[row] for row in TEXTS.items()]
    assert list(as_batches([])) == []


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
        (as_run, {"q": {}}, f"`run`{EMPTY}"),
        (as_run, [], f"`run`{EMPTY}"),
        (as_run, pl.DataFrame(), f"`run`{EMPTY}"),
        (as_run, {"q": {"d"}}, "found a set for 'q'"),
        (as_run, {"q": ["d", "d"]}, "`run`: the document 'd' appears twice for the query 'q'"),
        (as_run, ["r.run"], "found a list that contains 'r.run'"),
        (as_run, {"q": {"d": math.nan}}, f"{NUMBER}, found nan (query 'q', document 'd')"),
        (as_run, {"q": {"d": math.inf}}, f"{NUMBER}, found inf (query 'q', document 'd')"),
        (as_run, {"q": {"d": None}}, f"{NUMBER}, found None (query 'q', document 'd')"),
        (as_run, {"q": {"c": 1.0, "d": "high"}}, "found 'high' (query 'q', document 'd')"),
        (as_run, {"q": {None: 1.0}}, f"{NAME} as doc_id, found None"),
        (as_run, {"q": {"\ud800": 1.0}}, f"{NAME} as doc_id, found '\\ud800'"),
        (as_run, {1.5: {"d": 1.0}}, f"{NAME} as query_id, found 1.5"),
        (as_run, {True: {"d": 1.0}}, f"{NAME} as query_id, found True"),
        (as_run, {"q": {1: 1.0, "1": 2.0}}, "`run`: the document '1' appears twice for the query 'q'"),
        (as_run, pl.DataFrame({"asked": ["q"], "doc_id": ["d"]}),
         "`run`: the table has no column query_id, score (its columns are asked, doc_id)"),
        (as_run, [ir_measures.Qrel("q", "d", 1)], "the table has no column score (its columns are query_id, doc_id,"),
        (as_run, pl.Series([1]), "`run`: expected a table, found a Series"),
        (as_qrels, {"q": {"d": 0.5}}, f"{GRADE}, found 0.5 (query 'q', document"),
        (as_qrels, {"q": {"d": "x"}}, f"{GRADE}, found 'x' (query 'q', document"),
        (as_qrels, {"q": {"d": math.nan}}, f"{GRADE}, found nan"),
        (as_qrels, {"q": "d"}, "`qrels`: expected a path, {query: {document: grade}} or a table with query_id, doc_id"),
        (as_qrels, pl.DataFrame({"query_id": ["q"] * 2, **TWICE, "relevance": [1, 2]}),
         "`qrels`: the document 'd' is judged twice, with different grades, for the query 'q'"),
        (as_qrels, pl.Series([1]), "`qrels`: expected a table, found a Series"),
        (as_collection, {"": "a"}, "expected a string or a whole number as doc_id, found ''"),
        (as_collection, {"d": None}, "`collection`: expected a string as text, found None (document 'd')"),
        (as_collection, {"d": 5}, "`collection`: expected a string as text, found 5 (document 'd')"),
        (as_collection, {}, f"`collection`{EMPTY}"),
        (as_collection, None, "`collection`: expected a path, {document: text} or a table with doc_id and text, found"),
        (as_collection, pl.DataFrame({**TWICE, "text": ["a", "b"]}),
         "`collection`: the id 'd' appears twice, with different texts"),
        (as_collection, [{"doc_id": "a", "text": "he"}, {"doc_id": "b"}],
         "`collection`: expected a string as text, found None (document 'b')"),
        (as_collection, [{"doc_id": "a", "text": "he"}, 3], "found a list that contains 3"),
        (as_collection, pl.Series(["she"]), "`collection`: expected a table, found a Series, which is a single"),
        (as_queries, pl.DataFrame({"qid": ["q"], "words": ["a"]}),
         "`queries`: the table has no column text (its columns are qid, words)"),
        (as_group_table, 5, "`scores`: expected a path, a GroupTable or a frame, found 5"),
        (as_group_table, pl.DataFrame({"doc_id": ["d"]}), "`scores`: no group table: it has no column neutrality"),
        (as_group_table, pl.DataFrame({"doc_id": [None], "count_f": [1], "neutrality": [1.0]}),
         "`scores`: expected a string or a whole number as doc_id, found None"),
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
    assert as_qrels(pl.DataFrame({"qid": ["q"] * 2, "docno": ["d"] * 2, "label": [1, 1]})).height == 1
    assert as_collection(pl.DataFrame({"docno": ["d"] * 2, "text": ["a", "a"]})).height == 1
    assert as_collection([{"_id": key, "title": "no", "text": text} for key, text in TEXTS.items()]).equals(texts)
    assert as_collection([Passage(key, text) for key, text in TEXTS.items()]).equals(texts)
    run = [dict(zip(("qid", "docno", "score"), row, strict=True)) for row in ROWS]
    assert as_run(run).table.equals(SAME)
    judged = [dict(zip(("query_id", "doc_id", "relevance"), row, strict=True)) for row in JUDGED]
    assert as_qrels(judged).equals(as_qrels(QRELS))


def test_a_run_goes_back_into_a_dict_and_a_file(tmp_path: Path) -> None:
    evenrank.write_run(RUN, tmp_path / "r.run")
    read = evenrank.read_run(tmp_path / "r.run")
    assert read.table.equals(SAME)
    assert read.to_dict() == RUN
    assert [*read.to_dict()["q1"]] == ["d1", "d2"]
    frame_of_run = read.to_pandas()
    assert frame_of_run["doc_id"].tolist() == ["d1", "d2", "d2", "d3"]
    assert as_run(frame_of_run).table.equals(SAME)
    with pytest.raises(EvenrankError, match=r"^`run`: expected a path, a Run"):
        evenrank.write_run(5, tmp_path / "r.run")
