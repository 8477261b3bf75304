"""What Python callers give: dicts, frames of polars and pandas, records; and what they are told where it is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import polars as pl
import pytest

import evenrank
from evenrank import EvenrankError, Run
from evenrank.groups import Scoring, load_lexicon
from evenrank.io import as_batches, as_collection, as_qrels, as_queries, as_run, as_runs, as_scores

RUN = {"q1": {"d1": 3.0, "d2": 2.0}, "q2": {"d2": 2.0, "d3": 1.0}}
QRELS = {"q1": {"d1": 1}, "q2": {"d3": 2}}
TEXTS = {"d1": "She and her", "d2": "He said he", "d3": "nothing"}
QUERIES = {"q1": "who", "q2": "where"}
ROWS = [(query, document, score) for query, of in RUN.items() for document, score in of.items()]
JUDGED = [(query, document, grade) for query, of in QRELS.items() for document, grade in of.items()]


class Document(NamedTuple):
    """As ir_datasets has them."""

    doc_id: str
    title: str
    text: str


def frame(rows: list[tuple[Any, ...]], names: str, make: Any = pl.DataFrame) -> Any:
    return make({name: list(column) for name, column in zip(names.split(), zip(*rows, strict=True), strict=True)})


def pandas_frame(columns: dict[str, list[Any]]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


FRAMES = pytest.mark.parametrize("make", [pl.DataFrame, pandas_frame], ids=["polars", "pandas"])
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
    for names in ("query_id doc_id score", "qid docno score", "qid docid score"):
        assert as_run(frame(ROWS, names, make)).table.equals(SAME)
    same = as_qrels(QRELS)
    assert same.rows() == [("q1", "d1", 1), ("q2", "d3", 2)]
    for names in ("query_id doc_id relevance", "qid docno label", "query_id docid rel"):
        assert as_qrels(frame(JUDGED, names, make)).equals(same)
        floats = [(query, document, float(grade)) for query, document, grade in JUDGED]
        assert as_qrels(frame(floats, names, make)).equals(same)
    assert as_qrels([ir_measures.Qrel(*row) for row in JUDGED]).equals(same)
    for names in ("doc_id text", "docno text", "docid contents", "_id text", "id body"):
        assert as_collection(frame(list(TEXTS.items()), names, make)).equals(as_collection(TEXTS))
    for names in ("query_id text", "qid query", "_id text", "id query"):
        assert as_queries(frame(list(QUERIES.items()), names, make)).equals(as_queries(QUERIES))
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


def test_columns_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"docno": [1, "x", 3.0], "text": ["a", "b", "c"]})
    assert as_collection(table)["doc_id"].to_list() == ["1", "x", "3"]
    table = pandas.DataFrame({"docno": ["a", "b"], "text": ["x", "y"]}, index=[7, 7])
    assert as_collection(table).rows() == [("a", "x"), ("b", "y")]
    table["docno"] = table["docno"].astype("category")
    assert as_collection(table).rows() == [("a", "x"), ("b", "y")]
    with pytest.raises(EvenrankError, match=r"^`collection`: the table has two columns 'text'$"):
        as_collection(pandas.concat([table, table[["text"]]], axis=1))
    with pytest.raises(EvenrankError, match=r"^`run`: expected a finite number as score, found nan \(query 'q', doc"):
        as_run(pandas.DataFrame({"qid": ["q"], "docno": ["d"], "score": [math.nan]}))
    with pytest.raises(EvenrankError, match=r"^`run`: expected a text or a whole number as doc_id, found None$"):
        as_run(pandas.DataFrame({"qid": ["q"], "docno": [None], "score": [1.0]}))


def test_documents_of_ir_datasets_and_batches() -> None:
    records = [Document(key, "title", text) for key, text in TEXTS.items()]
    assert as_collection(records).equals(as_collection(TEXTS))
    for given in (records, iter(records), TEXTS, as_collection(TEXTS)):
        assert [batch.rows() for batch in as_batches(given)] == [list(TEXTS.items())]
    parts = [as_collection({key: text}) for key, text in TEXTS.items()]
    assert [batch.rows() for batch in as_batches(iter(parts))] == [[row] for row in TEXTS.items()]
    assert list(as_batches([])) == []


@pytest.mark.parametrize(
    ("read", "given", "message"),
    [
        (as_run, None, "`run`: expected a path, a Run, {query: {document: score}} or a table with query_id, doc_id"),
        (as_run, 3, "found int 3"),
        (as_run, {}, "`run`: expected at least one row, found none"),
        (as_run, {"q": {}}, "`run`: expected at least one row, found none"),
        (as_run, [], "`run`: expected at least one row, found none"),
        (as_run, {"q": ["d"]}, "found list for 'q'"),
        (as_run, ["r.run"], "found a list with str 'r.run' in it"),
        (as_run, {"q": {"d": math.nan}}, "expected a finite number as score, found nan (query 'q', document 'd')"),
        (as_run, {"q": {"d": math.inf}}, "expected a finite number as score, found inf (query 'q', document 'd')"),
        (as_run, {"q": {"d": None}}, "expected a finite number as score, found None (query 'q', document 'd')"),
        (as_run, {"q": {"c": 1.0, "d": "high"}}, "found 'high' (query 'q', document 'd')"),
        (as_run, {"q": {None: 1.0}}, "expected a text or a whole number as doc_id, found None"),
        (as_collection, {"": "a"}, "expected a text or a whole number as doc_id, found ''"),
        (as_run, {"q": {"\ud800": 1.0}}, "expected a text or a whole number as doc_id, found '\\ud800'"),
        (as_run, {1.5: {"d": 1.0}}, "expected a text or a whole number as query_id, found 1.5"),
        (as_run, {True: {"d": 1.0}}, "expected a text or a whole number as query_id, found True"),
        (as_run, {"q": {1: 1.0, "1": 2.0}}, "`run`: the document '1' stands twice for the query 'q'"),
        (as_run, pl.DataFrame({"query": ["q"], "doc_id": ["d"]}),
         "`run`: the table has no column query_id, score (its columns are query, doc_id)"),
        (as_run, pl.DataFrame(), "`run`: expected at least one row, found none"),
        (as_run, [ir_measures.Qrel("q", "d", 1)], "the table has no column score (its columns are query_id, doc_id,"),
        (as_qrels, {"q": {"d": 0.5}}, "`qrels`: expected a whole number as relevance, found 0.5 (query 'q', document"),
        (as_qrels, {"q": {"d": "x"}}, "`qrels`: expected a whole number as relevance, found 'x' (query 'q', document"),
        (as_qrels, {"q": {"d": math.nan}}, "`qrels`: expected a whole number as relevance, found nan"),
        (as_qrels, {"q": "d"}, "`qrels`: expected a path, {query: {document: grade}} or a table with query_id, doc_id"),
        (as_qrels, pl.DataFrame({"query_id": ["q"] * 2, "doc_id": ["d"] * 2, "relevance": [1, 2]}),
         "`qrels`: the document 'd' is judged twice, with different grades, for the query 'q'"),
        (as_collection, {"d": None}, "`collection`: expected a text as text, found None (document 'd')"),
        (as_collection, {"d": 5}, "`collection`: expected a text as text, found 5 (document 'd')"),
        (as_collection, {}, "`collection`: expected at least one row, found none"),
        (as_collection, None, "`collection`: expected a path, {document: text} or a table with doc_id and text, found"),
        (as_collection, pl.DataFrame({"doc_id": ["d", "d"], "text": ["a", "b"]}),
         "`collection`: the id 'd' stands twice, with two texts"),
        (as_queries, pl.DataFrame({"qid": ["q"], "words": ["a"]}),
         "`queries`: the table has no column text (its columns are qid, words)"),
        (as_scores, 5, "`scores`: expected a path, Scores or a score table, found int"),
        (as_scores, pl.DataFrame({"doc_id": ["d"]}), "`scores`: no score table: it has no column neutrality"),
        (as_scores, pl.DataFrame({"doc_id": [None], "count_f": [1], "neutrality": [1.0]}),
         "`scores`: expected a text or a whole number as doc_id, found None"),
        (as_scores, pl.DataFrame({"doc_id": ["d", "d"], "count_f": [1, 1], "neutrality": [1.0, 1.0]}),
         "`scores`: the document 'd' stands twice"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_the_callers_words(read: Callable[..., Any], given: Any, message: str) -> None:
    with pytest.raises(EvenrankError) as caught:
        read(given)
    assert message in str(caught.value)
    assert str(caught.value).startswith("`")
    assert "\n" not in str(caught.value)


def test_a_judgement_twice_and_a_text_twice_count_once() -> None:
    assert as_qrels(pl.DataFrame({"qid": ["q"] * 2, "docno": ["d"] * 2, "label": [1, 1]})).height == 1
    assert as_collection(pl.DataFrame({"docno": ["d"] * 2, "text": ["a", "a"]})).height == 1


@FRAMES
def test_an_audit_of_whatever_is_given(make: Any) -> None:
    settings: dict[str, Any] = {"measures": "nDCG@10 ARaB@10", "seed": 1}
    same = evenrank.audit({"run": RUN}, collection=TEXTS, qrels=QRELS, queries=QUERIES, **settings)
    forms: list[Any] = [RUN, as_run(RUN), [as_run(RUN)], frame(ROWS, "qid docno score", make), {"run": RUN}]
    forms.append([ir_measures.ScoredDoc(*row) for row in ROWS])
    for runs in forms:
        found = evenrank.audit(
            runs,
            collection=frame(list(TEXTS.items()), "docno text", make),
            qrels=frame(JUDGED, "qid docno label", make),
            queries=frame(list(QUERIES.items()), "qid query", make),
            background=RUN,
            **settings,
        )
        assert found.per_query().equals(same.per_query())
    assert same["run"].figures["nDCG@10"].n == 2
    several = evenrank.audit({"a": RUN, "b": frame(ROWS, "qid docno score", make)}, collection=TEXTS, **(settings | {
        "measures": "ARaB@10"}))  # fmt: skip
    assert [run.name for run in several.runs][:2] == ["a", "b"]


def test_a_report_of_dicts(tmp_path: Path) -> None:
    found = evenrank.audit(RUN, collection=TEXTS, qrels=QRELS, queries=QUERIES)
    found.report(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert " said " in page
    assert "where" in page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"runs": []}, "an audit needs at least one run"),
        ({"runs": None}, "`runs`: expected a path, a Run, {query: {document: score}} or a table"),
        ({"runs": {1: "r.run"}}, "`runs`: expected names, found 1: one run is {query: {document: score}}"),
        ({"runs": [as_run(RUN), as_run(RUN)]}, "two runs are named 'run': name them, as in {'other': run}"),
        ({"runs": ["r.run", None]}, "`runs`: expected paths or Runs in the list, found a NoneType"),
        ({"runs": {"mine": {"q": {"d": "x"}}}}, "run mine: expected a finite number as score, found 'x'"),
        ({"runs": {"mine": pl.DataFrame({"a": [1]})}}, "run mine: the table has no column query_id, doc_id, score"),
        ({"collection": {}}, "`collection`: expected at least one row, found none"),
        ({"collection": {"x": "none of them"}}, "run run: 3 of its 3 documents are not in the collection"),
        ({"collection": 5}, "`collection`: expected a path, {document: text} or a table"),
        ({"qrels": pl.DataFrame({"query_id": ["q1"]})}, "`qrels`: the table has no column doc_id, relevance"),
        ({"queries": {"q1": 5}}, "`queries`: expected a text as text, found 5 (query 'q1')"),
        ({"scores": pl.DataFrame({"doc_id": ["d"]})}, "`scores`: no score table"),
        ({"background": 5}, "`background`: expected a path, a Run"),
    ],
)
def test_an_audit_of_what_cannot_be_used(arguments: dict[str, Any], message: str) -> None:
    given = {"runs": RUN, "collection": TEXTS, "qrels": QRELS, **arguments}
    with pytest.raises(EvenrankError) as caught:
        evenrank.audit(given.pop("runs"), **given)
    assert message in str(caught.value)
    assert "--" not in str(caught.value)


@FRAMES
def test_the_first_stage_and_fusion(make: Any) -> None:
    from evenrank.retrieval.bm25 import retrieve
    from evenrank.retrieval.fusion import interpolate, tune

    asked = {"q1": "she", "q2": "nothing he"}
    found = retrieve(TEXTS, asked, 5, stopwords=None, quiet=True)
    assert found.table["doc_id"].to_list() == ["d1", "d2", "d3"]
    collection = frame(list(TEXTS.items()), "docno text", make)
    queries = frame(list(asked.items()), "qid query", make)
    assert retrieve(collection, queries, 5, stopwords=None, quiet=True).table.equals(found.table)
    with pytest.raises(EvenrankError, match=r"^`queries`: the table has no column query_id, text"):
        retrieve(TEXTS, frame([(1,)], "a", make), quiet=True)
    rows = frame(ROWS, "qid docno score", make)
    fused = interpolate([as_run(found, "bm25"), RUN], [0.5, 0.5])
    assert interpolate({"bm25": found, "b": rows}, [0.5, 0.5]).table.equals(fused.table)
    judged = frame(JUDGED, "qid docno label", make)
    assert tune([found, rows], judged, folds=2).names == ("bm25", "run 2")
    with pytest.raises(EvenrankError, match=r"^`runs`, number 2: the table has no column score"):
        as_runs([RUN, frame(JUDGED, "qid docno label", make)])


@FRAMES
def test_scoring(tmp_path: Path, make: Any) -> None:
    scoring = Scoring(load_lexicon("gender-en"))
    for number, given in enumerate((TEXTS, frame(list(TEXTS.items()), "docno text", make))):
        assert evenrank.score_collection(given, tmp_path / str(number), scoring) == 3
    scored = evenrank.read_scores(tmp_path / "0").table
    assert scored.equals(evenrank.read_scores(tmp_path / "1").table)
    assert scored["doc_id"].to_list() == ["d1", "d2", "d3"]
    as_frame = make({name: scored[name].to_list() for name in scored.columns})
    assert as_scores(as_frame).table.drop("tokens").equals(scored.drop("tokens"))
    with pytest.raises(EvenrankError, match=r"^`collection`: `engine='ray'` reads files"):
        evenrank.score_collection(TEXTS, tmp_path / "2", scoring, engine="ray")


def test_negatives(tmp_path: Path) -> None:
    from evenrank.mitigation.negatives import write_negatives

    done = write_negatives(RUN, tmp_path / "n.parquet", collection=TEXTS, qrels=QRELS, n=1)
    assert done["queries"] == 2
    assert pl.read_parquet(tmp_path / "n.parquet")["query_id"].to_list() == ["q1", "q2"]
